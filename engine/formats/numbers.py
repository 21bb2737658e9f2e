"""Parser of numbers in all text formats: decimal numbers as accepted by `float`, integers, and texts that mean a missing value."""

import math
import re
from collections.abc import Iterable

__all__ = ["COMMA", "COMMA_WARNING", "MISSING", "POINT", "decimal_sign", "is_missing", "number_or_nan", "read_number", "whole_or"]

POINT, COMMA = ord("."), ord(",")
"""Decimal signs as character codes, which kernels expect."""
COMMA_WARNING = "{}: all numbers with decimals have a comma, which is read as the decimal sign; write points if it separates thousands"
MISSING = ("", "na", "nan", "null", "none", "n/a", "-")
"""Texts that mean a missing value, in lower case."""
_MISSING = frozenset(text.encode() for text in MISSING)
_COMMA = re.compile(rb"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?|[+-]?[0-9]+,(?:[eE][+-]?[0-9]+)?")


def read_number(text: str | bytes, decimal: int = POINT) -> float:
    """Parse a number; blanks around it are allowed.

    Parameters
    ----------
    text : str or bytes
        Digits with an optional decimal sign and exponent, ``inf`` or ``nan``.
    decimal : int
        Decimal sign: `POINT` or `COMMA`.

    Returns
    -------
    float
        Value of the number.

    Raises
    ------
    ValueError
        If the text is not a number, or continues after the number.

    Examples
    --------
    >>> read_number(" 612.345"), read_number("612,345", COMMA)
    (612.345, 612.345)
    """
    if decimal == POINT and isinstance(text, bytes) and b"_" not in text:
        return float(text)  # the usual case
    word = text.decode("latin-1") if isinstance(text, bytes) else text
    if decimal == COMMA:
        # Reject points, which are not the decimal sign here.
        word = word.replace(".", "_").replace(",", ".")
    # Reject notations that only Python accepts: 1_000, and digits of other scripts.
    if "_" in word or not word.isascii():
        raise ValueError(f"'{word:.60}' is not a number")
    return float(word)


def number_or_nan(text: str | bytes, decimal: int = POINT) -> float:
    """Parse a number as `read_number` does; return NaN if the text is not a number.

    Examples
    --------
    >>> number_or_nan("5.2 min"), number_or_nan("5.2")
    (nan, 5.2)
    """
    if not text:
        return math.nan
    try:
        return read_number(text, decimal)
    except ValueError:
        return math.nan


def whole_or(text: str | bytes, missing: int) -> int:
    """Parse an integer from 0 to 10^15; return `missing` if the text is not such a number.

    Examples
    --------
    >>> whole_or("12", -1), whole_or("1.5", -1)
    (12, -1)
    """
    if not text:
        return missing
    if len(text) <= 15 and text.isascii() and text.isdigit():
        return int(text)  # the usual case
    number = number_or_nan(text)
    return int(number) if 0 <= number < 1e15 and number == math.floor(number) else missing


def is_missing(text: bytes) -> bool:
    """Return True if a text means a missing value.

    Examples
    --------
    >>> is_missing(b"None"), is_missing(b"0")
    (True, False)
    """
    return text.strip().lower() in _MISSING


def decimal_sign(words: Iterable[bytes]) -> int:
    """Return the decimal sign of a file, given some of its words: `COMMA` if at least one number has a comma and none has a point.

    Examples
    --------
    >>> decimal_sign([b"612,345", b"12"]) == COMMA, decimal_sign([b"612,345", b"12.5"]) == COMMA
    (True, False)
    """
    has_comma = False
    for word in words:
        if b"." in word:
            return POINT
        if b"," in word:
            if not _COMMA.fullmatch(word):
                return POINT
            has_comma = True
    return COMMA if has_comma else POINT
