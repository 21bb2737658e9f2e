"""Tests of the tasks that the window adds to the job queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import StorageError
from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.tasks import SearchTask


def task(folder: Path) -> SearchTask:
    search = search_of_kind("align")
    request = SearchRequest({"queries": (), "database": ()}, search.model(), folder)
    return SearchTask(search, "a search", request, {"queries": ">one\nMKV\n"})


@pytest.mark.parametrize("linked", ["queries", "pasted"])
def test_pasted_text_is_not_written_through_symbolic_links(tmp_path: Path, linked: str) -> None:
    folder, elsewhere = Project.create_or_open(tmp_path / "project").folder, tmp_path / "elsewhere"
    elsewhere.mkdir()
    if linked == "queries":
        (folder / "queries").symlink_to(elsewhere)
    else:
        with pytest.raises(Exception, match="no file of database"):
            task(folder).run(Progress())
        written = next((folder / "queries").iterdir())
        written.unlink()
        written.symlink_to(elsewhere / "victim.fasta")
    with pytest.raises(StorageError, match="a symbolic link"):
        task(folder).run(Progress())
    assert list(elsewhere.iterdir()) == []
