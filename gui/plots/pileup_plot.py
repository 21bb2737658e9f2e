"""Interactive pile-up (stacked reads) of alignments at a position of a reference."""
# ruff: noqa: N802, N815 - Qt gives these names

from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, QLocale, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from proteoscope.engine.formats.tracks import TrackFeature
from proteoscope.engine.views.depth import Depth
from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.engine.views.pileup import MAXIMUM_WIDTH, Pileup
from proteoscope.engine.views.pileup_drawing import PileupSheet, draw_pileup, inner_region
from proteoscope.engine.views.reads import ShownReference
from proteoscope.gui.actions import delayed
from proteoscope.gui.colours import palette_of, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.drawing_view import WidgetMeasure, paint_drawing
from proteoscope.gui.plots.export import ExportAction
from proteoscope.gui.plots.zoomable import ZOOM, Ranges, Zoomable
from proteoscope.gui.scrolling_layout import scaled_pixels

_MINIMUM_POSITIONS = 20.0
_RANGE_DELAY_MS = 120


class PileupPlot(Zoomable, QWidget):
    """Widget that shows stacked alignments (a `Pileup`) or a text.

    Wheel: zoom around the pointer; with Shift: scroll the lines of alignments. Drag: zoom into the box. Double click, 0 or Home: maximum
    range. Keys: + and - zoom, arrows move, Page Up and Page Down scroll. A click selects an alignment. A click or a drag in the overview
    (the depth of the whole reference) moves the view there.
    """

    rowChosen = Signal(int)
    """An alignment was clicked; emitted with its row of the table of alignments."""
    rangeRequested = Signal(int, int)
    """Alignments of other positions are needed; emitted with the first and last visible position of the reference, from 1."""
    linesChanged = Signal()
    """The number of lines, the number that fit, or the first visible line has changed."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pile: Pileup | None = None
        self.features: list[TrackFeature] = []
        self.reference_depth: Depth | None = None
        self._first_lane = 0
        self._moves_view = False
        """True while the user drags in the overview (the depth of the whole reference)."""
        self.text = ""
        self._of: ShownReference | None = None
        self.chosen: int | None = None
        """Row of the marked alignment in the table, or None."""
        self._is_sought = False
        """True until the marked alignment has been scrolled into view."""
        self._pressed: QPointF | None = None
        self._pulled: QPointF | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._later = delayed(self, self._request_range, _RANGE_DELAY_MS)
        self.setAccessibleName("Pile-up of alignments")
        self.setMinimumSize(160, scaled_pixels(self, 110))
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    @property
    def inner(self) -> QRectF:
        """Drawing area of the alignments, in pixels of this widget."""
        return QRectF(*inner_region(WidgetMeasure.from_font(self.font()), (self.width(), self.height())))

    @property
    def is_waiting(self) -> bool:
        """True if `rangeRequested` is about to be emitted."""
        return self._later.isActive()

    @property
    def sheet(self) -> PileupSheet | None:
        """The pile-up laid out for the size of this widget, or None."""
        if self.pile is None:
            return None
        size, measure = (float(self.width()), float(self.height())), WidgetMeasure.from_font(self.font())
        sheet = PileupSheet(self.pile, self.features, self._ranges[0], measure, size, self.reference_depth, self._first_lane)
        sheet.chosen = self.chosen
        return sheet

    @property
    def first_lane(self) -> int:
        """Index of the first visible line of alignments."""
        return self._first_lane

    def scroll_lines(self, first: int) -> None:
        """Scroll to the line `first`, at most so far that the last line is at the bottom."""
        sheet = self.sheet
        most = 0 if sheet is None else max(0, sheet.pile.n_lanes - sheet.n_visible)
        first = max(0, min(first, most))
        if first != self._first_lane:
            self._first_lane = first
            self.update()
            self.linesChanged.emit()

    def show_depth(self, depth: Depth | None) -> None:
        """Show the depth of the whole reference as an overview above the alignments."""
        self.reference_depth = depth
        self.update()
        self.linesChanged.emit()

    @property
    def positions(self) -> tuple[int, int]:
        """First and last visible position of the reference."""
        ((low, high),) = self._ranges or ((0.5, 1.5),)
        return int(np.ceil(low)), max(int(np.ceil(low)), int(np.floor(high)))

    def scroll_to(self, text: ShownReference, first: int, last: int) -> None:
        """Scroll to positions of a reference (from 1); `rangeRequested` is emitted shortly afterwards."""
        self._of = text
        if self.pile is not None and not self.pile.text.is_same(text):
            self.pile = self.reference_depth = None
            self._first_lane = 0
        self.show_range(((first - 0.5, last + 0.5),))

    def show_range(self, ranges: Ranges) -> None:
        """Show a range of positions; a range wider than the maximum of a pile-up is narrowed around its centre."""
        half = MAXIMUM_WIDTH / 2
        super().show_range(tuple((max(low, (low + high) / 2 - half), min(high, (low + high) / 2 + half)) for low, high in ranges))

    def show_pile(self, pile: Pileup | None, text: str = "") -> None:
        """Show alignments or a text. The first visible line is retained if the new pile-up contains it."""
        self.pile, self.text = pile, text
        if pile is None and not text:
            self._of = self.reference_depth = None
            self._later.stop()
        if pile is None:
            self._first_lane = 0
        left = "" if pile is None or not pile.n_left_out else f"; {QLocale().toString(pile.n_left_out)} more do not fit"
        n = 0 if pile is None else len(pile)
        self.setAccessibleDescription(text or f"{n} alignments{left}")
        self._seek()
        self.update()
        self.linesChanged.emit()

    def show_features(self, features: list[TrackFeature]) -> None:
        """Show features of a track above the alignments."""
        self.features = features
        self.update()

    def choose(self, row: int | None) -> None:
        """Mark the alignment of a row of the table, and scroll to its line if it is not visible."""
        if row != self.chosen:
            self.chosen, self._is_sought = row, row is not None
            self._seek()
        self.update()

    def _seek(self) -> None:
        """Scroll to the line of the marked alignment if the pile-up contains it."""
        sheet = self.sheet
        if not self._is_sought or sheet is None or not len(lanes := sheet.pile.lane[sheet.pile.row == self.chosen]):
            return
        self._is_sought = False
        lane = int(lanes[0])
        if not self._first_lane <= lane < self._first_lane + sheet.n_visible:
            self.scroll_lines(lane - sheet.n_visible // 2)

    def sizeHint(self) -> QSize:
        """Return the preferred size of a pile-up."""
        return QSize(420, 260)

    def text_at(self, at: QPointF) -> str:
        """Return the tooltip of the feature or alignment at a position of this widget, or ''."""
        return "" if (sheet := self.sheet) is None else sheet.text_at(at.x(), at.y())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the pile-up or the text."""
        colours, sheet = plot_colours(self.palette()), self.sheet
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), colours.background)
            if sheet is None:
                painter.setPen(colours.faint)
                area = self.rect().adjusted(20, 12, -20, -12)
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
                return
            paint_drawing(painter, sheet.draw(), palette_of(self.palette()), self.font())
            if self._pulled is not None and self._pressed is not None:
                fill = QColor(colours.target)
                fill.setAlpha(40)
                painter.setPen(QPen(colours.target, 1.0))
                painter.setBrush(fill)
                painter.drawRect(QRectF(self._pressed.x(), self.inner.top(), self._pulled.x() - self._pressed.x(), self.inner.height()))

    def event(self, event: QEvent) -> bool:
        """Show the tooltip of the position under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Start a click or a zoom box, or move the view in the overview."""
        event.accept()
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if (position := self._position_at(event.position())) is not None:
            self._moves_view = True
            self._move_to(position)
        elif self.inner.contains(event.position()):
            self._pressed = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Draw the zoom box, drag the view in the overview, or show the cursor for clickable items."""
        event.accept()
        at = event.position()
        if self._moves_view:
            if (sheet := self.sheet) is not None and sheet.coverage is not None:
                self._move_to(sheet.position_at(at.x()))
        elif self._pressed is None:
            is_target = self._row_at(at) is not None or self._position_at(at) is not None
            self.setCursor(Qt.CursorShape.PointingHandCursor if is_target else Qt.CursorShape.ArrowCursor)
        elif self._pulled is not None or (at - self._pressed).manhattanLength() >= QApplication.startDragDistance():
            self._pulled = QPointF(min(max(at.x(), self.inner.left()), self.inner.right()), at.y())
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Zoom into the box, or handle the click."""
        event.accept()
        pressed, pulled = self._pressed, self._pulled
        self._pressed = self._pulled = None
        self._moves_view = False
        if event.button() != Qt.MouseButton.LeftButton or pressed is None:
            return
        if pulled is not None:
            low, high = sorted((self._place_at(pressed), self._place_at(pulled)))
            self.show_range(((low, high),))
        elif (row := self._row_at(event.position())) is not None:
            self.rowChosen.emit(row)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show the maximum range."""
        event.accept()
        self._pressed = None
        self.reset_range()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer, or scroll the lines."""
        event.accept()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            # On some systems, Shift turns vertical into horizontal wheel events.
            turned = event.angleDelta().y() or event.angleDelta().x()
            self.scroll_lines(self._first_lane - round(turned / 120 * self._lines_of_step()))
        elif self._ranges and event.angleDelta().y():
            self._zoom(ZOOM ** (event.angleDelta().y() / 120), (self._place_at(event.position()),))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, zoom, scroll the lines, or show the maximum range."""
        pages = {Qt.Key.Key_PageDown: 1, Qt.Key.Key_PageUp: -1}.get(Qt.Key(event.key()))
        if pages is not None:
            self.scroll_lines(self._first_lane + pages * (1 if self.sheet is None else self.sheet.n_visible))
        elif not self._take_key(Qt.Key(event.key())):
            super().keyPressEvent(event)

    def _request_range(self) -> None:
        if self._of is not None:
            self.rangeRequested.emit(*self.positions)

    def _whole(self) -> Ranges:
        return () if self._of is None else ((0.5, self._of.length + 0.5),)

    def _home(self) -> Ranges:
        length = 0 if self._of is None else self._of.length
        return tuple((low - length, high + length) for low, high in self._ranges)

    def _smallest(self) -> tuple[float, ...]:
        return (_MINIMUM_POSITIONS,)

    def _draw_ranges(self) -> None:
        self._later.start()
        self.update()
        self.linesChanged.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Update the lines that fit the new size."""
        super().resizeEvent(event)
        self.linesChanged.emit()

    def _lines_of_step(self) -> float:
        """Return the number of lines that a step of the wheel scrolls."""
        return 1.0 if self.sheet is None else max(1.0, self.sheet.n_visible / 8)

    def _position_at(self, at: QPointF) -> float | None:
        """Return the reference position at a point of the overview, or None outside it."""
        sheet = self.sheet
        if sheet is None or sheet.coverage is None or not sheet.coverage.holds(at.x(), at.y()):
            return None
        return sheet.position_at(at.x())

    def _move_to(self, position: float) -> None:
        """Centre the visible range on a position; its width is retained."""
        ((low, high),) = self._ranges
        ((start, stop),) = self._whole()
        width = high - low
        left = min(max(position - width / 2, start), max(start, stop - width))
        self.show_range(((left, left + width),))

    def _place_at(self, at: QPointF) -> float:
        """Return the reference position at a point of the alignments' drawing area."""
        ((low, high),) = self._ranges
        return low + (at.x() - self.inner.left()) / self.inner.width() * (high - low)

    def _row_at(self, at: QPointF) -> int | None:
        """Return the table row of the alignment at a position of this widget, or None."""
        sheet = self.sheet
        read = None if sheet is None else sheet.read_at(at.x(), at.y())
        return None if sheet is None or read is None else int(sheet.pile.row[read])

    def _figure(self) -> PaperFigure | None:
        if self.pile is None:
            return None
        return PaperFigure(
            f"Pile-up of {self.pile.text.name}",
            partial(draw_pileup, self.pile, self.features, self._ranges[0], None, self.reference_depth),
        )
