"""Tests that the project pane selects the runs that are shown: each is an error found by random use of a window with two projects."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from proteoscope.engine.project import Project, RunNote
from proteoscope.gui.forms.search_form import SearchForm
from proteoscope.gui.results.comparison_view import ComparisonView
from proteoscope.gui.results.run_page import RunPage
from proteoscope.gui.selection_page import SelectionPage
from proteoscope.gui.window import MainWindow
from tests.gui.two_projects import ALIGNED, FAILED, NEWEST, OLDEST, made, projects, settle, stored_runs

__all__ = ["made", "projects"]


@pytest.fixture
def opened(window: MainWindow, projects: list[Path], qtbot: QtBot) -> MainWindow:
    """Return a window that shows the newest run of the first project."""
    window.open_project(projects[0])
    settle(window, qtbot)
    assert selected_runs(window) == [NEWEST]
    return window


def selected_runs(window: MainWindow) -> list[str]:
    return [run.id for run in window.project_pane.selected_runs]


def select(window: MainWindow, run: str, qtbot: QtBot) -> None:
    window.project_pane.select(run)
    settle(window, qtbot)


def show_details(window: MainWindow, qtbot: QtBot) -> RunPage:
    """Show the details of the selected run."""
    window.project_pane.about_action.trigger()
    settle(window, qtbot)
    page = window.pages.currentWidget()
    assert isinstance(page, RunPage)
    return page


def compare(window: MainWindow, runs: set[str], qtbot: QtBot) -> ComparisonView:
    """Show the comparison of two runs."""
    window.compare_runs([run for run in reversed(window.project_pane.records) if run.id in runs])
    settle(window, qtbot)
    page = window.pages.currentWidget()
    assert isinstance(page, ComparisonView)
    return page


def test_results_shown_by_the_menu_select_their_run(opened: MainWindow, qtbot: QtBot) -> None:
    select(opened, ALIGNED, qtbot)
    select(opened, NEWEST, qtbot)
    select(opened, FAILED, qtbot)
    assert opened.results.run is None, "a failed run has no results"
    opened.show_results()
    assert opened.results.run is not None and selected_runs(opened) == [opened.results.run.id] == [ALIGNED]


def test_opened_comparison_selects_the_compared_runs(opened: MainWindow, qtbot: QtBot) -> None:
    show_details(opened, qtbot)
    compare(opened, {OLDEST, NEWEST}, qtbot)
    assert selected_runs(opened) == [OLDEST, NEWEST]


def test_comparison_replaced_by_another_is_later_deleted(opened: MainWindow, qtbot: QtBot) -> None:
    replaced = compare(opened, {OLDEST, NEWEST}, qtbot)
    opened.compare_runs([run for run in reversed(opened.project_pane.records) if run.id in (OLDEST, NEWEST)])
    assert opened.pages.currentWidget() is opened.comparisons.view is not replaced
    settle(opened, qtbot)
    pages = [opened.pages.widget(index) for index in range(opened.pages.count())]
    assert [page for page in pages if isinstance(page, ComparisonView)] == [opened.comparisons.view]
    qtbot.waitUntil(lambda: not isValid(replaced))


def test_selecting_another_run_replaces_details_by_results(opened: MainWindow, qtbot: QtBot) -> None:
    opened.project_pane.about_action.trigger()
    select(opened, ALIGNED, qtbot)
    assert opened.results.run is not None and opened.pages.currentWidget() is opened.results and opened.results.run.id == ALIGNED


def test_details_of_failed_run_replace_those_of_another_run(opened: MainWindow, qtbot: QtBot) -> None:
    show_details(opened, qtbot)
    select(opened, FAILED, qtbot)
    page = opened.pages.currentWidget()
    assert isinstance(page, RunPage) and page.account is not None and page.account.run.id == FAILED


def test_run_deleted_while_its_results_open_is_not_shown(opened: MainWindow, qtbot: QtBot) -> None:
    opened.project_pane.select(ALIGNED)
    assert opened.results.is_busy and opened.results.run is None
    opened.project_pane.discard_action.trigger()
    settle(opened, qtbot)
    assert opened.searches["align"].results.run is None


def test_form_replaces_a_comparison_if_a_compared_run_is_deleted(opened: MainWindow, qtbot: QtBot) -> None:
    opened.project_pane.discard_action.trigger()
    opened.menus.undo.trigger()
    settle(opened, qtbot)
    compare(opened, {OLDEST, NEWEST}, qtbot)
    opened.menus.redo.trigger()
    settle(opened, qtbot)
    assert isinstance(opened.pages.currentWidget(), SearchForm) and opened.menus.form.isChecked()


def test_edited_title_is_saved_in_the_project_of_the_run(opened: MainWindow, projects: list[Path], qtbot: QtBot) -> None:
    page = show_details(opened, qtbot)
    page.title.setText("control")
    opened.open_project(projects[1])
    opened.run_actions.save_note()
    titles = [{run.id: run.title for run in stored_runs(folder)}[NEWEST] for folder in projects]
    assert titles == ["control", ""]


def test_another_run_can_be_selected_while_a_title_is_edited(opened: MainWindow, projects: list[Path], qtbot: QtBot) -> None:
    """The list of runs is rebuilt when the title is saved, which happens when its field loses the focus."""
    page = show_details(opened, qtbot)
    page.title.setFocus()
    page.title.setText("control")
    select(opened, ALIGNED, qtbot)
    assert opened.results.run is not None and selected_runs(opened) == [opened.results.run.id] == [ALIGNED]
    assert {run.id: run.title for run in stored_runs(projects[0])}[NEWEST] == "control"


def test_menu_does_not_show_results_of_the_previous_project(opened: MainWindow, tmp_path: Path, qtbot: QtBot) -> None:
    select(opened, ALIGNED, qtbot)
    Project.create_or_open(tmp_path / "empty")
    opened.open_project(tmp_path / "empty")
    opened.show_results()
    assert all(results.run is None for results in opened.made_results())


def extend_selection(window: MainWindow, run: str, qtbot: QtBot) -> None:
    """Click a run with Ctrl, which adds it to the selected runs or removes it."""
    runs = window.project_pane.runs
    item = next(item for item in map(runs.item, range(runs.count())) if item.data(Qt.ItemDataRole.UserRole).id == run)
    runs.scrollToItem(item)
    place = runs.visualItemRect(item).center()
    qtbot.mouseClick(runs.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, place)
    settle(window, qtbot)


def test_several_selected_runs_are_listed_and_can_be_compared(opened: MainWindow, qtbot: QtBot) -> None:
    extend_selection(opened, OLDEST, qtbot)
    page = opened.pages.currentWidget()
    assert isinstance(page, SelectionPage) and page.text.startswith("2 runs selected")
    assert all(opened.project_pane.title_of(run) in page.text for run in opened.project_pane.selected_runs)
    assert not opened.menus.export.isEnabled() and not opened.menus.results.isChecked()
    qtbot.mouseClick(page.compare_button, Qt.MouseButton.LeftButton)
    settle(opened, qtbot)
    assert isinstance(opened.pages.currentWidget(), ComparisonView) and selected_runs(opened) == [OLDEST, NEWEST]


def test_selected_runs_without_common_tables_cannot_be_compared(opened: MainWindow, qtbot: QtBot) -> None:
    extend_selection(opened, ALIGNED, qtbot)
    page = opened.pages.currentWidget()
    assert isinstance(page, SelectionPage) and page.compare_button.isVisible() and not page.compare_button.isEnabled()
    assert f"{ALIGNED} has no tables" in page.text
    extend_selection(opened, NEWEST, qtbot)
    assert selected_runs(opened) == [ALIGNED]
    assert opened.results.run is not None and opened.pages.currentWidget() is opened.results and opened.results.run.id == ALIGNED


def test_results_are_not_shown_after_their_run_is_deselected(opened: MainWindow, qtbot: QtBot) -> None:
    opened.show_error(f"{NEWEST} has no results")
    extend_selection(opened, NEWEST, qtbot)
    page = opened.pages.currentWidget()
    assert opened.message_bar.label.text() == "", "the message is about another run"
    assert selected_runs(opened) == [] and isinstance(page, SelectionPage)
    assert page.text == "No run selected\nSelect a run to see its results." and not page.compare_button.isVisible()
    opened.show_results()
    assert selected_runs(opened) == [NEWEST]


def test_form_remains_visible_if_no_run_is_selected(opened: MainWindow, qtbot: QtBot) -> None:
    opened.new_search("identify")
    extend_selection(opened, NEWEST, qtbot)
    assert selected_runs(opened) == [] and opened.pages.currentWidget() is opened.form


def test_unfinished_run_cannot_be_compared(opened: MainWindow, qtbot: QtBot) -> None:
    extend_selection(opened, FAILED, qtbot)
    page = opened.pages.currentWidget()
    assert isinstance(page, SelectionPage) and page.text.endswith(f"{FAILED} has no results (failed)")


def test_list_of_selected_runs_has_their_current_titles(opened: MainWindow, projects: list[Path], qtbot: QtBot) -> None:
    extend_selection(opened, OLDEST, qtbot)
    Project.open(projects[0]).set_note(OLDEST, RunNote("heat shock", ""))
    opened.project_pane.refresh_titles()
    page = opened.pages.currentWidget()
    assert isinstance(page, SelectionPage) and "heat shock" in page.text.splitlines()


def test_details_page_is_updated_if_the_run_status_changes(opened: MainWindow, projects: list[Path], qtbot: QtBot) -> None:
    select(opened, FAILED, qtbot)
    page = show_details(opened, qtbot)
    assert page.account is not None and page.account.run.status == "failed"
    with closing(sqlite3.connect(projects[0] / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET status = 'cancelled' WHERE id = ?", (FAILED,))
    opened.project_pane.refresh()
    settle(opened, qtbot)
    assert opened.pages.currentWidget() is page and page.account.run.status == "cancelled"
