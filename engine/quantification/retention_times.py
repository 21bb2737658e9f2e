"""Retention times of runs laid over each other by the ions that they share: a monotone curve that few wrong ones do not bend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alignment", "aligned"]

_FEWEST_SHARED = 10
_LEAST_SPREAD = 1.0  # s: no survey spectrum tells times more exactly
_WIDEST, _NARROWEST = 101, 11  # ions of a running median
_MAD = 1.4826


class Alignment(NamedTuple):
    """How times of a run become those of the reference: by straight lines between knots, and beyond them by the shift of the nearest.

    Attributes
    ----------
    own, reference : (k,) float64, s, ascending both. spread : s, standard deviation of what the curve leaves, robust.
    n_shared : ions that it was made of.
    """

    own: NDArray[np.float64]
    reference: NDArray[np.float64]
    spread: float
    n_shared: int

    def to_reference(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times of the run as those of the reference."""
        return _mapped(times, self.own, self.reference)

    def from_reference(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Times of the reference as those of the run."""
        return _mapped(times, self.reference, self.own)


def _mapped(times: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return times + np.interp(times, x, y - x)


def aligned(times: NDArray[np.float64]) -> list[Alignment | None]:
    """Alignments of runs to the one with the most ions; None of those that share too few ions with it.

    The shift of each shared ion is replaced by the median of those next to it in time, and the curve made monotone by isotonic regression.

    Parameters
    ----------
    times : (ions, runs) float64, s, NaN where an ion was not seen.
    """
    from scipy.ndimage import median_filter  # slow to import: loaded after the files are read
    from scipy.optimize import isotonic_regression  # slow to import: loaded after the files are read

    reference = int((~np.isnan(times)).sum(axis=0).argmax())
    found: list[Alignment | None] = []
    for run in range(times.shape[1]):
        shared = np.flatnonzero(~np.isnan(times[:, run]) & ~np.isnan(times[:, reference]))
        if len(shared) < _FEWEST_SHARED:
            found.append(None)
            continue
        own, other = times[shared, run], times[shared, reference]
        order = np.argsort(own, kind="stable")
        own, other = own[order], other[order]
        width = min(_WIDEST, max(_NARROWEST, len(own) // 10)) | 1
        curve = isotonic_regression(own + median_filter(other - own, width, mode="nearest")).x
        first = np.unique(own, return_index=True)[1]
        # Where the curve stands still it cannot be gone back: a microsecond for each ion makes it rise.
        knots, values = own[first], curve[first] + 1e-6 * np.arange(len(first))
        spread = _MAD * float(np.median(np.abs(other - curve)))
        found.append(Alignment(knots, values, max(spread, _LEAST_SPREAD), len(shared)))
    return found
