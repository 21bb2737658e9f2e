"""Alignment of the retention times of files by shared ions, and detection of ions whose time differs between files.

An alignment is a monotone curve that is robust against a few wrong ions. If a more abundant signal with the m/z and isotope pattern of an
ion elutes shortly before or after the ion, both share one apex, and the summit above the ion's spectra belongs to the wrong signal. A
single file cannot reveal this error, but other files in which the ion is more abundant do.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.quantification.amounts import group_medians

__all__ = ["Alignment", "Alignments", "aligned", "has_deviating_time"]

_FEWEST_SHARED = 10
_LEAST_SPREAD = 1.0  # s: MS1 spectra do not resolve times below this
_WIDEST, _NARROWEST = 101, 11  # maximum and minimum number of ions in a running median
_MAD = 1.4826
_SPREADS = 4.0
"""Minimum difference of two times that are considered different, in standard deviations of their difference."""
_FEWEST_COMPARED = 50
"""Minimum number of ions in both a file and the reference: a curve through fewer ions may be wrong, especially at its ends."""
_ROUNDS, _CANDIDATES = 3, 33
_PART_OF_WIDTH = 0.25
"""Fraction of the narrower peak's width within which times are considered equal, since times of wide peaks are less precise."""


class Alignment(NamedTuple):
    """Alignment of a file's times to the consensus (reference): linear interpolation between knots, and a constant shift outside them.

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


class Alignments(NamedTuple):
    """Alignments of files to the consensus of all files.

    Attributes
    ----------
    of_file : list of (Alignment or None)
        Alignment of each file; None for files that have too few ions in common with the others.
    time : ndarray of float64, shape (ions,)
        Consensus of the aligned times of each ion, s; NaN for ions that no aligned file measured.
    n_files : ndarray of int64, shape (ions,)
        Number of aligned files that measured each ion.
    """

    of_file: list[Alignment | None]
    time: NDArray[np.float64]
    n_files: NDArray[np.int64]


def aligned(ion: NDArray[np.integer], file: NDArray[np.integer], times: NDArray[np.float64], n_ions: int, n_files: int) -> Alignments:
    """Align the retention times of all files to a consensus.

    At first, the consensus is the time of each ion in the file with most ions. It is then the median of the ion's aligned times, and is
    refined twice. Work and memory grow with the number of measured times.

    The shift of each shared ion is replaced by the running median over neighbouring times, and the curve is made monotone by isotonic
    regression. Ions that no other file measured are not used, and the residuals of the remaining ions are corrected for the share of the
    file in the consensus.

    Parameters
    ----------
    ion, file : ndarray of int, shape (n,)
        Index of the ion, and of the file, of each measured time.
    times : ndarray of float64, shape (n,)
        Retention times, s.
    n_ions, n_files : int
        Numbers of ions and files.

    Returns
    -------
    Alignments
    """
    consensus, count = np.full(n_ions, np.nan), np.full(n_ions, 2)
    order = np.argsort(file, kind="stable")
    rows_of = np.split(order, np.searchsorted(file[order], np.arange(1, n_files)))
    reference = rows_of[int(np.argmax([len(rows) for rows in rows_of]))]
    consensus[ion[reference]] = times[reference]
    for _ in range(_ROUNDS):
        result = [_alignment(times[rows], consensus[ion[rows]], count[ion[rows]]) for rows in rows_of]
        common = np.full(len(times), np.nan)
        for rows, alignment in zip(rows_of, result, strict=True):
            if alignment is not None:
                common[rows] = alignment.to_reference(times[rows])
        consensus = group_medians(common, ion, n_ions)
        count = np.bincount(ion[~np.isnan(common)], minlength=n_ions)
    return Alignments(result, consensus, count)


def _alignment(times: NDArray[np.float64], consensus: NDArray[np.float64], count: NDArray[np.int64]) -> Alignment | None:
    """Return the alignment of a file, or None if it has too few ions in common with other files.

    `times`, `consensus` and `count` are the time in the file, the consensus time and the number of files of each of its ions.
    """
    from scipy.ndimage import median_filter  # slow to import: loaded after the files are read
    from scipy.optimize import isotonic_regression  # slow to import: loaded after the files are read

    shared = np.flatnonzero(~np.isnan(consensus) & (count > 1))
    if len(shared) < _FEWEST_SHARED:
        return None
    shared = shared[np.argsort(times[shared], kind="stable")]
    of_file, other = times[shared], consensus[shared]
    width = min(_WIDEST, max(_NARROWEST, len(shared) // 10)) | 1
    curve = isotonic_regression(of_file + median_filter(other - of_file, width, mode="mirror")).x
    first = np.unique(of_file, return_index=True)[1]
    # A constant curve has no inverse, so a microsecond per ion is added to make it increase.
    knots, values = of_file[first], curve[first] + 1e-6 * np.arange(len(first))
    spread = _MAD * float(np.median(np.abs(other - curve) * np.sqrt(count[shared] / (count[shared] - 1))))
    return Alignment(knots, values, max(spread, _LEAST_SPREAD), len(shared))


def has_deviating_time(
    times: NDArray[np.float64], widths: NDArray[np.float64], from_spectra: NDArray[np.float64], alignments: Sequence[Alignment | None]
) -> NDArray[np.bool_]:
    """Return True for measured ions whose time differs from that in most files, (ions, files).

    The time of an ion, after alignment, is the one that most files agree on; if there are several, the one nearest to the spectra that
    identified the ion. With many files, only the times of `_CANDIDATES` files are tried, at equal steps of the sorted times, so that work
    grows linearly with the number of files. A time counts as different if it differs from this time by more than the error of the
    alignments and by more than a quarter of the narrower peak's width. Files with too few common ions are not compared.

    Parameters
    ----------
    times : ndarray of float64, shape (ions, files)
        Retention times of the apexes, s, NaN if missing.
    widths : ndarray of float64, shape (ions, files)
        Widths of the peaks at half height, s.
    from_spectra : ndarray of float64, shape (ions, files)
        Distance of the apex from the nearest spectrum that identified the ion, s.
    alignments : sequence of (Alignment or None)
        Alignment of each file.
    """
    result = np.zeros(times.shape, np.bool_)
    rows = np.flatnonzero((~np.isnan(times)).sum(axis=1) > 1)
    compared = {
        file: alignment for file, alignment in enumerate(alignments) if alignment is not None and alignment.n_shared >= _FEWEST_COMPARED
    }
    if not len(rows) or len(compared) < 2:
        return result
    files = np.array(list(compared))
    error = _SPREADS * np.sqrt(2) * max(alignment.spread for alignment in compared.values())
    common = np.full((len(rows), len(files)), np.nan)
    for column, (file, alignment) in enumerate(compared.items()):
        has = ~np.isnan(times[rows, file])
        common[has, column] = alignment.to_reference(times[rows[has], file])
    near, each = widths[rows][:, files] * _PART_OF_WIDTH, np.arange(len(rows))
    best, best_score = np.zeros(len(rows), np.int64), np.full(len(rows), -np.inf)

    def is_apart(file: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return True for times that differ from the time in the file `file` (one index per ion)."""
        apart: NDArray[np.bool_] = np.abs(common - common[each, file][:, None]) > np.maximum(
            error, np.minimum(near, near[each, file][:, None])
        )
        return apart

    order, last = np.argsort(common, axis=1), (~np.isnan(common)).sum(axis=1) - 1
    n_candidates = min(_CANDIDATES, len(files))
    for k in range(n_candidates):
        of_many = order[each, np.maximum(last * k // max(1, n_candidates - 1), 0)]
        candidate = np.full(len(rows), k) if len(files) == n_candidates else of_many
        # The proximity of spectra only decides between times with equal numbers of files.
        score = (~is_apart(candidate)).sum(axis=1) + 1 / (2 + from_spectra[rows, files[candidate]])
        is_better = ~np.isnan(common[each, candidate]) & (score > best_score)
        best[is_better], best_score[is_better] = candidate[is_better], score[is_better]
    result[rows[:, None], files] = is_apart(best)
    return result
