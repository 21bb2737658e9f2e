"""Mass lists of peptides and spectra for match scores (`proteoscope.kernels.match_score_layouts`): integer masses at bonds.

The masses of a peptide are the sums of the residue masses from the N-terminus to each bond. A peak is a fragment from either terminus and
thus implies two masses: its own, and the difference to the precursor mass. Both are extended by the tolerance to all possible integer
masses.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.scores import PROTON_MASS
from proteoscope.kernels.device import even_partitions
from proteoscope.kernels.match_score_layouts import MassLists, counting, longest
from proteoscope.kernels.threads import on_threads

__all__ = ["count_spectrum_masses", "counting_candidates", "list_peptide_masses", "list_spectrum_masses"]


@njit(nogil=True, cache=True)
def list_peptide_masses(peptides, per_dalton, first, last, offsets, masses, precursors):
    """Write the ascending, distinct masses of each of the peptides `first:last`, in units of `per_dalton`.

    Parameters
    ----------
    offsets : ndarray of int64, shape (last - first + 1,)
        The first element is the start of the first list in `masses`; the others, the ends of the lists, are output.
    masses : int32
        Output; lists of all peptides, one after another, with one mass per bond.
    precursors : ndarray of int32, shape (last - first,)
        Output; masses of the peptides.
    """
    for peptide in range(first, last):
        position, index = np.int64(peptides.position[peptide]), offsets[peptide - first]
        total, unit = peptides.n_term_mass, np.int64(-(1 << 30))
        bonds = np.int64(peptides.length[peptide]) - 1
        for i in range(bonds):
            total += peptides.residue_mass[np.int64(peptides.residues[position + i]) - 65]
            unit = max(unit + 1, np.int64(np.rint(total * per_dalton)))
            masses[index + i] = unit
        offsets[peptide - first + 1] = index + bonds
        precursors[peptide - first] = np.int32(np.rint(peptides.mass[peptide] * per_dalton))


@njit(nogil=True, cache=True)
def _measure_lists(offsets, masses, precursors, first, last):
    """Return the length of the longest of the lists `first:last`, and whether none has masses that are not counted (see `counting`).

    The length is -1 if the precursors are not in ascending order.
    """
    most, are_counted = np.int64(0), True
    for i in range(first, last):
        begin, end = offsets[i], offsets[i + 1]
        if i > 0 and precursors[i] < precursors[i - 1]:
            return np.int64(-1), are_counted
        most = max(most, end - begin)
        if end > begin and (masses[begin] < 0 or masses[end - 1] >= precursors[i]):
            are_counted = False
    return most, are_counted


def counting_candidates(candidates: MassLists, threads: int) -> tuple[MassLists, int]:
    """Return the lists restricted to masses that are counted (see `counting`), and the length of the longest list.

    Raises
    ------
    ValueError
        If precursor masses are not in ascending order.
    """
    parts = even_partitions(len(candidates.precursors), threads, per_worker=1)
    with on_threads(lambda part: _measure_lists(*candidates, part.first, part.last), parts, threads) as futures:
        measured = [future.result() for future in futures]
    if any(length < 0 for length, _ in measured):
        raise ValueError("candidates are not in ascending order of precursor")
    if all(are_counted for _, are_counted in measured):
        return candidates, max((length for length, _ in measured), default=0)
    lists = counting(candidates)
    return lists, longest(lists)


@njit(nogil=True, cache=True)
def _maximum_ranges(spectra, s, settings):
    """Return the maximum number of ranges of a spectrum."""
    n = spectra.offsets[s + 1] - spectra.offsets[s]
    return n * (len(settings.n_term_series) + len(settings.c_term_series)) * settings.maximum_fragment_charge


@njit(nogil=True, cache=True)
def _ranges(spectra, s, charge, mass, settings, water, per_dalton, slack_absolute, slack_relative, low, high):
    """Write the masses that the peaks of a spectrum imply, as disjoint, ascending ranges `low:high`; return the number of ranges."""
    n_n, n_c = len(settings.n_term_series), len(settings.c_term_series)
    charges, n = max(1, min(settings.maximum_fragment_charge, charge - 1)), 0
    most, slack = np.int64(np.rint(mass * per_dalton)), slack_absolute + slack_relative * mass
    for i in range(spectra.offsets[s], spectra.offsets[s + 1]):
        half = settings.fragment_absolute + settings.fragment_relative * spectra.mz[i]
        for z in range(1, charges + 1):
            single = spectra.mz[i] * z - (z - 1) * PROTON_MASS
            for series in range(n_n + n_c):
                if series < n_n:
                    bond = single - settings.n_term_series[series]
                else:
                    bond = mass - water - (single - settings.c_term_series[series - n_n])
                begin = np.int64(np.rint((bond - half * z - slack) * per_dalton))
                end = np.int64(np.rint((bond + half * z + slack) * per_dalton)) + 1
                begin, end = max(np.int64(0), begin), min(most, end)
                if begin < end:
                    low[n], high[n] = begin, end
                    n += 1
    order = np.argsort(low[:n])
    low[:n], high[:n] = low[order], high[order]
    retained = 0
    for i in range(n):
        if retained > 0 and low[i] <= high[retained - 1]:
            high[retained - 1] = max(high[retained - 1], high[i])
        else:
            low[retained], high[retained] = low[i], high[i]
            retained += 1
    return retained


@njit(nogil=True, cache=True)
def count_spectrum_masses(spectra, queries, settings, water, per_dalton, slack_absolute, slack_relative, first, last, counts):
    """Write the numbers of masses of the queries `first:last` to `counts` (last - first,) int64 (see `list_spectrum_masses`)."""
    for q in range(first, last):
        s, counts[q - first] = queries.spectrum[q], 0
        low, high = np.empty(_maximum_ranges(spectra, s, settings), np.int64), np.empty(_maximum_ranges(spectra, s, settings), np.int64)
        n = _ranges(spectra, s, queries.charge[q], queries.mass[q], settings, water, per_dalton, slack_absolute, slack_relative, low, high)
        for i in range(n):
            counts[q - first] += high[i] - low[i]


@njit(nogil=True, cache=True)
def list_spectrum_masses(spectra, queries, settings, water, per_dalton, slack_absolute, slack_relative, first, last, offsets, masses):
    """Write the ascending, distinct masses of each of the queries `first:last`.

    Parameters
    ----------
    water
        Mass (Da) of a precursor minus its residues.
    slack_absolute, slack_relative
        Extension of the ranges beyond the fragment tolerance, for rounding and precursor errors, in dalton and as a fraction of the
        precursor mass.
    offsets : ndarray of int64, shape (last - first + 1,)
        Start of each list in `masses`.
    masses : int32
        Output; masses of all queries, one list after another.
    """
    for q in range(first, last):
        s, position = queries.spectrum[q], offsets[q - first]
        low, high = np.empty(_maximum_ranges(spectra, s, settings), np.int64), np.empty(_maximum_ranges(spectra, s, settings), np.int64)
        n = _ranges(spectra, s, queries.charge[q], queries.mass[q], settings, water, per_dalton, slack_absolute, slack_relative, low, high)
        for i in range(n):
            for unit in range(low[i], high[i]):
                masses[position] = unit
                position += 1
