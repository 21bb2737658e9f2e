"""Stars, comments and corrected values of users on rows of result tables; the tables themselves never change."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from proteoscope.engine.errors import ParameterError

__all__ = [
    "MAXIMUM_COMMENT",
    "MAXIMUM_CORRECTIONS",
    "MAXIMUM_MARKS",
    "RowMark",
    "one_line",
    "row_corrections",
    "row_marks",
    "set_row_correction",
    "set_row_mark",
]

MAXIMUM_CORRECTIONS = 100_000
"""Maximum number of corrections that are read per table; manual work makes fewer, but an untrusted project may have more."""
_MAXIMUM_CHARACTERS, _LARGEST = 2000, 1e300


def row_corrections(connection: sqlite3.Connection, run_id: str, table: str, n_rows: int) -> dict[int, dict[str, float]]:
    """Return the corrected values of a table as ``{row index in the file: {column: value}}``; invalid corrections are skipped."""
    rows = connection.execute(
        "SELECT row, numbers FROM row_corrections WHERE run = ? AND name = ? AND length(numbers) <= ? ORDER BY row LIMIT ?",
        (run_id, table, _MAXIMUM_CHARACTERS, MAXIMUM_CORRECTIONS),
    ).fetchall()
    result = {row["row"]: _numbers(row["numbers"]) for row in rows if isinstance(row["row"], int) and 0 <= row["row"] < n_rows}
    return {row: numbers for row, numbers in result.items() if numbers}


def set_row_correction(connection: sqlite3.Connection, run_id: str, table: str, row: int, numbers: Mapping[str, float]) -> None:
    """Store the corrected values of a row by column, replacing earlier corrections; empty `numbers` remove the correction.

    Raises
    ------
    ParameterError
        If a value is not a finite number, or the table has too many corrections.
    """
    text = json.dumps({name: float(number) for name, number in numbers.items()})
    if numbers and (len(text) > _MAXIMUM_CHARACTERS or len(_numbers(text)) != len(numbers)):
        raise ParameterError("a correction consists of a few finite numbers")
    connection.execute("DELETE FROM row_corrections WHERE run = ? AND name = ? AND row = ?", (run_id, table, row))
    if not numbers:
        return
    (n,) = connection.execute("SELECT count(*) FROM row_corrections WHERE run = ? AND name = ?", (run_id, table)).fetchone()
    if n >= MAXIMUM_CORRECTIONS:
        raise ParameterError(f"a table can have at most {MAXIMUM_CORRECTIONS:,} corrections. Remove some first.")
    connection.execute("INSERT INTO row_corrections VALUES (?, ?, ?, ?)", (run_id, table, row, text))


def _numbers(text: object) -> dict[str, float]:
    """Return the values by column in a stored JSON text; an empty dictionary if the text is invalid."""
    try:
        result = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(result, dict):
        return {}
    are_sound = all(
        isinstance(number, float | int) and not isinstance(number, bool) and abs(number) < _LARGEST for number in result.values()
    )
    return {name: float(number) for name, number in result.items()} if are_sound else {}


MAXIMUM_COMMENT = 1000
"""Maximum length of a comment in characters."""
MAXIMUM_MARKS = 100_000
"""Maximum number of marks that are read per table; manual work makes fewer, but an untrusted project may have more."""


@dataclass(frozen=True)
class RowMark:
    """Mark of a row: a star and a one-line comment, both optional."""

    is_starred: bool = False
    comment: str = ""

    def __bool__(self) -> bool:
        return self.is_starred or bool(self.comment)


def one_line(text: str) -> str:
    r"""Return a text with line breaks, tabs, direction marks and invalid characters replaced by single spaces.

    >>> one_line(" a\tb\u202e ")
    'a b'
    """
    return " ".join("".join(symbol if symbol.isprintable() else " " for symbol in text).split())


def row_marks(connection: sqlite3.Connection, run_id: str, table: str, n_rows: int) -> dict[int, RowMark]:
    """Return the marks of a run's table by row index in the file; invalid marks are skipped."""
    rows = connection.execute(
        "SELECT row, is_starred, substr(comment, 1, ?) AS comment FROM row_marks WHERE run = ? AND name = ? ORDER BY row LIMIT ?",
        (MAXIMUM_COMMENT, run_id, table, MAXIMUM_MARKS),
    ).fetchall()
    result = {
        row["row"]: RowMark(row["is_starred"] == 1, one_line(row["comment"]) if isinstance(row["comment"], str) else "")
        for row in rows
        if isinstance(row["row"], int) and 0 <= row["row"] < n_rows
    }
    return {row: mark for row, mark in result.items() if mark}


def set_row_mark(connection: sqlite3.Connection, run_id: str, table: str, row: int, mark: RowMark) -> None:
    """Replace the mark of a row; an empty mark removes it.

    Raises
    ------
    ParameterError
        If the comment is too long, or the table has too many marks.
    """
    comment = one_line(mark.comment)
    if len(comment) > MAXIMUM_COMMENT:
        raise ParameterError(f"a comment has at most {MAXIMUM_COMMENT:,} characters; this one has {len(comment):,}")
    connection.execute("DELETE FROM row_marks WHERE run = ? AND name = ? AND row = ?", (run_id, table, row))
    if not (mark.is_starred or comment):
        return
    (n_marks,) = connection.execute("SELECT count(*) FROM row_marks WHERE run = ? AND name = ?", (run_id, table)).fetchone()
    if n_marks >= MAXIMUM_MARKS:
        raise ParameterError(f"a table can have at most {MAXIMUM_MARKS:,} stars and comments. Remove some first.")
    connection.execute("INSERT INTO row_marks VALUES (?, ?, ?, ?, ?)", (run_id, table, row, int(mark.is_starred), comment))
