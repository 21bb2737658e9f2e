"""Parsing of FASTQ text: names, bases and qualities (Cock et al. 2010, Nucleic Acids Res 38:1767).

::

    @name and more      one line
    bases               one or more lines, up to a line that begins with +
    +                   alone, or followed by the first line or the name
    qualities           one per base; on one line if the bases are on one line

Trailing blanks and tabs of lines are ignored.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "BAD_QUALITY",
    "BAD_SYMBOL",
    "CUT_OFF",
    "HEADER_FIELDS",
    "NONE",
    "NOT_BEGUN",
    "NO_NAME",
    "OTHER_LENGTH",
    "OTHER_NAME",
    "scan_fastq",
]

NONE, NOT_BEGUN, NO_NAME, BAD_SYMBOL, OTHER_NAME, OTHER_LENGTH, BAD_QUALITY, CUT_OFF = range(8)
"""Errors in a record."""
HEADER_FIELDS = 3
"""Number of columns of `headers`: start and end of the name, and line of the record, from 1."""
_AT, _PLUS, _DOT, _BLANK, _TAB, _N = ord("@"), ord("+"), ord("."), ord(" "), ord("\t"), ord("N")
_NEWLINE, _RETURN = ord("\n"), ord("\r")
_MINIMUM_QUALITY, _GREATEST_QUALITY = 33, 126


@njit(nogil=True, cache=True, error_model="numpy")
def scan_fastq(text, is_last, headers, bases, qualities, offsets):
    """Parse the complete records of a text that starts with a record.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text to parse.
    is_last
        True if the file ends with this text; otherwise a last record that may be incomplete is not parsed.
    headers : (n, HEADER_FIELDS) int64
        Output; must have space for as many records as there are @ in the text.
    bases, qualities : uint8
        Output; must have space for every byte of the text. Bases are capitals, with N for a point; qualities are as in the file.
    offsets : (n + 1,) int64
        Output; start of each record's bases and qualities, followed by their number.

    Returns
    -------
    n, consumed, lines
        Number of parsed records, and of their bytes and lines.
    issue
        Error in the next record, or `NONE`.
    index, line
        Byte and line of the error in the text.
    count
        Number of bases or qualities of the record with an error.
    """
    size = len(text)
    position, line, n, written = np.int64(0), 0, 0, 0
    consumed, lines = 0, 0
    while True:
        while position < size and text[position] in (_NEWLINE, _RETURN, _BLANK, _TAB):
            line += text[position] == _NEWLINE
            position += 1
        if is_last or position < size:
            consumed, lines = position, line
        if position == size:
            return n, consumed, lines, NONE, position, line, 0
        line += 1
        begun = line
        if text[position] != _AT:
            return n, consumed, lines, NOT_BEGUN, position, line, 0
        start, stop, position = _line(text, position + 1, is_last)
        if position < 0:
            return n, consumed, lines, CUT_OFF if is_last else NONE, size - 1, line, 0
        name = start
        while name < stop and text[name] != _BLANK and text[name] != _TAB:
            name += 1
        if name == start:
            return n, consumed, lines, NO_NAME, start, line, 0
        headers[n, 0], headers[n, 1], headers[n, 2] = start, name, begun
        first, n_lines = written, 0
        while True:
            line += 1
            if position < size and text[position] == _PLUS:
                break
            index, end, position = _line(text, position, is_last)
            if position < 0:
                return n, consumed, lines, CUT_OFF if is_last else NONE, size - 1, line, 0
            n_lines += 1
            for k in range(index, end):
                symbol = text[k]
                if 97 <= symbol <= 122:
                    symbol -= 32
                if symbol == _DOT:
                    symbol = _N
                if symbol < 65 or symbol > 90:
                    return n, consumed, lines, BAD_SYMBOL, k, line, 0
                bases[written] = symbol
                written += 1
        index, end, position = _line(text, position + 1, is_last)
        if position < 0 and not (is_last and written == first):
            return n, consumed, lines, CUT_OFF if is_last else NONE, size - 1, line, 0
        if end > index:
            differs = end - index != stop - start and end - index != name - start
            for k in range(min(end - index, stop - start)):
                differs = differs or text[index + k] != text[start + k]
            if differs:
                return n, consumed, lines, OTHER_NAME, index, line, 0
        length, n_qualities = written - first, 0
        while n_qualities < length:
            line += 1
            index, end, position = _line(text, position, is_last)
            if position < 0:
                return n, consumed, lines, CUT_OFF if is_last else NONE, size - 1, line, n_qualities
            if n_qualities + end - index > length or (n_lines == 1 and end - index != length):
                return n, consumed, lines, OTHER_LENGTH, index, line, n_qualities + end - index
            for k in range(index, end):
                if text[k] < _MINIMUM_QUALITY or text[k] > _GREATEST_QUALITY:
                    return n, consumed, lines, BAD_QUALITY, k, line, 0
                qualities[first + n_qualities] = text[k]
                n_qualities += 1
        if length == 0:
            if position < 0:
                position = size
            if position == size and not is_last:
                return n, consumed, lines, NONE, position, line, 0
            # The quality line of an empty read is blank or missing.
            if position < size and text[position] != _AT and _line(text, position, True)[1] > position:
                return n, consumed, lines, OTHER_LENGTH, position, line + 1, _line(text, position, True)[1] - position
        n += 1
        offsets[n] = written
        consumed, lines = position, line


@njit(nogil=True, cache=True, error_model="numpy")
def _line(text, position, is_last):
    """Return start and end (without trailing blanks) of the line at `position`, and the start of the next line; -1 if incomplete."""
    start, size = position, len(text)
    while position < size and text[position] != _NEWLINE and text[position] != _RETURN:
        position += 1
    end = position
    while end > start and (text[end - 1] == _BLANK or text[end - 1] == _TAB):
        end -= 1
    if position == size:
        return start, end, position if is_last and position > start else -1
    if text[position] == _RETURN:
        if position + 1 == size:
            return start, end, size if is_last else -1
        return start, end, position + (2 if text[position + 1] == _NEWLINE else 1)
    return start, end, position + 1
