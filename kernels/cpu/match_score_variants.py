"""Match scores of one query by methods of Carroll's thesis that need no index.

* Lists (Algorithm 6): the mass lists of a pair are merged twice, without and with the shift.
* Vector (Algorithm 8): the query is a bit vector, in which each mass of a candidate is looked up twice.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["score_by_lists", "score_by_vector"]


@njit(nogil=True, cache=True)
def _count_equal(masses, first, last, others, other_first, other_last, delta):
    """Return the number of common masses of two ascending lists, the second being shifted by `delta`."""
    n = 0
    while first < last and other_first < other_last:
        mass, other = np.int64(masses[first]), np.int64(others[other_first]) + delta
        n += mass == other
        first += mass <= other
        other_first += other <= mass
    return n


@njit(nogil=True, cache=True)
def score_by_lists(queries, q, candidates, first, last, scores, stop):
    """Write the match scores of query q with the candidates `first:last` to `scores` (last - first,), by merging lists."""
    begin, end = queries.offsets[q], queries.offsets[q + 1]
    for j in range(first, last):
        if stop[0]:
            return
        low, high = candidates.offsets[j], candidates.offsets[j + 1]
        delta = np.int64(queries.precursors[q]) - np.int64(candidates.precursors[j])
        n = _count_equal(queries.masses, begin, end, candidates.masses, low, high, np.int64(0))
        scores[j - first] = n + _count_equal(queries.masses, begin, end, candidates.masses, low, high, delta)


@njit(nogil=True, cache=True)
def score_by_vector(queries, q, candidates, first, last, scores, stop):
    """Write the match scores of query q with the candidates `first:last` to `scores` (last - first,), with the query as a bit vector."""
    most = np.int64(queries.precursors[q])
    bits = np.zeros(max(0, most) // 64 + 1, np.uint64)
    for i in range(queries.offsets[q], queries.offsets[q + 1]):
        mass = np.uint64(queries.masses[i])
        bits[mass >> np.uint64(6)] |= np.uint64(1) << (mass & np.uint64(63))
    for j in range(first, last):
        if stop[0]:
            return
        delta, n = most - np.int64(candidates.precursors[j]), np.uint64(0)
        for i in range(candidates.offsets[j], candidates.offsets[j + 1]):
            mass = np.int64(candidates.masses[i])
            if mass < most:
                n += bits[np.uint64(mass) >> np.uint64(6)] >> (np.uint64(mass) & np.uint64(63)) & np.uint64(1)
            if mass + delta >= 0:
                mass += delta
                n += bits[np.uint64(mass) >> np.uint64(6)] >> (np.uint64(mass) & np.uint64(63)) & np.uint64(1)
        scores[j - first] = n
