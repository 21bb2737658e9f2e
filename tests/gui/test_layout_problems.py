"""Tests that the checks of the layout detect text and controls that are cut, overlap, or are out of reach."""

from __future__ import annotations

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

from tests.gui.layout_problems import clipped_widgets, layout_problems
from tests.gui.result_views import cut_off


def test_layout_check_detects_text_beyond_an_edge(qtbot: QtBot) -> None:
    page, inner = QWidget(), QLabel("a text that is longer than its place")
    inner.setParent(page)
    inner.setGeometry(80, 0, 40, 20)
    qtbot.addWidget(page)
    page.resize(100, 50)
    page.show()
    assert len(clipped_widgets(page)) == 1 and len(cut_off(page)) == 1
    inner.move(20, 0)
    assert clipped_widgets(page) == []


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
