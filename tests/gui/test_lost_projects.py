"""Tests of open projects that are deleted, moved, or locked by another process."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLineEdit
from pytestqt.qtbot import QtBot

from proteoscope.engine.jobs import Progress
from proteoscope.engine.project import Project, is_project
from proteoscope.engine.results.counts import Count
from proteoscope.gui.dialogs import CrashDialog
from proteoscope.gui.tasks import SearchTask
from proteoscope.gui.window import MainWindow
from tests.engine.views.search_projects import summary_of
from tests.gui.test_window import click, counting, filled, spectra

__all__ = ["filled", "spectra"]

SEARCH_MS = 240_000


@pytest.fixture
def database(sample_data: Path) -> Path:
    """Return all proteins of the sample, so that a real search does not end before its project is removed."""
    return sample_data / "18Protein_SoCe_Tr_detergents_trace.fasta.gz"


class Messages:
    """All messages of the bar above the page."""

    def __init__(self, window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[str] = []
        show = window.message_bar.show_message
        monkeypatch.setattr(window.message_bar, "show_message", lambda text, *rest: self.shown.append(text) or show(text, *rest))


@pytest.fixture
def messages(filled: MainWindow, monkeypatch: pytest.MonkeyPatch) -> Messages:
    return Messages(filled, monkeypatch)


class Stepwise:
    """Replacement for a search: a run of the project that advances by stages on command."""

    def __init__(self, writes: bool) -> None:
        self._writes = writes
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, request: Any, progress: Progress) -> Any:
        project = Project.open(request.project_folder)
        with project.run("identify", {}, progress=progress) as run:
            progress.stage("Reading spectra")
            self.begun.set()
            assert self.go_on.wait(60)
            for i in range(8):
                progress.stage(f"Step {i}")
                if self._writes:
                    run.log("info", f"step {i}")
                # Longer than the interval between two deliveries of events.
                time.sleep(0.1)
        return summary_of(run.id, Count(0, "PSM", "PSMs"))


@pytest.mark.parametrize("way", ["deleted", "moved"])
@pytest.mark.parametrize("writes", [True, False], ids=["the engine notices", "the window notices"])
def test_run_in_a_lost_project_fails_with_one_message(
    filled: MainWindow, messages: Messages, way: str, writes: bool, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Stepwise(writes)
    monkeypatch.setattr(SearchTask, "run", lambda request, progress: search(request, progress))
    errors: list[str] = []
    monkeypatch.setattr(filled, "show_unexpected_error", lambda summary, report: errors.append(summary))
    click(filled.form.run_button)
    assert search.begun.wait(60)
    qtbot.waitUntil(lambda: filled.project_pane.runs.count() == 1 and "running" in filled.project_pane.runs.item(0).toolTip())
    folder = tmp_path / "project"
    if way == "deleted":
        shutil.rmtree(folder)
    else:
        folder.rename(tmp_path / "elsewhere")
    search.go_on.set()
    with qtbot.waitSignal(filled.bridge.finished) as finished:
        pass
    job = finished.args[0]
    assert job.state == "failed" and job.error_report == ""
    assert messages.shown == [str(job.error)], "reported once"
    assert str(folder) in messages.shown[0] and "no longer here" in messages.shown[0] and filled.message_bar.isVisible()
    assert errors == [] and filled.findChild(CrashDialog) is None
    pane = filled.project_pane
    assert pane.runs.count() == 1 and "failed" in pane.runs.item(0).toolTip(), "it does not run for ever"
    assert "missing" in pane.problem.text() and pane.problem.isVisible()
    assert not folder.exists(), "no other project is created"
    filled._note_touch(filled.search)
    assert filled.message_bar.isVisible(), "an error is not a hint, so it remains"


def test_real_search_in_a_deleted_project_fails_with_one_message(
    filled: MainWindow, messages: Messages, tmp_path: Path, qtbot: QtBot
) -> None:
    folder = tmp_path / "project"
    stages: list[str] = []

    def delete_folder(job: Any, event: Any) -> None:
        if event.stage not in stages:
            stages.append(event.stage)
        if event.stage != "Starting" and folder.exists():  # Not all instantaneous stages are reported.
            shutil.rmtree(folder, ignore_errors=True)

    filled.bridge.progressed.connect(delete_folder)
    with qtbot.waitSignal(filled.bridge.finished, timeout=SEARCH_MS) as finished:
        click(filled.form.run_button)
    job = finished.args[0]
    assert stages
    assert job.state == "failed" and job.error_report == "", job.error_report
    assert len(messages.shown) == 1 and "no longer here" in messages.shown[0]
    assert filled.findChild(CrashDialog) is None
    assert not is_project(folder)


def test_queued_searches_do_not_recreate_a_deleted_project(
    filled: MainWindow, messages: Messages, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, begun = Stepwise(True), []
    monkeypatch.setattr(SearchTask, "run", lambda request, progress: begun.append(1) or search(request, progress))
    click(filled.form.run_button)
    click(filled.form.run_button)
    assert search.begun.wait(60)
    shutil.rmtree(tmp_path / "project")
    search.go_on.set()
    qtbot.waitUntil(lambda: filled.queue.is_idle and len(messages.shown) == 2)
    assert all("no longer here" in text for text in messages.shown), "one for each search"
    assert len(begun) == 1 and not (tmp_path / "project").exists()


@pytest.fixture
def lost(filled: MainWindow, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> MainWindow:
    """Window whose open project was moved while idle, and whose Run was then clicked."""
    monkeypatch.setattr(SearchTask, "run", counting(0))
    Project.create_or_open(tmp_path / "project")
    filled.open_project(tmp_path / "project")
    qtbot.waitUntil(filled.form.run_button.isEnabled)
    (tmp_path / "project").rename(tmp_path / "found again")
    filled.show_page(filled.form)
    click(filled.form.run_button)
    return filled


def test_run_prompts_for_a_moved_project_without_recreating_it(lost: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    assert lost.task_projects.question is not None and lost.task_projects.question.isVisible()
    assert str(tmp_path / "project") in lost.task_projects.question.informativeText()
    assert not (tmp_path / "project").exists() and lost.queue.is_idle
    lost.menus.run.trigger()
    assert lost.findChildren(type(lost.task_projects.question)) == [lost.task_projects.question], "one dialog is open"
    click(lost.task_projects.question.cancel_button)
    qtbot.waitUntil(lambda: lost.task_projects.question is None)
    assert not (tmp_path / "project").exists() and lost.queue.is_idle
    assert "is missing" in lost.project_pane.problem.text()


def test_search_runs_in_the_moved_project_located_by_the_user(lost: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    assert lost.task_projects.question is not None
    click(lost.task_projects.question.locate_button)
    qtbot.waitUntil(lambda: lost.findChild(QFileDialog) is not None)
    dialog = lost.findChild(QFileDialog)
    name = dialog.findChild(QLineEdit, "fileNameEdit")
    name.setText(str(tmp_path / "found again"))
    with qtbot.waitSignal(lost.bridge.finished) as finished:
        QTest.keyClick(name, Qt.Key.Key_Return)
    assert finished.args[0].state == "done"
    assert lost.form.project_folder() == tmp_path / "found again"
    assert lost.searches["align"].form.project_folder() == tmp_path / "found again"
    assert lost.project_pane.name.text() == "found again" and not lost.project_pane.problem.isVisible()
    assert not (tmp_path / "project").exists()
    assert lost.settings.values.recent_projects == (str(tmp_path / "found again"),)


def test_located_folder_that_is_not_a_project_is_rejected(lost: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    assert lost.task_projects.question is not None
    (tmp_path / "empty").mkdir()
    click(lost.task_projects.question.locate_button)
    qtbot.waitUntil(lambda: lost.findChild(QFileDialog) is not None)
    dialog = lost.findChild(QFileDialog)
    name = dialog.findChild(QLineEdit, "fileNameEdit")
    name.setText(str(tmp_path / "empty"))
    QTest.keyClick(name, Qt.Key.Key_Return)
    qtbot.waitUntil(lost.message_bar.isVisible)
    assert "is not a Proteoscope project" in lost.message_bar.label.text()
    assert lost.queue.is_idle and list((tmp_path / "empty").iterdir()) == []


def test_new_project_replaces_a_moved_one_on_request(lost: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    assert lost.task_projects.question is not None
    with qtbot.waitSignal(lost.bridge.finished):
        click(lost.task_projects.question.make_button)
    assert is_project(tmp_path / "project") and is_project(tmp_path / "found again")
    assert not lost.project_pane.problem.isVisible()


def test_run_prompts_for_a_missing_recent_project(
    filled: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    filled.settings.values.remember_project(tmp_path / "last week")
    filled.form.set_project_folder(tmp_path / "last week")
    qtbot.waitUntil(filled.form.run_button.isEnabled)
    click(filled.form.run_button)
    assert filled.task_projects.question is not None and not (tmp_path / "last week").exists()
    click(filled.task_projects.question.cancel_button)


def test_repeated_error_opens_one_dialog(window: MainWindow) -> None:
    for _ in range(6):
        window.show_unexpected_error("OSError: it broke", "Traceback: it broke")
    window.show_unexpected_error("OSError: another", "Traceback: another")
    assert len(window.findChildren(CrashDialog)) == 2
    assert window.log.plain_text().count("Traceback: it broke") == 6
    for dialog in window.findChildren(CrashDialog):
        dialog.close()


HOLDING = """
import sys
from proteoscope.engine.project import Project
with Project.open(sys.argv[1]).run("identify", {}) as run:
    print(run.id, flush=True)
    sys.stdin.readline()
"""


def test_search_in_a_locked_project_reports_the_owner(
    filled: MainWindow, messages: Messages, tmp_path: Path, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    folder = tmp_path / "project"
    Project.create_or_open(folder)
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "identify-0001\n"
        with qtbot.waitSignal(filled.bridge.finished, timeout=SEARCH_MS) as finished:
            click(filled.form.run_button)
        job = finished.args[0]
        assert job.state == "failed" and job.error_report == ""
        assert messages.shown == [str(job.error)]
        assert f"process {other.pid}" in messages.shown[0] and "identify-0001" in messages.shown[0]
        assert [run.id for run in Project.open(folder).runs()] == ["identify-0001"], "the rejected job is not recorded"
        pane = filled.project_pane
        assert [pane.runs.item(i).data(Qt.ItemDataRole.UserRole).id for i in range(pane.runs.count())] == ["identify-0001"]
        other.communicate("\n", timeout=30)
