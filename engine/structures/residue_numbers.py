"""Residue numbers of PDB files beyond four decimal digits: hybrid-36, hexadecimal, five digits, and unreadable numbers."""

import re
from string import ascii_lowercase, ascii_uppercase, digits

__all__ = ["DECIMAL_NUMBER", "FIRST_HEXADECIMAL", "LAST_DECIMAL", "hybrid_36", "read_residue_numbers"]

LAST_DECIMAL = 9999
"""Largest number in four columns of decimal digits."""
FIRST_HEXADECIMAL = f"{LAST_DECIMAL + 1:x}"
"""Text of the number after `LAST_DECIMAL` in programs that continue in hexadecimal."""
DECIMAL_NUMBER = re.compile(r" *-?\d+ *")
_GREATEST_NUMBER = 2_436_111  # largest number of hybrid-36 in four columns
_HEXADECIMAL = re.compile(r"\d[0-9A-Fa-f]{3}|[0-9A-Fa-f]{4}")
_HYBRID = re.compile(r"[A-Z][0-9A-Z]{3}|[a-z][0-9a-z]{3}")


def read_residue_numbers(texts: list[str]) -> tuple[list[int], list[int], list[int]]:
    """Parse the residue numbers of a chain.

    Parameters
    ----------
    texts : list of str
        Columns of residue number and insertion code (five characters) of each residue.

    Returns
    -------
    numbers : list of int
        Number of each residue; unreadable numbers continue from the previous number.
    counted : list of int
        Indices of residues with unreadable numbers.
    hexadecimal : list of int
        Indices of residues with hexadecimal numbers.
    """
    result, is_counted, hexadecimal = list[int](), list[int](), list[int]()
    is_hexadecimal = False
    for k, text in enumerate(texts):
        number, before = text[:4], result[-1] if result else 0
        begins = number == FIRST_HEXADECIMAL and before == LAST_DECIMAL
        if not is_hexadecimal and (begins or (re.fullmatch(r"\d[0-9A-Fa-f]{3}", number) and not number.isdigit())):
            is_hexadecimal = True
            hexadecimal += _earlier_hexadecimal(texts, result, int(number, 16), k)
        is_hexadecimal = is_hexadecimal and _HEXADECIMAL.fullmatch(number) is not None
        if is_hexadecimal:
            result.append(int(number, 16))
            hexadecimal.append(k)
        elif number.isdigit() and text[4].isdigit():
            result.append(int(text))
        elif DECIMAL_NUMBER.fullmatch(number):
            result.append(int(number))
        elif _HYBRID.fullmatch(number):
            result.append(_from_hybrid(number))
        else:
            result.append(before + 1)
            is_counted.append(k)
        result[-1] = min(result[-1], _GREATEST_NUMBER)
    return result, is_counted, hexadecimal


def _earlier_hexadecimal(texts: list[str], numbers: list[int], value: int, stop: int) -> list[int]:
    """Reinterpret numbers before a hexadecimal number as hexadecimal if they lead up to it; return their indices."""
    changed = []
    for k in range(stop - 1, -1, -1):
        number = texts[k][:4]
        if not number.isdigit() or not 0 <= value - int(number, 16) <= 1 or int(number, 16) <= LAST_DECIMAL:
            break
        value = numbers[k] = int(number, 16)
        changed.append(k)
    return changed


def _from_hybrid(text: str) -> int:
    value = int(text, 36)
    return value - 10 * 36**3 + 10_000 if text[0].isupper() else value + 16 * 36**3 + 10_000


def hybrid_36(number: int) -> str:
    """Return a residue number as the four characters of its PDB columns.

    Examples
    --------
    >>> hybrid_36(-5), hybrid_36(9999), hybrid_36(10000), hybrid_36(_from_hybrid("zzzz"))
    ('  -5', '9999', 'A000', 'zzzz')
    """
    if -1000 < number <= LAST_DECIMAL:
        return f"{number:4d}"
    value = number - 10_000 + 10 * 36**3
    is_lower = value >= 36**4
    value -= 26 * 36**3 if is_lower else 0
    text = ""
    for _ in range(4):
        value, rest = divmod(value, 36)
        text = (digits + ascii_lowercase + ascii_uppercase)[rest] + text
    return text if is_lower else text.upper()
