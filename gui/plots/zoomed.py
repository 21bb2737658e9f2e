"""A plot of which a part can be looked at: what the mouse and the keyboard do with it."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPen, QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from proteoscope.gui.colours import PlotColours
from proteoscope.gui.labels import answer_tooltip

__all__ = ["Ranges", "ZoomedPlot"]

_ZOOM = 0.8
_STEP = 0.2
"""Part of the range that a key moves."""

Ranges = tuple[tuple[float, float], ...]
"""Least and greatest value in sight, across and, of a plot with two axes that can be zoomed, upwards."""


class ZoomedPlot(QWidget):
    """Wheel: zoom around the pointer. Drag: zoom into the box. Double click, 0 or Home: everything. Keys: + and - zoom, arrows move.

    A plot derives from it, says what there is (`_whole`), how much is shown at least (`_least`) and where it is drawn (`inner`), and what
    a click does (`_click`). A plot with one range is zoomed across alone.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._ranges: Ranges = ()
        self._pressed: QPointF | None = None
        self._pulled: QPointF | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)

    @property
    def ranges(self) -> Ranges:
        """What is in sight."""
        return self._ranges

    @property
    def inner(self) -> QRectF:
        """Where values are drawn."""
        raise NotImplementedError

    def text_at(self, at: QPointF) -> str:
        """What is told of a place of this widget; empty where there is nothing to tell."""
        raise NotImplementedError

    def reset_range(self) -> None:
        """Show everything."""
        whole = self._whole()
        if whole is not None:
            self._ranges = whole
        self.update()

    def show_range(self, ranges: Ranges) -> None:
        """Show a part, within what there is."""
        whole, fitted = self._whole(), []
        if whole is None:
            return
        for (low, high), (least, most), smallest in zip(ranges, whole, self._least(), strict=True):
            width = min(max(high - low, smallest), most - least)
            low = min(max((low + high - width) / 2, least), most - width)
            fitted.append((low, low + width))
        self._ranges = tuple(fitted)
        self.update()

    def zoom(self, steps: int) -> None:
        """Show less, or more where steps are negative, around the middle."""
        if self._whole() is not None:
            self._zoom(_ZOOM**steps, tuple((low + high) / 2 for low, high in self._ranges))

    def _whole(self) -> Ranges | None:
        """The ranges that hold all; None while there is nothing."""
        raise NotImplementedError

    def _least(self) -> tuple[float, ...]:
        """How wide a range is at least."""
        raise NotImplementedError

    def _values_at(self, at: QPointF) -> tuple[float, ...]:
        """The values at a place of this widget, one for each range."""
        inner = self.inner
        parts = ((at.x() - inner.left()) / inner.width(), (inner.bottom() - at.y()) / inner.height())
        return tuple(low + part * (high - low) for (low, high), part in zip(self._ranges, parts, strict=False))

    def _click(self, at: QPointF) -> None:
        """A click at a place of this widget."""
        raise NotImplementedError

    def _can_be_clicked(self, at: QPointF) -> bool:
        """Whether a click there does something."""
        raise NotImplementedError

    def _forget_pull(self) -> None:
        self._pressed = self._pulled = None

    def _paint_pull(self, painter: QPainter, colours: PlotColours) -> None:
        """Draw the box that is being pulled; of a plot with one range it is as high as that."""
        if self._pulled is None or self._pressed is None:
            return
        box = QRectF(self._pressed, self._pulled).normalized()
        if len(self._ranges) == 1:
            box.setTop(self.inner.top())
            box.setBottom(self.inner.bottom())
        fill = QColor(colours.target)
        fill.setAlpha(40)
        painter.setPen(QPen(colours.target, 1.0))
        painter.setBrush(fill)
        painter.drawRect(box)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click, or a box."""
        event.accept()
        if event.button() == Qt.MouseButton.LeftButton and self.inner.contains(event.position()):
            self._pressed = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pull the box, or show what can be clicked."""
        event.accept()
        at = event.position()
        if self._pressed is not None:
            if self._pulled is not None or (at - self._pressed).manhattanLength() >= QApplication.startDragDistance():
                inner = self.inner
                self._pulled = QPointF(min(max(at.x(), inner.left()), inner.right()), min(max(at.y(), inner.top()), inner.bottom()))
                self.update()
            return
        self.setCursor(Qt.CursorShape.PointingHandCursor if self._can_be_clicked(at) else Qt.CursorShape.ArrowCursor)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Zoom into the box, or take the click."""
        event.accept()
        pressed, pulled = self._pressed, self._pulled
        self._forget_pull()
        if event.button() != Qt.MouseButton.LeftButton or pressed is None:
            return
        if pulled is None:
            self._click(event.position())
            return
        box = QRectF(pressed, pulled).normalized()
        self.show_range(tuple(zip(self._values_at(box.bottomLeft()), self._values_at(box.topRight()), strict=True)))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Show everything."""
        event.accept()
        self._pressed = None
        self.reset_range()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Zoom around the pointer."""
        event.accept()
        if self._whole() is not None and event.angleDelta().y():
            self._zoom(_ZOOM ** (event.angleDelta().y() / 120), self._values_at(event.position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Move, zoom, or show everything."""
        moves = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Down: (1, -1), Qt.Key.Key_Up: (1, 1)}
        key = Qt.Key(event.key())
        axis, way = moves.get(key, (-1, 0))
        if 0 <= axis < len(self._ranges):
            steps = [way * _STEP * (high - low) if one == axis else 0.0 for one, (low, high) in enumerate(self._ranges)]
            self.show_range(tuple((low + step, high + step) for (low, high), step in zip(self._ranges, steps, strict=True)))
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.zoom(-1 if key == Qt.Key.Key_Minus else 1)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self.reset_range()
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """Tell what is under the pointer."""
        return answer_tooltip(event, self, self.text_at) or super().event(event)

    def _zoom(self, factor: float, around: tuple[float, ...]) -> None:
        self.show_range(
            tuple((at - (at - low) * factor, at + (high - at) * factor) for (low, high), at in zip(self._ranges, around, strict=True))
        )

    def _bring_into_sight(self, values: tuple[float, ...]) -> None:
        """Move to values, as far as they lie outside."""
        moved = []
        for (low, high), one in zip(self._ranges, values, strict=True):
            by = 0.0 if low <= one <= high else one - (low + high) / 2
            moved.append((low + by, high + by))
        self.show_range(tuple(moved))
