"""Replacement of a finished run by a new run of the same name, when the new run is done.

The new run is computed with a number as its id, such as ``identify-0007``, in ``results/NUMBER``. When it is done, the folder of the old
run is renamed ``results/.NAME~NUMBER``, the folder of the new run is renamed ``results/NAME``, the database records the new results, and
the old folder is removed. If the process is killed in between, the next opening of the project completes the replacement if the database
has recorded it, and otherwise undoes it. The database has not recorded it as long as a run has the id NUMBER.
"""

import shutil
import sqlite3
from pathlib import Path

from proteoscope.engine.files import sync_folder
from proteoscope.engine.project.paths import entries, is_run_id
from proteoscope.engine.project.run_notes import forget_run

__all__ = [
    "interrupted_replacements",
    "remove_old",
    "rename_run",
    "replacement_title",
    "restore",
    "swap_folders",
    "unfinished_replacements",
]

_OF_RUN = ("run_inputs", "log", "run_notes", "deleted_runs")


def replacement_title(name: str) -> str:
    """Return the title of a run that is to replace the run `name`."""
    return f"Replacement of {name}"


def unfinished_replacements(connection: sqlite3.Connection, name: str) -> list[str]:
    """Return the ids of stopped and failed runs that were to replace the run `name` and that the user has not renamed."""
    rows = connection.execute(
        "SELECT id FROM runs JOIN run_notes ON run_notes.run = runs.id WHERE status IN ('failed', 'cancelled') AND title = ?",
        (replacement_title(name),),
    )
    return [row["id"] for row in rows]


def _old_folder(results: Path, name: str, number: str) -> Path:
    """Return the folder of the old run `name` while the run `number` replaces it; the folder name cannot be the id of a run."""
    return results / f".{name}~{number}"


def interrupted_replacements(results: Path) -> list[tuple[str, str]]:
    """Return the name and the number of each replacement that was started in the folder `results` and did not end."""
    pairs = [folder.name[1:].rsplit("~", 1) for folder in entries(results) if folder.name.startswith(".") and "~" in folder.name]
    return [(name, number) for name, number in pairs if is_run_id(name) and is_run_id(number)]


def swap_folders(results: Path, name: str, number: str) -> None:
    """Rename the folder of the old run (see `_old_folder`), and give the folder of the new run, named `number`, the name `name`.

    The database records the replacement afterwards.
    """
    old = _old_folder(results, name, number)
    if (results / name).exists():
        (results / name).rename(old)
    else:
        old.mkdir()  # after a kill, this shows that the replacement had begun
    (results / number).rename(results / name)
    sync_folder(results)


def restore(results: Path, name: str, number: str) -> None:
    """Undo `swap_folders`: give the folders of the old run and of the run `number` their previous names."""
    old = _old_folder(results, name, number)
    if not old.is_dir():
        return
    if (results / name).is_dir() and not (results / number).exists():
        (results / name).rename(results / number)
    old.rename(results / name)


def remove_old(results: Path, name: str, number: str) -> None:
    """Remove the folder of a run that has been replaced."""
    shutil.rmtree(_old_folder(results, name, number), ignore_errors=True)


def rename_run(connection: sqlite3.Connection, number: str, name: str) -> None:
    """Change the id of the run `number` to `name` in all tables of the database, after removing the old run `name` from them."""
    connection.execute("PRAGMA defer_foreign_keys = ON")  # until the transaction ends, rows refer to a run with another id
    forget_run(connection, name)
    connection.execute("UPDATE run_notes SET title = '' WHERE run = ? AND title = ?", (number, replacement_title(name)))
    for table in _OF_RUN:
        connection.execute(f"UPDATE {table} SET run = ? WHERE run = ?", (name, number))
    connection.execute("UPDATE runs SET id = ? WHERE id = ?", (name, number))
