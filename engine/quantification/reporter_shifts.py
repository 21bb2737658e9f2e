"""Channels of an isobaric label whose reporter ions are not at the m/z of the kit: another kit, or a calibration that is off."""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.reporter_regions import ReporterRegions
from proteoscope.engine.quantification.labels import Label, LabelName, label
from proteoscope.engine.quantification.reporter_ions import reporter_peaks

__all__ = ["SEARCHED", "reporter_shifts", "shift_message"]

SEARCHED = 0.012
"""Dalton on both sides of a channel in which its reporter ion is looked for; 13C instead of 15N is 0.0063."""
_LEAST_SHARE = 0.5


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
    off = np.flatnonzero(share >= _LEAST_SHARE)
    if not len(off):
        return ""
    middle = np.array([float(np.nanmedian(shifts[:, i])) if n_peaks[i] else 0.0 for i in range(len(kit))])
    fitting = [
        name for name in get_args(LabelName)
        if name != kit.name and len(label(name)) == len(kit)
        and (np.abs(label(name).mz - kit.mz - middle)[n_peaks > 0] <= tolerance.width(kit.mz)[n_peaks > 0]).all()
    ]  # fmt: skip
    names = ", ".join(f"{kit.channels[i]} ({1000 * middle[i]:+.1f} mDa, {100 * share[i]:.0f} % of the spectra)" for i in off.tolist())
    remedy = f"these are the m/z of the kit {fitting[0]}: quantify with --label {fitting[0]}" if fitting else (
        "check the label, or widen reporter_tolerance"
    )  # fmt: skip
    return f"{kit.name}: the peaks of channels {names} are outside the reporter tolerance of {tolerance}; {remedy}"
