"""Depth of coverage along a sequence, compared with counting base by base."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.views.depth import Depth

LENGTH = 500


def ranges(n: int, length: int = LENGTH, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    start = random.integers(1, length - 40, n)
    return start, np.minimum(length, start + random.integers(0, 40, n))


def counted(start: np.ndarray, end: np.ndarray, length: int = LENGTH) -> np.ndarray:
    """Count the depth of each base with plain loops."""
    depth = np.zeros(length, np.int64)
    for first, last in zip(start.tolist(), end.tolist(), strict=True):
        for base in range(first, last + 1):
            depth[base - 1] += 1
    return depth


@pytest.mark.parametrize("n", [0, 1, 2, 7, 300])
@pytest.mark.parametrize(
    "edges",
    [
        np.arange(0.5, LENGTH + 1),
        np.linspace(0.5, LENGTH + 0.5, 38),
        np.linspace(100.3, 107.8, 30),
        np.arange(50.5, 91),
        np.array([139.5, 140.5]),
    ],
)
def test_read_depth_of_bins_has_mean_and_maximum_of_the_bases(n: int, edges: np.ndarray) -> None:
    start, end = ranges(n)
    depth, expected = Depth.from_ranges("t", LENGTH, start, end), counted(start, end)
    mean, maximum = depth.parts(edges)
    for part, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        shares = np.clip(np.minimum(high, np.arange(LENGTH) + 1.5) - np.maximum(low, np.arange(LENGTH) + 0.5), 0, None)
        assert mean[part] == pytest.approx((shares * expected).sum() / (high - low))
        assert maximum[part] == expected[shares > 1e-9].max()
    assert (depth.mean, depth.most) == (pytest.approx(expected.mean()), expected.max())
    assert depth.covered == pytest.approx((expected > 0).mean()) and depth.n_alignments == n


def test_read_depth_counts_alignments_at_both_ends() -> None:
    depth = Depth.from_ranges("t", 5, np.array([1, 5, 1]), np.array([1, 5, 5]))
    assert depth.parts(np.arange(0.5, 6))[1].tolist() == [2, 1, 1, 1, 2]
