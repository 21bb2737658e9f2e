"""Each bound that the page on untrusted files states is that of the program."""

from __future__ import annotations

import re

import pytest

from proteoscope.engine import parameters
from proteoscope.engine.chemistry import noted_peptides
from proteoscope.engine.formats.libraries import entries, mzspeclib
from proteoscope.engine.imported import parquet
from proteoscope.engine.quantification import separated_rows
from proteoscope.engine.sqlite_inputs import LONGEST_VALUE
from proteoscope.engine.structures import reading
from proteoscope.engine.unfolding import BOUNDS
from tests.conftest import REPOSITORY
from tests.fuzz.readers import MEMORY_BYTES, PROCESSOR_SECONDS

PAGE = " ".join((REPOSITORY / "docs" / "security.md").read_text().split())
SENTENCES = (
    f"a preset has up to {parameters._MAXIMUM_PRESET_BYTES:,} bytes",
    f"a table of samples {separated_rows._MAXIMUM_BYTES >> 20} MB and {separated_rows._MAXIMUM_ROWS:,} rows",
    f"a structure {reading.MAXIMUM_BYTES >> 20} MB",
    f"a peptide {noted_peptides._MAXIMUM_LETTERS:,} residues in results and {entries._MAXIMUM_LENGTH:,} in libraries",
    f"a Parquet report {parquet._MAXIMUM_ROWS:,} rows",
    f"the sets that one entry of mzSpecLib names {mzspeclib._MAXIMUM_OF_SETS:,} attributes",
    f"no value is longer than {LONGEST_VALUE >> 20} MB",
    f"up to {PROCESSOR_SECONDS} s of processor time and {MEMORY_BYTES >> 20} MB of memory",
)


def test_security_page_lists_each_bound_and_no_other():
    rows = re.findall(r"\| ([^|]+) \| ([^|]+) \| ([\d,]+) \| ([\d.]+) \|", (REPOSITORY / "docs" / "security.md").read_text())
    assert rows == [(one.where, one.what, f"{one.free:,}", f"{one.times:g}") for one in BOUNDS]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_security_page_states_the_bounds_of_the_program(sentence):
    assert sentence in PAGE
