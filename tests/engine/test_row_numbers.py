"""Row numbers of different tables are different types to mypy, and ints at run time."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest

from proteoscope.engine.arrays import ChainRow, PeptideRow, ProteinRow, SpectrumRow, row_range

SNIPPET = """
from proteoscope.engine.arrays import ChainRow, PeptideRow, ProteinRow, SpectrumRow, row_range

def peaks(row: SpectrumRow) -> None: ...
def residues(row: ProteinRow) -> None: ...

peaks(SpectrumRow(1))
peaks(PeptideRow(1))
residues(ChainRow(1))
peaks(1)
for row in row_range(ProteinRow, 3):
    residues(row)
    peaks(row)
"""

SETTINGS = """
[mypy]
[mypy-proteoscope.*]
follow_imports = skip
[mypy-proteoscope.engine.arrays]
follow_imports = silent
"""
"""Check one module, since mypy would read the whole program through the packages above it."""


@pytest.fixture
def unchanged_gc() -> Iterator[None]:
    """Restore the thresholds of the garbage collector, which mypy raises for the whole process."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("unchanged_gc")
def test_mypy_reports_a_row_of_another_table(tmp_path):
    api = pytest.importorskip("mypy.api")
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, encoding="utf-8")
    settings = tmp_path / "mypy.ini"
    settings.write_text(SETTINGS, encoding="utf-8")
    options = ["--follow-imports=silent", f"--config-file={settings}", f"--cache-dir={tmp_path / 'cache'}", "--no-error-summary"]
    text, problems, _ = api.run([*options, str(snippet)])
    assert problems == ""
    errors = [(int(line.split(":")[-3]), line.split(":")[-1].strip()) for line in text.splitlines() if ": error:" in line]
    assert errors == [
        (line, f'Argument 1 to "{name}" has incompatible type "{given}"; expected "{expected}"  [arg-type]')
        for line, name, given, expected in (
            (8, "peaks", "PeptideRow", "SpectrumRow"),
            (9, "residues", "ChainRow", "ProteinRow"),
            (10, "peaks", "int", "SpectrumRow"),
            (13, "peaks", "ProteinRow", "SpectrumRow"),
        )
    ]


@pytest.mark.parametrize("kind", [ChainRow, PeptideRow, ProteinRow, SpectrumRow])
def test_row_numbers_are_ints_at_run_time(kind):
    rows = row_range(kind, 4)
    assert list(rows) == [0, 1, 2, 3]
    assert [type(row) for row in (kind(2), rows[2])] == [int, int]
    assert np.arange(10)[rows[2:]].tolist() == [2, 3]
