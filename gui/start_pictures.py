"""Pictures on the cards of the start page, drawn in the colours of the theme with the shapes of the figures."""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from proteoscope.engine.views.drawings import Bar, Curve, Drawing, Points, Shape, Sticks, Stroke
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.gui.colours import palette_of
from proteoscope.gui.plots.drawing_view import paint_drawing
from proteoscope.gui.scrolling_layout import scaled_pixels

__all__ = ["StartPicture"]

_WIDTH, _HEIGHT = 120.0, 90.0
_FONT_SIZE = 8.0
_FAINT_PEAKS = ((8, 14), (15, 9), (30, 18), (41, 8), (54, 12), (70, 20), (83, 9), (97, 13), (112, 7))
_B_PEAKS = ((22, 34), (37, 52), (62, 40), (90, 22))
_Y_PEAKS = ((47, 70), (57, 28), (76, 58), (104, 36))
"""Positions and heights of peaks."""


class StartPicture(QWidget):
    """Picture of a group of searches; it has no content of its own, so it is not announced.

    Parameters
    ----------
    name : str
        ``identify``, ``quantify``, ``compare`` or ``inspect``.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._drawing = Drawing(_WIDTH, _HEIGHT, "", tuple(_PICTURES[name]()), _FONT_SIZE)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def sizeHint(self) -> QSize:
        """Return the preferred size, which follows the font."""
        return QSize(scaled_pixels(self, round(_WIDTH)), scaled_pixels(self, round(_HEIGHT)))

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size at which the picture is recognisable."""
        return QSize(round(_WIDTH / 2), round(_HEIGHT / 2))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the picture as large as fits, in the middle."""
        scale = min(self.width() / _WIDTH, self.height() / _HEIGHT)
        with QPainter(self) as painter:
            painter.translate((self.width() - scale * _WIDTH) / 2, (self.height() - scale * _HEIGHT) / 2)
            painter.scale(scale, scale)
            paint_drawing(painter, self._drawing, palette_of(self.palette()), self.font())


def _identify() -> Iterable[Shape]:
    """Draw an annotated spectrum."""
    groups: tuple[tuple[tuple[tuple[int, int], ...], Ink], ...] = ((_FAINT_PEAKS, "faint"), (_B_PEAKS, Ion("b")), (_Y_PEAKS, Ion("y")))
    for peaks, ink in groups:
        x, height = np.array(peaks, float).T
        yield Sticks(x, 80 - height, np.full(len(x), 80.0), ink, 2.4 if ink != "faint" else 1.6)
        if ink != "faint":
            yield Points(x, 76 - height, ink, 5)
    yield Stroke(3, 80, 117, 80, "text", 1.4)


def _quantify() -> Iterable[Shape]:
    """Draw a volcano plot."""
    place = np.linspace(-1, 1, 61)
    x = 60 + 50 * place
    y = 78 - 62 * np.abs(place) ** 1.6 - 9 * np.abs(np.sin(37 * place))
    is_changed = (np.abs(x - 60) > 22) & (y < 52)
    yield Points(x[~is_changed], y[~is_changed], "faint", 4)
    yield Points(x[is_changed & (x < 60)], y[is_changed & (x < 60)], Ion("b"), 6)
    yield Points(x[is_changed & (x > 60)], y[is_changed & (x > 60)], Ion("y"), 6)
    for cut in (38, 82):
        yield Stroke(cut, 6, cut, 82, "faint", 1.0, True)
    yield Stroke(5, 52, 115, 52, "faint", 1.0, True)
    yield Stroke(5, 82, 115, 82, "text", 1.4)


def _compare() -> Iterable[Shape]:
    """Draw aligned sequences above a helix."""
    rows: tuple[tuple[str, Ink], ...] = (("1111011110111", "text"), ("1111011010111", Ion("b")), ("0111011110110", Ion("y")))
    for row, (residues, ink) in enumerate(rows):
        for column, residue in enumerate(residues):
            if residue == "1":
                yield Bar(5 + 8.6 * column, 6 + 11 * row, 7.2, 8, ink, opacity=0.85)
            else:
                yield Stroke(6 + 8.6 * column, 10 + 11 * row, 11 + 8.6 * column, 10 + 11 * row, "faint", 1.2)
    turn = np.linspace(0, 4.5 * np.pi, 160)
    x = 6 + 108 * turn / turn[-1]
    inks: tuple[Ink, Ink] = (Ion("b"), Ion("y"))
    for phase, ink in zip((0.0, 0.9), inks, strict=True):
        yield Curve(x, 64 + 17 * np.sin(turn + phase), ink, 5)


def _inspect() -> Iterable[Shape]:
    """Draw a table below a magnifying glass."""
    inks: tuple[Ink, ...] = ("text", "faint", "faint", "faint", "faint")
    for row, ink in enumerate(inks):
        for column, width in enumerate((30, 22, 34)):
            yield Bar(6 + (0, 36, 64)[column], 8 + 15 * row, width - 3 * (row * column % 3), 6, ink, opacity=0.75)
    yield Stroke(97, 68, 114, 85, Ion("y"), 6)
    yield Bar(58, 28, 46, 46, "background", is_round=True, outline=Ion("b"))
    angle = np.linspace(0, 2 * np.pi, 60)
    yield Curve(81 + 23 * np.cos(angle), 51 + 23 * np.sin(angle), Ion("b"), 4)
    x = np.array([70.0, 76, 82, 88, 93])
    yield Sticks(x, 63 - np.array([9.0, 21, 13, 25, 7]), np.full(5, 63.0), Ion("y"), 2.4)
    yield Stroke(66, 63, 97, 63, "text", 1.2)


_PICTURES = {"identify": _identify, "quantify": _quantify, "compare": _compare, "inspect": _inspect}
