"""Tests of the message bar, which moves no other control, of unwanted windows, and of the height of a spectrum above its ion table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QToolTip, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.gui.results.modified_view import ModifiedView
from proteoscope.gui.status_bar import StatusBar
from proteoscope.gui.window import MainWindow
from tests.gui.result_views import settle
from tests.gui.x_events import Hand

_LONG = "/a/folder/" + "of a project with a long name/" * 6 + "sample.mzML: is cut off at byte 12,345,678. Copy the file again."


def places(window: MainWindow) -> dict[QWidget, tuple[QPoint, int, int]]:
    """Return the places of all visible buttons outside the message bar."""
    bar = window.message_bar
    shown = [button for button in window.findChildren(QAbstractButton) if button.isVisible() and not bar.isAncestorOf(button)]
    return {button: (button.mapToGlobal(QPoint()), button.width(), button.height()) for button in shown}


@pytest.mark.parametrize("size", [(1280, 800), (1024, 700)])
def test_message_bar_does_not_move_any_button(window: MainWindow, size: tuple[int, int], qtbot: QtBot) -> None:
    window.resize(*size)
    for show in (lambda: None, window.show_form):
        show()
        window.message_bar.clear()
        qtbot.wait(30)
        before, central = places(window), window.pages.geometry()
        assert len(before) > 10
        for text in ("Short", _LONG):
            window.message_bar.show_message(text, "wrong", "Show log")
            qtbot.wait(30)
            assert places(window) == before and window.pages.geometry() == central
            window.message_bar.clear()
            qtbot.wait(30)
            assert places(window) == before


def test_message_bar_does_not_move_the_button_under_the_pointer(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    window.show_form()
    button = window.form.run_button
    qtbot.waitUntil(lambda: button.isVisible() and button.isEnabled() is False)
    at = button.mapToGlobal(QPoint())
    window.show_error("a.mzML: is cut off.")
    qtbot.wait(50)
    assert button.mapToGlobal(QPoint()) == at
    hand.click(window.message_bar.close_button)
    qtbot.waitUntil(lambda: not window.message_bar.isVisible())
    assert button.mapToGlobal(QPoint()) == at and hand.n_actions == 1


def test_message_bar_shows_a_long_message_in_full_on_request(window: MainWindow, hand: Hand, qtbot: QtBot) -> None:
    bar = window.message_bar
    bar.show_message("Short", "good")
    assert not bar.more_button.isVisible()
    window.show_error(_LONG)
    qtbot.waitUntil(bar.more_button.isVisible)
    assert bar.label.is_cut() and bar.label.toolTip() != ""
    assert all(bar.rect().contains(button.geometry()) for button in (bar.more_button, bar.button, bar.close_button))
    qtbot.wait(50)
    hand.click(bar.more_button)
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is not None)
    popup = QApplication.activePopupWidget()
    assert popup is not None and [label.text() for label in popup.findChildren(QLabel)] == [_LONG]
    assert popup.geometry().bottom() < bar.mapToGlobal(QPoint()).y() + bar.height()
    hand.press("escape")
    qtbot.waitUntil(lambda: QApplication.activePopupWidget() is None)


@pytest.mark.parametrize("has_bar", [False, True])
def test_status_bar_elides_a_long_message_and_has_a_tooltip(window: MainWindow, has_bar: bool, qtbot: QtBot) -> None:
    window.resize(1024, 700)
    if has_bar:
        window.message_bar.show_message("Wrote 3 files", "good")
    bar = window.statusBar()
    assert isinstance(bar, StatusBar)
    window.show_briefly(_LONG)
    qtbot.wait(30)
    place, shown = bar.message_place, bar.shown_message()
    others = [widget.geometry() for widget in bar.findChildren(QWidget) if widget.isVisible() and widget.parentWidget() is bar]
    assert others and not any(place.intersects(other) for other in others)
    assert shown.endswith("…") and 0 < bar.fontMetrics().horizontalAdvance(shown) <= place.width()
    at = place.center()
    QApplication.sendEvent(bar, QHelpEvent(QEvent.Type.ToolTip, at, bar.mapToGlobal(at)))
    assert "".join(QToolTip.text().split()) == "".join(_LONG.split())
    QToolTip.hideText()
    window.show_briefly("Saved 3 rows.")
    assert bar.shown_message() == "Saved 3 rows."


class _Spy(QObject):
    """Lists the widgets that are shown as windows of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.shown.append(f"{type(watched).__name__} {watched.objectName()}")
        return False


def test_forms_and_results_open_no_separate_windows(
    window: MainWindow, finished_run: Callable[[str], Path], theme: QObject, qtbot: QtBot
) -> None:
    spy, application = _Spy(), QApplication.instance()
    assert application is not None
    application.installEventFilter(spy)
    try:
        for search in window.searches.values():
            search.form.show_problem()
            search.results.show_all(next(iter(search.results.panels)))
        window.open_project(finished_run("modified"))
        settle(window.results, qtbot)
    finally:
        application.removeEventFilter(spy)
    assert spy.shown == []


def test_spectrum_has_enough_height_above_the_ion_table(window: MainWindow, finished_run: Callable[[str], Path], qtbot: QtBot) -> None:
    window.resize(1280, 740)
    window.dock_jobs.show()
    window.open_project(Project.open(finished_run("modified")).folder)
    window.message_bar.show_message("Finished", "good", "Show results")
    view = window.results
    assert isinstance(view, ModifiedView)
    settle(view, qtbot)
    view.psms.view.choose(2)
    settle(view, qtbot)
    view.figures.setCurrentIndex(1)
    qtbot.waitUntil(lambda: view.spectrum.plot.isVisible() and len(view.spectrum.plot._panels) == 2)
    peaks, errors = (panel.box for panel in view.spectrum.plot._panels)
    qtbot.waitUntil(lambda: peaks.height() >= 60)
    assert peaks.height() > 2 * errors.height() > 20
    metrics = view.spectrum.plot.fontMetrics()
    for axis in (panel.left for panel in view.spectrum.plot._panels):
        assert metrics.horizontalAdvance(axis.labelText) <= axis.height() + 2
