"""Interactive drawing of hits stacked below their query (a query-anchored multiple alignment): scrolling and selecting hits."""
# ruff: noqa: N815 - Qt's way of naming signals

from functools import partial

from PySide6.QtCore import QPointF, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.engine.views.stack_colours import ColouredStack
from proteoscope.engine.views.stack_drawing import StackSheet, draw_stack
from proteoscope.gui.plots.drawing_view import WidgetMeasure
from proteoscope.gui.plots.scrolled_drawing import ScrolledDrawing


class StackPlot(ScrolledDrawing):
    """Widget that shows stacked hits or a text. Names, logo, query and conservation remain visible while scrolling.

    Signals
    -------
    rowPicked
        A hit was clicked; emitted with its index in the stack, from 0.
    """

    rowPicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Stack of hits", parent)
        self.painted: ColouredStack | None = None
        self.marked = -1
        """Index of the marked hit in the stack, or -1."""
        self._sheet: StackSheet | None = None
        self.export_action.setEnabled(False)

    def show_stack(self, painted: ColouredStack | None, text: str = "") -> None:
        """Show stacked hits with colours, or a text; the scroll position is retained if only the colours differ from those before."""
        is_same = painted is not None and self.painted is not None and painted.stack is self.painted.stack
        self.painted = painted
        self.export_action.setEnabled(painted is not None)
        self._show(text, is_new=not is_same)
        if not is_same:
            self._show_marked()

    def mark(self, position: int) -> None:
        """Mark the hit with index `position` in the stack (-1: none), and scroll to it."""
        self.marked = position
        self._show_marked()
        self.viewport().update()

    def place_at(self, at: QPointF) -> tuple[int, int] | None:
        """Return the row (0: query) and the column of the stack at a position of the viewport, or None if there is none."""
        region = self.in_sight
        return None if self._sheet is None else self._sheet.place_at(at.x() + region.left, at.y() + region.top, region)

    def _new_sheet(self, measure: WidgetMeasure, width: float) -> StackSheet | None:
        if self.painted is None:
            return None
        sheet = StackSheet(self.painted, measure, float(self.viewport().height()))
        sheet.marked = self.marked
        return sheet

    def _figure(self) -> PaperFigure | None:
        painted = self.painted
        return None if painted is None else PaperFigure(f"{painted.stack.query_name} and hits", partial(draw_stack, painted, None))

    def _tip(self, x: float, y: float) -> str:
        return "" if self._sheet is None else self._sheet.text_at(x, y, self.in_sight)

    def _click(self, x: float, y: float) -> None:
        row = None if self._sheet is None else self._sheet.row_at(y, self.in_sight)
        if row:
            self.rowPicked.emit(row - 1)

    def _show_marked(self) -> None:
        if self._sheet is None:
            return
        self._sheet.marked = self.marked
        if self.marked >= 0:
            sheet, bar = self._sheet, self.verticalScrollBar()
            top = int(self.marked * sheet.line)
            # Rounded up, so that the bottom of the line is visible too.
            lowest = int(top + sheet.line - (self.viewport().height() - sheet.head - sheet.foot)) + 1
            bar.setValue(max(min(bar.value(), top), lowest))
