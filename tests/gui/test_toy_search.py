"""Tests that a search without Qt code, defined by its entry only, works throughout the window."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from proteoscope.engine import searches
from proteoscope.engine.project import Project
from proteoscope.gui.forms.numbers import IntegerBox
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.results.export import ExportDialog
from proteoscope.gui.results.standard_view import StandardView
from proteoscope.gui.window import MainWindow
from tests.engine.views.search_projects import write_fasta
from tests.gui.result_views import click_row, cut_off, settle, shown
from tests.gui.test_window import click, drop
from tests.toy_search import COMPOSITION

PROTEINS = [("one", "MKWVTFISLLLLFSSAYS"), ("two", "MKV"), ("three", "ACDEFGHIKLMNPQRSTVWY" * 3)]
EXPECTED = Counter("".join(sequence for _, sequence in PROTEINS if len(sequence) >= 10))


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the list of searches with one more."""
    monkeypatch.setattr(searches, "SEARCHES", (*searches.SEARCHES, COMPOSITION))


@pytest.fixture
def fasta(tmp_path: Path) -> Path:
    return write_fasta(tmp_path / "proteins.fasta", PROTEINS)


@pytest.fixture
def form(window: MainWindow) -> SearchForm:
    window.menus.new["composition"].trigger()
    return window.form


@pytest.fixture
def searched(window: MainWindow, form: SearchForm, fasta: Path, tmp_path: Path, qtbot: QtBot) -> StandardView:
    """Return results after a user dropped a file, changed a parameter and ran it."""
    assert window.pages.currentWidget() is form and form.reason.text() == "Add proteins, or paste a sequence"
    drop(window, fasta)
    qtbot.waitUntil(form.run_button.isEnabled)
    assert form.project.line.text() == str(tmp_path / "proteins_proteoscope")
    box = form.parameters.fields["minimum_length"].editor.findChild(IntegerBox)
    box.lineEdit().selectAll()
    QTest.keyClicks(box, "10")
    form.options["is_thorough"].setChecked(True)
    form.set_project_folder(tmp_path / "project")
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.title == "Count residues of proteins.fasta"
    assert task.request.options == {"is_thorough": True} and task.request.parameters.model_dump()["minimum_length"] == 10
    with qtbot.waitSignal(window.bridge.finished, timeout=60_000) as finished:
        click(form.run_button)
        assert window.dock_jobs.isVisible()
    job = finished.args[0]
    assert job.state == "done", job.error_report or job.error
    assert "78 residues, 2 proteins in" in window.jobs.rows[job.id].stage.toolTip()
    view = window.searches["composition"].results
    qtbot.waitUntil(lambda: window.pages.currentWidget() is view)
    settle(view, qtbot)
    assert isinstance(view, StandardView)
    return view


def test_new_search_type_is_offered_in_menu_and_start_page(window: MainWindow) -> None:
    actions = {kind: action.text() for kind, action in window.menus.new.items()}
    assert actions == {search.kind: f"New {search.name}" for search in searches.SEARCHES} and "composition" in actions
    shortcuts = [window.menus.new[kind].shortcut().toString() for kind in actions]
    assert shortcuts[:2] == ["Ctrl+N", "Ctrl+Shift+N"] and set(shortcuts[2:]) == {""}
    click(window.start_page.more_button)
    click(window.start_page.new_buttons["composition"])
    assert window.pages.currentWidget() is window.searches["composition"].form


def test_results_of_new_search_type_are_shown_and_filtered(window: MainWindow, searched: StandardView, qtbot: QtBot) -> None:
    panel = searched.panels["composition"]
    assert dict(zip(shown(panel, "residue"), shown(panel, "count"), strict=True)) == EXPECTED
    assert [panel.model.headerData(i, Qt.Orientation.Horizontal) for i in range(3)] == ["Residue", "Count", "Share (%)"]
    assert (
        searched.header.text.strip() == "20 rows of residues" and "Too short: 1   ·   Looked at everything twice" in searched.header.message
    )
    assert "proteins: proteins.fasta" in searched.header.facts
    run = window.project_pane.selected_run
    assert run is not None and (run.kind, run.message, run.parameters["minimum_length"]) == ("composition", "78 residues", 10)
    searched.filter_bar.text.setText("w")
    searched.filter_bar.text.returnPressed.emit()
    settle(searched, qtbot)
    assert shown(panel, "residue") == ["W"]
    click(searched.filter_bar.reset_button)
    settle(searched, qtbot)
    assert len(panel.model.rows) == 20
    click_row(panel, 3, qtbot)
    assert cut_off(searched) == []


