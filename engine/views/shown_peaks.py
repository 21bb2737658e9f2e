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
"""That of peaks that two spectra share, where no ion names them."""
SHIFTED = "shifted"
"""That of peaks that two spectra share with the difference of their masses between them, where no ion names them."""
UNMATCHED = ""
"""That of peaks in which no ion is found."""


@dataclass(frozen=True)
class ShownPeaks:
    """The n peaks of one spectrum, k of them with names.

    Attributes
    ----------
    mz : (n,) float64, ascending, thomson. height : (n,) float64, percent of the base peak.
    kinds : (n,) texts, what each is: the letter of an ion's series, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`.
    named : (k,) int64, peaks with a name. labels : theirs, as ``y7²⁺``.
    is_below : whether it is the lower one of two mirrored spectra.
    """

    mz: NDArray[np.float64]
    height: NDArray[np.float64]
    kinds: NDArray[np.str_]
    named: NDArray[np.int64]
    labels: Sequence[str]
    is_below: bool = False

    @property
    def side(self) -> int:
        """1 where the peaks stand on the axis, -1 where they hang from it."""
        return -1 if self.is_below else 1


def relative_intensity(intensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intensities in percent of the largest, (n,)."""
    highest = intensity.max(initial=0.0)
    return intensity * (100.0 / highest) if highest > 0 else np.zeros(len(intensity))
