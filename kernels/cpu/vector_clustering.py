"""Clusters of sparse vectors that are similar, in windows of their order: DBSCAN, and complete and average linkage.

The similarity of two vectors is their cosine: dot / sqrt(square · square), whole numbers in one expression of doubles, so that every device
finds the same to the last bit. A vector is spread over a table of bins, and those of its window gather from there. Vectors that may not be
compared have a similarity of zero; one without elements is alone.

SINGLE: a vector with enough neighbours is a core point; core points that are neighbours are in one cluster; one that is no core point
is in that of the core neighbour most similar to it, the smallest of several, or alone (Ester et al. 1996, KDD-96, 226-231).

COMPLETE, AVERAGE: nearest-neighbour chains (Murtagh 1983, Comput. J. 26:354-359) on a matrix of similarities in whole units, for each
connected component; `merge_nearest` says how ties are broken. Components of too many vectors are divided (`kernels.linkage_rounds`).
"""

from __future__ import annotations

from collections.abc import Generator
from math import sqrt
from threading import BoundedSemaphore

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.clustering_layouts import COMPLETE, SIMILARITY_UNITS, SINGLE, Groups, Linkage, islands, named_by_smallest, window_pairs
from kernels.cpu.processor import Processor
from kernels.device import StopFlag
from kernels.linkage_rounds import LinkageRounds
from kernels.partitions import equal_partitions
from kernels.vector_layouts import VectorArrays

__all__ = ["VectorClustering"]

_PRODUCTS_OF_PIECE = 100_000_000  # about a tenth of a second
_PIECES_OF_THREAD = 4
_LARGE = 4096  # members of a group whose matrix is not made for every thread at once
_LARGE_AT_A_TIME = 4


@njit(nogil=True, cache=True, error_model="numpy")
def _sum_squares(offsets, weights, squares):
    """(n,) int64, the square of each vector's length."""
    for i in range(len(squares)):
        total = 0
        for e in range(offsets[i], offsets[i + 1]):
            total += np.int64(weights[e]) * np.int64(weights[e])
        squares[i] = total


@njit(inline="always")
def _spread(offsets, bins, weights, i, table):
    """Vector i into the table of bins."""
    for e in range(offsets[i], offsets[i + 1]):
        table[bins[e]] = weights[e]


@njit(inline="always")
def _clear(offsets, bins, i, table):
    """Vector i out of the table again."""
    for e in range(offsets[i], offsets[i + 1]):
        table[bins[e]] = 0


@njit(inline="always")
def _dot(offsets, bins, weights, j, table):
    """Dot product of vector j with that in the table."""
    total = np.int64(0)
    for e in range(offsets[j], offsets[j + 1]):
        total += np.int64(table[bins[e]]) * np.int64(weights[e])
    return total


@njit(inline="always")
def _similarity(dot, square, other_square):
    """Cosine of two vectors that have elements."""
    return float(dot) / sqrt(float(square) * float(other_square))


