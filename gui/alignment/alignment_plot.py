"""An alignment drawn in lines as wide as there is room, the same on the screen and on paper; only what is in sight is drawn."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontDatabase,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from proteoscope.engine.views.aligned_pair import GAP, IDENTICAL, POSITIVE, AlignedPair
from proteoscope.engine.views.read_pair import DIFFERENT, UNSURE_DIFFERENT, UNSURE_IDENTICAL
from proteoscope.engine.views.structure_pair import BEYOND, WITHIN, StructurePair
from proteoscope.gui.alignment.secondary_structure import paint_helix, paint_states, paint_strand, state_colours
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font

__all__ = ["AlignmentLayout", "AlignmentPlot", "paint_alignment"]

_GROUP = 10
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_ALPHA = {
    IDENTICAL: 90,
    POSITIVE: 36,
    GAP: 70,
    **dict(zip(WITHIN, (150, 104, 62, 28), strict=True)),
    BEYOND: 90,
    DIFFERENT: 150,
    UNSURE_IDENTICAL: 32,
    UNSURE_DIFFERENT: 60,
}
_APART = (BEYOND, DIFFERENT, UNSURE_DIFFERENT)
"""Kinds in the colour of what does not go together."""
_TRACK = 1.15
"""Height of a line of secondary structure, in lines of letters."""
_SHAPES = (("H", "helix"), ("E", "strand"))
_MARKS = "middle line: a letter where both are the same, : within 5 Å, . aligned"
_SMALLEST, _LARGEST, _ZOOM_STEP = 0.5, 3.0, 1.15
_FIGURE_WIDTH = 520.0
_FIGURE_HEIGHT = 6000.0
"""Points that a figure may be high: a page of PDF ends at 14,400. A longer alignment becomes wider."""


class _LegendItem(NamedTuple):
    """What the legend shows of a kind, of a helix (H) or strand (E) or of nothing but words; where, in which line, how wide its sign is."""

    what: int | str
    text: str
    x: float
    line: int
    room: float


class AlignmentLayout:
    """Places of lines and columns for a font of the letters and one of the heading; lengths in their units."""

    def __init__(self, pair: AlignedPair, font: QFont, heading: QFont, width: float) -> None:
        metrics = QFontMetricsF(font)
        self.pair, self.font, self.heading, self.width = pair, font, heading, width
        self.line = metrics.height()
        # A mean over many, since a row of letters is drawn as one text.
        self.cell = metrics.horizontalAdvance("W" * 100) / 100
        self.name = max(map(metrics.horizontalAdvance, pair.titles)) + 2 * self.cell
        self.number = metrics.horizontalAdvance("0" * pair.widest_label) + self.cell
        self.margin = 1.2 * self.cell
        room = width - 2 * self.margin - self.name - 2 * self.number
        self.per_row = max(_GROUP, int(room // (self.cell * _GROUP)) * _GROUP)
        self.n_rows = -(-len(pair) // self.per_row)
        self.track = _TRACK * self.line if pair.has_states else 0.0
        self.row_height = 4.2 * self.line + 2 * self.track
        self.heading_line = 1.2 * QFontMetricsF(heading).height()
        self.facts = [line for fact in pair.facts for line in _wrapped(fact, QFontMetricsF(heading), self.heading_width)]
        self.legend, n_lines = _placed_legend(pair, QFontMetricsF(heading), self.heading_width)
        self.top = (1.8 + len(self.facts) + n_lines) * self.heading_line + 0.5 * self.line

    @property
    def heading_width(self) -> float:
        """Room for the lines of the heading."""
        return max(self.width - 2 * self.margin, 1.0)

    @property
    def size(self) -> QSizeF:
        """Of all of it."""
        columns = min(self.per_row, max(len(self.pair), _GROUP))
        width = 2 * self.margin + self.name + 2 * self.number + columns * self.cell
        # The heading of a short alignment needs more room than its columns.
        return QSizeF(max(width, self.width), self.top + self.n_rows * self.row_height)

    def rows(self, top: float, bottom: float) -> range:
        """The rows that are seen between two heights."""
        first, last = int((top - self.top) // self.row_height), int((bottom - self.top) // self.row_height) + 1
        return range(min(max(first, 0), self.n_rows), min(max(last, 0), self.n_rows))

    def corner(self, column: int) -> QPointF:
        """The upper left corner of a column's letter in the query."""
        row, place = divmod(column, self.per_row)
        return QPointF(self.margin + self.name + self.number + place * self.cell, self.top + row * self.row_height + self.track)

    def column_at(self, at: QPointF) -> int | None:
        """The column at a place."""
        row = int((at.y() - self.top) // self.row_height)
        place = int((at.x() - self.corner(0).x()) // self.cell)
        if at.y() < self.top or not 0 <= place < self.per_row or at.y() - self.top - row * self.row_height > 3 * self.line + 2 * self.track:
            return None
        column = row * self.per_row + place
        return column if column < len(self.pair) else None


def paint_alignment(painter: QPainter, layout: AlignmentLayout, colours: PlotColours, visible: QRectF | None = None) -> None:
    """Draw an alignment from the painter's origin; where `visible` is given, the rows that it meets."""
    fills = {kind: _fill(colours, kind) for kind in _ALPHA}
    whole = QRectF(QPointF(0, 0), layout.size) if visible is None else visible
    if whole.top() < layout.top:
        _paint_heading(painter, layout, colours, fills)
    painter.setFont(layout.font)
    for row in layout.rows(whole.top(), whole.bottom()):
        _paint_row(painter, layout, colours, fills, row)


def _wrapped(text: str, metrics: QFontMetricsF, width: float) -> list[str]:
    """A line broken after commas where it is wider than there is room."""
    lines: list[str] = []
    for part in text.split(", "):
        longer = f"{lines[-1]}, {part}" if lines else part
        if lines and metrics.horizontalAdvance(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _placed_legend(pair: AlignedPair, metrics: QFontMetricsF, width: float) -> tuple[list[_LegendItem], int]:
    """What the legend says, in as many lines as the width asks for: places, and the number of lines."""
    wanted: list[tuple[int | str, str]] = list(pair.legend)
    if pair.has_states:
        wanted += [*_SHAPES, ("", _MARKS)]
    side, x, line = metrics.height() * 0.72, 0.0, 0
    placed = []
    for what, text in wanted:
        room = side if isinstance(what, int) else 2.4 * side if what else 0.0
        needed = room + 5 + metrics.horizontalAdvance(text)
        if x and x + needed > width:
            x, line = 0.0, line + 1
        placed.append(_LegendItem(what, text, x, line, room))
        x += needed + 1.4 * side
    return placed, line + 1


def _fill(colours: PlotColours, kind: int) -> QColor:
    colour = QColor(colours.mark if kind == GAP else colours.decoy if kind in _APART else colours.target)
    colour.setAlpha(_ALPHA[kind])
    return colour


def _paint_heading(painter: QPainter, layout: AlignmentLayout, colours: PlotColours, fills: dict[int, QColor]) -> None:
    """Names, facts, and what the colours mean."""
    pair, line, font = layout.pair, layout.heading_line, layout.heading
    bold = QFont(font)
    bold.setBold(True)
    at = 0.35 * line
    name = f"{pair.subject_name}  {pair.description}".rstrip()
    for text, of_font, colour in ((name, bold, colours.text), *((fact, font, colours.text) for fact in layout.facts)):
        painter.setFont(of_font)
        painter.setPen(colour)
        shown = QFontMetricsF(of_font).elidedText(text, Qt.TextElideMode.ElideRight, layout.heading_width)
        painter.drawText(QRectF(layout.margin, at, layout.heading_width + 2, line), _LEFT, shown)
        at += line
    at += 0.2 * line
    painter.setFont(font)
    side = QFontMetricsF(font).height() * 0.72
    tones = state_colours(colours)
    for item in layout.legend:
        top, left = at + item.line * line, layout.margin + item.x
        box = QRectF(left, top + (line - side) / 2, item.room, side)
        if isinstance(item.what, int):
            painter.fillRect(box, fills[item.what])
            painter.setPen(QPen(colours.faint, 0.6))
            painter.drawRect(box)
        elif item.what:
            painter.save()
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            (paint_helix if item.what == "H" else paint_strand)(painter, box, item.room / 5, tones[item.what])
            painter.restore()
        painter.setPen(colours.faint)
        right = layout.margin + layout.heading_width
        shown = QFontMetricsF(font).elidedText(item.text, Qt.TextElideMode.ElideRight, max(right - left - item.room, 20.0))
        painter.drawText(QRectF(left + item.room + (5 if item.room else 0), top, layout.heading_width + 40, line), _LEFT, shown)


def _paint_row(painter: QPainter, layout: AlignmentLayout, colours: PlotColours, fills: dict[int, QColor], row: int) -> None:
    pair, line, cell = layout.pair, layout.line, layout.cell
    first = row * layout.per_row
    last = min(first + layout.per_row, len(pair))
    corner = layout.corner(first)
    kinds = pair.kinds[first:last]
    cuts = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), last - first]
    for start, stop in pairwise(cuts):
        if int(kinds[start]) in fills:
            painter.fillRect(QRectF(corner.x() + start * cell, corner.y(), (stop - start) * cell, 3 * line), fills[int(kinds[start])])
    metrics = QFontMetricsF(layout.font)
    of_query, of_subject = pair.labels(first, last)
    lines = ((pair.titles[0], pair.query, of_query), ("", pair.middle, None), (pair.titles[1], pair.subject, of_subject))
    for k, (name, letters, ends) in enumerate(lines):
        top = corner.y() + k * line
        painter.setPen(colours.faint)
        if ends is not None:
            painter.drawText(QRectF(layout.margin, top, layout.name, line), _LEFT, name)
            painter.drawText(QRectF(corner.x() - layout.number - cell * 0.5, top, layout.number, line), _RIGHT, ends[0])
            right = corner.x() + (last - first) * cell + cell * 0.5
            painter.drawText(QRectF(right, top, layout.number + cell, line), _LEFT, ends[1])
        painter.setPen(colours.faint if ends is None and not pair.has_states else colours.text)
        # Tens, since the advances of many letters need not add up to the same as one by one.
        for start in range(first, last, _GROUP):
            part = letters[start : min(start + _GROUP, last)]
            if not part.isspace():
                painter.drawText(QPointF(corner.x() + (start - first) * cell, top + metrics.ascent()), part)
    if isinstance(pair, StructurePair):
        for states, top in zip(pair.states, (corner.y() - layout.track, corner.y() + 3 * line), strict=True):
            paint_states(painter, states, first, last, QPointF(corner.x(), top), cell, layout.track, colours)


def _paint_marks(painter: QPainter, layout: AlignmentLayout, marks: dict[int, tuple[bool, bool]], palette: QPalette) -> None:
    """A frame around marked columns that stand together, and their marked letters on the colour of what is selected."""
    painter.setFont(layout.font)
    ascent = QFontMetricsF(layout.font).ascent()
    for column, are_marked in marks.items():
        corner = layout.corner(column)
        for letters, line, is_marked in zip((layout.pair.query, layout.pair.subject), (0, 2), are_marked, strict=True):
            if is_marked:
                place = QRectF(corner.x(), corner.y() + line * layout.line, layout.cell, layout.line)
                painter.fillRect(place, palette.color(QPalette.ColorRole.Highlight))
                painter.setPen(palette.color(QPalette.ColorRole.HighlightedText))
                painter.drawText(QPointF(place.x(), place.y() + ascent), letters[column])
    painter.setPen(QPen(palette.color(QPalette.ColorRole.Text), 1.4))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    height = 3 * layout.line + 2 * layout.track
    columns = np.sort(np.array(list(marks), np.int64))
    is_cut = (np.diff(columns) > 1) | (np.diff(columns // layout.per_row) != 0)
    for together in np.split(columns, np.flatnonzero(is_cut) + 1) if len(columns) else ():
        corner = layout.corner(int(together[0]))
        painter.drawRect(QRectF(corner.x() - 1, corner.y() - layout.track - 1, len(together) * layout.cell + 2, height + 2))


class AlignmentPlot(QAbstractScrollArea):
    """Shows an alignment, or a text in its place. Ctrl and the wheel, or Ctrl with + and -, make it larger and smaller.

    A click picks a column; the arrows to the left and right pick the next where one is marked.
    """

    message = Signal(str)
    zoomed = Signal(float)
    columnPicked = Signal(int)  # noqa: N815 - Qt's way of naming signals
    """A column was clicked, -1 beside all."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pair: AlignedPair | None = None
        self.marks: dict[int, tuple[bool, bool]] = {}
        """Columns that are marked, and whether the letter of the query and that of the subject are."""
        self.zoom = 1.0
        self._text = ""
        self._layout: AlignmentLayout | None = None
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Alignment")
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    def show_pair(self, pair: AlignedPair | None, text: str = "") -> None:
        """Show an alignment from its beginning, or a text in its place."""
        self.pair, self._text, self.marks = pair, text, {}
        self.setAccessibleDescription(text if pair is None else f"{pair.query_name} and {pair.subject_name}, {', '.join(pair.facts)}")
        self.verticalScrollBar().setValue(0)
        self.horizontalScrollBar().setValue(0)
        self._lay_out()

    def mark(self, marks: dict[int, tuple[bool, bool]]) -> None:
        """Mark columns (see `marks`) and bring the last of them into sight."""
        if marks == self.marks:
            return
        self.marks = dict(marks)
        if marks and self._layout is not None:
            top = self._layout.corner(next(reversed(marks))).y() - self._layout.track
            bar, height = self.verticalScrollBar(), self._layout.row_height
            if top < bar.value() or top + height > bar.value() + self.viewport().height():
                bar.setValue(round(top - max(self.viewport().height() - height, 0.0) / 2))
        self.viewport().update()

    def set_zoom(self, zoom: float) -> None:
        """Draw so many times as large as the window's letters, within bounds."""
        zoom = min(max(zoom, _SMALLEST), _LARGEST)
        if zoom != self.zoom:
            column = self._column_on_top()
            self.zoom = zoom
            self._lay_out()
            self._go_to(column)
            self.zoomed.emit(zoom)

    def zoom_in(self) -> None:
        """Draw larger."""
        self.set_zoom(self.zoom * _ZOOM_STEP)

    def zoom_out(self) -> None:
        """Draw smaller."""
        self.set_zoom(self.zoom / _ZOOM_STEP)

    @property
    def letters(self) -> QFont:
        """Residues stand under each other only in a font of one width."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(self.font().pointSizeF() * self.zoom)
        return font

    def text_at(self, at: QPointF) -> str:
        """What stands at a place of the viewport."""
        if self.pair is None or self._layout is None:
            return ""
        column = self._layout.column_at(at + self._origin)
        return "" if column is None else self.pair.column_text(column)

    def sizeHint(self) -> QSize:
        """Room for some lines."""
        return QSize(520, 320)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Wrap anew; what stood on top stays there."""
        super().resizeEvent(event)
        column = self._column_on_top()
        self._lay_out()
        self._go_to(column)

    def changeEvent(self, event: QEvent) -> None:
        """Another font has other widths."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._lay_out()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom with Ctrl, else scroll."""
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.set_zoom(self.zoom * _ZOOM_STEP ** (event.angleDelta().y() / 120))
            event.accept()
        else:
            super().wheelEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom, or scroll as any page."""
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

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click picks the column."""
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and self._layout is not None:
            column = self._layout.column_at(event.position() + self._origin)
            self.columnPicked.emit(-1 if column is None else column)

    def viewportEvent(self, event: QEvent) -> bool:
        """Tell the column under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        colours = plot_colours(self.palette())
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), colours.background)
        if self._layout is None:
            painter.setPen(colours.faint)
            area = self.viewport().rect().adjusted(20, 20, -20, -20)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
        else:
            painter.translate(-self._origin)
            paint_alignment(painter, self._layout, colours, QRectF(event.rect()).translated(self._origin))
            _paint_marks(painter, self._layout, self.marks, self.palette())
        painter.end()

    @property
    def _origin(self) -> QPointF:
        return QPointF(self.horizontalScrollBar().value(), self.verticalScrollBar().value())

    def _lay_out(self) -> None:
        self._layout = None
        size = QSizeF(0, 0)
        if self.pair is not None:
            self._layout = AlignmentLayout(self.pair, self.letters, self.font(), self.viewport().width())
            size = self._layout.size
            self.verticalScrollBar().setSingleStep(max(1, round(self._layout.line)))
        for bar, length, room in (
            (self.verticalScrollBar(), size.height(), self.viewport().height()),
            (self.horizontalScrollBar(), size.width(), self.viewport().width()),
        ):
            bar.setPageStep(room)
            bar.setRange(0, max(0, round(length - room)))
        self.viewport().update()

    def _column_on_top(self) -> int:
        layout = self._layout
        if layout is None or self._origin.y() < layout.top:
            return 0
        return int((self._origin.y() - layout.top) // layout.row_height) * layout.per_row

    def _go_to(self, column: int) -> None:
        if self._layout is not None and column:
            self.verticalScrollBar().setValue(math.ceil(self._layout.corner(column).y()))

    def _figure(self) -> ExportFigure | None:
        if self.pair is None:
            return None
        # On the screen a line above the drawing names the query, which a figure in a document must do itself.
        pair = replace(self.pair, facts=(f"aligned with {self.pair.query_name}", *self.pair.facts))
        font = figure_font(7)
        font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        width = _FIGURE_WIDTH
        layout = AlignmentLayout(pair, font, figure_font(7), width)
        while layout.size.height() > _FIGURE_HEIGHT:
            width *= 1.5
            layout = AlignmentLayout(pair, font, figure_font(7), width)
        name = f"{pair.query_name} {pair.subject_name}"
        return ExportFigure(name, layout.size, lambda painter, area: paint_alignment(painter, layout, PAPER))
