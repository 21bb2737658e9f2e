"""CIGAR strings, MD tags (SAM specification) and numbers of matches of alignments."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.gapsmis_layouts import Alignments, Sequences

__all__ = ["Cigars", "alignment_cigars", "write_cigars"]

_SAME, _OTHER, _PATTERN_ALONE, _TEXT_ALONE, _ZERO, _DELETED = ord("="), ord("X"), ord("I"), ord("D"), ord("0"), ord("^")


class Cigars(NamedTuple):
    """CIGARs of n alignments in the direction of the reference.

    Attributes
    ----------
    cigars, mds
        uint8, concatenated characters.
    cigar_offsets, md_offsets
        (n + 1,) int64.
    same, columns
        (n,) int64, numbers of matches and of alignment columns.
    """

    cigars: NDArray[np.uint8]
    cigar_offsets: NDArray[np.int64]
    mds: NDArray[np.uint8]
    md_offsets: NDArray[np.int64]
    same: NDArray[np.int64]
    columns: NDArray[np.int64]


@njit(nogil=True, cache=True, error_model="numpy")
def write_cigars(texts, text_begins, patterns, pattern_begins, runs, alphabet, unknown, out):
    """Write the CIGAR and the MD tag of each alignment, or measure their lengths.

    Parameters
    ----------
    texts, patterns
        Codes of references and of reads, int8.
    text_begins, pattern_begins : (n,) int64
        Index of the first residue of each alignment in `texts` and in `patterns`.
    runs : (n, 2 z + 1) int32
        Lengths of pairs and gaps, from `proteoscope.kernels.gapsmis_layouts.Alignments`.
    alphabet : uint8
        Symbol of each residue code.
    unknown
        Code that never counts as a match, or -1.
    out
        `Cigars`, output. If its `cigars` are empty, only the offsets are written, to measure the space needed.
    """
    cigars, cigar_offsets, mds, md_offsets, same, columns = out
    writes = len(cigars) > 0
    cigar_offsets[0] = md_offsets[0] = 0
    for k in range(len(text_begins)):
        i, j, position, at = text_begins[k], pattern_begins[k], cigar_offsets[k], md_offsets[k]
        same[k] = columns[k] = 0
        alike = np.int64(0)  # pairs of equal residues since the last residue in the MD text
        for r in range(runs.shape[1]):
            length = np.int64(runs[k, r])
            if r % 2 == 0:
                step = 0
                while step < length:
                    is_same, first = texts[i] == patterns[j] != unknown, step
                    while step < length and (texts[i] == patterns[j] != unknown) == is_same:
                        if not is_same:
                            at = _write_number(alike, mds, at, writes)
                            if writes:
                                mds[at] = alphabet[texts[i]]
                            at, alike = at + 1, 0
                        i, j, step = i + 1, j + 1, step + 1
                    if is_same:
                        same[k] += step - first
                        alike += step - first
                    position = _write_number(step - first, cigars, position, writes)
                    if writes:
                        cigars[position] = _SAME if is_same else _OTHER
                    position += 1
            elif length != 0:
                position = _write_number(abs(length), cigars, position, writes)
                if writes:
                    cigars[position] = _PATTERN_ALONE if length > 0 else _TEXT_ALONE
                position += 1
                if length > 0:
                    j += length
                else:
                    at = _write_number(alike, mds, at, writes)
                    if writes:
                        mds[at] = _DELETED
                        for step in range(-length):
                            mds[at + 1 + step] = alphabet[texts[i + step]]
                    at, alike = at + 1 - length, 0
                    i -= length
            columns[k] += abs(length)
        if columns[k]:
            at = _write_number(alike, mds, at, writes)
        if not writes:
            cigar_offsets[k + 1], md_offsets[k + 1] = position, at


@njit(nogil=True, cache=True, error_model="numpy")
def _write_number(count, characters, position, writes):
    """Write a number and return the next position."""
    digits, rest = 1, count
    while rest >= 10:
        rest //= 10
        digits += 1
    if writes:
        for digit in range(digits):
            characters[position + digits - 1 - digit] = _ZERO + count % 10
            count //= 10
    return position + digits


def alignment_cigars(
    texts: Sequences,
    patterns: Sequences,
    text_of: NDArray[np.int64],
    pattern_of: NDArray[np.int64],
    alignments: Alignments,
    alphabet: NDArray[np.uint8],
    unknown: int,
) -> Cigars:
    """Return the CIGARs of alignments (``=`` match, ``X`` mismatch, ``I`` base of the read only, ``D`` base of the reference only).

    CIGAR and MD tag of an unaligned pair are empty.

    Parameters
    ----------
    alphabet
        uint8, symbol of each code.
    unknown
        Code that matches no code, not even itself; -1 for none.
    """
    n = len(text_of)
    begins = texts.offsets[text_of] + alignments.text_start, patterns.offsets[pattern_of] + alignments.pattern_start
    none = np.empty(0, np.uint8)
    out = Cigars(none, np.zeros(n + 1, np.int64), none, np.zeros(n + 1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64))
    given: Any = texts.codes, begins[0], patterns.codes, begins[1], alignments.runs, alphabet, unknown
    write_cigars(*given, out)
    out = out._replace(cigars=np.empty(out.cigar_offsets[-1], np.uint8), mds=np.empty(out.md_offsets[-1], np.uint8))
    if len(out.cigars):
        write_cigars(*given, out)
    return out
