"""Tests of common tasks on results, each within three actions of mouse and keyboard, at 1280 x 800.

1. View the second-best protein.
2. View its best spectrum.
3. View the positions of the peptides in the protein.
4. View the mass errors.
5. Find a peptide.
6. Copy a match to a spreadsheet.
7. View the worst accepted matches.
8. View another run and its results.
9. Continue with the unidentified spectra.
10. View the parameters of another run.
11. Mark a match with a star.
12. View all spectra, identified or not.
13. Quantify the proteins.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QApplication, QToolButton
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.settings import SettingsFile
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.engine.identification_tables import identification
from tests.engine.views.compared_projects import add_run, project_with_runs
from tests.engine.views.result_projects import spectra_table
from tests.gui.result_views import SharedView, place_of, settle, shown
from tests.gui.x_events import Hand, move_onto_screen

_MAXIMUM_ACTIONS = 3


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project_with_runs(tmp_path_factory.mktemp("two runs") / "project", n_runs=2)[0].folder


@pytest.fixture
def project(two_runs: Path, tmp_path: Path) -> Project:
    return Project.open(Path(shutil.copytree(two_runs, tmp_path / "project")))


@pytest.fixture
def results(window: MainWindow, project: Project, qtbot: QtBot) -> IdentificationView:
    """Results of a run as shown to a user who has opened the project."""
    move_onto_screen(window, qtbot)
    window.open_project(project.folder)
    settle(window.results, qtbot)
    assert isinstance(window.results, IdentificationView)
    assert (window.width(), window.height()) == (1280, 800)
    return window.results


@pytest.fixture(scope="module")
def cached_results(
    two_runs: Path, request: pytest.FixtureRequest, shared_theme: Theme, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedView[IdentificationView]]:
    """Return the same results in a window that is opened once."""
    qtbot = QtBot(request)
    window = MainWindow(SettingsFile(tmp_path_factory.mktemp("cached") / "settings.json"), shared_theme)
    window.show()
    move_onto_screen(window, qtbot)
    project = Project.open(two_runs)
    window.open_project(project.folder)
    settle(window.results, qtbot)
    assert isinstance(window.results, IdentificationView)
    yield SharedView(window.results, project, request, None)
    window.close()
    assert window.queue.shutdown(60)
    window.deleteLater()
    QApplication.sendPostedEvents(window, QEvent.Type.DeferredDelete.value)


@pytest.fixture
def shared_results(cached_results: SharedView[IdentificationView], theme: Theme, qtbot: QtBot) -> IdentificationView:
    """Results for tasks that change neither project nor page and do not depend on the keyboard focus."""
    window = cached_results.view.window()
    window.raise_()
    move_onto_screen(window, qtbot)
    view = cached_results.as_opened(qtbot)
    assert (window.width(), window.height()) == (1280, 800)
    return view


@pytest.fixture
def hand(qtbot: QtBot) -> Iterator[Hand]:
    hand = Hand(qtbot)
    yield hand
    hand.close()
    assert 0 < hand.n_actions <= _MAXIMUM_ACTIONS


def test_click_on_second_protein_shows_its_best_spectrum(shared_results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    results = shared_results
    second = shown(results.proteins, "group")[1]
    hand.click(*place_of(results.proteins, 1))
    qtbot.waitUntil(lambda: results.peptides.scope_text != "")
    settle(results, qtbot)
    assert second.split(";")[0] in results.peptides.scope_text and results.peptides.model.rowCount() > 0
    if results.psms.view.chosen is None:
        hand.click(*place_of(results.psms, 0))
        settle(results, qtbot)
    assert results.spectrum.isVisible() and results.spectrum.text == ""


def test_click_on_tabs_shows_coverage_and_mass_errors(shared_results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    results = shared_results
    tabs = results.tabs
    for title, page in (("Coverage", results.coverage), ("Mass errors", results.mass_errors)):
        at = next(i for i in range(tabs.count()) if tabs.tabText(i) == title)
        hand.click(tabs.tabBar(), tabs.tabBar().tabRect(at).center())
        qtbot.waitUntil(lambda at=at: tabs.currentIndex() == at)
        settle(results, qtbot)
        assert page.isVisible()


def test_peptide_is_found_by_its_sequence_in_three_actions(shared_results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    results = shared_results
    peptide = shown(results.peptides, "peptide")[0]
    residues = max(re.findall("[A-Z]+(?![a-z])", peptide), key=len)[:5]
    hand.press("ctrl", "f")
    qtbot.waitUntil(results.filter_bar.text.hasFocus)
    hand.type(residues)
    qtbot.waitUntil(lambda: results.filter_bar.text.text() == residues)
    qtbot.wait(300)
    settle(results, qtbot)
    assert peptide in shown(results.peptides, "peptide")


def test_psm_is_copied_and_starred_in_three_actions(results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    hand.click(*place_of(results.psms, 0))
    qtbot.waitUntil(results.psms.view.hasFocus)
    hand.press("ctrl", "c")
    qtbot.waitUntil(lambda: QGuiApplication.clipboard().text().count("\n") == 2)
    assert len({line.count("\t") for line in QGuiApplication.clipboard().text().splitlines()}) == 1
    settle(results, qtbot)
    hand.press("ctrl", "d")
    qtbot.waitUntil(lambda: any(shown(results.psms, "starred")))


def test_sorting_by_score_shows_the_worst_accepted_matches(shared_results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    results = shared_results
    header, names = results.psms.view.horizontalHeader(), [column.name for column in results.psms.model.columns]
    section = names.index("score")
    x = header.sectionViewportPosition(section) + header.sectionSize(section) // 2
    assert 0 < x < header.viewport().width(), "the column of scores is visible"
    for _ in range(2):
        hand.click(header.viewport(), QPoint(x, header.height() // 2))
        settle(results, qtbot)
        # A second click that follows at once is a double click.
        qtbot.wait(QApplication.doubleClickInterval() + 50)
        if dict(results.psms.model.order).get("score") is False:
            break
    scores = shown(results.psms, "score")
    assert scores == sorted(scores)


def test_button_above_results_opens_a_follow_up_form(
    window: MainWindow, results: IdentificationView, project: Project, hand: Hand, qtbot: QtBot
) -> None:
    for kind in ("explain", "quantify"):
        window.show_page(results)
        settle(results, qtbot)
        action = results.follow_ups[kind]
        button = next(widget for widget in action.associatedObjects() if isinstance(widget, QToolButton) and widget.isVisible())
        assert button.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonTextBesideIcon and button.text() == action.iconText() != ""
        hand.click(button)
        search = window.searches[kind]
        qtbot.waitUntil(lambda search=search: search.made_form is not None and window.pages.currentWidget() is search.made_form)
        assert results.run is not None and search.form.project_folder() == project.folder
        assert search.form.parameters.values()["run"] in (results.run.id, (results.run.id,))


def test_follow_up_searches_are_disabled_for_a_run_without_psms(
    window: MainWindow, results: IdentificationView, project: Project, hand: Hand, qtbot: QtBot
) -> None:
    base = identification(20)
    nothing = replace(base, psms=base.psms.slice(0, 0), peptides=base.peptides.slice(0, 0), proteins=base.proteins.slice(0, 0))
    empty = add_run(project, nothing, spectra_table(base))
    window.open_project(project.folder)
    qtbot.waitUntil(lambda: results.run is not None and results.run.id == empty)
    settle(results, qtbot)

    def button_of(action: QAction) -> QToolButton:
        return next(widget for widget in action.associatedObjects() if isinstance(widget, QToolButton) and widget.isVisible())

    for kind in ("explain", "quantify", "evidence"):
        assert not results.follow_ups[kind].isEnabled()
        assert results.follow_ups[kind].toolTip() == "Not possible: this run found no PSMs"
    hand.click(button_of(results.follow_ups["quantify"]))
    qtbot.wait(100)
    assert window.pages.currentWidget() is results
    # The open search needs spectra only.
    assert results.follow_ups["modified"].isEnabled()

    pane = window.project_pane
    other = next(i for i in range(pane.runs.count()) if pane.records[i].id != empty)
    hand.click(pane.runs.viewport(), pane.runs.visualItemRect(pane.runs.item(other)).center())
    qtbot.waitUntil(lambda: results.run is not None and results.run.id == pane.records[other].id)
    settle(results, qtbot)
    assert results.follow_ups["quantify"].isEnabled() and "Not possible" not in results.follow_ups["quantify"].toolTip()
    hand.click(button_of(results.follow_ups["quantify"]))
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.searches["quantify"].made_form)


def test_parameters_of_another_run_are_shown_in_three_actions(
    window: MainWindow, results: IdentificationView, hand: Hand, qtbot: QtBot
) -> None:
    pane = window.project_pane
    assert results.run is not None
    before = results.run.id
    other = next(i for i in range(pane.runs.count()) if pane.records[i].id != before)
    hand.click(pane.runs.viewport(), pane.runs.visualItemRect(pane.runs.item(other)).center())
    qtbot.waitUntil(lambda: pane.selected_run is not None and pane.selected_run.id == pane.records[other].id)
    qtbot.waitUntil(lambda: results.run is not None and results.run.id != before)
    settle(results, qtbot)
    assert results.header.text != ""
    hand.click(pane.about_button)
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.run_actions.made_page and not window.run_actions.is_busy)
    page = window.run_actions.page
    assert page.account is not None and page.account.run.id == pane.records[other].id
    text = page.text.toPlainText()
    for parameter in window.searches["identify"].search.model.describe()[:5]:
        assert parameter.title in text


def test_all_spectra_are_listed_in_three_actions(shared_results: IdentificationView, hand: Hand, qtbot: QtBot) -> None:
    results = shared_results
    at = next(i for i in range(results.lists.count()) if results.lists.tabText(i) == "All spectra")
    hand.click(results.lists.tabBar(), results.lists.tabBar().tabRect(at).center())
    qtbot.waitUntil(lambda: results.lists.currentIndex() == at)
    settle(results, qtbot)
    panel = results.spectra.panel.table
    qtbot.waitUntil(lambda: panel.model.rowCount() > 0)
    assert panel.total > results.psms.total or False in shown(panel, "is_identified")
