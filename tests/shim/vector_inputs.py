"""Random vectors with windows, and clusters by definition, for comparing devices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import SIMILARITY_UNITS, UNIT_LENGTH, VectorArrays, islands

__all__ = ["clustered", "plain_components", "plain_dbscan", "plain_linkage", "plain_similarities", "random_vectors", "windows"]


def random_vectors(
    rng: np.random.Generator,
    n: int,
    *,
    kinds: int = 8,
    bins: int = 200,
    elements: int = 12,
    noise: float = 0.3,
    coarse: bool = False,
    empty: float = 0.05,
) -> VectorArrays:
    """Generate noisy vectors of a number of kinds; if `coarse`, with few different weights, which causes ties."""
    centres = rng.random((kinds, bins)) * (rng.random((kinds, bins)) < elements / bins)
    rows = centres[rng.integers(0, kinds, n)]
    rows = rows + noise * rng.random((n, bins)) * (rng.random((n, bins)) < elements / bins)
    if coarse:
        rows = (rng.random((n, bins)) < elements / bins).astype(float)
    rows[rng.random(n) < empty] = 0.0
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    weights = np.floor(rows / np.where(length > 0, length, 1) * UNIT_LENGTH + 0.5).astype(np.int16)
    of, where = np.nonzero(weights)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(of, minlength=n)))).astype(np.int64)
    return VectorArrays(offsets, where.astype(np.int32), weights[of, where])


def windows(rng: np.random.Generator, n: int, width: float) -> NDArray[np.int64]:
    """Return the end of the window of each of n random sorted positions: the positions at most `width` above it."""
    places = np.sort(rng.random(n) * n)
    return np.maximum(np.searchsorted(places, places + width, side="right"), np.arange(1, n + 1)).astype(np.int64)


def plain_similarities(vectors: VectorArrays, ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute similarities, shape (n, n); -1 for pairs that must not be compared or with an empty vector."""
    n = len(ends)
    rows = np.zeros((n, int(vectors.bins.max(initial=0)) + 1), np.int64)
    rows[np.repeat(np.arange(n), np.diff(vectors.offsets)), vectors.bins] = vectors.weights
    dots, squares = rows @ rows.T, (rows**2).sum(axis=1)
    lengths = np.sqrt(squares[:, None].astype(float) * squares)
    cosines = np.where(lengths > 0, dots / np.where(lengths > 0, lengths, 1.0), -1.0)
    number = np.arange(n)
    meets = (number[None] > number[:, None]) & (number[None] < ends[:, None])
    return np.where(meets | meets.T, cosines, -1.0)


def plain_components(similar: NDArray[np.bool_]) -> list[int]:
    """Return the smallest member of the connected component of each point."""
    labels = list(range(len(similar)))
    for start in range(len(similar)):
        if labels[start] != start:
            continue
        left = [start]
        while left:
            for other in np.flatnonzero(similar[left.pop()]).tolist():
                if labels[other] > start:
                    labels[other] = start
                    left.append(other)
    return labels


def plain_dbscan(similarities: NDArray[np.float64], least: float, minimum_neighbours: int) -> list[int]:
    """Cluster by DBSCAN; a point that is not a core point joins the most similar core point, the first of equal ones."""
    similar = similarities >= least
    is_core = similar.sum(axis=1) + 1 >= minimum_neighbours
    roots = plain_components(similar & is_core[:, None] & is_core[None])
    for point in np.flatnonzero(~is_core).tolist():
        cores = np.where(similar[point] & is_core, similarities[point], -1.0)
        if cores.max(initial=-1.0) >= least:
            roots[point] = roots[int(cores.argmax())]
    first = {root: point for point, root in reversed(list(enumerate(roots)))}
    return [first[root] for root in roots]


def plain_linkage(similarities: NDArray[np.float64], least: float, is_average: bool) -> list[int]:
    """Cluster by complete or average linkage with nearest-neighbour chains through all vectors, in plain loops."""
    n, threshold = len(similarities), int(least * SIMILARITY_UNITS + 0.5)
    units = [[int(max(value, 0.0) * SIMILARITY_UNITS + 0.5) for value in row] for row in similarities.tolist()]
    clusters = {point: [point] for point in range(n)}
    left, labels, chain = set(range(n)), list(range(n)), list[int]()

    def between(a: int, b: int) -> float:
        every = [units[i][j] for i in clusters[a] for j in clusters[b]]
        return sum(every) / len(every) if is_average else min(every)

    components = plain_components(similarities >= least)
    while left:
        chain = chain or [min(left)]
        a = chain[-1]
        others = sorted(left - {a})
        between_clusters = {b: between(a, b) for b in others if components[b] == components[a]}
        highest = max(between_clusters.values(), default=-1)
        if highest < threshold:
            left.discard(chain.pop())
        elif len(chain) > 1 and between_clusters[chain[-2]] == highest:
            retained, gone = sorted(chain[-2:])
            chain[-2:] = []
            clusters[retained] += clusters.pop(gone)
            left.discard(gone)
            for point in clusters[retained]:
                labels[point] = retained
        else:
            chain.append(next(b for b in others if between_clusters.get(b) == highest))
    return labels


def clustered(search: type, device: object, vectors: VectorArrays, ends: NDArray[np.int64], linkage: object) -> list[int]:
    """Return the labels of all points."""
    labels = np.full(len(ends), -7)
    assert islands(ends)[-1] == len(ends)
    list(search(device, vectors, ends).cluster(linkage, labels))
    return labels.tolist()
