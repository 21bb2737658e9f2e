"""A stack of hits drawn: names on the left, residues in colours, the query and its numbers above, conservation below."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetricsF, QImage, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from proteoscope.engine.sequences.stack import OUTSIDE, Stack
from proteoscope.engine.views.stack_colours import ColouredStack
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font

__all__ = ["StackPlot"]

_NAME_LETTERS = 22
_TENS = 10
_BARS = 2.0
"""Height of the bars of conservation, in lines."""
_HEAD = 2
"""Lines above the hits: numbers and the query."""
_LIGHT = 140.0
"""Luminance from which on letters on a colour are dark."""
_FIGURE_COLUMNS, _FIGURE_HEIGHT = 80, 6000.0


class _Layout:
    """Lengths of a font of one width."""

    def __init__(self, font: QFont) -> None:
        metrics = QFontMetricsF(font)
        self.font, self.line, self.ascent = font, metrics.height(), metrics.ascent()
        self.cell = metrics.horizontalAdvance("W" * 100) / 100
        self.name = (_NAME_LETTERS + 1) * self.cell
        self.head, self.foot = _HEAD * self.line, _BARS * self.line


class StackPlot(QAbstractScrollArea):
    """Shows a stack, or a text in its place. Names, the query and the conservation stay in sight.

    Signals
    -------
    rowPicked : a hit was clicked, by its place in the stack, from 0.
    """

    message = Signal(str)
    rowPicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.painted: ColouredStack | None = None
        self.marked = -1
        """The hit that is marked, by its place in the stack; -1: none."""
        self._text = ""
        self.setFrameShape(QAbstractScrollArea.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Stack of hits")
        self.export_action = ExportAction(self, self._figure, self.message.emit)
        self.export_action.setEnabled(False)
        self._layout = _Layout(self.letters)

    @property
    def letters(self) -> QFont:
        """Residues stand under each other only in a font of one width."""
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        font.setPointSizeF(self.font().pointSizeF())
        return font

    def show_stack(self, painted: ColouredStack | None, text: str = "") -> None:
        """Show a stack, or a text in its place; a new look at the same stack stays where it was."""
        is_same = painted is not None and self.painted is not None and painted.stack is self.painted.stack
        self.painted, self._text = painted, text
        self.export_action.setEnabled(painted is not None)
        stack = None if painted is None else painted.stack
        told = text if stack is None else f"{len(stack) - 1} hits below {stack.query_name}, {stack.n_columns} columns"
        self.setAccessibleDescription(told)
        if not is_same:
            self.verticalScrollBar().setValue(0)
            self.horizontalScrollBar().setValue(0)
        self._set_ranges()
        if not is_same:
            self._show_marked()

    def mark(self, place: int) -> None:
        """Mark a hit by its place in the stack, and bring it into sight."""
        self.marked = place
        self._show_marked()
        self.viewport().update()

    def place_at(self, at: QPointF) -> tuple[int, int] | None:
        """Row of the stack (0: the query) and column at a place of the viewport."""
        if self.painted is None:
            return None
        layout, painted = self._layout, self.painted
        column = int((at.x() - layout.name + self.horizontalScrollBar().value()) // layout.cell)
        row = 0 if at.y() < layout.head else int((at.y() - layout.head + self.verticalScrollBar().value()) // layout.line) + 1
        is_inside = at.x() >= layout.name and 0 <= column < len(painted.columns) and 0 <= row < len(painted.stack)
        return (row, column) if is_inside and at.y() < self.viewport().height() - layout.foot else None

    def text_at(self, at: QPointF) -> str:
        """What stands at a place of the viewport."""
        place = self.place_at(at)
        return "" if place is None or self.painted is None else self.painted.text_at(*place)

    def sizeHint(self) -> QSize:
        """Room for some lines."""
        return QSize(520, 320)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Scroll as far as there is something."""
        super().resizeEvent(event)
        self._set_ranges()

    def changeEvent(self, event: QEvent) -> None:
        """Another font has other widths."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._layout = _Layout(self.letters)
            self._set_ranges()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click picks the hit."""
        super().mouseReleaseEvent(event)
        layout = self._layout
        row = int((event.position().y() - layout.head + self.verticalScrollBar().value()) // layout.line)
        is_hit = layout.head <= event.position().y() < self.viewport().height() - layout.foot
        if event.button() == Qt.MouseButton.LeftButton and self.painted is not None and is_hit and row < len(self.painted.stack) - 1:
            self.rowPicked.emit(row)

    def viewportEvent(self, event: QEvent) -> bool:
        """Tell the residue under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().viewportEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        colours = plot_colours(self.palette())
        with QPainter(self.viewport()) as painter:
            painter.fillRect(event.rect(), colours.background)
            if self.painted is None:
                painter.setPen(colours.faint)
                area = self.viewport().rect().adjusted(20, 20, -20, -20)
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
                return
            layout, stack = self._layout, self.painted.stack
            width, height = self.viewport().width(), self.viewport().height()
            across, down = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
            first = int(across // layout.cell)
            last = min(len(self.painted.columns), int((across + width - layout.name) // layout.cell) + 1)
            rows = range(int(down // layout.line), min(len(stack) - 1, int((down + height) // layout.line) + 1))
            left = layout.name - (across - first * layout.cell)
            painter.setClipRect(QRectF(0, layout.head, width, height - layout.head - layout.foot))
            for place in rows:
                top = layout.head + place * layout.line - down
                _paint_row(painter, layout, self.painted, colours, QPointF(left, top), place + 1, slice(first, last))
                self._paint_name(painter, colours, place + 1, top)
            painter.setClipRect(QRectF(0, 0, width, height))
            _paint_numbers(painter, layout, self.painted, colours, QPointF(left, 0), slice(first, last))
            _paint_row(painter, layout, self.painted, colours, QPointF(left, layout.line), 0, slice(first, last))
            self._paint_name(painter, colours, 0, layout.line)
            foot = height - layout.foot
            _paint_bars(painter, layout, self.painted, colours, QPointF(left, foot), slice(first, last))
            painter.fillRect(QRectF(0, foot, layout.name, layout.foot), colours.background)
            painter.setPen(colours.faint)
            painter.setFont(layout.font)
            painter.drawText(QPointF(4, foot + layout.ascent + 0.4 * layout.line), "conservation")

    def _paint_name(self, painter: QPainter, colours: PlotColours, row: int, top: float) -> None:
        assert self.painted is not None
        layout, palette = self._layout, self.palette()
        is_marked = row > 0 and row - 1 == self.marked
        painter.fillRect(QRectF(0, top, layout.name, layout.line), palette.highlight() if is_marked else colours.background)
        painter.setPen(palette.highlightedText().color() if is_marked else colours.text)
        painter.setFont(layout.font)
        painter.drawText(QPointF(4, top + layout.ascent), _name(self.painted.stack, row))

    def _show_marked(self) -> None:
        if self.marked >= 0 and self.painted is not None:
            layout, bar = self._layout, self.verticalScrollBar()
            top = int(self.marked * layout.line)
            # Upwards rounded, so that the line's foot is in sight too.
            lowest = int(top + layout.line - (self.viewport().height() - layout.head - layout.foot)) + 1
            bar.setValue(max(min(bar.value(), top), lowest))

    def _set_ranges(self) -> None:
        layout = self._layout
        width = height = 0.0
        if self.painted is not None:
            width = layout.name + len(self.painted.columns) * layout.cell
            height = layout.head + layout.foot + (len(self.painted.stack) - 1) * layout.line
        for bar, length, room, step in (
            (self.verticalScrollBar(), height, self.viewport().height(), layout.line),
            (self.horizontalScrollBar(), width, self.viewport().width(), layout.cell),
        ):
            bar.setSingleStep(max(1, round(step)))
            bar.setPageStep(room)
            bar.setRange(0, max(0, round(length - room)))
        self.viewport().update()

    def _figure(self) -> ExportFigure | None:
        """All of the stack, in blocks below each other."""
        painted = self.painted
        if painted is None:
            return None
        font = figure_font(7)
        font.setFamily(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family())
        layout, stack = _Layout(font), painted.stack
        block = layout.head + (len(stack) - 1) * layout.line + layout.foot + layout.line
        n_columns, n_all = _FIGURE_COLUMNS, len(painted.columns)
        while block * -(-n_all // n_columns) > _FIGURE_HEIGHT and n_columns < n_all:
            n_columns *= 2
        n_columns = min(n_columns, n_all)
        size = QSizeF(layout.name + n_columns * layout.cell + 8, block * -(-n_all // n_columns))

        def paint(painter: QPainter, area: QRectF) -> None:
            for number, first in enumerate(range(0, n_all, n_columns)):
                some, top = slice(first, min(first + n_columns, n_all)), number * block
                _paint_numbers(painter, layout, painted, PAPER, QPointF(layout.name, top), some)
                for row in range(len(stack)):
                    at = top + (1 + row) * layout.line
                    _paint_row(painter, layout, painted, PAPER, QPointF(layout.name, at), row, some)
                    painter.setPen(PAPER.text)
                    painter.drawText(QPointF(4, at + layout.ascent), _name(stack, row))
                foot = top + layout.head + (len(stack) - 1) * layout.line
                _paint_bars(painter, layout, painted, PAPER, QPointF(layout.name, foot), some)

        return ExportFigure(f"{stack.query_name} and hits", size, paint)


def _name(stack: Stack, row: int) -> str:
    name = stack.query_name if row == 0 else stack.subjects.names[row - 1]
    return name if len(name) <= _NAME_LETTERS else f"{name[: _NAME_LETTERS - 1]}…"


def _paint_row(
    painter: QPainter, layout: _Layout, painted: ColouredStack, colours: PlotColours, at: QPointF, row: int, some: slice
) -> None:
    """The residues of some columns on their colours."""
    letters, fills = painted.letters[row, some], np.ascontiguousarray(painted.colours[row, some])
    if not len(letters):
        return
    image = QImage(fills.data, len(letters), 1, 4 * len(letters), QImage.Format.Format_RGBA8888)
    painter.drawImage(QRectF(at.x(), at.y(), len(letters) * layout.cell, layout.line), image)
    luminance = fills[:, :3] @ np.array([0.299, 0.587, 0.114])
    is_filled = fills[:, 3] > 0
    painter.setFont(layout.font)
    is_light = luminance >= _LIGHT
    kinds = ((~is_filled, colours.text), (is_filled & is_light, QColor("black")), (is_filled & ~is_light, QColor("white")))
    for is_meant, colour in kinds:
        shown = np.where(is_meant & (letters != OUTSIDE), letters, ord(" ")).astype(np.uint8).tobytes().decode("ascii")
        painter.setPen(colour)
        # Tens, since the advances of many letters need not add up to the same as one by one.
        for first in range(0, len(shown), _TENS):
            part = shown[first : first + _TENS]
            if not part.isspace():
                painter.drawText(QPointF(at.x() + first * layout.cell, at.y() + layout.ascent), part)
    if painted.follows_insertion is not None:
        for column in np.flatnonzero(painted.follows_insertion[row, some]).tolist():
            painter.fillRect(QRectF(at.x() + column * layout.cell - 1, at.y(), 2, layout.line), colours.mark)


def _paint_numbers(painter: QPainter, layout: _Layout, painted: ColouredStack, colours: PlotColours, at: QPointF, some: slice) -> None:
    """The numbers of the query's residues, every tenth."""
    places = painted.query_place[some]
    painter.setFont(layout.font)
    painter.setPen(colours.faint)
    for column in np.flatnonzero((places + 1) % _TENS == 0).tolist():
        if places[column] >= 0:
            box = QRectF(at.x() + (column + 1) * layout.cell - 100, at.y(), 100, layout.line)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, str(int(places[column]) + 1))


def _paint_bars(painter: QPainter, layout: _Layout, painted: ColouredStack, colours: PlotColours, at: QPointF, some: slice) -> None:
    """The conservation of columns, as bars."""
    grades = painted.grade[some]
    painter.fillRect(QRectF(at.x(), at.y(), len(grades) * layout.cell, layout.foot), colours.background)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colours.target)
    height = layout.foot - 4
    for column, grade in enumerate(grades.tolist()):
        left, top = at.x() + (column + 0.1) * layout.cell, at.y() + 2 + height * (1 - grade)
        painter.drawRect(QRectF(left, top, layout.cell * 0.8, height * grade))
