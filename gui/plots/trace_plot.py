"""Chromatograms (traces) of an ion in all files, whose integration limits can be dragged."""
# ruff: noqa: N802, N815, D102 - Qt gives these names

from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.figures import Figure
from proteoscope.engine.views.quantity_traces import Border, IonTrace, IonTraces, trace_columns, trace_panel, traces_figure
from proteoscope.gui.actions import make_action
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.scrolling_layout import scaled_pixels

_NEAR = 6.0
"""Maximum distance in pixels between the pointer and an integration limit that a press selects."""
_MINIMUM_HEIGHT = 110


class TracePlot(FigureView):
    """Widget that shows the chromatograms (traces) of an ion in all files, or a text.

    Wheel and double click zoom. A selected integration limit is moved by dragging or with the arrow keys; in a trace without limits, a drag
    draws both.

    Signals
    -------
    bordersMoved
        The user moved limits; emitted with the index of the file and both limits in seconds.
    bordersReset
        The user requests automatic limits; emitted with the index of the file.
    """

    bordersMoved = Signal(int, float, float)
    bordersReset = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Chromatograms of the ion in all files", parent)
        self.traces: IonTraces | None = None
        self.chosen: Border | None = None
        """Selected limit, which the arrow keys move, or None."""
        self._held: tuple[int, float, float] | None = None
        """The current drag: index of the file, fixed limit and moving limit in seconds; or None."""
        self.reset_action = make_action(
            self, "&Reset integration limits", self._request_reset, tip="Restore the automatic limits of the trace whose limit is selected"
        )
        self.insertAction(self.export_action, self.reset_action)
        self.show_traces(None, " ")

    def show_traces(self, traces: IonTraces | None, text: str = "") -> None:
        """Show the traces of an ion, or a text; the visible range is retained if the ion is the same."""
        is_same = traces is not None and self.traces is not None and traces.title == self.traces.title
        self.traces, self._held = traces, None
        if not is_same:
            self.chosen = None
        self.export_action.setEnabled(traces is not None)
        self._draw_all(text, retains_range=is_same)
        self._enable()

    def choose(self, border: Border | None) -> None:
        """Select an integration limit; None selects no limit."""
        self.chosen = border
        self._enable()
        self._draw_all()

    def border_point(self, border: Border) -> QPointF | None:
        """Return the centre of an integration limit in pixels of this widget, or None if its trace has no limits."""
        trace = self._trace(border.file)
        seconds = None if trace is None else trace.end if border.is_end else trace.begin
        if seconds is None:
            return None
        return QPointF(self.place_of(seconds / 60, 0.0, border.file).x(), self.inner(border.file).center().y())

    def paper_figure(self) -> Figure | None:
        return None if self.traces is None else traces_figure(self.traces, chosen=self.chosen)

    def sizeHint(self) -> QSize:
        """Return the preferred size of several traces."""
        return QSize(600, 240)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.figure is not None and self.figure.n_columns != self._n_columns:
            self._draw_all()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Select a limit."""
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and self.traces is not None:
            self.choose(self._border_at(event.position()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show everything, or select a limit: the second press of a double click may start a drag."""
        if self._border_at(event.position()) is None:
            super().mouseDoubleClickEvent(event)
        else:
            self.mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if self._border_at(event.position()) is not None:
            self.viewport().setCursor(Qt.CursorShape.SplitHCursor)

    def dragged(self, panel: int, event: Any) -> bool:
        """Move the selected limit, or draw both limits of a trace without limits."""
        trace = self._trace(panel)
        if event.isStart():
            self._held = None if trace is None else self._begin(panel, trace, event.buttonDownScenePos())
        if self._held is not None and self.traces is not None:
            position, stays, _ = self._held
            self._held = (position, stays, self._seconds_at(position, event.scenePos()))
            low, high = sorted(self._held[1:])
            self.show_panel(trace_panel(self.traces, position, self.chosen, (low, high)), position)
            if event.isFinish():
                self._release_border()
        return True

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move the selected limit by an MS1 spectrum, select the next one, or cancel the drag."""
        key, borders = Qt.Key(event.key()), self._borders()
        if key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageUp) and borders:
            step = 1 if key == Qt.Key.Key_PageDown else -1
            at = borders.index(self.chosen) + step if self.chosen in borders else (0 if step > 0 else -1)
            self.choose(borders[at % len(borders)])
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self.chosen in borders and self.chosen is not None:
            trace = self._trace(self.chosen.file)
            assert trace is not None
            stays, moves = _ends(trace, self.chosen)
            at = int(np.argmin(np.abs(trace.seconds - moves))) + (1 if key == Qt.Key.Key_Right else -1)
            if 0 <= at < len(trace.seconds):
                self._move(self.chosen.file, stays, float(trace.seconds[at]))
        elif key == Qt.Key.Key_Escape and self._held is not None:
            self._held = None
            self._draw_all()
        else:
            super().keyPressEvent(event)

    @property
    def _n_columns(self) -> int:
        return 1 if self.traces is None else trace_columns(len(self.traces.traces), self.width())

    def _draw_all(self, text: str = "", *, retains_range: bool = True) -> None:
        n_rows = 1 if self.traces is None else -(-len(self.traces.traces) // self._n_columns)
        self.setMinimumHeight(n_rows * scaled_pixels(self, _MINIMUM_HEIGHT))
        figure = None if self.traces is None else traces_figure(self.traces, self._n_columns, self.chosen)
        self.show_figure(figure, text, retains_range=retains_range)

    def _begin(self, position: int, trace: IonTrace, at: QPointF) -> tuple[int, float, float] | None:
        """Return (file index, fixed limit, moving limit) for a drag that starts at `at`; None if the drag does not move a limit."""
        border = self._border_at(at)
        if border is not None and (held := self._trace(border.file)) is not None:
            return border.file, *_ends(held, border)
        if trace.row >= 0 and trace.begin is None and len(trace.seconds):
            seconds = self._seconds_at(position, at)
            return position, seconds, seconds
        return None

    def _release_border(self) -> None:
        held, self._held = self._held, None
        if held is not None and not self._move(*held):
            self._draw_all()

    def _move(self, position: int, *borders: float) -> bool:
        """Set the limits of a trace to the MS1 spectra nearest to `borders` (seconds); return False if the limits are unchanged."""
        trace = self._trace(position)
        if trace is None or not len(trace.seconds):
            return False
        begin, end = sorted(float(trace.seconds[np.argmin(np.abs(trace.seconds - at))]) for at in borders)
        is_moved = begin < end and (begin, end) != (trace.begin, trace.end)
        if is_moved:
            self.bordersMoved.emit(position, begin, end)
        return is_moved

    def _request_reset(self) -> None:
        if self.chosen is not None:
            self.bordersReset.emit(self.chosen.file)

    def _enable(self) -> None:
        trace = None if self.chosen is None else self._trace(self.chosen.file)
        self.reset_action.setEnabled(trace is not None and trace.is_manual)

    def _trace(self, position: int) -> IonTrace | None:
        return None if self.traces is None or not 0 <= position < len(self.traces.traces) else self.traces.traces[position]

    def _borders(self) -> list[Border]:
        traces = () if self.traces is None else self.traces.traces
        positions = [at for at, trace in enumerate(traces) if trace.begin is not None and trace.end is not None and trace.row >= 0]
        return [Border(position, is_end) for position in positions for is_end in (False, True)]

    def _border_at(self, at: QPointF) -> Border | None:
        near = []
        for border in self._borders():
            position, inner = self.border_point(border), self.inner(border.file)
            if position is not None and inner.adjusted(-_NEAR, 0, _NEAR, 0).contains(at) and abs(position.x() - at.x()) <= _NEAR:
                near.append((abs(position.x() - at.x()), border))
        return min(near)[1] if near else None

    def _seconds_at(self, position: int, at: QPointF) -> float:
        inner, (low, high) = self.inner(position), self.ranges[0]
        fraction = (min(max(at.x(), inner.left()), inner.right()) - inner.left()) / inner.width()
        return (low + fraction * (high - low)) * 60


def _ends(trace: IonTrace, border: Border) -> tuple[float, float]:
    """Return the fixed limit of a trace and the limit to move, in seconds."""
    assert trace.begin is not None and trace.end is not None
    return (trace.begin, trace.end) if border.is_end else (trace.end, trace.begin)
