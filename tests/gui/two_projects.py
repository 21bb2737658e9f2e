"""Two projects with runs of the same kinds and ids but other contents, so that anything left from the other project is noticed."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.errors import InputError
from proteoscope.engine.project import Project
from proteoscope.gui.window import MainWindow
from tests.engine.identification_tables import identification
from tests.engine.views.cluster_projects import project_with_clusters
from tests.engine.views.compared_projects import add_run, varied
from tests.engine.views.result_projects import spectra_table
from tests.engine.views.search_projects import project_with_search

OLDEST, ALIGNED, NEWEST, FAILED = "identify-0001", "align-0002", "identify-0004", "identify-0005"
"""Runs of both projects."""


class StoredRun(NamedTuple):
    """A run as stored in a project."""

    id: str
    kind: str
    status: str
    title: str


def stored_runs(folder: Path) -> list[StoredRun]:
    """Return the runs of a project, newest first, read without the program."""
    with closing(sqlite3.connect(f"file:{folder / 'project.sqlite'}?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT id, kind, status, coalesce(title, '') FROM runs LEFT JOIN run_notes ON run = id "
            "WHERE id NOT IN (SELECT run FROM deleted_runs) ORDER BY number DESC"
        )
        return [StoredRun(*row) for row in rows]


def make_project(folder: Path, seed: int) -> Path:
    """Create a project with two identifications of the same spectra, an alignment, a clustering, and a failed run."""
    base = identification(40, seed)
    spectra = spectra_table(base)
    project = Project.create_or_open(folder)
    add_run(project, base, spectra)
    project_with_search(folder, n_queries=2, n_relatives=4 + seed % 5, n_unrelated=20)
    project_with_clusters(folder, sizes=(9 - seed % 5, 6, 4, 3, 1, 1))
    add_run(project, varied(base, seed), spectra)
    with pytest.raises(InputError), project.run("identify", {}):
        raise InputError(f"file {seed}.mzML", "is cut off")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("random-windows")
    return [make_project(folder / name, seed) for name, seed in (("first", 7), ("second", 11))]


@pytest.fixture
def projects(made: list[Path], tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(folder, tmp_path / folder.name)) for folder in made]


def settle(window: MainWindow, qtbot: QtBot) -> None:
    """Wait until everything is read and shown."""

    def is_busy() -> bool:
        views: list[Any] = [*window.made_results(), window.run_actions]
        if window.comparisons.view is not None:
            views.append(window.comparisons.view)
        return window.deferred.is_busy or any(view.is_busy for view in views)

    n_idle = 0
    while n_idle < 3:
        qtbot.wait(1)
        n_idle = 0 if is_busy() else n_idle + 1
        qtbot.waitUntil(lambda: not is_busy())