@njit(inline="always")
def _root(parents, i):
    """The smallest of the cluster of i, as far as is known; the way there is halved."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@njit(nogil=True, cache=True, error_model="numpy")
def _count_neighbours(offsets, bins, weights, squares, ends, least, first, last, table, neighbours, stop):
    """Add to `neighbours`, (last - first,), how many similar ones each vector of `first:last` has."""
    for i in range(first, last):
        if stop[0]:
            return
        if squares[i] == 0 or ends[i] == i + 1:
            continue
        _spread(offsets, bins, weights, i, table)
        for j in range(i + 1, ends[i]):
            if squares[j] > 0 and _similarity(_dot(offsets, bins, weights, j, table), squares[i], squares[j]) >= least:
                neighbours[i - first] += 1
                neighbours[j - first] += 1
        _clear(offsets, bins, i, table)


@njit(nogil=True, cache=True, error_model="numpy")
def _join_neighbours(offsets, bins, weights, squares, ends, least, first, last, table, is_core, parents, nearest, stop):
    """Join core points of `first:last` that are neighbours.

    Parameters
    ----------
    is_core, parents, nearest : (last - first,), numbers counted from `first`. `parents`: each its own at first, the smallest core point of
        its cluster at last. `nearest`: -1 at first; of one that is no core point, the core neighbour that is most similar to it.
    """
    highest = np.zeros(last - first)
    for i in range(first, last):
        if stop[0]:
            return
        if squares[i] == 0 or ends[i] == i + 1:
            continue
        _spread(offsets, bins, weights, i, table)
        a = i - first
        for j in range(i + 1, ends[i]):
            b = j - first
            if squares[j] == 0 or not (is_core[a] or is_core[b]):
                continue
            if is_core[a] and is_core[b] and _root(parents, a) == _root(parents, b):
                continue
            similarity = _similarity(_dot(offsets, bins, weights, j, table), squares[i], squares[j])
            if similarity < least:
                continue
            if is_core[a] and is_core[b]:
                root, other = _root(parents, a), _root(parents, b)
                parents[max(root, other)] = min(root, other)
            else:
                core, border = (a, b) if is_core[a] else (b, a)
                if similarity > highest[border]:  # core points come in their order: of several the smallest stays
                    highest[border], nearest[border] = similarity, core
        _clear(offsets, bins, i, table)
    for a in range(last - first):
        parents[a] = _root(parents, a)


@njit(nogil=True, cache=True, error_model="numpy")
def _fill_matrix(offsets, bins, weights, squares, ends, members, counts, is_average, table, cells, stop):
    """Similarities of the n members to each other, in units, (n * n,); with `is_average` times the counts of both."""
    n = len(members)
    cells[: n * n] = 0
    for a in range(n):
        i = members[a]
        if stop[0]:
            return
        if squares[i] == 0:
            continue
        _spread(offsets, bins, weights, i, table)
        for b in range(a + 1, n):
            j = members[b]
            if j >= ends[i]:
                break
            if squares[j] == 0:
                continue
            similarity = _similarity(_dot(offsets, bins, weights, j, table), squares[i], squares[j])
            units = np.int64(similarity * SIMILARITY_UNITS + 0.5)
            if is_average:
                units *= np.int64(counts[a]) * np.int64(counts[b])
            cells[a * n + b] = cells[b * n + a] = units
        _clear(offsets, bins, i, table)


@njit(inline="always")
def _value(cells, sizes, is_average, row, n, s):
    """The similarity of two clusters in units: the least, or the average, of those of their members."""
    cell = float(cells[row * n + s])
    return cell / float(sizes[row] * sizes[s]) if is_average else cell


@njit(nogil=True, cache=True, error_model="numpy")
def merge_nearest(cells, sizes, is_average, least, labels, active, places, chain, stop):
    """Merge clusters that are each other's nearest, as long as they are as similar as `least`.

    A chain begins at the smallest cluster that is left (clusters are known by their smallest member) and goes from each to the nearest; of
    several nearest that is the one before it in the chain, else the smallest. Two that are each other's nearest become one, and the
    chain goes on before them. Where the nearest is not similar enough, which can be so at the begin of a chain alone, the cluster is done:
    no merger of others brings it nearer.

    Parameters
    ----------
    cells : (n * n,) similarities, which change. sizes : (n,) int64, vectors of each, which change. is_average : averages, else the least.
    labels : (n,) int64, to fill: the smallest member of each one's cluster. active, places, chain : (n,) int64, work space.
    """
    n = len(sizes)
    for a in range(n):
        labels[a] = active[a] = places[a] = a
    n_active, length, begin = n, 0, 0
    while n_active > 0:
        if stop[0]:
            return
        if length == 0:
            while places[begin] < 0:
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
            kept, leaving = min(a, b), max(a, b)
            length -= 2
            labels[leaving] = kept
            sizes[kept] += sizes[leaving]
            for k in range(n_active):
                s = active[k]
                if s in (kept, leaving):
                    continue
                own, other = cells[kept * n + s], cells[leaving * n + s]
                cells[kept * n + s] = cells[s * n + kept] = own + other if is_average else min(own, other)
        else:
            chain[length] = nearest
            length += 1
        if leaving >= 0:
            n_active -= 1
            moved = active[n_active]
            active[places[leaving]], places[moved] = moved, places[leaving]
            places[leaving] = -1
    for a in range(n):
        labels[a] = labels[labels[a]]


@njit(nogil=True, cache=True, error_model="numpy")
def _link_groups(offsets, bins, weights, squares, ends, members, starts, least, counts, is_average, chosen, table, cells, labels, stop):
    """Cluster the `chosen` groups; `cells` has room for the matrix of the largest, `labels`, (k,), is what `LinkageRounds.take` takes."""
    most = 0
    for g in chosen:
        most = max(most, starts[g + 1] - starts[g])
    room = np.empty((5, most), np.int64)
    for g in chosen:
        if stop[0]:
            return
        first, last = starts[g], starts[g + 1]
        n = last - first
        _fill_matrix(offsets, bins, weights, squares, ends, members[first:last], counts[first:last], is_average, table, cells, stop)
        room[0, :n] = counts[first:last]
        merge_nearest(cells, room[0, :n], is_average, least[g], room[1, :n], room[2, :n], room[3, :n], room[4, :n], stop)
        for a in range(n):
            labels[first + a] = first + room[1, a]


class VectorClustering:
    """Vectors, ready to be clustered with the threads of a processor.

    Parameters
    ----------
    device : the processor. vectors : n of them, in the order that their windows are of; a table of all bins is made for each thread.
    ends : (n,) int64, never falling: vector i may be compared with the vectors i + 1 : ends[i].
    """

    def __init__(self, device: Processor, vectors: VectorArrays, ends: NDArray[np.int64]) -> None:
        self._device, self._vectors, self._ends = device, vectors, ends
        self._squares = _squares_of(vectors)
        self._n_bins = _n_bins(vectors)
        self._large = BoundedSemaphore(_LARGE_AT_A_TIME)

    def cluster(self, linkage: Linkage, labels: NDArray[np.int64], first: int = 0, last: int | None = None) -> Generator[int, None, None]:
        """Cluster the vectors `first:last`, between two cuts of `kernels.clustering_layouts.islands`.

        Parameters
        ----------
        labels : (n,) int64, whose elements `first:last` are filled: the smallest vector of each one's cluster.

        Yields
        ------
        The vector, a cut, up to which all is done, at least every tenth of a second.

        Raises
        ------
        ValueError : the linkage has a number out of its bounds.
        """
        linkage, last = linkage.checked(), len(self._ends) if last is None else last
        cuts = first + islands(self._ends[first:last] - first)

        def work(begin: int, end: int, stop: StopFlag) -> None:
            here = int(cuts[begin]), int(cuts[end])
            join = self._joined if linkage.method == SINGLE else self._linked
            labels[slice(*here)] = join(linkage, *here, stop)

        elements = len(self._vectors.bins) / max(1, len(self._ends))
        pairs = np.concatenate(([0], np.cumsum(1 + window_pairs(self._ends[first:last] - first))))
        cost = np.diff(pairs[cuts - first]) * max(1.0, elements)
        pieces = equal_partitions(cost, self._device.threads, most_cost=_PRODUCTS_OF_PIECE, per_worker=_PIECES_OF_THREAD)
        for done in self._device.run(work, pieces, 0):
            yield int(cuts[done])

    def _joined(self, linkage: Linkage, first: int, last: int, stop: StopFlag) -> NDArray[np.int64]:
        """(last - first,) labels of SINGLE."""
        arguments = *self._vectors, self._squares, self._ends, linkage.least, first, last, np.zeros(self._n_bins, np.int16)
        neighbours = np.ones(last - first, np.int64)
        if linkage.least_neighbours > 2:  # else whoever has a neighbour is a core point
            _count_neighbours(*arguments, neighbours, stop)
            is_core = neighbours >= linkage.least_neighbours
        else:
            is_core = np.ones(last - first, bool)
        parents, nearest = np.arange(last - first), np.full(last - first, -1)
        _join_neighbours(*arguments, is_core, parents, nearest, stop)
        is_border = nearest >= 0
        parents[is_border] = parents[nearest[is_border]]
        return first + named_by_smallest(parents)

    def _linked(self, linkage: Linkage, first: int, last: int, stop: StopFlag) -> NDArray[np.int64]:
        """(last - first,) labels of COMPLETE and AVERAGE."""
        components = self._joined(linkage._replace(method=SINGLE, least_neighbours=2), first, last, stop)
        rounds = LinkageRounds(self._vectors, self._ends, components, first, linkage)
        while not stop[0] and (groups := rounds.groups()) is not None:
            rounds.take(self._merged(groups, linkage.method, stop))
        return rounds.labels

    def _merged(self, groups: Groups, method: int, stop: StopFlag) -> NDArray[np.int64]:
        """(k,) of each member the place of the smallest one of its cluster."""
        labels = np.arange(len(groups.members))
        is_own = groups.vectors is self._vectors
        squares = self._squares if is_own else _squares_of(groups.vectors)
        table = np.zeros(self._n_bins, np.int16)
        dtype = np.int32 if method == COMPLETE else np.int64

        def link(chosen: NDArray[np.int64]) -> None:
            cells = np.empty(int(groups.sizes[chosen].max()) ** 2, dtype)
            _link_groups(
                *groups.vectors, squares, groups.ends, groups.members, groups.starts, groups.least, groups.counts, method != COMPLETE,
                chosen, table, cells, labels, stop,
            )  # fmt: skip

        is_large = groups.sizes > _LARGE
        if len(small := np.flatnonzero(~is_large)):
            link(small)
        for group in np.flatnonzero(is_large):
            with self._large:
                link(np.array([group]))
        return labels


def _squares_of(vectors: VectorArrays) -> NDArray[np.int64]:
    squares = np.zeros(len(vectors.offsets) - 1, np.int64)
    _sum_squares(vectors.offsets, vectors.weights, squares)
    return squares


def _n_bins(vectors: VectorArrays) -> int:
    return int(vectors.bins.max()) + 1 if len(vectors.bins) else 1
