"""Conversion between text and columns without the GIL: numbers, base64, peak lines, XML tags and FASTA.

The scanners return positions and convert digits to numbers; callers interpret words. Since they are compiled on the user's machine, they
are few and simple; work on whole columns is done with NumPy.

Numbers are converted by the method of D. Lemire, "Number parsing at a gigabyte per second", Software: Practice and Experience 51:1700
(2021).
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "FIELD_UNKNOWN",
    "N_STATES",
    "TAG_COLUMNS",
    "after_blanks",
    "decode_base64",
    "find_fields",
    "parse_number",
    "parse_numbers",
    "print_numbers",
    "scan_fasta",
    "scan_peak_lines",
    "scan_tags",
]

# Number of state variables with which a scan of lines or tags resumes after its table was full.
N_STATES = 4
_POSITION, _LINES, _PEAKS, _HEAD = range(4)
_NO_COMMENT_ENDS, _NO_INSTRUCTION_ENDS, _NO_SECTION_ENDS = 1, 2, 3
LINE_OTHER, LINE_NO_NUMBER, LINE_NO_INTENSITY = range(3)
FIELD_NONE, FIELD_UNKNOWN = -1, -2
TAG_START, TAG_END, TAG_EMPTY, TAG_BROKEN = range(4)
TAG_ELEMENT, TAG_KIND, TAG_BEGIN, TAG_AFTER = range(4)
TAG_COLUMNS = 4


def _word(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _powers_of_five() -> tuple[np.ndarray, np.ndarray]:
    """Return the upper 128 bits of 5^q for -TABLE_REACH <= q <= TABLE_REACH, as two words.

    For q < 0, return the bits of the reciprocal, rounded up for q >= -27 and down otherwise.
    """
    values = []
    for q in range(-TABLE_REACH, TABLE_REACH + 1):
        power = 5 ** abs(q)
        if q >= 0:
            shift = power.bit_length() - 128
            values.append(power >> shift if shift >= 0 else power << -shift)
        else:
            # As in the published proof: the reciprocal is rounded up while 5^-q fits into a word (q >= -27), otherwise down.
            values.append((1 << (power.bit_length() + 127)) // power + (1 if q >= -27 else 0))
    word = (1 << 64) - 1
    return np.array([v >> 64 for v in values], dtype=np.uint64), np.array([v & word for v in values], dtype=np.uint64)


TABLE_REACH = 340
_FIVE_HIGH, _FIVE_LOW = _powers_of_five()
_TEN = np.array([float(f"1e{exponent}") for exponent in range(309)])  # the first 23 are exact as float64
_NEAR_TIE = 1e-5  # the error of a number scaled to ten digits is below 3e-6
_EXACT_SCALE = 12  # products of a float32 and powers of ten up to this one are exact

_U0, _U1, _U10 = np.uint64(0), np.uint64(1), np.uint64(10)
_U32, _U63 = np.uint64(32), np.uint64(63)
_LOW32 = np.uint64(0xFFFFFFFF)
_TOP_BIT = np.uint64(1 << 63)
_EXACT = np.uint64(1 << 53)
_FRACTION = np.uint64((1 << 52) - 1)


@njit(nogil=True, cache=True)
def _product(a, b):
    """Return both words of the 128-bit product of two 64-bit words."""
    a_high, a_low = a >> _U32, a & _LOW32
    b_high, b_low = b >> _U32, b & _LOW32
    low, middle, other, high = a_low * b_low, a_high * b_low, a_low * b_high, a_high * b_high
    carry = (low >> _U32) + (middle & _LOW32) + (other & _LOW32)
    return high + (middle >> _U32) + (other >> _U32) + (carry >> _U32), (carry << _U32) | (low & _LOW32)


@njit(nogil=True, cache=True)
def _scaled(digits, exponent):
    """Return the double nearest to digits * 10^exponent (digits: uint64, not 0)."""
    if digits <= _EXACT and -22 <= exponent <= 22:
        # Clinger's case: both operands are exact, so one operation rounds correctly.
        return np.float64(digits) / _TEN[-exponent] if exponent < 0 else np.float64(digits) * _TEN[exponent]
    if exponent > TABLE_REACH or exponent < -TABLE_REACH:
        return np.inf if exponent > 0 else 0.0
    zeros = 0
    while digits & _TOP_BIT == _U0:
        digits <<= _U1
        zeros += 1
    high, low = _product(digits, _FIVE_HIGH[exponent + TABLE_REACH])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more, _ = _product(digits, _FIVE_LOW[exponent + TABLE_REACH])
        low += more
        if low < more:
            high += _U1
    upper = np.int64(high >> _U63)
    retained = np.uint64(upper + 9)
    mantissa = high >> retained
    binary = ((217706 * exponent) >> 16) + 63 + upper - zeros + 1023
    if low <= _U1 and -4 <= exponent <= 23 and mantissa & np.uint64(3) == _U1 and mantissa << retained == high:
        mantissa ^= _U1  # exactly halfway: round to even
    mantissa = (mantissa + (mantissa & _U1)) >> _U1
    if mantissa >= _EXACT:
        mantissa = np.uint64(1 << 52)
        binary += 1
    if binary >= 2047:
        return np.inf
    if binary <= 0:
        return 0.0  # smaller numbers, below 2.3e-308, become zero
    bits = np.uint64((mantissa & _FRACTION) | (np.uint64(binary) << np.uint64(52)))
    return bits.view(np.float64)


@njit(nogil=True, cache=True)
def parse_number(text, start, stop, decimal):
    """Parse the decimal number that starts at ``text[start]``.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text as bytes.
    start, stop : int64
        Range of `text` to parse.
    decimal : int64
        Byte of the decimal sign.

    Returns
    -------
    value : float64
        Correctly rounded for up to 19 significant digits, otherwise within one unit in the last place; 0 below 2.3e-308. ``nan`` and
        ``inf`` are numbers.
    end : int64
        First byte after the number; `start` if there is none.
    """
    position = start
    negative = False
    if position < stop and (text[position] == 43 or text[position] == 45):
        negative = text[position] == 45
        position += 1
    digits, n_digits, exponent = _U0, 0, 0
    seen, point = False, False
    while position < stop:
        symbol = text[position]
        if 48 <= symbol <= 57:
            seen = True
            if n_digits < 19:
                digits = digits * _U10 + np.uint64(symbol - 48)
                if digits != _U0:
                    n_digits += 1
                if point:
                    exponent -= 1
            elif not point:
                exponent += 1
        elif symbol == decimal and not point:
            point = True
        else:
            break
        position += 1
    if not seen:
        position = start + 1 if negative or (start < stop and text[start] == 43) else start
        if position + 3 <= stop:
            first, second, third = text[position] | 32, text[position + 1] | 32, text[position + 2] | 32
            if first == 110 and second == 97 and third == 110:
                return np.nan, position + 3
            if first == 105 and second == 110 and third == 102:
                return -np.inf if negative else np.inf, position + 3
        return np.nan, start
    if position + 1 < stop and text[position] | 32 == 101:
        ahead = position + 1
        minus = text[ahead] == 45
        if minus or text[ahead] == 43:
            ahead += 1
        if ahead < stop and 48 <= text[ahead] <= 57:
            power = 0
            while ahead < stop and 48 <= text[ahead] <= 57:
                power = min(power * 10 + text[ahead] - 48, 100000)
                ahead += 1
            exponent += -power if minus else power
            position = ahead
    value = 0.0 if digits == _U0 else _scaled(digits, exponent)
    return -value if negative else value, position


@njit(nogil=True, cache=True)
def parse_numbers(text, starts, stops, ends, decimal):
    """Parse the numbers in ranges of a text.

    Return their values, (n,) float64, NaN for none, and write `ends` (n,) int64 (see `parse_number`).
    """
    values = np.empty(len(starts))
    for i in range(len(starts)):
        values[i], ends[i] = parse_number(text, starts[i], stops[i], decimal)
    return values


@njit(nogil=True, cache=True)
def print_numbers(values, digits, texts):
    """Write numbers like ``%.{digits}g`` in C.

    Parameters
    ----------
    values : (n,) float64
        Numbers.
    digits : int64
        Maximum number of significant digits, from 1 to 10.
    texts : (n, width) uint8
        Output; text of each number, followed by blanks. The width must be at least ``digits + 8``.

    Returns
    -------
    (n,) bool
        True for each number that is written. Infinite and tiny numbers, and numbers too near to a tie for this rounding, are not written.
    """
    is_written = np.ones(len(values), dtype=np.bool_)
    for i in range(len(values)):
        value, text, at = abs(values[i]), texts[i], 0
        text[:] = 32
        if np.isnan(value):
            text[0], text[1], text[2] = 110, 97, 110
            continue
        if np.signbit(values[i]):
            text[0], at = 45, 1
        exponent, number = 0, 0
        if value != 0.0:
            exponent = np.int64(np.floor(np.log10(value))) if value < np.inf else 2 * len(_TEN)
        # The logarithm may be rounded to the next exponent, and the number to the next power of ten.
        while value != 0.0 and is_written[i] and (number < _TEN[digits - 1] or number >= _TEN[digits]):
            exponent += (number >= _TEN[digits]) - (0 < number < _TEN[digits - 1])
            scale = digits - 1 - exponent
            is_written[i] = abs(scale) < len(_TEN)
            if is_written[i]:
                scaled = value * _TEN[scale] if scale >= 0 else value / _TEN[-scale]
                is_exact = 0 <= scale <= _EXACT_SCALE and np.float32(value) == value
                is_written[i] = is_exact or abs(scaled - np.floor(scaled) - 0.5) >= _NEAR_TIE
                number = np.int64(np.rint(scaled))
        if not is_written[i]:
            continue
        n_digits = digits if number else 1
        while n_digits > 1 and number % 10 == 0:
            number //= 10
            n_digits -= 1
        is_scientific = exponent < -4 or exponent >= digits
        before = 1 if is_scientific or exponent < 0 else exponent + 1  # number of digits before the point
        if exponent < 0 and not is_scientific:
            n_digits -= exponent  # zeros precede the digits
        shown = max(n_digits, before)
        for k in range(shown - 1, -1, -1):
            text[at + k + (k >= before)] = 48 + (number % 10 if k < n_digits else 0)
            number //= 10 if k < n_digits else 1
        if shown > before:
            text[at + before] = 46
        if is_scientific:
            at += shown + (shown > before)
            power = abs(exponent)
            text[at], text[at + 1] = 101, 45 if exponent < 0 else 43
            if power >= 100:
                text[at + 2] = 48 + power // 100
                at += 1
            text[at + 2], text[at + 3] = 48 + power // 10 % 10, 48 + power % 10
    return is_written


# --- Lines of peaks ----------------------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def after_blanks(text, starts, stops):
    """Return, for each range, the position of the first character above 32 (not a blank or control character), or its stop, (n,)."""
    positions = starts.copy()
    for i in range(len(starts)):
        while positions[i] < stops[i] and text[positions[i]] <= 32:
            positions[i] += 1
    return positions


@njit(nogil=True, cache=True)
def scan_peak_lines(text, is_headed, decimal, state, mz, intensity, lines):
    """Parse peak lines, and locate other lines.

    A peak line starts (after blanks) with a digit, a point or a sign. It contains m/z and intensity, and possibly other text after a blank.

    Parameters
    ----------
    text : (bytes,) uint8
        Text with lines that end in LF, CR LF or CR.
    is_headed : bool
        True if a line of numbers is not a peak when it is the first in the text, or follows a blank line or a line that starts with ``=``.
    decimal : int64
        Byte of the decimal sign.
    state : (N_STATES,) int64
        State, initially 0: position to continue at (the end of the text when finished), number of lines and of peaks so far.
    mz, intensity : float64
        Output; must have space for all peaks (each needs a line of at least four bytes).
    lines : (5, m) int64
        Output; when it is full, the scan returns and can be called again with another array. Each line that is not a peak line has a
        column: start and stop without surrounding blanks, line number from 1, number of preceding peaks, and ``LINE_OTHER`` or the error in
        a line of numbers. Only the last of consecutive blank lines and the first of consecutive broken lines have a column.

    Returns
    -------
    n_others : int64
        Number of columns written to `lines`.
    """
    n_others = 0
    position, n_lines, n_peaks, size = state[_POSITION], state[_LINES], state[_PEAKS], len(text)
    expects_head = is_headed and state[_HEAD] == 0
    while position < size and n_others < lines.shape[1]:
        n_lines += 1
        while position < size and (text[position] == 32 or text[position] == 9):
            position += 1
        start = position
        symbol = text[start] if start < size else np.uint8(10)
        code = LINE_OTHER
        is_peak = False
        if 48 <= symbol <= 57 or symbol == decimal or symbol == 46 or symbol == 43 or symbol == 45:
            is_peak = not expects_head
            expects_head = False
        else:
            # Text where a header line is expected is reported as an unreadable header.
            expects_head = is_headed and (symbol == 10 or symbol == 13 or symbol == 61)
        if is_peak:
            # Read a number, white space, and a second number.
            value, height, after = 0.0, 0.0, start
            for field in range(2):
                begin = after
                while begin < size and (text[begin] == 32 or text[begin] == 9):
                    begin += 1
                number, end = parse_number(text, begin, size, decimal)
                if end == begin or (end < size and text[end] > 32):
                    is_bare = begin >= size or text[begin] == 10 or text[begin] == 13
                    code = LINE_NO_INTENSITY if field == 1 and is_bare else LINE_NO_NUMBER
                    break
                if field == 0:
                    value = number
                else:
                    height = number
                after = end
            position = after
            if code == LINE_OTHER:
                mz[n_peaks] = value
                intensity[n_peaks] = height
                n_peaks += 1
        while position < size and text[position] != 10 and text[position] != 13:
            position += 1
        if not is_peak or code != LINE_OTHER:
            stop = position
            while stop > start and (text[stop - 1] == 32 or text[stop - 1] == 9):
                stop -= 1
            repeats = False
            if n_others > 0 and lines[3, n_others - 1] == n_peaks:
                repeats = code != LINE_OTHER and lines[4, n_others - 1] != LINE_OTHER
                if start == stop and lines[0, n_others - 1] == lines[1, n_others - 1]:
                    lines[2, n_others - 1] = n_lines
                    repeats = True
            if not repeats:
                lines[0, n_others] = start
                lines[1, n_others] = stop
                lines[2, n_others] = n_lines
                lines[3, n_others] = n_peaks
                lines[4, n_others] = code
                n_others += 1
        if position + 1 < size and text[position] == 13 and text[position + 1] == 10:
            position += 1
        position += 1
    state[_POSITION], state[_LINES], state[_PEAKS], state[_HEAD] = min(position, size), n_lines, n_peaks, 0 if expects_head else 1
    return n_others


@njit(nogil=True, cache=True)
def find_fields(text, starts, stops, codes, names, name_offsets, fields, values):
    """Find the name with which each line begins; capitals and lower case are equal.

    Parameters
    ----------
    text : (bytes,) uint8
        Text as bytes.
    starts, stops : (n,) int64
        Lines without surrounding blanks.
    codes : (n,) int64
        ``LINE_OTHER`` for lines that are not numbers.
    names, name_offsets : uint8, (m + 1,) int64
        Names in capitals, concatenated, and their offsets. A name that ends with ``=`` is followed by a value, and the line may contain
        blanks on both sides of the sign; another name must be the whole line.
    fields : (n,) int64
        Output; index of the name, `FIELD_NONE` for an empty line, a line of numbers or another line with ``=``, or `FIELD_UNKNOWN`.
    values : (n,) int64
        Output; start of the value of each line with a name.
    """
    for i in range(len(starts)):
        start, stop = starts[i], stops[i]
        fields[i] = FIELD_NONE
        if codes[i] != LINE_OTHER or start == stop:
            continue
        fields[i] = FIELD_UNKNOWN
        for j in range(len(name_offsets) - 1):
            position, name, end = start, name_offsets[j], name_offsets[j + 1]
            while name < end and position < stop and names[name] != 61:
                symbol = text[position]
                if names[name] != (symbol - 32 if 97 <= symbol <= 122 else symbol):
                    break
                name += 1
                position += 1
            if name < end and names[name] == 61:
                while position < stop and text[position] <= 32:
                    position += 1
                if position == stop or text[position] != 61:
                    continue
                position += 1
                while position < stop and text[position] <= 32:
                    position += 1
            elif name < end or position < stop:
                continue
            fields[i], values[i] = j, position
            break
        while fields[i] == FIELD_UNKNOWN and start < stop:
            if text[start] == 61:
                fields[i] = FIELD_NONE
            start += 1


# --- Tags of XML -------------------------------------------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _look_up(text, start, stop, names, offsets):
    """Return the index of ``text[start:stop]`` in `names`, or -1."""
    for i in range(len(offsets) - 1):
        first = offsets[i]
        if offsets[i + 1] - first == stop - start and text[start] == names[first]:
            j = 1
            while j < stop - start and text[start + j] == names[first + j]:
                j += 1
            if j == stop - start:
                return i
    return -1


@njit(nogil=True, cache=True)
def scan_tags(text, elements, element_offsets, attributes, attribute_offsets, state, tags):
    """Find the tags of the given elements in XML, and the values of the given attributes.

    Comments, CDATA sections and processing instructions are skipped. A declaration (``<!DOCTYPE``) is treated as a broken tag: entities are
    neither defined nor replaced. Of consecutive broken tags, without a tag of the elements between them, only the first is listed.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text as bytes.
    elements, attributes : uint8
        Names to find, concatenated at `element_offsets` and `attribute_offsets`, int64.
    state : (N_STATES,) int64
        State, initially 0: position to continue at (the end of the text when finished), and constructs that are known to have no end.
    tags : (m, TAG_COLUMNS + 2 * attributes) int64
        Output; when it is full, the scan returns and can be called again with another array. Columns: element (-1 for a broken tag), kind
        (``TAG_...``), start and stop of the tag, and start (-1 if absent) and stop of each attribute's value.

    Returns
    -------
    n_tags : int64
        Number of rows written to `tags`.
    """
    position, size, n_tags = state[_POSITION], len(text), 0
    n_attributes = len(attribute_offsets) - 1
    while True:
        while position < size and text[position] != 60:
            position += 1
        if position >= size or n_tags == len(tags):
            state[_POSITION] = position
            return n_tags
        begin = position
        position += 1
        symbol = text[position] if position < size else np.uint8(0)
        if symbol == 33 or symbol == 63:
            # <!-- ... -->, <![CDATA[ ... ]]> or <? ... ?>
            is_comment = position + 2 < size and text[position + 1] == 45 and text[position + 2] == 45
            closing = np.uint8(63) if symbol == 63 else (np.uint8(45) if is_comment else np.uint8(93))
            endless = _NO_INSTRUCTION_ENDS if symbol == 63 else (_NO_COMMENT_ENDS if is_comment else _NO_SECTION_ENDS)
            if (symbol == 63 or is_comment or (position + 1 < size and text[position + 1] == 91)) and state[endless] == 0:
                position += 5 if is_comment else 3
                while position < size and not (
                    text[position] == 62 and text[position - 1] == closing and (symbol == 63 or text[position - 2] == closing)
                ):
                    position += 1
                if position < size:
                    continue
                state[endless] = 1  # no later item has an end either, so do not search for one again
            position = begin + 1
        is_end = symbol == 47
        position += is_end
        start = position
        while position < size and text[position] > 32 and text[position] != 62 and text[position] != 47 and text[position] != 60:
            position += 1
        element = _look_up(text, start, position, elements, element_offsets) if position > start else -1
        kind = TAG_BROKEN
        for column in range(TAG_COLUMNS, TAG_COLUMNS + 2 * n_attributes):
            tags[n_tags, column] = -1
        while position > start:
            while position < size and text[position] <= 32:
                position += 1
            if position >= size:
                break
            if text[position] == 62:
                kind = TAG_END if is_end else TAG_START
                break
            if text[position] == 47:
                position += 1
                if position < size and text[position] == 62:
                    kind = TAG_EMPTY
                break
            name = position
            while position < size and text[position] > 32 and text[position] != 61 and text[position] != 62 and text[position] != 60:
                position += 1
            name_stop = position
            while position < size and text[position] <= 32:
                position += 1
            if position >= size or text[position] != 61 or name == name_stop:
                break
            position += 1
            while position < size and text[position] <= 32:
                position += 1
            if position >= size or (text[position] != 34 and text[position] != 39):
                break
            quote = text[position]
            position += 1
            value = position
            while position < size and text[position] != quote and text[position] != 60:
                position += 1
            if position >= size or text[position] != quote:
                break
            if element >= 0:
                attribute = _look_up(text, name, name_stop, attributes, attribute_offsets)
                if attribute >= 0:
                    tags[n_tags, TAG_COLUMNS + 2 * attribute] = value
                    tags[n_tags, TAG_COLUMNS + 2 * attribute + 1] = position
            position += 1
        if kind == TAG_BROKEN:
            position = begin
            element = -1
        position += 1
        is_repeated = n_tags > 0 and kind == TAG_BROKEN and tags[n_tags - 1, TAG_KIND] == TAG_BROKEN
        if (element >= 0 or kind == TAG_BROKEN) and not is_repeated:
            tags[n_tags, TAG_ELEMENT] = element
            tags[n_tags, TAG_KIND] = kind
            tags[n_tags, TAG_BEGIN] = begin
            tags[n_tags, TAG_AFTER] = position
            n_tags += 1


# --- Base64 ------------------------------------------------------------------------------------------------------------------------------


def _base64_values() -> np.ndarray:
    """Return the value of each base64 character (RFC 4648): 64 is white space, 65 is padding, 255 is invalid."""
    values = np.full(256, 255, dtype=np.uint8)
    values[_word("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")] = np.arange(64)
    values[_word(" \t\r\n")] = 64
    values[_word("=")] = 65
    return values


_BASE64 = _base64_values()


@njit(nogil=True, cache=True)
def decode_base64(text, starts, stops, out, offsets):
    """Decode ranges of base64 text in order.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text as bytes.
    starts, stops : (n,) int64
        Ranges of `text`.
    out : uint8
        Output; must have space for three quarters of the bytes in the ranges, and 3 more for each range.
    offsets : (n + 1,) int64
        Output; range i is decoded to ``out[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    (n,) bool
        True for each valid range; invalid ranges are decoded as empty.
    """
    sound = np.ones(len(starts), dtype=np.bool_)
    written = 0
    offsets[0] = 0
    for i in range(len(starts)):
        position, stop, first = starts[i], stops[i], written
        # Decode four symbols per step while possible, then single symbols, to handle white space and padding.
        while position + 4 <= stop:
            a, b, c, d = _BASE64[text[position]], _BASE64[text[position + 1]], _BASE64[text[position + 2]], _BASE64[text[position + 3]]
            if (a | b | c | d) >= 64:
                break
            out[written] = (a << 2) | (b >> 4)
            out[written + 1] = (b << 4) | (c >> 2)
            out[written + 2] = (c << 6) | d
            written += 3
            position += 4
        gathered, n_digits, n_padding = 0, 0, 0
        while position < stop:
            value = _BASE64[text[position]]
            position += 1
            if value == 64:
                continue
            if value == 65:
                n_padding += 1
                continue
            if value == 255 or n_padding > 0:
                sound[i] = False
                break
            gathered = (gathered << 6) | value
            n_digits += 1
            if n_digits == 4:
                out[written] = gathered >> 16
                out[written + 1] = (gathered >> 8) & 255
                out[written + 2] = gathered & 255
                written += 3
                gathered, n_digits = 0, 0
        if n_digits == 2:
            out[written] = gathered >> 4
            written += 1
        elif n_digits == 3:
            out[written] = gathered >> 10
            out[written + 1] = (gathered >> 2) & 255
            written += 2
        if n_digits == 1 or n_padding > 2 or (n_padding > 0 and n_digits + n_padding != 4):
            sound[i] = False
        if not sound[i]:
            written = first
        offsets[i + 1] = written
    return sound


# --- FASTA -------------------------------------------------------------------------------------------------------------------------------


def _residue_values() -> np.ndarray:
    """Return the residue for each byte of a sequence line.

    It is a capital, ``*``, 0 for bytes to skip (blanks, digits, gaps), or 255 if invalid.
    """
    values = np.full(256, 255, dtype=np.uint8)
    values[65:91] = values[97:123] = np.arange(65, 91)
    values[_word("*")] = 42
    values[_word(" \t\v\f0123456789-.")] = 0
    return values


_RESIDUES = _residue_values()
_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_U29 = np.uint64(29)


@njit(nogil=True, cache=True)
def scan_fasta(text, headers, residues, offsets, digests):
    """Find the records in a section of a FASTA file that starts with a record, or with comments before the first record.

    Parameters
    ----------
    text : ndarray of uint8, shape (bytes,)
        Text as bytes.
    headers : (n, 3) int64
        Output; start and stop of each header (after ``>``), and its line, from 1.
    residues : uint8
        Output; must have space for every byte of `text`.
    offsets : (n + 1,) int64
        Output; the residues of record i are ``residues[offsets[i]:offsets[i + 1]]``.
    digests : (n,) uint64
        Output; digest of each record's residues.

    Returns
    -------
    n_records, n_lines : int64
        Number of records and of lines.
    refused, refused_line : int64
        Position of the first byte that cannot be a residue, and its line; -1 if there is none.
    """
    record, line, refused, refused_line = -1, 0, -1, 0
    written, position, size = 0, 0, len(text)
    digest = _U0
    while position < size:
        line += 1
        symbol = text[position]
        if symbol == 62 or symbol == 59:
            start = position + 1
            while position < size and text[position] != 10 and text[position] != 13:
                position += 1
            if symbol == 62:
                if record >= 0:
                    while written > offsets[record] and residues[written - 1] == 42:
                        written -= 1
                    offsets[record + 1] = written
                record += 1
                offsets[record] = written
                headers[record, 0], headers[record, 1], headers[record, 2] = start, position, line
        else:
            while position < size and text[position] != 10 and text[position] != 13:
                value = _RESIDUES[text[position]]
                if value == 255:
                    if refused < 0:
                        refused, refused_line = position, line
                elif value != 0 and record >= 0:
                    residues[written] = value
                    written += 1
                position += 1
        if position < size and text[position] == 13:
            position += 1
            if position < size and text[position] == 10:
                position += 1
        else:
            position += 1
    if record >= 0:
        while written > offsets[record] and residues[written - 1] == 42:
            written -= 1
        offsets[record + 1] = written
    for i in range(record + 1):
        digest = _U0
        for j in range(offsets[i], offsets[i + 1]):
            digest = (digest ^ np.uint64(residues[j])) * _HASH_FACTOR
            digest ^= digest >> _U29
        digests[i] = digest
    return record + 1, line, refused, refused_line
