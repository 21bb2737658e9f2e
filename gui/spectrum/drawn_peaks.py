"""Peaks as they are drawn, on the screen and on paper: how high, in which colour, and which have names. Nothing here knows of Qt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gui.plots.ion_kinds import UNMATCHED

__all__ = ["DrawnPeaks", "relative_intensity"]


@dataclass(frozen=True)
class DrawnPeaks:
    """The peaks of one spectrum.

    Attributes
    ----------
    mz : (n,) float64, ascending, thomson. height : (n,) float64, percent of the base peak.
    kinds : (n,) texts, what colours each: a key of `PlotColours.ions`.
    named : (k,) int64, peaks with a label. labels : theirs.
    is_below : whether they hang from the axis instead of standing on it.
    """

    mz: NDArray[np.float64]
    height: NDArray[np.float64]
    kinds: NDArray[np.str_]
    named: NDArray[np.int64]
    labels: Sequence[str]
    is_below: bool = False

    @property
    def side(self) -> int:
        """1 where they stand on the axis, -1 where they hang from it."""
        return -1 if self.is_below else 1

    @property
    def groups(self) -> list[tuple[str, NDArray[np.int64]]]:
        """Peaks by what colours them, in the order in which they are drawn: those that nothing explains first."""
        kinds = sorted(dict.fromkeys(self.kinds.tolist()), key=lambda kind: kind != UNMATCHED)
        return [(kind, np.flatnonzero(self.kinds == kind)) for kind in kinds]


def relative_intensity(intensity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intensities in percent of the largest, (n,)."""
    highest = intensity.max(initial=0.0)
    return intensity * (100.0 / highest) if highest > 0 else np.zeros(len(intensity))
