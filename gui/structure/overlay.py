"""Overlay of a 3D picture: residue names, chain ends, distances between picked residues, and the colour legend."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QLinearGradient, QPainter, QPen

from proteoscope.engine.structures.colouring import Legend
from proteoscope.gui.structure.camera import Camera
from proteoscope.gui.structure.scene import Pick, Scene

_MARGIN = 10.0
_RING, _SHORT = 6.0, 70.0
_WIDEST_LEGEND, _HIGHEST_LEGEND = 0.4, 0.4
"""Maximum width and height of the legend, as fractions of the picture."""


CORNERS = ((False, True), (True, True), (False, False), (True, False))
"""Corners for the legend in order of preference, each as two flags: True for right, and True for bottom."""
_GAIN = 0.02
"""The legend moves to another corner only if it covers fewer Cα there; this is the minimum difference, as a share of all Cα."""


@dataclass
class OverlayChoice:
    """Parts of the overlay that are drawn: names of picked residues, chain ends (N, C), legend; and the corner of the legend."""

    residues: bool = True
    ends: bool = True
    legend: bool = True
    corner: tuple[bool, bool] = CORNERS[0]


def distance_text(pick: Pick, other: Pick) -> str:
    """Return the distance between two picked residues (their Cα) or atoms as text in Å."""
    return f"{float(np.linalg.norm(pick.position.astype(np.float64) - other.position)):.2f} Å"


def text_colours(background: QColor) -> tuple[QColor, QColor]:
    """Return the colours of text and of its halo on a background."""
    if background.lightness() < 128:
        return QColor("#ffffff"), QColor(0, 0, 0, 150)
    return QColor("#000000"), QColor(255, 255, 255, 185)


def paint_overlay(
    painter: QPainter, scene: Scene, legend: Legend, camera: Camera, choice: OverlayChoice, background: QColor, width: float, height: float
) -> None:
    """Paint the overlay on a picture of `width` x `height` painter units, in the painter's font."""
    text, halo = text_colours(background)
    painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)
    write = _Writer(painter, text, halo, QRectF(0, 0, width, height))
    if choice.ends:
        _paint_ends(write, scene, camera, width, height)
    picks = [(pick, at) for pick, at in _placed(scene.picks, camera, width, height)]
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for (_, start), (_, end) in pairwise(picks):
        for colour, thickness in ((halo, 4.0), (text, 1.6)):
            pen = QPen(colour, thickness)
            pen.setDashPattern([10.0 / thickness, 6.0 / thickness])
            painter.setPen(pen)
            painter.drawLine(QLineF(start, end))
    for _, at in picks:
        for colour, thickness in ((halo, 4.0), (text, 1.8)):
            painter.setPen(QPen(colour, thickness))
            painter.drawEllipse(at, _RING, _RING)
    for (first_pick, start), (other, end) in pairwise(picks):
        middle = (start + end) / 2
        if QLineF(start, end).length() < _SHORT:
            # If the picks are close together, write below their rings, which the text would cover.
            middle += QPointF(0.0, 2 * _RING + QFontMetricsF(painter.font()).height() / 2)
        write(distance_text(first_pick, other), middle, is_centred=True)
    for pick, at in picks if choice.residues else ():
        write(pick.label, at + QPointF(_RING + 4, -_RING - 2))
    if choice.legend:
        _paint_legend(painter, _LegendLayout(legend, painter.font(), width, height), choice.corner, text, halo)


def best_corner(
    legend: Legend, font: QFont, scene: Scene, camera: Camera, width: float, height: float, current: tuple[bool, bool]
) -> tuple[bool, bool]:
    """Return the corner in which the legend covers the fewest Cα of a scene, or the current corner if no other is clearly better."""
    layout = _LegendLayout(legend, font, width, height)
    x, y, depth = camera.projected(scene.points(), width, height).T
    covered = {}
    for corner in CORNERS:
        box = layout.box(corner).adjusted(-_MARGIN, -_MARGIN, _MARGIN, _MARGIN)  # ribbons and side chains extend beyond their Cα
        covered[corner] = int(np.sum((x > box.left()) & (x < box.right()) & (y > box.top()) & (y < box.bottom()) & (depth > 0)))
    best = min(CORNERS, key=covered.__getitem__)
    return best if covered[best] < covered[current] - _GAIN * len(x) else current


class _Writer:
    """Painter of texts on a readable background, which moves each text down if it would overlap an earlier one."""

    def __init__(self, painter: QPainter, text: QColor, halo: QColor, area: QRectF) -> None:
        self._painter, self._text, self._halo, self._area = painter, text, halo, area
        self._metrics = QFontMetricsF(painter.font())
        self._taken: list[QRectF] = []

    def __call__(self, text: str, at: QPointF, *, is_centred: bool = False) -> None:
        if not self._area.contains(at):
            return
        width, height = self._metrics.horizontalAdvance(text) + 6, self._metrics.height() + 2
        box = QRectF(at.x() - width / 2 if is_centred else at.x(), at.y() - height / 2, width, height)
        box.moveLeft(min(max(box.left(), 0.0), max(self._area.width() - width, 0.0)))
        for _ in range(4):
            if not any(box.intersects(taken) for taken in self._taken):
                break
            box.translate(0, height)
        self._taken.append(box)
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(self._halo)
        self._painter.drawRoundedRect(box, 3, 3)
        self._painter.setBrush(Qt.BrushStyle.NoBrush)
        self._painter.setPen(self._text)
        self._painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)


