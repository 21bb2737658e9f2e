"""Digestion of proteins to the inverted index of peptides (enumeration, buckets by mass, sorting, merging), and decoy sequences.

The index is that of Li's thesis, chapter 3: a dictionary of distinct peptides in order of mass, each with a pointer to an inverted list of
positions. The enumeration runs twice. The first pass counts peptides in mass buckets (the pre-calculation of Li 2014), which are combined
to runs (sequences of buckets) with about equal counts. The second pass writes each peptide to its run. Runs fit the cache and are sorted in
parallel, and any range of runs can be built separately.

Masses are integers of 1e-9 Da here: sums of integers do not depend on their order, so that equal peptides have equal masses.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "FLAG_PROTEIN_C_TERM",
    "FLAG_PROTEIN_N_TERM",
    "MISSED_CLEAVAGE_SHIFT",
    "SIGNATURE_TAIL",
    "digest_proteins",
    "merge_peptides",
    "write_decoys",
]

FLAG_PROTEIN_N_TERM = 1
FLAG_PROTEIN_C_TERM = 2
MISSED_CLEAVAGE_SHIFT = 2
SIGNATURE_TAIL = np.uint64(44)

_SIGNATURE_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@njit(nogil=True, cache=True)
def digest_proteins(residues, offsets, first_protein, last_protein, rules, run_of_bucket, cursor, fill, entries):
    """Enumerate the peptides of the proteins `first_protein:last_protein`; count them by run of mass buckets, or write them to the runs.

    Parameters
    ----------
    residues, offsets : (total,) uint8
        Residues of the proteins as ASCII, and start of each protein, (n + 1,) int64.
    rules
        `DigestionRules`.
    run_of_bucket : (buckets,) int64
        Run of each bucket; negative for ignored buckets.
    cursor : (runs,) int64
        When counting, number of peptides of each run, which is increased; when writing, next index of each run, which is advanced.
    fill
        False to count, True to write the entries.
    entries
        `PeptideEntries`.
    """
    cleaves, residue_mass, terminal_mass, required_ends, maximum_missed = rules[:5]
    minimum_length, maximum_length, clip_methionine, minimum_mass, maximum_mass, bucket_width = rules[5:]
    out_mass, out_signature, out_position, out_length, out_flags, out_residue_set = entries
    for protein in range(first_protein, last_protein):
        begin, end = offsets[protein], offsets[protein + 1]
        clipped = clip_methionine and end - begin > 1 and residues[begin] == 77
        for start in range(begin, end):
            start_is_end = start == begin or (clipped and start == begin + 1)
            if not start_is_end:
                start_is_end = cleaves[residues[start - 1] - 65, residues[start] - 65]
            if required_ends == 2 and not start_is_end:
                continue
            mass = terminal_mass
            signature = np.uint64(0)
            symbols = np.uint32(0)
            missed = 0
            stop = min(end, start + maximum_length)
            for last in range(start, stop):
                symbol = residues[last] - 65
                if residue_mass[symbol] < 0:
                    break
                mass += residue_mass[symbol]
                if mass > maximum_mass:
                    break
                signature = (signature ^ np.uint64(symbol + 1)) * _SIGNATURE_FACTOR
                signature ^= signature >> np.uint64(29)
                symbols |= np.uint32(1) << np.uint32(symbol)
                at_protein_end = last + 1 == end
                cut = at_protein_end or cleaves[symbol, residues[last + 1] - 65]
                length = last - start + 1
                ends = (1 if start_is_end else 0) + (1 if cut else 0)
                if length >= minimum_length and mass >= minimum_mass and ends >= required_ends:
                    run = run_of_bucket[mass // bucket_width]
                    if run >= 0:
                        if fill:
                            position = cursor[run]
                            out_mass[position] = mass
                            out_signature[position] = signature
                            out_position[position] = start
                            out_length[position] = length
                            flags = missed << MISSED_CLEAVAGE_SHIFT
                            if start == begin or (clipped and start == begin + 1):
                                flags |= FLAG_PROTEIN_N_TERM
                            if at_protein_end:
                                flags |= FLAG_PROTEIN_C_TERM
                            out_flags[position] = flags
                            out_residue_set[position] = symbols
                        cursor[run] += 1
                if cut:
                    missed += 1
                    if missed > maximum_missed and required_ends > 0:
                        break


@njit(nogil=True, cache=True)
def _compare_peptides(residues, mass, signature, position, length, i, j):
    """Return -1, 0 or 1 if peptide i is before, equal to or after peptide j, by mass, signature, length and residues."""
    if mass[i] != mass[j]:
        return -1 if mass[i] < mass[j] else 1
    if signature[i] != signature[j]:
        return -1 if signature[i] < signature[j] else 1
    if length[i] != length[j]:
        return -1 if length[i] < length[j] else 1
    a, b = np.int64(position[i]), np.int64(position[j])
    for k in range(length[i]):
        if residues[a + k] != residues[b + k]:
            return -1 if residues[a + k] < residues[b + k] else 1
    return 0


@njit(nogil=True, cache=True)
def merge_peptides(residues, first_decoy, order, entries, dictionary):
    """Merge the occurrences of each peptide; return the number of distinct peptides.

    Two peptides are equal if their masses, 64-bit signatures and residues are equal. Residues are compared only for equal signatures, so
    that collisions do not merge different peptides.

    Parameters
    ----------
    first_decoy
        Position from which all residues are decoys.
    order
        (n,) int64, peptides sorted by mass and by signature without its lowest SIGNATURE_TAIL bits; completely sorted in place.
    entries
        n entries from `digest_proteins`.
    dictionary
        `PeptideDictionary`, output, with space for n peptides. The number of missed cleavages is taken from the first occurrence.
    """
    mass, signature, position, length, flags, symbols = entries
    out_mass, out_position, out_length, out_flags, out_residue_set, out_pointer, out_occurrence = dictionary
    n = len(order)
    start, distinct = 0, -1
    while start < n:
        first, head, stop = mass[order[start]], signature[order[start]] >> SIGNATURE_TAIL, start + 1
        while stop < n and mass[order[stop]] == first and signature[order[stop]] >> SIGNATURE_TAIL == head:
            stop += 1
        gap = 1
        while gap < (stop - start) // 3:
            gap = 3 * gap + 1
        while gap >= 1:
            for i in range(start + gap, stop):
                entry, j = order[i], i
                while j - gap >= start:
                    other = order[j - gap]
                    compared = _compare_peptides(residues, mass, signature, position, length, other, entry)
                    if compared < 0 or (compared == 0 and position[other] < position[entry]):
                        break
                    order[j] = other
                    j -= gap
                order[j] = entry
            gap //= 3
        for i in range(start, stop):
            entry = order[i]
            if i == start or _compare_peptides(residues, mass, signature, position, length, order[i - 1], entry) != 0:
                distinct += 1
                out_mass[distinct] = mass[entry] * 1e-9
                out_position[distinct] = position[entry]
                out_length[distinct] = length[entry]
                out_flags[distinct] = flags[entry]
                out_residue_set[distinct] = symbols[entry]
                out_pointer[distinct] = i
            # Ends of a decoy do not count for a target peptide with the same sequence.
            elif position[entry] < first_decoy or out_position[distinct] >= first_decoy:
                out_flags[distinct] |= flags[entry] & (FLAG_PROTEIN_N_TERM | FLAG_PROTEIN_C_TERM)
            out_occurrence[i] = position[entry]
        start = stop
    return distinct + 1


@njit(nogil=True, cache=True)
def write_decoys(residues, offsets, method, cleaves, seed, out, origin):
    """Write one decoy per protein into `out` (total,) uint8, at the same offsets, and the origin of each residue into `origin`.

    `origin` is (total,) int64, or empty if not needed.

    Method 0 reverses the protein; 1 reverses each segment between cleavage sites, except for the residues at which the enzyme cuts
    (pseudo-reversal, Elias & Gygi 2007: decoy peptides keep their masses); 2 shuffles the same segments with a generator
    seeded by `seed` and the protein's residues, so that a protein has the same decoy in every database.
    """
    has_origin = len(origin) > 0
    stays_first, stays_last = np.ones(26, np.bool_), np.zeros(26, np.bool_)
    for a in range(26):
        for b in range(26):
            stays_first[b] &= cleaves[a, b]
    for a in range(26):
        for b in range(26):
            stays_last[a] |= cleaves[a, b] and not stays_first[b]
    for protein in range(len(offsets) - 1):
        begin, end = offsets[protein], offsets[protein + 1]
        if method == 0:
            for i in range(begin, end):
                out[begin + end - 1 - i] = residues[i]
                if has_origin:
                    origin[begin + end - 1 - i] = i
            continue
        state = np.uint64(seed)
        for i in range(begin, end):
            state = (state ^ np.uint64(residues[i])) * _SIGNATURE_FACTOR
            state ^= state >> np.uint64(31)
        low = begin
        for i in range(begin, end):
            out[i] = residues[i]
            if has_origin:
                origin[i] = i
            if i + 1 < end and not cleaves[residues[i] - 65, residues[i + 1] - 65]:
                continue
            high = i if stays_last[residues[i] - 65] else i + 1
            if stays_first[residues[low] - 65]:
                low += 1
            if method == 1:
                for k in range(high - low):
                    out[low + k] = residues[high - 1 - k]
                    if has_origin:
                        origin[low + k] = high - 1 - k
            else:
                for k in range(high - low - 1, 0, -1):
                    state += _SIGNATURE_FACTOR
                    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                    mixed ^= mixed >> np.uint64(31)
                    j = np.int64(mixed % np.uint64(k + 1))
                    out[low + k], out[low + j] = out[low + j], out[low + k]
                    if has_origin:
                        origin[low + k], origin[low + j] = origin[low + j], origin[low + k]
            low = i + 1
