"""Tests of the actions New …: an empty form, the last database, the last settings, and files dropped on other pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.window import MainWindow
from tests.gui.test_window import click


@pytest.fixture
def filled_form(window: MainWindow, small_database: Path, small_spectra: Path, tmp_path: Path, qtbot: QtBot) -> SearchForm:
    """The identification form with files, a preset, an edited value and a project."""
    window.new_search("identify")
    form = window.form
    form.file_lists["spectra"].add([small_spectra])
    form.file_lists["database"].add([small_database])
    form.presets.choose("phospho")
    form.parameters.set_values({"missed_cleavages": 1})
    form.set_project_folder(tmp_path / "results")
    qtbot.waitUntil(form.run_button.isEnabled)
    return form


def test_new_search_empties_the_form_and_offers_last_database(window: MainWindow, filled_form: SearchForm, small_database: Path) -> None:
    window.menus.new["identify"].trigger()
    assert window.form is filled_form
    assert filled_form.file_lists["spectra"].is_empty and filled_form.file_lists["database"].is_empty
    assert filled_form.presets.name == filled_form.search.preset and filled_form.parameters.changed_names == []
    assert filled_form.project.is_empty and not filled_form.is_touched
    button = filled_form.file_lists["database"].last_button
    assert button.isVisible() and button.text() == f"Use {small_database.name}"
    click(button)
    assert filled_form.file_lists["database"].paths == [small_database] and not button.isVisible()


def test_last_settings_button_restores_an_emptied_form(window: MainWindow, filled_form: SearchForm, tmp_path: Path, qtbot: QtBot) -> None:
    before = filled_form.content()
    window.menus.new["identify"].trigger()
    click(filled_form.last_button)
    assert filled_form.content() == before
    assert filled_form.project_folder() == tmp_path / "results"
    assert filled_form.parameters.values()["missed_cleavages"] == 1
    assert not filled_form.last_button.isVisible()
    qtbot.waitUntil(filled_form.run_button.isEnabled)


def test_second_new_search_retains_the_last_settings(window: MainWindow, filled_form: SearchForm) -> None:
    window.menus.new["identify"].trigger()
    window.menus.new["identify"].trigger()
    assert filled_form.last_button.isVisible()
    click(filled_form.last_button)
    assert not filled_form.file_lists["spectra"].is_empty


def test_new_search_uses_the_open_project(window: MainWindow, filled_form: SearchForm, tmp_path: Path) -> None:
    Project.create_or_open(tmp_path / "opened")
    window.open_project(tmp_path / "opened")
    window.menus.new["identify"].trigger()
    assert filled_form.project_folder() == tmp_path / "opened"


@pytest.mark.parametrize("kind", ["align", "modified", "quantify", "explain", "evidence", "cluster", "reads", "structures", "library"])
def test_last_settings_button_restores_every_emptied_form(window: MainWindow, kind: str, tmp_path: Path) -> None:
    Project.create_or_open(tmp_path / "opened")
    window.open_project(tmp_path / "opened")
    window.try_sample(kind)
    form = window.searches[kind].form
    form.take_sample()
    before = form.content()
    window.new_search(kind)
    assert not form.is_touched
    if form.last_button.isVisible():
        click(form.last_button)
        assert form.content() == before


def test_files_dropped_on_another_page_replace_form_files(
    window: MainWindow, filled_form: SearchForm, small_database: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    window.show_devices()
    other = tmp_path / "other.fasta"
    other.write_bytes(small_database.read_bytes())
    window.drag_and_drop.take([other], 0, None)
    qtbot.waitUntil(lambda: filled_form.file_lists["database"].paths == [other])
    assert filled_form.file_lists["spectra"].is_empty
    assert filled_form.last_button.isVisible()


def test_last_database_is_offered_after_restart(
    make_window: Callable[[], MainWindow], small_database: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    first = make_window()
    first.form.file_lists["database"].add([small_database])
    assert first.close()
    for _ in range(2):  # a window in which nothing was done retains what it offered
        again = make_window()
        again.new_search("identify")
        assert again.form.file_lists["database"].is_empty
        assert again.form.file_lists["database"].last_button.text() == f"Use {small_database.name}"
        assert again.close()
