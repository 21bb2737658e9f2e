"""Tests that everything is readable and reachable with a large font in a small window.

No widget is smaller than it needs, or out of reach of the scroll bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLabel, QPushButton, QScrollArea, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.searches import SEARCHES
from proteoscope.gui.scrolling_layout import FoldingBar, PageScroll
from proteoscope.gui.settings import FONT_SCALES
from proteoscope.gui.theme import scale_font
from proteoscope.gui.window import MainWindow
from tests.gui.layout_problems import clipped_widgets, cut_words
from tests.gui.result_views import cut_off, settle

_KINDS = ("identify", "align", "structures", "modified", "evidence", "library", "quantify")
SIZES = pytest.mark.parametrize(
    "large", [pytest.param((150, QSize(1024, 700)), marks=pytest.mark.long), (200, QSize(1280, 800))], ids=str, indirect=True
)
"""Font sizes and window sizes; the second window is narrower and lower in characters."""


@pytest.fixture
def large(request: pytest.FixtureRequest, qapp: QApplication) -> Iterator[QSize]:
    """Window size; until the end the font has this percentage of its usual size."""
    percent, size = request.param
    usual = qapp.font()
    scale_font(qapp, percent)
    yield size
    qapp.setFont(usual)


@pytest.fixture
def small_window(large: QSize, make_window: Callable[[], MainWindow], qtbot: QtBot) -> MainWindow:
    window = make_window()
    window.resize(large)
    qtbot.wait(20)
    assert window.size() == large
    return window


def scrolled_across(top: QWidget) -> list[int]:
    """Return how far pages must be scrolled sideways; figures may be wider than their view."""
    areas = [area for area in top.findChildren(QScrollArea) if area.isVisibleTo(top) and area.widget().layout() is not None]
    return [area.horizontalScrollBar().maximum() for area in areas]


def assert_can_be_reached(top: QWidget) -> None:
    # Layouts of a page that was just shown may settle in several steps.
    for _ in range(50):
        if not (clipped_widgets(top) or cut_off(top) or cut_words(top)):
            break
        QTest.qWait(20)
    assert clipped_widgets(top) == []
    assert cut_off(top) == []
    assert cut_words(top) == []


def assert_fits(top: QWidget) -> None:
    assert_can_be_reached(top)
    assert not any(scrolled_across(top))


@SIZES
def test_forms_are_readable_with_a_large_font(small_window: MainWindow, qtbot: QtBot) -> None:
    for search in SEARCHES:
        small_window.new_search(search.kind)
        small_window.form.parameters.unfold()
        qtbot.wait(30)
        assert small_window.size().width() <= small_window.screen().size().width()
        assert_fits(small_window.form)


@SIZES
def test_result_views_are_readable_with_a_large_font(
    small_window: MainWindow, finished_run: Callable[[str], Path], large: QSize, qtbot: QtBot
) -> None:
    for kind in _KINDS:
        small_window.open_project(finished_run(kind))
        view = small_window.results
        settle(view, qtbot)
        for panel in view.panels.values():
            if panel.model.rowCount():
                panel.view.choose(0)
                settle(view, qtbot)
        assert small_window.size() == large, kind
        assert_can_be_reached(view)
        for tabs in view.findChildren(QTabWidget):
            for index in range(1, tabs.count()):
                tabs.setCurrentIndex(index)
                settle(view, qtbot)
                assert_can_be_reached(view)


@SIZES
def test_pages_and_dialogs_are_readable_with_a_large_font(
    small_window: MainWindow, finished_run: Callable[[str], Path], qtbot: QtBot
) -> None:
    assert_fits(small_window.start_page)
    small_window.show_devices()
    qtbot.waitUntil(lambda: small_window.devices.is_known and not small_window.device_page.is_busy)
    qtbot.wait(50)
    assert_fits(small_window.device_page)
    small_window.open_project(finished_run("identify"))
    settle(small_window.results, qtbot)
    small_window.project_pane.about_action.trigger()
    qtbot.waitUntil(lambda: not small_window.run_actions.is_busy)
    qtbot.wait(30)
    assert_fits(small_window.run_actions.page)
    assert_fits(small_window.project_pane)
    for show in (small_window.dialogs.new_database, small_window.dialogs.convert_spectra, small_window.dialogs.predict_library):
        show()
        qtbot.wait(30)
        (dialog,) = [dialog for dialog in small_window.findChildren(QDialog) if dialog.isVisible()]
        assert_fits(dialog)
        screen = dialog.screen().availableGeometry()
        assert dialog.width() <= screen.width() and dialog.height() <= screen.height()
        dialog.close()
        dialog.deleteLater()
        qtbot.wait(1)


@SIZES
def test_tour_is_readable_with_a_large_font(small_window: MainWindow, qtbot: QtBot) -> None:
    small_window.assistance.start_tour()
    tour = small_window.assistance.tour
    assert tour is not None
    while tour.step < len(tour._steps) - 1:
        qtbot.wait(10)
        assert_fits(tour)
        tour.go(tour.step + 1)
    tour.leave()


def test_page_scrolls_only_if_it_does_not_fit(qtbot: QtBot) -> None:
    """Check texts that may wrap into more lines; Qt's own scroll area would give the page its preferred height."""
    from PySide6.QtWidgets import QListWidget, QVBoxLayout

    page = QWidget()
    column = QVBoxLayout(page)
    words, rows = QLabel("many words " * 30, wordWrap=True), QListWidget()
    rows.setMinimumHeight(100)
    column.addWidget(words)
    column.addWidget(rows)
    area = PageScroll(page)
    qtbot.addWidget(area)
    area.resize(400, 250)
    area.show()
    down, across = area.verticalScrollBar(), area.horizontalScrollBar()
    assert page.size() == area.size() and down.maximum() == across.maximum() == 0
    assert page.height() < page.layout().totalHeightForWidth(page.width()), "no more than it needs, although it prefers more"
    area.resize(400, 120)
    assert down.maximum() > 0 and across.maximum() == 0
    assert words.height() >= words.heightForWidth(words.width()) and rows.height() >= 100
    rows.setMinimumWidth(900)
    qtbot.waitUntil(lambda: across.maximum() > 0)
    assert page.width() >= 900
    rows.setMinimumWidth(0)
    area.resize(400, 250)
    qtbot.waitUntil(lambda: down.maximum() == across.maximum() == 0)


