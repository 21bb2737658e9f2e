"""Minimisers equal their definition on both strands, and reads find their origin."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu import minimisers
from proteoscope.kernels.cpu.minimisers import (
    CANDIDATE_FIELDS,
    LONGEST_READ,
    MAXIMUM_CANDIDATES,
    SPACING,
    build_index,
    find_candidates,
    find_minimisers,
)

BASES = np.array([0, 1, 2, 3, 4], np.uint8)
STOP = np.zeros(1, np.uint8)


def minimisers_in(codes, k, w, first=0, last=None, place=0):
    """Return the hashes and entries of a text."""
    codes = np.asarray(codes, np.int8)
    last = max(0, len(codes) - k + 1) if last is None else last
    hashes, entries = np.empty(len(codes) + 2 * w, np.uint64), np.empty(len(codes) + 2 * w, np.int64)
    n = find_minimisers(codes, 0, len(codes), first, last, BASES, k, w, place, hashes, entries)
    return hashes[:n].copy(), entries[:n].copy()


def minimisers_by_definition(codes, k, w):
    """Return positions and strands of the minimisers, by plain loops over all windows, and the hash of each word."""

    def hash_of(word):
        value = 0
        for base in word:
            value = value << 2 | int(base)
        return int(minimisers._mixed.py_func(np.uint64(value), np.uint64(2 * k)))

    words = {}
    for i in range(len(codes) - k + 1):
        word = [int(code) for code in codes[i : i + k]]
        other = [3 - code for code in word[::-1]]
        if max(word) < 4 and word != other:
            words[i] = (hash_of(min(word, other)), int(other < word))
    chosen = set()
    n = len(codes) - k + 1
    for start in range(max(1, n - w + 1)):
        window = {i: words[i][0] for i in range(start, min(n, start + w)) if i in words}
        chosen |= {i for i, value in window.items() if value == min(window.values())}
    return [(i, words[i]) for i in sorted(chosen)]


@pytest.mark.parametrize(("k", "w"), [(3, 1), (4, 5), (5, 3), (11, 10)])
def test_minimisers_equal_definition(k, w):
    random = np.random.default_rng(k)
    with np.errstate(over="ignore"):
        for length in (*range(k + w + 3), 60, 200):
            codes = random.integers(0, 4, length)
            codes[random.random(length) < 0.02] = 4
            hashes, entries = minimisers_in(codes, k, w)
            reported = [(int(entry) >> 1, (int(value), int(entry) & 1)) for value, entry in zip(hashes, entries, strict=True)]
            assert reported == minimisers_by_definition(codes, k, w), (length, codes)


def test_minimiser_hashes_of_different_words_differ():
    with np.errstate(over="ignore"):
        for bits in (6, 10, 13):
            assert len({int(minimisers._mixed.py_func(np.uint64(word), np.uint64(bits))) for word in range(1 << bits)}) == 1 << bits


def test_minimisers_of_repeats_are_the_same_on_both_strands():
    random = np.random.default_rng(2)
    k, w = 7, 6
    for unit in (random.integers(0, 4, 300), np.tile([0, 0, 1], 40), np.zeros(50, np.int64)):
        hashes, entries = minimisers_in(unit, k, w)
        other_hashes, other_entries = minimisers_in(3 - unit[::-1], k, w)
        turned = sorted(
            (int(value), len(unit) - k - (int(entry) >> 1), 1 - (int(entry) & 1)) for value, entry in zip(hashes, entries, strict=True)
        )
        reported = sorted((int(value), int(entry) >> 1, int(entry) & 1) for value, entry in zip(other_hashes, other_entries, strict=True))
        assert reported == turned


def test_minimisers_do_not_depend_on_chunks_of_the_reference():
    codes = np.random.default_rng(4).integers(0, 5, 500)
    whole = minimisers_in(codes, 5, 9)
    for size in (1, 3, 70):
        parts = [minimisers_in(codes, 5, 9, first, min(496, first + size)) for first in range(0, 496, size)]
        for column, columns in zip(whole, zip(*parts, strict=True), strict=True):
            np.testing.assert_array_equal(np.concatenate(columns), column)


def candidates_of(texts, reads, k=11, w=5, tolerance=8, extent=16):
    """Return the candidates of reads in texts, and their number for each read."""
    begins, parts, begin = [], [], 0
    for text in texts:
        begins.append(begin)
        parts.append(minimisers_in(text, k, w, place=begin))
        begin += len(text) + SPACING
    index = build_index(*(np.concatenate(columns) for columns in zip(*parts, strict=True)), np.array([len(text) for text in texts]), k, w)
    assert index.begins.tolist() == begins
    candidates, counts = np.zeros((len(reads), MAXIMUM_CANDIDATES, CANDIDATE_FIELDS), np.int64), np.zeros(len(reads), np.int64)
    offsets = np.cumsum([0, *map(len, reads)])
    codes = np.concatenate([np.asarray(read, np.int8) for read in reads])
    find_candidates(codes, offsets, 0, len(reads), BASES, index, np.array([tolerance, extent, 5, 5, 2]), candidates, counts, STOP)
    return candidates, counts


def test_minimisers_find_the_origin_of_reads_of_both_strands():
    random = np.random.default_rng(5)
    texts = [random.integers(0, 4, 3000), random.integers(0, 4, 10), random.integers(0, 4, 2000)]
    cases = [(0, 0), (0, 2900), (2, 0), (2, 1900), (0, 1234), (2, 777)]
    forward = [texts[text][start : start + 100] for text, start in cases]
    candidates, counts = candidates_of(texts, [*forward, *(3 - read[::-1] for read in forward)])
    assert (counts == 1).all()
    for k, (text, start) in enumerate(cases * 2):
        is_reverse, in_text, begin, end, votes = candidates[k, 0]
        assert (is_reverse, in_text) == (k >= len(cases), text)
        assert 0 <= begin <= start and start + 100 <= end <= len(texts[text])
        assert begin > start - 30 and end < start + 130
        assert votes > 20


def test_minimiser_windows_span_gaps_and_ignore_random_reads():
    random = np.random.default_rng(6)
    text = random.integers(0, 4, 5000)
    gapped = np.concatenate([text[1000:1050], text[1056:1100], random.integers(0, 4, 5), text[1100:1150]])
    split = np.concatenate([text[1000:1050], text[1080:1130]])
    candidates, counts = candidates_of([text], [gapped, split, random.integers(0, 4, 100), text[:8]])
    assert counts.tolist() == [1, 2, 0, 0], "beyond the tolerance there are two places"
    assert candidates[0, 0, 2] <= 1000 and candidates[0, 0, 3] >= 1150


def test_minimisers_find_candidates_in_repeats_up_to_the_limit():
    random = np.random.default_rng(7)
    unit = random.integers(0, 4, 150)
    few = np.concatenate([part for _ in range(3) for part in (random.integers(0, 4, 400), unit)])
    candidates, counts = candidates_of([few], [unit[20:120]])
    assert counts.tolist() == [3]
    starts = sorted(candidates[0, :3, 2].tolist())
    assert all(abs(start - (550 * k + 420)) < 30 for k, start in enumerate(starts))
    many = np.concatenate([part for _ in range(100) for part in (random.integers(0, 4, 60), unit)])
    candidates, counts = candidates_of([many], [unit[20:120]])
    assert counts[0] > MAXIMUM_CANDIDATES
    assert candidates[0, 0, 2] < 300


def test_minimiser_search_stops_when_requested():
    text = np.random.default_rng(8).integers(0, 4, 500)
    index = build_index(*minimisers_in(text, 11, 5), np.array([500]), 11, 5)
    counts = np.full(1, 7)
    rules, workspace = np.array([8, 16, 5, 5, 2]), np.zeros((1, MAXIMUM_CANDIDATES, CANDIDATE_FIELDS), np.int64)
    find_candidates(text.astype(np.int8), np.array([0, 100]), 0, 1, BASES, index, rules, workspace, counts, np.ones(1, np.uint8))
    assert counts.tolist() == [7]
    assert LONGEST_READ < SPACING // 2
