"""Pictures on the cards of the start page, drawn in the colours of the theme.

They do not use the modules of figures, which are slow to import and not needed when the window opens.
"""
# ruff: noqa: N802 - Qt gives these names

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from proteoscope.gui.scrolling_layout import scaled_pixels
from proteoscope.gui.theme import Colours, colours

_WIDTH, _HEIGHT = 120.0, 90.0
_FAINT_PEAKS = ((8, 14), (15, 9), (30, 18), (41, 8), (54, 12), (70, 20), (83, 9), (97, 13), (112, 7))
_FIRST_PEAKS = ((22, 34), (37, 52), (62, 40), (90, 22))
_SECOND_PEAKS = ((47, 70), (57, 28), (76, 58), (104, 36))
"""Peaks of the spectrum in the picture, each as horizontal position and height, in units of the picture (`_WIDTH` x `_HEIGHT`)."""


class StartPicture(QWidget):
    """Picture of a group of searches.

    Parameters
    ----------
    name : str
        ``identify``, ``quantify``, ``compare`` or ``inspect``.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self._draw = _PICTURES[name]
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def sizeHint(self) -> QSize:
        """Return the preferred size, which follows the font."""
        return QSize(scaled_pixels(self, round(_WIDTH)), scaled_pixels(self, round(_HEIGHT)))

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size at which the picture is recognisable."""
        return QSize(round(_WIDTH / 2), round(_HEIGHT / 2))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the picture, centred and as large as possible."""
        scale = min(self.width() / _WIDTH, self.height() / _HEIGHT)
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.translate((self.width() - scale * _WIDTH) / 2, (self.height() - scale * _HEIGHT) / 2)
            painter.scale(scale, scale)
            self._draw(painter, colours())


def _identify(painter: QPainter, theme: Colours) -> None:
    """Draw an annotated spectrum."""
    for peaks, tone in ((_FAINT_PEAKS, theme.faint_text), (_FIRST_PEAKS, theme.link), (_SECOND_PEAKS, theme.attention)):
        is_faint = tone == theme.faint_text
        _lines(painter, tone, 1.6 if is_faint else 2.4, ((x, 80, x, 80 - height) for x, height in peaks))
        if not is_faint:
            _dots(painter, tone, 5, ((x, 76 - height) for x, height in peaks))
    _lines(painter, theme.text, 1.4, ((3, 80, 117, 80),))


def _quantify(painter: QPainter, theme: Colours) -> None:
    """Draw a volcano plot."""
    positions = [at / 30 - 1 for at in range(61)]
    dots = [(60 + 50 * at, 78 - 62 * abs(at) ** 1.6 - 9 * abs(math.sin(37 * at))) for at in positions]
    changed = [(x, y) for x, y in dots if abs(x - 60) > 22 and y < 52]
    _dots(painter, theme.faint_text, 4, (dot for dot in dots if dot not in changed))
    _dots(painter, theme.link, 6, (dot for dot in changed if dot[0] < 60))
    _dots(painter, theme.attention, 6, (dot for dot in changed if dot[0] > 60))
    cuts = (38, 6, 38, 82), (82, 6, 82, 82), (5, 52, 115, 52)
    _lines(painter, theme.faint_text, 1, cuts, Qt.PenStyle.DashLine)
    _lines(painter, theme.text, 1.4, ((5, 82, 115, 82),))


def _compare(painter: QPainter, theme: Colours) -> None:
    """Draw aligned sequences above two helices."""
    rows = ("1111011110111", theme.text), ("1111011010111", theme.link), ("0111011110110", theme.attention)
    for row, (residues, tone) in enumerate(rows):
        positions = [5 + 8.6 * column for column in range(len(residues))]
        _boxes(painter, tone, ((x, 6 + 11 * row, 7.2, 8) for x, residue in zip(positions, residues, strict=True) if residue == "1"))
        gaps = ((x + 1, 10 + 11 * row, x + 6, 10 + 11 * row) for x, residue in zip(positions, residues, strict=True) if residue == "0")
        _lines(painter, theme.faint_text, 1.2, gaps)
    for phase, tone in ((0.0, theme.link), (0.9, theme.attention)):
        painter.setPen(QPen(QColor(tone), 5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawPolyline(QPolygonF([QPointF(6 + 0.68 * at, 64 + 17 * math.sin(0.0884 * at + phase)) for at in range(160)]))


def _inspect(painter: QPainter, theme: Colours) -> None:
    """Draw a table below a magnifying glass."""
    for row in range(5):
        tone = theme.faint_text if row else theme.text
        _boxes(painter, tone, ((6 + left, 8 + 15 * row, width - row, 6) for left, width in ((0, 30), (36, 24), (64, 34))))
    _lines(painter, theme.attention, 6, ((97, 68, 114, 85),))
    painter.setPen(QPen(QColor(theme.link), 4))
    painter.setBrush(QColor(theme.field))
    painter.drawEllipse(QRectF(58, 28, 46, 46))
    heights = (70, 9), (76, 21), (82, 13), (88, 25), (93, 7)
    _lines(painter, theme.attention, 2.4, ((x, 63, x, 63 - height) for x, height in heights))
    _lines(painter, theme.text, 1.2, ((66, 63, 97, 63),))


_PICTURES: dict[str, Callable[[QPainter, Colours], None]] = {
    "identify": _identify,
    "quantify": _quantify,
    "compare": _compare,
    "inspect": _inspect,
}


def _lines(
    painter: QPainter,
    tone: str,
    width: float,
    lines: Iterable[tuple[float, float, float, float]],
    style: Qt.PenStyle = Qt.PenStyle.SolidLine,
) -> None:
    painter.setPen(QPen(QColor(tone), width, style, Qt.PenCapStyle.FlatCap))
    painter.drawLines([QLineF(*line) for line in lines])


def _dots(painter: QPainter, tone: str, size: float, positions: Iterable[tuple[float, float]]) -> None:
    painter.setPen(QPen(QColor(tone), size, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawPoints(QPolygonF([QPointF(*position) for position in positions]))


def _boxes(painter: QPainter, tone: str, boxes: Iterable[tuple[float, float, float, float]]) -> None:
    for box in boxes:
        painter.fillRect(QRectF(*box), QColor(tone))
