"""Operation counts of gapped alignment follow the work done: unreachable bases cost nothing, tracing costs more."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.read_alignment.scoring import ReferencesAgainstReads, build_workload, cells, reached
from proteoscope.kernels.cpu.gapsmis import ReadSearch
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, Alignments, GapRules, Sequences

MATRIX = np.where(np.eye(32, dtype=bool), 2, -3).astype(np.int32)


def rules(mode: int, gap_extend: int = 2) -> GapRules:
    return GapRules(MATRIX, 5, gap_extend, 2, mode)


def lengths(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def scores(texts: np.ndarray, pattern: np.ndarray, gap_rules: GapRules) -> np.ndarray:
    """Align each row of the texts with the pattern and return the scores."""
    n = len(texts)
    sides = (Sequences(side.ravel(), np.arange(len(side) + 1) * side.shape[1]) for side in (texts, pattern[None]))
    out = Alignments.none(n, gap_rules.maximum_gaps)
    for _ in ReadSearch(Processor(1), *sides, gap_rules).align(np.arange(n), np.zeros(n, np.int64), out, traces=False):
        pass
    return out.score


def test_bases_that_gaps_cannot_reach_do_not_change_scores():
    rng = np.random.default_rng(4)
    pattern, texts = (rng.choice(np.array([0, 2, 6, 19], np.int8), shape) for shape in (12, (40, 300)))
    (reach,) = reached(lengths(300), lengths(12), rules(PREFIX))
    assert 12 < reach < 100
    np.testing.assert_array_equal(scores(texts[:, :reach], pattern, rules(PREFIX)), scores(texts, pattern, rules(PREFIX)))
    assert reached(lengths(300), lengths(12), rules(WITHIN)) == 300
    assert reached(lengths(300), lengths(12), rules(PREFIX, gap_extend=0)) == 300, "extending a gap costs nothing there"


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
def test_traceback_adds_little_cost_for_long_references(mode):
    short, long = (cells(lengths(n), lengths(100), rules(mode), traces=True) for n in (150, 20_000))
    scored = [cells(lengths(n), lengths(100), rules(mode), traces=False) for n in (150, 20_000)]
    assert scored[0] == 151 * 101 * 3
    assert 1.3 < short / scored[0] < 3.0
    assert 1.0 < long / scored[1] < 1.1, "only the end is traced"


def test_alignment_operations_are_summed_over_pairs():
    texts, patterns = Sequences(np.zeros(2100, np.int8), np.array([0, 2000, 2100])), Sequences(np.zeros(30, np.int8), np.array([0, 10, 30]))
    state = {"text": lengths(0, 1, 1), "pattern": lengths(1, 0, 1), "traces": False}
    work = build_workload(texts, patterns, rules(WITHIN))
    assert ReferencesAgainstReads().operations(work, state, None) == 3 * (2001 * 21 + 101 * 11 + 101 * 21)
    of_prefix = build_workload(texts, patterns, rules(PREFIX))
    assert ReferencesAgainstReads().operations(of_prefix, state, None) < 0.2 * 3 * 2001 * 21
