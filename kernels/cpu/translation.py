"""Translation of nucleotides in all reading frames, from one stop codon to the next."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["BASES", "frames"]

BASES = "-ACMGRSVTWYHKDBN"
"""Symbol of each set of bases (IUPAC): A is bit 0, C bit 1, G bit 2, T bit 3; the first symbol, of no base, is for invalid characters."""
_STOP, _UNKNOWN = np.uint8(ord("*")), np.uint8(ord("X"))


def _base_sets() -> NDArray[np.uint8]:
    sets = np.zeros(256, np.uint8)
    for bases, symbol in enumerate(BASES):
        sets[ord(symbol)] = sets[ord(symbol.lower())] = bases
    for uracil in "Uu":
        sets[ord(uracil)] = BASES.index("T")
    return sets


_BASE_SETS = _base_sets()
_COMPLEMENTS = np.array([sum(((bases >> bit) & 1) << (3 - bit) for bit in range(4)) for bases in range(16)], np.uint8)


@njit(nogil=True, cache=True)
def frames(nucleotides, offsets, residue_of_codon, minimum, strands, positions, residues):
    """Find open reading frames: in each frame, ranges from a stop codon or sequence end to the next stop codon or sequence end.

    Parameters
    ----------
    nucleotides : (total,) uint8
        Characters of all sequences.
    offsets : (n + 1,) int64
        Start of each sequence in `nucleotides`.
    residue_of_codon : (4096,) uint8
        Residue of each codon of three sets of bases, the first set in the highest bits.
    minimum
        Minimum number of residues of a reading frame, not counting unknown codons (X).
    strands : (2,) bool
        True to translate the sequences, and True to translate their reverse complements.
    positions : (f, 5) int64
        Output, written while there is space: sequence, first and last nucleotide (inclusive, from 0, on the given strand), strand (1 or
        -1), and frame (0 to 2, counted from the end where translation starts).
    residues : (r,) uint8
        Output, written while there is space: residues of the frames, concatenated.

    Returns
    -------
    (int, int)
        Number of all frames and of their residues, including frames that were not written because the outputs were full.
    """
    n_frames, n_residues = 0, 0
    for sequence in range(len(offsets) - 1):
        start, stop = offsets[sequence], offsets[sequence + 1]
        length = stop - start
        for strand in range(2):
            if not strands[strand]:
                continue
            for frame in range(3):
                first, n_residues_known, written = frame, 0, n_residues
                at = frame
                while at <= length:
                    residue = _STOP
                    if at + 3 <= length:
                        codon = 0
                        for i in range(3):
                            if strand == 0:
                                bases = _BASE_SETS[nucleotides[start + at + i]]
                            else:
                                bases = _COMPLEMENTS[_BASE_SETS[nucleotides[stop - 1 - at - i]]]
                            codon = codon * 16 + bases
                        residue = residue_of_codon[codon]
                    if residue != _STOP:
                        if written < len(residues):
                            residues[written] = residue
                        written += 1
                        n_residues_known += residue != _UNKNOWN
                        at += 3
                        continue
                    if n_residues_known > 0 and n_residues_known >= minimum:
                        if n_frames < len(positions):
                            last = at - 1
                            positions[n_frames, 0] = sequence
                            positions[n_frames, 1] = first if strand == 0 else length - 1 - last
                            positions[n_frames, 2] = last if strand == 0 else length - 1 - first
                            positions[n_frames, 3] = 1 - 2 * strand
                            positions[n_frames, 4] = frame
                        n_frames += 1
                        n_residues = written
                    if at + 3 > length:
                        break
                    at += 3
                    first, n_residues_known, written = at, 0, n_residues
    return n_frames, n_residues
