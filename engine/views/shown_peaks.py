"""The peaks of a spectrum as a picture shows them: how high, what each is, and which have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LOSS", "SHARED", "SHIFTED", "UNMATCHED", "ShownPeaks", "relative_intensity"]

LOSS = "loss"
"""The kind of ions that lost a molecule, whatever their series."""
SHARED = "shared"
"""Kind of unannotated peaks that two spectra share."""
SHIFTED = "shifted"
"""Kind of unannotated peaks that two spectra share after shifting by their mass difference."""
UNMATCHED = ""
"""Kind of peaks without an ion."""


@dataclass(frozen=True)
class ShownPeaks:
    """n peaks of one spectrum, k of them labelled.

    Attributes
    ----------
    mz
        (n,) float64, ascending, thomson.
    height
        (n,) float64, percent of the base peak.
    kinds
        (n,) ion series symbols, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`.
    named
        (k,) int64, labelled peaks.
    labels
        Their labels, such as ``y7²⁺``.
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
        """1 for peaks above the axis, -1 below it."""
        return -1 if self.is_below else 1


def relative_intensity(intensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intensities in percent of the largest, (n,)."""
    highest = intensity.max(initial=0.0)
    return intensity * (100.0 / highest) if highest > 0 else np.zeros(len(intensity))
