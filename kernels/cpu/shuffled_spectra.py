"""Spectra of peptides that are not there: residues are shuffled, and the peaks that the fragments explain go where those of the shuffled
peptide are (Lam, Deutsch & Aebersold 2010, J Proteome Res 9:605). All other peaks stay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["ShuffledPeptides", "move_peaks", "shuffle_residues"]

_TRIES = 16
_SAME_MASS = 0.02  # dalton
_PROTON, _WATER, _AMMONIA, _CARBON_MONOXIDE, _ISOTOPE = 1.007276466621, 18.0105646863, 17.0265491015, 27.9949146221, 1.0033548378
_PLACES = 21  # of a bond and a charge: seven ions, each with three isotope peaks


@njit(nogil=True, cache=True)
def _random(state):
    """The next number of splitmix64 (Steele, Lea & Flood 2014), and the state behind it."""
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)), state


@njit(nogil=True, cache=True)
def shuffle_residues(masses, offsets, seeds, first, last, out):
    """Shuffle the residues of the peptides `first:last`, but for the last one of each.

    Parameters
    ----------
    masses : float64, of residues with what they carry, dalton. offsets : (n + 1,) int64, the residues of each peptide.
    seeds : (n,) uint64; the same seed and residues give the same order. out : like `masses`, to fill: of 16 orders the one with the fewest
        N-terminal fragments of the same mass.
    """
    for p in range(first, last):
        start, n = offsets[p], offsets[p + 1] - offsets[p]
        trial, state, fewest = masses[start : start + n].copy(), seeds[p], n + 1
        for _ in range(_TRIES):
            for i in range(n - 2, 0, -1):
                value, state = _random(state)
                j = np.int64(value % np.uint64(i + 1))
                trial[i], trial[j] = trial[j], trial[i]
            same, own, other = 0, 0.0, 0.0
            for i in range(n - 1):
                own += masses[start + i]
                other += trial[i]
                same += abs(own - other) < _SAME_MASS
            if same < fewest:
                fewest = same
                out[start : start + n] = trial


class ShuffledPeptides(NamedTuple):
    """The peptides of n spectra, as they are and shuffled; dalton.

    Attributes
    ----------
    offsets : (n + 1,) int64, where the residues of each begin. masses, shuffled : float64, of residues with what they carry.
    n_terminal, c_terminal : (n,) float64, what the termini carry.
    """

    offsets: NDArray[np.int64]
    masses: NDArray[np.float64]
    shuffled: NDArray[np.float64]
    n_terminal: NDArray[np.float64]
    c_terminal: NDArray[np.float64]


@njit(nogil=True, cache=True)
def move_peaks(peaks, charge, peptides, tolerance_absolute, tolerance_relative, first, last, out_mz, out_intensity):
    """Move the peaks of the spectra `first:last` that fragments of their peptides explain to those of the shuffled peptides.

    Explained are b, y and a ions, b and y less water or ammonia, with charges from 1 to 3 and one below the precursor's, and their first
    two isotope peaks.

    Parameters
    ----------
    peaks : `PeakArrays`. charge : (n,) int64, of the precursor. peptides : `ShuffledPeptides`.
    tolerance_absolute, tolerance_relative : of fragments.
    out_mz, out_intensity : like those of the peaks, to fill, in order of m/z.
    """
    peak_offsets, mz, intensity = peaks
    offsets, masses, shuffled, n_terminal, c_terminal = peptides
    for s in range(first, last):
        start, n = offsets[s], offsets[s + 1] - offsets[s]
        most = max(1, min(3, charge[s] - 1))
        place = np.empty((n - 1) * most * _PLACES, np.float64)
        shift = np.empty_like(place)
        count, total = 0, 0.0
        for i in range(n):
            total += masses[start + i]
        own, other = n_terminal[s], n_terminal[s]
        for i in range(n - 1):
            own += masses[start + i]
            other += shuffled[start + i]
            rest = total + n_terminal[s] + c_terminal[s] + _WATER
            for side in range(2):
                mass = own if side == 0 else rest - own
                change = other - own if side == 0 else own - other
                for loss in (0.0, _WATER, _AMMONIA, _CARBON_MONOXIDE):
                    if loss == _CARBON_MONOXIDE and side == 1:
                        continue
                    for z in range(1, most + 1):
                        for isotope in range(3):
                            place[count] = (mass - loss + isotope * _ISOTOPE) / z + _PROTON
                            shift[count] = change / z
                            count += 1
        order = np.argsort(place[:count])
        ordered = place[order]
        low, high = peak_offsets[s], peak_offsets[s + 1]
        moved = np.empty(high - low, np.float64)
        for i in range(low, high):
            at = np.searchsorted(ordered, mz[i])
            nearest, distance = -1, tolerance_absolute + tolerance_relative * mz[i]
            for k in range(max(0, at - 1), min(count, at + 1)):
                if abs(ordered[k] - mz[i]) <= distance:
                    nearest, distance = order[k], abs(ordered[k] - mz[i])
            moved[i - low] = mz[i] + (shift[nearest] if nearest >= 0 else 0.0)
        by_mz = np.argsort(moved, kind="mergesort")
        for i in range(high - low):
            out_mz[low + i], out_intensity[low + i] = moved[by_mz[i]], intensity[low + by_mz[i]]
