"""Tests of the advice job that follows a search with few identifications, after its results are shown."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.jobs import Job, Progress
from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.tasks import AdviceTask, SearchTask, WritingTask
from proteoscope.gui.window import MainWindow

WARNINGS = ("Errors lie near +35 ppm", "No contaminants were searched")


class Stub:
    """Identification with few results, and its advice, which waits until it is released or cancelled."""

    def __init__(self, folder: Path, *, has_low_yield: bool = True) -> None:
        self.searched: list[SearchRequest] = []
        self.advised: list[str] = []
        self.go_on = threading.Event()
        self._has_low_yield = has_low_yield
        search = replace(search_of_kind("identify"), run=self._run, advise_later=lambda: self._advise)
        request = SearchRequest({"spectra": (), "database": ()}, search.model(), folder, options={"advice": None})
        self.task = SearchTask(search, "Identify", request)

    def _run(self, request: SearchRequest, progress: Progress) -> SimpleNamespace:
        self.searched.append(request)
        return SimpleNamespace(run_id="identify-0001", has_low_yield=self._has_low_yield, counts=list)

    def _advise(self, request: SearchRequest, run_id: str, progress: Progress) -> tuple[str, ...]:
        self.advised.append(run_id)
        while not self.go_on.wait(0.01):
            progress.check()
        return WARNINGS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Project.create_or_open(tmp_path / "project").folder


def ended(window: MainWindow) -> list[tuple[Job, SearchTask | WritingTask]]:
    jobs: list[tuple[Job, SearchTask | WritingTask]] = []
    window.tasks.ended.connect(lambda job, task: jobs.append((job, task)))
    return jobs


def test_advice_job_follows_a_search_with_few_identifications(window: MainWindow, folder: Path, qtbot: QtBot) -> None:
    stub, over = Stub(folder), ended(window)
    window.tasks.add(stub.task)
    qtbot.waitUntil(lambda: len(over) == 1 and bool(stub.advised))
    # The search is finished, with its results, while the causes are checked.
    assert over[0][0].state == "done" and stub.searched[0].options["advice"] == "none"
    assert window.queue.running is not None and "few identifications in identify-0001" in window.queue.running.title
    stub.go_on.set()
    qtbot.waitUntil(lambda: len(over) == 2)
    job, task = over[1]
    assert isinstance(task, AdviceTask) and job.result == WARNINGS
    assert "Errors lie near +35 ppm (1 more on the run's page)" in window.message_bar.label.text()


def test_advice_job_can_be_cancelled(window: MainWindow, folder: Path, qtbot: QtBot) -> None:
    stub, over = Stub(folder), ended(window)
    window.tasks.add(stub.task)
    qtbot.waitUntil(lambda: bool(stub.advised))
    window.tasks.cancel_running()
    qtbot.waitUntil(lambda: len(over) == 2)
    assert [job.state for job, _ in over] == ["done", "cancelled"]


def test_advice_job_is_not_queued_for_enough_identifications(window: MainWindow, folder: Path, qtbot: QtBot) -> None:
    stub, over = Stub(folder, has_low_yield=False), ended(window)
    window.tasks.add(stub.task)
    qtbot.waitUntil(lambda: len(over) == 1)
    assert window.queue.wait(60) and not stub.advised
