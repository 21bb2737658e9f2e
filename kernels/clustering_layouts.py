"""Layouts of sparse vectors, of k-means and of the clustering of vectors, and arithmetic of k-means, for both backends.

Points and weights of k-means are integers, so that sums over clusters are exact in any order; comparisons use float64 expressions in a
fixed order. Labels, sums and centroids are thus identical on every device and for every division of the items.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AT_THE_END",
    "AVERAGE",
    "COMPLETE",
    "IN_PARTS",
    "LOW_BITS",
    "NEVER",
    "POINTS_OF_RUN",
    "SIMILARITY_UNITS",
    "SINGLE",
    "UNIT_LENGTH",
    "Assigned",
    "Assigner",
    "Groups",
    "Linkage",
    "PointSums",
    "Rounds",
    "Tally",
    "VectorArrays",
    "VectorSums",
    "VectorTerms",
    "islands",
    "keep_empty",
    "moved_centroids",
    "movement",
    "named_by_smallest",
    "rounds_through_host",
    "sum_by_cluster",
    "tally_through_host",
    "total_sums",
    "window_pairs",
]

UNIT_LENGTH = 1024
"""Length to which vectors are scaled before their weights are rounded to integers, so that sums of products do not depend on the order."""


class VectorArrays(NamedTuple):
    """Sparse vectors (n) of integers as CSR.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Elements of vector i are `offsets[i]:offsets[i + 1]`.
    bins : (m,) int32
        Bins, non-negative and ascending in each vector.
    weights : (m,) int16
        Weights from 1 to `UNIT_LENGTH`; the squares of a vector's weights sum to about UNIT_LENGTH².
    """

    offsets: NDArray[np.int64]
    bins: NDArray[np.int32]
    weights: NDArray[np.int16]


NEVER, AT_THE_END, IN_PARTS = range(3)
"""Time at which an assignment reports sums: never, once for all items when it ends, or after each finished range of items."""
POINTS_OF_RUN = 256
"""Number of points per chunk; a report ends at the end of a chunk."""
LOW_BITS = 21
"""Number of bits of the low part when a sum is squared in two parts, high * 2^21 + low, so that sums of products fit 64 bits."""

_WEIGHT_BITS = 11  # bits for the weight in a combined key; a weight is at most UNIT_LENGTH


class PointSums(NamedTuple):
    """Sums of the points of each of k clusters: `sums` (k, d) int64, `counts` (k,) int64."""

    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    def centroids(self) -> NDArray[np.float64]:
        """Return the means (k, d); zeros for empty clusters."""
        return self.sums / np.maximum(self.counts, 1)[:, None].astype(np.float64)


class VectorTerms(NamedTuple):
    """Two terms of each centroid, `factor` and `square`. The centroid nearest to x maximises ``dot(x, sum) * factor - square``.

    `factor` is 2 / count, and `square` is the squared length of the centroid, both (k,) float64. An empty cluster has factor 0 and square
    infinity, so that no vector is assigned to it.
    """

    factor: NDArray[np.float64]
    square: NDArray[np.float64]


class VectorSums(NamedTuple):
    """Sums of the sparse vectors of each of k clusters; the centroids are the sums divided by the counts.

    Attributes
    ----------
    keys : (m,) int64
        bin * k + cluster, ascending.
    sums : (m,) int64
        Sums, positive.
    counts : ndarray of int64, shape (k,)
        Number of vectors of each cluster.
    """

    keys: NDArray[np.int64]
    sums: NDArray[np.int64]
    counts: NDArray[np.int64]

    def centroids(self) -> VectorSums:
        """Return self, since centroids are stored as sums and counts."""
        return self

    def terms(self) -> VectorTerms:
        """Return the two terms of each centroid that determine the value of a vector (see `VectorTerms`)."""
        k = len(self.counts)
        clusters = self.keys % k
        high, low = self.sums >> LOW_BITS, self.sums & ((1 << LOW_BITS) - 1)
        squares = np.zeros((3, k), np.int64)
        for square, product in zip(squares, (high * high, high * low, low * low), strict=True):
            np.add.at(square, clusters, product)
        whole = squares[0] * 2.0 ** (2 * LOW_BITS) + squares[1] * 2.0 ** (LOW_BITS + 1) + squares[2]
        n = np.maximum(self.counts, 1).astype(np.float64)
        return VectorTerms(np.where(self.counts > 0, 2.0 / n, 0.0), np.where(self.counts > 0, whole / n / n, np.inf))

    def of(self, clusters: NDArray[np.bool_]) -> VectorSums:
        """Return the sums of the clusters selected by the mask `clusters`, (k,) bool; all other clusters are empty in the result."""
        chosen = clusters[self.keys % len(self.counts)]
        return VectorSums(self.keys[chosen], self.sums[chosen], np.where(clusters, self.counts, 0))


class Assigned(NamedTuple):
    """Progress of an assignment: items before `end` are assigned. `sums` are the sums of the items since the previous report, or None."""

    end: int
    sums: Any = None


class Rounds(NamedTuple):
    """Result of k-means iterations.

    Attributes
    ----------
    n
        Number of iterations.
    centroids
        Centroids used by the last assignment.
    sums
        Sums after the last assignment.
    changed
        Number of labels that the last iteration changed.
    """

    n: int
    centroids: Any
    sums: Any
    changed: int


class Tally(NamedTuple):
    """Result of an iteration over a range of items: sums, and number of changed labels; labels are updated in place."""

    sums: Any
    changed: int


class Assigner(Protocol):
    """Protocol of points or vectors on a device: `PointMeans` and `VectorMeans` of both backends."""

    def assign(
        self, centroids: Any, labels: NDArray[np.int32], distances: NDArray[np.float64], first: int, last: int, reporting: int
    ) -> Generator[Assigned, None, None]:
        """Assign items to the nearest centroids (see `proteoscope.kernels.cpu.k_means.PointMeans.assign`)."""


def total_sums(parts: Sequence[Any]) -> Any:
    """Return the sum of several partial sums."""
    if len(parts) == 1:
        return parts[0]
    counts = np.sum([part.counts for part in parts], axis=0)
    if isinstance(parts[0], PointSums):
        return PointSums(np.sum([part.sums for part in parts], axis=0), counts)
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.concatenate([part.sums for part in parts])[order]
    return VectorSums(keys[firsts], np.add.reduceat(sums, firsts) if len(firsts) else sums, counts)


def keep_empty(old: Any, sums: PointSums | VectorSums) -> Any:
    """Return the centroids of the sums; empty clusters retain their centroids in `old`."""
    empty = sums.counts == 0
    if not empty.any():
        return sums.centroids()
    if isinstance(sums, PointSums):
        return np.where(empty[:, None], old, sums.centroids())
    return total_sums([sums, old.of(empty)])


def movement(old: Any, new: Any) -> float:
    """Return the total movement of centroids: the sum of the squared distances between old and new centroids."""
    if isinstance(old, VectorSums):
        k = len(old.counts)
        before, after = (part.sums / part.counts[part.keys % k] for part in (old, new))
        keys = np.union1d(old.keys, new.keys)
        difference = np.zeros(len(keys))
        difference[np.searchsorted(keys, old.keys)] = before
        difference[np.searchsorted(keys, new.keys)] -= after
        return float(np.sum(difference * difference))
    moved = np.zeros(len(old))
    for column in range(old.shape[1]):  # in the same order as on a GPU
        difference = new[:, column] - old[:, column]
        moved += difference * difference
    return float(moved.sum())


def moved_centroids(old: VectorSums, new: VectorSums) -> NDArray[np.bool_]:
    """Return True for each new centroid that differs from the old one, (k,)."""
    k = len(new.counts)
    is_moved = old.counts != new.counts
    is_moved |= np.bincount(old.keys % k, minlength=k) != np.bincount(new.keys % k, minlength=k)
    if len(old.keys) and len(new.keys):
        positions = np.minimum(np.searchsorted(old.keys, new.keys), len(old.keys) - 1)
        is_same = (old.keys[positions] == new.keys) & (old.sums[positions] == new.sums)
        is_moved[new.keys[~is_same] % k] = True
    return is_moved


def sum_by_cluster(vectors: VectorArrays, labels: NDArray[np.integer], k: int, first: int, last: int) -> VectorSums:
    """Return the sums of the vectors `first:last` by cluster; vectors with a negative label are skipped."""
    elements = slice(int(vectors.offsets[first]), int(vectors.offsets[last]))
    of_elements = np.repeat(labels[first:last].astype(np.int64), np.diff(vectors.offsets[first : last + 1]))
    keys = (vectors.bins[elements] * np.int64(k) + of_elements) << _WEIGHT_BITS | vectors.weights[elements]
    keys = np.sort(keys[of_elements >= 0])
    weights = keys & ((1 << _WEIGHT_BITS) - 1)
    keys >>= _WEIGHT_BITS
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    chosen = labels[first:last]
    return VectorSums(
        keys[firsts], np.add.reduceat(weights, firsts) if len(firsts) else weights, np.bincount(chosen[chosen >= 0], minlength=k)
    )


def tally_through_host(
    search: Assigner, centroids: Any, previous: Any, labels: NDArray[np.int32], first: int, last: int, *, is_labelled: bool
) -> Generator[None, None, Tally]:
    """Run an iteration with the items `first:last`.

    Parameters
    ----------
    previous
        Centroids of the previous iteration; None in the first one, which changes all labels.
    labels : (n,) int32
        Output; label of each item.
    is_labelled
        True if `labels` contains the labels of the previous iteration; otherwise the labels of the previous iteration are computed again.

    Yields
    ------
    Yields repeatedly, so that callers can check for cancellation.
    """
    nowhere, parts = np.empty(0), list[Any]()
    if previous is not None and not is_labelled:
        for _ in search.assign(previous, labels, nowhere, first, last, NEVER):
            yield
    before = labels[first:last].copy()
    for assigned in search.assign(centroids, labels, nowhere, first, last, AT_THE_END):
        if assigned.sums is not None:
            parts.append(assigned.sums)
        yield
    changed = last - first if previous is None else int(np.count_nonzero(labels[first:last] != before))
    return Tally(total_sums(parts), changed)


def rounds_through_host(
    search: Assigner, centroids: Any, labels: NDArray[np.int32], rounds: int, tolerance: float
) -> Generator[int, None, Rounds]:
    """Run iterations of k-means; the host computes the centroids from the sums of each iteration.

    Parameters
    ----------
    labels : (n,) int32
        Labels of the previous iteration, or -2 if there was none; updated.
    tolerance
        Iterations end when the sum of the squared movements of the centroids is at most this value, or when no label changes; 0 for the
        second condition only.

    Yields
    ------
    Number of completed iterations, several times in each. Iterations also end when a cluster becomes empty; the caller must then fill the
    cluster.
    """
    n, nowhere = len(labels), np.empty(0)
    for number in range(1, rounds + 1):
        before, parts = labels.copy(), list[Any]()
        for assigned in search.assign(centroids, labels, nowhere, 0, n, AT_THE_END):
            if assigned.sums is not None:
                parts.append(assigned.sums)
            yield number - 1
        sums, changed = total_sums(parts), int(np.count_nonzero(labels != before))
        if number == rounds or changed == 0 or not sums.counts.all():
            break
        following = sums.centroids()
        if tolerance > 0.0 and movement(centroids, following) <= tolerance:
            break
        centroids = following
    return Rounds(number, centroids, sums, changed)


SINGLE, COMPLETE, AVERAGE = 0, 1, 2
"""Methods of linkage: DBSCAN (Ester et al. 1996), and agglomerative clustering with complete and with average linkage."""
SIMILARITY_UNITS = 1 << 20
"""Number of units that represent a similarity of 1 in the integer matrices of complete and average linkage.

