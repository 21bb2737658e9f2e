"""Scanner of spectral libraries in text formats, without the GIL: returns the peaks as columns, and the positions of all other lines."""

from __future__ import annotations

import numpy as np
from numba import njit

from proteoscope.kernels.cpu.text import parse_number

__all__ = ["LINE_BROKEN", "LINE_COLUMNS", "LINE_WORDS", "N_LIBRARY_STATES", "count_peak_ends", "msp_entry_rows", "scan_library_lines"]

LINE_WORDS, LINE_BROKEN = range(2)
LINE_COLUMNS = 5
N_LIBRARY_STATES = 4
_POSITION, _LINES, _PEAKS, _AMBIGUOUS = range(N_LIBRARY_STATES)
_BLANK, _COMMA, _COLON, _BRACKET = range(4)
_NO_KEY, _OTHER_KEY, _NAME, _COMPOUND_NAME, _NUM_PEAKS = -1, 0, 1, 2, 4
_NAME_WORD, _COMPOUND_WORD, _PEAKS_WORD = (np.frombuffer(word, np.uint8) for word in (b"name", b"compoundname", b"numpeaks"))


@njit(nogil=True, cache=True)
def _begins_number(text, position, decimal):
    """Return True if a number can begin at a position."""
    if position >= len(text):
        return False
    symbol = text[position]
    return 48 <= symbol <= 57 or symbol == decimal or symbol == 46 or symbol == 43 or symbol == 45


@njit(nogil=True, cache=True)
def _after(text, position, first, second, third):
    """Return the first position, from `position` on, whose byte is neither a blank nor one of three given bytes."""
    while position < len(text) and (
        text[position] == 32 or text[position] == 9 or text[position] == first or text[position] == second or text[position] == third
    ):
        position += 1
    return position


@njit(nogil=True, cache=True)
def _pair(text, position, decimal):
    """Return m/z and intensity of a peak, the position after the peak, and the separator.

    The position is -1 if a number is missing or is followed by text.
    """
    size = len(text)
    comma = 44 if decimal != 44 else 58
    separator = _BRACKET if position < size and text[position] == 40 else _BLANK
    position = _after(text, position, 40, 40, 40)
    mz, end = parse_number(text, position, size, decimal)
    if end == position or end >= size or not (text[end] == 32 or text[end] == 9 or text[end] == comma or text[end] == 58):
        return mz, 0.0, -1, separator
    position = _after(text, end, comma, 58, 58)
    if separator == _BLANK and text[end] == comma and position == end + 1:
        separator = _COMMA
    if text[position - 1] == 58 or text[end] == 58:
        separator = _COLON
    intensity, end = parse_number(text, position, size, decimal)
    is_ended = end >= size or text[end] <= 32 or text[end] == comma or text[end] == 59
    is_ended = is_ended or (text[end] == 41 and separator == _BRACKET)
    return mz, intensity, end if end > position and is_ended else -1, separator


@njit(nogil=True, cache=True)
def scan_library_lines(text, is_packed, decimal, state, mz, intensity, lines):
    """Parse peak lines, and locate other lines.

    A peak line starts (after blanks) with a digit, a decimal sign, a sign or a bracket. It contains m/z and intensity, separated by blanks,
    a comma or a colon, and possibly annotations. Further peaks may follow after a semicolon, a bracket or a colon.

    Parameters
    ----------
    text : (bytes,) uint8
        Text with lines that end in LF, CR LF or CR.
    is_packed : bool
        True if every two numbers of a line are a peak; otherwise numbers after the first two are annotations.
    decimal : int64
        Byte of the decimal sign.
    state : (N_LIBRARY_STATES,) int64
        State, initially 0: position to continue at (the end of the text when finished), numbers of lines and of peaks so far, and number
        of lines that would have more peaks if packed.
    mz, intensity : float64
        Output; must have space for one peak per line, semicolon, bracket and colon; if packed, for one per two bytes.
    lines : (m, LINE_COLUMNS) int64
        Output; when it is full, the scan returns and can be called again with another array. For each line that is neither blank nor a peak
        line: start and stop without surrounding blanks, line number from 1, number of peaks before it, and ``LINE_WORDS``, or
        ``LINE_BROKEN`` for a peak line with an unreadable number (of consecutive lines of this kind, only the first is listed).

    Returns
    -------
    n_others : int64
        Number of rows written to `lines`.
    """
    n_others = 0
    position, n_lines, n_peaks, size = state[_POSITION], state[_LINES], state[_PEAKS], len(text)
    while position < size and n_others < len(lines):
        n_lines += 1
        start = position = _after(text, position, 32, 32, 32)
        is_peak = _begins_number(text, start, decimal) or (start < size and text[start] == 40)
        is_broken = False
        more = is_peak
        while more:
            value, height, end, separator = _pair(text, position, decimal)
            if end < 0:
                is_broken = True
                break
            mz[n_peaks], intensity[n_peaks] = value, height
            n_peaks += 1
            is_closed = end < size and (text[end] == 59 or text[end] == 41)
            has_comma = end < size and text[end] == 44 and _begins_number(text, end + 1, decimal)
            position = _after(text, end, 41, 59, 44 if decimal != 44 else 59)
            is_next = _begins_number(text, position, decimal) or (position < size and text[position] == 40)
            more = is_next and (is_packed or is_closed or separator >= _COLON)
            if is_next and not more:
                state[_AMBIGUOUS] += 1
                # In "53,6309 241" and "53 1,158.3", a comma may be a decimal comma, a thousands separator, or between numbers.
                is_broken = separator == _COMMA or has_comma
        while position < size and text[position] != 10 and text[position] != 13:
            position += 1
        stop = position
        while stop > start and (text[stop - 1] == 32 or text[stop - 1] == 9):
            stop -= 1
        is_listed = (
            is_broken and n_others > 0 and lines[n_others - 1, 3] == n_peaks and lines[n_others - 1, 4] == LINE_BROKEN
        )  # report only the first of several consecutive errors
        if stop > start and (not is_peak or is_broken) and not is_listed:
            lines[n_others, 0] = start
            lines[n_others, 1] = stop
            lines[n_others, 2] = n_lines
            lines[n_others, 3] = n_peaks
            lines[n_others, 4] = LINE_BROKEN if is_broken else LINE_WORDS
            n_others += 1
        if position + 1 < size and text[position] == 13 and text[position + 1] == 10:
            position += 1
        position += 1
    state[_POSITION], state[_LINES], state[_PEAKS] = min(position, size), n_lines, n_peaks
    return n_others


