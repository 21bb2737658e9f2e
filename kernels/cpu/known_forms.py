"""Peptidoforms with the modifications that a database annotates at residues, for the peptide dictionary.

If a peptide occurs several times in proteins, it may carry the modifications listed at any occurrence, at most one per residue and
terminus.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.candidates import lower_bound
from proteoscope.kernels.cpu.ion_lookup import lowest_bit
from proteoscope.kernels.cpu.peptides import FLAG_PROTEIN_C_TERM, FLAG_PROTEIN_N_TERM

__all__ = ["list_known_forms"]

_LONGEST = 64
_WORDS = 4  # 64-bit words of a set with one bit per modification (at most 256)
_NONE = 255
_SAME_MASS = 1e-4  # dalton


@njit(nogil=True, cache=True)
def list_known_forms(sources, first, last, lightest, heaviest, counts, fill, cursor, forms):
    """List the peptidoforms of the peptides `first:last` with known modifications and `lightest` <= mass < `heaviest` (dalton).

    Peptidoforms are listed by increasing number of modifications, and for each number in order of sites and modifications, up to
    `KnownFormRules.maximum_forms` per peptide. Masses of modifications are added in order of their sites. Peptidoforms that also result
    from the variable modifications of the search are excluded.

    Parameters
    ----------
    sources
        `FormSources`.
    counts : (b,) int64
        Output; increased by the number of peptidoforms of each integer mass (Da). The first and last elements also count lighter and
        heavier peptidoforms.
    fill
        True to also write the peptidoforms to `forms` (`KnownForms`), from row `cursor`.
    """
    dictionary, sites, rules = sources.dictionary, sources.sites, sources.rules
    bits = np.zeros((_LONGEST + 2, _WORDS), np.uint64)
    most = rules.maximum_modifications
    pair_site = np.empty(rules.maximum_forms, np.int64)
    pair_modification = np.empty(rules.maximum_forms, np.int64)
    chosen = np.zeros(most + 1, np.int64)
    mass = np.zeros(most + 1, np.float64)
    for peptide in range(first, last):
        n_pairs = _gather(peptide, sources, bits, pair_site, pair_modification)
        n_forms = 0
        for size in range(1, most + 1 if n_pairs else 1):
            # Depth-first search over combinations in ascending order, which skips incompatible pairs immediately.
            depth, mass[0] = 0, dictionary.mass[peptide]
            chosen[0] = 0
            while depth >= 0 and n_forms < rules.maximum_forms:
                at = chosen[depth]
                if at >= n_pairs:
                    depth -= 1
                    if depth >= 0:
                        chosen[depth] += 1
                    continue
                if not _go_together(at, depth, chosen, pair_site, pair_modification, sites.place):
                    chosen[depth] += 1
                    continue
                mass[depth + 1] = mass[depth] + sites.mass[pair_modification[at]]
                if depth + 1 < size:
                    depth += 1
                    chosen[depth] = at + 1
                    continue
                n_forms += 1
                if lightest <= mass[size] < heaviest:
                    counts[min(len(counts) - 1, max(0, np.int64(mass[size])))] += 1
                    if fill:
                        _write(cursor, peptide, mass[size], size, chosen, pair_site, pair_modification, forms)
                        cursor += 1
                chosen[depth] += 1


@njit(nogil=True, cache=True, _nrt=False)
def _gather(peptide, sources, bits, pair_site, pair_modification):
    """List the known (site, modification) pairs of a peptide, sorted by both, in `pair_site` and `pair_modification`.

    Return the number of pairs, at most the length of the arrays. `bits` is workspace.
    """
    dictionary, sites, first_decoy = sources.dictionary, sources.sites, sources.first_decoy
    length = np.int64(dictionary.length[peptide])
    is_target = dictionary.position[peptide] < first_decoy
    n_found = 0
    for o in range(dictionary.pointer[peptide], dictionary.pointer[peptide + 1]):
        begin = np.int64(dictionary.occurrence[o])
        if is_target and begin >= first_decoy:
            break
        s = lower_bound(sites.position, 0, len(sites.position), begin)
        while s < len(sites.position) and np.int64(sites.position[s]) < begin + length:
            m, position = np.int64(sites.modification[s]), np.int64(sites.position[s]) - begin + 1
            end = sites.place[m]
            s += 1
            if end > 0:
                if position != (1 if end % 2 == 1 else length):
                    continue
                if not sites.is_on_residue[m]:
                    position = 0 if end % 2 == 1 else length + 1
            if _is_searched_anyway(m, position, peptide, sources):
                continue
            if n_found == 0:
                bits[:] = 0
            n_found += 1
            bits[position, m // 64] |= np.uint64(1) << np.uint64(m % 64)
    n = 0
    for position in range(length + 2 if n_found else 0):
        for word in range(_WORDS):
            left = bits[position, word]
            while left and n < len(pair_site):
                pair_site[n], pair_modification[n] = position, 64 * word + lowest_bit(left)
                left &= left - np.uint64(1)
                n += 1
    return n


@njit(nogil=True, cache=True, _nrt=False)
def _is_searched_anyway(m, position, peptide, sources):
    """Return True if a variable modification of the search adds the same mass at this site."""
    dictionary, sites, rules = sources.dictionary, sources.sites, sources.rules
    length, flags = np.int64(dictionary.length[peptide]), dictionary.flags[peptide]
    residue = sources.residues[np.int64(dictionary.position[peptide]) + min(max(position, 1), length) - 1] - 65
    for v in range(len(rules.variable_mass)):
        if abs(rules.variable_mass[v] - sites.mass[m]) > _SAME_MASS or not (rules.variable_mask[v] >> np.uint32(residue)) & np.uint32(1):
            continue
        where, end = rules.variable_place[v], sites.place[m]
        is_elsewhere = where >= 3 and not flags & (FLAG_PROTEIN_N_TERM if where == 3 else FLAG_PROTEIN_C_TERM)
        is_searched = where == 0 or (where < 0 and position != length)
        if (is_searched and end == 0) or (where > 0 and end > 0 and (where - end) % 2 == 0 and not is_elsewhere):
            return True
    return False


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def _go_together(pair, n_chosen, chosen, pair_site, pair_modification, position):
    """Return True if a modification at a site is compatible with all chosen modifications, also at termini."""
    end = position[pair_modification[pair]]
    for t in range(n_chosen):
        other = position[pair_modification[chosen[t]]]
        if pair_site[chosen[t]] == pair_site[pair] or (end > 0 and other > 0 and (end - other) % 2 == 0):
            return False
    return True


@njit(nogil=True, cache=True, _nrt=False)
def _write(row, peptide, mass, size, chosen, pair_site, pair_modification, forms):
    """Write a peptidoform with the `size` pairs of site and modification in `chosen`, sorted by modification and site, to a row."""
    forms.peptide[row], forms.mass[row] = peptide, mass
    for t in range(forms.site.shape[1]):
        forms.site[row, t] = forms.modification[row, t] = _NONE
    for t in range(size):
        site, modification = pair_site[chosen[t]], pair_modification[chosen[t]]
        k = t
        while k > 0 and forms.modification[row, k - 1] > modification:  # insertion sort by modification; sites are already ascending
            forms.modification[row, k], forms.site[row, k] = forms.modification[row, k - 1], forms.site[row, k - 1]
            k -= 1
        forms.modification[row, k], forms.site[row, k] = modification, site
