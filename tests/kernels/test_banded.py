"""Alignments within a band of diagonals equal those over all diagonals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from proteoscope.kernels.cpu.banded import align_where_near
from proteoscope.kernels.cpu.gapsmis import ReadSearch
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, Alignments, GapRules
from tests.kernels.test_gapsmis import DNA, sequences, words

CODES = np.arange(3)
COSTS = [(5, 2), (0, 1), (2, 0), (1, 1)]


def assert_the_same(texts, patterns, rules, text_of, pattern_of, slack):
    """Check that the alignments reported as sure equal full alignments, and return which are sure."""
    some = sequences(texts), sequences(patterns)
    whole = Alignments.none(len(text_of), rules.maximum_gaps)
    for _ in ReadSearch(Processor(1), *some, rules).align(text_of, pattern_of, whole):
        pass
    actual, is_sure = align_where_near(*some, rules, text_of, pattern_of, CODES, slack)
    for left, right in zip(whole, actual, strict=True):
        np.testing.assert_array_equal(left[is_sure], right[is_sure])
    return is_sure


@pytest.mark.parametrize("maximum_gaps", [0, 1, 2, 3])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("slack", [0, 1])
def test_banded_alignment_equals_full_alignment_in_small_cases(costs, maximum_gaps, slack):
    texts, patterns = words((4, 6, 7), 2), words((4, 5, 6), 2)
    text_of, pattern_of = np.divmod(np.arange(len(texts) * len(patterns)), len(patterns))
    assert assert_the_same(texts, patterns, GapRules(DNA, *costs, maximum_gaps, WITHIN), text_of, pattern_of, slack).any()


def test_banded_alignment_equals_full_alignment_with_read_errors():
    random = np.random.default_rng(9)
    texts, patterns = [], []
    for k in range(600):
        residues = random.integers(0, 1 + k % 3, 200) if k % 7 == 0 else random.integers(0, 3, 200)
        start, length = random.integers(0, 12), random.integers(60, 130)
        read = residues[start : start + length].copy()
        for _ in range(k % 4):
            place, size = random.integers(1, len(read)), random.integers(1, 5)
            more = random.integers(0, 3, size)
            read = np.insert(read, place, more) if random.random() < 0.5 else np.delete(read, slice(place, place + size))
        read[random.integers(0, len(read), k % 5)] = random.integers(0, 3, k % 5)
        texts.append(residues[: max(len(read), start + length + random.integers(0, 12))])
        patterns.append(read)
    every = np.arange(len(texts))
    for costs, slack, maximum_gaps in product(COSTS, (1, 6, 16), (1, 2)):
        is_sure = assert_the_same(texts, patterns, GapRules(DNA, *costs, maximum_gaps, WITHIN), every, every, slack)
        if costs == (5, 2):
            assert is_sure.mean() > {1: 0.05, 6: 0.5, 16: 0.8}[slack]


def test_banded_alignment_finds_gaps_at_both_ends():
    random = np.random.default_rng(10)
    text = random.integers(0, 3, 90)
    patterns = [
        np.concatenate([random.integers(0, 3, 3), text[:80]]),
        np.concatenate([text[5:], random.integers(0, 3, 4)]),
        np.concatenate([text[2:4], text[9:88]]),
        np.concatenate([text[:75], text[80:82]]),
        text.copy(),
        text[10:],
    ]
    texts, every = [text] * len(patterns), np.arange(len(patterns))
    assert assert_the_same(texts, patterns, GapRules(DNA, 5, 2, 2, WITHIN), every, every, 8).all()


def test_banded_alignment_reports_unsupported_cases_as_unsure():
    random = np.random.default_rng(11)
    texts, zero = [random.integers(0, 3, 60)], np.zeros(1, np.int64)
    patterns = [texts[0][5:45]]
    assert assert_the_same(texts, patterns, GapRules(DNA, 5, 2, 1, WITHIN), zero, zero, 2).all()
    uneven = DNA.copy()
    uneven[0, 1] = 0
    for rules in (
        GapRules(DNA, 5, 2, 1, PREFIX),
        GapRules(DNA, 5, 2, 1, LOCAL),
        GapRules(DNA, 5, 2, 1, WITHIN, 3),
        GapRules(DNA, 0, 0, 1, WITHIN),
        GapRules(uneven, 5, 2, 1, WITHIN),
        GapRules(DNA * 10_000, 5, 2, 1, WITHIN),
    ):
        assert not assert_the_same(texts, patterns, rules, zero, zero, 2).any()
    both = sequences(texts), sequences(patterns)
    assert not align_where_near(*both, GapRules(DNA, 5, 2, 1, WITHIN), zero, zero, CODES[:2], 2)[1].any(), "a code outside the plain ones"
    assert not assert_the_same(texts, [texts[0][:9]], GapRules(DNA, 5, 2, 1, WITHIN), zero, zero, 2).any(), "a short pattern"
    assert not assert_the_same([texts[0][:20]], patterns, GapRules(DNA, 5, 2, 1, WITHIN), zero, zero, 2).any(), "a short text"
