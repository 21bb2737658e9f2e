"""Alignments by distance and by secondary structure equal the recurrence."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from proteoscope.kernels.cpu.distance_alignment import LANES, STRIP, UNIT, align, alignment_workspace, place_states, place_x, place_y, trace

IDENTITY = np.array([1.0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def plain_score(rewards, gap):
    """Return H of the last cell in integer units: opening a gap after a pair costs, a gap at the beginning is free."""
    (m, n), cost, rewards = rewards.shape, int(gap * UNIT), (rewards * UNIT).astype(np.int64)
    best, after = np.zeros((m + 1, n + 1), np.int64), np.zeros((m + 1, n + 1), np.int64)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            straight, gapped = best[i - 1, j - 1] + rewards[i - 1, j - 1], max(after[i - 1, j], after[i, j - 1])
            best[i, j] = max(straight, gapped)
            after[i, j] = best[i, j] + (cost if straight >= gapped else 0)
    return best[m, n] / UNIT


def score_of(rewards, pairs, gap):
    """Return the score of an alignment: its pairs, and a gap between pairs that are not consecutive or before the end."""
    m, n = rewards.shape
    inner = sum(1 for a, b in pairwise(pairs) if (b - a != 1).any())
    return rewards[pairs[:, 0], pairs[:, 1]].sum() + gap * (inner + (len(pairs) > 0 and tuple(pairs[-1]) != (m - 1, n - 1)))


@pytest.mark.parametrize("m", sorted({1, 2, 5, LANES - 1, LANES, LANES + 1, STRIP, 2 * STRIP + 3}))
@pytest.mark.parametrize("more", [0, 1, 30])
@pytest.mark.parametrize("gap", [-0.6, 0.0])
@pytest.mark.parametrize(("by_states", "by_distance"), [(0.0, 1.0), (0.5, 1.0), (1.0, 0.0)])
def test_alignment_by_distance_equals_recurrence(m, more, gap, by_states, by_distance):
    rng, n, scale = np.random.default_rng(m + 100 * more), m + more, 4.0
    workspace = alignment_workspace(70, 100)
    for turn in range(3):
        # The workspace is reused for shorter and longer chains.
        x, y = np.cumsum(rng.normal(size=(3, m)) * 2, axis=1), np.cumsum(rng.normal(size=(3, n)) * 2, axis=1)
        states_x, states_y = rng.integers(0, 3, m).astype(np.uint8), rng.integers(0, 3, n).astype(np.uint8)
        place_states(workspace, states_x, states_y)
        place_x(workspace, x, IDENTITY, scale)
        place_y(workspace, y, scale)
        squared = ((x[:, :, None] - y[:, None]) ** 2).sum(axis=0)
        rewards = by_distance / (1 + squared / scale**2) + by_states * (states_x[:, None] == states_y[None])
        actual, pairs = align(workspace, m, n, gap, by_states, by_distance) / UNIT, np.empty((m, 2), np.int32)
        pairs = pairs[m - trace(workspace, m, n, pairs) :]
        assert actual == pytest.approx(plain_score(rewards, gap), abs=(m + n) * 2e-4), turn
        assert (np.diff(pairs, axis=0) > 0).all()
        assert score_of(rewards, pairs, gap) == pytest.approx(actual, abs=(m + n) * 2e-4)


def test_alignment_by_distance_superposes_the_shorter_chain():
    rng = np.random.default_rng(3)
    x, y = np.cumsum(rng.normal(size=(3, 50)) * 2, axis=1), np.cumsum(rng.normal(size=(3, 75)) * 2, axis=1)
    rotation, shift, workspace = np.linalg.qr(rng.normal(size=(3, 3)))[0], np.array([1.0, 2.0, 3.0]), alignment_workspace(50, 75)
    pairs = np.empty((50, 2), np.int32)
    y[:, 10:60] = rotation @ x + shift[:, None]
    place_x(workspace, x, np.concatenate([rotation.ravel(), shift]), 4.0)
    place_y(workspace, y, 4.0)
    # All pairs coincide; a gap is opened after them.
    assert align(workspace, 50, 75, -0.6, 0.0, 1.0) / UNIT == pytest.approx(50 - 0.6, abs=0.01)
    assert trace(workspace, 50, 75, pairs) == 50
    assert pairs.tolist() == [[i, i + 10] for i in range(50)]
