"""Alignments of long reads traced singly in little memory equal those traced in lanes."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pytest

from proteoscope.kernels.cpu import gapsmis
from proteoscope.kernels.gapsmis_layouts import LOCAL, PREFIX, WITHIN, GapRules
from tests.kernels.test_gapsmis import COSTS, DNA, align, assert_defined, words

FOUR = np.where(np.eye(4, dtype=bool), 5, -4).astype(np.int32)


@pytest.fixture
def trace_singly(monkeypatch):
    """Trace every pair singly."""
    monkeypatch.setattr(gapsmis, "_TRACED_BYTES", 0)


@pytest.mark.parametrize("seed_length", [0, 1])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
@pytest.mark.usefixtures("trace_singly")
def test_read_alignment_traced_pair_by_pair_equals_definition(mode, costs, seed_length):
    assert_defined(words([0, 1, 4], 2), words([0, 1, 3], 2), GapRules(*costs, 2, mode, seed_length))


@pytest.mark.parametrize("mode", [PREFIX, WITHIN, LOCAL])
@pytest.mark.parametrize("is_published", [False, True])
def test_read_alignment_traced_pair_by_pair_equals_batch_trace(monkeypatch, mode, is_published):
    """Use references with copies that lack or gain some bases, and lengths at which blocks of rows end."""
    if is_published and mode != PREFIX:
        pytest.skip("the published recurrence is of prefixes")
    generator = np.random.default_rng(int(mode) + 10 * is_published)
    for costs, seed_length, maximum_gaps in product(COSTS, (0, 2), (0, 1, 3)):
        texts = [generator.integers(0, 3, length) for length in (0, 1, 7, 8, 9, 31, 63, 140)]
        patterns = [edited(generator, text) for text in texts]
        rules = GapRules(*costs, maximum_gaps, mode, seed_length, is_published)
        text_of, pattern_of = np.divmod(np.arange(len(texts) * len(patterns)), len(patterns))
        expected = align(texts, patterns, rules, text_of, pattern_of)
        with monkeypatch.context() as patch:
            patch.setattr(gapsmis, "_TRACED_BYTES", 0)
            actual = align(texts, patterns, rules, text_of, pattern_of, threads=2)
        for name, left, right in zip(expected._fields, expected, actual, strict=True):
            np.testing.assert_array_equal(left, right, f"{name} {rules}")


def edited(generator, text):
    """Return a part of a text with two deletions and two insertions."""
    pattern = text[int(generator.integers(0, max(1, len(text) // 3))) :]
    for _ in range(2):
        at = int(generator.integers(0, len(pattern) + 1))
        pattern = np.concatenate((pattern[:at], pattern[at + int(generator.integers(0, 4)) :]))
        at = int(generator.integers(0, len(pattern) + 1))
        pattern = np.concatenate((pattern[:at], generator.integers(0, 3, int(generator.integers(0, 4))), pattern[at:]))
    return pattern


@pytest.mark.parametrize("length", [3000, pytest.param(20_000, marks=pytest.mark.long)])
def test_long_read_alignment_recovers_the_simulated_edits(monkeypatch, length):
    """Align a read with 1 % other bases, a deletion of 7 and an insertion of 5, in a text with 500 bases before and after."""
    if length < 10_000:
        monkeypatch.setattr(gapsmis, "_TRACED_BYTES", 1 << 20)
    generator = np.random.default_rng(7)
    text = generator.integers(0, 4, length + 1000)
    read = text[500 : 500 + length].copy()
    others = generator.choice(length, length // 100, replace=False)
    read[others] = (read[others] + 1) % 4
    first, second = length // 3, 2 * length // 3
    read = np.concatenate((read[:first], read[first + 7 : second], generator.integers(0, 4, 5), read[second:]))
    align([text[:100]], [text[:90]], GapRules(FOUR, 10, 1, 2, WITHIN), [0], [0])  # compiles, which takes memory too
    tracemalloc.start()
    actual = align([text], [read], GapRules(FOUR, 10, 1, 2, WITHIN), [0], [0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    runs = actual.runs[0].tolist()
    assert actual.gaps[0] == 2 and sorted((runs[1], runs[3])) == [-7, 5]
    assert abs(runs[0] - first) < 12 and abs(sum(runs[::2]) + 5 - len(read)) == 0
    assert abs(actual.text_start[0] - 500) < 5 and abs(actual.text_end[0] - 500 - length) < 5
    assert actual.score[0] == score_of(text, read, actual, runs)
    assert actual.score[0] == align([text], [read], GapRules(FOUR, 10, 1, 2, WITHIN), [0], [0], traces=False).score[0]
    assert peak < 30_000 * length


def score_of(text, read, alignment, runs):
    """Return the score of an alignment, summed along its runs."""
    score, i, j = 0, int(alignment.text_start[0]), int(alignment.pattern_start[0])
    for place, run in enumerate(runs):
        if place % 2 == 0:
            score += int(FOUR[read[j : j + run], text[i : i + run]].sum())
            i, j = i + run, j + run
        elif run:
            score -= 10 + abs(run)
            i, j = i + max(0, -run), j + max(0, run)
    assert (i, j) == (alignment.text_end[0], alignment.pattern_end[0])
    return score


def test_alignments_are_equal_if_long_reads_are_traced_alone(monkeypatch):
    generator = np.random.default_rng(2)
    texts = [generator.integers(0, 3, length) for length in (20, 400, 25, 30, 500, 22)]
    patterns = [edited(generator, text) for text in texts]
    rules, numbers = GapRules(DNA, 5, 2, 2, WITHIN), np.arange(6)
    expected = align(texts, patterns, rules, numbers, numbers)
    monkeypatch.setattr(gapsmis, "_TRACED_BYTES", 1 << 20)
    assert all(np.array_equal(*columns) for columns in zip(expected, align(texts, patterns, rules, numbers, numbers), strict=True))
