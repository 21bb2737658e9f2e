"""Small tables that people write for quantities, tab-separated: designs, and impurities of labels."""

from __future__ import annotations

import csv
from pathlib import Path

from engine.errors import InputError
from engine.formats.sources import ByteSource

__all__ = ["separated_rows"]

_MAXIMUM_BYTES, _MAXIMUM_ROWS = 1 << 22, 20_000


def separated_rows(path: Path, remedy: str) -> list[list[str]]:
    """Cells of a small tab-separated table that a person wrote; one row at least.

    Raises
    ------
    InputError : the file is missing, no text, too large, or no table; with `remedy`.
    """
    with ByteSource(path) as source:
        data = source.read(_MAXIMUM_BYTES + 1)
    if len(data) > _MAXIMUM_BYTES:
        raise InputError(path, f"is larger than the {_MAXIMUM_BYTES >> 20} MB of such a table", remedy=remedy)
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(path, "is no text in UTF-8", remedy=remedy) from None
    if not lines or len(lines) > _MAXIMUM_ROWS or "\0" in lines[0]:
        raise InputError(path, "is empty" if not lines else f"is no table of at most {_MAXIMUM_ROWS:,} rows", remedy=remedy)
    try:
        return list(csv.reader(lines, delimiter="\t"))
    except csv.Error as error:
        raise InputError(path, f"is no table: {error}", remedy=remedy) from None
