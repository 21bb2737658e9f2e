"""Enumeration of the arrangements of variable modifications on the sites of a peptide, one by one in the same workspace.

Functions in inner loops are compiled without Numba's reference counting (``_nrt=False``). They do not own arrays, and counting the
references to each array in every call took ten times as long as the computation.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.ion_lookup import RESIDUES_AT_ONCE, count_bits, lowest_bit, matching_residues
from proteoscope.kernels.cpu.peptides import FLAG_PROTEIN_C_TERM, FLAG_PROTEIN_N_TERM

__all__ = ["add_modifications", "find_arrangement", "first_arrangement", "is_possible", "known_row", "next_arrangement"]

_ANY_RESIDUE = np.uint32(0xFFFFFFFF)
_ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
_LONGEST = 64
_NO_MODIFICATION = 255


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _residues_of(residues, position, length, residue_mask):
    """Return a bit mask in which bit i is set if residue i of the peptide is in `residue_mask`."""
    bits = np.uint64(0)
    if position + _LONGEST <= len(residues):
        for i in range(0, length, RESIDUES_AT_ONCE):
            bits |= matching_residues(residues, position + i, residue_mask) << np.uint64(i)
        return bits & (_ALL_BITS >> np.uint64(_LONGEST - length))
    for i in range(length):
        bits |= np.uint64((residue_mask >> np.uint32(residues[position + i] - 65)) & np.uint32(1)) << np.uint64(i)
    return bits


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _find_sites(residues, position, length, flags, residue_mask, index, sites, m, wanted):
    """Write the possible sites of a modification into row m of `sites`, if there are at least `wanted`; return the number of sites.

    Sites are 0 for the N-terminus, 1 to length for residues, length + 1 for the C-terminus.
    """
    if index <= 0:
        bits = _residues_of(residues, position, length, residue_mask)
        if index < 0 and not flags & FLAG_PROTEIN_C_TERM:
            bits &= ~(np.uint64(1) << np.uint64(length - 1))
        n = count_bits(bits)
        if n >= wanted:
            for k in range(n):
                sites[m, k] = lowest_bit(bits) + 1
                bits &= bits - np.uint64(1)
        return n
    any_residue = residue_mask == _ANY_RESIDUE
    at_n_term = index == 1 or (index == 3 and flags & FLAG_PROTEIN_N_TERM)
    at_c_term = index == 2 or (index == 4 and flags & FLAG_PROTEIN_C_TERM)
    if not (at_n_term or at_c_term):
        return 0
    end = 0 if at_n_term else length - 1
    if (residue_mask >> np.uint32(residues[position + end] - 65)) & np.uint32(1):
        sites[m, 0] = (0 if at_n_term else length + 1) if any_residue else end + 1
        return 1
    return 0


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def first_arrangement(c, peptide, peptides, modifications, sites, n_sites, slot_modification, slot_choice):
    """Set the first arrangement of the modification combination `c` on a peptide.

    Returns the number of modifications, including the known modifications of the peptide. Returns -1 if there are too few sites, too many
    modifications, or two modifications of a terminus.

    Parameters
    ----------
    peptides, modifications
        Tuples of arrays of `proteoscope.kernels.layouts`.
    sites, n_sites
        (m, longest) and (m,) int64, output: possible sites of each modification, and the number of sites.
    slot_modification, slot_choice
        (slots,) int64, output: modification in each slot of the combination, and index of its site.
    """
    row = known_row(peptide, peptides)
    if c == 0:
        return _add_known(row, np.int64(0), peptides, modifications, sites, n_sites, slot_modification, slot_choice) if row else 0
    combination_count, residue_mask = modifications.combination_count, modifications.residue_mask
    n_modifications = len(residue_mask)
    for m in range(n_modifications):
        if combination_count[c, m] > 0 and peptides.letters[peptide] & residue_mask[m] == 0:
            return -1
    position, length, flags = np.int64(peptides.position[peptide]), np.int64(peptides.length[peptide]), peptides.flags[peptide]
    slots = 0
    for m in range(n_modifications):
        wanted = combination_count[c, m]
        if wanted == 0:
            continue
        n_sites[m] = _find_sites(peptides.residues, position, length, flags, residue_mask[m], modifications.place[m], sites, m, wanted)
        if n_sites[m] < wanted:
            return -1
        for w in range(wanted):
            slot_modification[slots] = m
            slot_choice[slots] = w
            slots += 1
    return _add_known(row, slots, peptides, modifications, sites, n_sites, slot_modification, slot_choice) if row else slots


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def known_row(peptide, peptides):
    """Return the row of `known_site` with the known modifications of a peptide; 0 if it has none."""
    return np.int64(peptides.known[peptide]) if len(peptides.known) else np.int64(0)


@njit(nogil=True, cache=True, _nrt=False)
def _add_known(row, slots, peptides, modifications, sites, n_sites, slot_modification, slot_choice):
    """Append the modifications of a row of `known_site`, which have fixed sites, to a combination.

    Returns the total number of modifications, or -1 if it exceeds the limit or a terminus would carry two.
    """
    position, combined, most = modifications.place, slots, peptides.known_site.shape[1]
    for k in range(most):
        m = np.int64(peptides.known_modification[row, k])
        if m == _NO_MODIFICATION:
            break
        if slots == most:
            return -1
        for t in range(combined if position[m] > 0 else 0):
            other = position[slot_modification[t]]
            if other > 0 and (other - position[m]) % 2 == 0:
                return -1
        # All possible sites are occupied, so there is no next arrangement.
        if k == 0 or peptides.known_modification[row, k - 1] != m:
            n_sites[m] = 0
        sites[m, n_sites[m]] = peptides.known_site[row, k]
        slot_modification[slots], slot_choice[slots] = m, n_sites[m]
        n_sites[m] += 1
        slots += 1
    return slots


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def is_possible(slots, slot_modification, slot_choice, sites, slot_site):
    """Write the sites of an arrangement into `slot_site`; return True if no two modifications have the same site."""
    free = True
    for t in range(slots):
        slot_site[t] = sites[slot_modification[t], slot_choice[t]]
        for u in range(t):
            if slot_site[u] == slot_site[t]:
                free = False
    return free


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def add_modifications(masses, length, slots, slot_site, slot_modification, modification_mass, n_term, c_term):
    """Add the modifications of an arrangement to the residue masses of a peptide, or to `n_term` and `c_term`.

    Return the two masses of the termini.
    """
    for t in range(slots):
        if slot_site[t] == 0:
            n_term += modification_mass[slot_modification[t]]
        elif slot_site[t] == length + 1:
            c_term += modification_mass[slot_modification[t]]
        else:
            masses[slot_site[t] - 1] += modification_mass[slot_modification[t]]
    return n_term, c_term


@njit(nogil=True, cache=True, _nrt=False)
def next_arrangement(slots, slot_modification, slot_choice, n_sites):
    """Change `slot_choice` to the next arrangement; return False after the last arrangement. Sites of equal modifications ascend."""
    t = slots - 1
    while t >= 0:
        m = slot_modification[t]
        after = 0  # number of later slots of the same modification; each needs a site
        while t + after + 1 < slots and slot_modification[t + after + 1] == m:
            after += 1
        if slot_choice[t] + 1 + after < n_sites[m]:
            slot_choice[t] += 1
            for u in range(t + 1, slots):
                if slot_modification[u] == m or slot_modification[u - 1] == slot_modification[u]:
                    slot_choice[u] = slot_choice[u - 1] + 1
                else:
                    slot_choice[u] = 0
            return True
        t -= 1
    return False


@njit(nogil=True, cache=True, _nrt=False)
def find_arrangement(number, slots, slot_modification, slot_choice, sites, n_sites, slot_site):
    """Advance from the first arrangement to possible arrangement `number`, counted from 0; write its sites into `slot_site`.

    An arrangement is possible if no two modifications have the same site.
    """
    while True:
        if is_possible(slots, slot_modification, slot_choice, sites, slot_site):
            if number == 0:
                return
            number -= 1
        next_arrangement(slots, slot_modification, slot_choice, n_sites)
