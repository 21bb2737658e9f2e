"""Reporter ions of isobaric labels: the peak of each channel in each spectrum, channels whose ions lie at other m/z than those of the kit,
the spectrum of MS3 that shows them, and how much of what was isolated is the peptide.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.reporter_regions import ReporterRegions
from proteoscope.engine.formats.surveys import Surveys
from proteoscope.engine.quantification.labels import Label, LabelName, label

__all__ = ["SEARCHED", "ReporterPeaks", "interference", "ms3_spectra", "reporter_peaks", "reporter_shifts", "shift_message"]

_USUAL_WIDTH = 2.0
"""Thomson, of an isolation window where the file has none."""
SEARCHED = 0.012
"""Dalton on both sides of a channel in which its reporter ion is looked for; 13C instead of 15N is 0.0063."""
_LEAST_SHIFTED = 0.5
_SAME_ION = 0.01
"""Thomson by which the precursor of an MS2 spectrum may differ in the MS3 spectrum made from it."""
_MOST_IONS = 100
"""Precursors of an MS3 spectrum that are compared: instruments take some 20."""
_LOOKED_BACK = 500
"""Spectra of MS2 between the two: more than any cycle has."""


class ReporterPeaks(NamedTuple):
    """Of n spectra and k channels: intensity, m/z and signal-to-noise ratio of the peak, (n, k) float64 each, NaN where there is none; the
    ratio also where the file tells no noise."""

    intensity: NDArray[np.float64]
    mz: NDArray[np.float64]
    signal_to_noise: NDArray[np.float64]


def reporter_peaks(
    regions: ReporterRegions,
    rows: NDArray[np.int64],
    channels: NDArray[np.float64],
    tolerance: Tolerance,
    by: Literal["most-intense", "nearest"],
) -> ReporterPeaks:
    """Return the peak of each channel within the tolerance: the most intense one, or the nearest; of equals the first.

    Parameters
    ----------
    rows : (n,) int64, of the spectra. channels : (k,) float64, m/z.
    """
    n, k = len(rows), len(channels)
    begin, count = regions.offsets[rows], np.diff(regions.offsets)[rows]
    owner = np.repeat(np.arange(n), count)
    peak = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
    mz, intensity, ratio = regions.mz[peak], regions.intensity[peak].astype(np.float64), regions.signal_to_noise[peak]
    found = ReporterPeaks(np.full((n, k), np.nan), np.full((n, k), np.nan), np.full((n, k), np.nan))
    for channel, expected in enumerate(channels.tolist()):
        within = np.flatnonzero(np.abs(mz - expected) <= tolerance.width(expected))
        best = -intensity[within] if by == "most-intense" else np.abs(mz[within] - expected)
        within = within[np.lexsort((best, owner[within]))]
        first = np.ones(len(within), np.bool_)
        first[1:] = np.diff(owner[within]) != 0
        chosen = within[first]
        for column, values in zip(found, (intensity, mz, ratio), strict=True):
            column[owner[chosen], channel] = values[chosen]
    return found


def reporter_shifts(regions: ReporterRegions, rows: NDArray[np.int64], kit: Label, tolerance: Tolerance) -> NDArray[np.float64]:
    """Return how far the most intense peak near each channel is from it, (n, k) float64, dalton; NaN without one.

    Peaks that are another channel's are left out.

    Parameters
    ----------
    rows : (n,) int64, of the spectra.
    """
    found = np.full((len(rows), len(kit)), np.nan)
    near = Tolerance(SEARCHED, "Da")
    for channel, expected in enumerate(kit.mz.tolist()):
        others = np.delete(kit.mz, channel)
        peak = reporter_peaks(regions, rows, np.array([expected]), near, "most-intense").mz[:, 0]
        is_other = (np.abs(peak[:, None] - others) <= tolerance.width(others)).any(axis=1)
        found[:, channel] = np.where(is_other, np.nan, peak - expected)
    return found


def shift_message(shifts: NDArray[np.float64], kit: Label, tolerance: Tolerance) -> str:
    """Return a sentence that names the channels whose peaks are outside the tolerance in most spectra and the kit that fits, or ''."""
    outside = np.abs(shifts) > tolerance.width(kit.mz)
    n_peaks = (~np.isnan(shifts)).sum(axis=0)
    share = outside.sum(axis=0) / max(1, len(shifts))
    off = np.flatnonzero(share >= _LEAST_SHIFTED)
    if not len(off):
        return ""
    middle = np.array([float(np.nanmedian(shifts[:, i])) if n_peaks[i] else 0.0 for i in range(len(kit))])
    fitting = [
        name
        for name in get_args(LabelName)
        if name != kit.name
        and len(label(name)) == len(kit)
        and (np.abs(label(name).mz - kit.mz - middle)[n_peaks > 0] <= tolerance.width(kit.mz)[n_peaks > 0]).all()
    ]
    names = ", ".join(f"{kit.channels[i]} ({1000 * middle[i]:+.1f} mDa, {100 * share[i]:.0f} % of the spectra)" for i in off.tolist())
    remedy = (
        f"these are the m/z of the kit {fitting[0]}: quantify with --label {fitting[0]}"
        if fitting
        else ("check the label, or widen reporter_tolerance")
    )
    return f"{kit.name}: the peaks of channels {names} are outside the reporter tolerance of {tolerance}; {remedy}"


def ms3_spectra(second: ReporterRegions, third: ReporterRegions) -> NDArray[np.int64]:
    """Return the row of the MS3 spectrum made from each MS2 spectrum (synchronous precursor selection; McAlister et al. 2014, Anal. Chem.
    86:7150), (n,) int64, -1 for none; of several the first.

    The MS2 spectrum is that which the MS3 spectrum names or, where the file has no such spectrum, the nearest before it with one of its
    precursors.
    """
    row_of = {name: row for row, name in enumerate(second.identifier)}
    place = np.searchsorted(second.index, third.index)
    found = np.full(len(second), -1, np.int64)
    for row, origin in enumerate(third.origins):
        own = next((row_of[name] for name in origin.names if name in row_of), -1)
        if own < 0 and origin.precursors:
            first, last = max(0, int(place[row]) - _LOOKED_BACK), int(place[row])
            apart = np.abs(second.precursor_mz[first:last, None] - np.array(origin.precursors[:_MOST_IONS]))
            same = np.flatnonzero((apart <= _SAME_ION).any(axis=1))
            own = first + int(same[-1]) if len(same) else -1
        if own >= 0 and found[own] < 0:
            found[own] = row
    return found


def interference(
    surveys: Surveys,
    time: NDArray[np.float64],
    mz: NDArray[np.float64],
    charge: NDArray[np.int64],
    width: NDArray[np.float64],
    tolerance: Tolerance,
) -> NDArray[np.float64]:
    """Part of the ions in the isolation window of each spectrum that is not its precursor, (n,) float64 from 0 to 1, NaN where unknown.

    Peaks at the precursor's m/z and whole isotopes from it are its own. The part is that in the survey spectra before and after, the
    nearer in time the more it counts; where one of both is missing or has nothing in the window, that of the other. With FAIMS the survey
    spectrum after is the next of the same voltage as the one before.

    Parameters
    ----------
    time : (n,) float64, s. mz : (n,) float64, of the precursor. charge : (n,) int64. width : (n,) float64, NaN where the file tells none.
    """
    behind = np.searchsorted(surveys.retention_time, time, side="right")
    before = np.where(np.isfinite(time) & (behind > 0), behind - 1, -1)
    after = np.where(before >= 0, _next_of_voltage(surveys)[before], behind)
    after = np.where(np.isfinite(time) & (after < len(surveys)), after, -1)
    half = np.where(width > 0, width, _USUAL_WIDTH) / 2
    parts = np.stack([_foreign(surveys, survey, mz, charge, half, tolerance) for survey in (before, after)])
    times = np.stack([surveys.retention_time[np.maximum(survey, 0)] for survey in (before, after)])
    apart = np.maximum(np.abs(times - time), 1e-6)
    weight = np.where(np.isnan(parts), 0.0, 1 / apart)
    total = weight.sum(axis=0)
    mean = (weight * np.nan_to_num(parts)).sum(axis=0) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, np.nan)


def _next_of_voltage(surveys: Surveys) -> NDArray[np.int64]:
    """Return the next survey spectrum of the same FAIMS voltage after each, their number where there is none."""
    found = np.full(len(surveys), len(surveys), np.int64)
    for voltage in surveys.voltages:
        rows = np.flatnonzero(surveys.at_voltage(voltage))
        found[rows[:-1]] = rows[1:]
    return found


def _foreign(
    surveys: Surveys,
    survey: NDArray[np.int64],
    mz: NDArray[np.float64],
    charge: NDArray[np.int64],
    half: NDArray[np.float64],
    tolerance: Tolerance,
) -> NDArray[np.float64]:
    """Return part of a window of one survey spectrum each, -1 for none, that is not the precursor's; NaN where nothing is in it."""
    n = len(mz)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    order = np.argsort(survey, kind="stable")
    numbers, starts = np.unique(survey[order], return_index=True)
    for number, rows in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        if number < 0:
            continue
        begin, end = surveys.offsets[number], surveys.offsets[number + 1]
        peaks = surveys.mz[begin:end]
        first[rows] = begin + np.searchsorted(peaks, mz[rows] - half[rows])
        last[rows] = begin + np.searchsorted(peaks, mz[rows] + half[rows], side="right")
    count = last - first
    owner = np.repeat(np.arange(n), count)
    peak = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    position, intensity = np.asarray(surveys.mz[peak]), np.asarray(surveys.intensity[peak]).astype(np.float64)
    spacing = ISOTOPE_SPACING / charge[owner]
    off = position - mz[owner]
    is_own = np.abs(off - np.rint(off / spacing) * spacing) <= tolerance.width(position)
    total = np.bincount(owner, intensity, minlength=n)
    own = np.bincount(owner[is_own], intensity[is_own], minlength=n)
    return np.where(total > 0, 1 - own / np.where(total > 0, total, 1.0), np.nan)
