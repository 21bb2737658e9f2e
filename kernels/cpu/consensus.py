"""Representatives of clusters of vectors, similarities of members to the representatives, and mean spectra of clusters."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["BEST", "MAXIMUM_SIMILAR", "MEAN", "count_mean_peaks", "describe_clusters", "mean_peaks"]

MAXIMUM_SIMILAR, BEST, MEAN = 0, 1, 2


@njit(nogil=True, cache=True)
def describe_clusters(vectors, n_bins, member_offsets, members, choice, brightness, first, last, representative, similarity):
    """Find the representative of each of the clusters `first:last`, and the cosine of each member with it or with the sum of the members.

    Parameters
    ----------
    vectors
        `VectorArrays`.
    n_bins
        Number of bins; all bin indices are smaller.
    member_offsets, members : int64
        CSR: indices of the vectors of each cluster, ascending.
    choice
        The representative is the member with the largest cosine with the sum of all members (MAXIMUM_SIMILAR, MEAN) or the most intense
        member (BEST); of equal members, the first. With MEAN, `similarity` compares members with the sum, otherwise with the
        representative.
    brightness : ndarray of float64, shape (n,)
        Intensity of each vector, used by BEST.
    representative : (clusters,) int64
        Output; index of a vector.
    similarity : (n,) float64
        Output: cosine of each vector with the representative or sum of its cluster; 1 for vectors without a cluster.
    """
    offsets, bins, weights = vectors
    table = np.zeros(n_bins, np.int64)
    for cluster in range(first, last):
        start, stop = member_offsets[cluster], member_offsets[cluster + 1]
        if stop - start == 1:
            representative[cluster] = members[start]
            similarity[members[start]] = 1.0
            continue
        for k in range(start, stop):
            for i in range(offsets[members[k]], offsets[members[k] + 1]):
                table[bins[i]] += weights[i]
        chosen, best = members[start], -1.0
        whole = 0.0
        for k in range(start, stop):
            v = members[k]
            dot, square = np.int64(0), np.int64(0)
            for i in range(offsets[v], offsets[v + 1]):
                dot += table[bins[i]] * weights[i]
                square += np.int64(weights[i]) * weights[i]
            whole += np.float64(dot)  # the sum of all dots is the square of the sum
            cosine = np.float64(dot) / np.sqrt(np.float64(square)) if square > 0 else 0.0
            similarity[v] = cosine
            value = brightness[v] if choice == BEST else cosine
            if value > best:
                chosen, best = v, value
        representative[cluster] = chosen
        if choice == MEAN:
            length = np.sqrt(whole)
            for k in range(start, stop):
                similarity[members[k]] = min(1.0, similarity[members[k]] / length) if length > 0 else 0.0
        for k in range(start, stop):
            for i in range(offsets[members[k]], offsets[members[k] + 1]):
                table[bins[i]] = 0
        if choice == MEAN:
            continue
        chosen_square = np.int64(0)
        for i in range(offsets[chosen], offsets[chosen + 1]):
            table[bins[i]] = weights[i]
            chosen_square += np.int64(weights[i]) * weights[i]
        for k in range(start, stop):
            v = members[k]
            dot, square = np.int64(0), np.int64(0)
            for i in range(offsets[v], offsets[v + 1]):
                dot += table[bins[i]] * weights[i]
                square += np.int64(weights[i]) * weights[i]
            length = np.sqrt(np.float64(square) * np.float64(chosen_square))
            similarity[v] = np.float64(dot) / length if length > 0 else np.float64(v == chosen)
        for i in range(offsets[chosen], offsets[chosen + 1]):
            table[bins[i]] = 0


@njit(nogil=True, cache=True)
def count_mean_peaks(peaks, member_offsets, members, width, fraction, first, last, count):
    """Write the number of peaks in the mean spectrum (see `mean_peaks`) of each of the clusters `first:last` to `count`, int64."""
    for cluster in range(first, last):
        peaks_mz, _, seen = _merged(peaks, members[member_offsets[cluster] : member_offsets[cluster + 1]], width)
        least = _least(member_offsets[cluster + 1] - member_offsets[cluster], fraction)
        for i in range(len(peaks_mz)):
            count[cluster] += seen[i] >= least


@njit(nogil=True, cache=True)
def mean_peaks(peaks, member_offsets, members, width, fraction, first, last, means):
    """Write the mean spectra of the clusters `first:last`.

    The intensities of each member are scaled to a sum of 1. Peaks closer than half of `width` (thomson) are merged at their
    intensity-weighted mean m/z, with the sum of intensities divided by the number of members. Peaks in less than `fraction` of the
    members are removed.

    Parameters
    ----------
    peaks
        `PeakArrays` of spectra.
    member_offsets, members
        CSR: indices of the spectra of each cluster.
    means
        `PeakArrays`, output, with float64 `intensity`; `offsets` from `count_mean_peaks`.
    """
    for cluster in range(first, last):
        of = members[member_offsets[cluster] : member_offsets[cluster + 1]]
        peaks_mz, height, seen = _merged(peaks, of, width)
        least, at = _least(len(of), fraction), means.offsets[cluster]
        for i in range(len(peaks_mz)):
            if seen[i] >= least:
                means.mz[at], means.intensity[at] = peaks_mz[i], height[i] / len(of)
                at += 1


@njit(nogil=True, cache=True)
def _least(n_members, fraction):
    return max(1, np.int64(np.ceil(fraction * n_members)))


@njit(nogil=True, cache=True)
def _merged(peaks, spectra, width):
    """Return the merged peaks of spectra: m/z, summed intensity, and number of merged peaks."""
    offsets, mz, intensity = peaks
    n = 0
    for s in spectra:
        n += offsets[s + 1] - offsets[s]
    all_mz, height = np.empty(n, np.float64), np.empty(n, np.float64)
    at = 0
    for s in spectra:
        total = 0.0
        for i in range(offsets[s], offsets[s + 1]):
            total += intensity[i]
        for i in range(offsets[s], offsets[s + 1]):
            all_mz[at], height[at] = mz[i], intensity[i] / total
            at += 1
    order = np.argsort(all_mz, kind="mergesort")
    out_mz, out_height, seen = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.int64)
    count, weighted = 0, 0.0
    for k in range(n):
        m, h = all_mz[order[k]], height[order[k]]
        if k == 0 or m - all_mz[order[k - 1]] > 0.5 * width:
            out_height[count], seen[count], weighted = 0.0, 0, 0.0
            count += 1
        out_height[count - 1] += h
        seen[count - 1] += 1
        weighted += h * m
        out_mz[count - 1] = weighted / out_height[count - 1]
    return out_mz[:count], out_height[:count], seen[:count]
