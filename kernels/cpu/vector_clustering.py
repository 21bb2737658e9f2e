"""Clustering of similar sparse vectors by DBSCAN, complete or average linkage; each vector is compared with a window of following vectors.

The similarity of two vectors is their cosine: dot / sqrt(square · square). It is computed from integers in one expression of doubles, and
is bit-identical on all devices. Vectors that must not be compared have similarity 0; empty vectors form single clusters. A tile, which has
as many vectors as a register has lanes, is entered into a table of bins. The vectors in the windows of the tile then read one row per
element. Threads divide the windows of several islands (ranges that no window crosses) among them; the component trees of the threads are
merged.

SINGLE: a vector with enough neighbours is a core point; neighbouring core points are in the same cluster; any other vector is in the
cluster of its most similar core neighbour (of equal ones, the smallest), or in none (Ester et al. 1996, KDD-96, 226-231).

COMPLETE, AVERAGE: nearest-neighbour chains (Murtagh 1983, Comput. J. 26:354-359) on an integer similarity matrix, for each connected
component; `merge_nearest` defines ties. Components of too many vectors are divided (`proteoscope.kernels.cpu.linkage_rounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from math import sqrt
from threading import BoundedSemaphore, Lock
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import (
    COMPLETE,
    SIMILARITY_UNITS,
    SINGLE,
    Groups,
    Linkage,
    VectorArrays,
    islands,
    named_by_smallest,
    window_pairs,
)
from proteoscope.kernels.cpu.linkage_rounds import LinkageRounds
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.vectors import REGISTER_BYTES, add, aligned, load, multiply, spread, store
from proteoscope.kernels.device import StopFlag, equal_partitions

__all__ = ["VectorClustering"]

LANES = REGISTER_BYTES // 4  # vectors of a tile
_ROUNDING_MARGIN = 1.0 - 1e-9
_PRODUCTS_OF_PARTITION = 300_000_000  # about a tenth of a second
_PARTITIONS_OF_THREAD, _PARTITIONS_OF_BATCH = 4, 5  # per thread: minimum in a pass, maximum in a batch of islands
_OPERATIONS_OF_CELL = 20  # operations per matrix cell, in addition to the products of elements
_LARGE = 4096  # number of members above which the threads do not allocate matrices at the same time
_MAXIMUM_LARGE_GROUPS = 4


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_squares(offsets, weights, squares):
    """Write the squared length of each vector, (n,) int64."""
    for i in range(len(squares)):
        total = 0
        for e in range(offsets[i], offsets[i + 1]):
            total += np.int64(weights[e]) * np.int64(weights[e])
        squares[i] = total


@njit(inline="always")
def _enter(offsets, bins, weights, i, lane, table):
    """Add vector i to lane `lane` of the table."""
    for e in range(offsets[i], offsets[i + 1]):
        table[np.int64(bins[e]) * LANES + lane] = weights[e]


@njit(inline="always")
def _leave(offsets, bins, i, lane, table):
    """Remove vector i from the table."""
    for e in range(offsets[i], offsets[i + 1]):
        table[np.int64(bins[e]) * LANES + lane] = 0


@njit(inline="always")
def _find_dots(offsets, bins, weights, j, table, dots):
    """Compute the dot products of vector j with the vectors in the table."""
    total = spread(table, 0)
    for e in range(offsets[j], offsets[j + 1]):
        total = add(total, multiply(load(table, np.int64(bins[e]) * LANES), spread(table, np.int64(weights[e]))))
    store(dots, 0, total)


@njit(inline="always")
def _is_far(dot, square, other_square, rough):
    """Return True if the squared cosine of two vectors is certainly below `rough`."""
    return float(dot) * float(dot) < rough * float(square) * float(other_square)


@njit(inline="always")
def _similarity(dot, square, other_square):
    """Return the cosine of two non-empty vectors."""
    return float(dot) / sqrt(float(square) * float(other_square))


@njit(inline="always")
def _root(parents, i):
    """Return the root of item i in the tree of its cluster, which is the smallest member so far; shorten the path to the root."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@njit(nogil=True, cache=True)
