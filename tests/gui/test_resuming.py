"""Tests of a stopped run in the window: it is listed, and resumed by a button."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.resumption import NO_CHECKPOINT
from proteoscope.gui.project_pane import RESUMABLE_TEXT
from proteoscope.gui.window import MainWindow
from tests.gui.test_window import click
from tests.stopped_runs import keep_at_once, stop_a_search, tables


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    keep_at_once(monkeypatch)
    yield tmp_path / "project"


@pytest.fixture
def stopped(project: Path, tmp_path: Path) -> str:
    return stop_a_search(project, tmp_path)


@pytest.fixture
def shown(window: MainWindow, project: Path, stopped: str) -> MainWindow:
    window.show()
    window.open_project(project)
    window.project_pane.select(stopped)
    return window


def listed_texts(window: MainWindow) -> list[str]:
    runs = window.project_pane.runs
    return [str(runs.item(row).data(Qt.ItemDataRole.AccessibleTextRole)) for row in range(runs.count())]


def test_results_page_names_a_selected_run_without_results(window: MainWindow, project: Path, stopped: str) -> None:
    window.show_page(window.results)
    assert window.results.text.startswith("No results yet.")
    window.open_project(project)
    window.project_pane.select(stopped)
    assert window.results.text == "Run 1 has no results."


def test_resume_button_resumes_a_stopped_run(shown: MainWindow, project: Path, stopped: str, qtbot: QtBot) -> None:
    pane = shown.project_pane
    assert [text.partition(", align")[1:] for text in listed_texts(shown)] == [(", align", f"-0001, {RESUMABLE_TEXT}, stopped by the user")]
    assert pane.resume_button.isVisible() and pane.resume_action.isEnabled()
    assert "can be resumed" in shown.message_bar.label.text()
    with qtbot.waitSignal(shown.bridge.finished) as finished:
        click(pane.resume_button)
        assert not pane.resume_action.isEnabled(), "it is already resumed"
        assert ", running, resuming" in listed_texts(shown)[0] or shown.queue.is_idle
        assert "failed" not in listed_texts(shown)[0]
        # The user begins another search, so that the results are only offered.
        shown.form.parameters.set_values({"missed_cleavages": 1})
    job = finished.args[0]
    assert (job.state, job.title) == ("done", f"Resume {stopped}"), job.error_report or job.error
    assert not shown.queue.waiting and not shown.queue.all_running
    qtbot.waitUntil(lambda: not pane.resume_button.isVisible())
    assert [run.status for run in pane.records] == ["done"]
    assert tables(project, stopped)
    click(shown.message_bar.button)  # Show results.
    results = shown.searches["align"].results
    qtbot.waitUntil(lambda: shown.pages.currentWidget() is results)
    qtbot.waitUntil(lambda: results.run is not None and results.run.id == stopped and not results.text)


def test_resuming_with_a_changed_input_file_is_reported(shown: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "files" / "database.fasta").write_text(">other\nMKV\n")
    with qtbot.waitSignal(shown.bridge.finished):
        shown.project_pane.resume_action.trigger()
    assert "has changed since" in shown.message_bar.label.text()
    assert shown.project_pane.resume_action.isEnabled(), "it can still be restored"


def test_run_with_a_damaged_checkpoint_cannot_be_resumed(window: MainWindow, project: Path, tmp_path: Path, qtbot: QtBot) -> None:
    run = stop_a_search(project, tmp_path)
    Project.open(project).checkpoint_key(run).path.write_bytes(b"damaged")
    window.show()
    window.open_project(project)
    window.project_pane.select(run)
    assert not window.project_pane.resume_button.isVisible() and not window.project_pane.resume_action.isEnabled()
    assert "no results" in window.message_bar.label.text()


def test_run_of_another_user_cannot_be_resumed(
    window: MainWindow, project: Path, stopped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "another user's"))
    window.show()
    window.open_project(project)
    window.project_pane.select(stopped)
    assert not window.project_pane.resume_button.isVisible()
    assert NO_CHECKPOINT in listed_texts(window)[0]
    assert NO_CHECKPOINT in window.project_pane.runs.item(0).toolTip()
    assert NO_CHECKPOINT in window.message_bar.label.text()
