"""Spectra in profile mode: recognised by their samples, and made centroids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["centroid_profiles", "looks_sampled"]

# Two points of one peak lie closer than this in the profile of every kind of instrument (ion traps sample each 1/15 to 1/8 thomson).
_WIDEST_STEP = 0.15
# The points beside a summit that make it a sampled one have at least this part of its height.
_LOWEST_PART = 0.05


def looks_sampled(mz: NDArray[np.float64], intensity: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which spectra are samples of a profile: most of their summits (weighed by height) fall off over two near points on each side.

    A summit is a point that no near neighbour overtops. Centroids have no such neighbours, isobaric reporter ions in threes and fours
    included.

    Parameters
    ----------
    mz, intensity : (peaks,) float64, ascending m/z within a spectrum.
    offsets : (n + 1,) int64.

    Returns
    -------
    (n,) bool.
    """
    n = len(offsets) - 1
    owner = np.repeat(np.arange(n), np.diff(offsets))
    # Two points of no height at both ends, far away, so that every point has its neighbours.
    height = np.pad(np.where((intensity > 0) & (intensity < np.inf), intensity, 0.0), 2)
    is_near = np.zeros(len(mz) + 3, dtype=np.bool_)
    is_near[2:-2] = (np.diff(mz) <= _WIDEST_STEP) & (owner[1:] == owner[:-1])
    left, before, summit, after, right = (height[k : k + len(mz)] for k in range(5))
    far_left, near_left, near_right, far_right = (is_near[k : k + len(mz)] for k in range(4))
    is_summit = (summit > 0) & ((before <= summit) | ~near_left) & ((after <= summit) | ~near_right)
    lowest = _LOWEST_PART * summit
    falls_off = far_left & near_left & near_right & far_right & (left <= before) & (right <= after) & (left >= lowest) & (right >= lowest)
    sampled = np.bincount(owner, weights=summit * (is_summit & falls_off), minlength=n)
    return sampled > 0.5 * np.bincount(owner, weights=summit * is_summit, minlength=n)


def centroid_profiles(
    mz: NDArray[np.float64], intensity: NDArray[np.float64], offsets: NDArray[np.int64], profiles: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Replace the samples of some spectra by the peaks that they show.

    A peak stands where the signal rises above the valleys on its sides by a third (`proteoscope.kernels.cpu.peaks.find_summits`). Its place
    and height are those of the parabola through the logarithms of the highest point and its neighbours, which is exact for a Gaussian peak;
    a point without two near neighbours stays as it is.

    Parameters
    ----------
    mz, intensity : (peaks,) float64, ascending m/z within a spectrum.
    offsets : (n + 1,) int64.
    profiles : (n,) bool, the spectra to change.

    Returns
    -------
    mz, intensity : the peaks, float64; owner : the spectrum of each, int64, ascending.
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
    all_mz, all_heights = np.concatenate([mz[~at_profile], peak_mz]), np.concatenate([intensity[~at_profile], peak_height])
    all_owners = np.concatenate([owner[~at_profile], peak_owner])
    order = np.lexsort((all_mz, all_owners))
    return all_mz[order], all_heights[order], all_owners[order]


def _vertices(
    mz: NDArray[np.float64], height: NDArray[np.float64], at: NDArray[np.int64], first: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Place and height of the parabola through each summit and its neighbours, which have to be near, lower and within the spectrum."""
    places, tops = mz[at], height[at]
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
    # Points that are no profile may have a parabola without a top, or one beyond all numbers: there the highest point stays.
    fits = np.isfinite(offset) & np.isfinite(tall)
    places[inside[fits]] += offset[fits]
    tops[inside[fits]] = tall[fits]
    return places, tops
