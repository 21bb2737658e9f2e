"""Data layouts of ion trace kernels on CPU and GPU: peaks of MS1 spectra, and windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SurveyPeaks", "TraceWindows"]


class SurveyPeaks(NamedTuple):
    """n peaks of some MS1 spectra, in order of m/z.

    Attributes
    ----------
    mz : (n,) float64
        Thomson, ascending.
    intensity : (n,) float32
        Positive.
    survey : (n,) int32
        Number of the spectrum.
    """

    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    survey: NDArray[np.int32]


class TraceWindows(NamedTuple):
    """w windows of m/z and time, each with a row of cells, one for each of its MS1 spectra.

    Attributes
    ----------
    low, high : (w,) float64
        Thomson, both within.
    first, last : (w,) int32
        MS1 spectra, the last one not within.
    cell : (w,) int64
        The cell of its first MS1 spectrum.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    cell: NDArray[np.int64]