def _placed(picks: Iterable[Pick], camera: Camera, width: float, height: float) -> list[tuple[Pick, QPointF]]:
    """Return the selected residues and atoms that are in front of the eye, with their positions in the picture."""
    placed = []
    for pick in picks:
        x, y, depth = camera.projected(pick.position[None], width, height)[0].tolist()
        if depth > 0:
            placed.append((pick, QPointF(x, y)))
    return placed


def _paint_ends(write: _Writer, scene: Scene, camera: Camera, width: float, height: float) -> None:
    # Only the ends of the query and the selected hit are labelled: labels of twenty chains would overlap.
    chosen = scene.chosen.trace if scene.chosen is not None and scene.chosen.is_shown else None
    for trace in (scene.query, chosen):
        if trace is None:
            continue
        mask = scene.mask(trace)
        is_place = np.isfinite(trace.position).all(axis=1)
        rows = np.flatnonzero(is_place if mask is None else is_place & mask)
        if not len(rows):
            continue
        for name, row in (("N", int(rows[0])), ("C", int(rows[-1]))):
            for _, at in _placed([Pick(trace, row)], camera, width, height):
                write(name, at, is_centred=True)


class _LegendLayout:
    """Texts of a legend, shortened and wrapped for a picture of `width` x `height` painter units, and their size."""

    def __init__(self, legend: Legend, font: QFont, width: float, height: float) -> None:
        metrics = QFontMetricsF(font)
        self.legend, self._width, self._height = legend, width, height
        self.line, self.side = metrics.height() * 1.15, metrics.height() * 0.7
        widest = max(width * _WIDEST_LEGEND, 60.0)
        n_fixed = 1 + 2 * len(legend.scales)
        most = max(1, int((height * _HIGHEST_LEGEND) // self.line) - n_fixed)
        self.entries = list(legend.entries)
        if len(self.entries) > most:
            self.entries = self.entries[: max(most - 1, 0)]
        n_more = len(legend.entries) - len(self.entries)
        self.names = [metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, widest) for _, name in self.entries]
        if n_more:
            self.names.append(f"and {n_more} more")
        ends = [f"{scale.low_text}    {scale.high_text}" for scale in legend.scales]
        space = max(metrics.horizontalAdvance(label) for label in [legend.title, *ends, *self.names]) + self.side + 8
        self.space = max(space, min(widest, metrics.horizontalAdvance(legend.note)))
        self.notes = _wrapped(legend.note, metrics, self.space)
        self._n_lines = n_fixed + len(self.names) + len(self.notes)

    def box(self, corner: tuple[bool, bool]) -> QRectF:
        """Return the area of the legend in a corner of the picture."""
        box = QRectF(_MARGIN - 5, _MARGIN - 3, self.space + 10, self._n_lines * self.line + 6)
        is_right, is_low = corner
        return box.translated(
            self._width - 2 * box.left() - box.width() if is_right else 0.0, self._height - 2 * box.top() - box.height() if is_low else 0.0
        )


def _paint_legend(painter: QPainter, layout: _LegendLayout, corner: tuple[bool, bool], text: QColor, halo: QColor) -> None:
    """Paint the legend in a corner: title, colour scales with their end values, named colours, and a note."""
    legend, line, side, space = layout.legend, layout.line, layout.side, layout.space
    box = layout.box(corner)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(halo)
    painter.drawRoundedRect(box, 4, 4)
    left, top = box.left() + 5, box.top() + 3
    at_left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
    at_right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter

    def draw_text(words: str, shift: float = 0.0) -> None:
        painter.setPen(text)
        painter.drawText(QRectF(left + shift, top, space - shift + 2, line), at_left, words)

    draw_text(legend.title)
    top += line
    for scale in legend.scales:
        bar = QRectF(left, top + (line - side) / 2, space, side)
        gradient = QLinearGradient(bar.topLeft(), bar.topRight())
        for i, stop in enumerate(scale.stops):
            gradient.setColorAt(i / max(len(scale.stops) - 1, 1), QColor(*stop))
        painter.setPen(QPen(text, 0.6))
        painter.setBrush(gradient)
        painter.drawRect(bar)
        top += line
        draw_text(scale.low_text)
        painter.drawText(QRectF(left, top, space, line), at_right, scale.high_text)
        top += line
    for i, name in enumerate(layout.names):
        if i < len(layout.entries):
            painter.setPen(QPen(text, 0.6))
            painter.setBrush(QColor(*layout.entries[i][0]))
            painter.drawRect(QRectF(left, top + (line - side) / 2, side, side))
        draw_text(name, side + 6)
        top += line
    for note in layout.notes:
        draw_text(note)
        top += line


def _wrapped(text: str, metrics: QFontMetricsF, width: float) -> list[str]:
    """Return a text wrapped to lines of a width."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and metrics.horizontalAdvance(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
