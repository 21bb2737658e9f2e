"""Helpers for tests of result views: wait, read a table, click a row, find texts that are cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QAbstractSpinBox, QApplication, QComboBox, QLabel, QLineEdit, QTabWidget, QWidget
from pytestqt.qtbot import QtBot

from proteoscope.engine.project import Project
from proteoscope.engine.views.figures import Corner
from proteoscope.gui.elided_label import ElidedLabel
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.results.comparison_view import ComparisonView
from proteoscope.gui.results.filter_bar import FilterBar
from proteoscope.gui.results.run_view import RunView
from proteoscope.gui.tables.panel import TablePanel

View = TypeVar("View", bound=RunView)


def settle(view: RunView | ComparisonView, qtbot: QtBot) -> None:
    """Wait until everything is read and shown: what was read may start further reading in the events that follow."""
    n_idle = 0
    while n_idle < 3:
        qtbot.wait(2)
        n_idle = 0 if view.is_busy else n_idle + 1
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


def place_of(panel: TablePanel, row: int) -> tuple[QWidget, QPoint]:
    """Return the position to click for a visible row."""
    view = panel.view
    at = view.visualRect(view.model().index(row, view.horizontalHeader().logicalIndexAt(5))).center()
    assert view.viewport().rect().contains(QPoint(20, at.y())), "the row is not visible"
    return view.viewport(), QPoint(20, at.y())


def corner_texts(plot: FigureView) -> list[str]:
    """Return the texts in the corners of a plot."""
    panels = () if plot.figure is None else plot.figure.panels
    return [mark.text for panel in panels for mark in panel.marks if isinstance(mark, Corner)]


def overlapping(bar: FilterBar) -> list[str]:
    """Return fields and labels of a filter that overlap, exceed the bar, or are too small."""
    shown = [part for part in bar.findChildren(QWidget) if part.isVisible() and part.parentWidget() is bar]
    places = [(type(part).__name__, part.geometry()) for part in shown]
    problems = [f"{name} {place}" for name, place in places if not bar.rect().contains(place)]
    problems += [f"{part} {part.width()}" for part in shown if part.width() < (part.minimumWidth() or part.minimumSizeHint().width())]
    return problems + [f"{first} on {second}" for i, (first, a) in enumerate(places) for second, b in places[:i] if a.intersects(b)]


def cut_off(view: QWidget) -> list[str]:
    """Return texts that have less space than they need."""
    problems = []
    for widget in (*view.findChildren(QLabel), *view.findChildren(QAbstractButton)):
        if not widget.isVisible() or isinstance(widget, ElidedLabel):
            continue
        text = widget.text()
        if text.strip() and not (isinstance(widget, QLabel) and widget.wordWrap()):
            needed = widget.minimumSizeHint()
            if widget.width() < needed.width() or widget.height() < needed.height() - 1:
                problems.append(f"{text}: {widget.size()} of {needed}")
    return problems


def wait_until_fitting(problems: Callable[[], list[str]], qtbot: QtBot) -> None:
    """Wait until there are no problems: labels that fold need another height, which the layout assigns in a later turn of the event loop.

    The first turns are waited for before, since no text is cut off until the layout has been adapted to a new size.
    """

    def check() -> None:
        assert problems() == []

    qtbot.wait(30)
    qtbot.waitUntil(check)


def opened(view: RunView, project: Project, qtbot: QtBot, size: tuple[int, int] = (1300, 850)) -> None:
    """Show a view as a window with the newest run of its kind, and wait until it is drawn."""
    qtbot.addWidget(view)
    view.resize(*size)
    with qtbot.waitActive(view):
        view.show()
        view.activateWindow()
    view.show_run(project, None)
    settle(view, qtbot)


class SharedView(Generic[View]):
    """View with a run shared by the tests of a module, since opening one takes longer than most tests.

    Each test gets it in its first state, which is checked: the filter is reset and the first rows and pages are selected, or the run is
    opened again. A test that changes anything else (columns, marks, picks, files) uses its own view.

    Parameters
    ----------
    size : tuple of int or None
        Size of the view as a window; None for a view that already shows the run in a window.
    """

    def __init__(self, view: View, project: Project, request: pytest.FixtureRequest, size: tuple[int, int] | None = (1300, 850)) -> None:
        request.getfixturevalue("shared_theme").choose("light")
        self.view, self._project = view, project
        if size is not None:
            opened(view, project, QtBot(request), size)
        self._size = view.width(), view.height()
        self._layout, self._begin = view.state(), self._seen()

    def as_opened(self, qtbot: QtBot) -> View:
        """Return the view, active and restored to its first state."""
        view = self.view
        if not view.isActiveWindow():
            with qtbot.waitActive(view):
                view.activateWindow()
        if (view.width(), view.height()) != self._size:
            view.resize(*self._size)
            settle(view, qtbot)
        if self._changes():
            self._restore_view(qtbot)
            settle(view, qtbot)
        if self._changes():
            view.restore_state(self._layout)
            view.show_run(self._project, None)
            settle(view, qtbot)
            self._restore_view(qtbot)
            settle(view, qtbot)
        changes = self._changes()
        if changes:
            pytest.fail("not as it was opened: " + "; ".join(changes))
        return view

    def close(self) -> None:
        """Release the run and the view."""
        self.view.clear()
        self.view.close()
        self.view.deleteLater()
        QApplication.sendPostedEvents(self.view, QEvent.Type.DeferredDelete.value)

    def _fields(self) -> Iterator[tuple[QWidget, Any]]:
        # Some pages receive their choices and limits only when they are first shown.
        for tabs in self.view.findChildren(QTabWidget):
            yield tabs, tabs.currentIndex()
        for choice in self.view.findChildren(QComboBox):
            if choice.count():
                yield choice, choice.currentIndex()
        for button in self.view.findChildren(QAbstractButton):
            if button.isCheckable():
                yield button, button.isChecked()
        for box in self.view.filter_bar.findChildren(QAbstractSpinBox):
            yield box, box.property("value")
        for line in self.view.filter_bar.findChildren(QLineEdit):
            yield line, line.text()

    def _changes(self) -> list[str]:
        """Return the differences from the first state; objects created since then are ignored."""
        now = self._seen()
        return [f"{what}: {now.get(what)} instead of {value}" for what, value in self._begin.items() if now.get(what) != value]

    def _seen(self) -> dict[Any, Any]:
        """Return what is shown: rows, their order, the selected ones, and the values of fields."""
        panels = {
            name: (panel.model.rows.tolist(), panel.view.chosen, panel.view.selected, panel.scope_text, panel.hidden_columns())
            for name, panel in self.view.panels.items()
        }
        return {**panels, **dict(self._fields()), "text": self.view.text}

    def _restore_view(self, qtbot: QtBot) -> None:
        view, begin = self.view, self._begin
        if view.filter_bar.text.isEnabled():
            view.filter_bar.reset()
        for field, value in list(self._fields()):
            if field not in begin or begin[field] == value:
                continue
            if isinstance(field, QTabWidget):
                field.setCurrentIndex(begin[field])
            elif isinstance(field, QComboBox):
                field.setCurrentIndex(begin[field])
                field.activated.emit(begin[field])
            elif isinstance(field, QAbstractButton):
                field.click()
        if any(begin[name][3] and panel.scope_text not in ("", begin[name][3]) for name, panel in view.panels.items()):
            # The rows listed depend on the selection in the list above, which is cleared.
            for panel in view.panels.values():
                panel.clear_choice()
        for name, panel in view.panels.items():
            settle(view, qtbot)
            rows, chosen, _, scope, _ = begin[name]
            if not scope and panel.scope_text:
                view.show_all(name)
                settle(view, qtbot)
            if chosen is None:
                panel.clear_choice()
            elif chosen in rows and panel.model.rows.tolist() == rows:
                panel.view.choose(rows.index(chosen))
