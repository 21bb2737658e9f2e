"""Sums of the vectors of each cluster."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["sum_vectors"]


@njit(nogil=True, cache=True, error_model="numpy")
def sum_vectors(vectors, n_bins, members, member_offsets, counts, length, most, sums):
    """Write the normalised sum of the members of each cluster, limited to its largest elements.

    Clusters are processed one after the other: each element of a member is read three times, and only bins that occur in a cluster are
    sorted.

    Parameters
    ----------
    vectors
        `VectorArrays`.
    n_bins
        Number of bins; all bin indices are smaller.
    members : (m,) int64
        Indices of the vectors of each cluster, from its `member_offsets`, (n + 1,) int64.
    counts : (m,) int64
        Number of times that each member is counted.
    length : float64
        Length (Euclidean norm) of each sum.
    most
        Maximum number of elements of a sum: the largest elements are selected, of equal elements the first.
    sums
        `VectorArrays` of n vectors, output; `bins` and `weights` must have space for the elements of all members.
    """
    offsets, bins, weights = vectors
    out_offsets, out_bins, out_weights = sums
    table, seen = np.zeros(n_bins, np.int64), np.empty(n_bins, np.int32)
    end = np.int64(0)
    out_offsets[0] = 0
    for cluster in range(len(member_offsets) - 1):
        n_seen = 0
        for k in range(member_offsets[cluster], member_offsets[cluster + 1]):
            for i in range(offsets[members[k]], offsets[members[k] + 1]):
                if table[bins[i]] == 0:
                    seen[n_seen] = bins[i]
                    n_seen += 1
                table[bins[i]] += weights[i] * counts[k]
        seen_bins = seen[:n_seen]
        seen_bins.sort()
        square = 0.0
        for b in seen_bins:
            square += np.float64(table[b]) * np.float64(table[b])
        factor = length / np.sqrt(square) if square > 0 else 0.0
        begin = end
        for b in seen_bins:
            weight = np.int64(np.floor(np.float64(table[b]) * factor + 0.5))
            table[b] = 0
            if weight > 0:
                out_bins[end], out_weights[end] = b, weight
                end += 1
        if end - begin > most:
            end = _keep_largest(out_bins, out_weights, begin, end, most)
        out_offsets[cluster + 1] = end


@njit(nogil=True, cache=True, error_model="numpy")
def _keep_largest(bins, weights, begin, end, most):
    """Retain the `most` largest elements of `begin:end` in order (of equal elements the first); return the new end."""
    of_weight = np.zeros(np.iinfo(np.int16).max + 1, np.int64)
    for i in range(begin, end):
        of_weight[weights[i]] += 1
    least, more = len(of_weight) - 1, 0
    while more + of_weight[least] < most:
        more += of_weight[least]
        least -= 1
    equal, retained = most - more, begin
    for i in range(begin, end):
        if weights[i] > least or (weights[i] == least and equal > 0):
            equal -= weights[i] == least
            bins[retained], weights[retained] = bins[i], weights[i]
            retained += 1
    return retained
