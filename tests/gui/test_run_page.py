"""Tests of the run list and the run page: title, note, search again, compare, report, delete and undo."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from proteoscope.engine.errors import InputError
from proteoscope.engine.project import Project, RunNote
from proteoscope.gui.theme import colours
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.search_projects import project_with_search

_EVIL = "<img src=x><b>bold</b>"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_search(tmp_path_factory.mktemp("searched") / "p").folder


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_runs(tmp_path_factory.mktemp("two runs") / "p", 2)[0].folder


def _copied(folder: Path, where: Path) -> Project:
    return Project.open(Path(shutil.copytree(folder, where / "p")))


def _opened(window: MainWindow, folder: Path, qtbot: QtBot) -> None:
    window.resize(1280, 800)
    window.open_project(folder)
    qtbot.waitUntil(lambda: not window.results.is_busy)


def _page_of_first(window: MainWindow, qtbot: QtBot) -> None:
    window.project_pane.select(window.project_pane.records[0].id)
    qtbot.mouseClick(window.project_pane.about_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.run_actions.page and not window.run_actions.is_busy)


def test_run_page_shows_files_parameters_and_methods_of_a_run(window: MainWindow, searched: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = _copied(searched, tmp_path)
    _opened(window, project.folder, qtbot)
    run = project.runs()[-1]
    assert window.project_pane.title_of(run) == "1 · queries · standard"
    _page_of_first(window, qtbot)
    text = window.run_actions.page.text.toPlainText()
    for file in project.inputs(run.id):
        assert file.sha256 in text and file.path.name in text
    assert "Maximum E-value" in text and "Smith-Waterman" in text and "Computed on" in text
    qtbot.mouseClick(window.run_actions.page.methods_button, Qt.MouseButton.LeftButton)
    assert "References" in QGuiApplication.clipboard().text()
    qtbot.mouseClick(window.run_actions.page.results_button, Qt.MouseButton.LeftButton)
    assert window.pages.currentWidget() is window.results


def test_title_and_note_of_a_run_are_stored_while_typing(window: MainWindow, searched: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = _copied(searched, tmp_path)
    _opened(window, project.folder, qtbot)
    _page_of_first(window, qtbot)
    page, run = window.run_actions.page, project.runs()[-1].id
    page.title.selectAll()
    qtbot.keyClicks(page.title, f"for the paper {_EVIL}")
    qtbot.keyClicks(page.note, "two blanks between")
    qtbot.waitUntil(lambda: project.note(run) == RunNote(f"for the paper {_EVIL}", "two blanks between"))
    assert window.project_pane.title_of(project.runs()[-1]) == f"for the paper {_EVIL}"
    # An empty title restores the default.
    page.title.selectAll()
    qtbot.keyClick(page.title, Qt.Key.Key_Delete)
    qtbot.keyClick(page.title, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: project.note(run).title == "")
    assert window.project_pane.title_of(project.runs()[-1]).startswith("1 · ")


def test_reuse_settings_fills_files_and_parameters_of_the_run(window: MainWindow, searched: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = _copied(searched, tmp_path)
    _opened(window, project.folder, qtbot)
    _page_of_first(window, qtbot)
    qtbot.mouseClick(window.run_actions.page.again_button, Qt.MouseButton.LeftButton)
    form = window.form
    assert window.pages.currentWidget() is form and form.search.kind == "align"
    qtbot.waitUntil(lambda: not form.validation_error())
    task = form.task()
    assert task is not None and task.project_folder == project.folder
    run = project.runs()[-1]
    assert task.request.parameters.model_dump(mode="json") == run.parameters
    inputs = project.inputs(run.id)
    filled_in = {name: list(paths) for name, paths in task.request.inputs.items()}
    assert filled_in == {input_file.kind: [input_file.path] for input_file in inputs}


def test_deleted_run_is_restored_by_undo(window: MainWindow, two_runs: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = _copied(two_runs, tmp_path)
    _opened(window, project.folder, qtbot)
    _page_of_first(window, qtbot)
    last = project.runs()[-1].id
    qtbot.mouseClick(window.run_actions.page.delete_button, Qt.MouseButton.LeftButton)
    assert [run.id for run in window.project_pane.records] == [project.runs()[0].id] and "was deleted" in window.message_bar.label.text()
    qtbot.mouseClick(window.message_bar.button, Qt.MouseButton.LeftButton)
    assert window.project_pane.selected_run.id == last and project.verify() == []
    qtbot.waitUntil(lambda: not window.results.is_busy)
    window.project_pane.discard_action.trigger()
    assert (project.folder / "results" / last).is_dir()
    window.close()
    assert not (project.folder / "results" / last).exists()
    with pytest.raises(InputError):
        project.restore_run(last)


def test_two_runs_are_compared_from_a_run_page(window: MainWindow, two_runs: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = _copied(two_runs, tmp_path)
    _opened(window, project.folder, qtbot)
    _page_of_first(window, qtbot)
    (action,) = window.run_actions.page.compare_menu.actions()
    action.trigger()
    assert window.comparisons.view is not None
    qtbot.waitUntil(lambda: not window.comparisons.view.is_busy)


def test_report_of_a_run_is_written_in_the_background(window: MainWindow, searched: Path, tmp_path: Path, qtbot: QtBot) -> None:
    project = _copied(searched, tmp_path)
    _opened(window, project.folder, qtbot)
    _page_of_first(window, qtbot)
    run = project.runs()[-1]
    qtbot.mouseClick(window.run_actions.page.report_button, Qt.MouseButton.LeftButton)
    dialog = window.run_actions.page.findChild(QFileDialog)
    assert dialog is not None
    dialog.fileSelected.emit(str(tmp_path / "out"))
    dialog.close()
    qtbot.waitUntil(lambda: window.queue.is_idle and (tmp_path / "out" / f"{run.id}.html").is_file())


def test_folder_button_of_run_page_opens_the_results_folder(
    window: MainWindow, searched: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[QUrl] = []
    # The desktop's program would open on the screen of the developer.
    monkeypatch.setattr("proteoscope.gui.run_actions.QDesktopServices.openUrl", lambda url: opened.append(url) or True)
    project = _copied(searched, tmp_path)
    _opened(window, project.folder, qtbot)
    _page_of_first(window, qtbot)
    qtbot.mouseClick(window.run_actions.page.folder_button, Qt.MouseButton.LeftButton)
    assert [Path(url.toLocalFile()) for url in opened] == [project.folder / "results" / project.runs()[-1].id]


def test_failed_run_is_deleted_and_restored(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project = Project.create_or_open(tmp_path / "p")
    with pytest.raises(InputError), project.run("identify", {"enzyme": "trypsin"}) as run:
        run.log("info", "the second thing said")
        run.log("warning", "something odd")
        raise InputError("x.mzML", "is cut off")
    window.open_project(project.folder)
    _page_of_first(window, qtbot)
    page = window.run_actions.page
    text = page.text.toPlainText()
    assert -1 < text.index("Warning: something odd") < text.index("the second thing said")
    assert page.text.toHtml().count(colours().attention) >= 1
    qtbot.mouseClick(page.delete_button, Qt.MouseButton.LeftButton)
    assert not window.project_pane.records
    qtbot.mouseClick(window.message_bar.button, Qt.MouseButton.LeftButton)
    assert [record.id for record in window.project_pane.records] == [run.id] and project.verify() == []


def test_page_of_a_failed_run_shows_html_in_names_as_text(window: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    project = Project.create_or_open(tmp_path / "p")
    with pytest.raises(InputError), project.run("identify", {"enzyme": _EVIL, "fdr": 0.05}) as run:
        raise InputError(_EVIL, "is cut off")
    with closing(sqlite3.connect(tmp_path / "p" / "project.sqlite")) as connection:
        rows = [(run.id, "2026-01-01T00:00:00+00:00", "warning", _EVIL + "x" * 10_000) for _ in range(5000)]
        connection.executemany("INSERT INTO log (run, time, level, text) VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    window.open_project(project.folder)
    _page_of_first(window, qtbot)
    page = window.run_actions.page
    assert "<b>bold</b>" in page.text.toPlainText() and len(page.text.toPlainText()) < 2_000_000
    assert not page.results_button.isEnabled() and not page.report_button.isEnabled() and page.delete_button.isEnabled()
    qtbot.mouseClick(page.delete_button, Qt.MouseButton.LeftButton)
    assert project.runs() == []
