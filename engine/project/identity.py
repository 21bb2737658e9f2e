"""Random id of a project, assigned at its creation and unchanged when the project is moved or copied."""

import re
import sqlite3
from pathlib import Path

from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.project.database import Database
from proteoscope.engine.project.paths import DATABASE
from proteoscope.engine.project.schema import ID_BYTES

__all__ = ["is_project_id", "project_id_at", "read_project_id"]

_ID = re.compile(f"[0-9a-f]{{{2 * ID_BYTES}}}")


def is_project_id(text: object) -> bool:
    """Return True if `text` has the form of a project id: 32 hexadecimal digits."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def read_project_id(connection: sqlite3.Connection) -> str:
    """Return the id in a project's database; '' if the id is damaged."""
    rows = connection.execute("SELECT id FROM identity LIMIT 2").fetchall()
    return rows[0][0] if len(rows) == 1 and is_project_id(rows[0][0]) else ""


def project_id_at(folder: Path) -> str | None:
    """Return the id of the project in a folder; None if there is no project, '' if it cannot be read."""
    try:
        if not (folder / DATABASE).is_file():
            return None
        database = Database(folder / DATABASE, read_only=True)
        database.check()
        with database.transaction() as connection:
            return read_project_id(connection)
    except (InputError, StorageError):
        return ""
    except OSError:
        return None
