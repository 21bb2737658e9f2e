"""Safe opening of untrusted SQLite files: nothing in them is executed, and computation time and sizes are limited."""

import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote

from proteoscope.engine.unfolding import COMPUTING_STEPS

__all__ = ["LONGEST_VALUE", "computed_table", "open_sqlite"]

LONGEST_VALUE = 32 << 20
"""Maximum size of a text or binary value in bytes; a spectrum with two million peaks takes 24 MB."""
_STEPS_BETWEEN_CHECKS = 100_000
_LARGEST_SCHEMA = 10_000  # tables, indexes, views and triggers


def open_sqlite(
    path: Path,
    options: str = "mode=ro&immutable=1",
    *,
    longest_value: int = LONGEST_VALUE,
    timeout: float = 0.0,
    is_cancelled: Callable[[], bool] | None = None,
) -> sqlite3.Connection:
    """Open an untrusted database and return the connection.

    Functions, extensions and virtual tables in its schema are not executed, and no other file is attached. Values longer than
    `longest_value` bytes cause errors. A statement is interrupted when the connection has executed more steps than
    `proteoscope.engine.unfolding.COMPUTING_STEPS` allows, or when the user cancels.

    Parameters
    ----------
    path
        Path of the database.
    options
        Options of SQLite's URI; by default, the file is read and journal files next to it are ignored.
    timeout
        Maximum seconds to wait for a lock.
    is_cancelled
        Function that is called every 100,000 steps of SQLite; if it returns True, the statement is interrupted.

    Raises
    ------
    sqlite3.Error
        If the database cannot be opened.
    """
    address = f"file:{quote(os.fsencode(path.absolute()))}?{options}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=timeout)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest_value)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        n_bytes = path.stat().st_size if path.is_file() else 0
        connection.set_progress_handler(_Watch(COMPUTING_STEPS.most(n_bytes), is_cancelled), _STEPS_BETWEEN_CHECKS)
    except BaseException:
        connection.close()
        raise
    return connection


class _Watch:
    """Function object that SQLite calls regularly; it interrupts a statement, by returning 1, after too many steps or on cancel."""

    def __init__(self, most_steps: int, is_cancelled: Callable[[], bool] | None) -> None:
        self._checks_left, self._is_cancelled = most_steps // _STEPS_BETWEEN_CHECKS, is_cancelled

    def __call__(self) -> int:
        self._checks_left -= 1
        return int(self._checks_left < 0 or (self._is_cancelled is not None and self._is_cancelled()))


def computed_table(connection: sqlite3.Connection, tables: Iterable[str]) -> str:
    """Return the first of the given tables that the file does not contain as a stored table; '' if it contains all of them.

    Views, virtual tables and tables with a generated column do not count as stored: their rows or values are computed, and may be far
    larger than the file.
    """
    schema = connection.execute("SELECT name, type, sql FROM sqlite_schema LIMIT ?", (_LARGEST_SCHEMA,))
    kinds = {str(name): (kind, str(text)) for name, kind, text in schema}
    for table in tables:
        kind, text = kinds.get(table, ("", ""))
        if kind != "table" or text.upper().lstrip().startswith("CREATE VIRTUAL"):
            return table
        # In table_xinfo, `hidden` is 0 for stored columns. Callers pass constant table names, so the query is safe.
        if any(row[6] != 0 for row in connection.execute(f"PRAGMA table_xinfo({table})")):
            return table
    return ""
