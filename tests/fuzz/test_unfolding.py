"""Small files that expand enormously are rejected within the limits of CPU time and memory, for each reader."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.unfolding import BOUNDS, PEAKS, Unfolding

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are made and limited as on Linux")
if sys.platform.startswith("linux"):
    from tests.fuzz.readers import MEMORY_BYTES, PROCESSOR_SECONDS, REPOSITORY
    from tests.fuzz.unfolding import ATTACKS, expected_statuses

QUICK = (
    "mzid accession",
    "mzid modifications",
    "mzid evidence",
    "mzid scores",
    "idxml accession",
    "idxml scores",
    "pepxml scores",
    "pin features within bounds",
    "comet name of the run",
    "mzspeclib set of all",
    "blib view",
    "blib computed column",
    "bcif long text",
    "bcif chain of encodings",
    "bcif chain of encodings of a mask",
    "bcif offsets of many texts",
    "bcif offsets of offsets",
    "pin proteins",
    "gff cyclic parents",
    "gff attributes",
    "gzip of empty members",
    "gzip with garbage after its end",
    "mzml numpress tiny scale",
    "mzml numpress slof infinite",
    "mzml numpress under a bomb",
    "mzml zstd",
    "genbank nested places",
    "uniprot xml attributes",
)
"""Attacks whose files are created fast, and whose readers compile nothing."""


@pytest.mark.parametrize("names", [QUICK, pytest.param(None, marks=pytest.mark.long)], ids=["quick", "all"])
def test_files_that_expand_enormously_are_rejected_within_limits(names):
    chosen = ATTACKS if names is None else names
    options = [part for name in chosen for part in ("--attack", name)]
    command = [sys.executable, "-m", "tests.fuzz.unfolding", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    outcomes = {line["attack"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert list(outcomes) == list(chosen), done.stderr[-2000:]
    for name, outcome in outcomes.items():
        assert outcome["status"] in expected_statuses(name), (name, outcome)
        assert outcome["seconds"] <= PROCESSOR_SECONDS, (name, outcome)
        assert outcome["megabytes"] <= MEMORY_BYTES >> 20, (name, outcome)


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.what)
def test_unfolding_rejects_expanded_sizes_above_a_limit(bound):
    n_bytes = 1_000_000
    unfolding = Unfolding("x.mgf", n_bytes)
    unfolding.add(bound, bound.most(n_bytes))
    with pytest.raises(InputError, match=rf"x\.mgf, line 7: expands to more than {bound.most(n_bytes):,} ") as refused:
        unfolding.add(bound, 1, place="line 7")
    assert "\n" not in str(refused.value)


def test_unfolding_has_a_separate_count_for_each_bound():
    unfolding = Unfolding("x.mgf", 0)
    for bound in BOUNDS:
        unfolding.add(bound, bound.free)
    with pytest.raises(InputError):
        unfolding.add(PEAKS, 1)
