"""Tests of panes: collapsed, maximised and detached ones, the 3D view's size, and the list of jobs that opens and closes automatically."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QSplitter, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.gui.docks import AutomaticDock
from proteoscope.gui.panes import Pane, PaneView, TitledPage, add_half, split
from proteoscope.gui.results.evidence_view import EvidenceView
from proteoscope.gui.results.identification_view import IdentificationView
from proteoscope.gui.theme import Theme
from proteoscope.gui.window import MainWindow
from tests.gui.result_views import settle
from tests.gui.test_jobs import UntilCancelled
from tests.gui.x_events import Hand, wait_until_still

_LEFT = Qt.MouseButton.LeftButton


class _View(PaneView):
    """Three panes: a page with a bar above a plain widget, and tabs next to them."""

    def __init__(self) -> None:
        super().__init__("Nothing to show")
        self.top, self.bottom, self.tabs = QLabel("top"), QLabel("bottom"), QTabWidget()
        self.tabs.addTab(QLabel("first"), "First")
        self.tabs.addTab(QLabel("second"), "Second")
        note = QLabel("note")
        self.upper = Pane("Upper", TitledPage("Upper", self.top, note, stretched=note), is_picture=True)
        self.lower = Pane("Lower", self.bottom)
        self.side = Pane("Side", self.tabs, is_picture=True)
        self.down = split(Qt.Orientation.Vertical, {self.upper: 1, self.lower: 1})
        self.across = split(Qt.Orientation.Horizontal, {self.down: 1, self.side: 1})
        self._add_panes(self.across, {"across": self.across, "down": self.down})
        self._show_panes()

    def state(self) -> dict[str, object]:
        return self._panes_state()

    def restore_state(self, state: dict[str, object]) -> None:
        self._restore_panes_state(state)

    def show_text(self, text: str) -> None:
        self._show_text(text)


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[_View]:
    widget = _View()
    qtbot.addWidget(widget)
    widget.resize(700, 500)
    with qtbot.waitActive(widget):
        widget.show()
        widget.activateWindow()
    yield widget
    widget.restore_panes()


def _title(pane: Pane, text: str) -> QLabel:
    return next(label for label in pane.findChildren(QLabel) if label.text() == text and label.font().bold())


def _strip(pane: Pane) -> QAbstractButton:
    return next(
        button for button in pane.findChildren(QAbstractButton) if button.accessibleName().startswith("Open ") and button.isVisible()
    )


def test_expanded_pane_has_the_size_before_it_was_collapsed(view: _View, qtbot: QtBot) -> None:
    before = view.down.sizes()
    QTest.mouseClick(view.upper.fold_button, _LEFT)
    qtbot.waitUntil(lambda: view.upper.height() < 40 and view.lower.height() > before[1] + before[0] - 60)
    assert view.upper.is_collapsed and not view.top.isVisible() and _strip(view.upper).text() == "Upper"
    QTest.keyClick(_strip(view.upper), Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: all(abs(size - old) < 4 for size, old in zip(view.down.sizes(), before, strict=True)))
    assert view.top.isVisible() and not view.upper.is_collapsed


def test_pane_next_to_others_collapses_to_a_vertical_title(view: _View, qtbot: QtBot) -> None:
    QTest.mouseClick(view.side.fold_button, _LEFT)
    qtbot.waitUntil(lambda: view.side.width() < 40)
    qtbot.waitUntil(lambda: view.side.height() > 400 and view.across.sizes()[0] > 600)


def test_click_collapses_and_double_click_maximises_a_pane(view: _View, qtbot: QtBot) -> None:
    title = _title(view.upper, "Upper")
    QTest.mouseDClick(title, _LEFT)
    assert view.upper.is_maximised and view.top.isVisible() and not view.bottom.isVisible() and not view.tabs.isVisible()
    qtbot.waitUntil(lambda: view.top.width() > 600 and view.top.height() > 400)
    qtbot.wait(QApplication.doubleClickInterval() + 50)
    assert view.upper.is_maximised, "the first click of a double-click does not collapse the pane"
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert not view.upper.is_maximised and view.bottom.isVisible() and view.tabs.isVisible()
    QTest.mouseClick(title, _LEFT)
    qtbot.waitUntil(lambda: view.upper.is_collapsed)


def test_f11_maximises_and_restores_the_focused_pane(view: _View, qtbot: QtBot) -> None:
    view.tabs.setFocus()
    QTest.keyClick(view.tabs, Qt.Key.Key_F11)
    assert view.side.is_maximised and view.tabs.isVisible() and not view.top.isVisible()
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_F11)
    assert not view.side.is_maximised and view.top.isVisible()


def test_escape_first_restores_a_maximised_pane(view: _View, qtbot: QtBot) -> None:
    from PySide6.QtGui import QShortcut

    used: list[str] = []
    shortcut = QShortcut(QKeySequence("Escape"), view.top, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
    shortcut.activated.connect(lambda: used.append("other"))
    view.top.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    view.top.setFocus()
    QTest.keyClick(view.top, Qt.Key.Key_F11)
    assert view.upper.is_maximised
    QTest.keyClick(view.top, Qt.Key.Key_Escape)
    assert not view.upper.is_maximised and used == []
    QTest.keyClick(view.top, Qt.Key.Key_Escape)
    assert used == ["other"]


def test_detached_pane_returns_when_its_window_is_closed(view: _View, qtbot: QtBot) -> None:
    sizes = view.across.sizes()
    QTest.mouseClick(view.side.detach_button, _LEFT)
    window = view.tabs.window()
    assert view.side.is_detached and window is not view and window.isVisible() and "Side" in window.windowTitle()
    qtbot.waitUntil(lambda: view.side.width() < 40)
    view.show_text("Opening the results…")
    assert view.side.is_detached, "the next run is shown in the window"
    view._show_panes()
    window.close()
    assert not view.side.is_detached and view.tabs.window() is view and view.tabs.isVisible()
    qtbot.waitUntil(lambda: all(abs(size - old) < 4 for size, old in zip(view.across.sizes(), sizes, strict=True)))


def test_view_shows_a_message_in_place_of_a_maximised_pane(view: _View) -> None:
    view.side.toggle_maximised()
    view.show_text("The run was deleted.")
    assert view.text == "The run was deleted." and not view.side.is_maximised
    view._show_panes()
    assert view.tabs.isVisible() and view.top.isVisible() and view.text == ""


def test_collapsed_panes_are_restored_from_stored_state(view: _View, qtbot: QtBot) -> None:
    view.lower.set_collapsed(True)
    state = view.state()
    assert state["collapsed"] == ["Lower"]
    again = _View()
    qtbot.addWidget(again)
    again.restore_state(state)
    assert again.lower.is_collapsed and not again.upper.is_collapsed
    for damaged in ({}, {"collapsed": 3, "sizes": []}, {"collapsed": [None], "sizes": {"down": ["x", 2]}}):
        again.restore_state(damaged)
        assert not any(pane.is_collapsed for pane in again.panes)


def test_pane_added_as_half_takes_half_of_the_width(view: _View, qtbot: QtBot) -> None:
    view.resize(1200, 500)
    qtbot.waitUntil(lambda: view.across.width() > 1100)
    half = Pane("Half", QLabel("half"))
    add_half(view.across, half)
    qtbot.waitUntil(lambda: abs(half.width() - view.across.width() / 2) < 12)


# ------------------------------------------------------------------------------------------------------------ results


def _all_pictures(view: QWidget) -> list[Pane]:
    return [pane for pane in view.findChildren(Pane) if pane.is_picture]


@pytest.mark.parametrize(
    "kind", ["identify", "modified", "align", "structures", "evidence", "cluster", "library", "explain", "reads", "quantify"]
)
def test_figures_of_each_result_view_are_maximised_and_detached(
    window: MainWindow, finished_run: Callable[[str], Path], kind: str, qtbot: QtBot
) -> None:
    window.open_project(finished_run(kind))
    view = window.results
    settle(view, qtbot)
    pictures = _all_pictures(view)
    assert pictures and len({pane.title for pane in view.panes}) == len(view.panes), "titles are stored"
    for pane in pictures:
        if not pane.isVisible():
            continue
        pane.toggle_maximised()
        assert pane.is_maximised and pane.content.isVisible()
        assert pane.content.height() > 0.8 * view.height() and pane.content.width() > 0.9 * view.width(), pane.title
        pane.toggle_maximised()
        pane.detach()
        assert pane.content.window() is not window and pane.content.isVisible()
        pane.attach()
        assert pane.content.window() is window and pane.content.isVisible()


def test_detached_pane_is_hidden_while_its_view_has_no_run(window: MainWindow, finished_run: Callable[[str], Path], qtbot: QtBot) -> None:
    window.open_project(finished_run("identify"))
    view = window.results
    settle(view, qtbot)
    pane = _all_pictures(view)[0]
    pane.detach()
    shown = pane.content.window()
    assert shown is not window and shown.isVisible()
    window.open_project(finished_run("align"))
    settle(window.results, qtbot)
    qtbot.waitUntil(lambda: view.run is None)
    assert pane.is_detached and not shown.isVisible(), "it would be empty"
    window.open_project(finished_run("identify"))
    settle(view, qtbot)
    assert window.results is view and shown.isVisible() and pane.content.isVisible()
    pane.attach()


def test_structure_pane_initially_has_half_of_the_view(window: MainWindow, finished_run: Callable[[str], Path], qtbot: QtBot) -> None:
    window.resize(1280, 800)
    window.open_project(finished_run("evidence"))
    view = window.results
    assert isinstance(view, EvidenceView)
    settle(view, qtbot)
    qtbot.waitUntil(lambda: view.structures is not None and view.structures.isVisible())
    assert view.structures is not None
    place = view.structures.parentWidget()
    across = next(splitter for splitter in view.findChildren(QSplitter) if splitter.indexOf(view._pane_of(view.structures)) == 1)
    assert place is not None and abs(across.sizes()[0] - across.sizes()[1]) < 20 and place.height() == across.height()


def test_collapsed_tables_are_remembered_for_each_result_view(
    make_window: Callable[[], MainWindow], finished_run: Callable[[str], Path], qtbot: QtBot
) -> None:
    first = make_window()
    first.open_project(finished_run("identify"))
    view = first.results
    assert isinstance(view, IdentificationView)
    settle(view, qtbot)
    view._pane_of(view.peptides).set_collapsed(True)
    view.header.about_button.click()
    assert not view.peptides.isVisible() and view.header.details_button.isVisible()
    first.close()
    second = make_window()
    second.open_project(finished_run("identify"))
    settle(second.results, qtbot)
    assert isinstance(second.results, IdentificationView)
    assert not second.results.peptides.isVisible() and second.results.proteins.isVisible()
    assert second.results.header.details_button.isVisible()


def test_panes_are_collapsed_and_maximised_by_mouse_and_keyboard(
    window: MainWindow, hand: Hand, finished_run: Callable[[str], Path], qtbot: QtBot
) -> None:
    window.open_project(finished_run("identify"))
    view = window.results
    assert isinstance(view, IdentificationView)
    settle(view, qtbot)
    table, rows = view._pane_of(view.peptides), view.psms.view.viewport().height()
    title = _title(table, "Peptides")
    wait_until_still(lambda: title.mapToGlobal(QPoint()) if title.isVisible() else None, qtbot)
    hand.click(title, QPoint(10, title.height() // 2))
    qtbot.waitUntil(lambda: table.is_collapsed and view.psms.view.viewport().height() > rows + 40)
    figures, bar = view._pane_of(view.tabs), view.tabs.tabBar()
    place = bar.tabRect(2).center()
    hand.click(bar, place)
    qtbot.waitUntil(lambda: view.tabs.currentIndex() == 2)
    qtbot.wait(QApplication.doubleClickInterval() + 100)
    hand.double_click(bar, place)
    qtbot.waitUntil(lambda: figures.is_maximised)
    assert view.tabs.currentIndex() == 2 and view.scores.isVisible() and not view.proteins.isVisible()
    hand.press("escape")
    qtbot.waitUntil(lambda: not figures.is_maximised and view.proteins.isVisible())
    wait_until_still(lambda: view.scores.mapToGlobal(QPoint()), qtbot)
    hand.click(view.scores)
    hand.press("f11")
    qtbot.waitUntil(lambda: figures.is_maximised)
    hand.press("f11")
    qtbot.waitUntil(lambda: not figures.is_maximised)


def test_details_page_of_a_run_opens_from_the_header(window: MainWindow, finished_run: Callable[[str], Path], qtbot: QtBot) -> None:
    window.open_project(finished_run("identify"))
    settle(window.results, qtbot)
    header = window.results.header
    assert "false at 1 % FDR" in header.chip.text() and "decoy" in header.chip.accessibleDescription()
    assert not header.details_button.isVisible() and "PSMs:" in header.chip.toolTip()
    header.about_button.click()
    header.details_button.click()
    qtbot.waitUntil(lambda: window.pages.currentWidget() is window.run_actions.made_page)
    account = window.run_actions.page.account
    assert account is not None and window.results.run is not None and account.run.id == window.results.run.id


# ------------------------------------------------------------------------------------------------------------ the list of jobs


def test_jobs_pane_opens_while_a_job_runs_and_closes_when_idle(window: MainWindow, qtbot: QtBot) -> None:
    assert not window.dock_jobs.isVisible()
    job = window.queue.add("one", UntilCancelled())
    window.job_strip.begin()
    assert window.dock_jobs.isVisible()
    other = window.queue.add("two", UntilCancelled())
    window.queue.cancel(job)
    qtbot.waitUntil(lambda: job.is_over)
    qtbot.wait(50)
    assert window.dock_jobs.isVisible(), "another job runs"
    window.queue.cancel(other)
    qtbot.waitUntil(lambda: not window.dock_jobs.isVisible())


def test_jobs_pane_closed_by_the_user_remains_closed(make_window: Callable[[], MainWindow], qtbot: QtBot) -> None:
    window = make_window()
    window.job_strip.begin()
    close = next(button for button in window.dock_jobs.titleBarWidget().findChildren(QAbstractButton) if "Close" in button.toolTip())
    QTest.mouseClick(close, _LEFT)
    assert not window.dock_jobs.isVisible()
    window.job_strip.begin()
    assert not window.dock_jobs.isVisible()
    window.close()
    again = make_window()
    again.job_strip.begin()
    assert not again.dock_jobs.isVisible(), "the choice is stored"
    again.dock_jobs.toggleViewAction().trigger()
    assert again.dock_jobs.isVisible()
    strip: AutomaticDock = again.job_strip
    strip.end()
    qtbot.wait(50)
    assert again.dock_jobs.isVisible(), "opened by the user"
