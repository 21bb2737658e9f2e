"""Superpositions in batches against the singular value decomposition, and moments against explicit sums."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.cpu.least_squares import (
    BATCH,
    FARTHEST,
    MOMENTS,
    MOVE,
    batch_workspace,
    moments,
    near_moments,
    near_totals,
    rotations,
)


def by_svd(x, y):
    """Return the rotation and translation that move x (3, n) onto y, by Kabsch's algorithm."""
    a, b = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    u, _, v = np.linalg.svd(b @ a.T)
    rotation = u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]) @ v
    return rotation, y.mean(axis=1) - rotation @ x.mean(axis=1)


def plain_moments(x, y):
    return np.concatenate([x.sum(1), y.sum(1), (x @ y.T).ravel(), [(x**2).sum() + (y**2).sum(), x.shape[1]]])


def moments_of(x, y, first_x, first_y, count):
    sums = np.full(MOMENTS * BATCH, np.nan)
    moments(x, y, first_x, first_y, count, sums)
    return sums


def runs(rng, n, shortest=1):
    count = rng.integers(shortest, 30, BATCH)
    return rng.integers(0, n - count), rng.integers(0, n - count), count


def distances(x, y, rotation, translation):
    return np.sqrt(((rotation @ x + translation[:, None] - y) ** 2).sum(axis=0))


@pytest.mark.parametrize("kind", ["alike", "unlike", "mirrored", "in a plane", "on a line", "in one place"])
def test_batch_superposition_equals_svd(kind):
    rng = np.random.default_rng(5)
    for _ in range(20):
        y = rng.normal(size=(3, 60)) * 20 + 40
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        x = {
            "alike": rotation * np.sign(np.linalg.det(rotation)) @ y + rng.normal(size=(3, 60)),
            "unlike": rng.normal(size=(3, 60)) * 20,
            "mirrored": y * [[1], [1], [-1]],
            "in a plane": y * [[1], [1], [0]],
            "on a line": y * [[1], [0], [0]],
            "in one place": np.full((3, 60), 7.0),
        }[kind]
        first_x, first_y, count = runs(rng, 60)
        if kind == "alike":
            first_x = first_y
        count[3] = 0
        sums, (_, moves, retained) = moments_of(x, y, first_x, first_y, count), batch_workspace()
        rotations(sums, count, moves, retained)
        for k in np.flatnonzero(count):
            p, q = x[:, first_x[k] : first_x[k] + count[k]], y[:, first_y[k] : first_y[k] + count[k]]
            move = moves[k : MOVE * BATCH : BATCH]
            actual, expected = (
                np.sqrt((distances(p, q, *movement) ** 2).mean()) for movement in ((move[:9].reshape(3, 3), move[9:]), by_svd(p, q))
            )
            assert actual == pytest.approx(expected, abs=2e-6)
            assert np.linalg.det(move[:9].reshape(3, 3)) == pytest.approx(1.0)


def test_near_moments_equal_sums_over_near_pairs():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 3, 80)) * 8
    first_x, first_y, count = runs(rng, 80, shortest=6)
    count[5] = 0
    sums, (_, moves, retained) = moments_of(x, y, first_x, first_y, count), batch_workspace()
    rotations(sums, count, moves, retained)
    near, totals, limits = np.full(MOMENTS * BATCH, 9.0), np.full(BATCH, 9.0), np.where(np.arange(BATCH) % 2, 8.0, FARTHEST)
    near_moments(x, y, first_x, first_y, count, moves, 3.0, limits, near, totals)
    assert totals[5] == 9.0
    for k in np.flatnonzero(count):
        p, q = x[:, first_x[k] : first_x[k] + count[k]], y[:, first_y[k] : first_y[k] + count[k]]
        np.testing.assert_allclose(sums[k::BATCH], plain_moments(p, q), atol=1e-9)
        move = moves[k : MOVE * BATCH : BATCH]
        distance = distances(p, q, move[:9].reshape(3, 3), move[9:])
        limit = limits[k]
        while (distance < limit).sum() < 3:
            limit += 0.5
        assert totals[k] == pytest.approx((1 / (1 + (distance / 3.0) ** 2)).sum())
        np.testing.assert_allclose(near[k::BATCH], plain_moments(p[:, distance < limit], q[:, distance < limit]), atol=1e-9)


@pytest.mark.parametrize("scale", [0.5, 4.0, 9.3])
def test_near_totals_equal_the_totals_of_near_moments_exactly(scale):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(3, 80)) * 20, rng.normal(size=(3, 80)) * 20
    first_x, first_y, count = runs(rng, 80)
    count[[2, 9]] = 0
    sums, moves, retained = batch_workspace()
    moments(x, y, first_x, first_y, count, sums)
    rotations(sums, count, moves, retained)
    both, alone = np.full(BATCH, -1.0), np.full(BATCH, -1.0)
    near_moments(x, y, first_x, first_y, count, moves, scale, np.full(BATCH, FARTHEST), sums, both)
    near_totals(x, y, first_x, first_y, count, moves, scale, alone)
    assert (alone == both).all()
    for k in np.flatnonzero(count):
        move = moves[k : MOVE * BATCH : BATCH]
        p, q = x[:, first_x[k] : first_x[k] + count[k]], y[:, first_y[k] : first_y[k] + count[k]]
        shares = 1 / (1 + (distances(p, q, move[:9].reshape(3, 3), move[9:]) / scale) ** 2)
        assert alone[k] == pytest.approx(shares.sum(), abs=1e-7)
