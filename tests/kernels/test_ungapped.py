"""Alignments computed without gap layers equal those with gap layers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from proteoscope.kernels.cpu.gapsmis import ReadSearch
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.ungapped import align_where_sure
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, Alignments, GapRules
from tests.kernels.test_gapsmis import COSTS, DNA, sequences, words


def align_both_ways(texts, patterns, rules, text_of, pattern_of):
    """Return alignments with gap layers, alignments without, and which of the latter are reported as sure."""
    some = sequences(texts), sequences(patterns)
    whole = Alignments.none(len(text_of), rules.maximum_gaps)
    for _ in ReadSearch(Processor(1), *some, rules).align(text_of, pattern_of, whole):
        pass
    return (whole, *align_where_sure(*some, rules, text_of, pattern_of))


def assert_the_same(texts, patterns, rules, text_of, pattern_of):
    whole, actual, is_sure = align_both_ways(texts, patterns, rules, text_of, pattern_of)
    for left, right in zip(whole, actual, strict=True):
        np.testing.assert_array_equal(left[is_sure], right[is_sure])
    return is_sure


@pytest.mark.parametrize("maximum_gaps", [0, 1, 2])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("mode", [WITHIN, LOCAL])
def test_ungapped_alignment_equals_gapped_in_small_cases(mode, costs, maximum_gaps):
    texts, patterns = words(range(6), 2), words(range(5), 2)
    text_of, pattern_of = np.divmod(np.arange(len(texts) * len(patterns)), len(patterns))
    is_sure = assert_the_same(texts, patterns, GapRules(*costs, maximum_gaps, mode), text_of, pattern_of)
    assert is_sure.any() == (costs[1] + costs[2] > 0)


def test_ungapped_alignment_equals_gapped_in_longer_cases():
    random = np.random.default_rng(3)
    uneven = np.array([[4, -1, 0], [-2, 3, 1], [-4, 0, -1]], np.int32)  # the last code can only lose
    for (matrix, costs), mode in product([(DNA, (5, 2)), (uneven, (3, 1)), (uneven, (0, 1))], [WITHIN, LOCAL]):
        texts = [random.integers(0, 3, 40) for _ in range(400)]
        patterns = [text[k % 9 : k % 9 + 30].copy() for k, text in enumerate(texts)]
        for k, pattern in enumerate(patterns):
            pattern[random.integers(0, 30, k % 4)] = random.integers(0, 3, k % 4)
        every = np.arange(len(texts))
        is_sure = assert_the_same(texts, patterns, GapRules(matrix, *costs, 2, mode), every, every)
        assert is_sure[0::4].all() or matrix is uneven
        assert mode == LOCAL or matrix is uneven or is_sure[1::4].all()


def test_ungapped_alignment_reports_the_first_of_equal_repeats():
    texts, patterns = [np.tile([0, 1], 10)], [np.tile([0, 1], 4)]
    for mode in (WITHIN, LOCAL):
        _, actual, is_sure = align_both_ways(texts, patterns, GapRules(DNA, 5, 2, 2, mode), np.zeros(1, np.int64), np.zeros(1, np.int64))
        assert is_sure.all() and actual.text_start.tolist() == [0]
        assert_the_same(texts, patterns, GapRules(DNA, 5, 2, 2, mode), np.zeros(1, np.int64), np.zeros(1, np.int64))


def test_ungapped_alignment_is_unsure_for_prefixes_and_seeds():
    texts = patterns = [np.array([0, 1, 2, 0])]
    none = np.zeros(1, np.int64)
    for rules in (GapRules(DNA, 5, 2, 1, PREFIX), GapRules(DNA, 5, 2, 1, WITHIN, 2), GapRules(DNA, 5, 2, 1, LOCAL, 1)):
        assert not align_both_ways(texts, patterns, rules, none, none)[2].any()
