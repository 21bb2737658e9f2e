"""Points and vectors for the k-means kernels, and results by definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import (
    AT_THE_END,
    UNIT_LENGTH,
    PointSums,
    Rounds,
    VectorArrays,
    VectorSums,
    sum_by_cluster,
    total_sums,
)
from proteoscope.kernels.device import Device, backend_module

__all__ = ["assigned", "iterated", "means_on", "plain_point_labels", "plain_vector_labels", "random_points", "random_vectors", "seeds_of"]


def random_points(rng: np.random.Generator, n: int, d: int, *, most: int = 1 << 30) -> NDArray[np.int32]:
    """Generate points of any size up to `most`, some of them equal."""
    points = rng.integers(-most, most, (n, d), endpoint=True).astype(np.int32)
    points[n // 2 : n // 2 + n // 10] = points[: n // 10]
    return points


def random_vectors(
    rng: np.random.Generator, n: int, n_bins: int, *, most: int = 12, classes: int = 10, with_ties: bool = True
) -> VectorArrays:
    """Generate vectors of about the length UNIT_LENGTH, noisy copies of a few; some are equal, and some are empty."""
    parents = rng.random((classes, n_bins)) * (rng.random((classes, n_bins)) < most / n_bins)
    values = parents[rng.integers(0, classes, n)] * rng.uniform(0.3, 1.5, (n, n_bins)) * (rng.random((n, n_bins)) < 0.8)
    values[:, 0] += rng.random(n) * 0.05
    if with_ties:
        values[rng.random(n) < 0.03] = 0.0
        values[n // 2 : n // 2 + n // 10] = values[: n // 10]
    scaled = np.rint(values / np.maximum(1e-9, np.linalg.norm(values, axis=1))[:, None] * UNIT_LENGTH).astype(np.int16)
    rows, bins = np.nonzero(scaled)
    return VectorArrays(np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n)))), bins.astype(np.int32), scaled[rows, bins])


def seeds_of(vectors: VectorArrays, items: Sequence[int] | NDArray[np.int64]) -> VectorSums:
    """Return vectors as centroids."""
    labels = np.full(len(vectors.offsets) - 1, -1)
    labels[items] = np.arange(len(items))
    return sum_by_cluster(vectors, labels, len(items), 0, len(labels))


def plain_point_labels(points: NDArray[np.int32], centroids: NDArray[np.float64]) -> tuple[list[int], list[float]]:
    """Compute labels and squared distances, dimension by dimension."""
    whole = np.zeros((len(points), len(centroids)))
    for c in range(points.shape[1]):
        difference = points[:, c, None].astype(np.float64) - centroids[:, c]
        whole += difference * difference
    return whole.argmin(axis=1).tolist(), whole.min(axis=1).tolist()


def plain_vector_labels(
    vectors: VectorArrays, centroids: VectorSums, low: NDArray[np.int64] | None, high: NDArray[np.int64] | None
) -> list[int]:
    """Compute labels from integers with the fixed expressions."""
    k = len(centroids.counts)
    sums = np.zeros((1 + max(vectors.bins.max(initial=0), centroids.keys.max(initial=0) // k), k), np.int64)
    sums.reshape(-1)[centroids.keys] = centroids.sums
    assert (np.square(sums, dtype=np.float64).sum(axis=0) < 2.0**62).all(), "64 bits hold them"
    squares, counts = np.square(sums).sum(axis=0), centroids.counts.astype(np.float64)
    terms = np.divide(2.0, counts, where=counts > 0, out=np.zeros(k)), squares / np.maximum(1.0, counts) / np.maximum(1.0, counts)
    labels = []
    for i, (begin, end) in enumerate(zip(vectors.offsets[:-1].tolist(), vectors.offsets[1:].tolist(), strict=True)):
        products = vectors.weights[begin:end].astype(np.int64) @ sums[vectors.bins[begin:end]]
        scores = np.where(counts > 0, products * terms[0] - terms[1], -np.inf)
        first, last = (0, k) if low is None or high is None else (int(low[i]), int(high[i]))
        best = first + int(scores[first:last].argmax()) if first < last else -1
        labels.append(best if best >= 0 and counts[best] > 0 else -1)
    return labels


def means_on(device: Device, items: Any, n_bins: int = 0, **ranges: Any) -> Any:
    """Prepare points, or vectors, on a device."""
    module = backend_module(device, "k_means")
    return module.VectorMeans(device, items, n_bins, **ranges) if isinstance(items, VectorArrays) else module.PointMeans(device, items)


def assigned(
    means: Any, centroids: Any, n: int, first: int = 0, last: int | None = None, *, reporting: int = AT_THE_END
) -> tuple[NDArray[np.int32], NDArray[np.float64], PointSums | VectorSums | None, list[int]]:
    """Return the labels and distances (-7 where not assigned), the sums, and the yielded ends."""
    labels, distances = np.full(n, -7, np.int32), np.full(n, -7.0)
    parts, ends = [], []
    for end, sums in means.assign(centroids, labels, distances, first, n if last is None else last, reporting):
        ends.append(end)
        if sums is not None:
            parts.append(sums)
    return labels, distances, total_sums(parts) if parts else None, ends


def iterated(means: Any, centroids: Any, n: int, rounds: int, tolerance: float = 0.0) -> tuple[NDArray[np.int32], Rounds]:
    """Return the labels and the outcome of the rounds."""
    labels, outcome = np.full(n, -2, np.int32), list[Rounds]()

    def work() -> Any:
        outcome.append((yield from means.iterate(centroids, labels, rounds, tolerance)))

    list(work())
    return labels, outcome[0]
