"""Peptidoforms (peptides with an arrangement of variable modifications): numbers, counts by mass, and lists sorted by mass."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.arrangements import first_arrangement, is_possible, next_arrangement
from proteoscope.kernels.layouts import ISOTOPE_BITS, ModificationArrays, PeptideArrays, PeptidoformCode

__all__ = ["arrangement_workspace", "arrangements_of", "count_peptidoforms", "list_peptidoforms", "peptidoform_code"]

_LONGEST = 64
_CODE_BITS = 63


def peptidoform_code(peptides: PeptideArrays, modifications: ModificationArrays) -> PeptidoformCode:
    """Return the code that numbers the candidates of the given peptides and modifications.

    Raises
    ------
    ValueError
        If the numbers exceed 63 bits.
    """
    peptide_bits = max(1, (len(peptides.mass) - 1).bit_length())
    arrangement_bits = max(1, (modifications.maximum_forms - 1).bit_length())
    combination_bits = (len(modifications.combination_mass) - 1).bit_length()
    if peptide_bits + arrangement_bits + combination_bits + ISOTOPE_BITS > _CODE_BITS:
        raise ValueError("too many peptides, combinations and arrangements for one number")
    return PeptidoformCode(peptide_bits, arrangement_bits, peptide_bits + arrangement_bits)


@njit(nogil=True, cache=True)
def arrangement_workspace(peptides, modifications):
    """Return a workspace for one peptide: sites (m, 64), site counts (m,), modification, choice and site per slot; int64."""
    n, slots = max(1, len(modifications.mass)), max(1, peptides.known_site.shape[1])
    for c in range(len(modifications.combination_count)):
        slots = max(slots, modifications.combination_count[c].sum())
    return (
        np.zeros((n, _LONGEST), np.int64),
        np.zeros(n, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
    )


@njit(nogil=True, cache=True, _nrt=False)
def _count_arrangements(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice, slot_site):
    """Return the number of peptidoforms of a peptide with combination `c`."""
    slots = first_arrangement(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice)
    if slots <= 0:
        return 1 + slots
    forms = 0
    while True:
        forms += is_possible(slots, slot_modification, slot_choice, sites, slot_site)
        if forms >= modifications.maximum_forms or not next_arrangement(slots, slot_modification, slot_choice, n_sites):
            return forms


@njit(nogil=True, cache=True)
def count_peptidoforms(peptides, modifications, first, last, bucket_width, n_forms, n_residues):
    """Count the peptidoforms of the peptides `first:last` by mass, in buckets of `bucket_width` dalton, to plan an index.

    Counts are added to `n_forms` (b,) int64; the numbers of bonds of these peptidoforms, which are the postings of each ion series, are
    added to `n_residues` (b,) int64. The first and last buckets include lighter and heavier peptidoforms.
    """
    sites, n_sites, slot_modification, slot_choice, slot_site = arrangement_workspace(peptides, modifications)
    for peptide in range(first, last):
        for c in range(len(modifications.combination_mass)):
            forms = _count_arrangements(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice, slot_site)
            if forms:
                mass = peptides.mass[peptide] + modifications.combination_mass[c]
                b = min(len(n_forms) - 1, max(0, np.int64(mass / bucket_width)))
                n_forms[b] += forms
                n_residues[b] += forms * (np.int64(peptides.length[peptide]) - 1)


@njit(nogil=True, cache=True)
def arrangements_of(peptides, modifications, c, first, last, out):
    """Write the number of peptidoforms of each of the peptides `first:last` with combination `c` to `out` (last - first,) int64."""
    sites, n_sites, slot_modification, slot_choice, slot_site = arrangement_workspace(peptides, modifications)
    for peptide in range(first, last):
        out[peptide - first] = _count_arrangements(
            c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice, slot_site
        )


def list_peptidoforms(
    peptides: PeptideArrays, modifications: ModificationArrays, low: float, high: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return mass and number of each peptidoform with `low` <= mass < `high` (dalton), ordered by mass, then number."""
    code = peptidoform_code(peptides, modifications)
    masses, codes, counts = [], [], []
    for c, added in enumerate(modifications.combination_mass.tolist()):
        # Rounding may move a mass across the border by one unit in the last place: search a slightly wider range, then compare sums.
        first, last = np.searchsorted(peptides.mass, (low - added - 1e-6, high - added + 1e-6))
        mass = peptides.mass[first:last] + added
        inside = (mass >= low) & (mass < high)
        n = np.zeros(last - first, np.int64)
        arrangements_of(peptides, modifications, c, int(first), int(last), n)
        inside &= n > 0
        masses.append(mass[inside])
        counts.append(n[inside])
        start = (c << ISOTOPE_BITS + code.isotope_shift) + (np.arange(first, last, dtype=np.int64) << code.arrangement_bits)
        codes.append(start[inside])
    mass, number, count = np.concatenate(masses), np.concatenate(codes), np.concatenate(counts)
    order = np.argsort(mass, kind="stable")
    mass, number, count = mass[order], number[order], count[order]
    before = np.cumsum(count) - count
    arrangement = np.arange(int(count.sum())) - np.repeat(before, count)
    return np.repeat(mass, count), np.repeat(number, count) + arrangement
