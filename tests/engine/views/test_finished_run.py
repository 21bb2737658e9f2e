"""Finished runs, opened to be looked at."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from engine.project import Project
from engine.views.finished_run import open_run
from tests.engine.views.search_projects import project_with_search


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run searched with three queries."""
    return project_with_search(tmp_path_factory.mktemp("searched") / "project").folder


def test_warnings_of_a_run_stand_before_what_it_said_else(searched: Path, tmp_path: Path) -> None:
    shutil.copytree(searched, tmp_path / "project")
    project = Project.open(tmp_path / "project")
    with project.run("align", project.runs()[-1].parameters, [], version="1", device="cpu") as run:
        for level, text in (("info", "read"), ("warning", "few pairs"), ("info", "fitted"), ("warning", "do not trust")):
            run.log(level, text)
        for name in ("queries", "hits", "score_counts"):
            run.write_table(name, pq.read_table(project.table(name, "align-0001")))
    opened = open_run(project, run.id)
    opened.close()
    assert opened.messages == ("few pairs", "do not trust", "read", "fitted")
