"""Preprocessing of fragment spectra: removal of noise, and scaling of intensities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

__all__ = ["TRANSFORM_LOG", "TRANSFORM_NONE", "TRANSFORM_RANK", "TRANSFORM_SQUARE_ROOT", "PreprocessingRules", "preprocess_spectra"]

TRANSFORM_NONE, TRANSFORM_SQUARE_ROOT, TRANSFORM_LOG, TRANSFORM_RANK = 0, 1, 2, 3
_ISOTOPE_SPACING = 1.0033548378
_CORRELATION_WINDOWS = 10
_CORRELATION_HEIGHT = 50.0


class PreprocessingRules(NamedTuple):
    """Rules for the selection and the weights of peaks.

    Attributes
    ----------
    peaks_per_window, window_width
        Number of most intense peaks that are retained in each window of width `window_width` (thomson).
    removal_width
        Peaks within this distance (thomson) of the precursor, or of its charge-reduced forms (electron transfer), are removed; 0 removes
        none.
    tolerance_absolute, tolerance_relative
        Fragment tolerance, for finding isotope peaks.
    deisotope
        True to remove peaks that are explained as an isotope peak (charge 1 or 2) of a more intense peak.
    transform
        Transformation of intensities: one of the TRANSFORM constants.
    minimum_mz
        Peaks with a lower m/z are removed.
    """

    peaks_per_window: int
    window_width: float
    removal_width: float
    tolerance_absolute: float
    tolerance_relative: float
    deisotope: bool
    transform: int
    minimum_mz: float


@njit(nogil=True, cache=True)
def preprocess_spectra(peaks, precursor_mz, precursor_charge, first, last, rules, out_count, out_mz, out_weight, out_correlation):
    """Select and weight the informative peaks of the spectra `first:last`.

    Parameters
    ----------
    peaks
        `PeakArrays`, as read.
    precursor_mz, precursor_charge : (n,) float64
        Precursor m/z in thomson, and precursor charge, int64, 0 if unknown.
    rules
        `PreprocessingRules`.
    out_count : (n,) int64
        Output; number of retained peaks.
    out_mz, out_weight, out_correlation
        Output, written at the offsets of the input. The squared weights of a spectrum sum to 1; the correlation weights are those of Comet:
        square roots, scaled so that the maximum in each of ten equal windows is 50.
    """
    offsets, mz, intensity = peaks
    peaks_per_window, window_width, removal_width, tolerance_absolute, tolerance_relative, deisotope, transform, minimum_mz = rules
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    keep = np.empty(longest, np.bool_)
    window_top = np.empty(max(1, peaks_per_window), np.float32)
    for s in range(first, last):
        low, high = offsets[s], offsets[s + 1]
        n = high - low
        for i in range(n):
            keep[i] = mz[low + i] >= minimum_mz
        if removal_width > 0:
            charge = max(1, precursor_charge[s])
            for z in range(1, charge + 1):
                centre = precursor_mz[s] * charge / z  # a captured electron removes one charge but not the mass of the proton
                for i in range(n):
                    if abs(mz[low + i] - centre) <= removal_width:
                        keep[i] = False
        if deisotope:
            _drop_isotopes(mz, intensity, low, n, tolerance_absolute, tolerance_relative, keep)
        # The threshold of a window is its peaks_per_window-th largest intensity, found by insertion into a short sorted list.
        start = 0
        while start < n:
            window = np.int64(mz[low + start] / window_width)
            stop, result = start, 0
            while stop < n and np.int64(mz[low + stop] / window_width) == window:
                if keep[stop]:
                    value = intensity[low + stop]
                    if result < peaks_per_window or value > window_top[result - 1]:
                        position = min(result, peaks_per_window - 1)
                        while position > 0 and window_top[position - 1] < value:
                            window_top[position] = window_top[position - 1]
                            position -= 1
                        window_top[position] = value
                        result = min(result + 1, peaks_per_window)
                stop += 1
            if result == peaks_per_window:
                threshold, workspace = window_top[result - 1], 0
                for position in range(result):
                    workspace += window_top[position] == threshold
                for i in range(start, stop):
                    if keep[i]:
                        value = intensity[low + i]
                        if value == threshold and workspace > 0:
                            workspace -= 1
                        elif value <= threshold:
                            keep[i] = False
            start = stop
        count = np.int64(0)
        for i in range(n):
            if keep[i]:
                out_mz[low + count] = mz[low + i]
                out_weight[low + count] = intensity[low + i]
                count += 1
        out_count[s] = count
        _correlation_weights(out_mz, out_weight, low, count, out_correlation)
        _transform(out_weight, low, count, transform)


@njit(nogil=True, cache=True)
def _drop_isotopes(mz, intensity, low, n, tolerance_absolute, tolerance_relative, keep):
    for i in range(n):
        for z in range(1, 3):
            target = mz[low + i] + _ISOTOPE_SPACING / z
            tolerance = tolerance_absolute + tolerance_relative * target
            # For an average peptide of mass m, the second isotope peak has about m / 1800 of the intensity of the first.
            allowed = intensity[low + i] * max(0.6, 1.3 * mz[low + i] * z / 1800.0)
            for j in range(i + 1, n):
                difference = mz[low + j] - target
                if difference > tolerance:
                    break
                if difference >= -tolerance and intensity[low + j] <= allowed:
                    keep[j] = False


@njit(nogil=True, cache=True)
def _correlation_weights(mz, raw, low, count, out):
    if count == 0:
        return
    width = (mz[low + count - 1] + 1.0) / _CORRELATION_WINDOWS
    start = 0
    while start < count:
        window = np.int64(mz[low + start] / width)
        stop, largest = start, np.float32(0)
        while stop < count and np.int64(mz[low + stop] / width) == window:
            largest = max(largest, raw[low + stop])
            stop += 1
        scale = _CORRELATION_HEIGHT / np.sqrt(largest)
        for i in range(start, stop):
            out[low + i] = np.sqrt(raw[low + i]) * scale
        start = stop


@njit(nogil=True, cache=True)
def _transform(weight, low, count, transform):
    if transform == TRANSFORM_SQUARE_ROOT:
        for i in range(low, low + count):
            weight[i] = np.sqrt(weight[i])
    elif transform == TRANSFORM_LOG:
        for i in range(low, low + count):
            weight[i] = np.log(1.0 + weight[i])
    elif transform == TRANSFORM_RANK:
        raw = weight[low : low + count].copy()
        for i in range(count):
            rank = 1
            for j in range(count):
                rank += raw[j] < raw[i]
            weight[low + i] = rank / count
    total = 0.0
    for i in range(low, low + count):
        total += np.float64(weight[i]) * weight[i]
    if total > 0:
        scale = 1.0 / np.sqrt(total)
        for i in range(low, low + count):
            weight[i] *= scale
