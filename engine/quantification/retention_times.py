"""Alignment of the retention times of files by shared ions, and detection of ions at another time than in other files.

An alignment is a monotone curve that is robust against a few wrong ions. If a more abundant signal with the m/z and isotope pattern of an
ion elutes shortly before or after the ion, both have one apex, and the summit above the ion's spectra is that of the wrong signal. A single
file cannot show this error, but other files in which the ion is more abundant do.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Alignment", "aligned", "at_another_time"]

_FEWEST_SHARED = 10
_LEAST_SPREAD = 1.0  # s: MS1 spectra do not resolve times below this
_WIDEST, _NARROWEST = 101, 11  # maximum and minimum number of ions in a running median
_MAD = 1.4826
_SPREADS = 4.0
"""Minimum difference of two times that are considered different, in standard deviations of the alignments."""
_FEWEST_COMPARED = 50
"""Minimum number of ions in both a file and the reference: a curve through fewer may be wrong, especially at its ends."""
_PART_OF_WIDTH = 0.25
"""Fraction of the narrower peak's width within which times are considered equal, since times of wide peaks are less precise."""


class Alignment(NamedTuple):
    """Alignment of a file's times to the reference: linear interpolation between knots, and a constant shift outside them.

    Attributes
    ----------
    times, reference : ndarray of float64, shape (k,)
        Times of the knots in the file and in the reference, s, both ascending.
    spread : float
        Robust standard deviation of the residuals, s.
    n_shared : int
        Number of ions to which the alignment was fitted.
    """

    times: NDArray[np.float64]
    reference: NDArray[np.float64]
    spread: float
    n_shared: int

    def to_reference(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert retention times of the file to times of the reference, both in seconds."""
        return _mapped(times, self.times, self.reference)

    def from_reference(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert retention times of the reference to times of the file, both in seconds."""
        return _mapped(times, self.reference, self.times)


def _mapped(times: NDArray[np.float64], x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    return times + np.interp(times, x, y - x)


def aligned(times: NDArray[np.float64]) -> list[Alignment | None]:
    """Return the alignment of each file to the file with most ions; None for files that have too few ions in common with it.

    The shift of each shared ion is replaced by the running median over neighbouring times, and the curve is made monotone by isotonic
    regression.

    Parameters
    ----------
    times : ndarray of float64, shape (ions, runs)
        Retention times of each ion in each file (run), s, NaN if missing.

    Returns
    -------
    list of (Alignment or None)
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
    """Return True for measured ions that have another time than in most files, (ions, files).

    The time of an ion, after alignment, is the one that most files agree on; if there are several, the one nearest to the spectra that
    identified the ion. Another time differs from it by more than the error of the alignments and by more than a quarter of the narrower
    peak's width. Files with too few common ions are not compared.

    Parameters
    ----------
    times : ndarray of float64, shape (ions, files)
        Retention times of the apexes, s, NaN if missing.
    widths : ndarray of float64, shape (ions, files)
        Widths of the peaks at half height, s.
    from_spectra : ndarray of float64, shape (ions, files)
        Distance of the apex from the nearest spectrum that identified the ion, s.
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
        """Return True for times that differ from the time in the file `file` (one index per ion)."""
        own_times, its = common[np.arange(len(rows)), file], near[np.arange(len(rows)), file]
        apart: NDArray[np.bool_] = np.abs(common - own_times[:, None]) > np.maximum(_SPREADS * spread, np.minimum(near, its[:, None]))
        return apart

    for column in range(len(files)):
        # The proximity of spectra only decides between equal numbers of files.
        score = (~is_apart(np.full(len(rows), column))).sum(axis=1) + 1 / (2 + from_spectra[rows, files[column]])
        is_better = ~np.isnan(common[:, column]) & (score > best_score)
        best[is_better], best_score[is_better] = column, score[is_better]
    result[rows[:, None], files] = is_apart(best)
    return result
