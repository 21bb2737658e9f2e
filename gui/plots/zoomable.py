"""Zooming and moving of the visible range of a plot, by method calls and with the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton

from proteoscope.gui.buttons import tool_button

ZOOM = 0.8
"""Factor by which a zoom step changes the width of the visible range."""
_STEP = 0.2
"""Fraction of the visible range by which an arrow key moves it."""
_MOVES = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Down: (1, -1), Qt.Key.Key_Up: (1, 1)}

Range = tuple[float, float]
Ranges = tuple[Range, ...]
"""Visible range (minimum, maximum) of x and, if the height can be zoomed too, of y."""


class Zoomable:
    """Mixin for a widget with visible ranges: keys + and - zoom, arrows move, 0 and Home show everything.

    Derived widgets return the complete ranges (`_whole`, empty without content) and the minimum widths of visible ranges (`_smallest`), and
    draw the visible ranges (`_draw_ranges`).
    """

    _ranges: Ranges = ()

    @property
    def ranges(self) -> Ranges:
        """The visible ranges."""
        return self._ranges

    def reset_range(self) -> None:
        """Show the initial ranges."""
        self.show_range(self._home())

    def show_range(self, ranges: Ranges) -> None:
        """Show the given ranges, clipped to the complete ranges and widened to the minimum widths."""
        fitted = []
        for (low, high), (least, most), smallest in zip(ranges, self._whole(), self._smallest(), strict=False):
            width = min(max(high - low, smallest), most - least)
            low = min(max((low + high - width) / 2, least), most - width)
            fitted.append((low, low + width))
        self._ranges = (*fitted, *self._ranges[len(fitted) :])
        self._draw_ranges()

    def zoom(self, steps: int) -> None:
        """Zoom in around the centre by a number of steps, or out if the number is negative."""
        self._zoom(ZOOM**steps, tuple((low + high) / 2 for low, high in self._ranges))

    def bring_into_sight(self, *values: float) -> None:
        """For each axis, centre the visible range on the given value if the value is outside the range."""
        moves = [
            0.0 if low <= value <= high else value - (low + high) / 2 for (low, high), value in zip(self._ranges, values, strict=False)
        ]
        self._shift(moves)

    def _take_key(self, key: Qt.Key) -> bool:
        """Move or zoom the range, or show everything, as a key requires; return False for other keys."""
        axis, way = _MOVES.get(key, (-1, 0))
        if 0 <= axis < len(self._ranges):
            self._step(axis, way)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus) and self._ranges:
            self.zoom(-1 if key == Qt.Key.Key_Minus else 1)
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home) and self._ranges:
            self.reset_range()
        else:
            return False
        return True

    def _step(self, axis: int, way: int) -> None:
        """Move along an axis (0: x, 1: y) in a direction (`way`: 1 or -1)."""
        self._shift([way * _STEP * (high - low) if at == axis else 0.0 for at, (low, high) in enumerate(self._ranges)])

    def _shift(self, moves: Sequence[float]) -> None:
        self.show_range(tuple((low + move, high + move) for (low, high), move in zip(self._ranges, moves, strict=False)))

    def _zoom(self, factor: float, around: Sequence[float], factor_upwards: float | None = None) -> None:
        factors = (factor, factor if factor_upwards is None else factor_upwards)
        self.show_range(
            tuple(
                (at - (at - low) * part, at + (high - at) * part)
                for (low, high), at, part in zip(self._ranges, around, factors, strict=False)
            )
        )

    def _home(self) -> Ranges:
        """Return the initial ranges."""
        return self._whole()

    def _whole(self) -> Ranges:
        raise NotImplementedError

    def _smallest(self) -> Sequence[float]:
        raise NotImplementedError

    def _draw_ranges(self) -> None:
        raise NotImplementedError


def zoom_buttons(plot: Zoomable, shown: str) -> list[QToolButton]:
    """Return buttons that zoom out, zoom in and show everything; `shown` is a noun for the content, such as ``reference``."""
    buttons = [
        tool_button(icon, tip, partial(plot.zoom, steps))
        for icon, tip, steps in (("remove", f"Show more of the {shown} (-)", -1), ("add", f"Show less of the {shown} (+)", 1))
    ]
    return [*buttons, tool_button("reset", f"Show the whole {shown} (0)", plot.reset_range)]