def test_toolbar_uses_two_lines_if_its_groups_do_not_fit(qtbot: QtBot) -> None:
    bar = FoldingBar((4, 4, 4, 4), 4)
    first, second = QLabel("first group"), QLabel("second group")
    bar.first.addWidget(first)
    bar.second.addWidget(second)
    bar.want(200)
    qtbot.addWidget(bar)
    bar.resize(600, 30)
    bar.show()
    assert not bar.is_folded and second.x() > first.x() and second.y() == first.y()
    height = bar.minimumSizeHint().height()
    bar.resize(200, 60)
    qtbot.waitUntil(lambda: bar.is_folded and second.y() > first.y())
    assert bar.minimumSizeHint().height() > height and bar.minimumSizeHint().width() <= 200


def test_toolbar_uses_two_lines_when_a_hidden_button_appears(qtbot: QtBot) -> None:
    page, bar = QWidget(), FoldingBar((4, 4, 4, 4), 4)
    bar.setParent(page)
    first, second, third = QPushButton("first"), QPushButton("second"), QPushButton("a button that appears later")
    bar.first.addWidget(first)
    bar.second.addWidget(second)
    bar.second.addWidget(third)
    third.hide()
    qtbot.addWidget(page)
    bar.resize(bar.width_in_line + 10, 80)
    page.show()
    assert not bar.is_folded
    third.show()
    qtbot.waitUntil(lambda: bar.is_folded and second.y() > first.y())
    third.hide()
    qtbot.waitUntil(lambda: not bar.is_folded and second.y() == first.y())


def test_largest_font_size_is_200_percent() -> None:
    """Check a requirement of the Web Content Accessibility Guidelines (1.4.4)."""
    assert FONT_SCALES[-1] == 200
