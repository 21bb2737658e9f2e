"""What the project's database tells: one frozen record for a row of each table, read so that a damaged row is known as one."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

from proteoscope.engine.project.paths import is_result_path, is_run_id

__all__ = [
    "DamagedRowError",
    "InputRecord",
    "LogEntry",
    "ResultRecord",
    "RunInput",
    "RunRecord",
    "RunStatus",
    "input_record",
    "log_entry",
    "result_record",
    "run_record",
]

RunStatus = Literal["queued", "running", "done", "failed", "cancelled"]
_LEVELS = ("info", "warning", "error")
_YEARS = range(1971, 9000)  # beyond, a date cannot be shown in every time zone


class DamagedRowError(Exception):
    """A row of the database does not hold what the program writes; the message says which column, as the end of a sentence."""


@dataclass(frozen=True)
class RunInput:
    """A file that a run reads.

    Attributes
    ----------
    path : the file.
    kind : what it is to the run: ``spectra``, ``database``.
    sha256 : its digest where the caller has it already; computed otherwise.
    """

    path: Path
    kind: str
    sha256: str | None = None


@dataclass(frozen=True)
class InputRecord:
    """A file that a run read, as it was then."""

    path: Path
    kind: str
    size: int
    sha256: str


@dataclass(frozen=True)
class RunRecord:
    """A run: what was done with which parameters, when, by which version, and how it ended.

    `id` is its name for good and the name of its folder under ``results``: ``identify-0001``. `started` is when it was asked for, as
    long as it is queued; `finished` is None until it ended. `message` is why it failed, or what the run said about itself.
    """

    id: str
    kind: str
    parameters: dict[str, Any]
    version: str
    device: str
    status: RunStatus
    started: datetime
    finished: datetime | None
    message: str


@dataclass(frozen=True)
class ResultRecord:
    """A file of a finished run: `path` is absolute, `rows` None where it is not a table."""

    run: str
    name: str
    path: Path
    rows: int | None
    bytes: int
    sha256: str


@dataclass(frozen=True)
class LogEntry:
    """A line of a run's log."""

    time: datetime
    level: str
    text: str


def run_record(row: sqlite3.Row) -> RunRecord:
    """A row of ``runs``. Raises DamagedRowError."""
    run_id, status = row["id"], row["status"]
    if not is_run_id(run_id):
        raise DamagedRowError(f"the id {_shown(run_id)} is none")
    if status not in get_args(RunStatus):
        raise DamagedRowError(f"the status {_shown(status)} is none")
    finished = None if row["finished"] is None else _time(row, "finished")
    kind, version, device, message = (_text(row, name) for name in ("kind", "version", "device", "message"))
    return RunRecord(run_id, kind, _parameters(row), version, device, status, _time(row, "started"), finished, message)


def input_record(row: sqlite3.Row) -> InputRecord:
    """A row of ``inputs``. Raises DamagedRowError."""
    path = _text(row, "path")
    if "\0" in path:
        raise DamagedRowError("the path holds a character that no path can")
    return InputRecord(Path(path), _text(row, "kind"), _count(row, "size"), _text(row, "sha256"))


def result_record(row: sqlite3.Row, folder: Path) -> ResultRecord:
    """A row of ``results`` of the project in `folder`. Raises DamagedRowError."""
    run, path = row["run"], row["path"]
    if not is_result_path(run, path):
        raise DamagedRowError(f"the path {_shown(path)} is not that of a result")
    rows = None if row["rows"] is None else _count(row, "rows")
    return ResultRecord(run, _text(row, "name"), folder / path, rows, _count(row, "bytes"), _text(row, "sha256"))


def log_entry(row: sqlite3.Row) -> LogEntry:
    """A row of ``log``. Raises DamagedRowError."""
    level = row["level"]
    if level not in _LEVELS:
        raise DamagedRowError(f"the level {_shown(level)} is none")
    return LogEntry(_time(row, "time"), level, _text(row, "text"))


def _text(row: sqlite3.Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise DamagedRowError(f"the {name} {_shown(value)} is no text")
    return value


def _count(row: sqlite3.Row, name: str) -> int:
    value = row[name]
    if not isinstance(value, int) or value < 0:
        raise DamagedRowError(f"the {name} {_shown(value)} is no count")
    return value


def _time(row: sqlite3.Row, name: str) -> datetime:
    try:
        value = datetime.fromisoformat(row[name])
    except (TypeError, ValueError):
        value = None
    if value is None or value.tzinfo is None or value.year not in _YEARS:
        raise DamagedRowError(f"the {name} {_shown(row[name])} is no time")
    return value


def _parameters(row: sqlite3.Row) -> dict[str, Any]:
    try:
        value = json.loads(_text(row, "parameters"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise DamagedRowError("the parameters are no JSON object")
    return value


def _shown(value: object) -> str:
    """A value from a damaged row, short and without what a terminal would obey."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
