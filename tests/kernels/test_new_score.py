"""A score added in three files is used on every device; `tests/test_new_score.py` tests its reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from proteoscope.kernels.cpu.matches import feature_names, measure_matches
from proteoscope.kernels.layouts import (
    HitArrays,
    MatchArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoringSettings,
    SpectrumArrays,
)
from proteoscope.kernels.score_kinds import SDP
from tests.extended_program import extended_program, read_sections
from tests.shim.search_inputs import random_search
from tests.shim.shim_gpu import missing_compiler

USE = """
import sys
import numpy as np
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.scoring_settings import scoring_settings
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.segments import unsupported_reason
from proteoscope.kernels.device import backend_module
from proteoscope.kernels.score_kinds import SCORE_KINDS, score_kind
from tests.kernels.test_new_score import assert_scores_equal_feature_sums, inputs_of
from tests.shim.search_inputs import assert_same_hits, empty_hits
from tests.shim.shim_gpu import ShimGpu

code, kind = score_kind("morpheus")
assert (code, kind) == (4, SCORE_KINDS[-1])
parameters = IdentificationParameters(score="morpheus")
assert scoring_settings(parameters, "by", 1000.0).score == code
spectra, queries, peptides, modifications, settings = inputs = inputs_of(code)
assert "not a sum" in unsupported_reason(spectra, peptides, modifications, settings), "no fragment-ion index"
path, *devices = sys.argv[1:]
found = []
for device in [{"processor": Processor(1), "gpu": ShimGpu()}[name] for name in devices]:
    hits = empty_hits(15, width=kind.histogram_width)
    list(backend_module(device, "scoring").SpectrumSearch(device, *inputs[2:]).search_queries(spectra, queries, hits, 0, 15))
    found.append(hits)
for others in found[1:]:
    assert_same_hits(found[0], others)
assert found[0].histogram.sum() == found[0].n_candidates.sum()
if "processor" in devices:
    assert_scores_equal_feature_sums(found[0])
np.savez(path, **found[0]._asdict())
print("the new score is searched by")
"""


def inputs_of(score: int) -> tuple[SpectrumArrays, QueryArrays, PeptideArrays, ModificationArrays, ScoringSettings]:
    """Return the inputs of a search by a score."""
    return random_search(7, score, n_peptides=1500, n_queries=15)


def assert_scores_equal_feature_sums(hits: HitArrays) -> None:
    """Check that the score of each hit is the sum of its features."""
    spectra, queries, peptides, modifications, settings = inputs_of(SDP)
    query, column = np.nonzero(hits.peptide >= 0)
    assert len(query) > 20
    out = np.zeros((len(query), len(feature_names())))
    matches = MatchArrays(
        queries.spectrum[query],
        queries.charge[query],
        hits.peptide[query, column],
        hits.site[query, column],
        hits.modification[query, column],
    )
    measure_matches(spectra, matches, peptides, modifications.mass, settings, 0, len(query), out, np.zeros(1, np.uint8))
    measured = dict(zip(feature_names(), out.T, strict=True))
    expected = measured["matched_ions"] + measured["spectral_dot_product"]
    np.testing.assert_allclose(hits.score[query, column], expected, rtol=1e-6)


# Compiling the CPU search for this score takes a while: with --all.
@pytest.mark.parametrize("devices", [["gpu"], pytest.param(["gpu", "processor"], marks=pytest.mark.long)], ids=" and ".join)
@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
def test_new_score_ranks_hits_on_every_device(devices: list[str], tmp_path: Path) -> None:
    environment = extended_program(tmp_path, read_sections()["A score"])
    path = tmp_path / "hits.npz"
    done = subprocess.run([sys.executable, "-c", USE, str(path), *devices], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "is searched by" in done.stdout
    # Compiled kernels measure the features here.
    with np.load(path) as arrays:
        assert_scores_equal_feature_sums(HitArrays(*(arrays[name] for name in HitArrays._fields)))
