"""The histogram of mass shifts, which is zoomed from hundreds of dalton down to their hundredths."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.drawings import Scale
from proteoscope.engine.views.label_layout import place_labels
from proteoscope.engine.views.shifts import ShiftBars, Shifts, bar_edges
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.zoomed import Ranges, ZoomedPlot
from proteoscope.gui.room import pixels_with_letters

__all__ = ["ShiftPlot"]

_MINIMUM_DALTON = 0.01
_BAR = 2.0
"""Pixels of a bar at least."""
_NEAR = 3.0
"""Pixels beside a bar that are meant for it, too."""
_MAXIMUM_TOLD = 4
"""Names of a bar that are told when it is pointed at."""
_MAXIMUM_NAMED = 100
"""Bars in sight whose names are tried, the highest."""
_PALE, _SOLID = 120, 220
_FOOT = 0.5
"""Where a logarithmic axis begins: one match stands above it."""
_HEADROOM = {"linear": 1.25, "square-root": 1.45, "logarithmic": 6.0}
"""Above the highest bar is room for names."""
_FIGURE_SIZE = QSizeF(510, 200)
_LONGEST_NAME = 26


class ShiftPlot(ZoomedPlot):
    """Shows how many matches have which shift, or a text in its place: solid those with a name or without a shift, pale the others.

    A click chooses the shifts of a bar, the key Enter those in sight.
    """

    shiftsChosen = Signal(float, float)
    """The two ends of a range of shifts, dalton; the second one is not included."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.shifts: Shifts | None = None
        self.text = ""
        self.scale: Scale = "square-root"
        self.place: tuple[float, float] | None = None
        """The shifts that were chosen, between two lines."""
        self._whole_range = (0.0, 1.0)
        self._marked: frozenset[int] = frozenset()
        self._ranges = (self._whole_range,)
        self._bars: ShiftBars | None = None
        self.setAccessibleName("Histogram of mass shifts")
        self.setMinimumSize(200, pixels_with_letters(self, 110))
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    @property
    def inner(self) -> QRectF:
        """Where bars are drawn."""
        return self._inner(QRectF(self.rect()), self.font())

    @property
    def bars(self) -> ShiftBars | None:
        """The bars in sight."""
        if self._bars is None and self.shifts is not None:
            self._bars = self._counted(self.inner.width())
        return self._bars

    @property
    def marked(self) -> frozenset[int]:
        """Rows of the table of modifications whose matches are marked."""
        return self._marked

    def sizeHint(self) -> QSize:
        """Wider than high."""
        return QSize(520, 200)

    def show_shifts(self, shifts: Shifts | None, whole: tuple[float, float] = (0.0, 1.0), text: str = "") -> None:
        """Show shifts within a range, or a text in their place."""
        self.shifts = shifts if shifts is not None and len(shifts) else None
        self.text, self._whole_range = text, whole
        self._marked, self.place = frozenset(), None
        self._forget_pull()
        self.setAccessibleDescription(text if self.shifts is None else f"{len(self.shifts)} matches from {whole[0]:g} to {whole[1]:g} Da")
        self.reset_range()

    def set_scale(self, scale: Scale) -> None:
        """Have the counts drawn by another scale."""
        self.scale = scale
        self.update()

    def mark(self, rows: frozenset[int]) -> None:
        """Mark the matches of some modifications, by their rows."""
        self._marked, self._bars = rows, None
        self.update()

    def show_place(self, shifts: tuple[float, float] | None) -> None:
        """Show which shifts were chosen."""
        self.place = shifts
        self.update()

    def show_range(self, ranges: Ranges) -> None:
        """Show a part; its bars are counted anew."""
        self._bars = None
        super().show_range(ranges)

    def reset_range(self) -> None:
        """Show everything."""
        self._bars = None
        super().reset_range()

    def bar_at(self, at: QPointF) -> int | None:
        """The bar with matches at a place of this widget, or the nearest one beside it."""
        bars = self.bars
        if bars is None or not self.inner.contains(at):
            return None
        shift, (low, high) = self._values_at(at)[0], self._ranges[0]
        some = np.flatnonzero(bars.counts)
        away = np.maximum(0.0, np.maximum(bars.edges[some] - shift, shift - bars.edges[some + 1])) * self.inner.width() / (high - low)
        return int(some[away.argmin()]) if len(some) and away.min() <= _NEAR else None

    def place_of(self, shift: float) -> QPointF:
        """Where a shift lies on this widget, just above the axis."""
        inner, (low, high) = self.inner, self._ranges[0]
        return QPointF(inner.left() + (shift - low) / (high - low) * inner.width(), inner.bottom() - 2)

    def text_at(self, at: QPointF) -> str:
        """Which shifts the bar there has, how many matches, and how many are of which name."""
        bar, bars, locale = self.bar_at(at), self.bars, QLocale()
        if bar is None or bars is None or self.shifts is None:
            return ""
        low, high = float(bars.edges[bar]), float(bars.edges[bar + 1])
        n, n_explained = int(bars.counts[bar]), int(bars.explained[bar])
        counted = f"{locale.toString(n)} {'match' if n == 1 else 'matches'}, {locale.toString(n_explained)} with a name or without a shift"
        names = self.shifts.counts_by_name(low, high)
        more = f", {len(names) - _MAXIMUM_TOLD} more" if len(names) > _MAXIMUM_TOLD else ""
        told = ", ".join(f"{locale.toString(number)} {name}" for name, number in names[:_MAXIMUM_TOLD]) + more
        return f"{_dalton(low, high - low)} to {_dalton(high, high - low)} Da: {counted}\n{told}"

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Choose what is in sight, or move and zoom."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.shifts is not None:
            self.shiftsChosen.emit(*self._ranges[0])
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Count in as many bars as there is room for."""
        super().resizeEvent(event)
        self._bars = None

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw what is in sight."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bars = self.bars
        if bars is None:
            painter.setPen(colours.faint)
            area = self.rect().adjusted(20, 8, -20, -8)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            self._paint(painter, self.inner, bars, colours, self.font())
            painter.setClipRect(self.inner)
            self._paint_place(painter, colours)
            self._paint_pull(painter, colours)
        painter.end()

    def _whole(self) -> Ranges | None:
        return None if self.shifts is None else (self._whole_range,)

    def _least(self) -> tuple[float, ...]:
        return (_MINIMUM_DALTON,)

    def _can_be_clicked(self, at: QPointF) -> bool:
        return self.bar_at(at) is not None

    def _click(self, at: QPointF) -> None:
        bar, bars = self.bar_at(at), self.bars
        if bar is not None and bars is not None:
            self.shiftsChosen.emit(float(bars.edges[bar]), float(bars.edges[bar + 1]))

    def _counted(self, width: float) -> ShiftBars:
        assert self.shifts is not None
        return self.shifts.bars(bar_edges(*self._ranges[0], max(1, int(width / _BAR))), self._marked)

    def _paint(self, painter: QPainter, inner: QRectF, bars: ShiftBars, colours: PlotColours, font: QFont) -> None:
        highest = max(1, int(bars.counts.max(initial=0)))
        foot = _FOOT if self.scale == "logarithmic" else 0.0
        axes = Axes(inner, self._ranges[0], (foot, highest * _HEADROOM[self.scale]), scale=self.scale)
        painter.save()
        painter.setClipRect(inner)
        x = axes.xs(bars.edges)
        # Antialiased edges of bars that touch would let the background through.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(Qt.PenStyle.NoPen)
        for counts, colour, alpha in (
            (bars.counts, colours.target, _PALE),
            (bars.explained, colours.target, _SOLID),
            (bars.marked, colours.mark, 255),
        ):
            fill = QColor(colour)
            fill.setAlpha(alpha)
            painter.setBrush(fill)
            y = axes.ys(counts.astype(np.float64))
            painter.drawRects([QRectF(x[i], y[i], max(1.5, x[i + 1] - x[i] - 0.5), inner.bottom() - y[i]) for i in np.flatnonzero(counts)])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.restore()
        self._paint_names(painter, axes, bars, colours, font)
        titles = AxisTitles("Mass shift (Da)", "PSMs", 34.0 + QFontMetricsF(font).height())
        draw_axes(painter, axes, colours, font, titles, y_is_count=True)

    def _paint_names(self, painter: QPainter, axes: Axes, bars: ShiftBars, colours: PlotColours, font: QFont) -> None:
        """The names of the highest bars, where they have room."""
        assert self.shifts is not None
        middle = (bars.edges[:-1] + bars.edges[1:]) / 2
        in_sight = np.flatnonzero((bars.counts > 0) & (middle >= axes.x_range[0]) & (middle <= axes.x_range[1]))
        if not len(in_sight):
            return
        highest = in_sight[np.argsort(-bars.counts[in_sight], kind="stable")[:_MAXIMUM_NAMED]].tolist()
        # A name stands once, over the highest of its bars.
        bar_of: dict[str, int] = {}
        for i in highest:
            bar_of.setdefault(self.shifts.name(float(bars.edges[i]), float(bars.edges[i + 1])), i)
        names, named = [_shortened(name) for name in bar_of], np.array(list(bar_of.values()))
        metrics = QFontMetricsF(font)
        widths = np.array([metrics.horizontalAdvance(name) for name in names])
        x, y = axes.xs(middle), axes.ys(bars.counts.astype(np.float64))
        bounds = (axes.area.left() + 1, axes.area.top(), axes.area.right(), axes.area.bottom())
        importance = bars.counts[named].astype(np.float64)
        painter.setFont(font)
        height = metrics.height() * 0.9
        for one in place_labels(x[named], y[named] - 1, widths, height, importance, x[in_sight], y[in_sight] - 1, bounds):
            bar = int(named[one.label])
            if one.foot is not None:
                painter.setPen(QPen(colours.faint, 0.6, Qt.PenStyle.DotLine))
                painter.drawLine(QLineF(one.foot, one.top + height, x[bar], y[bar]))
            painter.setPen(colours.text)
            painter.drawText(QPointF(one.left, one.top + metrics.ascent() * 0.9), names[one.label])

    def _paint_place(self, painter: QPainter, colours: PlotColours) -> None:
        if self.place is None:
            return
        axes = Axes(self.inner, self._ranges[0], (0.0, 1.0))
        painter.setPen(QPen(colours.text, 1.0, Qt.PenStyle.DashLine))
        for x in (axes.x(edge) for edge in self.place):
            painter.drawLine(QLineF(x, self.inner.top(), x, self.inner.bottom()))

    @staticmethod
    def _inner(area: QRectF, font: QFont) -> QRectF:
        line = QFontMetricsF(font).height()
        return QRectF(area.adjusted(44 + 1.4 * line, 6, -1.2 * line, -2 * line - 9).toRect())

    def _figure(self) -> ExportFigure | None:
        if self.shifts is None:
            return None
        font = figure_font(8)

        def paint(painter: QPainter, area: QRectF) -> None:
            inner = self._inner(area, font)
            self._paint(painter, inner, self._counted(2 * inner.width()), PAPER, font)

        return ExportFigure("Mass shifts", _FIGURE_SIZE, paint)


def _dalton(value: float, width: float) -> str:
    """An edge of a bar, to half of the bar's width."""
    decimals = max(0, 1 - int(np.floor(np.log10(width) + 1e-9)))
    return QLocale().toString(value, "f", decimals)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
