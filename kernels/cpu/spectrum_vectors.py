"""Conversion of spectra to sparse vectors: binning by m/z, transformation of intensities, scaling, and rounding to integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from proteoscope.kernels.clustering_layouts import UNIT_LENGTH
from proteoscope.kernels.cpu.elementary import logarithm
from proteoscope.kernels.cpu.preprocessing import TRANSFORM_LOG, TRANSFORM_RANK, TRANSFORM_SQUARE_ROOT

__all__ = ["MERGE_LARGEST", "MERGE_MEAN", "MERGE_SUM", "VectorRules", "copy_vectors", "fill_vectors"]

MERGE_SUM, MERGE_MEAN, MERGE_LARGEST = 0, 1, 2


class VectorRules(NamedTuple):
    """Rules for the selection and the weights of the peaks of a vector.

    Attributes
    ----------
    width
        Width of a bin (thomson).
    lowest, highest
        Peaks from `lowest` to below `highest` (thomson) are selected; the first bin starts at `lowest`.
    removal
        Peaks within this distance (thomson) of the precursor are excluded; 0 excludes none.
    per_window, window
        Number of most intense peaks to select in each `window` (thomson); 0 selects all.
    maximum_peaks
        Maximum number of peaks; the most intense peaks are selected, at equal intensity the peaks with lower m/z.
    minimum_peaks
        Spectra with fewer peaks get an empty vector.
    transform
        Transformation of intensities: none, square root, logarithm of 1 + intensity, or rank.
    merging
        MERGE constant for several peaks in a bin; applied before the transformation.
    spread
        Fraction of a bin's weight added to each neighbouring bin.
    """

    width: float
    lowest: float
    highest: float
    removal: float
    per_window: int
    window: float
    maximum_peaks: int
    minimum_peaks: int
    transform: int
    merging: int
    spread: float


@njit(nogil=True, cache=True)
def fill_vectors(peaks, precursor_mz, first, last, rules, factor, out_count, out_bins, out_weights):
    """Write the vectors of the spectra `first:last`.

    Parameters
    ----------
    peaks
        `PeakArrays`, as read.
    precursor_mz : (n,) float64
        Precursor m/z in thomson, NaN if unknown.
    rules
        `VectorRules`.
    factor : (bins,) float64
        Factor of the weight of each bin.
    out_count : (n,) int64
        Output; number of elements of each vector.
    out_bins, out_weights
        Output, int32 and int16; written from three times the offset of the spectrum on, or from the offset if `spread` is 0.
    """
    offsets, mz, intensity = peaks
    width, lowest, highest, removal, per_window, window, maximum_peaks, minimum_peaks, transform, merging, spread = rules
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    workspace = 3 if spread > 0 else 1
    retained = np.empty(longest, np.int64)
    top = np.empty(max(maximum_peaks, per_window), np.float32)
    height = np.empty(longest, np.float64)
    bins = np.empty(workspace * longest + 2, np.int64)
    value = np.empty(workspace * longest + 2, np.float64)
    for s in range(first, last):
        n = np.int64(0)
        for i in range(offsets[s], offsets[s + 1]):
            if lowest <= mz[i] < highest and not (removal > 0 and abs(mz[i] - precursor_mz[s]) <= removal):
                retained[n] = i
                n += 1
        if per_window > 0:
            n = _in_windows(mz, intensity, retained, n, per_window, window, top)
        out_count[s] = 0
        if n < max(1, minimum_peaks):
            continue
        if n > maximum_peaks:
            n = _most_intense(intensity, retained, n, maximum_peaks, top)
        n_bins = _merged(mz, intensity, retained, n, width, lowest, merging, bins, height)
        _transformed(height, n_bins, transform)
        if spread > 0:
            n_bins = _spread(bins, height, n_bins, spread, np.int64((highest - lowest) / width), value)
        else:
            value[:n_bins] = height[:n_bins]
        total = 0.0
        for i in range(n_bins):
            value[i] *= factor[bins[i]]
            total += value[i] * value[i]
        if not total > 0:
            continue
        scale, at, count = UNIT_LENGTH / np.sqrt(total), workspace * offsets[s], 0
        for i in range(n_bins):
            weight = np.int64(value[i] * scale + 0.5)
            if weight > 0:
                out_bins[at + count], out_weights[at + count] = bins[i], weight
                count += 1
        out_count[s] = count


@njit(nogil=True, cache=True)
def _most_intense(intensity, peaks, n, most, top):
    """Select the `most` most intense of `n` peaks (at equal intensity the lower m/z) in order of m/z; `top` is a heap, (most,) float32."""
    for i in range(n):  # min-heap of the largest intensities
        value = intensity[peaks[i]]
        if i < most:
            at = i
            while at > 0 and top[(at - 1) // 2] > value:
                top[at] = top[(at - 1) // 2]
                at = (at - 1) // 2
            top[at] = value
        elif value > top[0]:
            at = 0
            while True:
                child = 2 * at + 1
                if child + 1 < most and top[child + 1] < top[child]:
                    child += 1
                if child >= most or top[child] >= value:
                    break
                top[at] = top[child]
                at = child
            top[at] = value
    least, remaining = top[0], most
    for i in range(n):
        remaining -= intensity[peaks[i]] > least
    count = 0
    for i in range(n):
        value = intensity[peaks[i]]
        if value > least or (value == least and remaining > 0):
            remaining -= value == least
            peaks[count] = peaks[i]
            count += 1
    return most


@njit(nogil=True, cache=True)
def _in_windows(mz, intensity, peaks, n, per_window, window, top):
    """Select the most intense of `n` peaks in each m/z window, in order of m/z; return their number."""
    taken, start = 0, 0
    while start < n:
        stop = start
        while stop < n and np.int64(mz[peaks[stop]] / window) == np.int64(mz[peaks[start]] / window):
            stop += 1
        some = stop - start
        window_peaks = peaks[start:stop].copy()
        if some > per_window:
            some = _most_intense(intensity, window_peaks, some, per_window, top)
        for k in range(some):
            peaks[taken + k] = window_peaks[k]
        taken, start = taken + some, stop
    return taken


@njit(nogil=True, cache=True)
def _merged(mz, intensity, peaks, n, width, lowest, merging, bins, height):
    """Merge peaks sorted by m/z into bins; return the number of bins."""
    n_bins, in_bin = 0, 0
    for k in range(n):
        i = peaks[k]
        b = np.int64((mz[i] - lowest) / width)
        if n_bins > 0 and bins[n_bins - 1] == b:
            in_bin += 1
            if merging == MERGE_LARGEST:
                height[n_bins - 1] = max(height[n_bins - 1], np.float64(intensity[i]))
            else:
                height[n_bins - 1] += intensity[i]
        else:
            if merging == MERGE_MEAN and n_bins > 0:
                height[n_bins - 1] /= in_bin
            bins[n_bins], height[n_bins], in_bin = b, intensity[i], 1
            n_bins += 1
    if merging == MERGE_MEAN and n_bins > 0:
        height[n_bins - 1] /= in_bin
    return n_bins


@njit(nogil=True, cache=True)
def _transformed(height, n, transform):
    if transform == TRANSFORM_SQUARE_ROOT:
        for i in range(n):
            height[i] = np.sqrt(height[i])
    elif transform == TRANSFORM_LOG:
        for i in range(n):
            height[i] = logarithm(1.0 + height[i])
    elif transform == TRANSFORM_RANK:
        raw = height[:n].copy()
        order = np.sort(raw)
        for i in range(n):
            height[i] = (1.0 + np.searchsorted(order, raw[i])) / n


@njit(nogil=True, cache=True)
def _spread(bins, height, n, fraction, last_bin, value):
    """Add `fraction` of each bin to both neighbouring bins; return the new number of bins, for which `bins` and `value` need space."""
    source_bins = bins[:n].copy()
    count = 0
    for i in range(n):
        for step in range(-1, 2):
            b = source_bins[i] + step
            if b < 0 or b > last_bin:
                continue
            part = height[i] if step == 0 else fraction * height[i]
            # Neighbouring bins of this peak may already have been added for the last two peaks.
            position = count
            while position > 0 and bins[position - 1] > b:
                position -= 1
            if position > 0 and bins[position - 1] == b:
                value[position - 1] += part
            else:
                for later in range(count, position, -1):
                    bins[later], value[later] = bins[later - 1], value[later - 1]
                bins[position], value[position] = b, part
                count += 1
    return count


@njit(nogil=True, cache=True)
def copy_vectors(starts, offsets, bins, weights, first, last, out_bins, out_weights):
    """Copy the vectors `first:last` from `starts` (int64, start of each) to `offsets`."""
    for s in range(first, last):
        at, start = offsets[s], starts[s]
        for i in range(offsets[s + 1] - at):
            out_bins[at + i], out_weights[at + i] = bins[start + i], weights[start + i]
