"""Pairs are aligned as a workload, in rounds of different pairs, on each device that has kernels for them."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.kinds import workload_type
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.read_alignment.scoring import KIND, align_pairs, build_workload
from proteoscope.kernels.device import UnsupportedSearchError
from proteoscope.kernels.gapsmis_layouts import GapRules, Sequences
from tests.shim.shim_gpu import ShimGpu, missing_compiler

RULES = GapRules(np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32), 5, 2, 1)


def sequences(n, length, seed):
    codes = np.random.default_rng(seed).integers(0, 4, n * length).astype(np.int8)
    return Sequences(codes, np.arange(n + 1) * length)


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
@pytest.mark.parametrize("n_threads", [0, 1])
def test_read_alignments_are_equal_on_gpu_with_or_without_cpu(n_threads):
    work = build_workload(sequences(40, 30, 1), sequences(40, 24, 2), RULES)
    assert work.kind == KIND
    every, progress = np.arange(40), Progress()
    alignments = []
    for resources in (Resources(1, progress=progress), Resources(max(1, n_threads), [ShimGpu()], n_threads > 0, progress)):
        with Executor(resources).session(work) as session:
            alignments.append(align_pairs(session, every, every))
    for column, other_column in zip(*alignments, strict=True):
        np.testing.assert_array_equal(column, other_column)


def test_alignment_scores_too_large_for_gpu_are_computed_on_cpu():
    wide = RULES._replace(matrix=5_000_000 * RULES.matrix)
    work, every, progress = build_workload(sequences(4, 30, 1), sequences(4, 24, 2), wide), np.arange(4), Progress()
    with pytest.raises(UnsupportedSearchError), workload_type(work).open(work, ShimGpu(), is_shared=False):
        pass
    with Executor(Resources(1, [ShimGpu()], False, progress)).session(work) as session:
        aligned = align_pairs(session, every, every)
    with Executor(Resources(1, progress=progress)).session(work) as session:
        np.testing.assert_array_equal(aligned.score, align_pairs(session, every, every).score)


def test_alignment_rounds_of_different_pairs_are_independent():
    texts, patterns = sequences(9, 40, 3), sequences(9, 30, 4)
    every = np.arange(9)
    with Executor(Resources(2, progress=Progress())).session(build_workload(texts, patterns, RULES)) as session:
        whole = align_pairs(session, every, every)
        for chosen in (every[:2], every, every[::-1].copy(), every[4:5], np.repeat(every, 3), every[:0]):
            aligned = align_pairs(session, chosen, chosen)
            for column, whole_column in zip(aligned, whole, strict=True):
                np.testing.assert_array_equal(column, whole_column[chosen])
        scores = align_pairs(session, every, every, traces=False)
    np.testing.assert_array_equal(scores.score, whole.score)
    np.testing.assert_array_equal(scores.text_end, whole.text_end)
    assert (scores.pattern_end == -1).all()
