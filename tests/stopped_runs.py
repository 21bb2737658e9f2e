"""Runs that a user stopped after the computation and before the results were written, for tests of resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.execution import checkpoints
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import run_search
from tests.engine.views.search_projects import search_files

TABLES = ("queries", "hits")


class ProgressUntil(Progress):
    """Progress that is cancelled when a stage begins."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title

    def stage(self, title: str, total: int = 0) -> None:
        if title.startswith(self._title):
            self.cancel()
        super().stage(title, total)


def keep_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs store checkpoints from the start."""
    monkeypatch.setattr(checkpoints, "BEGIN_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SHARE", 1e9)
    monkeypatch.setattr(checkpoints, "FLUSH_SECONDS", 0.01)


def inputs_of(folder: Path) -> dict[str, list[Path]]:
    """Return the files of the searches here."""
    queries, database = search_files(folder / "files", n_queries=2, n_relatives=4, n_unrelated=40)
    return {"queries": [queries], "database": [database]}


def stop_a_search(project: Path, folder: Path, **changes: Any) -> str:
    """Start a sequence search, stop it before its hits are written, and return the id of its run, which can be resumed."""
    with pytest.raises(Cancelled) as stopped:
        run_search(
            "align", inputs_of(folder), project=project, device="cpu", threads=2, progress=ProgressUntil("Aligning and writing"), **changes
        )
    run = Project.open(project).runs()[-1]
    assert run.status == "cancelled"
    assert stopped.value.__notes__[-1] == f"to resume run '{run.id}': proteoscope resume {project} --run {run.id}"
    return run.id


def tables(project: Path, run: str) -> dict[str, bytes]:
    """Return the tables of a run, byte by byte."""
    opened = Project.open(project)
    return {result.name: result.path.read_bytes() for result in opened.results(run) if result.rows is not None}
