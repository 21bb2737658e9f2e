"""Manual corrections of values in rows of result tables, which themselves never change."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from proteoscope.engine.errors import ParameterError

__all__ = ["MAXIMUM_CORRECTIONS", "row_corrections", "set_row_correction"]

MAXIMUM_CORRECTIONS = 100_000
"""Maximum number of corrections read per table: more than manual work makes, but an untrusted project may have more."""
_MAXIMUM_CHARACTERS, _LARGEST = 2000, 1e300


def row_corrections(connection: sqlite3.Connection, run_id: str, table: str, n_rows: int) -> dict[int, dict[str, float]]:
    """Return the corrected values of a table by column, by row index in the file; invalid corrections are skipped."""
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
        raise ParameterError("a correction is of a few finite numbers")
    connection.execute("DELETE FROM row_corrections WHERE run = ? AND name = ? AND row = ?", (run_id, table, row))
    if not numbers:
        return
    (n,) = connection.execute("SELECT count(*) FROM row_corrections WHERE run = ? AND name = ?", (run_id, table)).fetchone()
    if n >= MAXIMUM_CORRECTIONS:
        raise ParameterError(f"a table takes at most {MAXIMUM_CORRECTIONS:,} corrections. Take some away first.")
    connection.execute("INSERT INTO row_corrections VALUES (?, ?, ?, ?)", (run_id, table, row, text))


def _numbers(text: object) -> dict[str, float]:
    """Return the values by column that a stored JSON text contains; an empty dictionary if the text is invalid."""
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
