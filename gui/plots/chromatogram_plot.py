"""A chromatogram drawn by our own painter: intensity by time, to be zoomed, with the spectrum that is looked at marked."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.chromatograms import Chromatogram
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.zoomed import Ranges, ZoomedPlot
from proteoscope.gui.room import pixels_with_letters

__all__ = ["ChromatogramPlot"]

_FIGURE_SIZE = QSizeF(510, 220)
_LEAST_MINUTES = 0.01


class ChromatogramPlot(ZoomedPlot):
    """Shows a chromatogram, or a text in its place. A click chooses the spectrum next in time."""

    spectrumChosen = Signal(int)
    """Row of the spectrum in the table of spectra."""
    timeChosen = Signal(float)
    """Minutes, where the chromatogram is not of spectra of that table."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.chromatogram: Chromatogram | None = None
        self.text = ""
        self._marked: float | None = None
        self.setAccessibleName("Chromatogram")
        self.setMinimumSize(160, pixels_with_letters(self, 90))
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    @property
    def inner(self) -> QRectF:
        """Where the line is drawn."""
        return self._inner(QRectF(self.rect()), self.font())

    @property
    def marked(self) -> float | None:
        """The time that is marked, minutes."""
        return self._marked

    def show_chromatogram(self, chromatogram: Chromatogram | None, text: str = "") -> None:
        """Show a chromatogram, or a text in its place; the part in sight stays where the new one has it."""
        before = self.chromatogram
        self.chromatogram = chromatogram if chromatogram is not None and len(chromatogram) else None
        self.text = text or "No spectrum has a time to draw it at."
        self._forget_pull()
        self.setAccessibleDescription(self.text if self.chromatogram is None else f"{self.chromatogram.title} by retention time")
        if before is None or not self._ranges:
            self.reset_range()
        else:
            self.show_range(self._ranges)
        self.update()

    def mark(self, minutes: float | None) -> None:
        """Mark a time."""
        self._marked = minutes
        if minutes is not None and self.chromatogram is not None and self._ranges:
            self._bring_into_sight((minutes,))
        self.update()

    def sizeHint(self) -> QSize:
        """Room for a chromatogram."""
        return QSize(420, 180)

    def text_at(self, at: QPointF) -> str:
        """The spectrum next to a place of this widget."""
        place = self._place_at(at)
        if place is None or self.chromatogram is None:
            return ""
        locale, found = QLocale(), self.chromatogram
        scan = f"scan {found.scan[place]}, " if found.scan[place] >= 0 else ""
        minutes = locale.toString(float(found.minutes[place]), "f", 2)
        return f"{scan}{minutes} min\nintensity {locale.toString(float(found.intensity[place]), 'g', 4)}"

    def paint_chromatogram(self, painter: QPainter, area: QRectF, colours: PlotColours, font: QFont, columns: int) -> None:
        """Draw line and axes into `area`; `columns`: pixels that can be told apart across."""
        found = self.chromatogram
        assert found is not None
        inner, (shown,) = self._inner(area, font), self._ranges
        x, y = found.outline(*shown, columns)
        in_sight = (x >= shown[0]) & (x <= shown[1])
        highest = float(y[in_sight].max(initial=0.0)) or 1.0
        power = 10.0 ** math.floor(math.log10(highest)) if highest >= 1000 else 1.0
        axes = Axes(inner, shown, (0.0, highest * 1.06 / power))
        painter.save()
        painter.setClipRect(inner.adjusted(0, -1, 0, 1))
        painter.setPen(QPen(colours.target, 1.0))
        painter.drawPolyline(QPolygonF([QPointF(*one) for one in np.column_stack((axes.xs(x), axes.ys(y / power))).tolist()]))
        if self._marked is not None:
            painter.setPen(QPen(colours.mark, 1.2, Qt.PenStyle.DashLine))
            painter.drawLine(QLineF(axes.x(self._marked), inner.top(), axes.x(self._marked), inner.bottom()))
        painter.restore()
        unit = "" if power == 1.0 else f" (10{str(round(math.log10(power))).translate(_RAISED)})"
        draw_axes(painter, axes, colours, font, AxisTitles("Retention time (min)", f"Intensity{unit}"))
        painter.setPen(colours.text)
        line = QFontMetricsF(font).height()
        title = QFontMetricsF(font).elidedText(found.title, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(QRectF(inner.left() + 4, area.top() + 2, inner.width(), line), Qt.AlignmentFlag.AlignLeft, title)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it, or the text."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self.font())
        if self.chromatogram is None:
            painter.setPen(colours.faint)
            area = self.rect().adjusted(20, 12, -20, -12)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            columns = max(2, round(self.inner.width() * self.devicePixelRatioF()))
            self.paint_chromatogram(painter, QRectF(self.rect()), colours, self.font(), columns)
            self._paint_pull(painter, colours)
        painter.end()

    def _whole(self) -> Ranges | None:
        found = self.chromatogram
        if found is None:
            return None
        low, high = float(found.minutes[0]), float(found.minutes[-1])
        margin = 0.01 * (high - low) or 0.5
        return ((low - margin, high + margin),)

    def _least(self) -> tuple[float, ...]:
        return (_LEAST_MINUTES,)

    def _place_at(self, at: QPointF) -> int | None:
        if self.chromatogram is None or not self._ranges or not self.inner.contains(at):
            return None
        return self.chromatogram.nearest(self._values_at(at)[0])

    def _can_be_clicked(self, at: QPointF) -> bool:
        return self._place_at(at) is not None

    def _click(self, at: QPointF) -> None:
        place, found = self._place_at(at), self.chromatogram
        if place is None or found is None:
            return
        self.mark(float(found.minutes[place]))
        if found.spectrum[place] >= 0:
            self.spectrumChosen.emit(int(found.spectrum[place]))
        else:
            self.timeChosen.emit(float(found.minutes[place]))

    @staticmethod
    def _inner(area: QRectF, font: QFont) -> QRectF:
        line = QFontMetricsF(font).height()
        return area.adjusted(54 + line * 0.4, line + 6, -12, -2 * line - 10)

    def _figure(self) -> ExportFigure | None:
        return None if self.chromatogram is None else ExportFigure(self.chromatogram.title, _FIGURE_SIZE, self._paint)

    def _paint(self, painter: QPainter, area: QRectF) -> None:
        font = figure_font(8)
        painter.setFont(font)
        self.paint_chromatogram(painter, area, PAPER, font, 4 * round(area.width()))


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
