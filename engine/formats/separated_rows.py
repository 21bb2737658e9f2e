"""Reader of small tab-separated tables written by users, such as designs and label impurities."""

import codecs
import csv
import re
from pathlib import Path

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.sources import ByteSource

__all__ = ["MAXIMUM_BYTES", "MAXIMUM_ROWS", "separated_rows"]

MAXIMUM_BYTES, MAXIMUM_ROWS = 1 << 22, 20_000
"""Maximum size of a table."""
_LINE_END = re.compile(r"\r\n|\r|\n")


def separated_rows(path: Path, remedy: str, maximum_bytes: int = MAXIMUM_BYTES) -> list[list[str]]:
    """Return the cells of a small tab-separated table with at least one row.

    Parameters
    ----------
    path : Path
        File to read.
    remedy : str
        Advice to the user if the table is invalid.
    maximum_bytes : int
        Maximum size of the table.

    Raises
    ------
    InputError
        If the file is missing, too large, not text, or not a table.
    """
    with ByteSource(path) as source:
        data = source.read(maximum_bytes + 1)
    if len(data) > maximum_bytes:
        raise InputError(path, f"is larger than {maximum_bytes >> 20} MB, the maximum for such a table", remedy=remedy)
    try:
        lines = _LINE_END.split(data.decode(_encoding(data)))
    except UnicodeDecodeError:
        raise InputError(path, "expected text in UTF-8, or in UTF-16 with a byte order mark", remedy=remedy) from None
    if lines[-1] == "":
        del lines[-1]
    if not lines or len(lines) > MAXIMUM_ROWS or "\0" in lines[0]:
        raise InputError(path, "is empty" if not lines else f"expected a table of at most {MAXIMUM_ROWS:,} rows", remedy=remedy)
    return [_cells(path, line, number, remedy) for number, line in enumerate(lines, 1)]


def _encoding(data: bytes) -> str:
    """Return UTF-16 if the data start with its byte order mark (as saved by spreadsheets), otherwise UTF-8."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and not data.startswith(codecs.BOM_UTF32_LE)
    return "utf-16" if is_wide else "utf-8-sig"


def _cells(path: Path, line: str, number: int, remedy: str) -> list[str]:
    """Return the cells of a line, which may be in quotes; a cell does not contain line breaks."""
    try:
        return next(csv.reader([line], delimiter="\t", strict=True), [])
    except csv.Error as error:
        raise InputError(path, f"expected a row of a table ({error})", place=f"line {number}", remedy=remedy) from None
