"""Reporter ions of MS3 (synchronous precursor selection; McAlister et al. 2014, Anal. Chem. 86:7150): which spectrum of MS3 each identified
spectrum of MS2 was the source of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.formats.reporter_regions import ReporterRegions

__all__ = ["of_second_level"]

_SAME_ION = 0.01
"""Thomson, by which the precursor of a spectrum of MS2 may be told differently in that of MS3."""
_MOST_IONS = 100
"""Precursors of a spectrum of MS3 that are looked at: instruments take some 20."""
_LOOKED_BACK = 500
"""Spectra of MS2 between the two: more than any cycle has."""


def of_second_level(second: ReporterRegions, third: ReporterRegions) -> NDArray[np.int64]:
    """The row of the spectrum of MS3 that was made from each spectrum of MS2, (n,) int64, -1 for none; of several the first.

    By the name that the spectrum of MS3 tells. Where it tells none that the file has, the nearest spectrum of MS2 before it that has one of
    its precursors, if there is one.
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
