"""Peaks of spectra: decoding of MS-Numpress integers, and peak picking of profiles.

MS-Numpress is described in Teleman et al., "Numerical compression schemes for proteomics mass spectrometry data", Mol. Cell. Proteomics
13:1537 (2014).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["find_summits", "looks_sampled", "narrow_peaks", "unpack_integers"]

# Maximum distance in thomson of neighbouring profile points of one peak, for all instruments (ion traps sample every 1/15 to 1/8).
WIDEST_STEP = 0.15
# A valley separates two peaks if it is lower than this fraction of the maxima on both sides.
VALLEY = 0.75
# Minimum height of the two points on each side of a sampled summit, as a fraction of the height of the summit.
LOWEST_PART = 0.05


@njit(nogil=True, cache=True)
def unpack_integers(data, start, stop, out):
    """Decode the integers of MS-Numpress (residuals and counts), which are stored without leading half bytes of zeros or ones.

    An integer of eight half bytes starts with a half byte c. If c <= 8, its c leading half bytes are zero; otherwise its c - 8 leading
    half bytes are ones. The other half bytes follow, lowest first. A trailing half byte of zero fills the last byte.

    Parameters
    ----------
    data : (bytes,) uint8
        Encoded bytes.
    start, stop : int64
        Range of bytes with integers.
    out : int64
        Output; integers beyond its size are only counted.

    Returns
    -------
    n_integers : int64
        Number of integers, or -1 if the last one is truncated.
    """
    n = 0
    half, last = 2 * start, 2 * stop
    while half < last:
        value, n_left, shift = np.int64(0), np.int64(-1), 0
        while n_left != 0:
            if half >= last:
                return -1
            symbol = np.int64(data[half >> 1])
            nibble = symbol & 15 if half & 1 else symbol >> 4
            half += 1
            if n_left > 0:
                value |= nibble << shift
                shift += 4
                n_left -= 1
            elif half == last and nibble == 0:
                return n
            elif nibble > 8:
                n_left = 16 - nibble
                value = np.int64(-1) << (4 * n_left)
            else:
                n_left = 8 - nibble
        if value >= 1 << 31:
            value -= np.int64(1 << 32)
        if n < len(out):
            out[n] = value
        n += 1
    return n


@njit(nogil=True, cache=True)
def _height(intensity):
    """Return an intensity if it is positive and finite, otherwise 0."""
    return intensity if 0.0 < intensity < np.inf else 0.0


@njit(nogil=True, cache=True)
def narrow_peaks(mz, intensity, offsets, minimum_mz, maximum_mz, maximum_intensity, narrow):
    """Convert intensities to float32 if all peaks are valid.

    Parameters
    ----------
    mz, intensity : (peaks,) float64
        Peaks of all spectra.
    offsets : (n + 1,) int64
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    minimum_mz, maximum_mz, maximum_intensity : float64
        Bounds; the m/z must be larger than its minimum.
    narrow : (peaks,) float32
        Output; positive and finite intensities.

    Returns
    -------
    bool
        True if all peaks are within the bounds and ascending in m/z within each spectrum; otherwise `narrow` is incomplete.
    """
    for spectrum in range(len(offsets) - 1):
        before = minimum_mz
        for i in range(offsets[spectrum], offsets[spectrum + 1]):
            if not (before <= mz[i] and minimum_mz < mz[i] <= maximum_mz and intensity[i] <= maximum_intensity):
                return False
            before = mz[i]
            narrow[i] = intensity[i]
            if not 0.0 < narrow[i] < np.inf:
                return False
    return True


@njit(nogil=True, cache=True)
def looks_sampled(mz, intensity, offsets):
    """Return True for each spectrum that appears to be sampled from a profile (see `proteoscope.engine.formats.profiles`).

    Parameters
    ----------
    mz, intensity : float64
        Points of all spectra.
    offsets : (n + 1,) int64
        Points of spectrum i are ``offsets[i]:offsets[i + 1]``, ascending in m/z.

    Returns
    -------
    (n,) bool
    """
    result = np.zeros(len(offsets) - 1, dtype=np.bool_)
    for spectrum in range(len(result)):
        start, stop = offsets[spectrum], offsets[spectrum + 1]
        sampled, total = 0.0, 0.0
        for i in range(start, stop):
            summit = _height(intensity[i])
            has_left = start < i and mz[i] - mz[i - 1] <= WIDEST_STEP
            has_right = i + 1 < stop and mz[i + 1] - mz[i] <= WIDEST_STEP
            before = _height(intensity[i - 1]) if has_left else 0.0
            after = _height(intensity[i + 1]) if has_right else 0.0
            if before > summit or after > summit:
                continue
            total += summit
            has_far_left = start + 1 < i and mz[i - 1] - mz[i - 2] <= WIDEST_STEP
            has_far_right = i + 2 < stop and mz[i + 2] - mz[i + 1] <= WIDEST_STEP
            if has_left and has_right and has_far_left and has_far_right:
                first, last = _height(intensity[i - 2]), _height(intensity[i + 2])
                if first <= before and last <= after and min(first, last) >= LOWEST_PART * summit:
                    sampled += summit
        result[spectrum] = sampled > 0.5 * total
    return result


@njit(nogil=True, cache=True)
def find_summits(mz, intensity, offsets, summits, counts):
    """Find the peaks of profile spectra.

    Segments end at points of zero intensity, and before m/z steps larger than `WIDEST_STEP` or three times the previous step. A point is a
    summit if, on each side within its segment, the intensity falls below `VALLEY` times the intensity of the point before any intensity
    exceeds the intensity of the point.

    Parameters
    ----------
    mz, intensity : float64
        Points of all spectra.
    offsets : (n + 1,) int64
        Points of spectrum i are ``offsets[i]:offsets[i + 1]``, ascending in m/z.
    summits : int64
        Output; indices of the summits in `mz`. Needs space for all points.
    counts : (n,) int64
        Output; number of summits of each spectrum.

    Returns
    -------
    n_summits : int64
        Number of summits of all spectra.
    """
    n = 0
    for spectrum in range(len(offsets) - 1):
        before = n
        highest, lowest, step = -1, 0.0, WIDEST_STEP
        is_rising = False
        for i in range(offsets[spectrum], offsets[spectrum + 1] + 1):
            is_cut = i == offsets[spectrum + 1] or intensity[i] <= 0.0
            if not is_cut and highest >= 0:
                ahead = mz[i] - mz[i - 1]
                is_cut = ahead > WIDEST_STEP or ahead > 3.0 * step
                step = ahead if ahead > 0.0 else step
            if is_cut:
                if is_rising:
                    summits[n] = highest
                    n += 1
                is_rising, highest, step = False, -1, WIDEST_STEP
                if i == offsets[spectrum + 1] or intensity[i] <= 0.0:
                    continue
            height = intensity[i]
            if highest < 0:
                is_rising, highest = True, i
            elif is_rising:
                if height > intensity[highest]:
                    highest = i
                elif height < VALLEY * intensity[highest]:
                    summits[n] = highest
                    n += 1
                    is_rising, lowest = False, height
            elif height < lowest:
                lowest = height
            elif VALLEY * height > lowest:
                is_rising, highest = True, i
        counts[spectrum] = n - before
    return n
