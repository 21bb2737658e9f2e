"""What tests of every view of results do: wait, read a table, click a row, look for texts that have no room."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget
from pytestqt.qtbot import QtBot

from engine.project import Project
from gui.results.filter_bar import FilterBar
from gui.results.run_view import RunView
from gui.tables.elided_label import ElidedLabel
from gui.tables.panel import TablePanel


def settle(view: RunView, qtbot: QtBot) -> None:
    qtbot.wait(20)
    qtbot.waitUntil(lambda: not view.is_busy)
    qtbot.wait(20)
    qtbot.waitUntil(lambda: not view.is_busy)


def shown(panel: TablePanel, name: str) -> list[Any]:
    section = [column.name for column in panel.model.columns].index(name)
    return [panel.model.index(row, section).data(Qt.ItemDataRole.UserRole) for row in range(len(panel.model.rows))]


def click_row(panel: TablePanel, position: int, qtbot: QtBot) -> None:
    view = panel.view
    index = panel.model.index(position, view.horizontalHeader().logicalIndexAt(5))
    view.scrollTo(index)
    at = view.visualRect(index).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, at.y()))


def overlapping(bar: FilterBar) -> list[str]:
    """Fields and labels of a filter that stand on each other, or beyond the bar's ends, or have too little room."""
    shown = [part for part in bar.findChildren(QWidget) if part.isVisible() and part.parentWidget() is bar]
    places = [(type(part).__name__, part.geometry()) for part in shown]
    found = [f"{name} {place}" for name, place in places if not bar.rect().contains(place)]
    found += [f"{part} {part.width()}" for part in shown if part.width() < (part.minimumWidth() or part.minimumSizeHint().width())]
    return found + [f"{one} on {other}" for i, (one, a) in enumerate(places) for other, b in places[:i] if a.intersects(b)]


def cut_off(view: QWidget) -> list[str]:
    """Texts that have less room than they need."""
    found = []
    for widget in view.findChildren(QWidget):
        if not widget.isVisible() or isinstance(widget, ElidedLabel) or not isinstance(widget, QLabel | QAbstractButton):
            continue
        text = widget.text()
        if text.strip() and not (isinstance(widget, QLabel) and widget.wordWrap()):
            needed = widget.minimumSizeHint()
            if widget.width() < needed.width() or widget.height() < needed.height() - 1:
                found.append(f"{text}: {widget.size()} of {needed}")
    return found


def opened(view: RunView, project: Project, qtbot: QtBot) -> None:
    """Show a view as a window of its own, with the project's newest run of its kind, and wait until all is drawn."""
    qtbot.addWidget(view)
    view.resize(1300, 850)
    with qtbot.waitActive(view):
        view.show()
        view.activateWindow()
    view.show_run(project, None)
    settle(view, qtbot)
