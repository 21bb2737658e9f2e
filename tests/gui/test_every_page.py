"""Tests that on every page and dialog, in the usual window sizes, no text is cut and no controls overlap."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("PySide6.QtWidgets", exc_type=ImportError)

from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QTabBar,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from proteoscope.gui.theme import Theme, ThemeChoice
from proteoscope.gui.window import MainWindow
from tests.gui.every_page import EveryPage
from tests.gui.layout_problems import lasting_problems, layout_problems, out_of_reach
from tests.gui.result_views import cut_off

_SMALL, _USUAL = (1024, 700), (1280, 800)
_WALK = "test_no_page_tab_or_dialog_cuts_off_its_contents"
_DENSE = "identify", "modified", "evidence"
"""Kinds of results with the most panes, tabs and fields."""


@pytest.mark.parametrize(
    ("choice", "sizes", "is_whole"),
    [
        ("light", (_USUAL,), True),
        ("contrast", (_SMALL,), False),
        pytest.param("light", (_SMALL,), True, marks=pytest.mark.long),
        pytest.param("dark", (_USUAL,), True, marks=pytest.mark.long),
        pytest.param("contrast", (_SMALL, _USUAL), True, marks=pytest.mark.long),
    ],
    ids=["light-1280", "contrast-1024-some", "light-1024", "dark-1280", "contrast"],
)
def test_no_page_tab_or_dialog_cuts_off_its_contents(
    choice: ThemeChoice,
    sizes: tuple[tuple[int, int], ...],
    is_whole: bool,
    theme: Theme,
    make_window: Callable[[], MainWindow],
    finished_run: Callable[[str], Path],
    qtbot: QtBot,
) -> None:
    """In high contrast, more widgets have frames."""
    theme.choose(choice)
    window = make_window()
    window.resize(*sizes[0])

    def settle(is_busy: Callable[[], bool]) -> None:
        qtbot.wait(5)
        qtbot.waitUntil(lambda: not is_busy())

    pause = partial(qtbot.wait, 20)
    problems, names = [], []
    pages = EveryPage(window, finished_run, settle)
    for page in pages if is_whole else chain(pages.form("identify"), *map(pages.results, _DENSE)):
        names.append(page.name)
        for size in sizes if page.widget is window else ():
            window.resize(*size)
            qtbot.wait(1)
            assert (window.width(), window.height()) == size, page.name
            problems += [f"{page.name}, {size[0]} px: {problem}" for problem in lasting_problems(window, pause)]
        if page.widget is not window:
            problems += [f"{page.name}: {problem}" for problem in lasting_problems(page.widget, pause)]
    assert problems == []
    assert len(names) == len(set(names)) > (100 if is_whole else 20)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs a large virtual display")
def test_no_page_cuts_off_its_contents_on_a_screen_with_scale_2() -> None:
    """Qt reads the scale when the program starts."""
    environment = {**os.environ, "QT_SCALE_FACTOR": "2", "PYTEST_XDIST_WORKER": "scaled"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"{__file__}::{_WALK}[light-1280]"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout[-20_000:]


def test_layout_check_detects_text_beyond_an_edge(qtbot: QtBot) -> None:
    page, inner = QWidget(), QLabel("a text that is longer than its place")
    inner.setParent(page)
    inner.setGeometry(80, 0, 40, 20)
    qtbot.addWidget(page)
    page.resize(100, 50)
    page.show()
    assert len(out_of_reach(page)) == 1 and len(cut_off(page)) == 1
    inner.move(20, 0)
    assert out_of_reach(page) == []


def test_layout_check_detects_cut_controls_and_overlaps(qtbot: QtBot) -> None:
    page = QWidget()
    first, second, bar, choice, box = QPushButton("Run"), QPushButton("Stop"), QTabBar(), QComboBox(), QGroupBox("Minimum matched peaks")
    bar.setUsesScrollButtons(True)
    for title in ("Spectrum", "Coverage"):
        bar.addTab(title)
    choice.addItem("Spectral dot product")
    for widget, x, width in ((first, 0, 100), (second, 120, 100), (bar, 240, 300), (choice, 560, 300), (box, 880, 300)):
        widget.setParent(page)
        widget.setGeometry(x, 0, width, 40)
    qtbot.addWidget(page)
    page.resize(1200, 50)
    page.show()
    assert layout_problems(page) == []
    for widget, kind in ((bar, "tab "), (choice, "choice "), (box, "group ")):
        widget.resize(60, 40)
        problems = layout_problems(page)
        assert problems and all(problem.startswith(kind) for problem in problems)
        widget.resize(300, 40)
    second.move(80, 0)
    assert layout_problems(page) == ["QPushButton 'Stop' on QPushButton 'Run' by PySide6.QtCore.QSize(20, 40)"]


def test_layout_check_detects_cut_cells_and_scrolled_dialogs(qtbot: QtBot) -> None:
    dialog, table, area, page = QDialog(), QTableWidget(1, 1), QScrollArea(), QWidget()
    table.setHorizontalHeaderLabels(["Peptide"])
    table.setItem(0, 0, QTableWidgetItem("HLVDEPQNLIK"))
    QVBoxLayout(page).addWidget(QLabel("a page"))
    area.setWidgetResizable(True)
    area.setWidget(page)
    row = QHBoxLayout(dialog)
    row.addWidget(table)
    row.addWidget(area)
    qtbot.addWidget(dialog)
    dialog.resize(500, 300)
    dialog.show()
    table.setColumnWidth(0, 200)
    assert layout_problems(dialog) == []
    table.setColumnWidth(0, 30)
    assert len(layout_problems(dialog)) == 2
    for item in (table.item(0, 0), table.horizontalHeaderItem(0)):
        assert item is not None
        item.setToolTip("HLVDEPQNLIK")
    assert layout_problems(dialog) == []
    page.setMinimumHeight(1000)
    qtbot.waitUntil(lambda: len(layout_problems(dialog)) == 1)
