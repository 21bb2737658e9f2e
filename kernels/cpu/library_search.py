"""Search of the most similar reference of each spectrum by cosine or spectral entropy on the CPU (`proteoscope.kernels.library_layouts`).

Peaks of a spectrum are so far apart that each matches at most one peak of the other; one pass over both lists thus finds all matches. If
fragments may be shifted by the mass difference (the shifted dot product of Bittremieux et al. 2018, J Proteome Res 17:3463), a peak may
match two peaks, unshifted and shifted. Conflicting matches then form paths that alternate between peaks of reference and query in steps
of the difference. The best matches of a path (a maximum-weight matching) are used, so that no peak counts twice.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import StopFlag, equal_partitions
from proteoscope.kernels.library_layouts import ENTROPY_SCALE, ENTROPY_TOTAL, MOST_PEAKS, Matching, PeakLists, Pools, entropy_table

__all__ = ["LibrarySearch"]

_PAIRS_OF_PARTITION = 400_000.0  # comparisons per partition: about 0.1 s on one thread
_PARTITIONS_OF_THREAD = 8
_PER_QUERY = 5.0  # fixed time per query, in units of one comparison with a reference


def search_costs(pools: Pools) -> NDArray[np.float64]:
    """Return the costs of queries, (q,): the number of compared references plus a constant."""
    return _PER_QUERY + np.maximum(pools.high - pools.low, 0).sum(axis=1).astype(np.float64)


class _Paths(NamedTuple):
    """Workspace of matches with shifts (the paths are defined in the docstring of the module).

    `state` (MOST_PEAKS, 2) int64 has, for each query peak, the best sums of paths that end there, without and with a match of this peak.
    An element is valid if its `stamp` is the number of the current pair of spectra.
    """

    state: NDArray[np.int64]
    stamp: NDArray[np.int64]


class _SearchedReferences(NamedTuple):
    """References on the device: peaks, masses and sums of squared weights."""

    peaks: PeakLists
    mass: NDArray[np.int32]
    squares: NDArray[np.int64]


class _SearchResults(NamedTuple):
    """Output arrays of `LibrarySearch.search`."""

    reference: NDArray[np.int64]
    similarity: NDArray[np.float64]
    matched: NDArray[np.int32]


@njit(nogil=True, cache=True)
def _width(mz, matching):
    """Return the maximum distance between a reference peak at `mz` and a matching peak, in units of m/z."""
    return np.int64(matching.absolute) + np.int64(mz) * np.int64(matching.relative) // np.int64(1_000_000_000)


@njit(nogil=True, cache=True)
def _worth(a, b, table):
    """Return the contribution of two matching peaks to the similarity, from `table` if it is not empty."""
    if len(table) > 0:
        return np.int64(table[a + b]) - np.int64(table[a]) - np.int64(table[b])
    return np.int64(a) * np.int64(b)


@njit(nogil=True, cache=True)
def _similarity(total, query_square, other, matching):
    """Return the similarity for a sum of contributions; `query_square` and `other` are the sums of squared weights of both spectra."""
    if matching.is_entropy:
        # Rounding errors may give slightly more than 1.
        return min(1.0, np.float64(total) / (2.0 * ENTROPY_TOTAL * ENTROPY_SCALE))
    return min(1.0, np.float64(total) / np.sqrt(np.float64(query_square) * np.float64(other)))


@njit(nogil=True, cache=True)
def _plain(mz, weight, low, high, references, first, last, matching, table):
    """Compare the query peaks `low:high` and the reference peaks `first:last` without a shift.

    Return the sum of contributions of matching peaks, and the number of matches.
    """
    total, matched, i = np.int64(0), 0, low
    for j in range(first, last):
        position = np.int64(references.mz[j])
        width = _width(position, matching)
        while i < high and mz[i] < position - width:
            i += 1
        if i == high:
            break
        if mz[i] <= position + width:
            total += _worth(weight[i], references.weight[j], table)
            matched += 1
            i += 1
    return total, matched


@njit(nogil=True, cache=True)
def _shifted(queries, low, high, references, first, last, shift, matching, table, paths, mark):
    """Return the maximum sum of contributions of peaks that match unshifted or shifted by `shift` units, and the number of matches.

    `paths` is a `_Paths`, and `mark` is the number of this pair of spectra.
    """
    mz, weight = queries.mz, queries.weight
    state, stamp = paths
    n, m = high - low, last - first
    total, matched, at, moved = np.int64(0), 0, 0, 0
    for k in range(m):
        # Walk along each path in the direction of the shift.
        j = first + k if shift > 0 else last - 1 - k
        position = np.int64(references.mz[j])
        width = _width(position, matching)
        here, there = -1, -1
        while at < n:
            i = low + at if shift > 0 else high - 1 - at
            distance = np.int64(mz[i]) - position if shift > 0 else position - np.int64(mz[i])
            if distance >= -width:
                if distance <= width:
                    here = i
                break
            at += 1
        goal = position + shift
        while moved < n:
            i = low + moved if shift > 0 else high - 1 - moved
            distance = np.int64(mz[i]) - goal if shift > 0 else goal - np.int64(mz[i])
            if distance >= -width:
                if distance <= width:
                    there = i
                break
            moved += 1
        if here < 0 and there < 0:
            continue
        matched += 1
        free, most = np.int64(0), np.int64(0)  # sums of the path: without the peak of the query at this position, and overall
        with_peak = np.int64(0)
        if here >= 0:
            if stamp[here - low] == mark:
                free, most = state[here - low, 0], state[here - low, 1]
            with_peak = free + _worth(weight[here], references.weight[j], table)
        best = max(most, with_peak)
        if there >= 0:
            further = max(best, most + _worth(weight[there], references.weight[j], table))
            state[there - low, 0], state[there - low, 1], stamp[there - low] = best, further, mark
            total += further - most
        else:
            total += best - most
    return total, matched


@njit(nogil=True, cache=True)
def _search(queries, query_mass, held, pools, matching, table, first, last, answer, stop):
    """Find the most similar reference of each of the queries `first:last` and write it to `answer` (see `LibrarySearch.search`)."""
    result, similarity, matched = answer
    references, reference_mass, squares = held
    paths = _Paths(np.empty((MOST_PEAKS, 2), np.int64), np.zeros(MOST_PEAKS, np.int64))
    mark = np.int64(0)
    for q in range(first, last):
        if stop[0]:
            return
        low, high, query_square = queries.offsets[q], queries.offsets[q + 1], np.int64(0)
        for i in range(low, high):
            query_square += np.int64(queries.weight[i]) * np.int64(queries.weight[i])
        result[q], similarity[q], matched[q] = -1, 0.0, 0
        for r in range(pools.low.shape[1]):
            for c in range(pools.low[q, r], pools.high[q, r]):
                begin, end = references.offsets[c], references.offsets[c + 1]
                if matching.is_shifted:
                    shift = np.int64(query_mass[q]) - np.int64(reference_mass[c])
                    if abs(shift) <= matching.nearest:
                        continue
                    if shift == 0:
                        total, n = _plain(queries.mz, queries.weight, low, high, references, begin, end, matching, table)
                    else:
                        mark += 1
                        total, n = _shifted(queries, low, high, references, begin, end, shift, matching, table, paths, mark)
                else:
                    total, n = _plain(queries.mz, queries.weight, low, high, references, begin, end, matching, table)
                if n < matching.least or total <= 0:
                    continue
                value = _similarity(total, query_square, squares[c], matching)
                if value > similarity[q] or (value == similarity[q] and c < result[q]):
                    result[q], similarity[q], matched[q] = c, value, n


@njit(nogil=True, cache=True)
def _squares(lists, out):
    """Write the sum of squared weights of each spectrum to `out`."""
    for s in range(len(out)):
        total = np.int64(0)
        for i in range(lists.offsets[s], lists.offsets[s + 1]):
            total += np.int64(lists.weight[i]) * np.int64(lists.weight[i])
        out[s] = total


class LibrarySearch:
    """Search on the CPU for the most similar references of spectra.

    Parameters
    ----------
    device
        CPU whose threads search.
    references
        Peaks of the references.
    mass : (n,) int32
        Masses of the references, in `proteoscope.kernels.library_layouts.UNITS`.

    Attributes
    ----------
    pairs_of_partition
        Number of (query, reference) pairs that a thread compares between two checks for cancellation.
    """

    pairs_of_partition = _PAIRS_OF_PARTITION

    def __init__(self, device: Processor, references: PeakLists, mass: NDArray[np.int32]) -> None:
        self._device, self._references, self._mass = device, references, mass
        self._squares = np.empty(len(mass), np.int64)
        _squares(references, self._squares)

    def search(
        self,
        queries: PeakLists,
        mass: NDArray[np.int32],
        pools: Pools,
        matching: Matching,
        reference: NDArray[np.int64],
        similarity: NDArray[np.float64],
        matched: NDArray[np.int32],
        first: int = 0,
        last: int | None = None,
    ) -> Generator[int, None, None]:
        """Find for each of the queries `first:last` the most similar reference in its ranges of references; of equal ones, the first.

        Parameters
        ----------
        mass : (q,) int32
            Masses of the queries, in the units of the references.
        pools
            Ranges of references to compare with each query.
        reference : (q,) int64
            Output; rows `first:last` are written. -1 if no reference has enough matched peaks.
        similarity : (q,) float64
            Output; similarity in [0, 1].
        matched : (q,) int32
            Output; number of matched peaks.

        Yields
        ------
        End of the finished range, at least every tenth of a second. Closing the generator stops the work.
        """
        last = len(mass) if last is None else last
        table = entropy_table() if matching.is_entropy else np.empty(0, np.int32)

        held, answer = _SearchedReferences(self._references, self._mass, self._squares), _SearchResults(reference, similarity, matched)

        def work(begin: int, end: int, stop: StopFlag) -> None:
            _search(queries, mass, held, pools, matching, table, first + begin, first + end, answer, stop)

        some = Pools(pools.low[first:last], pools.high[first:last])
        chunks = equal_partitions(
            search_costs(some), self._device.threads, maximum_cost=self.pairs_of_partition, per_worker=_PARTITIONS_OF_THREAD
        )
        for done in self._device.run(work, chunks, 0):
            yield first + done
        if first == last:
            yield last
