"""Peaks of a spectrum as drawn: their heights, kinds and labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOSS", "SHARED", "SHIFTED", "UNMATCHED", "ShownPeaks", "relative_intensity"]

LOSS = "loss"
"""Kind of peaks of ions with a neutral loss, regardless of the series."""
SHARED = "shared"
"""Kind of peaks without an ion that two spectra share."""
SHIFTED = "shifted"
"""Kind of peaks without an ion that two spectra share after a shift by their mass difference."""
UNMATCHED = ""
"""Kind of peaks without an ion."""


@dataclass(frozen=True)
class ShownPeaks:
    """Peaks (n) of a spectrum for drawing; k of them are labelled.

    Attributes
    ----------
    mz
        m/z in thomson, ascending, shape (n,), float64.
    height
        Heights in percent of the base peak, shape (n,), float64.
    kinds
        Kind of each peak, shape (n,): the symbol of an ion series, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`.
    named
        Indices of the labelled peaks, shape (k,), int64.
    labels
        Labels of the labelled peaks, such as ``y7²⁺``.
    is_below
        True for the lower of two mirrored spectra.
    """

    mz: NDArray[np.float64]
    height: NDArray[np.float64]
    kinds: NDArray[np.str_]
    named: NDArray[np.int64]
    labels: Sequence[str]
    is_below: bool = False

    @property
    def side(self) -> int:
        """1 for peaks above the axis, -1 for peaks below it."""
        return -1 if self.is_below else 1


def relative_intensity(intensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return intensities in percent of the largest intensity, (n,)."""
    highest = intensity.max(initial=0.0)
    return intensity * (100.0 / highest) if highest > 0 else np.zeros(len(intensity))
