"""Numbers of matched fragment ions, computed for many matches at once."""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ranges
from proteoscope.engine.chemistry.fragments import SERIES_MASS
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.ion_series import SpectrumSeries

__all__ = ["count_ions"]

_BATCH = 1 << 14  # matches


def count_ions(
    offsets: NDArray[np.int64],
    masses: NDArray[np.float64],
    residues: NDArray[np.uint8],
    spectrum: NDArray[np.int64],
    charge: NDArray[np.int64],
    spectra: Spectra,
    tolerance: Tolerance,
    ion_series: str,
    maximum_charge: int,
    progress: Progress,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of matched and possible fragment ions of n matches.

    The numbers are those of `proteoscope.engine.chemistry.fragments.annotate`.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of each match's residues, followed by r.
    masses : ndarray of float64, shape (r,)
        Residue masses including modifications, also of the termini, Da.
    residues : ndarray of uint8, shape (r,)
        ASCII capitals.
    spectrum : ndarray of int64, shape (n,)
        Index of each match's spectrum in `spectra`.
    charge : ndarray of int64, shape (n,)
        Precursor charges.
    spectra : Spectra
        Spectra of the run.
    tolerance : Tolerance
        Fragment tolerance.
    ion_series : str
        Symbols of ion series, or `proteoscope.engine.chemistry.series_choice.BY_ACTIVATION`.
    maximum_charge : int
        Maximum fragment charge; fragments have at least one charge less than the precursor.
    progress : Progress
        Progress of the run.

    Returns
    -------
    matched, total : ndarray of int64, shape (n,)
    """
    n = len(offsets) - 1
    matched, total = np.zeros(n, np.int64), np.zeros(n, np.int64)
    series = SpectrumSeries.for_spectra(ion_series, spectra.activation)
    order = np.argsort(spectrum, kind="stable")  # so that neighbouring matches use the same peaks
    progress.stage("Counting fragment ions", n)
    for first in range(0, n, _BATCH):
        rows = order[first : first + _BATCH]
        starts, at = ranges(offsets[rows], offsets[rows + 1])
        lengths = np.diff(starts)
        owner = np.repeat(np.arange(len(rows)), lengths)
        sums = np.cumsum(masses[at])
        before = np.concatenate(([0.0], sums))[starts[:-1]]
        front = sums - before[owner]
        whole = front[starts[1:] - 1]
        is_bond = np.ones(len(at), np.bool_)
        is_bond[starts[1:] - 1] = False
        followed_by_proline = np.append(residues[at][1:] == ord("P"), False) & is_bond
        used, peaks_start = np.unique(spectrum[rows], return_inverse=True)
        low, high = int(spectra.offsets[used[0]]), int(spectra.offsets[used[-1] + 1])
        mz = spectra.mz[low:high]
        span = float(mz.max(initial=0.0)) + 1.0
        peak_of = np.repeat(np.arange(used[-1] - used[0] + 1), np.diff(spectra.offsets[used[0] : used[-1] + 2]))
        keys = peak_of * span + mz
        base = (used[peaks_start] - used[0]).astype(np.float64)
        for symbol in dict.fromkeys("".join(series.symbols)):
            neutral = (front if symbol in "abc" else whole[owner] - front) + SERIES_MASS[symbol]
            is_ion = is_bond & ~followed_by_proline if symbol in "cz" else is_bond
            if not series.is_single:
                is_ion = is_ion & series.have(frozenset(symbol))[spectrum[rows]][owner]
            for z in range(1, maximum_charge + 1):
                chosen = np.flatnonzero(is_ion & (np.maximum(charge[rows] - 1, 1)[owner] >= z))
                ion = neutral[chosen] / z + PROTON_MASS
                least, most = tolerance.bounds(ion)
                shift = base[owner[chosen]] * span
                begin = np.searchsorted(keys, shift + np.clip(least, 0.0, span), side="left")
                end = np.searchsorted(keys, shift + np.clip(most, 0.0, np.nextafter(span, 0.0)), side="right")
                is_found = (end > begin) & (most < span + 1.0)
                matched[rows] += np.bincount(owner[chosen], is_found, len(rows)).astype(np.int64)
                total[rows] += np.bincount(owner[chosen], minlength=len(rows))
        progress.advance(len(rows))
    return matched, total
