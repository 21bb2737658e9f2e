"""Runs of different lengths in one array."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.arrays import batch_segments, is_group_start, positions_in_groups, ranges, row_mask, segment_offsets, splitmix64


@pytest.mark.parametrize("lengths", [[0, 0, 5, 0, 3], [0, 0], [4], [3_000_000, 0, 0, 2_000_000, 1, 0], [0, 0, 9_000_000, 0]])
def test_batch_segments_returns_every_segment_once(lengths):
    result = batch_segments(segment_offsets(np.array(lengths))[:-1])
    assert [row for part in result for row in range(len(lengths))[part]] == list(range(len(lengths)))


@pytest.mark.parametrize("n", [0, 1, 2, 40])
def test_group_starts_and_positions_in_groups_equal_a_plain_loop(n):
    rng = np.random.default_rng(n)
    columns = rng.integers(0, 2, (2, n))
    rows = list(zip(*columns.tolist(), strict=True))
    is_first = is_group_start(*columns)
    assert is_first.tolist() == [i == 0 or rows[i] != rows[i - 1] for i in range(n)]
    expected: list[int] = []
    for starts in is_first.tolist():
        expected.append(0 if starts else expected[-1] + 1)
    assert positions_in_groups(is_first).tolist() == expected


def test_ranges_list_the_indices_between_starts_and_stops():
    starts, stops = np.array([5, 2, 9, 2]), np.array([7, 2, 10, 6])
    offsets, rows = ranges(starts, stops)
    parts = [list(range(start, stop)) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    assert [rows[offsets[i] : offsets[i + 1]].tolist() for i in range(4)] == parts


def test_splitmix64_equals_the_published_generator():
    """The first numbers of Vigna's splitmix64.c for seed 1234567."""
    states = np.array([1234567 + k * 0x9E3779B97F4A7C15 & (1 << 64) - 1 for k in (1, 2)], np.uint64)
    assert splitmix64(states).tolist() == [6457827717110365317, 3203168211198807973]


def test_true_at_is_true_only_at_the_given_rows():
    assert row_mask(5, np.array([3, 0, 3])).tolist() == [True, False, False, True, False]
    assert row_mask(2, []).tolist() == [False, False]
