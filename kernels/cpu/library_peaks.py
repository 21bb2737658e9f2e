"""Conversion of spectra to peak lists of integers for library search (`proteoscope.kernels.library_layouts`).

Spectra are cleaned as in Li et al. 2021 (Nature Methods 18:1524): peaks closer than the matching distance are merged, noise is removed, and
for the entropy similarity, intensities of a spectrum with a low entropy S are raised to the power 0.25 + S / 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.elementary import logarithm, power
from proteoscope.kernels.library_layouts import COSINE_LENGTH, ENTROPY_TOTAL, UNITS

__all__ = ["PeakRules", "copy_peaks", "fill_peaks"]

_LOW_ENTROPY = 3.0  # nats
_LEAST_POWER, _POWER_OF_ENTROPY = 0.25, 0.25
_SMALLEST = 1e-6  # fraction of the base peak; smaller peaks are always noise


class PeakRules(NamedTuple):
    """Rules for the selection and the weights of compared peaks.

    Attributes
    ----------
    absolute
        Absolute tolerance, in the units of `Matching`.
    relative
        Relative tolerance, in thousandths of ppm, as in `Matching`.
    lowest, highest
        m/z range of the peaks, thomson.
    removal
        Peaks within this distance (thomson) of the precursor are removed; 0 removes none.
    noise
        Fraction of the base peak below which peaks are considered noise.
    maximum_peaks
        Maximum number of peaks, at most `MOST_PEAKS`; the most intense peaks are selected.
    minimum_peaks
        Spectra with fewer peaks get an empty list.
    power
        Exponent of intensities for the cosine similarity.
    is_entropy
        True for the weights of the entropy similarity.
    """

    absolute: int
    relative: int
    lowest: float
    highest: float
    removal: float
    noise: float
    maximum_peaks: int
    minimum_peaks: int
    power: float
    is_entropy: bool


@njit(nogil=True, cache=True)
def _apart(first, second, rules):
    """Return True if two peaks are farther apart than twice the tolerance."""
    low, high = min(first, second), max(first, second)
    return high - low > 2 * (np.int64(rules.absolute) + high * np.int64(rules.relative) // np.int64(1_000_000_000))


@njit(nogil=True, cache=True)
def fill_peaks(peaks, precursor_mz, first, last, rules, out_count, out_mz, out_weight):
    """Write the peak lists of the spectra `first:last`.

    Parameters
    ----------
    peaks
        `PeakArrays`, as read.
    precursor_mz : (n,) float64
        Precursor m/z in thomson, NaN if unknown.
    rules
        `PeakRules`.
    out_count : (n,) int64
        Output; number of peaks of each list.
    out_mz, out_weight
        Output; int32 and uint16; each list starts at the offset of its spectrum.
    """
    offsets, mz, intensity = peaks
    longest = 0
    for s in range(first, last):
        longest = max(longest, offsets[s + 1] - offsets[s])
    position, height = np.empty(longest, np.int64), np.empty(longest, np.float64)
    state = np.empty(longest, np.int64)  # 0 free, 1 taken, 2 merged into another
    for s in range(first, last):
        n = np.int64(0)
        for i in range(offsets[s], offsets[s + 1]):
            if rules.lowest <= mz[i] <= rules.highest and not (rules.removal > 0 and abs(mz[i] - precursor_mz[s]) <= rules.removal):
                position[n], height[n] = np.int64(np.rint(mz[i] * UNITS)), np.float64(intensity[i])
                n += 1
        n = _merged(position, height, state, n, rules)
        out_count[s] = 0
        if n < max(1, rules.minimum_peaks):
            continue
        out_count[s] = _weighted(position, height, n, rules, offsets[s], out_mz, out_weight)


@njit(nogil=True, cache=True)
def _merged(position, height, state, n, rules):
    """Merge peaks closer than twice the tolerance, beginning at the most intense peak; retain the most intense merged peaks.

    The retained peaks are sorted by m/z. Return their number.
    """
    order = np.argsort(-height[:n], kind="mergesort")
    state[:n] = 0
    for k in range(n):
        i = order[k]
        if state[i]:
            continue
        state[i] = 1
        total = height[i]
        for step in (-1, 1):
            j = i + step
            while 0 <= j < n and not _apart(position[i], position[j], rules):
                if state[j] == 0:
                    state[j] = 2
                    total += height[j]
                j += step
        height[i] = total
    count = 0
    for i in range(n):
        if state[i] == 1:
            position[count], height[count] = position[i], height[i]
            count += 1
    order = np.argsort(-height[:count], kind="mergesort")
    least = 0.0 if count == 0 else height[order[0]] * max(rules.noise, _SMALLEST)
    state[:count] = 0
    for k in range(min(count, rules.maximum_peaks)):
        state[order[k]] = height[order[k]] >= least
    retained = 0
    for i in range(count):
        if state[i]:
            position[retained], height[retained] = position[i], height[i]
            retained += 1
    return retained


@njit(nogil=True, cache=True)
def _weighted(position, height, n, rules, at, out_mz, out_weight):
    """Write the m/z and weights of the peaks to the output; return the number of peaks with a non-zero weight."""
    exponent = rules.power
    if rules.is_entropy:
        total, entropy = height[:n].sum(), 0.0
        for i in range(n):
            fraction = height[i] / total
            entropy -= fraction * logarithm(fraction)
        exponent = 1.0 if entropy >= _LOW_ENTROPY else _LEAST_POWER + _POWER_OF_ENTROPY * entropy
    base = height[:n].max()
    norm = 0.0
    for i in range(n):
        # Relative to the base peak, so that no power overflows.
        height[i] = power(height[i] / base, exponent) if exponent != 1.0 else height[i] / base
        norm += height[i] if rules.is_entropy else height[i] * height[i]
    count, before, cumulative = 0, np.int64(0), 0.0
    for i in range(n):
        if rules.is_entropy:
            # The rounding error of a value is added to the next, so that the sum is exact.
            cumulative += height[i]
            until = np.int64(cumulative / norm * ENTROPY_TOTAL + 0.5)
            weight, before = until - before, until
        else:
            weight = np.int64(height[i] / np.sqrt(norm) * COSINE_LENGTH + 0.5)
        if weight > 0:
            out_mz[at + count], out_weight[at + count] = position[i], weight
            count += 1
    return count


@njit(nogil=True, cache=True)
def copy_peaks(starts, offsets, mz, weight, first, last, out_mz, out_weight):
    """Copy the lists `first:last` from their `starts` to their `offsets` in the output."""
    for s in range(first, last):
        for i in range(offsets[s + 1] - offsets[s]):
            out_mz[offsets[s] + i], out_weight[offsets[s] + i] = mz[starts[s] + i], weight[starts[s] + i]
