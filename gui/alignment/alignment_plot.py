"""Interactive drawing of a pairwise alignment, wrapped to the width of the widget: zooming, marking and picking."""
# ruff: noqa: N802, N815 - Qt gives these names

import math
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.alignment_drawing import AlignmentSheet, draw_alignment
from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.gui.plots.drawing_view import WidgetMeasure
from proteoscope.gui.plots.scrolled_drawing import ScrolledDrawing

_SMALLEST, _LARGEST, _ZOOM_STEP = 0.5, 3.0, 1.15


class AlignmentPlot(ScrolledDrawing):
    """Widget that shows an alignment or a text. Ctrl with the mouse wheel, + or - zooms.

    A click picks a column; if a column is marked, the left and right arrows pick its neighbours.
    """

    zoomed = Signal(float)
    columnPicked = Signal(int)
    """A column was picked; emitted with its index, or -1 for a click outside all columns."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Alignment", parent)
        self.pair: AlignedPair | None = None
        self.marks: dict[int, tuple[bool, bool]] = {}
        """Marked columns by index, each with two flags: True if the query residue is marked, and True if the subject residue is."""
        self.zoom = 1.0
        self._sheet: AlignmentSheet | None = None

    def show_pair(self, pair: AlignedPair | None, text: str = "") -> None:
        """Show an alignment, scrolled to its start, or a text."""
        self.pair, self.marks = pair, {}
        self._show(text if pair is None else "")

    def mark(self, marks: dict[int, tuple[bool, bool]]) -> None:
        """Mark residues in columns (see `marks`), and scroll so that the last marked column is visible."""
        if marks == self.marks:
            return
        self.marks = dict(marks)
        if self._sheet is not None:
            self._sheet.marks = self.marks
            if marks:
                top = self._sheet.corner(next(reversed(self.marks)))[1] - self._sheet.track
                bar, height = self.verticalScrollBar(), self._sheet.row_height
                if top < bar.value() or top + height > bar.value() + self.viewport().height():
                    bar.setValue(round(top - max(self.viewport().height() - height, 0.0) / 2))
        self.viewport().update()

    def set_zoom(self, zoom: float) -> None:
        """Set the font size as a factor of the window's font size, clipped to 0.5 to 3."""
        zoom = min(max(zoom, _SMALLEST), _LARGEST)
        if zoom != self.zoom:
            column = self._column_on_top()
            self.zoom = zoom
            self.lay_out()
            self._go_to(column)
            self.zoomed.emit(zoom)

    def zoom_in(self) -> None:
        """Zoom in."""
        self.set_zoom(self.zoom * _ZOOM_STEP)

    def zoom_out(self) -> None:
        """Zoom out."""
        self.set_zoom(self.zoom / _ZOOM_STEP)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap the alignment to the new width and scroll so that the top row's first column stays visible."""
        column = self._column_on_top()
        super().resizeEvent(event)
        self._go_to(column)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with Ctrl, otherwise scroll."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.set_zoom(self.zoom * _ZOOM_STEP ** (event.angleDelta().y() / 120))
            event.accept()
        else:
            super().wheelEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom, pick a neighbouring column, or scroll."""
        bar = self.verticalScrollBar()
        if event.matches(QKeySequence.StandardKey.ZoomIn) or (event.key() == Qt.Key.Key_Equal and event.modifiers()):
            self.zoom_in()
        elif event.matches(QKeySequence.StandardKey.ZoomOut):
            self.zoom_out()
        elif event.key() == Qt.Key.Key_0 and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.set_zoom(1.0)
        elif event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            bar.setValue(bar.minimum() if event.key() == Qt.Key.Key_Home else bar.maximum())
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self.marks and self.pair is not None:
            step = 1 if event.key() == Qt.Key.Key_Right else -1
            self.columnPicked.emit(min(max(next(reversed(self.marks)) + step, 0), len(self.pair) - 1))
        else:
            super().keyPressEvent(event)

    def _new_sheet(self, measure: WidgetMeasure, width: float) -> AlignmentSheet | None:
        if self.pair is None:
            return None
        sheet = AlignmentSheet(self.pair, measure, width, self.zoom)
        sheet.marks = self.marks
        return sheet

    def _figure(self) -> PaperFigure | None:
        pair = self.pair
        return None if pair is None else PaperFigure(f"{pair.query_name} {pair.subject_name}", partial(draw_alignment, pair, None))

    def _line(self) -> float:
        return super()._line() if self._sheet is None else self._sheet.line

    def _tip(self, x: float, y: float) -> str:
        assert self._sheet is not None and self.pair is not None
        column = self._sheet.column_at(x, y)
        return "" if column is None else self.pair.column_text(column)

    def _click(self, x: float, y: float) -> None:
        column = None if self._sheet is None else self._sheet.column_at(x, y)
        self.columnPicked.emit(-1 if column is None else column)

    def _column_on_top(self) -> int:
        sheet, top = self._sheet, self.in_sight.top
        return 0 if sheet is None or top < sheet.top else int((top - sheet.top) // sheet.row_height) * sheet.per_row

    def _go_to(self, column: int) -> None:
        if self._sheet is not None and column:
            self.verticalScrollBar().setValue(math.ceil(self._sheet.corner(column)[1]))
