"""A histogram drawn by our own painter: the same on the screen and on paper."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QContextMenuEvent,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QKeySequence,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QMenu, QToolTip, QWidget

from gui.plots.axes import Axes, draw_axes
from gui.plots.distributions import Histogram
from gui.plots.export import ask_and_export, export_figure, figure_font
from gui.spectrum.colours import PAPER, PlotColours, plot_colours

__all__ = ["HistogramPlot", "paint_histogram"]

_FIGURE_SIZE = QSizeF(340, 230)


def paint_histogram(painter: QPainter, area: QRectF, histogram: Histogram, colours: PlotColours, font: QFont) -> Axes:
    """Draw a histogram into `area`; the axes that it was drawn on."""
    metrics = QFontMetricsF(font)
    line = metrics.height()
    highest = max((int(counts.max(initial=0)) for _, counts in histogram.series), default=0) or 1
    title_margin = max(metrics.horizontalAdvance(QLocale().toString(highest)) + line + 12, 3 * line)
    inner = area.adjusted(title_margin + line * 0.6, line * 2.4, -line, -2 * line - 12)
    axes = Axes(inner, (float(histogram.edges[0]), float(histogram.edges[-1])), (0.0, highest * 1.08))
    bold = QFont(font)
    bold.setBold(True)
    painter.setFont(bold)
    painter.setPen(colours.text)
    painter.drawText(QRectF(inner.left(), area.top() + line * 0.4, inner.width(), line), Qt.AlignmentFlag.AlignLeft, histogram.title)
    painter.setFont(font)
    at = inner.right()
    for (name, counts), colour in reversed(list(zip(histogram.series, (colours.target, colours.decoy), strict=False))):
        _paint_steps(painter, axes, histogram.edges, counts, colour)
        if len(histogram.series) > 1:
            at -= metrics.horizontalAdvance(name)
            painter.setPen(colours.text)
            painter.drawText(QPointF(at, area.top() + line * 0.4 + metrics.ascent()), name)
            at -= line
            swatch = QRectF(at, area.top() + line * 0.6, line * 0.7, line * 0.7)
            painter.fillRect(swatch, _light(colour))
            painter.setPen(QPen(colour, 1))
            painter.drawRect(swatch)
            at -= line
    if histogram.mark is not None:
        where, text = histogram.mark
        x = axes.x(where)
        painter.setPen(QPen(colours.text, 1, Qt.PenStyle.DashLine))
        painter.drawLine(QLineF(x, inner.top() - line * 0.2, x, inner.bottom()))
        text = f"{text}: {QLocale().toString(where, 'f', 2)}"
        width = metrics.horizontalAdvance(text)
        left = x + 4 if x + 4 + width <= inner.right() else x - 4 - width
        painter.setPen(colours.text)
        painter.drawText(QPointF(left, inner.top() + metrics.ascent() - line * 0.2), text)
    x_title, y_title = histogram.x_title, histogram.y_title
    draw_axes(painter, axes, colours, font, x_title=x_title, y_title=y_title, y_is_count=True, title_margin=title_margin)
    return axes


def _light(colour: QColor) -> QColor:
    return QColor(colour.red(), colour.green(), colour.blue(), 90)


def _paint_steps(painter: QPainter, axes: Axes, edges: np.ndarray, counts: np.ndarray, colour: QColor) -> None:
    x, y = axes.xs(edges), axes.ys(counts.astype(np.float64))
    path = QPainterPath(QPointF(x[0], axes.area.bottom()))
    for i in range(len(counts)):
        path.lineTo(x[i], y[i])
        path.lineTo(x[i + 1], y[i])
    path.lineTo(x[-1], axes.area.bottom())
    path.closeSubpath()
    painter.fillPath(path, _light(colour))
    painter.setPen(QPen(colour, 1))
    painter.drawPath(path)


class HistogramPlot(QWidget):
    """Shows a histogram; a tooltip tells each bin; the context menu exports it."""

    message = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._text = ""
        self._axes: Axes | None = None
        self.histogram: Histogram | None = None
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.export_action = QAction("&Export figure…", self)
        self.export_action.setShortcut(QKeySequence("Ctrl+E"))
        self.export_action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.export_action.triggered.connect(lambda: self.ask_and_export())
        self.addAction(self.export_action)

    def show_histogram(self, histogram: Histogram | None, text: str = "") -> None:
        """Show a histogram, or a text in its place."""
        self.histogram = None if histogram is None or histogram.is_empty else histogram
        self._text = text or (histogram.summary if histogram is not None else "")
        if self.histogram is not None:
            counted = ", ".join(f"{int(counts.sum())} {name.lower()}" for name, counts in self.histogram.series)
            mark = f", {self.histogram.mark[1]} at {self.histogram.mark[0]:.2f}" if self.histogram.mark else ""
            self.setAccessibleDescription(counted + mark)
        self.update()

    def ask_and_export(self) -> None:
        """Ask for a file and save the figure."""
        if self.histogram is not None:
            ask_and_export(self, self._name.lower().replace(" ", "_"), _FIGURE_SIZE, self._paint_figure, self.message.emit)

    def export(self, path: Path) -> None:
        """Save the figure.

        Raises
        ------
        StorageError : see `export_figure`.
        """
        if self.histogram is not None:
            export_figure(path, _FIGURE_SIZE, self._paint_figure, title=self._name)

    def minimumSizeHint(self) -> QSize:
        """What is still readable."""
        return QSize(240, 160)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """What can be done with the plot."""
        menu = QMenu(self)
        menu.addActions(self.actions())
        menu.aboutToHide.connect(menu.deleteLater)
        menu.exec(event.globalPos())

    def event(self, event: QEvent) -> bool:
        """Tell the bin under the pointer."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            QToolTip.showText(event.globalPos(), self.text_at(QPointF(event.pos())), self)
            return True
        return super().event(event)

    def text_at(self, at: QPointF) -> str:
        """What the bin at a place of the widget counts."""
        if self.histogram is None or self._axes is None or not self._axes.area.contains(at):
            return ""
        edges, area = self.histogram.edges, self._axes.area
        i = min(int((at.x() - area.left()) / area.width() * (len(edges) - 1)), len(edges) - 2)
        locale = QLocale()
        counted = ", ".join(f"{name}: {locale.toString(int(counts[i]))}" for name, counts in self.histogram.series)
        return f"{locale.toString(float(edges[i]), 'f', 2)} to {locale.toString(float(edges[i + 1]), 'f', 2)}: {counted}"

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(self.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.histogram is not None:
            self._axes = paint_histogram(painter, QRectF(self.rect()), self.histogram, colours, self.font())
        else:
            painter.setPen(colours.faint)
            painter.drawText(self.rect().adjusted(20, 20, -20, -20), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._text)
        painter.end()

    def _paint_figure(self, painter: QPainter, area: QRectF) -> None:
        if self.histogram is not None:
            paint_histogram(painter, area, self.histogram, PAPER, figure_font(8))
