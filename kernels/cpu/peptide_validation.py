"""Validation of columns of an index from disk, so that no array index in them is out of bounds.

Other kernels rely on this validation, since bounds checks in their inner loops would be slow.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["peptides_are_valid"]


@njit(nogil=True, cache=True)
def peptides_are_valid(dictionary, n_residues, minimum_length, maximum_length, first, last, first_occurrence, last_occurrence):
    """Return True if the peptides `first:last` of a dictionary, and a range of its occurrence lists, are within bounds.

    Requirements: ascending masses without NaN; lengths within their limits and within the residues after each position; no more missed
    cleavages than bonds; no symbol after Z; at least one position in each list; all positions within the residues.

    Parameters
    ----------
    dictionary
        `PeptideDictionary`, whose `pointer` is (n + 1,).
    n_residues
        Number of residues of all proteins.
    minimum_length, maximum_length
        Limits of the peptide length.
    """
    mass, position, length, flags, symbols, pointer, occurrence = dictionary
    # Separate loops over each column, from 0, which combine values of the column's own width with "or": the compiler can vectorise
    # these.
    falls = np.uint64(0)
    masses = mass[max(0, first - 1) : last]
    for i in range(1, len(masses)):
        falls |= np.uint64(not (masses[i] >= masses[i - 1]))
    lengths, ends = length[first:last], flags[first:last]
    shortest, longest, too_many = np.uint8(minimum_length), np.uint8(min(maximum_length, n_residues, 255)), np.uint8(0)
    for i in range(len(lengths)):
        n = lengths[i]
        too_many |= np.uint8((n < shortest) | (n > longest) | (np.uint8(ends[i] >> np.uint8(2)) >= n))
    positions, workspace, beyond = position[first:last], np.uint32(n_residues), np.uint32(0)
    for i in range(len(positions)):
        beyond |= np.uint32(positions[i] > np.uint32(workspace - np.uint32(lengths[i])))
    every, result = np.uint32(0), symbols[first:last]
    for i in range(len(result)):
        every |= result[i]
    starts, stops, sign = pointer[first:last], pointer[first + 1 : last + 1], np.int64(0)
    for i in range(len(starts)):
        sign |= starts[i] | (stops[i] - starts[i] - 1)
    indices = occurrence[first_occurrence:last_occurrence]
    for k in range(len(indices)):
        beyond |= np.uint32(indices[k] >= workspace)
    return falls == 0 and too_many == 0 and beyond == 0 and every >> np.uint32(26) == 0 and sign >= 0