Integer sums do not depend on order.
"""


class Linkage(NamedTuple):
    """Settings of a linkage.

    Attributes
    ----------
    method
        SINGLE, COMPLETE or AVERAGE.
    least
        Minimum similarity (cosine) of vectors in a cluster, above 0 and at most 1.
    minimum_neighbours
        Only for SINGLE: minimum number of vectors with at least the similarity `least` to a core point, which is counted too; 2 gives
        connected components.
    maximum_members
        Only for COMPLETE and AVERAGE: larger connected components are divided first (see `proteoscope.kernels.cpu.linkage_rounds`).
    """

    method: int
    least: float
    minimum_neighbours: int = 2
    maximum_members: int = 16_384

    def checked(self) -> Linkage:
        """Return self after validating the settings.

        Raises
        ------
        ValueError
            If a setting is out of bounds.
        """
        if self.method not in (SINGLE, COMPLETE, AVERAGE):
            raise ValueError(f"there is no linkage {self.method}")
        if not 0.0 < self.least <= 1.0:
            raise ValueError(f"the minimum similarity of vectors in a cluster must be above 0 and at most 1, not {self.least}")
        if self.minimum_neighbours < 1 or self.maximum_members < 2:
            raise ValueError("minimum_neighbours must be at least 1, since a core point counts itself, and maximum_members at least 2")
        return self


class Groups(NamedTuple):
    """Groups (g) of vectors that are clustered separately by complete or average linkage.

    Attributes
    ----------
    vectors
        All vectors. `members` contains indices of these vectors.
    ends : (n,) int64
        Vector i is compared with the vectors i + 1 to ends[i] - 1 (see `islands`).
    members : (k,) int64
        Indices of the vectors of each group, group by group, ascending within a group.
    starts : (g + 1,) int64
        Start of each group in `members`, followed by k.
    least : (g,) int32
        Minimum similarity at which clusters of the group merge, in `SIMILARITY_UNITS`.
    counts : (k,) int32
        Number of vectors that each member represents.
    """

    vectors: VectorArrays
    ends: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    least: NDArray[np.int32]
    counts: NDArray[np.int32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each group, shape (g,)."""
        return np.diff(self.starts)


def islands(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the boundaries of islands, the smallest ranges of vectors such that vectors of different ranges are never compared.

    Parameters
    ----------
    ends : (n,) int64
        End (exclusive) of the comparison window of each vector, non-decreasing; vector i is compared with the vectors i + 1 : ends[i], i +
        1 <= ends[i] <= n.

    Returns
    -------
    (k + 1,) int64, where each of the k islands begins, and n.
    """
    cuts = np.flatnonzero(ends[:-1] <= np.arange(1, len(ends))) + 1 if len(ends) else np.zeros(0, np.int64)
    return np.concatenate(([0] * (len(ends) > 0), cuts, [len(ends)])).astype(np.int64)


def window_pairs(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of following vectors with which each vector is compared, (n,)."""
    return ends - np.arange(1, len(ends) + 1)


def named_by_smallest(roots: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return for each item the smallest item of its cluster, (n,).

    `roots` (n,) has for each item a representative of its cluster, which is the same for all items of the cluster.
    """
    n = len(roots)
    smallest = np.zeros(n, np.int64)
    smallest[roots[::-1]] = np.arange(n)[::-1]  # with repeated indices, NumPy keeps the last value: the smallest here
    return smallest[roots]
