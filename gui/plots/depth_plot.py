"""The depth of coverage along a sequence, drawn so that it can be zoomed from a whole chromosome down to its letters."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.depth import Depth
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.histogram import paint_steps
from proteoscope.gui.plots.zoomed import Ranges, ZoomedPlot
from proteoscope.gui.room import pixels_with_letters

__all__ = ["DepthPlot"]

_MINIMUM_LETTERS = 20.0
_NEAR = 1.0
"""Pixels on both sides of the pointer whose letters are meant, too."""
_FIGURE_SIZE = QSizeF(460, 200)
_PALE, _SOLID = 70, 180
_MINIMUM_MARK = 3.0
"""Pixels."""


class DepthPlot(ZoomedPlot):
    """Shows the depth, or a text in its place: solid the mean of the letters of a pixel, pale the deepest of them.

    A click chooses the letters at the pointer, the key Enter those in sight.
    """

    placeChosen = Signal(int, int)
    """First and last letter, counted from 1."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shown: Depth | None = None
        self.text = ""
        self.place: tuple[int, int] | None = None
        """The letters that were chosen, between two lines."""
        self._marked: tuple[int, int] | None = None
        self._ranges = ((0.0, 1.0),)
        self.setAccessibleName("Depth of coverage along the text")
        self.setMinimumSize(160, pixels_with_letters(self, 70))
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    @property
    def inner(self) -> QRectF:
        """Where the depth is drawn."""
        return self._inner(QRectF(self.rect()), self.font(), has_title=False)

    @property
    def marked(self) -> tuple[int, int] | None:
        """First and last letter of the chosen alignment."""
        return self._marked

    def sizeHint(self) -> QSize:
        """Room for a landscape."""
        return QSize(520, 130)

    def show_depth(self, depth: Depth | None, text: str = "", *, keeps_range: bool = False) -> None:
        """Show a depth, or a text in its place; `keeps_range`: of the sequence that is shown already, whose part in sight stays."""
        self.shown, self.text = depth, text
        self._forget_pull()
        described = text
        if depth is not None:
            described = (
                f"{depth.name}, {depth.length} letters: {depth.n_alignments} alignments, {depth.mean:.2f} on average, {depth.most} at most"
            )
        self.setAccessibleDescription(described)
        if keeps_range:
            self.update()
        else:
            self._marked = self.place = None
            self.reset_range()

    def mark(self, letters: tuple[int, int] | None) -> None:
        """Mark the first and the last letter of the chosen alignment; where none of them is in sight, its middle comes into sight."""
        self._marked = letters
        low, high = self._ranges[0]
        if letters is not None and self.shown is not None and (letters[1] < low or letters[0] > high):
            self._bring_into_sight(((letters[0] + letters[1]) / 2,))
        self.update()

    def show_place(self, letters: tuple[int, int] | None) -> None:
        """Show which letters were chosen."""
        self.place = letters
        self.update()

    def letters_at(self, at: QPointF) -> tuple[int, int] | None:
        """First and last letter at a place of this widget, with those a pixel beside it."""
        inner = self.inner
        if self.shown is None or not inner.contains(at):
            return None
        low, high = (self._values_at(QPointF(at.x() + way * _NEAR, at.y()))[0] for way in (-1, 1))
        if high - low < 1:
            low = high = self._values_at(at)[0]
        return max(1, math.floor(low + 0.5)), min(self.shown.length, math.floor(high + 0.5))

    def text_at(self, at: QPointF) -> str:
        """Which letters stand there, and how many alignments cover them."""
        letters, locale = self.letters_at(at), QLocale()
        if letters is None or self.shown is None:
            return ""
        first, last = letters
        mean, most = self.shown.parts(np.array([first - 0.5, last + 0.5]))
        if first == last:
            return f"{locale.toString(first)}: depth {locale.toString(int(most[0]))}"
        mean_text, maximum_text = locale.toString(float(mean[0]), "f", 1), locale.toString(int(most[0]))
        return f"{locale.toString(first)} to {locale.toString(last)}: depth {mean_text} on average, {maximum_text} at most"

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose what is in sight, or move and zoom."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.shown is not None:
            low, high = self._ranges[0]
            self.placeChosen.emit(max(1, math.floor(low + 0.5)), min(self.shown.length, math.ceil(high - 0.5)))
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.shown is None:
            painter.setPen(colours.faint)
            area = self.rect().adjusted(20, 8, -20, -8)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            self._paint(painter, self.inner, colours, self.font(), self.devicePixelRatioF())
            painter.setClipRect(self.inner)
            self._paint_mark(painter, colours)
            self._paint_pull(painter, colours)
        painter.end()

    def _whole(self) -> Ranges | None:
        return None if self.shown is None else ((0.5, self.shown.length + 0.5),)

    def _least(self) -> tuple[float, ...]:
        return (_MINIMUM_LETTERS,)

    def _can_be_clicked(self, at: QPointF) -> bool:
        return self.letters_at(at) is not None

    def _click(self, at: QPointF) -> None:
        letters = self.letters_at(at)
        if letters is not None:
            self.placeChosen.emit(*letters)

    def _paint(self, painter: QPainter, inner: QRectF, colours: PlotColours, font: QFont, ratio: float, paper_title: str = "") -> None:
        """Draw the depth with its axes; `ratio`: parts for one unit of the painter; `paper_title`: of the lower axis, on paper."""
        assert self.shown is not None
        low, high = self._ranges[0]
        edges = np.linspace(low, high, max(1, round(inner.width() * ratio)) + 1)
        mean, most = self.shown.parts(edges)
        axes = Axes(inner, (low, high), (0.0, 1.08 * max(1, int(most.max(initial=0)))))
        fills = [QColor(colours.target) for _ in (_PALE, _SOLID)]
        for fill, alpha in zip(fills, (_PALE, _SOLID), strict=True):
            fill.setAlpha(alpha)
        if paper_title:
            paint_steps(painter, axes, edges, most, fills[0], None)
            paint_steps(painter, axes, edges, mean, fills[1], None)
        else:
            painter.drawImage(inner, _picture((most, mean), axes.y_range[1], round(inner.height() * ratio), fills))
        titles = AxisTitles(paper_title, "Depth", 34.0 + QFontMetricsF(font).height())
        draw_axes(painter, axes, colours, font, titles, x_is_whole=True, y_is_count=True)

    def _paint_mark(self, painter: QPainter, colours: PlotColours) -> None:
        """The chosen alignment as a band, the chosen place between two lines."""
        inner = self.inner
        axes = Axes(inner, self._ranges[0], (0.0, 1.0))
        if self._marked is not None:
            left, right = (axes.x(edge) for edge in (self._marked[0] - 0.5, self._marked[1] + 0.5))
            more = max(0.0, _MINIMUM_MARK - (right - left)) / 2
            band = QColor(colours.mark)
            band.setAlpha(90)
            painter.fillRect(QRectF(left - more, inner.top(), right - left + 2 * more, inner.height()), band)
        if self.place is not None:
            painter.setPen(QPen(colours.text, 1.0, Qt.PenStyle.DashLine))
            for edge in (self.place[0] - 0.5, self.place[1] + 0.5):
                x = axes.x(edge)
                painter.drawLine(QLineF(x, inner.top(), x, inner.bottom()))

    @staticmethod
    def _inner(area: QRectF, font: QFont, *, has_title: bool) -> QRectF:
        line = QFontMetricsF(font).height()
        return QRectF(area.adjusted(44 + 1.4 * line, 6, -1.6 * line, -(2 if has_title else 1) * line - 8).toRect())

    def _figure(self) -> ExportFigure | None:
        if self.shown is None:
            return None
        font, title = figure_font(8), f"Position in {self.shown.name}"

        def paint(painter: QPainter, area: QRectF) -> None:
            self._paint(painter, self._inner(area, font, has_title=True), PAPER, font, 2.0, title)

        return ExportFigure(f"Depth of {self.shown.name}", _FIGURE_SIZE, paint)


def _picture(series: tuple[np.ndarray, ...], highest: float, n_rows: int, fills: list[QColor]) -> QImage:
    """What `paint_steps` draws of series, one over the other, pixel by pixel: outlines of two thousand steps take too long for a frame."""
    row = np.arange(n_rows)[:, None]
    pixels = np.zeros((n_rows, len(series[0])), np.uint32)
    for heights, fill in zip(series, fills, strict=True):
        pixels[row >= np.round(n_rows * (1 - heights / highest)).astype(np.int64)] = fill.rgba()
    image = QImage(pixels.data, pixels.shape[1], n_rows, 4 * pixels.shape[1], QImage.Format.Format_ARGB32)
    # The picture keeps no hold of the array.
    return image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
