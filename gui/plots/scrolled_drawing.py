"""Base class of scrollable figures that draw only the visible part: scrolling, picking, keys, tooltips and export.

Its figures are grids of characters, which the program paints itself, since pyqtgraph has no item for many texts. Scrolling a stack of 500
hits at 700 x 420 pixels took 6.6 ms of CPU time per frame, but 344 ms with one `TextItem` of pyqtgraph per cell, and 34 ms with a pyqtgraph
item that contains the characters as one picture (`benchmarks/stack_painting.py`, 2026-11-29).
"""
# ruff: noqa: N802, D102 - Qt gives these names

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from proteoscope.engine.views.drawings import Bar, Drawing, PaperFigure
from proteoscope.engine.views.sheets import Region, Sheet
from proteoscope.gui.colours import palette_of, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.drawing_view import WidgetMeasure, paint_drawing
from proteoscope.gui.plots.export import ExportAction

_STEPS = {Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1, Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1}


class ScrolledDrawing(QAbstractScrollArea):
    """Widget that shows the visible part of a `Sheet`, or a text.

    Derived classes lay out the sheet (`_new_sheet`), return the figure to export (`_figure`) and the tooltip at a position (`_tip`), and
    handle clicks (`_click`). If they implement `_rows` and `_choose`, the arrow keys select the next and the previous row.
    """

    message = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._sheet: Sheet | None = None
        self._pickable: Drawing | None = None
        """Cached drawing of the visible part, for finding targets; it may lack later marks, which do not change targets."""
        self.chosen: int | None = None
        """Table row of the marked item, or None."""
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(name)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Base)
        self.viewport().setMouseTracking(True)
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    @property
    def text(self) -> str:
        """Text shown instead of a figure."""
        return self._text

    @property
    def in_sight(self) -> Region:
        """Visible part of the figure, in its coordinates."""
        size = self.viewport().size()
        return Region(self.horizontalScrollBar().value(), self.verticalScrollBar().value(), size.width(), size.height())

    @property
    def drawing(self) -> Drawing | None:
        """Drawing of the visible part, in coordinates of the whole figure."""
        return None if self._sheet is None else self._sheet.draw(self.in_sight)

    def on_viewport(self, position: Region) -> QRectF:
        """Convert a region from coordinates of the figure to coordinates of the viewport."""
        left, top, _, _ = self.in_sight
        return QRectF(*position).translated(-left, -top)

    def targets_at(self, x: float, y: float) -> list[object]:
        """Return the targets of the bars at a position of the figure, the topmost bar first."""
        if self._pickable is None:
            self._pickable = self.drawing
        bars = [] if self._pickable is None else [shape for shape in self._pickable.shapes if isinstance(shape, Bar)]
        # Thin bars can also be hit a pixel above or below.
        result = [bar.target for bar in bars if bar.target is not None and Region(bar.x, bar.y - 1, bar.width, bar.height + 2).holds(x, y)]
        return result[::-1]

    def text_at(self, at: QPointF) -> str:
        """Return the tooltip of a position of the viewport."""
        left, top, _, _ = self.in_sight
        return "" if self._sheet is None else self._tip(at.x() + left, at.y() + top)

    def sizeHint(self) -> QSize:
        return QSize(520, 320)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.lay_out()

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        self._pickable = None
        super().scrollContentsBy(dx, dy)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.lay_out()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()
        if event.button() == Qt.MouseButton.LeftButton and self._sheet is not None:
            left, top, _, _ = self.in_sight
            self._click(event.position().x() + left, event.position().y() + top)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        left, top, _, _ = self.in_sight
        can_be_clicked = self._sheet is not None and self._can_be_clicked(event.position().x() + left, event.position().y() + top)
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if can_be_clicked else Qt.CursorShape.ArrowCursor)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step, rows = _STEPS.get(Qt.Key(event.key())), list(dict.fromkeys(self._rows()))
        if step is None or not rows:
            super().keyPressEvent(event)
            return
        now = rows.index(self.chosen) if self.chosen in rows else -1 if step == 1 else len(rows)
        self._choose(rows[min(max(now + step, 0), len(rows) - 1)])

    def viewportEvent(self, event: QEvent) -> bool:
        return answer_tooltip(event, self, self.text_at) or super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            colours, drawing = plot_colours(self.palette()), self.drawing
            painter.fillRect(event.rect(), colours.background)
            if drawing is None:
                painter.setPen(colours.faint)
                area = self.viewport().rect().adjusted(20, 12, -20, -12)
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
                return
            painter.translate(-self.in_sight.left, -self.in_sight.top)
            paint_drawing(painter, drawing, palette_of(self.palette()), self.font())

    def lay_out(self) -> None:
        """Lay out the figure for the current content, font and width."""
        self._sheet = self._new_sheet(WidgetMeasure.from_font(self.font()), float(self.viewport().width()))
        self._pickable = None
        width, height = (0.0, 0.0) if self._sheet is None else self._sheet.size
        for bar, length, visible in (
            (self.verticalScrollBar(), height, self.viewport().height()),
            (self.horizontalScrollBar(), width, self.viewport().width()),
        ):
            bar.setSingleStep(max(1, round(self._line())))
            bar.setPageStep(visible)
            bar.setRange(0, max(0, round(length - visible)))
        self.viewport().update()

    def _show(self, text: str, *, is_new: bool = True) -> None:
        """Lay out the content, or show `text`; scroll to the start if `is_new`."""
        self._text = text
        if is_new:
            self.verticalScrollBar().setValue(0)
            self.horizontalScrollBar().setValue(0)
        self.lay_out()
        self.setAccessibleDescription(text or ("" if self._sheet is None else self._sheet.title))

    def _bring_into_sight(self, position: Region, margin: float = 8.0) -> None:
        """Scroll vertically just far enough to show a region."""
        bar, height = self.verticalScrollBar(), self.viewport().height()
        if position.top < bar.value():
            bar.setValue(int(position.top - margin))
        elif position.bottom > bar.value() + height:
            bar.setValue(int(position.bottom + margin - height))

    def _line(self) -> float:
        """Return the size of a scroll step in pixels."""
        return self.fontMetrics().height()

    def _new_sheet(self, measure: WidgetMeasure, width: float) -> Sheet | None:
        raise NotImplementedError

    def _figure(self) -> PaperFigure | None:
        raise NotImplementedError

    def _tip(self, x: float, y: float) -> str:
        raise NotImplementedError

    def _click(self, x: float, y: float) -> None:
        raise NotImplementedError

    def _can_be_clicked(self, x: float, y: float) -> bool:
        """Return True if a position of the figure can be clicked; the pointer is a hand there."""
        return False

    def _rows(self) -> Sequence[int]:
        """Return the table rows that the arrow keys select, in their order."""
        return ()

    def _choose(self, row: int) -> None:
        """Select the item of a table row, with the effect of a click on it."""
        raise NotImplementedError
