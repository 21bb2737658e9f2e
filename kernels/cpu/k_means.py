"""K-means on the CPU: assignment of items to the nearest centroid, and sums of the items of each cluster.

The method follows Li's thesis (Algorithms 4.2 and 4.5): each iteration assigns the items to the nearest of k centroids, then sums the items
of each cluster.

Points are integers in d dimensions. Centroids are compared by the squared distance in float64, summed over dimensions in order. It is first
computed in float32, for sixteen centroids per vector register. With u = 2^-24 and |x| the length of the point, a float32 value s is within

    E(s) = u ((d + 8) s + 5 |x| sqrt(s)) + 8 u² |x|²

of the exact value: rounding x and c to float32 changes a difference by u (|x_i| + |c_i|), and therefore the sum by 2 u sqrt(s) (|x| + |c|)
with |c| <= |x| + sqrt(s) (Cauchy and Schwarz). Each of the d subtractions, products and additions has a relative rounding error of at most
u. If several centroids may be nearest by this bound, they are compared in float64. Labels thus do not depend on a machine's vector width.

Vectors are sparse. The nearest centroid S/n maximises 2 x.S/n - |S|²/n². For each bin there is a list of clusters with non-zero sums; each
element of a vector contributes to the products with these clusters only. All products are integers below 2^53, exact in float64.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import (
    AT_THE_END,
    IN_PARTS,
    POINTS_OF_RUN,
    Assigned,
    PointSums,
    Rounds,
    Tally,
    VectorArrays,
    VectorSums,
    moved_centroids,
    rounds_through_host,
    sum_by_cluster,
    tally_through_host,
)
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import StopFlag, equal_partitions

__all__ = ["PointMeans", "VectorMeans"]

_OPERATIONS_OF_PARTITION = 400_000_000  # operations per partition: at most 0.1 s
_STEPS_OF_PARTITION = 100_000_000
_PARTITIONS_OF_THREAD = 3
_ROUNDING = 2.0**-24
_ITEMS_BETWEEN_CHECKS = 256  # items between two checks of the stop flag
_QUICK = {"contract", "nnan", "nsz"}
_ALL_BUT_SIGN = (1 << 63) - 1
_MINIMUM_BITS = ~(0x7FF << 52)  # bits of minus infinity, mapped so that integers are in the order of the floats
_MINIMUM_SHARE = 16  # a bin is stored as a dense row if at least 1 in 16 clusters has a value in it
_MAXIMUM_FLOAT32 = 1 << 24  # up to this, float32 represents all integers


@njit(nogil=True, cache=True, error_model="numpy")
def _distance(points, i, centroids, j):
    """Return the squared distance of point `i` and centroid `j`, summed over dimensions in order."""
    whole = 0.0
    for c in range(points.shape[1]):
        difference = np.float64(points[i, c]) - centroids[j, c]
        whole += difference * difference
    return whole


@njit(nogil=True, cache=True, error_model="numpy", fastmath=_QUICK)
def _quick_distances(points, i, columns, distances):
    """Write the float32 squared distances of a point from all centroids; return the squared length of the point."""
    d, k = columns.shape
    length = np.float64(0.0)
    distances[:] = np.float32(0.0)
    c = 0
    while c + 4 <= d:
        a_0, a_1, a_2, a_3 = points[i, c], points[i, c + 1], points[i, c + 2], points[i, c + 3]
        x_0, x_1, x_2, x_3 = np.float32(a_0), np.float32(a_1), np.float32(a_2), np.float32(a_3)
        length += np.float64(a_0) * a_0 + np.float64(a_1) * a_1 + np.float64(a_2) * a_2 + np.float64(a_3) * a_3
        for j in range(k):
            t_0, t_1, t_2, t_3 = x_0 - columns[c, j], x_1 - columns[c + 1, j], x_2 - columns[c + 2, j], x_3 - columns[c + 3, j]
            distances[j] = t_3 * t_3 + (t_2 * t_2 + (t_1 * t_1 + (t_0 * t_0 + distances[j])))
        c += 4
    while c < d:
        x = np.float32(points[i, c])
        length += np.float64(points[i, c]) * points[i, c]
        for j in range(k):
            t = x - columns[c, j]
            distances[j] = t * t + distances[j]
        c += 1
    return length


@njit(nogil=True, cache=True, error_model="numpy")
def _smallest(distances):
    """Return the minimum of non-negative floats. They are compared as integers, so that vector instructions are used."""
    bits = distances.view(np.int32)
    best = bits[0]
    for j in range(len(bits)):
        best = min(best, bits[j])
    return np.int32(best).view(np.float32)


@njit(nogil=True, cache=True, error_model="numpy", fastmath=_QUICK)
def _count_near(distances, most):
    """Return the number of values that are at most `most`, and the index of the first."""
    n, first = np.int32(0), np.int32(len(distances))
    for j in range(len(distances)):
        is_near = distances[j] <= most
        n += np.int32(is_near)
        first = min(first, np.int32(j) if is_near else np.int32(len(distances)))
    return n, first


@njit(nogil=True, cache=True, error_model="numpy")
def _most_of_nearest(best, length_squared, d):
    """Return the float32 distance above which a centroid cannot be the nearest, given the smallest distance `best` (bound E)."""
    slope, root = _ROUNDING * (d + 8), 5.0 * _ROUNDING * np.sqrt(length_squared)
    rest = 8.0 * _ROUNDING * _ROUNDING * length_squared
    above = best + slope * best + root * np.sqrt(best) + rest
    # The largest s with s - E(s) <= above, from a quadratic equation in sqrt(s).
    of_root = (root + np.sqrt(root * root + 4.0 * (1.0 - slope) * (above + rest))) / (2.0 * (1.0 - slope))
    return of_root * of_root * (1.0 + 1e-6)


@njit(nogil=True, cache=True, error_model="numpy")
def _assign_points(points, columns, centroids, labels, distances, first, last, stop):
    """Write the labels of the points `first:last`."""
    d, k = columns.shape
    result = np.empty(k, np.float32)
    for i in range(first, last):
        if i % _ITEMS_BETWEEN_CHECKS == 0 and stop[0]:
            break
        length = _quick_distances(points, i, columns, result)
        most = np.float32(_most_of_nearest(np.float64(_smallest(result)), length, d))
        n, label = _count_near(result, most)
        if n > 1:
            best = np.inf
            for j in range(label, k):
                if result[j] <= most:
                    exact = _distance(points, i, centroids, j)
                    if exact < best:
                        best, label = exact, np.int32(j)
        labels[i] = label
        if len(distances):
            distances[i] = _distance(points, i, centroids, label)


@njit(nogil=True, cache=True, error_model="numpy")
def _add_points(points, labels, first, last, sums, counts):
    """Add the points `first:last` to the sums of their clusters."""
    for i in range(first, last):
        label = labels[i]
        counts[label] += 1
        for c in range(points.shape[1]):
            sums[label, c] += points[i, c]


@njit(nogil=True, cache=True, error_model="numpy")
def _greatest_value(products, factor, square):
    """Convert products to values (see `VectorTerms`); return the maximum, found by integer comparisons in vector instructions."""
    for j in range(len(products)):
        products[j] = products[j] * factor[j] - square[j]
    bits, best = products.view(np.int64), np.int64(_MINIMUM_BITS)
    for j in range(len(bits)):
        best = max(best, bits[j] ^ ((bits[j] >> 63) & _ALL_BUT_SIGN))
    return np.int64(best ^ ((best >> 63) & _ALL_BUT_SIGN)).view(np.float64)


class _Lists(NamedTuple):
    """Clusters with a non-zero sum in each bin, with the sums.

    Attributes
    ----------
    starts : ndarray of int64, shape (n_bins + 1,)
        Start of each bin in `clusters`, followed by m.
    clusters : (m,) int32
        Clusters of each bin, ascending within a bin.
    sums : (m,) float64
        Sum of each of these clusters, an integer.
    rows : (n_bins,) int32
        Row of a bin with many clusters in `dense` (r, k) float32, otherwise -1.
    """

    starts: NDArray[np.int64]
    clusters: NDArray[np.int32]
    sums: NDArray[np.float64]
    rows: NDArray[np.int32]
    dense: NDArray[np.float32]

    @classmethod
    def of(cls, centroids: VectorSums, n_bins: int) -> _Lists:
        k = len(centroids.counts)
        starts = np.searchsorted(centroids.keys, np.arange(n_bins + 1) * k)
        clusters, lengths, rows = (centroids.keys % k).astype(np.int32), np.diff(starts), np.full(n_bins, -1, np.int32)
        is_dense = lengths * _MINIMUM_SHARE >= k
        if int(centroids.sums.max(initial=0)) > _MAXIMUM_FLOAT32:
            is_dense[:] = False
        rows[is_dense] = np.arange(np.count_nonzero(is_dense))
        dense = np.zeros((np.count_nonzero(is_dense), k), np.float32)
        chosen = np.repeat(is_dense, lengths)
        dense[np.repeat(rows[is_dense], lengths[is_dense]), clusters[chosen]] = centroids.sums[chosen]
        return cls(starts, clusters, centroids.sums.astype(np.float64), rows, dense)


class _Moved(NamedTuple):
    """Clusters that changed in the previous iteration.

    Attributes
    ----------
    lists
        Bins and sums of the changed clusters only.
    clusters : (c,) int32
        Indices of the changed clusters, ascending.
    is_among : (k,) bool
        True for the changed clusters.
    """

    lists: _Lists
    clusters: NDArray[np.int32]
    is_among: NDArray[np.bool_]


@njit(nogil=True, cache=True, error_model="numpy")
def _add_row(row, weight, products):
    """Add a row to the products with all clusters."""
    for j in range(len(products)):
        products[j] += weight * np.float64(row[j])


@njit(nogil=True, cache=True, error_model="numpy")
def _add_products(offsets, bins, weights, i, lists, low, high, products):
    """Add the products of vector `i` with the sums of the clusters `low:high` to `products`."""
    for element in range(offsets[i], offsets[i + 1]):
        weight, bin_ = np.float64(weights[element]), bins[element]
        if lists.rows[bin_] >= 0:
            _add_row(lists.dense[lists.rows[bin_], low:high], weight, products[low:high])
            continue
        position, end = lists.starts[bin_], lists.starts[bin_ + 1]
        if low > 0:
            position += np.searchsorted(lists.clusters[position:end], low)
        if high < len(products):
            end = position + np.searchsorted(lists.clusters[position:end], high)
        for at in range(position, end):
            products[lists.clusters[at]] += weight * lists.sums[at]


@njit(nogil=True, cache=True, error_model="numpy")
def _assign_vectors(vectors, lists, moved, terms, low, high, labels, values, first, last, stop):
    """Write the labels of the vectors `first:last`: the clusters with the largest values.

    Parameters
    ----------
    lists
        `_Lists` of all clusters.
    moved
        `_Moved`.
    terms
        `VectorTerms`.
    low, high : (n,)
        Range of allowed clusters of each vector, or (0,) for all.
    labels, values
        Labels and values of the previous iteration, which are updated in place. A vector whose centroid has not changed is not compared
        with other unchanged centroids.
    """
    offsets, bins, weights = vectors
    moved_lists, moved_clusters, is_moved = moved
    factor, square = terms
    k = len(factor)
    products = np.zeros(k)
    for i in range(first, last):
        if i % _ITEMS_BETWEEN_CHECKS == 0 and stop[0]:
            break
        begin, end = (low[i], high[i]) if len(low) else (0, k)
        label = labels[i]
        if label < 0 or is_moved[label]:
            products[begin:end] = 0.0
            _add_products(offsets, bins, weights, i, lists, begin, end, products)
            best, label = _greatest_value(products[begin:end], factor[begin:end], square[begin:end]), np.int32(-1)
            if best > -np.inf:
                label = np.int32(begin)
                while products[label] != best:
                    label += np.int32(1)
        else:
            products[moved_clusters] = 0.0
            _add_products(offsets, bins, weights, i, moved_lists, begin, end, products)
            best = values[i]
            for j in moved_clusters:
                value = products[j] * factor[j] - square[j]
                if begin <= j < end and (value > best or (value == best and j < label)):
                    best, label = value, j
        labels[i], values[i] = label, best


@njit(nogil=True, cache=True, error_model="numpy")
def _squared_lengths(offsets, weights):
    """Return the squared lengths of vectors, (n,) float64."""
    result = np.zeros(len(offsets) - 1)
    for i in range(len(result)):
        for element in range(offsets[i], offsets[i + 1]):
            result[i] += np.float64(weights[element]) * weights[element]
    return result


class PointMeans:
    """Points that are clustered on the CPU.

    Parameters
    ----------
    device
        CPU whose threads assign the items.
    points : (n, d)
        Coordinates, int32.
    """

    def __init__(self, device: Processor, points: NDArray[np.int32]) -> None:
        self._device, self._points = device, np.ascontiguousarray(points, np.int32)

    def assign(
        self,
        centroids: NDArray[np.float64],
        labels: NDArray[np.int32],
        distances: NDArray[np.float64],
        first: int,
        last: int,
        reporting: int,
    ) -> Generator[Assigned, None, None]:
        """Assign each of the points `first:last` to the nearest of k centroids; of equally near centroids, the first is selected.

        `first` must be the start of a chunk of `POINTS_OF_RUN` points.

        Parameters
        ----------
        centroids : (k, d)
            Coordinates in the unit of the points.
        labels : (n,)
            Output; only the elements `first:last` are written.
        distances : (n,)
            Output like `labels`: squared distances; (0,) if they are not needed.
        reporting
            Time at which sums are reported: NEVER, AT_THE_END or IN_PARTS.

        Yields
        ------
        End of the finished range, at least every tenth of a second.
        """
        d, (k, _) = self._points.shape[1], centroids.shape
        columns = np.ascontiguousarray(centroids.astype(np.float32).T)

        def work(begin: int, end: int, stop: StopFlag) -> None:
            begin, end = first + begin * POINTS_OF_RUN, min(last, first + end * POINTS_OF_RUN)
            _assign_points(self._points, columns, centroids, labels, distances, begin, end, stop)

        costs = np.full(-(-(last - first) // POINTS_OF_RUN), float(POINTS_OF_RUN * k * (d + 2)))
        chunks = equal_partitions(costs, self._device.threads, maximum_cost=_OPERATIONS_OF_PARTITION, per_worker=_PARTITIONS_OF_THREAD)
        begun = first
        for done in self._device.run(work, chunks, 0):
            end, sums = min(last, first + done * POINTS_OF_RUN), None
            if end > begun and (reporting == IN_PARTS or (reporting == AT_THE_END and end == last)):
                sums = PointSums(np.zeros((k, d), np.int64), np.zeros(k, np.int64))
                _add_points(self._points, labels, begun, end, *sums)
                begun = end
            yield Assigned(end, sums)

    def iterate(
        self, centroids: NDArray[np.float64], labels: NDArray[np.int32], rounds: int, tolerance: float
    ) -> Generator[int, None, Rounds]:
        """Iterate over all points (see `rounds_through_host`)."""
        return (yield from rounds_through_host(self, centroids, labels, rounds, tolerance))

    def tally(
        self,
        centroids: NDArray[np.float64],
        previous: NDArray[np.float64] | None,
        labels: NDArray[np.int32],
        first: int,
        last: int,
        *,
        is_labelled: bool,
    ) -> Generator[None, None, Tally]:
        """Run an iteration with the points `first:last` (see `tally_through_host`)."""
        return (yield from tally_through_host(self, centroids, previous, labels, first, last, is_labelled=is_labelled))


class VectorMeans:
    """Sparse vectors that are clustered on the CPU.

    Parameters
    ----------
    device
        CPU whose threads assign the items.
    vectors
        `VectorArrays`, with bins below `n_bins`.
    low, high : (n,) int64
        Range `low:high` of the centroids allowed for each vector; empty arrays allow all.
    """

    def __init__(
        self,
        device: Processor,
        vectors: VectorArrays,
        n_bins: int,
        low: NDArray[np.int64] | None = None,
        high: NDArray[np.int64] | None = None,
    ) -> None:
        self._device, self._vectors, self._n_bins = device, vectors, n_bins
        self._low, self._high = (np.empty(0, np.int64) if ends is None else ends for ends in (low, high))
        self._in_bin = np.bincount(vectors.bins, minlength=n_bins)
        n = len(vectors.offsets) - 1
        self._labels, self._values = np.full(n, -1, np.int32), np.full(n, -np.inf)
        self._squares = _squared_lengths(vectors.offsets, vectors.weights)
        self._last: VectorSums | None = None  # centroids of the last round
        self._done = 0, 0  # range of the vectors that were assigned in the last round

    def assign(
        self,
        centroids: VectorSums,
        labels: NDArray[np.int32],
        distances: NDArray[np.float64],
        first: int,
        last: int,
        reporting: int,
    ) -> Generator[Assigned, None, None]:
        """Assign vectors like `PointMeans.assign`; a vector without an allowed, non-empty cluster has label -1 and is not summed."""
        k = len(centroids.counts)
        is_moved = np.ones(k, np.bool_)
        if self._last is not None and len(self._last.counts) == k and self._done[0] <= first and last <= self._done[1]:
            is_moved = moved_centroids(self._last, centroids)
        else:
            self._labels[first:last] = -1
        self._last, self._done = None, (first, first)
        clusters, terms = np.flatnonzero(is_moved).astype(np.int32), centroids.terms()
        lists = _Lists.of(centroids, self._n_bins)
        moved = _Moved(lists if len(clusters) == k else _Lists.of(centroids.of(is_moved), self._n_bins), clusters, is_moved)
        vectors = self._vectors

        def work(begin: int, end: int, stop: StopFlag) -> None:
            _assign_vectors(
                vectors, lists, moved, terms, self._low, self._high, self._labels, self._values, first + begin, first + end, stop
            )

        elements = np.diff(vectors.offsets[first : last + 1])
        # Mean length of the lists of all clusters in a bin: up to half of the vectors walk these lists.
        steps = float(self._in_bin @ np.diff(lists.starts)) / max(1, len(vectors.bins))
        chunks = equal_partitions(
            elements * steps + k / 4.0, self._device.threads, maximum_cost=_STEPS_OF_PARTITION, per_worker=_PARTITIONS_OF_THREAD
        )
        begun = added = first
        for done in self._device.run(work, chunks, 0):
            end, sums = first + done, None
            labels[begun:end] = self._labels[begun:end]
            if len(distances):
                nearer = np.where(labels[begun:end] < 0, 0.0, self._values[begun:end])
                distances[begun:end] = np.maximum(0.0, self._squares[begun:end] - nearer)
            begun = end
            if end > added and (reporting == IN_PARTS or (reporting == AT_THE_END and end == last)):
                sums = sum_by_cluster(vectors, labels, k, added, end)
                added = end
            if end == last:
                self._last, self._done = centroids, (first, last)
            yield Assigned(end, sums)

    def iterate(self, centroids: VectorSums, labels: NDArray[np.int32], rounds: int, tolerance: float) -> Generator[int, None, Rounds]:
        """Iterate over all vectors (see `rounds_through_host`)."""
        return (yield from rounds_through_host(self, centroids, labels, rounds, tolerance))

    def tally(
        self,
        centroids: VectorSums,
        previous: VectorSums | None,
        labels: NDArray[np.int32],
        first: int,
        last: int,
        *,
        is_labelled: bool,
    ) -> Generator[None, None, Tally]:
        """Run an iteration with the vectors `first:last` (see `tally_through_host`)."""
        return (yield from tally_through_host(self, centroids, previous, labels, first, last, is_labelled=is_labelled))