@pytest.mark.parametrize("chosen", ["json", "folder"])
def test_results_of_new_search_type_are_exported(
    window: MainWindow, searched: StandardView, tmp_path: Path, qtbot: QtBot, chosen: str
) -> None:
    window.menus.export.trigger()
    dialog = searched.findChild(ExportDialog)
    assert dialog is not None
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    dialog.selectNameFilter(next(nameFilter for nameFilter in dialog.nameFilters() if ("folder" in nameFilter) == (chosen == "folder")))
    with qtbot.waitSignal(window.bridge.finished) as finished:
        dialog.fileSelected.emit(str(tmp_path / "mine"))
        dialog.close()
    assert finished.args[0].state == "done", finished.args[0].error
    written = [tmp_path / "mine.json"] if chosen == "json" else [tmp_path / "mine" / f"{residue}.json" for residue in sorted(EXPECTED)]
    records = [json.loads(path.read_text()) for path in written]
    rows = records[0] if chosen == "json" else records
    assert {row["residue"]: row["count"] for row in rows} == EXPECTED
    qtbot.waitUntil(window.message_bar.isVisible)
    assert ("mine.json written in" if chosen == "json" else "A.json, C.json, ") in window.message_bar.label.text()


def test_reopened_project_shows_results_of_new_search_type(
    make_window: Callable[[], MainWindow], window: MainWindow, searched: StandardView, tmp_path: Path, qtbot: QtBot
) -> None:
    searched.panels["composition"].view.hide_columns(["share"])
    searched.panels["composition"].view.columnsChanged.emit()
    window.searches["composition"].form.device.choose("cpu")
    assert window.close()
    again = make_window()
    again.open_project(tmp_path / "project")
    view = again.searches["composition"].results
    assert again.pages.currentWidget() is view
    settle(view, qtbot)
    panel = view.panels["composition"]
    assert dict(zip(shown(panel, "residue"), shown(panel, "count"), strict=True)) == EXPECTED
    assert panel.hidden_columns() == ["share"] and again.searches["composition"].form.device.value() == "cpu"


def test_text_pasted_for_new_search_type_is_stored_and_searched(window: MainWindow, form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    box = form.inputs["proteins"].box
    assert box is not None
    box.text.setPlainText("MKWV")
    form.set_project_folder(tmp_path / "pasted")
    qtbot.waitUntil(form.run_button.isEnabled)
    with qtbot.waitSignal(window.bridge.finished) as finished:
        click(form.run_button)
    assert finished.args[0].state == "done" and finished.args[0].title == "Count residues of pasted sequences"
    (read,) = Project.open(tmp_path / "pasted").inputs("composition-0001")
    assert read.path.is_relative_to(tmp_path / "pasted" / "proteins") and read.path.read_text() == ">query\nMKWV\n"
    settle(window.results, qtbot)


def test_preset_of_new_search_type_is_saved_and_opened_by_drop(window: MainWindow, form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    assert form.presets.box.count() == 0 and form.presets.box.currentText() == ""
    form.parameters.set_values({"order": "count"})
    form.presets.save_file(tmp_path / "mine.toml")
    window.menus.new["identify"].trigger()
    drop(window, tmp_path / "mine.toml")
    qtbot.waitUntil(lambda: window.pages.currentWidget() is form)
    assert form.presets.box.currentText() == "mine" and form.parameters.values()["order"] == "count"


def test_dropped_fasta_opens_the_first_search_type_that_reads_it(window: MainWindow, fasta: Path, qtbot: QtBot) -> None:
    drop(window, fasta)
    identification = window.searches["identify"].form
    qtbot.waitUntil(lambda: identification.file_lists["database"].paths == [fasta])
    assert window.pages.currentWidget() is identification
