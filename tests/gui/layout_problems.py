"""Checks that nothing in a window is cut, out of reach, or on top of something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QModelIndex, QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QComboBox,
    QDialog,
    QGroupBox,
    QHeaderView,
    QLabel,
    QListView,
    QMainWindow,
    QScrollArea,
    QSizeGrip,
    QTabBar,
    QToolButton,
    QWidget,
)

from proteoscope.gui.forms.parameter_form import ParameterForm
from proteoscope.gui.forms.wheel_guard import ChoiceBox
from proteoscope.gui.help.tour import Tour
from tests.gui.result_views import cut_off

__all__ = ["lasting_problems", "layout_problems"]

_DISPLAY, _TIP = Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole
_TRIES = 20
_TOUCH = 1
"""Pixels by which frames may lie on each other."""


def layout_problems(top: QWidget) -> list[str]:
    """Return what is wrong with the layout of a window or dialog, one text for each widget."""
    checks = cut_off, cut_words, clipped_widgets, cut_tabs, cut_titles, cut_cells, scroll_bars, on_each_other
    return [problem for check in checks for problem in check(top)]


def lasting_problems(top: QWidget, wait: Callable[[], None]) -> list[str]:
    """Return the problems that remain when the layout has settled, which `wait` gives time for."""
    for _ in range(_TRIES):
        wait()
        problems = layout_problems(top)
        if not problems:
            break
    return problems


def cut_words(top: QWidget) -> list[str]:
    """Return wrapped texts with fewer lines than they need."""
    labels = [label for label in top.findChildren(QLabel) if label.isVisibleTo(top) and label.wordWrap() and label.text()]
    return [f"{label.text()}: {label.size()}" for label in labels if label.height() < label.heightForWidth(label.width()) - 1]


def clipped_widgets(top: QWidget) -> list[str]:
    """Return widgets that extend beyond their parent, or beyond the content of a scroll area."""
    widgets = []
    for widget in top.findChildren(QWidget):
        place, inside = QRect(widget.rect()), widget
        if not widget.isVisibleTo(top) or widget.window() is not top.window() or widget.size().isEmpty():
            continue
        while inside is not top:
            parent = inside.parentWidget()
            assert parent is not None
            area = parent.parentWidget()
            if isinstance(area, QAbstractScrollArea) and area.viewport() is parent:
                if not isinstance(area, QScrollArea):
                    # It scrolls to its rows automatically.
                    break
                place, inside = QRect(area.rect()), area
                continue
            place.translate(inside.pos())
            if isinstance(parent, QMainWindow):
                break
            if not parent.rect().contains(place):
                widgets.append(f"{type(widget).__name__} {widget.accessibleName()} {place} in {type(parent).__name__} {parent.rect()}")
                break
            inside = parent
    return widgets


def cut_tabs(top: QWidget) -> list[str]:
    """Return tabs that are narrower than their titles or beyond the end of their bar."""
    problems = []
    for bar in top.findChildren(QTabBar):
        for index in range(bar.count()) if bar.isVisible() else ():
            if not bar.isTabVisible(index):
                continue
            place, text = bar.tabRect(index), bar.tabText(index).replace("&", "")
            is_narrow = place.width() < bar.fontMetrics().horizontalAdvance(text) and not bar.tabToolTip(index)
            if is_narrow or not bar.rect().contains(place):
                problems.append(f"tab {text}: {place} in {bar.rect()}")
    return problems


def cut_titles(top: QWidget) -> list[str]:
    """Return titles of group boxes, and chosen texts of lists without a tooltip, that have less space than they need."""
    boxes = [box for box in top.findChildren(QGroupBox) if box.isVisible()]
    problems = [f"group {box.title()}: {box.size()}" for box in boxes if box.fontMetrics().horizontalAdvance(box.title()) > box.width()]
    for choice in top.findChildren(QComboBox):
        # The arrow and the frame take about the height of the field.
        space = choice.width() - choice.height()
        if (
            choice.isVisible()
            and not choice.toolTip()
            and not isinstance(choice, ChoiceBox)
            and choice.objectName() != "lookInCombo"  # a path of any length in Qt's file dialog
            and choice.fontMetrics().horizontalAdvance(choice.currentText()) > space
        ):
            problems.append(f"choice {choice.currentText()}: {choice.size()}")
    return problems


def cut_cells(top: QWidget) -> list[str]:
    """Return visible cells, list items and column titles that are cut and have no tooltip."""
    problems = []
    for header in top.findChildren(QHeaderView):
        model, orientation = header.model(), header.orientation()
        for section in range(header.count()) if header.isVisible() and orientation is Qt.Orientation.Horizontal and model else ():
            text, tip = (str(model.headerData(section, orientation, role) or "") for role in (_DISPLAY, _TIP))
            width = header.sectionSize(section)
            if 0 < width < max(map(header.fontMetrics().horizontalAdvance, text.split("\n"))) and not tip:
                problems.append(f"column {text}: {width}")
    for view in top.findChildren(QAbstractItemView):
        if not isinstance(view, QHeaderView) and view.isVisible():
            problems += [f"cell {index.data()}: {view.visualRect(index).size()}" for index in _visible(view) if _is_cut(view, index)]
    return problems


def _visible(view: QAbstractItemView) -> Iterator[QModelIndex]:
    """Return the visible cells of a table or list; of a tree, those at its top level."""
    model, area = view.model(), view.viewport().rect()
    first = view.indexAt(area.topLeft() + QPoint(2, 2))
    columns = range(1 if isinstance(view, QListView) or model is None else model.columnCount())
    for row in range(max(first.row(), 0), model.rowCount() if model is not None else 0):
        cells = [model.index(row, column) for column in columns]
        if not any(view.visualRect(cell).top() < area.bottom() for cell in cells):
            return
        yield from (cell for cell in cells if area.intersects(view.visualRect(cell)))


def _is_cut(view: QAbstractItemView, index: QModelIndex) -> bool:
    text = index.data()
    if not isinstance(text, str) or index.data(_TIP):
        return False
    return view.visualRect(index).width() < max(map(view.fontMetrics().horizontalAdvance, text.split("\n")))


def scroll_bars(top: QWidget) -> list[str]:
    """Return pages that must be scrolled sideways, and pages of dialogs that must be scrolled at all."""
    problems = []
    for area in top.findChildren(QScrollArea):
        # Figures may be larger than their view.
        if area.isVisible() and area.widget() is not None and area.widget().layout() is not None:
            across, down = area.horizontalScrollBar().maximum(), area.verticalScrollBar().maximum()
            # Parameters of a search have more lines than a screen.
            is_form = area.findChild(ParameterForm) is not None
            if across or (down and isinstance(top, QDialog) and not is_form):
                problems.append(f"{_described(area)} scrolls by {across} and {down}")
    return problems


def on_each_other(top: QWidget) -> list[str]:
    """Return pairs of widgets of one parent that overlap."""
    problems = []
    for parent in (top, *top.findChildren(QWidget)):
        shown = list(_laid_out(parent))
        for at, first in enumerate(shown):
            for second in shown[:at]:
                both = first.geometry().intersected(second.geometry())
                if both.width() > _TOUCH and both.height() > _TOUCH:
                    problems.append(f"{_described(first)} on {_described(second)} by {both.size()}")
    return problems


def _laid_out(parent: QWidget) -> Iterator[QWidget]:
    """Return the visible children of a widget that a layout places."""
    if not parent.isVisible() or isinstance(parent, QAbstractScrollArea | QTabBar | QToolButton):
        return
    for child in parent.children():
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow() and not isinstance(child, Tour | QSizeGrip):
            yield child


def _described(widget: QWidget) -> str:
    text = widget.text() if isinstance(widget, QLabel | QAbstractButton) else widget.accessibleName() or widget.objectName()
    return f"{type(widget).__name__} {text!r}"
