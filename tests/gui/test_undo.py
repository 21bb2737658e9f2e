"""Tests of Edit > Undo and Redo: deleted runs, filters, titles, designs, files, and text fields that keep their own undo."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.undo import Change
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.quantity_projects import FILES, identified_project
from tests.gui.result_views import settle, shown
from tests.gui.x_events import Hand, wait_until_still


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_runs(tmp_path_factory.mktemp("two runs") / "p", 2)[0].folder


@pytest.fixture
def project(two_runs: Path, tmp_path: Path) -> Project:
    return Project.open(Path(shutil.copytree(two_runs, tmp_path / "p")))


@pytest.fixture
def results(window: MainWindow, project: Project, qtbot: QtBot) -> IdentificationView:
    window.open_project(project.folder)
    settle(window.results, qtbot)
    assert isinstance(window.results, IdentificationView)
    return window.results


def listed(window: MainWindow) -> list[str]:
    return [run.id for run in window.project_pane.records]


def clicked(widget: QWidget, hand: Hand, qtbot: QtBot) -> None:
    """Click the middle of a widget that is at rest."""
    wait_until_still(lambda: widget.mapToGlobal(QPoint()) if widget.isVisible() else None, qtbot)
    hand.click(widget)


def open_details(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    clicked(window.project_pane.about_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.run_actions.made_page and not window.run_actions.is_busy)


def test_undo_restores_a_deleted_run_after_another_message(
    window: MainWindow, results: IdentificationView, project: Project, hand: Hand, qtbot: QtBot
) -> None:
    both = listed(window)
    window.project_pane.discard_action.trigger()
    assert listed(window) == both[1:]
    window.message_bar.show_message("Something else", "good")
    assert window.menus.undo.text().replace("&", "") == "Undo delete run 2"
    begin = hand.n_actions
    window.project_pane.runs.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: listed(window) == both)
    assert hand.n_actions - begin == 1 and project.verify() == []
    qtbot.waitUntil(lambda: window.project_pane.selected_run is not None and window.project_pane.selected_run.id == both[0])
    assert window.message_bar.label.text() == "Something else"
    hand.press("ctrl", "y")
    qtbot.waitUntil(lambda: listed(window) == both[1:])
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: listed(window) == both)
    hand.press("ctrl", "shift", "z")
    qtbot.waitUntil(lambda: listed(window) == both[1:])


def test_undo_in_the_menu_restores_a_deleted_run(window: MainWindow, results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    both = listed(window)
    window.project_pane.discard_action.trigger()
    hand.press("alt", "e")
    menu = hand.menu()
    assert menu.actions() == [window.menus.undo, window.menus.redo]
    hand.choose(menu, window.menus.undo)
    qtbot.waitUntil(lambda: listed(window) == both)
    assert hand.n_actions == 2 and not window.message_bar.isVisible()
    assert window.menus.redo.text().replace("&", "") == "Redo delete run 2" and not window.menus.undo.isEnabled()


def test_deletion_undone_by_message_button_is_not_undone_again(window: MainWindow, results: IdentificationView, project: Project) -> None:
    both = listed(window)
    window.project_pane.discard_action.trigger()
    results.filter_bar.text.setText("x")
    results.filter_bar.text.returnPressed.emit()
    window.message_bar.button.click()
    assert listed(window) == both and project.verify() == []
    while window.menus.undo.isEnabled():
        assert "delete" not in window.menus.undo.text()
        window.menus.undo.trigger()
    assert listed(window) == both


def test_undo_of_a_permanently_deleted_run_is_reported_once(window: MainWindow, results: IdentificationView, project: Project) -> None:
    window.project_pane.discard_action.trigger()
    last = project.folder / "results" / "identify-0002"
    Project.open(project.folder).remove_deleted(["identify-0002"])
    assert not last.exists()
    window.menus.undo.trigger()
    assert "no longer holds the deleted run 'identify-0002'" in window.message_bar.label.text()
    assert not window.menus.undo.isEnabled() and not window.menus.redo.isEnabled()
    assert window.menus.undo.text() == "&Undo"


def test_undo_history_is_cleared_when_another_project_is_opened(
    window: MainWindow, results: IdentificationView, two_runs: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    window.project_pane.discard_action.trigger()
    assert window.menus.undo.isEnabled()
    window.open_project(Path(shutil.copytree(two_runs, tmp_path / "other")))
    assert not window.menus.undo.isEnabled() and not window.message_bar.isVisible()
    window.deferred.finish()
    settle(window.results, qtbot)


def test_undo_of_a_filter_shows_the_results_again(window: MainWindow, results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    bar, n_all = results.filters, len(shown(results.psms, "peptide"))
    results.show_all("psms")
    settle(results, qtbot)
    n_all = len(shown(results.psms, "peptide"))
    bar.text.setFocus()
    hand.type("zzzz")
    qtbot.waitUntil(lambda: len(shown(results.psms, "peptide")) == 0)
    bar.decoys.click()
    settle(results, qtbot)
    window.show_form()
    window.form.run_button.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: not bar.decoys.isChecked())
    assert window.pages.currentWidget() is results
    results.psms.view.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: bar.text.text() == "" and len(shown(results.psms, "peptide")) == n_all)
    hand.press("ctrl", "y")
    qtbot.waitUntil(lambda: bar.text.text() == "zzzz")
    # The filter of another run cannot be undone.
    window.project_pane.select("identify-0001")
    settle(results, qtbot)
    assert not window.menus.undo.isEnabled() and not window.menus.redo.isEnabled()


def test_text_field_undoes_only_its_own_typing(window: MainWindow, results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    window.project_pane.discard_action.trigger()
    window.project_pane.select("identify-0001")
    settle(results, qtbot)
    text = results.filters.text
    clicked(text, hand, qtbot)
    hand.type("pep")
    qtbot.waitUntil(lambda: "filter" in window.menus.undo.text())
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: text.text() == "")
    hand.press("ctrl", "y")
    qtbot.waitUntil(lambda: text.text() == "pep")
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: text.text() == "")
    # The typed and removed text leaves nothing to undo; the key does not reach the deletion.
    qtbot.waitUntil(lambda: window.menus.undo.text().replace("&", "") == "Undo delete run 2")
    hand.press("ctrl", "z")
    qtbot.wait(100)
    assert listed(window) == ["identify-0001"]


def test_undo_restores_the_number_of_a_filter(window: MainWindow, results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    box = results.filters.q_value
    before = box.value()
    clicked(box, hand, qtbot)
    hand.press("up")
    qtbot.waitUntil(lambda: box.value() > before and window.menus.undo.isEnabled())
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: box.value() == before)


def test_undo_restores_the_title_of_a_renamed_run(
    window: MainWindow, results: IdentificationView, project: Project, hand: Hand, qtbot: QtBot
) -> None:
    open_details(window, hand, qtbot)
    page = window.run_actions.page
    first = page.title.text()
    clicked(page.title, hand, qtbot)
    hand.press("ctrl", "a")
    hand.type("mine")
    qtbot.waitUntil(lambda: project.note("identify-0002").title == "mine")
    hand.type(" too")
    qtbot.waitUntil(lambda: project.note("identify-0002").title == "mine too")
    clicked(page.results_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is results)
    assert window.menus.undo.text().replace("&", "") == "Undo rename run 2"
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: project.note("identify-0002").title == "" and page.title.text() == first and page.isVisible())
    page.text.setFocus()
    hand.press("ctrl", "shift", "z")
    qtbot.waitUntil(lambda: project.note("identify-0002").title == "mine too" and page.title.text() == "mine too")
    # A title that is still being typed is recorded before the undo.
    page.title.setText("half")
    page.title.textEdited.emit("half")
    window.menus.undo.trigger()
    assert project.note("identify-0002").title == "mine too"
    qtbot.waitUntil(lambda: not window.run_actions.is_busy)


def test_undo_restores_a_title_before_text_of_a_focused_field(
    window: MainWindow, results: IdentificationView, project: Project, hand: Hand, qtbot: QtBot
) -> None:
    """The results page returns the focus to the field in which the user typed earlier; that text is older than the new title."""
    field = results.filter_bar.findChildren(QLineEdit)[0]
    clicked(field, hand, qtbot)
    hand.type("PEP")
    qtbot.waitUntil(lambda: field.text() == "PEP")
    settle(results, qtbot)
    open_details(window, hand, qtbot)
    page = window.run_actions.page
    first = page.title.text()
    clicked(page.title, hand, qtbot)
    hand.press("ctrl", "a")
    hand.type("mine")
    qtbot.waitUntil(lambda: project.note("identify-0002").title == "mine")
    clicked(page.results_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is results)
    field.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: project.note("identify-0002").title == "" and page.title.text() == first and page.isVisible())
    assert field.text() == "PEP"
    # The next undo is that of the older text, in its field.
    qtbot.waitUntil(lambda: not window.run_actions.is_busy)
    clicked(page.results_button, hand, qtbot)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is results)
    field.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: field.text() == "")
    settle(results, qtbot)


def test_undo_and_redo_restore_edits_of_the_design_table(window: MainWindow, tmp_path: Path, hand: Hand, qtbot: QtBot) -> None:
    window.new_search("quantify")
    window.form.set_project_folder(identified_project(tmp_path / "identified"))
    design = window.form.designs["design"]
    qtbot.waitUntil(lambda: len(design.model.table.rows) == len(FILES))
    first = design.model.table
    assert not window.menus.undo.isEnabled()
    design.model.set_cells([((0, 2), "dose")])
    design.model.set_block("batch", True)
    second = design.model.table
    window.show_page(window.start_page)
    window.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.form and "batch" not in design.model.table.columns)
    design.view.setFocus()
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: design.model.table == first)
    assert not design.buttons[2].isEnabled()
    hand.press("ctrl", "y")
    hand.press("ctrl", "y")
    qtbot.waitUntil(lambda: design.model.table == second)
    assert design.buttons[2].isEnabled()


def test_undo_restores_removed_files(window: MainWindow, hand: Hand, tmp_path: Path, qtbot: QtBot) -> None:
    window.new_search("identify")
    files = window.form.file_lists["spectra"]
    paths = [tmp_path / name for name in ("a.mgf", "b.mgf", "c.mgf")]
    for path in paths:
        path.write_text("BEGIN IONS\nPEPMASS=500\n100 1\nEND IONS\n")
    files.add(paths)
    files.lines.setFocus()
    files.lines.selectAll()
    hand.press("delete")
    qtbot.waitUntil(lambda: files.is_empty)
    assert window.menus.undo.text().replace("&", "") == "Undo remove 3 files"
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: files.paths == paths)
    window.new_search("identify")
    assert not window.menus.undo.isEnabled() and not window.menus.redo.isEnabled()


def test_undo_joins_edits_of_a_field_until_it_loses_the_focus(window: MainWindow) -> None:
    stack, content = window.undo_stack, [0]

    def change(to: int, field: str) -> None:
        before, content[0] = content[0], to
        stack.add(Change("count", window, before, to, lambda value: content.__setitem__(0, value), field=field))

    change(1, "a")
    change(2, "a")
    change(3, "b")
    assert stack.count() == 2
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.focusChanged.emit(None, None)
    change(4, "b")
    assert stack.count() == 3
    for wanted in (3, 2, 0):
        stack.step_back()
        assert content == [wanted]
    stack.step_forward()
    assert content == [2]
    change(0, "c")
    change(2, "c")
    assert stack.count() == 1, "a change that was reversed by hand"
