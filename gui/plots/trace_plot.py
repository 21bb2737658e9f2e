"""The traces of an ion in all runs beside each other, with apex and borders; a border is dragged to another place."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.quantity_traces import IonTrace, IonTraces
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours, series_colour
from proteoscope.gui.labels import answer_tooltip
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.room import pixels_with_letters

__all__ = ["Border", "TracePlot"]

_NEAR = 6.0
"""Pixels from a border within which the pointer means it."""
_LEAST_HEIGHT, _LEAST_WIDTH = 110, 190
_ZOOM = 0.8
_FIGURE_WIDTH = 510.0


class Border(NamedTuple):
    """A border of a trace: its place among the files, and which end it is."""

    place: int
    is_end: bool


class TracePlot(QWidget):
    """Shows an ion in all files, or a text in its place. Wheel and double click zoom; a dragged border, or the arrow keys on a chosen one,
    move it; where a trace has none, they are drawn by dragging from one to the other.

    Signals
    -------
    bordersMoved : place of the file, and the two borders in seconds. bordersReset : place of a file whose own borders are wanted again.
    """

    bordersMoved = Signal(int, float, float)
    bordersReset = Signal(int)
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.traces: IonTraces | None = None
        self.text = ""
        self._range = (0.0, 1.0)
        self._chosen: Border | None = None
        self._held: tuple[int, float, float, bool] | None = None
        """What is dragged: place, the border that stays and the one that moves, and whether both are new."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setAccessibleName("Chromatograms of the ion in all files")
        self.reset_action = QAction("&Borders as they were found", self)
        self.reset_action.setToolTip("Take back what was set by hand in the file of the chosen border")
        self.reset_action.triggered.connect(self._ask_reset)
        self.addAction(self.reset_action)
        self.export_action = ExportAction(self, self._figure, self.message.emit)
        self.show_traces(None, " ")

    @property
    def chosen(self) -> Border | None:
        """The border that the keys move."""
        return self._chosen

    def show_traces(self, traces: IonTraces | None, text: str = "") -> None:
        """Show an ion, or a text in its place; the same ion with other borders stays in sight as it is."""
        is_same = traces is not None and self.traces is not None and traces.title == self.traces.title
        self.traces, self.text = traces, text
        self._held = None
        if not is_same:
            self._chosen = None
            self.reset_range()
        n_rows = self._grid(self.width())[1] if traces is not None else 1
        self.setMinimumHeight(n_rows * pixels_with_letters(self, _LEAST_HEIGHT))
        self.setAccessibleDescription(text if traces is None else traces.title)
        self.export_action.setEnabled(traces is not None)
        self._enable()
        self.update()

    def reset_range(self) -> None:
        """Show the borders of all traces, with what stands around them."""
        self._range = self._whole()
        self.update()

    def place_of(self, border: Border) -> QPointF | None:
        """Where on this widget the middle of a border is; None where there is none."""
        trace = self._trace(border.place)
        seconds = None if trace is None else trace.end if border.is_end else trace.begin
        if seconds is None:
            return None
        inner = self._inner(self._cell(border.place))
        return QPointF(Axes(inner, self._range, (0, 1)).x(seconds / 60), inner.center().y())

    def sizeHint(self) -> QSize:
        """Room for some traces."""
        return QSize(600, 240)

    def text_at(self, at: QPointF) -> str:
        """What is told of the trace at a place."""
        place = self._place_at(at)
        trace = None if place is None else self._trace(place)
        return "" if trace is None else f"{trace.file}\n{_told(trace)}"

    def event(self, event: QEvent) -> bool:
        """Tell what is under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take a border, or begin new ones."""
        if event.button() != Qt.MouseButton.LeftButton:
            super().mousePressEvent(event)
            return
        border, place = self._border_at(event.position()), self._place_at(event.position())
        self._chosen = border
        trace = None if place is None else self._trace(place)
        if border is not None and (held := self._trace(border.place)) is not None and held.begin is not None and held.end is not None:
            stays, moves = (held.begin, held.end) if border.is_end else (held.end, held.begin)
            self._held = (border.place, stays, moves, False)
        elif trace is not None and place is not None and trace.row >= 0 and trace.begin is None and len(trace.seconds):
            at = self._seconds_at(place, event.position())
            self._held = (place, at, at, True)
        self._enable()
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Move a border, or show what can be moved."""
        if self._held is not None:
            place, stays, _, is_new = self._held
            self._held = (place, stays, self._seconds_at(place, event.position()), is_new)
            self.update()
            return
        self.setCursor(Qt.CursorShape.ArrowCursor if self._border_at(event.position()) is None else Qt.CursorShape.SplitHCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Leave a border where it is now."""
        held, self._held = self._held, None
        if event.button() == Qt.MouseButton.LeftButton and held is not None:
            self._move(held[0], held[1], held[2])
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show everything; on a border it is another press, as of a click and a drag in a row."""
        event.accept()
        if self._border_at(event.position()) is not None:
            self.mousePressEvent(event)
            return
        self._held = None
        self.reset_range()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer."""
        place = self._place_at(event.position())
        if place is None or not event.angleDelta().y():
            super().wheelEvent(event)
            return
        event.accept()
        factor, at = _ZOOM ** (event.angleDelta().y() / 120), self._seconds_at(place, event.position()) / 60
        (low, high), (least, most) = self._range, self._everything()
        self._range = max(at - (at - low) * factor, least), min(at + (high - at) * factor, most)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the chosen border by a survey spectrum, choose the next one, or leave it."""
        key, borders = Qt.Key(event.key()), self._borders()
        if key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageUp) and borders:
            step = 1 if key == Qt.Key.Key_PageDown else -1
            at = borders.index(self._chosen) + step if self._chosen in borders else (0 if step > 0 else -1)
            self._chosen = borders[at % len(borders)]
            self._enable()
            self.update()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._chosen in borders and self._chosen is not None:
            trace = self._trace(self._chosen.place)
            assert trace is not None and trace.begin is not None and trace.end is not None
            stays, moves = (trace.begin, trace.end) if self._chosen.is_end else (trace.end, trace.begin)
            at = int(np.argmin(np.abs(trace.seconds - moves))) + (1 if key == Qt.Key.Key_Right else -1)
            if 0 <= at < len(trace.seconds):
                self._move(self._chosen.place, stays, float(trace.seconds[at]))
        elif key == Qt.Key.Key_Escape and self._held is not None:
            self._held = None
            self.update()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw all traces, or the text."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self.traces is None:
            painter.setPen(colours.faint)
            area = self.rect().adjusted(20, 12, -20, -12)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            for place in range(len(self.traces.traces)):
                self._paint_trace(painter, place, self._cell(place), colours, self.font())
            if self.hasFocus():
                painter.setPen(QPen(self.palette().highlight().color(), 1))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _paint_trace(self, painter: QPainter, place: int, area: QRectF, colours: PlotColours, font: QFont) -> None:
        trace = self._trace(place)
        assert trace is not None
        inner, metrics, locale = self._inner(area, font), QFontMetricsF(font), QLocale()
        painter.setFont(font)
        painter.setPen(colours.text)
        told = f"{trace.file}: {_told(trace)}"
        title = metrics.elidedText(told, Qt.TextElideMode.ElideRight, area.width() - 12)
        painter.drawText(QRectF(area.left() + 8, area.top() + 2, area.width() - 12, metrics.height()), Qt.AlignmentFlag.AlignLeft, title)
        low, high = self._range
        minutes = trace.seconds / 60
        first, last = max(0, int(np.searchsorted(minutes, low)) - 1), int(np.searchsorted(minutes, high, side="right")) + 1
        x, shown = minutes[first:last], trace.intensity[first:last]
        if not len(x):
            painter.setPen(colours.faint)
            painter.drawText(inner, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, trace.error or "Nothing was measured here.")
            return
        total = trace.total[first:last]
        highest = float(max(total.max(initial=0.0), shown.max(initial=0.0))) or 1.0
        power = 10.0 ** math.floor(math.log10(highest)) if highest >= 1000 else 1.0
        axes = Axes(inner, self._range, (0.0, highest * 1.1 / power))
        begin, end = self._ends(place, trace)
        painter.save()
        painter.setClipRect(inner.adjusted(0, -1, 0, 1))
        xs = axes.xs(x)
        if begin is not None and end is not None:
            within = (x * 60 >= begin - 1e-6) & (x * 60 <= end + 1e-6)
            if within.any():
                fill = QColor(colours.mark if trace.is_manual else colours.target)
                fill.setAlpha(60)
                top = axes.ys(total[within] / power)
                points = np.column_stack((xs[within], top)).tolist()
                points = [[points[0][0], inner.bottom()], *points, [points[-1][0], inner.bottom()]]
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(fill)
                painter.drawPolygon(QPolygonF([QPointF(*one) for one in points]))
                painter.setBrush(Qt.BrushStyle.NoBrush)
        for isotope in range(shown.shape[1]):
            painter.setPen(QPen(series_colour(isotope, colours.background), 1.0))
            line = np.column_stack((xs, axes.ys(shown[:, isotope] / power))).tolist()
            painter.drawPolyline(QPolygonF([QPointF(*one) for one in line]))
        painter.setPen(QPen(colours.text, 1.4))
        painter.drawPolyline(QPolygonF([QPointF(*one) for one in np.column_stack((xs, axes.ys(total / power))).tolist()]))
        for is_end, seconds in ((False, begin), (True, end)):
            if seconds is not None:
                is_chosen = self._chosen == Border(place, is_end)
                painter.setPen(QPen(colours.mark if is_chosen else colours.text, 2.4 if is_chosen else 1.2, Qt.PenStyle.DashLine))
                painter.drawLine(QLineF(axes.x(seconds / 60), inner.top(), axes.x(seconds / 60), inner.bottom()))
        if trace.apex is not None and self._held is None:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.mark)
            at = QPointF(axes.x(trace.apex / 60), inner.top() + 5)
            painter.drawPolygon(QPolygonF([at + QPointF(-5, -5), at + QPointF(5, -5), at + QPointF(0, 4)]))
            painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.restore()
        small = QFont(font)
        draw_axes(painter, axes, colours, small, AxisTitles("", ""))
        if power > 1:
            painter.setPen(colours.faint)
            unit = f"× {locale.toString(power, 'g', 1)}, min"
            box = QRectF(inner.right() - 160, inner.top(), 156, metrics.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, unit)

    def _ends(self, place: int, trace: IonTrace) -> tuple[float | None, float | None]:
        """The borders as they are drawn: one that is dragged where the pointer is."""
        if self._held is not None and self._held[0] == place:
            low, high = sorted(self._held[1:3])
            return low, high
        return trace.begin, trace.end

    def _move(self, place: int, one: float, other: float) -> None:
        """Have the borders of a trace at two times, each at its survey spectrum."""
        trace = self._trace(place)
        if trace is None or not len(trace.seconds):
            return
        ends = sorted(float(trace.seconds[np.argmin(np.abs(trace.seconds - at))]) for at in (one, other))
        if ends[0] < ends[1] and (ends[0], ends[1]) != (trace.begin, trace.end):
            self.bordersMoved.emit(place, ends[0], ends[1])

    def _ask_reset(self) -> None:
        if self._chosen is not None:
            self.bordersReset.emit(self._chosen.place)

    def _enable(self) -> None:
        trace = None if self._chosen is None else self._trace(self._chosen.place)
        self.reset_action.setEnabled(trace is not None and trace.is_manual)

    def _trace(self, place: int) -> IonTrace | None:
        return None if self.traces is None or not 0 <= place < len(self.traces.traces) else self.traces.traces[place]

    def _borders(self) -> list[Border]:
        found = [] if self.traces is None else [at for at, one in enumerate(self.traces.traces) if one.begin is not None and one.row >= 0]
        return [Border(place, is_end) for place in found for is_end in (False, True)]

    def _border_at(self, at: QPointF) -> Border | None:
        near = []
        for border in self._borders():
            place = self.place_of(border)
            inner = self._inner(self._cell(border.place))
            if place is not None and inner.adjusted(-_NEAR, 0, _NEAR, 0).contains(at) and abs(place.x() - at.x()) <= _NEAR:
                near.append((abs(place.x() - at.x()), border))
        return min(near)[1] if near else None

    def _place_at(self, at: QPointF) -> int | None:
        n = 0 if self.traces is None else len(self.traces.traces)
        return next((place for place in range(n) if self._inner(self._cell(place)).contains(at)), None)

    def _seconds_at(self, place: int, at: QPointF) -> float:
        inner = self._inner(self._cell(place))
        low, high = self._range
        part = (min(max(at.x(), inner.left()), inner.right()) - inner.left()) / inner.width()
        return (low + part * (high - low)) * 60

    def _everything(self) -> tuple[float, float]:
        """Minutes of all that was read."""
        shown = [] if self.traces is None else [one.seconds / 60 for one in self.traces.traces if len(one.seconds)]
        low, high = min((float(one[0]) for one in shown), default=0.0), max((float(one[-1]) for one in shown), default=1.0)
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    def _whole(self) -> tuple[float, float]:
        traces = () if self.traces is None else self.traces.traces
        ends = [(one.begin / 60, one.end / 60) for one in traces if one.begin is not None and one.end is not None]
        least, most = self._everything()
        if not ends:
            return least, most
        low, high = min(one[0] for one in ends), max(one[1] for one in ends)
        room = max((high - low) * 0.6, 0.1)
        low, high = max(low - room, least), min(high + room, most)
        return (low, high) if high > low else (least, most)

    def _grid(self, width: float) -> tuple[int, int]:
        """Columns and rows."""
        n = 1 if self.traces is None else max(1, len(self.traces.traces))
        columns = min(n, max(1, int(width // _LEAST_WIDTH)), max(1, math.ceil(math.sqrt(2 * n))))
        rows = -(-n // columns)
        return -(-n // rows), rows

    def _cell(self, place: int, whole: QRectF | None = None) -> QRectF:
        area = QRectF(self.rect()) if whole is None else whole
        columns, rows = self._grid(area.width())
        width, height = area.width() / columns, area.height() / rows
        return QRectF(area.left() + place % columns * width, area.top() + place // columns * height, width, height)

    def _inner(self, cell: QRectF, font: QFont | None = None) -> QRectF:
        line = QFontMetricsF(font or self.font()).height()
        return cell.adjusted(line * 2.4 + 8, line + 8, -10, -line - 10)

    def _figure(self) -> ExportFigure | None:
        if self.traces is None:
            return None
        size = QSizeF(_FIGURE_WIDTH, 100.0 * self._grid(_FIGURE_WIDTH)[1])

        def paint(painter: QPainter, area: QRectF) -> None:
            assert self.traces is not None
            for place in range(len(self.traces.traces)):
                self._paint_trace(painter, place, self._cell(place, area), PAPER, figure_font(7))

        return ExportFigure(self.traces.title, size, paint)


def _told(trace: IonTrace) -> str:
    """What the table says of a trace, in a line."""
    values = trace.values
    if not values:
        return "not identified here"
    source = {"manual": ", set by hand", "transferred": ", transferred"}.get(str(values["source"]), "")
    if values["refused"]:
        return str(values["refused"])
    return f"area {QLocale().toString(float(values['area'] or 0.0), 'g', 4)}{source}"
