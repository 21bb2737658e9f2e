"""Secondary structure as figures in the literature have it: a wave for a helix, an arrow for a strand, a line for coil."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from proteoscope.gui.colours import PlotColours

__all__ = ["paint_coil", "paint_helix", "paint_states", "paint_strand", "state_colours"]

_TURN = 3.6
"""Residues in a turn of a helix."""
_STEPS = 6  # of the drawn wave, for each residue


def state_colours(colours: PlotColours) -> dict[str, QColor]:
    """Colours of helices, strands and coil, which their shapes tell apart as well."""
    return {"H": colours.ions["z"], "E": colours.ions["a"], "C": colours.faint}


def paint_states(
    painter: QPainter, states: str, first: int, last: int, corner: QPointF, cell: float, height: float, colours: PlotColours
) -> None:
    """Draw the states of columns `first` to `last` (not included) from `corner`, `cell` wide each; nothing in gaps (``-``).

    The wave of a helix goes on from one line to the next, and a strand has its head where it ends, not where the line does.
    """
    codes = np.frombuffer(states[first:last].encode("ascii"), np.uint8)
    tones = state_colours(colours)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    for start, stop in pairwise([0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]):
        state = chr(codes[start]) if stop > start else "-"
        area = QRectF(corner.x() + start * cell, corner.y(), (stop - start) * cell, height)
        if state == "H":
            paint_helix(painter, area, cell, tones["H"], phase=(first + start) / _TURN)
        elif state == "E":
            ends = states[first + stop :].lstrip("-")[:1] != "E"
            paint_strand(painter, area, cell, tones["E"], has_head=ends)
        elif state == "C":
            paint_coil(painter, area, tones["C"])
    painter.restore()


def paint_helix(painter: QPainter, area: QRectF, cell: float, colour: QColor, phase: float = 0.0) -> None:
    """A wave of a turn for each 3.6 residues."""
    n = max(2, round(area.width() / cell * _STEPS) + 1)
    x = np.linspace(0.0, area.width(), n)
    y = area.center().y() - 0.36 * area.height() * np.sin(2 * np.pi * (phase + x / cell / _TURN))
    path = QPainterPath(QPointF(area.left(), float(y[0])))
    for at, height in zip(x[1:].tolist(), y[1:].tolist(), strict=True):
        path.lineTo(area.left() + at, height)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(colour, max(1.2, area.height() * 0.13), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap, Qt.PenJoinStyle.RoundJoin))
    painter.drawPath(path)


def paint_strand(painter: QPainter, area: QRectF, cell: float, colour: QColor, *, has_head: bool = True) -> None:
    """An arrow to the right; a bar where it goes on in the next line."""
    middle, half, wide = area.center().y(), 0.16 * area.height(), 0.38 * area.height()
    head = min(area.width(), 1.6 * cell) if has_head else 0.0
    neck = area.right() - head
    corners = [QPointF(area.left(), middle - half), QPointF(neck, middle - half)]
    if has_head:
        corners += [QPointF(neck, middle - wide), QPointF(area.right(), middle), QPointF(neck, middle + wide)]
    corners += [QPointF(neck, middle + half), QPointF(area.left(), middle + half)]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(colour)
    painter.drawPolygon(QPolygonF(corners))


def paint_coil(painter: QPainter, area: QRectF, colour: QColor) -> None:
    """A line."""
    painter.setPen(QPen(colour, max(1.0, area.height() * 0.07)))
    painter.drawLine(QLineF(area.left(), area.center().y(), area.right(), area.center().y()))
