"""Candidates and match scores on GPUs equal those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.match_scores import SHAPES
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.match_scores import MatchScores
from proteoscope.kernels.match_score_layouts import MassLists
from tests.shim.mass_inputs import random_lists, scored_on, searched_on
from tests.shim.tuning import limited, tuned

pytestmark = pytest.mark.gpu


POSTINGS, BITS = {"share_for_bits": 2.0}, {"share_for_bits": -1.0}
BOTH_ROWS = pytest.mark.parametrize("rows", [POSTINGS, BITS], ids=["postings", "bits"])


@BOTH_ROWS
@pytest.mark.parametrize("longest", [30, 300], ids=["8 bits", "16 bits"])
@pytest.mark.parametrize("top", [1, 20, 256])
def test_gpu_match_score_best_candidates_equal_cpu(device, rows, longest, top):
    rng = np.random.default_rng(longest + top)
    candidates = random_lists(rng, 20_000, most=3000, longest=longest, beyond=2)
    queries = random_lists(rng, 200, most=3000, longest=600, in_order=False, beyond=2)
    for window in ((-500, 500), (0, 0), (-5000, 5000)):
        expected = searched_on(Processor(8), candidates, queries, window, top)
        for options in ({}, {"candidates_of_chunk": 1000, "passes_between_checks": 300, "queries_of_batch": 64}):
            assert searched_on(device, candidates, queries, window, top, tuned(MatchScores, **rows, **options)) == expected
    actual = scored_on(device, candidates, queries, np.uint16, tuned(MatchScores, **rows))
    np.testing.assert_array_equal(actual, scored_on(Processor(8), candidates, queries, np.uint16))


@BOTH_ROWS
def test_gpu_match_scores_split_candidates_beyond_memory(device, rows):
    rng = np.random.default_rng(3)
    candidates, queries = random_lists(rng, 5000), random_lists(rng, 50, in_order=False)
    kind, gpu = limited(MatchScores, device, {**rows, "candidates_of_chunk": 512, "memory_bytes": 200_000})
    assert searched_on(gpu, candidates, queries, (-200, 200), 5, kind) == searched_on(Processor(8), candidates, queries, (-200, 200), 5)


@pytest.mark.parametrize("shape", ["spectra", "peptides"])
def test_gpu_match_scores_equal_cpu_for_data_of_the_benchmark(device, shape):
    queries, candidates, window, top = SHAPES[shape][0](300, 200_000)
    assert isinstance(queries, MassLists)
    assert searched_on(device, candidates, queries, window, top) == searched_on(Processor(8), candidates, queries, window, top)
