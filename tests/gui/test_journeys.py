"""Tests of unusual sequences of actions with X events, and of every page in a window of 1024 x 700.

Files are given in the wrong order, a filter leaves nothing, and a run is deleted and restored."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QAbstractButton, QApplication, QTabWidget
from pytestqt.qtbot import QtBot

from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.results.reads_view import ReadsView
from proteoscope.gui.window import MainWindow
from tests.engine.views.compared_projects import project_with_runs
from tests.engine.views.read_projects import read_files
from tests.gui.result_views import cut_off, overlapping, settle, wait_until_fitting
from tests.gui.test_window import SEARCH_MS
from tests.gui.x_events import Hand, has_file_dialog, named_in_dialog, wait_until_still_in_form


def _add(name: str, path: Path, window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    """Add a file to an input of the form with its button and the dialog."""
    files = window.form.file_lists[name]

    wait_until_still_in_form(files.add_button, window, qtbot)
    hand.click(files.add_button)
    qtbot.waitUntil(has_file_dialog)
    hand.type(str(path))
    hand.press("enter")
    qtbot.waitUntil(lambda: path in files.paths)


def _remove_only_file(name: str, window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    """Select the file of an input and press *Remove*."""
    files = window.form.file_lists[name]
    wait_until_still_in_form(files.add_button, window, qtbot)
    hand.click(files.lines.viewport(), files.lines.visualItemRect(files.lines.item(0)).center())
    qtbot.waitUntil(files.remove_button.isEnabled)
    hand.click(files.remove_button)
    qtbot.waitUntil(lambda: files.is_empty)


def test_swapped_reads_and_genome_are_reported_before_the_run(window: MainWindow, hand: Hand, tmp_path: Path, qtbot: QtBot) -> None:
    chance = random.Random(3)
    genome, reads = read_files(tmp_path / "data", "".join(chance.choice("ACGT") for _ in range(6000)), 20)
    window.new_search("reads")
    form = window.form
    qtbot.waitUntil(form.run_button.isVisible)
    _add("texts", reads, window, hand, qtbot)
    _add("patterns", genome, window, hand, qtbot)
    message = form.file_lists["texts"].message
    qtbot.waitUntil(lambda: message.text().endswith("Add it to Reads") and form.reason.isVisible())
    assert message.isVisible() and not form.run_button.isEnabled()
    for name in ("texts", "patterns"):
        _remove_only_file(name, window, hand, qtbot)
    _add("texts", genome, window, hand, qtbot)
    _add("patterns", reads, window, hand, qtbot)
    qtbot.waitUntil(form.run_button.isEnabled)
    assert form.presets.box.currentData() == "map-to-genome"
    with qtbot.waitSignal(window.bridge.finished, timeout=SEARCH_MS) as finished:
        hand.click(form.run_button)
    assert finished.args[0].state == "done", finished.args[0].error
    qtbot.waitUntil(lambda: isinstance(window.results, ReadsView) and window.pages.currentWidget() is window.results)
    settle(window.results, qtbot)
    assert window.results.header.text.startswith("36 alignments of 39 reads")
    assert "--" not in window.results.header.message, "no words of the command line"


def test_filter_export_comparison_and_undo_work_in_sequence(window: MainWindow, hand: Hand, tmp_path: Path, qtbot: QtBot) -> None:
    project, *_ = project_with_runs(tmp_path / "p", n_runs=2)
    window.open_project(project.folder)
    results = window.results
    assert isinstance(results, IdentificationView)
    settle(results, qtbot)
    hand.press("ctrl", "f")
    qtbot.waitUntil(results.filter_bar.text.hasFocus)
    hand.type("zzzz")
    qtbot.waitUntil(lambda: all(panel.model.rowCount() == 0 for panel in results.panels.values()))
    settle(results, qtbot)
    assert results.spectrum.spectrum is None and results.psms.view.chosen is None
    named_in_dialog(hand, tmp_path / "all.pin")
    hand.press("ctrl", "shift", "e")
    qtbot.waitUntil(lambda: window.queue.is_idle and (tmp_path / "all.pin").exists())
    assert len((tmp_path / "all.pin").read_text(encoding="utf-8").splitlines()) > results.psms.total / 2, "the whole run is exported"
    with qtbot.waitActive(window):
        # This display has no window manager that restores the focus after a dialog.
        window.activateWindow()
    hand.press("ctrl", "f")
    qtbot.waitUntil(results.filter_bar.text.hasFocus)
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: results.filter_bar.text.text() == "" and results.psms.model.rowCount() > 0)
    settle(results, qtbot)
    assert results.psms.view.chosen == results.pane.row is not None and results.spectrum.spectrum is not None

    pane, runs = window.project_pane, window.project_pane.runs
    other = next(i for i in range(runs.count()) if not runs.item(i).isSelected())
    hand.click(runs.viewport(), runs.visualItemRect(runs.item(other)).center(), holding=("ctrl",))
    qtbot.waitUntil(pane.compare_button.isVisible)
    hand.click(pane.compare_button)
    qtbot.waitUntil(lambda: window.comparisons.view is not None and window.pages.currentWidget() is window.comparisons.view)
    qtbot.waitUntil(lambda: window.comparisons.view is not None and not window.comparisons.view.is_busy)
    hand.click(runs.viewport(), runs.visualItemRect(runs.item(other)).center())
    qtbot.waitUntil(lambda: pane.selected_run is not None and pane.about_button.isVisible())
    gone = pane.selected_run
    assert gone is not None
    settle(window.results, qtbot)
    hand.click(pane.about_button)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.run_actions.made_page and not window.run_actions.is_busy)
    button = next(button for button in window.run_actions.page.findChildren(QAbstractButton) if "Delete" in button.text())
    qtbot.waitUntil(button.isVisible)
    hand.click(button)
    qtbot.waitUntil(lambda: gone.id not in [run.id for run in pane.records])
    assert window.comparisons.view is None, "nothing is compared with the deleted run"
    qtbot.waitUntil(window.message_bar.button.isVisible)
    hand.click(window.message_bar.button)
    qtbot.waitUntil(lambda: window.results.run is not None and window.results.run.id == gone.id)
    settle(window.results, qtbot)
    assert gone.id in [run.id for run in pane.records] and window.pages.currentWidget() is window.results


@pytest.mark.parametrize(
    "kind", [*(pytest.param(name, marks=pytest.mark.long) for name in ("explain", "evidence")), "modified", "quantify"]
)
def test_undo_of_a_filter_without_results_restores_rows(
    window: MainWindow, hand: Hand, kind: str, finished_run: Callable[[str], Path], qtbot: QtBot
) -> None:
    window.open_project(finished_run(kind))
    qtbot.waitUntil(lambda: window.results is window.searches[kind].made_results and not window.results.is_busy)
    results = window.results
    settle(results, qtbot)
    n_rows = {name: panel.model.rowCount() for name, panel in results.panels.items()}
    hand.press("ctrl", "f")
    qtbot.waitUntil(results.filter_bar.text.hasFocus)
    hand.type("zzzz")
    qtbot.waitUntil(lambda: all(panel.model.rowCount() == 0 for panel in results.panels.values()))
    settle(results, qtbot)
    assert all(panel.view.chosen is None for panel in results.panels.values())
    hand.press("ctrl", "z")
    qtbot.waitUntil(lambda: {name: panel.model.rowCount() for name, panel in results.panels.items()} == n_rows)
    settle(results, qtbot)

    table = next(panel for panel in results.panels.values() if panel.isVisible() and panel.model.rowCount())
    header, column = table.view.horizontalHeader(), table.model.columns[0].name
    hand.click(header.viewport(), QPoint(header.sectionPosition(0) + 20, header.height() // 2))
    qtbot.waitUntil(lambda: [name for name, _ in table.model.order] == [column])
    settle(results, qtbot)
    hand.click(table.view.viewport(), table.view.visualRect(table.model.index(0, 0)).center())
    qtbot.waitUntil(table.view.hasFocus)
    hand.press("ctrl", "a")
    hand.press("ctrl", "c")
    n_lines = table.model.rowCount() + 1
    qtbot.waitUntil(lambda: len(QApplication.clipboard().text().splitlines()) == n_lines)
    assert QApplication.clipboard().text().startswith(table.model.columns[0].title)


@pytest.mark.usefixtures("hand")
def test_forms_cut_off_no_text_at_1024_by_700_pixels(window: MainWindow, qtbot: QtBot) -> None:
    window.resize(1024, 700)
    for kind in window.searches:
        window.new_search(kind)
        wait_until_fitting(lambda: cut_off(window), qtbot)
        assert (window.width(), window.height()) == (1024, 700), kind
        assert window.form.run_button.visibleRegion().boundingRect() == window.form.run_button.rect(), kind


@pytest.mark.usefixtures("hand")
def test_result_views_cut_off_no_text_at_1024_by_700_pixels(window: MainWindow, finished_run: Callable[[str], Path], qtbot: QtBot) -> None:
    window.resize(1024, 700)
    for kind in ("identify", "import", "library", "modified", "explain", "reads", "quantify", "evidence"):
        window.open_project(finished_run(kind))
        qtbot.waitUntil(lambda of=window.searches[kind]: window.results is of.made_results)
        settle(window.results, qtbot)
        looked_at = 0
        for tabs in window.results.findChildren(QTabWidget):
            for index in range(tabs.count()) if tabs.isVisible() else ():
                tabs.setCurrentIndex(index)
                settle(window.results, qtbot)
                looked_at += 1
                assert (window.width(), window.height()) == (1024, 700), kind
                assert not cut_off(window), (kind, tabs.tabText(index))
                for bar in window.results.findChildren(FilterBar):
                    assert not bar.isVisible() or not overlapping(bar), (kind, tabs.tabText(index))
            tabs.setCurrentIndex(0)
        assert looked_at >= 2, kind
