"""Data layouts of ion trace kernels on CPU and GPU: peaks of MS1 spectra, and windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SurveyPeaks", "TraceWindows"]


class SurveyPeaks(NamedTuple):
    """Peaks (n) of MS1 spectra, sorted by m/z.

    Attributes
    ----------
    mz : (n,) float64
        m/z in thomson, ascending.
    intensity : (n,) float32
        Intensities, positive.
    survey : (n,) int32
        Index of the MS1 spectrum.
    """

    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    survey: NDArray[np.int32]


class TraceWindows(NamedTuple):
    """Windows (w) of m/z and time, each with a row of cells, one per MS1 spectrum.

    Attributes
    ----------
    low, high : (w,) float64
        m/z limits in thomson, inclusive.
    first, last : (w,) int32
        Range of MS1 spectra (`last` exclusive).
    cell : (w,) int64
        Index of the cell of the window's first MS1 spectrum.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    cell: NDArray[np.int64]
