"""Lines of SAM and PAF files from columns (SAM: Sequence Alignment/Map Format Specification 1.6; PAF: Li 2016, Bioinformatics 32:2103)."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["MAXIMUM_NUMBERS", "write_paf_lines", "write_sam_lines"]

MAXIMUM_NUMBERS = 256
"""Maximum number of bytes of the numbers, tabs and tag names in a line."""
_TAB, _NEWLINE, _STAR, _EQUAL, _MINUS, _PLUS, _ZERO = ord("\t"), ord("\n"), ord("*"), ord("="), ord("-"), ord("+"), ord("0")
_CLIPPED, _OTHER, _PATTERN_ALONE, _TEXT_ALONE = ord("S"), ord("X"), ord("I"), ord("D")
_IS_REVERSE, _IS_UNPLACED = 16, 4
_MINIMUM_QUALITY = 33
_EDITS = np.frombuffer(b"\tNM:i:", np.uint8)
_SCORE = np.frombuffer(b"\tAS:i:", np.uint8)
_STEPS = np.frombuffer(b"\tcg:Z:", np.uint8)


@njit(nogil=True, cache=True, error_model="numpy")
def write_sam_lines(names, flags, text_names, positions, cigars, clips, tags, rows, sequences, lines, ends):
    """Write a SAM line for each of n records.

    Parameters
    ----------
    names, cigars, tags
        `TextArrays`; each tag is preceded by a tab.
    text_names
        Names of all references.
    flags : (n,) int64
        FLAG field of SAM.
    positions : (n, 6) int64
        Index of the reference, or -1; position, from 1; mapping quality; index of the mate's reference, or -1; position of the mate; length
        of the fragment.
    clips : (n, 2) int64
        Number of residues clipped at each end, in the direction of the reference.
    rows : (n,) int64
        Index of the read of each record.
    sequences
        `SamSequences` of all reads.
    lines : uint8
        Output; must have `MAXIMUM_NUMBERS` bytes per line in addition to the texts.
    ends : (n,) int64
        Output; end of each line in `lines`.
    """
    symbols, qualities, offsets, complement, quality_shift = sequences
    position = np.int64(0)
    for k in range(len(flags)):
        position = _write_text(names.characters, names.offsets[k], names.offsets[k + 1], lines, position)
        position = _write_field(flags[k], lines, position)
        text, mate_text = positions[k, 0], positions[k, 3]
        position = _write_name(text_names.characters, text_names.offsets, text, lines, position)
        position = _write_field(positions[k, 1], lines, position)
        position = _write_field(positions[k, 2], lines, position)
        lines[position] = _TAB
        position += 1
        is_placed = flags[k] & _IS_UNPLACED == 0
        if is_placed:
            position = _write_clip(clips[k, 0], lines, position)
            position = _write_text(cigars.characters, cigars.offsets[k], cigars.offsets[k + 1], lines, position)
            position = _write_clip(clips[k, 1], lines, position)
        else:
            lines[position] = _STAR
            position += 1
        if mate_text >= 0 and mate_text == text:
            lines[position], lines[position + 1] = _TAB, _EQUAL
            position += 2
        else:
            position = _write_name(text_names.characters, text_names.offsets, mate_text, lines, position)
        position = _write_field(positions[k, 4], lines, position)
        position = _write_field(positions[k, 5], lines, position)
        lines[position] = _TAB
        position += 1
        begin, end = offsets[rows[k]], offsets[rows[k] + 1]
        is_reverse = flags[k] & _IS_REVERSE != 0
        if begin == end:
            lines[position], lines[position + 1], lines[position + 2] = _STAR, _TAB, _STAR
            position += 3
        else:
            if is_reverse:
                for j in range(end - 1, begin - 1, -1):
                    lines[position] = complement[symbols[j]]
                    position += 1
            else:
                position = _write_text(symbols, begin, end, lines, position)
            lines[position] = _TAB
            position += 1
            if len(qualities) == 0:
                lines[position] = _STAR
                position += 1
            for j in range(end - begin if len(qualities) else 0):
                quality = np.int64(qualities[end - 1 - j if is_reverse else begin + j]) - quality_shift
                lines[position] = max(quality, _MINIMUM_QUALITY)
                position += 1
        position = _write_text(tags.characters, tags.offsets[k], tags.offsets[k + 1], lines, position)
        lines[position] = _NEWLINE
        position += 1
        ends[k] = position


@njit(nogil=True, cache=True, error_model="numpy")
def write_paf_lines(names, text_names, is_reverse, positions, scores, cigars, lines, ends):
    """Write a PAF line for each of n records (see `write_sam_lines` for further parameters).

    Parameters
    ----------
    positions
        (n, 8) int64: read length, start and end; reference index, length, start and end, all from 0; mapping quality.
    """
    position = np.int64(0)
    for k in range(len(scores)):
        position = _write_text(names.characters, names.offsets[k], names.offsets[k + 1], lines, position)
        for column in range(3):
            position = _write_field(positions[k, column], lines, position)
        lines[position], lines[position + 1] = _TAB, _MINUS if is_reverse[k] else _PLUS
        position = _write_name(text_names.characters, text_names.offsets, positions[k, 3], lines, position + 2)
        for column in range(4, 7):
            position = _write_field(positions[k, column], lines, position)
        edits, columns, same = _edits(cigars.characters, cigars.offsets[k], cigars.offsets[k + 1])
        position = _write_field(same, lines, position)
        position = _write_field(columns, lines, position)
        position = _write_field(positions[k, 7], lines, position)
        position = _write_text(_EDITS, 0, len(_EDITS), lines, position)
        position = _write_number(edits, lines, position)
        position = _write_text(_SCORE, 0, len(_SCORE), lines, position)
        position = _write_number(scores[k], lines, position)
        position = _write_text(_STEPS, 0, len(_STEPS), lines, position)
        position = _write_text(cigars.characters, cigars.offsets[k], cigars.offsets[k + 1], lines, position)
        lines[position] = _NEWLINE
        position += 1
        ends[k] = position


@njit(nogil=True, cache=True, error_model="numpy")
def _edits(cigars, begin, end):
    """Return the numbers of edited positions (mismatches and gaps), columns and matches in a CIGAR."""
    edits, columns, same, count = 0, 0, 0, 0
    for j in range(begin, end):
        kind = cigars[j]
        if _ZERO <= kind < _ZERO + 10:
            count = 10 * count + np.int64(kind) - _ZERO
            continue
        columns += count
        if kind in (_OTHER, _PATTERN_ALONE, _TEXT_ALONE):
            edits += count
        else:
            same += count
        count = 0
    return edits, columns, same


@njit(nogil=True, cache=True, error_model="numpy")
def _write_text(characters, begin, end, lines, position):
    for j in range(begin, end):
        lines[position + j - begin] = characters[j]
    return position + end - begin


@njit(nogil=True, cache=True, error_model="numpy")
def _write_name(text_names, text_offsets, text, lines, position):
    """Write a tab and the name of reference `text`, or a star for -1."""
    lines[position] = _TAB
    if text < 0:
        lines[position + 1] = _STAR
        return position + 2
    return _write_text(text_names, text_offsets[text], text_offsets[text + 1], lines, position + 1)


@njit(nogil=True, cache=True, error_model="numpy")
def _write_field(value, lines, position):
    """Write a tab and a number."""
    lines[position] = _TAB
    return _write_number(value, lines, position + 1)


@njit(nogil=True, cache=True, error_model="numpy")
def _write_clip(count, lines, position):
    if count == 0:
        return position
    position = _write_number(count, lines, position)
    lines[position] = _CLIPPED
    return position + 1


@njit(nogil=True, cache=True, error_model="numpy")
def _write_number(value, lines, position):
    if value < 0:
        lines[position] = _MINUS
        position, value = position + 1, -value
    digits, rest = 1, value
    while rest >= 10:
        rest //= 10
        digits += 1
    for digit in range(digits):
        lines[position + digits - 1 - digit] = _ZERO + value % 10
        value //= 10
    return position + digits
