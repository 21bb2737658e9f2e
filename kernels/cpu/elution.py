"""Elution of ions: time range and area of an ion in its trace, summed over isotopes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "AGREEMENT",
    "APEX",
    "AREA",
    "BEGIN",
    "END",
    "N_VALUES",
    "POINTS",
    "TIME",
    "WIDTH",
    "ElutionRules",
    "Traces",
    "measure_elution",
    "measure_mass_errors",
]

AREA, APEX, TIME, BEGIN, END, WIDTH, POINTS, AGREEMENT = range(8)
N_VALUES = 8
"""Columns of the measurement of an ion: area (intensity x s), maximum intensity and its time (s), start and end (s), width at half height
(s), number of MS1 spectra with the ion, and cosine between the areas of the isotopes and the pattern."""


class Traces(NamedTuple):
    """Intensities of n ions, as one row of consecutive MS1 spectra per ion and isotope.

    Attributes
    ----------
    cells : float32
        Intensities, sorted by ion, isotope and MS1 spectrum.
    offset : (n,) int64
        Index of the first cell of each ion.
    first : (n,) int64
        Index of the MS1 spectrum of each ion's first cell.
    n_surveys : (n,) int64
        Number of MS1 spectra in the rows of each ion.
    times : (surveys,) float64
        Retention times of the MS1 spectra (s), ascending.
    pattern : ndarray of float64, shape (n, isotopes)
        Expected isotope pattern of each ion.
    """

    cells: NDArray[np.float32]
    offset: NDArray[np.int64]
    first: NDArray[np.int64]
    n_surveys: NDArray[np.int64]
    times: NDArray[np.float64]
    pattern: NDArray[np.float64]


class ElutionRules(NamedTuple):
    """Settings for finding the range in which an ion elutes.

    Attributes
    ----------
    maximum_gap
        Maximum number of consecutive MS1 spectra in which the ion may be missing.
    lowest
        Fraction of the apex height at which a trace ends.
    valley
        Maximum height of a valley that separates two summits, as a fraction of the lower summit.
    """

    maximum_gap: int
    lowest: float
    valley: float


@njit(nogil=True, cache=True)
def _total(traces, i, w):
    """Return the summed intensity of all isotopes of ion i in MS1 spectrum w; undetected isotopes are estimated from the pattern."""
    n_isotopes, count, offset = traces.pattern.shape[1], traces.n_surveys[i], traces.offset[i]
    seen, total, every = 0.0, 0.0, 0.0
    for k in range(n_isotopes):
        value = traces.cells[offset + k * count + w]
        every += traces.pattern[i, k]
        if value > 0:
            total += value
            seen += traces.pattern[i, k]
    return total * every / seen if seen > 0 else 0.0


@njit(nogil=True, cache=True)
def _outline(traces, i, gap):
    """Return the trace of ion i, one value per MS1 spectrum: the sum of its isotopes, after interpolation and 1-2-1 smoothing.

    The ion is missing in MS1 spectra without its main isotope. Gaps of up to `gap` such spectra are interpolated; in longer gaps the value
    is 0.
    """
    count, offset = traces.n_surveys[i], traces.offset[i]
    cells, main = traces.cells, np.argmax(traces.pattern[i])
    total, filled, shape = np.zeros(count), np.zeros(count), np.zeros(count)
    previous = -1
    for w in range(count):
        if cells[offset + main * count + w] <= 0:
            continue
        total[w] = _total(traces, i, w)
        filled[w] = total[w]
        if previous >= 0 and 1 < w - previous <= gap + 1:
            for between in range(previous + 1, w):
                part = (between - previous) / (w - previous)
                filled[between] = (1 - part) * total[previous] + part * total[w]
        previous = w
    for w in range(count):
        left = filled[w - 1] if w > 0 else 0.0
        right = filled[w + 1] if w + 1 < count else 0.0
        shape[w] = (left + 2 * filled[w] + right) / 4 if filled[w] > 0 else 0.0
    return shape


@njit(nogil=True, cache=True)
def _end(shape, apex, step, rules):
    """Return the index of the MS1 spectrum in which the peak with the maximum `apex` ends in the direction `step` (1 or -1)."""
    lowest, at = apex, apex
    while True:
        after = at + step
        if after < 0 or after >= len(shape) or shape[after] <= rules.lowest * shape[apex]:
            return at if shape[lowest] >= rules.valley * shape[at] else lowest
        if shape[after] < shape[lowest]:
            lowest = after
        elif shape[lowest] < rules.valley * min(shape[after], shape[apex]):
            return lowest
        at = after


@njit(nogil=True, cache=True)
def _crossing(traces, first, shape, apex, step, end):
    """Return the time (s) at which a peak decreases to half its height in the direction `step`, or the time of `end` if it does not."""
    half = shape[apex] / 2
    at = apex
    while at != end:
        after = at + step
        if shape[after] < half:
            part = (shape[at] - half) / (shape[at] - shape[after])
            return traces.times[first + at] + part * (traces.times[first + after] - traces.times[first + at])
        at = after
    return traces.times[first + at]


@njit(nogil=True, cache=True)
def _measure(traces, i, shape, apex, rules, out):
    """Write the measured values of the peak at `apex` of ion i to `out` (N_VALUES,)."""
    n_isotopes, count, first = traces.pattern.shape[1], traces.n_surveys[i], traces.first[i]
    main = np.argmax(traces.pattern[i])
    begin, end = _end(shape, apex, -1, rules), _end(shape, apex, 1, rules)
    areas = np.zeros(n_isotopes)
    previous, points, weight, centre = -1, 0, 0.0, 0.0
    highest, area, previous_total = 0.0, 0.0, 0.0
    for w in range(begin, end + 1):
        if traces.cells[traces.offset[i] + main * count + w] <= 0:
            continue
        points += 1
        total = _total(traces, i, w)
        if previous >= 0:
            area += (total + previous_total) / 2 * (traces.times[first + w] - traces.times[first + previous])
        previous_total = total
        for k in range(n_isotopes):
            value = traces.cells[traces.offset[i] + k * count + w]
            if previous >= 0:
                before = traces.cells[traces.offset[i] + k * count + previous]
                areas[k] += (value + before) / 2 * (traces.times[first + w] - traces.times[first + previous])
        highest = max(highest, total)
        if shape[w] >= shape[apex] / 2:
            weight += total
            centre += total * traces.times[first + w]
        previous = w
    across, area_square, pattern_square = 0.0, 0.0, 0.0
    for k in range(n_isotopes):
        across += areas[k] * traces.pattern[i, k]
        area_square += areas[k] ** 2
        pattern_square += traces.pattern[i, k] ** 2
    out[AREA], out[APEX], out[POINTS] = area, highest, points
    out[TIME] = centre / weight if weight > 0 else traces.times[first + apex]
    out[BEGIN], out[END] = traces.times[first + begin], traces.times[first + end]
    out[WIDTH] = _crossing(traces, first, shape, apex, 1, end) - _crossing(traces, first, shape, apex, -1, begin)
    out[AGREEMENT] = across / np.sqrt(area_square * pattern_square) if area_square > 0 else 0.0


@njit(nogil=True, cache=True)
def measure_elution(traces, anchor_offsets, anchors, reach, rules, begin, end, out):
    """Measure the ions `begin:end`.

    Parameters
    ----------
    traces
        `Traces`.
    rules
        `ElutionRules`.
    anchor_offsets : (n + 1,) int64
        Anchors (times, s) of ion i are ``anchors[anchor_offsets[i]:anchor_offsets[i + 1]]``. The trace is followed upwards from each anchor
        to a summit; the highest summit is measured.
    reach : (n,) float64
        If above 0, all summits within this time (s) of an anchor are compared instead. The measured summit has the largest product of
        height and eighth power of the isotope agreement.
    out : (n, N_VALUES) float64
        Output; rows of ions without a signal remain 0.
    """
    measured = np.zeros(N_VALUES)
    for i in range(begin, end):
        count, first = traces.n_surveys[i], traces.first[i]
        shape = _outline(traces, i, rules.maximum_gap)
        best = 0.0
        for a in range(anchor_offsets[i], anchor_offsets[i + 1]):
            if reach[i] > 0:
                low = max(np.searchsorted(traces.times, anchors[a] - reach[i]) - first, 1)
                high = min(np.searchsorted(traces.times, anchors[a] + reach[i]) - first, count - 1)
                for w in range(low, high):
                    if shape[w] > 0 and shape[w] >= shape[w - 1] and shape[w] > shape[w + 1]:
                        _measure(traces, i, shape, w, rules, measured)
                        value = measured[APEX] * measured[AGREEMENT] ** 8
                        if value > best:
                            best = value
                            out[i] = measured
                continue
            at = min(max(np.searchsorted(traces.times, anchors[a]) - first, 0), count - 1)
            # The ion may be missing in the MS1 spectra directly before and after the spectrum.
            for near in range(max(0, at - 1 - rules.maximum_gap), min(count, at + 2 + rules.maximum_gap)):
                if shape[near] > shape[at]:
                    at = near
            while True:
                if at + 1 < count and shape[at + 1] > shape[at]:
                    at += 1
                elif at > 0 and shape[at - 1] > shape[at]:
                    at -= 1
                else:
                    break
            if shape[at] > best:
                best = shape[at]
                _measure(traces, i, shape, at, rules, measured)
                out[i] = measured


@njit(nogil=True, cache=True)
def measure_mass_errors(mz, intensity, offsets, spectra, times, targets, widths, begin, end, out):
    """Measure the mean m/z error of each ion over the MS1 spectra of its trace, weighted by intensity.

    In each spectrum, the highest peak within the tolerance is used.

    Parameters
    ----------
    mz : (peaks,) float64
        m/z (Th), ascending within a spectrum.
    intensity : (peaks,) float32
        Intensities.
    offsets : (surveys + 1,) int64
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    spectra : (k,) int64
        Spectra to use.
    times : (k,) float64
        Retention times of these spectra (s), ascending.
    targets, widths : (n,) float64
        m/z of each ion's peak, and its tolerance (Th).
    begin, end : (n,) float64
        Start and end of each trace (s).
    out : (n,) float64
        Output: errors as fractions of the m/z; NaN without a peak.
    """
    for i in range(len(targets)):
        total, weight = 0.0, 0.0
        for k in range(np.searchsorted(times, begin[i]), np.searchsorted(times, end[i], side="right")):
            first, last = offsets[spectra[k]], offsets[spectra[k] + 1]
            highest, error = 0.0, 0.0
            for p in range(first + np.searchsorted(mz[first:last], targets[i] - widths[i]), last):
                if mz[p] > targets[i] + widths[i]:
                    break
                if intensity[p] > highest:
                    highest, error = intensity[p], mz[p] / targets[i] - 1
            total += highest * error
            weight += highest
        out[i] = total / weight if weight > 0 else np.nan
