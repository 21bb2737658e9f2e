"""A histogram drawn by our own painter: the same on the screen and on paper."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QVBoxLayout, QWidget

from proteoscope.engine.views.histograms import Histogram
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font

__all__ = ["HistogramPlot", "log_counts_box", "logarithmic_page", "paint_histogram", "paint_steps"]

_FIGURE_SIZE = QSizeF(340, 230)
_FOOT = 0.5
"""Where a logarithmic axis begins: one thing counted stands above it."""


def paint_histogram(
    painter: QPainter, area: QRectF, histogram: Histogram, colours: PlotColours, font: QFont, *, is_log: bool = False, note: str = ""
) -> Axes:
    """Draw a histogram into `area`; the axes that it was drawn on.

    `is_log`: whether the axis of the counts is one of powers of ten. `note`: what is written where the bins end.
    """
    metrics = QFontMetricsF(font)
    line = metrics.height()
    highest = max((int(counts.max(initial=0)) for _, counts in histogram.series), default=0) or 1
    title_margin = max(metrics.horizontalAdvance(QLocale().toString(highest)) + line + 12, 3 * line)
    inner = area.adjusted(title_margin + line * 0.6, line * 2.4, -line, -2 * line - 12)
    y_range = (_FOOT, highest * 2.0) if is_log else (0.0, highest * 1.08)
    axes = Axes(inner, (float(histogram.edges[0]), float(histogram.edges[-1])), y_range, scale="logarithmic" if is_log else "linear")
    painter.setFont(font)
    legend = [(name, colour, False) for (name, _), colour in zip(histogram.series, (colours.target, colours.decoy), strict=False)]
    if histogram.chosen is not None:
        low, high = (min(max(one, axes.x_range[0]), axes.x_range[1]) for one in histogram.chosen)
        band = QColor(colours.mark)
        band.setAlpha(60)
        painter.fillRect(QRectF(axes.x(low), inner.top(), axes.x(high) - axes.x(low), inner.height()), band)
    for (_, counts), (_, colour, _) in reversed(list(zip(histogram.series, legend, strict=True))):
        paint_steps(painter, axes, histogram.edges, counts, _light(colour), colour)
    if histogram.curve is not None:
        name, places, heights = histogram.curve
        within = (places >= histogram.edges[0]) & (places <= histogram.edges[-1]) & (heights > y_range[0])
        # One place is no line, and what lies at the foot of the axis is not seen.
        if np.count_nonzero(within) > 1:
            _paint_curve(painter, axes, places, heights, colours.decoy)
            legend.append((name, colours.decoy, True))
    right = inner.right()
    if len(legend) > 1:
        right = _paint_legend(painter, QPointF(inner.right(), area.top() + line * 0.4), legend, colours)
    bold = QFont(font)
    bold.setBold(True)
    painter.setFont(bold)
    painter.setPen(colours.text)
    title = QFontMetricsF(bold).elidedText(histogram.title, Qt.TextElideMode.ElideRight, right - inner.left())
    painter.drawText(QRectF(inner.left(), area.top() + line * 0.4, right - inner.left() + 2, line), Qt.AlignmentFlag.AlignLeft, title)
    painter.setFont(font)
    if histogram.mark is not None:
        where, text = histogram.mark
        x = axes.x(where)
        painter.setPen(QPen(colours.text, 1, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(x, inner.top() - line * 0.2, x, inner.bottom()))
        text = f"{text}: {_number(where, QLocale())}"
        width = metrics.horizontalAdvance(text)
        left = x + 4 if x + 4 + width <= inner.right() else x - 4 - width
        painter.setPen(colours.text)
        painter.drawText(QPointF(left, inner.top() + metrics.ascent() - line * 0.2), text)
    if note:
        width = metrics.horizontalAdvance(note)
        box = QRectF(inner.right() - 4 - width, inner.top() + 1.4 * line, width, line)
        # The mark may stand where the note does.
        painter.fillRect(box.adjusted(-3, 0, 3, 0), colours.background)
        painter.setPen(colours.faint)
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, note)
    x_title, y_title = histogram.x_title, histogram.y_title
    titles = AxisTitles(x_title, y_title, title_margin)
    draw_axes(painter, axes, colours, font, titles, x_is_whole=histogram.is_whole, y_is_count=True)
    return axes


def _number(value: float, locale: QLocale) -> str:
    return locale.toString(value, "f", 0 if value.is_integer() else 2)


def _light(colour: QColor) -> QColor:
    return QColor(colour.red(), colour.green(), colour.blue(), 90)


def paint_steps(painter: QPainter, axes: Axes, edges: np.ndarray, counts: np.ndarray, fill: QColor, line: QColor | None) -> None:
    """Draw a step for each bin, with a line along them where it has a colour."""
    x, y = axes.xs(edges), axes.ys(counts.astype(np.float64))
    path = QPainterPath(QPointF(x[0], axes.area.bottom()))
    for i in range(len(counts)):
        path.lineTo(x[i], y[i])
        path.lineTo(x[i + 1], y[i])
    path.lineTo(x[-1], axes.area.bottom())
    path.closeSubpath()
    painter.fillPath(path, fill)
    if line is not None:
        painter.setPen(QPen(line, 1))
        painter.drawPath(path)


def _paint_curve(painter: QPainter, axes: Axes, x: np.ndarray, y: np.ndarray, colour: QColor) -> None:
    path = QPainterPath()
    path.addPolygon(QPolygonF([QPointF(*place) for place in zip(axes.xs(x), axes.ys(y), strict=True)]))
    painter.save()
    painter.setClipRect(axes.area)
    painter.setPen(QPen(colour, 1.8))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    painter.restore()


def _paint_legend(painter: QPainter, corner: QPointF, entries: list[tuple[str, QColor, bool]], colours: PlotColours) -> float:
    """Names with a swatch, or with a line where the third of an entry says so, to the left of a corner; where they begin."""
    metrics = QFontMetricsF(painter.font())
    line, at = metrics.height(), corner.x()
    for name, colour, is_line in reversed(entries):
        at -= metrics.horizontalAdvance(name)
        painter.setPen(colours.text)
        painter.drawText(QPointF(at, corner.y() + metrics.ascent()), name)
        at -= line
        swatch = QRectF(at, corner.y() + line * 0.2, line * 0.7, line * 0.7)
        if is_line:
            painter.setPen(QPen(colour, 1.8))
            painter.drawLine(QLineF(swatch.left(), swatch.center().y(), swatch.right(), swatch.center().y()))
        else:
            painter.fillRect(swatch, _light(colour))
            painter.setPen(QPen(colour, 1))
            painter.drawRect(swatch)
        at -= line
    return at


def log_counts_box(counted: str) -> QCheckBox:
    """A box that asks for an axis of powers of ten, ticked at first. `counted`: what is counted, as ``sequences``."""
    box = QCheckBox("&Logarithmic counts")
    box.setChecked(True)
    box.setToolTip(f"Draw the numbers of {counted} on an axis of powers of ten, on which few are seen beside many")
    return box


def logarithmic_page(plots: QWidget, box: QCheckBox) -> QWidget:
    """Plots on a page, above them the box of their axes."""
    page = QWidget()
    bar = QHBoxLayout()
    bar.setContentsMargins(8, 4, 8, 2)
    bar.addStretch(1)
    bar.addWidget(box)
    layout = QVBoxLayout(page)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    layout.addLayout(bar)
    layout.addWidget(plots, 1)
    return page


class HistogramPlot(QWidget):
    """Shows a histogram; a tooltip tells each bin; the context menu exports it. `can_be_clicked`: a click chooses a bin."""

    message = Signal(str)
    binChosen = Signal(float, float)
    """The two edges of a bin."""

    def __init__(self, name: str, parent: QWidget | None = None, *, can_be_clicked: bool = False) -> None:
        super().__init__(parent)
        self._name, self._can_be_clicked = name, can_be_clicked
        self.setMouseTracking(can_be_clicked)
        self._text = ""
        self._axes: Axes | None = None
        self.histogram: Histogram | None = None
        self.is_log, self.note = False, ""
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    def show_histogram(self, histogram: Histogram | None, text: str = "", *, is_log: bool = False, note: str = "") -> None:
        """Show a histogram, or a text in its place. `is_log`, `note`: see `paint_histogram`."""
        self.is_log, self.note = is_log, note
        self.histogram = None if histogram is None or histogram.is_empty else histogram
        self._text = text or (histogram.summary if histogram is not None else "")
        if self.histogram is not None:
            counted = ", ".join(f"{int(counts.sum())} {name.lower()}" for name, counts in self.histogram.series)
            mark = f", {self.histogram.mark[1]} at {self.histogram.mark[0]:.2f}" if self.histogram.mark else ""
            self.setAccessibleDescription(counted + mark)
        self.update()

    def minimumSizeHint(self) -> QSize:
        """What is still readable."""
        return QSize(240, 160)

    def event(self, event: QEvent) -> bool:
        """Tell the bin under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def text_at(self, at: QPointF) -> str:
        """What the bin at a place of the widget counts."""
        i, locale = self._bin_at(at), QLocale()
        if self.histogram is None or i is None:
            return ""
        edges = self.histogram.edges
        counted = ", ".join(f"{name}: {locale.toString(int(counts[i]))}" for name, counts in self.histogram.series)
        if self.histogram.curve is not None:
            name, x, y = self.histogram.curve
            within = (x >= edges[i]) & (x < edges[i + 1])
            counted += f", {name.lower()}: {locale.toString(float(y[within].mean()), 'g', 3)}" if within.any() else ""
        low, high = float(edges[i]), float(edges[i + 1])
        if self.histogram.is_whole:
            low, high = math.ceil(low), math.ceil(high) - 1
        ends = dict.fromkeys(_number(float(end), locale) for end in (low, high))
        return f"{' to '.join(ends)}: {counted}"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the bin under the pointer."""
        i = self._bin_at(event.position())
        if not self._can_be_clicked or self.histogram is None or i is None or event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        event.accept()
        self.binChosen.emit(float(self.histogram.edges[i]), float(self.histogram.edges[i + 1]))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """The second click of two chooses nothing more."""
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show what can be clicked."""
        is_over = self._can_be_clicked and self._bin_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.PointingHandCursor if is_over else Qt.CursorShape.ArrowCursor)

    def _bin_at(self, at: QPointF) -> int | None:
        """The bin at a place of the widget."""
        if self.histogram is None or self._axes is None or not self._axes.area.contains(at):
            return None
        n, area = len(self.histogram.edges) - 1, self._axes.area
        return min(int((at.x() - area.left()) / area.width() * n), n - 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.histogram is not None:
            self._axes = paint_histogram(
                painter, QRectF(self.rect()), self.histogram, colours, self.font(), is_log=self.is_log, note=self.note
            )
        else:
            painter.setPen(colours.faint)
            painter.drawText(self.rect().adjusted(20, 20, -20, -20), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
        painter.end()

    def _figure(self) -> ExportFigure | None:
        return None if self.histogram is None else ExportFigure(self._name, _FIGURE_SIZE, self._paint_figure)

    def _paint_figure(self, painter: QPainter, area: QRectF) -> None:
        if self.histogram is not None:
            paint_histogram(painter, area, self.histogram, PAPER, figure_font(8), is_log=self.is_log, note=self.note)
