"""Records of a project's database: one frozen class per table, and functions that validate and convert rows."""

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
_YEARS = range(1971, 9000)  # other years cannot be represented in every time zone


class DamagedRowError(Exception):
    """A database row is invalid; the message is the end of a sentence and names the column."""


@dataclass(frozen=True)
class RunInput:
    """File that a run reads.

    Attributes
    ----------
    path
        Path of the file.
    kind
        Role of the file in the run, such as ``spectra`` or ``database``.
    sha256
        SHA-256 of the file if the caller has it already; '' to compute it.
    """

    path: Path
    kind: str
    sha256: str | None = None


@dataclass(frozen=True)
class InputRecord:
    """File that a run read, with its size and digest at that time."""

    path: Path
    kind: str
    size: int
    sha256: str


@dataclass(frozen=True)
class RunRecord:
    """Record of a run: parameters, times, version and outcome.

    Attributes
    ----------
    id
        Permanent name of the run and of its folder under ``results``, such as ``identify-0001``.
    started
        Start time; time of the request while the run is queued.
    finished
        End time; None until the run has ended.
    message
        Error message of a failed run, else a sentence about the results.
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

    @property
    def label(self) -> str:
        """Number of a run with an automatic id, such as ``2`` for ``identify-0002``; id of any other run."""
        number = self.id.removeprefix(f"{self.kind}-")
        return str(int(number)) if number != self.id and number.isdecimal() and number.isascii() else self.id


@dataclass(frozen=True)
class ResultRecord:
    """Result file of a finished run; `path` is absolute, `rows` is the number of rows, or None if the file is not a table."""

    run: str
    name: str
    path: Path
    rows: int | None
    bytes: int
    sha256: str


@dataclass(frozen=True)
class LogEntry:
    """Line of a run's log."""

    time: datetime
    level: str
    text: str


def run_record(row: sqlite3.Row) -> RunRecord:
    """Return the run that a row of the database table ``runs`` describes.

    Raises
    ------
    DamagedRowError
        If the row is invalid.
    """
    run_id, status = row["id"], row["status"]
    if not is_run_id(run_id):
        raise DamagedRowError(f"{_shown(run_id)} is not an id")
    if status not in get_args(RunStatus):
        raise DamagedRowError(f"{_shown(status)} is not a status")
    finished = None if row["finished"] is None else _time(row, "finished")
    kind, version, device, message = (_text(row, name) for name in ("kind", "version", "device", "message"))
    return RunRecord(run_id, kind, _parameters(row), version, device, status, _time(row, "started"), finished, message)


def input_record(row: sqlite3.Row) -> InputRecord:
    """Return the input file that a row of the database table ``inputs`` describes.

    Raises
    ------
    DamagedRowError
        If the row is invalid.
    """
    path = _text(row, "path")
    if "\0" in path:
        raise DamagedRowError("the path contains a character that paths cannot contain")
    return InputRecord(Path(path), _text(row, "kind"), _count(row, "size"), _text(row, "sha256"))


def result_record(row: sqlite3.Row, folder: Path) -> ResultRecord:
    """Return the result file that a row of the database table ``results`` of the project in `folder` describes.

    Raises
    ------
    DamagedRowError
        If the row is invalid.
    """
    run, path = row["run"], row["path"]
    if not is_result_path(run, path):
        raise DamagedRowError(f"the path {_shown(path)} is not the path of a result")
    rows = None if row["rows"] is None else _count(row, "rows")
    return ResultRecord(run, _text(row, "name"), folder / path, rows, _count(row, "bytes"), _text(row, "sha256"))


def log_entry(row: sqlite3.Row) -> LogEntry:
    """Return the log line that a row of the database table ``log`` describes.

    Raises
    ------
    DamagedRowError
        If the row is invalid.
    """
    level = row["level"]
    if level not in _LEVELS:
        raise DamagedRowError(f"{_shown(level)} is not a level")
    return LogEntry(_time(row, "time"), level, _text(row, "text"))


def _text(row: sqlite3.Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str):
        raise DamagedRowError(f"the {name} {_shown(value)} is not text")
    return value


def _count(row: sqlite3.Row, name: str) -> int:
    value = row[name]
    if not isinstance(value, int) or value < 0:
        raise DamagedRowError(f"the {name} {_shown(value)} is not a count")
    return value


def _time(row: sqlite3.Row, name: str) -> datetime:
    try:
        value = datetime.fromisoformat(row[name])
    except (TypeError, ValueError):
        value = None
    if value is None or value.tzinfo is None or value.year not in _YEARS:
        raise DamagedRowError(f"the {name} {_shown(row[name])} is not a time")
    return value


def _parameters(row: sqlite3.Row) -> dict[str, Any]:
    try:
        value = json.loads(_text(row, "parameters"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise DamagedRowError("the parameters are not a JSON object")
    return value


def _shown(value: object) -> str:
    """Return a damaged value as short text without control characters, for messages."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