def _roots(parents):
    """Return for each item the smallest member of its cluster so far, (n,)."""
    for i in range(len(parents)):
        parents[i] = _root(parents, i)
    return parents


@njit(nogil=True, cache=True, error_model="numpy")
def _count_neighbours(vectors, squares, ends, least, first, last, table, dots, neighbours, stop):
    """Count similar pairs in the windows of the vectors `first:last`: each pair adds 1 to `neighbours` of both vectors."""
    offsets, bins, weights = vectors
    rough = least * least * _ROUNDING_MARGIN
    for begin in range(first, last, LANES):
        end = min(last, begin + LANES)
        if stop[0]:
            return
        if ends[end - 1] <= begin + 1:
            continue
        for i in range(begin, end):
            _enter(offsets, bins, weights, i, i - begin, table)
        nearest = begin  # earlier vectors are outside the window of j and of all later vectors
        for j in range(begin + 1, ends[end - 1]):
            while ends[nearest] <= j:
                nearest += 1
            _find_dots(offsets, bins, weights, j, table, dots)
            for i in range(nearest, min(end, j)):
                dot = dots[i - begin]
                if dot == 0 or _is_far(dot, squares[i], squares[j], rough) or _similarity(dot, squares[i], squares[j]) < least:
                    continue
                neighbours[i - first] += 1
                neighbours[j - first] += 1
        for i in range(begin, end):
            _leave(offsets, bins, i, i - begin, table)


class _PartialClusters(NamedTuple):
    """Clusters found so far in a range of vectors; vectors are numbered from the first vector of the range.

    Attributes
    ----------
    parents
        (n,) int64: initially the index of the vector, finally the smallest index in its cluster.
    highest, nearest_core
        For vectors that are not core points: (n,) float64, similarity of the most similar core neighbour, initially 0; and (n,) int64, the
        smallest of these neighbours, initially -1.
    """

    parents: NDArray[np.int64]
    highest: NDArray[np.float64]
    nearest_core: NDArray[np.int64]

    @classmethod
    def none(cls, n: int) -> _PartialClusters:
        """Return the initial state, in which every vector is a separate cluster."""
        return cls(np.arange(n), np.zeros(n), np.full(n, -1))


@njit(nogil=True, cache=True, error_model="numpy")
def _join_neighbours(vectors, squares, ends, least, first, last, table, dots, is_core, joined, stop):
    """Join neighbouring core points in the windows of the vectors `first:last` to one cluster.

    `is_core` and `joined` include the vectors from `first` to the end of the windows.
    """
    offsets, bins, weights = vectors
    parents, highest, nearest_core = joined
    rough = least * least * _ROUNDING_MARGIN
    for begin in range(first, last, LANES):
        end = min(last, begin + LANES)
        if stop[0]:
            return
        if ends[end - 1] <= begin + 1:
            continue
        for i in range(begin, end):
            _enter(offsets, bins, weights, i, i - begin, table)
        nearest = begin
        for j in range(begin + 1, ends[end - 1]):
            while ends[nearest] <= j:
                nearest += 1
            _find_dots(offsets, bins, weights, j, table, dots)
            b = j - first
            root_b = _root(parents, b)
            for i in range(nearest, min(end, j)):
                dot, a = dots[i - begin], i - first
                if dot == 0 or parents[a] == root_b or _is_far(dot, squares[i], squares[j], rough) or not (is_core[a] or is_core[b]):
                    continue
                similarity = _similarity(dot, squares[i], squares[j])
                if similarity < least:
                    continue
                if is_core[a] and is_core[b]:
                    root_a = _root(parents, a)
                    parents[max(root_a, root_b)] = root_b = min(root_a, root_b)
                else:
                    core, border = (a, b) if is_core[a] else (b, a)
                    if similarity > highest[border]:  # core points are in ascending order: the smallest of equals stays
                        highest[border], nearest_core[border] = similarity, core
        for i in range(begin, end):
            _leave(offsets, bins, i, i - begin, table)


