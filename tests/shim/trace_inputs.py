"""Peaks of MS1 spectra and windows of ion traces, for tests and benchmarks of their kernels."""

from __future__ import annotations

import numpy as np

from proteoscope.engine.formats.ms1_spectra import Ms1Spectra
from proteoscope.engine.quantification.ion_traces import TraceQuery
from proteoscope.kernels.trace_layouts import SurveyPeaks, TraceWindows

__all__ = ["made_surveys", "random_traces"]


def random_traces(seed: int, n_peaks: int = 3000, n_windows: int = 150, n_surveys: int = 40) -> tuple[SurveyPeaks, TraceWindows, int]:
    """Generate peaks and windows of ion traces.

    Some peaks have the same m/z, and some lie at the ends of windows. Windows have any length, also zero.

    Returns
    -------
    tuple
        The peaks, the windows and the number of cells.
    """
    rng = np.random.default_rng(seed)
    mz = np.sort(rng.integers(0, 4000, n_peaks) / 8 + 400)
    peaks = SurveyPeaks(mz, rng.lognormal(5, 2, n_peaks).astype(np.float32), rng.integers(0, n_surveys, n_peaks).astype(np.int32))
    low = rng.integers(0, 4000, n_windows) / 8 + 400
    first = rng.integers(0, n_surveys, n_windows)
    last = np.minimum(first + rng.integers(0, 20, n_windows), n_surveys)
    cell = np.concatenate(([0], np.cumsum(last - first)))
    windows = TraceWindows(low, low + rng.integers(0, 40, n_windows) / 8, first.astype(np.int32), last.astype(np.int32), cell[:-1])
    return peaks, windows, int(cell[-1])


def made_surveys(n_peaks: int, n_ions: int, *, seed: int, seconds: float = 3600.0, cycle: float = 2.0) -> tuple[Ms1Spectra, TraceQuery]:
    """Generate a run of `n` peaks, most of them noise, and ions of charge two to four; half of the ions are in about ten MS1 spectra."""
    rng = np.random.default_rng(seed)
    n_surveys, n_isotopes = int(seconds / cycle), 3
    charge = rng.integers(2, 5, n_ions)
    ion_mz, apex = rng.uniform(400, 1200, n_ions), rng.integers(20, n_surveys - 20, n_ions)
    pattern = np.tile([0.55, 0.3, 0.15], (n_ions, 1))
    shown = np.flatnonzero(np.arange(n_ions) % 2 == 0)[: n_peaks // 2 // (n_isotopes * 11)]
    offset = np.arange(-5, 6)
    survey = np.broadcast_to((apex[shown, None] + offset)[:, :, None], (len(shown), 11, n_isotopes)).ravel()
    mz = np.broadcast_to(
        ion_mz[shown, None, None] + np.arange(n_isotopes) * (1.00335 / charge[shown, None, None]), (len(shown), 11, n_isotopes)
    ).ravel()
    height = (np.exp(-0.5 * (offset / 2) ** 2)[None, :, None] * pattern[shown][:, None, :] * 1e6).ravel()
    n_noise = n_peaks - len(mz)
    survey = np.concatenate([survey, rng.integers(0, n_surveys, n_noise)])
    mz = np.concatenate([mz * (1 + rng.normal(0, 2e-6, len(mz))), rng.uniform(400, 1200, n_noise)])
    intensity = np.concatenate([height, rng.lognormal(8, 1, n_noise)]).astype(np.float32)
    order = np.lexsort((mz, survey))
    offsets = np.concatenate(([0], np.cumsum(np.bincount(survey, minlength=n_surveys)))).astype(np.int64)
    surveys = Ms1Spectra(np.arange(n_surveys) * cycle, np.arange(n_surveys), offsets, mz[order], intensity[order])
    query = TraceQuery(ion_mz, charge, pattern, np.arange(n_ions + 1), apex * cycle + 0.5, np.zeros(n_ions), 120.0)
    return surveys, query
