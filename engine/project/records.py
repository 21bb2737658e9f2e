"""What the project's database tells: one frozen record for a row of each table."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

__all__ = ["InputRecord", "LogEntry", "ResultRecord", "RunInput", "RunRecord", "RunStatus"]

RunStatus = Literal["queued", "running", "done", "failed", "cancelled"]


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
