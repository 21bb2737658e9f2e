"""Scanner of PDB files that checks in one pass, without the GIL, whether a file has the plain form (see `scan_pdb`)."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["MAXIMUM_NAMES", "N_PDB_RESULTS", "scan_pdb"]

MAXIMUM_NAMES = 64
"""Maximum number of chains with a TER record, and of residue names with alternative locations, in a file of the plain form."""
N_PDB_RESULTS = 6
_ATOM, _TER, _END, _MODEL, _END_MODEL, _OTHER = range(6)
_BLANK, _RETURN, _MINUS, _POINT, _PLUS = 32, 13, 45, 46, 43
_PLACES, _WIDTH = 30, 54
_DIGIT, _SPACE, _DECIMAL = 1, 2, 4
_CLASSES = np.zeros(256, np.uint8)
_CLASSES[48:58], _CLASSES[_BLANK], _CLASSES[_MINUS], _CLASSES[_POINT] = _DIGIT, _SPACE, _SPACE, _DECIMAL
_ANY = _DIGIT | _SPACE
_FORM = np.array([_ANY, _ANY, _ANY, _DIGIT, _DECIMAL, _DIGIT, _ANY, _ANY] * 3, np.uint8)
"""Classes of the characters of three coordinates: digits and blanks, a digit, the point, a digit, digits and blanks."""
_PLACE_OFFSET = 1 << 20  # added to residue numbers, so that negative numbers become valid indices
_ALPHA, _CALCIUM = int.from_bytes(b" CA "), int.from_bytes(b" CA")
_NUMBER_BEFORE, _NUMBER_AFTER = 9999, 2710  # 2710 is hexadecimal for 10000


@njit(nogil=True, cache=True)
def _capital(character):
    """Return a character as a capital."""
    return character - 32 if 97 <= character <= 122 else character


@njit(nogil=True, cache=True)
def _record(text, start, stop):
    """Return the record type of a line."""
    if stop - start < 3:
        return _OTHER
    first, second, third = _capital(text[start]), _capital(text[start + 1]), _capital(text[start + 2])
    fourth = _capital(text[start + 3]) if stop - start > 3 else _BLANK
    if (first == 65 and second == 84 and third == 79 and fourth == 77) or (first == 72 and second == 69 and third == 84 and fourth == 65):
        return _ATOM
    if first == 84 and second == 69 and third == 82 and fourth <= _BLANK:
        return _TER
    if first == 69 and second == 78 and third == 68:
        return _END if fourth <= _BLANK else _END_MODEL if fourth == 77 else _OTHER
    return _MODEL if first == 77 and second == 79 and third == 68 and fourth == 69 else _OTHER


@njit(nogil=True, cache=True)
def _has_plain_places(text, start):
    """Return True if the coordinate columns contain three numbers with decimal points between digits."""
    is_plain = True
    for k in range(len(_FORM)):
        is_plain &= (_CLASSES[text[start + _PLACES + k]] & _FORM[k]) != 0
    return is_plain


@njit(nogil=True, cache=True)
def _number(text, start):
    """Return the residue number at `start`, and True if its columns are blanks, an optional minus sign and digits."""
    value, state, sign = np.int64(0), 0, 1
    for position in range(start, start + 4):
        symbol = text[position]
        if 48 <= symbol <= 57:
            value, state = 10 * value + np.int64(symbol) - 48, 2
        elif symbol == _MINUS and state == 0:
            sign, state = -1, 1
        elif symbol != _BLANK or state != 0:
            return np.int64(0), False
    is_wide = text[start] >= 48 and 48 <= text[start + 4] <= 57
    return sign * value, state == 2 and not is_wide


@njit(nogil=True, cache=True)
def _has_charge(text, start, stop):
    """Return True if the charge columns are empty or contain a digit and a sign."""
    digits, signs, blanks = 0, 0, 0
    for position in range(start + 78, start + 80):
        symbol = text[position] if position < stop else _BLANK
        digits += 48 <= symbol <= 57
        signs += symbol in (_PLUS, _MINUS)
        blanks += symbol == _BLANK
    return blanks == 2 or (digits == 1 and signs == 1)


@njit(nogil=True, cache=True)
def _joined(text, start, width):
    """Return `width` characters as one integer."""
    value = np.int64(0)
    for position in range(start, start + width):
        value = value << 8 | np.int64(text[position])
    return value


@njit(nogil=True, cache=True)
def _is_alpha(text, start):
    """Return True for the record of a Cα atom; calcium ions are excluded."""
    return _joined(text, start + 12, 4) == _ALPHA and _joined(text, start + 17, 3) != _CALCIUM


@njit(nogil=True, cache=True)
def _index_of(value, values, n):
    """Return the index of a value among the first `n` elements of `values`, or `n`."""
    position = 0
    while position < n and values[position] != value:
        position += 1
    return position


@njit(nogil=True, cache=True)
def _add(value, values, n):
    """Append a value to the first `n` elements of `values` unless it is among them; return the new `n`, or -1 if there is no space."""
    if _index_of(value, values, n) < n:
        return n
    if n == len(values):
        return -1
    values[n] = value
    return n + 1


@njit(nogil=True, cache=True)
def scan_pdb(text, ends, alpha, names, result):
    """Check whether a PDB file has the plain form, in which its first model can be read by fixed columns.

    In the plain form, atoms have readable coordinates, residue numbers of up to four decimal digits, chain names of one character and
    readable charges; no ATOM record of a chain follows its TER record, and no atom follows an END record.

    Parameters
    ----------
    text : (bytes,) uint8
        Text with lines that end in LF or CR LF.
    ends : (n,) int64
        Positions of LF.
    alpha : (n + 1,) int64
        Output; key of each Cα: chain, residue number, insertion code and alternative location. Of consecutive Cα of a residue, only the
        first has a key.
    names : (MAXIMUM_NAMES,) int64
        Output; distinct characters of columns 17 to 20 as integers, if column 17 is not blank.
    result : (N_PDB_RESULTS,) int64
        Output; numbers of keys in `alpha` and of `names`, number of models, number of atoms after the first model, start of the second
        model, and end of the last model (bytes).

    Returns
    -------
    bool
        True for the plain form.
    """
    ended = np.empty(MAXIMUM_NAMES, np.int64)
    n_ended = n_alpha = n_names = n_others = n_models = 0
    number_before, last_place, chain = np.int64(0), np.int64(-1), np.int64(-1)
    has_atoms = is_after_end = False
    second = after = position = np.int64(0)
    for line in range(len(ends) + 1):
        start = position
        position = ends[line] if line < len(ends) else np.int64(len(text))
        stop = position - (position > start and text[position - 1] == _RETURN)
        position += 1
        kind = _record(text, start, stop)
        if kind == _END:
            is_after_end = is_after_end or n_models > 0
        elif kind in (_MODEL, _END_MODEL):
            has_atoms = False
            if kind == _MODEL and n_models == 1 and second == 0:
                second = start
            if n_models:
                after = position
        elif kind == _TER:
            if n_models == 0:
                return False
            if n_models > 1:
                after = position
            else:
                n_ended = _add(chain, ended, n_ended)
                if n_ended < 0:
                    return False
        elif kind == _ATOM:
            n_models += not has_atoms
            has_atoms = True
            if is_after_end or (n_models > 1 and second == 0):
                return False
            if n_models > 1:
                n_others += 1
                after = position
                continue
            if stop - start < _WIDTH or text[start + 20] != _BLANK or not _has_plain_places(text, start):
                return False
            number, is_plain = _number(text, start + 22)
            if not is_plain or not _has_charge(text, start, stop):
                return False
            if number_before == _NUMBER_BEFORE and number == _NUMBER_AFTER:
                return False
            number_before = number
            chain = np.int64(text[start + 21])
            if _capital(text[start]) == 65 and _index_of(chain, ended, n_ended) < n_ended:
                return False
            if text[start + 16] != _BLANK:
                n_names = _add(_joined(text, start + 16, 4), names, n_names)
                if n_names < 0:
                    return False
            if _is_alpha(text, start):
                index = chain << 32 | ((number << 8 | np.int64(text[start + 26])) + _PLACE_OFFSET)
                if index != last_place:
                    alpha[n_alpha] = index << 8 | np.int64(text[start + 16])
                    n_alpha += 1
                last_place = index
    result[0], result[1], result[2], result[3], result[4], result[5] = (
        n_alpha,
        n_names,
        n_models,
        n_others,
        second,
        min(after, np.int64(len(text))),
    )
    return True
