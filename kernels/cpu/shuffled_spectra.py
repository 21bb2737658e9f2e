"""Decoy spectra: residues are shuffled and fragment peaks moved (Lam, Deutsch & Aebersold 2010, J Proteome Res 9:605).

The number of false matches can be estimated from decoys only if decoys resemble other spectra as much as real spectra do. Most peaks that
spectra of different peptides have in common are not sequence-specific: immonium ions, two-residue ions, remaining precursor, and peaks of
other molecules. A peak is therefore moved only if a b, y, c or z ion explains it and other explanations are unlikely. Peaks below 300 Th
and near the precursor are not moved. Losses, isotopes and a ions are not considered, since their many positions explain other peaks by
chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["MOVED_SERIES", "ShuffledPeptides", "move_peaks", "shuffle_residues"]

MOVED_SERIES = "bycz"
_END_MASS = np.array([0.0, 0.0, 17.02654910112, -16.01872406889])
"""Masses (Da) that ion series add to residues; for C-terminal ions without water."""
_TRIES = 16
_SAME_MASS = 0.02  # dalton
_PROTON, _WATER, _ISOTOPE = 1.007276466621, 18.0105646863, 1.0033548378
_LOWEST = 300.0  # thomson; below are immonium ions and ions of two residues, which are not specific
_ABOVE, _BELOW = 2 * _ISOTOPE, 2 * _WATER  # dalton; range around the precursor: its isotopes, and losses of two waters


@njit(nogil=True, cache=True)
def _random(state):
    """Return the next number of splitmix64 (Steele, Lea & Flood 2014), and the next state."""
    state = np.uint64(state + np.uint64(0x9E3779B97F4A7C15))
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31)), state


@njit(nogil=True, cache=True)
def shuffle_residues(masses, offsets, seeds, first, last, out):
    """Shuffle the residues of the peptides `first:last`, except for the last residue of each peptide.

    Parameters
    ----------
    masses : float64
        Masses of residues with modifications, dalton.
    offsets : (n + 1,) int64
        Range of each peptide in `masses`.
    seeds : (n,) uint64
        Seed of each peptide; the same seed and residues give the same order.
    out
        Output, like `masses`: of 16 random orders, the order with the fewest N-terminal fragments of unchanged mass.
    """
    for p in range(first, last):
        start, n = offsets[p], offsets[p + 1] - offsets[p]
        trial, state, fewest = masses[start : start + n].copy(), seeds[p], n + 1
        for _ in range(_TRIES):
            for i in range(n - 2, 0, -1):
                value, state = _random(state)
                j = np.int64(value % np.uint64(i + 1))
                trial[i], trial[j] = trial[j], trial[i]
            same, prefix_mass, trial_mass = 0, 0.0, 0.0
            for i in range(n - 1):
                prefix_mass += masses[start + i]
                trial_mass += trial[i]
                same += abs(prefix_mass - trial_mass) < _SAME_MASS
            if same < fewest:
                fewest = same
                out[start : start + n] = trial


class ShuffledPeptides(NamedTuple):
    """Peptides of n spectra, original and shuffled; masses in dalton.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Range of the residues of each peptide.
    masses, shuffled : float64
        Masses of residues with modifications.
    n_terminal, c_terminal : (n,) float64
        Masses of modifications at the termini.
    has_series : (n, 4) bool
        One column for each series in `MOVED_SERIES`: True if the spectrum has ions of the series.
    """

    offsets: NDArray[np.int64]
    masses: NDArray[np.float64]
    shuffled: NDArray[np.float64]
    n_terminal: NDArray[np.float64]
    c_terminal: NDArray[np.float64]
    has_series: NDArray[np.bool_]


@njit(nogil=True, cache=True)
def _fragments(masses, shuffled, n_terminal, total, most, has_series, position, shift):
    """Write the m/z of the ions of a peptide to `position`, and the m/z differences to the ions of the shuffled peptide to `shift`.

    The ions have up to `most` charges.
    """
    count, prefix_mass, other = 0, n_terminal, n_terminal
    for i in range(len(masses) - 1):
        prefix_mass += masses[i]
        other += shuffled[i]
        for z in range(1, most + 1):
            for kind in range(4):
                if has_series[kind]:
                    is_front = kind % 2 == 0
                    position[count] = ((prefix_mass if is_front else total - prefix_mass) + _END_MASS[kind]) / z + _PROTON
                    shift[count] = (other - prefix_mass if is_front else prefix_mass - other) / z
                    count += 1


@njit(nogil=True, cache=True)
def move_peaks(peaks, charge, peptides, tolerance_absolute, tolerance_relative, first, last, out_mz, out_intensity):
    """Move peaks of the spectra `first:last` from the fragment m/z of their peptides to the fragment m/z of the shuffled peptides.

    Fragments are the ions of each spectrum's series with charges from 1 to 3, below the precursor charge. Peaks below 300 Th, and from two
    waters below the precursor to its second isotope, are not moved.

    Parameters
    ----------
    peaks
        `PeakArrays`.
    charge : (n,) int64
        Precursor charge.
    peptides
        `ShuffledPeptides`.
    tolerance_absolute, tolerance_relative
        Fragment tolerance.
    out_mz, out_intensity
        Output, like `peaks.mz` and `peaks.intensity`, sorted by m/z.
    """
    peak_offsets, mz, intensity = peaks
    offsets, masses, shuffled, n_terminal, c_terminal, has_series = peptides
    for s in range(first, last):
        start, end = offsets[s], offsets[s + 1]
        most = max(1, min(3, charge[s] - 1))
        position = np.empty((end - start - 1) * most * has_series[s].sum(), np.float64)
        shift = np.empty_like(position)
        total = n_terminal[s] + c_terminal[s] + _WATER
        for i in range(start, end):
            total += masses[i]
        _fragments(masses[start:end], shuffled[start:end], n_terminal[s], total, most, has_series[s], position, shift)
        order = np.argsort(position)
        ordered = position[order]
        low, high = peak_offsets[s], peak_offsets[s + 1]
        moved = np.empty(high - low, np.float64)
        precursor = total / charge[s] + _PROTON
        for i in range(low, high):
            moved[i - low] = mz[i]
            tolerance = tolerance_absolute + tolerance_relative * mz[i]
            is_near = -_BELOW / charge[s] - tolerance <= mz[i] - precursor <= _ABOVE / charge[s] + tolerance
            if mz[i] < _LOWEST or is_near:
                continue
            at = np.searchsorted(ordered, mz[i])
            nearest, distance = -1, tolerance
            for k in range(max(0, at - 1), min(len(position), at + 1)):
                if abs(ordered[k] - mz[i]) <= distance:
                    nearest, distance = order[k], abs(ordered[k] - mz[i])
            if nearest >= 0:
                moved[i - low] += shift[nearest]
        by_mz = np.argsort(moved, kind="mergesort")
        for i in range(high - low):
            out_mz[low + i], out_intensity[low + i] = moved[by_mz[i]], intensity[low + by_mz[i]]
