"""Tests of tabs in narrow bars."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QStyle, QTabBar, QToolButton
from pytestqt.qtbot import QtBot

from proteoscope.gui.layouts import make_tabs
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.tabs import PageTabs
from proteoscope.gui.window import MainWindow
from tests.gui.result_views import settle

_TITLES = ("Spectrum", "Coverage", "Scores", "Mass errors", "Chromatogram", "LC-MS map")


def padding(bar: QTabBar) -> int:
    """Return the pixels of a tab next to its title; with fewer, the title is elided."""
    return bar.style().pixelMetric(QStyle.PixelMetric.PM_TabBarTabHSpace)


@pytest.fixture
def tabs(qtbot: QtBot) -> PageTabs:
    """Return the tabs of an identification, with space for all titles."""
    made = make_tabs(*((QLabel(title), title, f"The {title.lower()} of the run" if title != "Scores" else "") for title in _TITLES))
    qtbot.addWidget(made)
    made.resize(900, 200)
    made.show()
    return made


def titles(tabs: PageTabs) -> tuple[str, ...]:
    return tuple(tabs.tabText(index) for index in range(tabs.count()))


def tab_bar(tabs: PageTabs) -> QTabBar:
    return tabs.tabBar()


def has_arrows(tabs: PageTabs) -> bool:
    return any(button.isVisible() for button in tab_bar(tabs).findChildren(QToolButton))


def test_tab_titles_are_short_while_the_bar_is_narrow(tabs: PageTabs, qtbot: QtBot) -> None:
    assert titles(tabs) == _TITLES
    full = tab_bar(tabs).sizeHint().width()
    tabs.resize(full - 60, 200)
    qtbot.waitUntil(lambda: titles(tabs) == ("Spectrum", "Coverage", "Scores", "Errors", "Chrom.", "Map"))
    assert not has_arrows(tabs)
    assert tabs.tabToolTip(5) == "LC-MS map: the lc-ms map of the run" and tab_bar(tabs).accessibleTabName(5) == "LC-MS map"
    tabs.resize(900, 200)
    qtbot.waitUntil(lambda: titles(tabs) == _TITLES)


def test_selected_tab_title_is_complete_in_a_narrow_bar(tabs: PageTabs, qtbot: QtBot) -> None:
    tabs.resize(290, 200)
    for index in range(tabs.count()):
        tabs.setCurrentIndex(index)
        qtbot.wait(1)
        bar, text = tab_bar(tabs), tabs.tabText(index)
        assert bar.tabRect(index).width() >= bar.fontMetrics().horizontalAdvance(text) + padding(bar), text
        assert not has_arrows(tabs) and bar.rect().contains(bar.tabRect(index))


@pytest.mark.parametrize("size", [QSize(1280, 800), QSize(1024, 700)], ids=["1280", "1024"])
def test_tabs_next_to_the_spectrum_fit_without_arrows(window: MainWindow, finished_run, size: QSize, qtbot: QtBot) -> None:
    window.resize(size)
    window.open_project(finished_run("identify"))
    results: RunView = window.results
    settle(results, qtbot)
    tabs = results.findChildren(PageTabs)
    assert any(bar.count() == len(_TITLES) for bar in tabs)
    for shown in tabs:
        for index in range(shown.count()):
            shown.setCurrentIndex(index)
            qtbot.wait(1)
            place, bar = tab_bar(shown).tabRect(index), tab_bar(shown)
            assert not has_arrows(shown) and bar.rect().contains(place)
            # Next to the spectrum, all titles are whole, not only the selected one.
            whole = range(shown.count()) if shown.count() == len(_TITLES) else [index]
            for tab in whole:
                assert bar.tabRect(tab).width() >= bar.fontMetrics().horizontalAdvance(shown.tabText(tab)) + padding(bar)
            assert size.width() < 1280 or shown.count() < len(_TITLES) or titles(shown) == _TITLES
