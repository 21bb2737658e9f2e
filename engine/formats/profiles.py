"""Recognition of spectra in profile mode by their points, and centroiding."""

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["centroid_profiles", "looks_sampled"]

# Maximum distance (thomson) between adjacent points of a peak in the profiles of all instruments; ion traps sample every 1/15 to 1/8
# thomson.
_WIDEST_STEP = 0.15


def looks_sampled(mz: NDArray[np.float64], intensity: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return True for each spectrum that appears to be sampled from a profile.

    A summit is a point without a higher adjacent point within 0.15 Th. In a profile, most summits (weighted by height) have two near points
    of decreasing height on each side. Centroids do not have such points, even if they are isobaric reporter ions in groups of three and
    four.

    Parameters
    ----------
    mz, intensity : ndarray of float64, shape (peaks,)
        m/z (thomson, ascending within a spectrum) and intensities.
    offsets : ndarray of int64, shape (n + 1,)
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for profiles.
    """
    result: NDArray[np.bool_] = kernels.cpu.peaks.looks_sampled(mz, intensity, offsets)
    return result


def centroid_profiles(
    mz: NDArray[np.float64], intensity: NDArray[np.float64], offsets: NDArray[np.int64], profiles: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Replace the points of profile spectra by peaks.

    A peak is a point whose signal exceeds the minima on both sides by a third (`proteoscope.kernels.cpu.peaks.find_summits`). Its
    m/z and height are the vertex of the parabola through the logarithms of the highest point and its neighbours, which is exact for a
    Gaussian peak. A point without a near neighbour on both sides is not changed.

    Parameters
    ----------
    mz, intensity : ndarray of float64, shape (peaks,)
        m/z (thomson, ascending within a spectrum) and intensities.
    offsets : ndarray of int64, shape (n + 1,)
        Peaks of spectrum i are ``offsets[i]:offsets[i + 1]``.
    profiles : ndarray of bool, shape (n,)
        True for spectra to centroid.

    Returns
    -------
    mz, intensity : ndarray of float64, shape (new peaks,)
        m/z and intensities of all spectra.
    owner : ndarray of int64, shape (new peaks,)
        Index of the spectrum of each peak, ascending.
    """
    height = np.where((intensity > 0) & (intensity < np.inf), intensity, 0.0)
    lengths = np.diff(offsets)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    at_profile = profiles[owner]
    chosen = np.flatnonzero(profiles)
    bounds = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(np.int64)
    points, heights = mz[at_profile], height[at_profile]
    summits, counts = np.empty(len(points), dtype=np.int64), np.empty(len(chosen), dtype=np.int64)
    summits = summits[: kernels.cpu.peaks.find_summits(points, heights, bounds, summits, counts)]
    peak_owner = np.repeat(chosen, counts)
    peak_mz, peak_height = _vertices(points, heights, summits, np.repeat(bounds[:-1], counts), np.repeat(bounds[1:], counts))
    order = np.lexsort((peak_mz, peak_owner))
    lengths[chosen] = counts
    owner = np.repeat(np.arange(len(lengths)), lengths)
    is_peak = profiles[owner]
    all_mz, all_heights = np.empty((2, len(owner)))
    all_mz[is_peak], all_heights[is_peak] = peak_mz[order], peak_height[order]
    all_mz[~is_peak], all_heights[~is_peak] = mz[~at_profile], intensity[~at_profile]
    return all_mz, all_heights, owner


def _vertices(
    mz: NDArray[np.float64], height: NDArray[np.float64], at: NDArray[np.int64], first: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the m/z and the height of each peak: the vertex of the parabola through its summit and the points next to it.

    If the points next to the summit are not both near, or neither is lower, the m/z and height of the summit are returned.
    """
    positions, tops = mz[at], height[at]
    inside = np.flatnonzero((at > first) & (at + 1 < stop))
    middle = at[inside]
    left, right = mz[middle - 1] - mz[middle], mz[middle + 1] - mz[middle]
    low, high = height[middle - 1], height[middle + 1]
    usable = (low > 0) & (high > 0) & (left < 0) & (right > 0) & (left >= -_WIDEST_STEP) & (right <= _WIDEST_STEP)
    usable &= (low < height[middle]) | (high < height[middle])
    inside, middle, left, right = inside[usable], middle[usable], left[usable], right[usable]
    top = np.log(height[middle])
    down, up = (np.log(low[usable]) - top) / left, (np.log(high[usable]) - top) / right
    bend = (down - up) / (left - right)
    slope = down - bend * left
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        offset = np.clip(-0.5 * slope / bend, left, right)
        tall = np.exp(top + (slope + bend * offset) * offset)
    # If the points are not a profile, their parabola may have no finite maximum: then retain the highest point.
    fits = np.isfinite(offset) & np.isfinite(tall)
    positions[inside[fits]] += offset[fits]
    tops[inside[fits]] = tall[fits]
    return positions, tops
