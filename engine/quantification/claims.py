"""Ions whose trace is the trace of another identified ion: where two have the same m/z, or an isotope of one has that of the other.

What an ion trap or an orbitrap does not tell apart by m/z, and what comes off the column together, is one summit in the traces of both. It
is one ion's: that whose spectra were identified nearest to it, or whose monoisotopic peak is none of the other's, which shows that it is
there. The other has no quantity of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.quantification.ions import Ions
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.kernels.cpu.elution import APEX, TIME, WIDTH

__all__ = ["traces_of_others"]

_SHARE = 0.5  # of the height of a summit, from which on it is the other's
_APART = 0.5  # of the wider of two summits, within which they are one
_MOST = 200  # of one m/z that are compared with one: in a run there are a few


def traces_of_others(
    ions: Ions, sequence: NDArray[np.int64], values: NDArray[np.float64], from_spectra: NDArray[np.float64],
    parameters: QuantificationParameters,
) -> NDArray[np.bool_]:  # fmt: skip
    """Which of n measured ions of a file have the trace of another one, whose sequence is another.

    Parameters
    ----------
    ions : these n. sequence : (n,), number of the sequence of each: forms of one share their trace rightly. values : (n, N_VALUES), as
        `proteoscope.kernels.cpu.elution` measured them. from_spectra : (n,) s, how far the nearest spectrum of each is from its summit.
    """
    n, n_isotopes = ions.isotopes.shape
    found = np.zeros(n, np.bool_)
    if n < 2:
        return found
    share = ions.isotopes / ions.pattern.sum(axis=1, keepdims=True)
    isotope = np.arange(n_isotopes)
    mz = ions.mz[:, None] + isotope * (ISOTOPE_SPACING / ions.charge[:, None])
    owner, place, flat = np.repeat(np.arange(n), n_isotopes), np.tile(isotope, n), mz.ravel()
    order = np.argsort(flat, kind="stable")
    owner, place, flat = owner[order], place[order], flat[order]
    width = parameters.precursor_tolerance.width(flat)
    behind = np.minimum(np.searchsorted(flat, flat + width, side="right") - np.arange(len(flat)) - 1, _MOST)
    first = np.repeat(np.arange(len(flat)), behind)
    second = first + 1 + np.arange(len(first)) - np.repeat(offsets_of(behind)[:-1], behind)
    one, other = np.concatenate([owner[first], owner[second]]), np.concatenate([owner[second], owner[first]])
    of_one, of_other = np.concatenate([place[first], place[second]]), np.concatenate([place[second], place[first]])
    near = np.abs(values[one, TIME] - values[other, TIME]) <= _APART * np.maximum(values[one, WIDTH], values[other, WIDTH])
    is_lighter = ions.mz[other] < ions.mz[one] - parameters.precursor_tolerance.width(ions.mz[one])
    near &= of_one < ions.n_isotopes
    near &= (sequence[one] != sequence[other]) & (is_lighter | (from_spectra[one] > from_spectra[other]))
    one, other, of_other = one[near], other[near], of_other[near]
    pair, which = np.unique(one * np.int64(n) + other, return_inverse=True)
    height = np.bincount(which, values[other, APEX] * share[other, of_other], len(pair))
    lost = pair[height >= _SHARE * values[pair // n, APEX]] // n
    found[lost] = True
    return found
