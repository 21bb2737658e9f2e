"""Scanner of libraries of spectra in text: lines of one or several peaks become columns, and where the others stand, without the
interpreter lock. What the words mean is the caller's."""

from __future__ import annotations

from numba import njit

from proteoscope.kernels.cpu.text import parse_number

__all__ = ["LINE_BROKEN", "LINE_COLUMNS", "LINE_WORDS", "scan_library_lines"]

LINE_WORDS, LINE_BROKEN = range(2)
LINE_COLUMNS = 5
_POSITION, _LINES, _PEAKS = range(3)


@njit(nogil=True, cache=True)
def scan_library_lines(text, state, mz, intensity, lines):
    """Read the lines that are peaks, and say where the others are.

    A line of peaks begins (after blanks) with a digit, a point, a sign or a bracket: m/z, blanks or a comma, intensity, and what may
    follow; behind a semicolon the next peak of the line may stand.

    Parameters
    ----------
    text : (bytes,) uint8; lines end in LF, CR LF or CR.
    state : (3,) int64, zeros at first: the byte to go on from (all is read where it is the last), lines and peaks so far.
    mz, intensity : float64, to fill, with room for a peak for each line and each semicolon.
    lines : (m, LINE_COLUMNS) int64, to fill; when it is full, the scan returns and can be called again with another. Of each line that is
        neither blank nor of peaks: where it begins and stops without the blanks around it, its number from 1, how many peaks came before
        it, and ``LINE_WORDS``, or ``LINE_BROKEN`` of a line of peaks in which a number is missing (of several in a row the first).

    Returns
    -------
    n_others : int64, rows filled.
    """
    n_others = 0
    position, n_lines, n_peaks, size = state[_POSITION], state[_LINES], state[_PEAKS], len(text)
    while position < size and n_others < len(lines):
        n_lines += 1
        while position < size and (text[position] == 32 or text[position] == 9):
            position += 1
        start = position
        letter = text[start] if start < size else text[size - 1]
        is_peak = 48 <= letter <= 57 or letter == 46 or letter == 43 or letter == 45 or letter == 40
        is_broken = False
        while is_peak:
            # Blanks, the first number, blanks or a comma, the second.
            value, height = 0.0, 0.0
            for field in range(2):
                while position < size and (text[position] == 32 or text[position] == 9 or text[position] == 40 or text[position] == 44):
                    position += 1
                number, end = parse_number(text, position, size)
                # Behind a number stands a blank, the end of the line, or one of , ; )
                is_ended = end >= size or text[end] <= 32 or text[end] == 44 or text[end] == 59 or text[end] == 41
                if end == position or not is_ended:
                    is_broken = True
                    break
                if field == 0:
                    value = number
                else:
                    height = number
                position = end
            if is_broken:
                break
            mz[n_peaks] = value
            intensity[n_peaks] = height
            n_peaks += 1
            while position < size and (text[position] == 32 or text[position] == 9 or text[position] == 41):
                position += 1
            if position >= size or text[position] != 59:
                break
            position += 1
            while position < size and (text[position] == 32 or text[position] == 9 or text[position] == 40):
                position += 1
            if position >= size or not (48 <= text[position] <= 57 or text[position] == 46):
                break
        while position < size and text[position] != 10 and text[position] != 13:
            position += 1
        stop = position
        while stop > start and (text[stop - 1] == 32 or text[stop - 1] == 9):
            stop -= 1
        is_told = (
            is_broken and n_others > 0 and lines[n_others - 1, 3] == n_peaks and lines[n_others - 1, 4] == LINE_BROKEN
        )  # the first of several in a row says enough
        if stop > start and (not is_peak or is_broken) and not is_told:
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
