"""CIGARs of alignments of which the lengths of pairs and gaps are known, and how many of the pairs are of the same letter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kernels.gapsmis_layouts import Alignments, Sequences

__all__ = ["cigars_of", "write_cigars"]

_SAME, _OTHER, _PATTERN_ALONE, _TEXT_ALONE, _ZERO = ord("="), ord("X"), ord("I"), ord("D"), ord("0")


@njit(nogil=True, cache=True, error_model="numpy")
def write_cigars(texts, text_begins, patterns, pattern_begins, runs, offsets, letters, lengths, same, columns):
    """Write the CIGAR of each alignment behind its offset, or only measure them.

    Parameters
    ----------
    texts, patterns : int8 codes. text_begins, pattern_begins : (n,) int64, the first letter of each alignment. runs : (n, 2 z + 1) int32
        of `kernels.gapsmis_layouts.Alignments`. offsets : (n,) int64. letters : uint8, to fill; where it is empty nothing is written.
    lengths, same, columns : (n,) int64, filled: letters of each CIGAR, pairs of the same letter, steps.
    """
    for k in range(len(text_begins)):
        i, j, place = text_begins[k], pattern_begins[k], offsets[k]
        same[k] = columns[k] = 0
        for r in range(runs.shape[1]):
            length = np.int64(runs[k, r])
            if r % 2 == 0:
                step = 0
                while step < length:
                    is_same, first = texts[i] == patterns[j], step
                    while step < length and (texts[i] == patterns[j]) == is_same:
                        i, j, step = i + 1, j + 1, step + 1
                    same[k] += step - first if is_same else 0
                    place = _write_step(step - first, _SAME if is_same else _OTHER, letters, place)
            elif length > 0:
                j += length
                place = _write_step(length, _PATTERN_ALONE, letters, place)
            elif length < 0:
                i -= length
                place = _write_step(-length, _TEXT_ALONE, letters, place)
            columns[k] += abs(length)
        lengths[k] = place - offsets[k]


@njit(nogil=True, cache=True, error_model="numpy")
def _write_step(count, kind, letters, place):
    """Write one step with its count: the place behind it."""
    digits, rest = 1, count
    while rest >= 10:
        rest //= 10
        digits += 1
    if len(letters):
        for digit in range(digits):
            letters[place + digits - 1 - digit] = _ZERO + count % 10
            count //= 10
        letters[place + digits] = kind
    return place + digits + 1


def cigars_of(
    texts: Sequences, patterns: Sequences, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64], found: Alignments
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The CIGARs of alignments (``=`` a pair of the same letter, ``X`` of others, ``I`` the pattern's letter alone, ``D`` the text's).

    Returns
    -------
    letters of all CIGARs, (n + 1,) where each begins, and (n,) pairs of the same letter and (n,) steps.
    """
    n = len(text_of)
    begins = texts.offsets[text_of] + found.text_start, patterns.offsets[pattern_of] + found.pattern_start
    offsets, letters = np.zeros(n + 1, np.int64), np.empty(0, np.uint8)
    lengths, same, columns = (np.zeros(n, np.int64) for _ in range(3))
    given: Any = texts.codes, begins[0], patterns.codes, begins[1], found.runs
    write_cigars(*given, np.zeros(n, np.int64), letters, lengths, same, columns)
    np.cumsum(lengths, out=offsets[1:])
    letters = np.empty(offsets[-1], np.uint8)
    if len(letters):
        write_cigars(*given, offsets[:-1], letters, lengths, same, columns)
    return letters, offsets, same, columns