@njit(nogil=True, cache=True)
def count_peak_ends(text):
    """Count the bytes after which a peak may start: line ends, semicolons, colons and opening brackets."""
    n = 0
    for symbol in text:
        n += (symbol == 10) | (symbol == 13) | (symbol == 59) | (symbol == 58) | (symbol == 40)
    return n


@njit(nogil=True, cache=True)
def _is_word(text, start, stop, word):
    """Return True if a key equals a word, ignoring blanks, underscores and case."""
    n = 0
    for position in range(start, stop):
        symbol = text[position]
        # White space as defined in Latin-1.
        if 28 <= symbol <= 32 or 9 <= symbol <= 13 or symbol == 95 or symbol == 133 or symbol == 160:
            continue
        if 65 <= symbol <= 90:
            symbol += 32
        if n == len(word) or symbol != word[n]:
            return False
        n += 1
    return n == len(word)


@njit(nogil=True, cache=True)
def _key_kind(text, start, stop):
    """Return the code of a line's key; ``_NO_KEY`` if the line has none or is a comment."""
    colon = start
    while colon < stop and text[colon] != 58:
        colon += 1
    if colon == stop or text[start] == 35:
        return _NO_KEY
    if _is_word(text, start, colon, _NAME_WORD):
        return _NAME
    if _is_word(text, start, colon, _PEAKS_WORD):
        return _NUM_PEAKS
    return _COMPOUND_NAME if _is_word(text, start, colon, _COMPOUND_WORD) else _OTHER_KEY


@njit(nogil=True, cache=True)
def msp_entry_rows(text, lines, rows):
    """Find the first lines of MSP entries; an entry ends with its peaks, or before a second name.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text to parse.
    lines : (m, LINE_COLUMNS) int64
        Lines from `scan_library_lines`.
    rows : (m,) int64
        Output; indices in `lines` of the first line of each entry.

    Returns
    -------
    n_entries : int64
        Number of rows written.
    """
    n_entries = seen = n_peaks = last_number = paragraph = 0
    last_begun = -1
    for row in range(len(lines)):
        number, n_before = lines[row, 2], lines[row, 3]
        is_apart, last_number = number > last_number + 1, number
        if lines[row, 4] != LINE_WORDS:
            # After the line with the number of peaks, lines that cannot be read count as peaks too.
            n_peaks = -1 if seen & _NUM_PEAKS else n_peaks
            continue
        kind = _key_kind(text, lines[row, 0], lines[row, 1])
        if kind == _NO_KEY:
            continue
        begin = row
        is_next = last_begun < 0 or n_before != n_peaks or (is_apart and seen & _NUM_PEAKS)
        if not is_next and kind & (_NAME | _COMPOUND_NAME) & seen:
            is_next, begin = True, paragraph if paragraph > last_begun else row
        elif is_apart:
            paragraph = row
        if is_next:
            rows[n_entries] = last_begun = begin
            n_entries += 1
            seen = 0
        seen |= kind
        n_peaks = n_before
    return n_entries
