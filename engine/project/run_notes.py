"""Titles, notes and deletion marks that users give to runs.

A deleted run is no longer listed. The process that deleted the run can restore it until the process ends. Afterwards, the run is removed
when the project is next cleaned up.
"""

import sqlite3
from dataclasses import dataclass

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import escape_unprintable
from proteoscope.engine.project.locks import ProcessIdentity

__all__ = ["LISTED", "MAXIMUM_NOTE", "MAXIMUM_TITLE", "RunNote", "deleted_for_good", "forget_run", "run_note", "set_note"]

MAXIMUM_TITLE, MAXIMUM_NOTE = 200, 20_000
"""Maximum lengths of a run's title and note in characters."""
LISTED = "runs.id NOT IN (SELECT run FROM deleted_runs)"
"""Condition in SQL that is true for runs that are not deleted."""
_LOST_AFTER_DAYS = 1.0
"""Days after which a run that was deleted on another machine is removed; whether that process has ended cannot be checked."""


@dataclass(frozen=True)
class RunNote:
    """Title and note of a run, each '' if not set."""

    title: str = ""
    note: str = ""


def run_note(connection: sqlite3.Connection, run_id: str) -> RunNote:
    """Return the title and note of a run. Invalid values, which an untrusted database may have, become '', and long texts are truncated."""
    row = connection.execute(
        "SELECT substr(title, 1, ?) AS title, substr(note, 1, ?) AS note FROM run_notes WHERE run = ?",
        (MAXIMUM_TITLE, MAXIMUM_NOTE, run_id),
    ).fetchone()
    if row is None:
        return RunNote()
    title, note = (value if isinstance(value, str) else "" for value in row)
    return RunNote(_one_line(title), _lines(note))


def _one_line(text: str) -> str:
    """Return a text on one line, with characters escaped that cannot be printed or stored."""
    return escape_unprintable(" ".join(text.split()))


def _lines(text: str) -> str:
    """Return a text with characters escaped that cannot be printed or stored, except line breaks and tabs."""
    return "\n".join("\t".join(map(escape_unprintable, line.split("\t"))) for line in text.split("\n"))


def set_note(connection: sqlite3.Connection, run_id: str, note: RunNote) -> None:
    """Store the title and note of a run, replacing the previous ones.

    Raises
    ------
    ParameterError
        If a text is too long.
    """
    title, lines = _one_line(note.title), _lines(note.note)
    for name, text, most in (("title", title, MAXIMUM_TITLE), ("note", lines, MAXIMUM_NOTE)):
        if len(text) > most:
            raise ParameterError(f"the {name} of a run has at most {most:,} characters; this one has {len(text):,}")
    connection.execute("INSERT OR REPLACE INTO run_notes (run, title, note) VALUES (?, ?, ?)", (run_id, title, lines))


def deleted_for_good(connection: sqlite3.Connection) -> list[str]:
    """Return the ids of deleted runs that cannot be restored any more, since the process that deleted them has ended."""
    rows = connection.execute(
        "SELECT run, host, pid, process_started, julianday('now') - julianday(deleted) AS days FROM deleted_runs"
    ).fetchall()
    here, gone = ProcessIdentity.current().host, []
    for row in rows:
        is_process = isinstance(row["pid"], int) and 0 < row["pid"] < 1 << 31
        if not is_process:
            continue
        if row["host"] == here:
            ended = ProcessIdentity(here, row["pid"], str(row["process_started"])).has_ended()
        else:
            ended = (row["days"] or 0) > _LOST_AFTER_DAYS
        if ended:
            gone.append(row["run"])
    return gone


def forget_run(connection: sqlite3.Connection, run_id: str) -> None:
    """Delete a run from all tables, and also the inputs that no other run has read."""
    for table in ("results", "run_inputs", "log", "run_notes", "deleted_runs"):
        connection.execute(f"DELETE FROM {table} WHERE run = ?", (run_id,))
    connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
    connection.execute("DELETE FROM inputs WHERE id NOT IN (SELECT input FROM run_inputs)")