@njit(nogil=True, cache=True, error_model="numpy")
def _add_joined(begin, total, joined):
    """Merge the results of the windows of the vectors from `begin` on into `total`."""
    own_parents, own_highest, own_nearest = total
    parents, highest, nearest_core = joined
    for k in range(len(own_parents)):
        a = begin + k
        root, other = _root(parents, a), _root(parents, begin + own_parents[k])
        parents[max(root, other)] = min(root, other)
        core, similarity = begin + own_nearest[k], own_highest[k]
        if similarity > highest[a] or (0.0 < similarity == highest[a] and core < nearest_core[a]):
            highest[a], nearest_core[a] = similarity, core


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_matrix(vectors, squares, ends, members, counts, is_average, table, dots, cells, stop):
    """Write the similarities of all pairs of the n members to `cells`, (n * n,), in `SIMILARITY_UNITS`.

    With `is_average`, each similarity is multiplied by the counts of both members.
    """
    offsets, bins, weights = vectors
    n = len(members)
    cells[: n * n] = 0
    for begin in range(0, n - 1, LANES):
        end = min(n, begin + LANES)
        if stop[0]:
            return
        for a in range(begin, end):
            _enter(offsets, bins, weights, members[a], a - begin, table)
        nearest = begin
        for b in range(begin + 1, n):
            j = members[b]
            while nearest < end and ends[members[nearest]] <= j:
                nearest += 1
            if nearest == end:
                break
            _find_dots(offsets, bins, weights, j, table, dots)
            for a in range(nearest, min(end, b)):
                dot = dots[a - begin]
                if dot == 0:
                    continue
                units = np.int64(_similarity(dot, squares[members[a]], squares[j]) * SIMILARITY_UNITS + 0.5)
                if is_average:
                    units *= np.int64(counts[a]) * np.int64(counts[b])
                cells[a * n + b] = cells[b * n + a] = units
        for a in range(begin, end):
            _leave(offsets, bins, members[a], a - begin, table)


@njit(inline="always")
def _value(cells, sizes, is_average, row, n, s):
    """Return the similarity of two clusters, in `SIMILARITY_UNITS`: the minimum or average over pairs of members."""
    cell = float(cells[row * n + s])
    return cell / float(sizes[row] * sizes[s]) if is_average else cell


@njit(nogil=True, cache=True, error_model="numpy")
def merge_nearest(cells, sizes, is_average, least, labels, active, positions, chain, stop):
    """Merge clusters that are nearest to each other, while their similarity is at least `least`.

    A chain starts at the smallest remaining cluster (identified by its smallest member) and proceeds to the nearest cluster; of equally
    near clusters, to the previous cluster in the chain if it is among them, otherwise to the smallest. Clusters that are nearest to each
    other are merged, and the chain continues before them. If the nearest cluster is not similar enough, which occurs only at the start of a
    chain, the cluster is finished, since later mergers cannot make any cluster more similar to it.

    Parameters
    ----------
    cells
        (n * n,) similarities, modified.
    sizes
        (n,) int64, number of vectors of each cluster, modified.
    is_average
        True for average similarities, False for minima.
    labels
        (n,) int64, output; smallest member of each item's cluster.
    active, positions, chain
        (n,) int64, workspace.
    """
    n = len(sizes)
    for a in range(n):
        labels[a] = active[a] = positions[a] = a
    n_active, length, begin = n, 0, 0
    while n_active > 0:
        if stop[0]:
            return
        if length == 0:
            while positions[begin] < 0:
                begin += 1
            chain[0], length = begin, 1
        a = chain[length - 1]
        highest, nearest = -1.0, n
        for k in range(n_active):
            s = active[k]
            if s == a:
                continue
            value = _value(cells, sizes, is_average, a, n, s)
            if value > highest or (value == highest and s < nearest):
                highest, nearest = value, s
        leaving = -1
        if highest < least:
            leaving, length = a, length - 1
        elif length > 1 and _value(cells, sizes, is_average, a, n, chain[length - 2]) == highest:
            b = chain[length - 2]
            retained, leaving = min(a, b), max(a, b)
            length -= 2
            labels[leaving] = retained
            sizes[retained] += sizes[leaving]
            for k in range(n_active):
                s = active[k]
                if s in (retained, leaving):
                    continue
                here, other = cells[retained * n + s], cells[leaving * n + s]
                cells[retained * n + s] = cells[s * n + retained] = here + other if is_average else min(here, other)
        else:
            chain[length] = nearest
            length += 1
        if leaving >= 0:
            n_active -= 1
            moved = active[n_active]
            active[positions[leaving]], positions[moved] = moved, positions[leaving]
            positions[leaving] = -1
    for a in range(n):
        labels[a] = labels[labels[a]]


