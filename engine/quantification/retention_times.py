"""Retention times of runs aligned by the ions that they share, and ions that one run has at another time than the others.

An alignment is a monotone curve that a few wrong ions do not bend. Where something with the m/z and pattern of an ion, and more of it,
elutes shortly before or after it, there is one summit, and the way uphill from the spectra of the ion leads to the wrong one. One run does
not show that. Others do, in which the ion is the larger.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alignment", "aligned", "at_another_time"]

_FEWEST_SHARED = 10
_LEAST_SPREAD = 1.0  # s: MS1 spectra do not resolve times below this
_WIDEST, _NARROWEST = 101, 11  # ions of a running median
_MAD = 1.4826
_SPREADS = 4.0
"""Standard deviations of the alignments, from which on two times are not the same."""
_FEWEST_COMPARED = 50
"""Ions that a file shares with the one that has most: a curve through fewer may itself be wrong, above all at its ends."""
_PART_OF_WIDTH = 0.25
"""Fraction of the narrower of two peaks within which their times are equal, since wide ones are less precise."""


class Alignment(NamedTuple):
    """Alignment of a run's times to the reference: straight lines between knots, and beyond them the nearest shift.

    Attributes
    ----------
    times, reference : ndarray of float64, shape (k,)
        Times of the knots in the run and in the reference, s, both ascending.
    spread
        s, robust standard deviation of the residuals.
    n_shared
        Number of ions used.
    """

    times: NDArray[np.float64]
    reference: NDArray[np.float64]
    spread: float
    n_shared: int

    def to_reference(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return times of the run as those of the reference."""
        return _mapped(times, self.times, self.reference)

    def from_reference(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return times of the reference as those of the run."""
        return _mapped(times, self.reference, self.times)


def _mapped(times: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return times + np.interp(times, x, y - x)


def aligned(times: NDArray[np.float64]) -> list[Alignment | None]:
    """Return alignments of runs to the one with the most ions; None of those that share too few ions with it.

    The shift of each shared ion is replaced by the median of those next to it in time, and the curve made monotone by isotonic regression.

    Parameters
    ----------
    times : (ions, runs) float64
        S, NaN where an ion was not seen.
    """
    from scipy.ndimage import median_filter  # slow to import: loaded after the files are read
    from scipy.optimize import isotonic_regression  # slow to import: loaded after the files are read

    reference = int((~np.isnan(times)).sum(axis=0).argmax())
    result: list[Alignment | None] = []
    for run in range(times.shape[1]):
        shared = np.flatnonzero(~np.isnan(times[:, run]) & ~np.isnan(times[:, reference]))
        if len(shared) < _FEWEST_SHARED:
            result.append(None)
            continue
        times_of_run, other = times[shared, run], times[shared, reference]
        order = np.argsort(times_of_run, kind="stable")
        times_of_run, other = times_of_run[order], other[order]
        width = min(_WIDEST, max(_NARROWEST, len(times_of_run) // 10)) | 1
        curve = isotonic_regression(times_of_run + median_filter(other - times_of_run, width, mode="nearest")).x
        first = np.unique(times_of_run, return_index=True)[1]
        # A constant curve has no inverse: a microsecond for each ion makes it increase.
        knots, values = times_of_run[first], curve[first] + 1e-6 * np.arange(len(first))
        spread = _MAD * float(np.median(np.abs(other - curve)))
        result.append(Alignment(knots, values, max(spread, _LEAST_SPREAD), len(shared)))
    return result


def at_another_time(times: NDArray[np.float64], widths: NDArray[np.float64], from_spectra: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which measured ions are at another time than most files have them; (ions, files) bool.

    Of the times of an ion, after alignment, that one counts which the most files share, and of several that which is nearest to the spectra
    that identified the ion. Others are further from it than two times of one ion are, and than a quarter of the narrower summit's width.
    Files that share few ions are not compared.

    Parameters
    ----------
    times : (ions, files) float64
        S, of the summits, NaN where there is none.
    widths : (ions, files)
        S, at half of their heights.
    from_spectra : (ions, files)
        S, how far the nearest spectrum of the ion is from its summit.
    """
    there = ~np.isnan(times)
    result = np.zeros(times.shape, np.bool_)
    rows = np.flatnonzero(there.sum(axis=1) > 1)
    if not len(rows):
        return result
    alignments = aligned(times)
    compared = {
        file: alignment for file, alignment in enumerate(alignments) if alignment is not None and alignment.n_shared >= _FEWEST_COMPARED
    }
    if len(compared) < 2:
        return result
    files, spread = list(compared), max(alignment.spread for alignment in compared.values())
    common = np.full((len(rows), len(files)), np.nan)
    for column, (file, alignment) in enumerate(compared.items()):
        has = there[rows, file]
        common[has, column] = alignment.to_reference(times[rows[has], file])
    near = widths[rows][:, files] * _PART_OF_WIDTH
    best, best_score = np.zeros(len(rows), np.int64), np.full(len(rows), -np.inf)

    def is_apart(file: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which times are another than that of a file, one for each ion."""
        own_times, its = common[np.arange(len(rows)), file], near[np.arange(len(rows)), file]
        return np.abs(common - own_times[:, None]) > np.maximum(_SPREADS * spread, np.minimum(near, its[:, None]))

    for column in range(len(files)):
        # However near the spectra are, that is less than a file.
        score = (~is_apart(np.full(len(rows), column))).sum(axis=1) + 1 / (2 + from_spectra[rows, files[column]])
        is_better = ~np.isnan(common[:, column]) & (score > best_score)
        best[is_better], best_score[is_better] = column, score[is_better]
    result[rows[:, None], files] = is_apart(best)
    return result
