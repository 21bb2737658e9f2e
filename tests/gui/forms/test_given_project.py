"""Tests of forms whose input is a project: choosing it, its errors, and the run to continue from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.searches import search_of_kind
from proteoscope.gui.devices import DeviceDetector
from proteoscope.gui.forms.editors import RunEditor
from proteoscope.gui.forms.file_inspection import FileInspector
from proteoscope.gui.forms.prefill import FormPrefill
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.views.result_projects import project_with_results
from tests.gui.test_window import click, drop


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> Iterator[SearchForm]:
    survey, devices = FileInspector(), DeviceDetector()
    widget = SearchForm(search_of_kind("explain"), survey, devices)
    qtbot.addWidget(widget)
    widget.resize(1000, 800)
    widget.show()
    yield widget
    survey.close()
    devices.close()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made, _ = project_with_results(tmp_path / "project")
    project_with_results(made.folder)
    return made


def choices(form: SearchForm) -> list[str]:
    box = form.parameters.fields["run"].editor.findChild(QComboBox)
    assert box is not None
    return [str(box.itemData(i)) for i in range(box.count())]


def test_project_field_of_the_form_accepts_only_a_project_folder(form: SearchForm) -> None:
    assert form.validation_error() == "Add a project with an identification"
    assert not form.project.line.isVisible() and not form.file_lists["project"].add_button.isVisible()
    assert (
        form.file_lists["project"].folder_button.text() == "Choose project…" and not form.file_lists["project"].project_button.isEnabled()
    )


def test_results_of_a_search_are_stored_in_the_selected_project(form: SearchForm, project: Project, qtbot: QtBot) -> None:
    form.file_lists["project"]._take_folder(project.folder)
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.project_folder == project.folder and task.title == f"Explain spectra of {project.folder.name}"
    assert task.request.inputs == {"project": (project.folder,)}
    moved = task.in_project(Path("/elsewhere"))
    assert moved.request.inputs == {"project": (Path("/elsewhere"),)} and moved.project_folder == Path("/elsewhere")


def test_another_project_replaces_the_first_in_the_project_field(form: SearchForm, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    other, _ = project_with_results(tmp_path / "other")
    for folder in (project, other):
        form.file_lists["project"]._take_folder(folder.folder)
    assert form.file_lists["project"].paths == [other.folder]


def test_folder_that_is_not_a_project_is_marked_at_the_field(form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    (tmp_path / "folder").mkdir()
    files = form.file_lists["project"]
    files.give_project(tmp_path / "folder")
    qtbot.waitUntil(lambda: bool(files.problem()))
    qtbot.waitUntil(files.message.isVisible)
    assert files.message.text() == f"{tmp_path / 'folder'} is not a project; choose a project folder"
    qtbot.waitUntil(lambda: form.reason.text() == "A project cannot be used")


def test_form_offers_identification_runs_newest_first(form: SearchForm, project: Project, qtbot: QtBot) -> None:
    with project.run("identify", {}) as run:
        run.write_json("notes", {"has": "neither peaks nor matches"})
    form.set_project_folder(project.folder)
    qtbot.waitUntil(lambda: choices(form) == ["", "identify-0002", "identify-0001"])
    assert form.parameters.values()["run"] == ""
    form.parameters.set_values({"run": "identify-0001"})
    form.set_project_folder(project.folder)
    assert form.parameters.values()["run"] == "identify-0001"


def test_form_reports_a_run_missing_from_the_project(form: SearchForm, project: Project, qtbot: QtBot) -> None:
    form.continue_from(project.folder, "identify-0009")
    qtbot.waitUntil(lambda: form.parameters.problems.get("run") == "This project has no such run")
    form.parameters.set_values({"run": ""})
    qtbot.waitUntil(form.run_button.isEnabled)


def test_form_reports_a_project_without_identifications(form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    empty = Project.create_or_open(tmp_path / "empty")
    form.set_project_folder(empty.folder)
    said = "This project has no finished identification with stored peaks"
    qtbot.waitUntil(lambda: form.parameters.problems.get("run") == said)


def test_selecting_another_project_clears_the_selected_run(form: SearchForm, project: Project, tmp_path: Path) -> None:
    form.continue_from(project.folder, "identify-0001")
    assert form.parameters.values()["run"] == "identify-0001"
    form.set_project_folder(Project.create_or_open(tmp_path / "other").folder)
    assert form.parameters.values()["run"] == ""


def test_form_starts_with_the_open_project_or_the_selected_run(window: MainWindow, project: Project, qtbot: QtBot) -> None:
    form = window.searches["explain"].form
    window.open_project(project.folder)
    qtbot.waitUntil(lambda: form.file_lists["project"].paths == [project.folder])
    results = window.searches["identify"].results
    qtbot.waitUntil(lambda: not results.is_busy and results.run is not None)
    action = results.follow_ups["explain"]
    assert action.isEnabled() and action in results.panels["psms"].view.actions() and action in results.panels["proteins"].view.actions()
    assert results.run is not None
    run_id = results.run.id
    action.trigger()
    assert window.pages.currentWidget() is form and form.parameters.values()["run"] == run_id
    editor = form.parameters.fields["run"].editor
    assert isinstance(editor, RunEditor)
    qtbot.waitUntil(form.run_button.isEnabled)


def test_dropped_project_is_selected_in_the_form_and_not_opened(window: MainWindow, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    other, _ = project_with_results(tmp_path / "other")
    window.open_project(other.folder)
    results = window.searches["identify"].results
    qtbot.waitUntil(lambda: not results.is_busy and results.run is not None)
    window.menus.new["explain"].trigger()
    drop(window, project.folder)
    files = window.form.file_lists["project"]
    qtbot.waitUntil(lambda: files.paths == [project.folder])
    shown = window.project_pane.project
    assert shown is not None and shown.folder == other.folder and files.project_button.isEnabled()
    click(files.project_button)
    assert files.paths == [other.folder]


def test_saved_preset_does_not_contain_the_selected_run(form: SearchForm, project: Project, tmp_path: Path, qtbot: QtBot) -> None:
    form.file_lists["project"]._take_folder(project.folder)
    qtbot.waitUntil(form.run_button.isEnabled)
    form.continue_from(project.folder, "identify-0001")
    parameters = form.parameters.parameters
    assert parameters is not None and parameters.model_dump()["run"] == "identify-0001"
    form.presets.save_file(tmp_path / "mine.toml")
    text = (tmp_path / "mine.toml").read_text(encoding="utf-8")
    assert "minimum_similarity = 0.6" in text and "identify-0001" not in text


def test_follow_up_form_searches_unidentified_spectra(window: MainWindow, project: Project, qtbot: QtBot) -> None:
    form = window.searches["modified"].form
    assert form.validation_error() == "Add spectra"
    window.open_project(project.folder)
    window.searches["identify"].results.searchRequested.emit("modified", "identify-0001", FormPrefill())
    assert window.form is form and form.project_folder() == project.folder
    qtbot.waitUntil(form.run_button.isEnabled)
    task = form.task()
    assert task is not None and task.title == f"Find modified peptides in results of {project.folder.name}"
    assert task.request.options["from_project"] == project.folder and task.request.options["run"] == "identify-0001"
    assert not task.request.inputs["spectra"] and not task.request.inputs["database"]
    form.projects["from_project"].line.setText(str(project.folder.parent))
    assert form.validation_error() == "This folder is not a project" or not form.run_button.isEnabled()