@njit(nogil=True, cache=True, error_model="numpy")
def _link_groups(groups, squares, is_average, begin, end, table, dots, cells, positions, stop):
    """Cluster the groups `begin:end`; `cells` has space for the largest matrix, `positions` (k,) is the input of `LinkageRounds.take`."""
    vectors, ends, members, starts, least, counts = groups
    most = 0
    for g in range(begin, end):
        most = max(most, starts[g + 1] - starts[g])
    workspace = np.empty((5, most), np.int64)
    for g in range(begin, end):
        if stop[0]:
            return
        first, last = starts[g], starts[g + 1]
        n = last - first
        _fill_matrix(vectors, squares, ends, members[first:last], counts[first:last], is_average, table, dots, cells, stop)
        workspace[0, :n] = counts[first:last]
        merge_nearest(
            cells, workspace[0, :n], is_average, least[g], workspace[1, :n], workspace[2, :n], workspace[3, :n], workspace[4, :n], stop
        )
        for a in range(n):
            positions[first + a] = first + workspace[1, a]


class VectorClustering:
    """Clustering of vectors on the threads of a CPU.

    Parameters
    ----------
    device
        CPU whose threads compare vectors.
    vectors
        The n vectors; each vector is compared with a window of following vectors. Each thread has a table of all bins.
    ends : (n,) int64
        End (exclusive) of the window of each vector, non-decreasing; vector i is compared with the vectors i + 1 : ends[i].
    """

    def __init__(self, device: Processor, vectors: VectorArrays, ends: NDArray[np.int64]) -> None:
        self._device, self._vectors, self._ends = device, vectors, ends
        self._squares = _squares_of(vectors)
        self._n_bins = int(vectors.bins.max(initial=0)) + 1
        self._elements = max(1.0, len(vectors.bins) / max(1, len(ends)))
        self._adding, self._large = Lock(), BoundedSemaphore(_MAXIMUM_LARGE_GROUPS)

    def cluster(self, linkage: Linkage, labels: NDArray[np.int64], first: int = 0, last: int | None = None) -> Generator[int, None, None]:
        """Cluster the vectors `first:last`; both must be boundaries of `proteoscope.kernels.clustering_layouts.islands`.

        Parameters
        ----------
        labels : (n,) int64
            Output; elements `first:last` are written: smallest index of the vectors in the cluster of each vector.

        Yields
        ------
        End of the finished range (a boundary), at least every tenth of a second.

        Raises
        ------
        ValueError
            If a setting of the linkage is out of bounds.
        """
        linkage, last = linkage.checked(), len(self._ends) if last is None else last
        cuts = first + islands(self._ends[first:last] - first)
        join = self._joined if linkage.method == SINGLE else self._linked
        for begin, end in self._batches(cuts):
            for _ in join(linkage, begin, end, labels[begin:end]):
                yield begin
            yield end

    def _batches(self, cuts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yield ranges of vectors that contain whole islands (see `islands`) and need about half a second on all threads."""
        before = np.concatenate(([0.0], np.cumsum(self._costs(int(cuts[0]), int(cuts[-1])))))[cuts - cuts[0]]
        begin = 0
        while begin + 1 < len(cuts):
            most = before[begin] + _PARTITIONS_OF_BATCH * self._device.threads * _PRODUCTS_OF_PARTITION
            end = max(begin + 1, int(np.searchsorted(before, most, side="right")) - 1)
            yield int(cuts[begin]), int(cuts[end])
            begin = end

    def _costs(self, first: int, last: int) -> NDArray[np.floating]:
        """Return the number of products of elements in the window of each vector."""
        return (1.0 + window_pairs(self._ends[first:last] - first)) * self._elements

    def _joined(self, linkage: Linkage, first: int, last: int, labels: NDArray[np.int64]) -> Generator[None, None, None]:
        """Compute the labels by SINGLE linkage (DBSCAN)."""
        arguments = self._vectors, self._squares, self._ends, linkage.least
        n, costs = last - first, self._costs(first, last)
        is_core, neighbours = np.ones(n, bool), np.ones(n, np.int64)

        def count(begin: int, end: int, stop: StopFlag) -> None:
            reach = int(self._ends[first + end - 1]) - first
            result = np.zeros(reach - begin, np.int64)
            _count_neighbours(*arguments, first + begin, first + end, *self._workspace(), result, stop)
            with self._adding:
                neighbours[begin:reach] += result

        if linkage.minimum_neighbours > 2:  # otherwise every point with a neighbour is a core point
            yield from self._in_partitions(count, costs)
            is_core = neighbours >= linkage.minimum_neighbours
        joined = _PartialClusters.none(n)

        def join(begin: int, end: int, stop: StopFlag) -> None:
            reach = int(self._ends[first + end - 1]) - first
            result = _PartialClusters.none(reach - begin)
            _join_neighbours(*arguments, first + begin, first + end, *self._workspace(), is_core[begin:reach], result, stop)
            with self._adding:
                _add_joined(begin, result, joined)

        yield from self._in_partitions(join, costs)
        is_border = joined.nearest_core >= 0
        joined.parents[is_border] = joined.nearest_core[is_border]
        labels[:] = first + named_by_smallest(_roots(joined.parents))

    def _linked(self, linkage: Linkage, first: int, last: int, labels: NDArray[np.int64]) -> Generator[None, None, None]:
        """Compute the labels by COMPLETE or AVERAGE linkage."""
        yield from self._joined(linkage._replace(method=SINGLE, minimum_neighbours=2), first, last, labels)
        rounds = LinkageRounds(self._vectors, self._ends, labels, first, linkage)
        while (groups := rounds.groups()) is not None:
            positions = np.arange(len(groups.members))
            yield from self._merged(groups, linkage.method, positions)
            rounds.take(positions)
        labels[:] = rounds.labels

    def _merged(self, groups: Groups, method: int, positions: NDArray[np.int64]) -> Generator[None, None, None]:
        """Write to `positions`, for each member of the groups, the index in `members` of the smallest member of its cluster."""
        squares = self._squares if groups.vectors is self._vectors else _squares_of(groups.vectors)
        dtype = np.int32 if method == COMPLETE else np.int64

        def link(begin: int, end: int, stop: StopFlag) -> None:
            largest = int(groups.sizes[begin:end].max())
            with self._large if largest > _LARGE else nullcontext():
                _link_groups(
                    groups, squares, method != COMPLETE, begin, end, *self._workspace(), np.empty(largest**2, dtype), positions, stop
                )

        yield from self._in_partitions(link, groups.sizes**2 * (self._elements + _OPERATIONS_OF_CELL))

    def _in_partitions(self, work: Callable[[int, int, StopFlag], None], costs: NDArray[np.floating]) -> Generator[None, None, None]:
        """Run `work` on ranges of items of about equal cost, on all threads."""
        chunks = equal_partitions(costs, self._device.threads, maximum_cost=_PRODUCTS_OF_PARTITION, per_worker=_PARTITIONS_OF_THREAD)
        for _ in self._device.run(work, chunks, 0):
            yield

    def _workspace(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return an empty table with a row per bin and a lane per vector of a tile (`LANES` vectors), and space for dot products."""
        return aligned(self._n_bins * LANES, np.int32), aligned(LANES, np.int32)


def _squares_of(vectors: VectorArrays) -> NDArray[np.int64]:
    squares = np.zeros(len(vectors.offsets) - 1, np.int64)
    _sum_squares(vectors.offsets, vectors.weights, squares)
    return squares
