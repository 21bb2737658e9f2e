"""Alignments piled up at a place of a text, with what differs in each, below the letters of the text and features of a track."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, QSize, QSizeF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from proteoscope.engine.formats.tracks import TrackFeature
from proteoscope.engine.views.pileup import MAXIMUM_WIDTH, Pileup
from proteoscope.engine.views.reads import ShownText
from proteoscope.gui.colours import PAPER, PlotColours, plot_colours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import ExportAction, ExportFigure, figure_font
from proteoscope.gui.plots.zoomed import Ranges, ZoomedPlot
from proteoscope.gui.room import pixels_with_letters

__all__ = ["PileupPlot"]

_FIGURE_SIZE = QSizeF(510, 320)
_LETTER_KINDS = {"A": "a", "C": "b", "G": "x", "T": "y", "U": "y", "-": "p", "+": "z"}
"""Which of the colours that readers with any colour vision tell apart is a letter's, which stands beside it where there is room."""
_HIGHEST, _LOWEST = 16.0, 3.0
"""Pixels of a line of alignments."""
_LEAST_LETTERS = 20.0
_SOON_MS = 120
_TRACK_LINES = 3


class PileupPlot(ZoomedPlot):
    """Shows a `Pileup`, or a text in its place. Wheel and keys zoom; a click chooses an alignment."""

    rowChosen = Signal(int)
    """Row of the table of alignments."""
    rangeAsked = Signal(int, int)
    """Letters of the text that are in sight now."""
    message = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.pile: Pileup | None = None
        self.features: list[TrackFeature] = []
        self.text = ""
        self._of: ShownText | None = None
        self._chosen: int | None = None
        self._later = QTimer(self, singleShot=True, interval=_SOON_MS)
        self._later.timeout.connect(self._ask)
        self.setAccessibleName("Alignments piled up")
        self.setMinimumSize(160, pixels_with_letters(self, 110))
        self.export_action = ExportAction(self, self._figure, self.message.emit)

    @property
    def inner(self) -> QRectF:
        """Where alignments are drawn."""
        return self._inner(QRectF(self.rect()), self.font())

    @property
    def chosen(self) -> int | None:
        """Row of the marked alignment in the table, or None."""
        return self._chosen

    @property
    def is_waiting(self) -> bool:
        """True if `rangeAsked` is about to be emitted."""
        return self._later.isActive()

    @property
    def letters(self) -> tuple[int, int]:
        """First and last letter of the text in sight."""
        ((low, high),) = self._ranges or ((0.5, 1.5),)
        return int(np.ceil(low)), max(int(np.ceil(low)), int(np.floor(high)))

    def look_at(self, text: ShownText, first: int, last: int) -> None:
        """Look at a place of a text, whose alignments are then asked for."""
        self._of = text
        if self.pile is not None and not self.pile.text.is_same(text):
            self.pile = None
        self.show_range(((first - 0.5, last + 0.5),))

    def show_range(self, ranges: Ranges) -> None:
        """Look at other letters, as many as can be piled up."""
        ((low, high),) = ranges
        middle, width = (low + high) / 2, min(high - low, float(MAXIMUM_WIDTH))
        super().show_range(((middle - width / 2, middle + width / 2),))
        self._later.start()

    def show_pile(self, pile: Pileup | None, text: str = "") -> None:
        """Show alignments, or a text in their place."""
        self.pile, self.text = pile, text
        if pile is None and not text:
            self._of = None
            self._later.stop()
        left = "" if pile is None or not pile.n_left_out else f"; {QLocale().toString(pile.n_left_out)} more have no room"
        n = 0 if pile is None else len(pile)
        self.setAccessibleDescription(text or f"{n} alignments{left}")
        self.update()

    def show_features(self, features: list[TrackFeature]) -> None:
        """Show features of a track over the alignments."""
        self.features = features
        self.update()

    def choose(self, row: int | None) -> None:
        """Mark the alignment of a row of the table."""
        self._chosen = row
        self.update()

    def sizeHint(self) -> QSize:
        """Room for some alignments."""
        return QSize(420, 260)

    def text_at(self, at: QPointF) -> str:
        """The alignment and the letters at a place of this widget."""
        inner, pile = self.inner, self.pile
        if pile is None or not inner.contains(at):
            return ""
        place = round(self._values_at(at)[0])
        feature = next((one for one, box in self._feature_boxes(inner) if box.contains(at)), None)
        if feature is not None:
            kind = f"{feature.kind} " if feature.kind else ""
            return f"{kind}{feature.name} ({feature.strand}), {feature.first} to {feature.last}"
        counts = ", ".join(f"{letter} {n}" for letter, n in pile.counts(place).items())
        read = self._read_at(at)
        name = "" if read is None else f"{pile.names[read]} ({'-' if pile.is_reverse[read] else '+'})\n"
        return f"{name}letter {QLocale().toString(place)}: {counts or 'not covered'}"

    def paint_pile(self, painter: QPainter, area: QRectF, colours: PlotColours, font: QFont) -> None:
        """Draw axis, letters, features and alignments into `area`."""
        pile = self.pile
        assert pile is not None
        inner, (shown,) = self._inner(area, font), self._ranges
        axes = Axes(inner, shown, (0.0, 1.0))
        metrics = QFontMetricsF(font)
        painter.save()
        painter.setClipRect(inner)
        step = inner.width() / (shown[1] - shown[0])
        has_letters = step >= metrics.horizontalAdvance("W") * 0.9
        if has_letters:
            self._paint_letters(painter, axes, step, colours, metrics)
        self._paint_features(painter, inner, colours, metrics)
        top, height = self._lanes_of(inner, metrics)
        y = top + pile.lane * height
        for at in np.flatnonzero(y < inner.bottom()).tolist():
            box = QRectF(axes.x(pile.start[at] - 0.5), y[at], 0, height * 0.8)
            box.setRight(axes.x(pile.end[at] + 0.5))
            fill = QColor(colours.decoy if pile.is_reverse[at] else colours.target)
            fill.setAlpha(200 if pile.row[at] == self._chosen else 70)
            painter.fillRect(box, fill)
        font_of_reads = QFont(font)
        font_of_reads.setPixelSize(max(5, int(height * 0.72)))
        painter.setFont(font_of_reads)
        writes = has_letters and height > 8
        y_of = top + pile.lane[pile.read] * height
        in_sight = np.flatnonzero((y_of < inner.bottom()) & (pile.place >= shown[0]) & (pile.place <= shown[1]))
        for at in in_sight.tolist():
            letter = chr(pile.letter[at])
            colour = colours.ions[_LETTER_KINDS.get(letter, "p")]
            x = axes.x(pile.place[at] - 0.5)
            if letter == "+":
                painter.setPen(QPen(colour, 2))
                painter.drawLine(QLineF(x + step, y_of[at], x + step, y_of[at] + height * 0.8))
                continue
            box = QRectF(x, y_of[at], max(step, 1.2), height * 0.8)
            painter.fillRect(box, colour)
            if writes:
                painter.setPen(colours.background)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, letter)
        painter.restore()
        locale = QLocale()
        shown_reads = f"{locale.toString(len(pile))} alignment{'' if len(pile) == 1 else 's'}"
        if pile.n_left_out:
            shown_reads += f" of {locale.toString(len(pile) + pile.n_left_out)}"
        title = f"{pile.text.name}, letters; {shown_reads}; lines: insertions (+)"
        title = metrics.elidedText(title, Qt.TextElideMode.ElideMiddle, inner.width())
        draw_axes(painter, axes, colours, font, AxisTitles(title), x_is_whole=True)
        painter.fillRect(QRectF(area.left(), inner.top() - 8, inner.left() - area.left() + 0.6, inner.height() + 10), colours.background)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it, or the text."""
        colours = plot_colours(self.palette())
        painter = QPainter(self)
        painter.fillRect(event.rect(), colours.background)
        painter.setFont(self.font())
        if self.pile is None:
            painter.setPen(colours.faint)
            painter.drawText(self.rect().adjusted(20, 12, -20, -12), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
        else:
            self.paint_pile(painter, QRectF(self.rect()), colours, self.font())
            self._paint_pull(painter, colours)
        painter.end()

    def _ask(self) -> None:
        if self._of is not None:
            self.rangeAsked.emit(*self.letters)

    def _whole(self) -> Ranges | None:
        return None if self._of is None else ((0.5, self._of.length + 0.5),)

    def _least(self) -> tuple[float, ...]:
        return (_LEAST_LETTERS,)

    def _lanes_of(self, inner: QRectF, metrics: QFontMetricsF) -> tuple[float, float]:
        """Where the first line of alignments begins, and how high each is."""
        top = inner.top() + metrics.height() * 1.3 + (metrics.height() * 1.2 * _TRACK_LINES if self.features else 0)
        n = 1 if self.pile is None else max(1, self.pile.n_lanes)
        return top, min(_HIGHEST, max(_LOWEST, (inner.bottom() - top) / n))

    def _read_at(self, at: QPointF) -> int | None:
        inner, pile = self.inner, self.pile
        if pile is None or not inner.contains(at):
            return None
        top, height = self._lanes_of(inner, QFontMetricsF(self.font()))
        place, lane = self._values_at(at)[0], int((at.y() - top) // height)
        if at.y() < top:
            return None
        found = np.flatnonzero((pile.lane == lane) & (pile.start - 0.5 <= place) & (pile.end + 0.5 >= place))
        return int(found[0]) if len(found) else None

    def _can_be_clicked(self, at: QPointF) -> bool:
        return self._read_at(at) is not None

    def _click(self, at: QPointF) -> None:
        read = self._read_at(at)
        if read is not None and self.pile is not None:
            self.rowChosen.emit(int(self.pile.row[read]))

    def _paint_letters(self, painter: QPainter, axes: Axes, step: float, colours: PlotColours, metrics: QFontMetricsF) -> None:
        pile = self.pile
        assert pile is not None
        first, last = self.letters
        for place in range(max(first, pile.first), min(last, pile.last) + 1):
            code = int(pile.reference[place - pile.first])
            if code:
                painter.setPen(colours.ions[_LETTER_KINDS.get(chr(code), "p")])
                box = QRectF(axes.x(place - 0.5), axes.area.top(), step, metrics.height())
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, chr(code))

    def _feature_boxes(self, inner: QRectF) -> list[tuple[TrackFeature, QRectF]]:
        """Features with their boxes, those that overlap on lines of their own; what finds no line is left out."""
        axes, line = Axes(inner, self._ranges[0], (0.0, 1.0)), QFontMetricsF(self.font()).height() * 1.2
        ends = [inner.left() - 9.0] * _TRACK_LINES
        found: list[tuple[TrackFeature, QRectF]] = []
        for one in self.features:
            left, right = (min(max(axes.x(at), inner.left()), inner.right()) for at in (one.first - 0.5, one.last + 0.5))
            lane = next((at for at, end in enumerate(ends) if end <= left), None)
            if lane is not None and right > left:
                ends[lane] = right + 2
                found.append((one, QRectF(left, inner.top() + line * (lane + 1.1), max(1.5, right - left), line * 0.85)))
        return found

    def _paint_features(self, painter: QPainter, inner: QRectF, colours: PlotColours, metrics: QFontMetricsF) -> None:
        for one, box in self._feature_boxes(inner):
            fill = QColor(colours.ions["a"])
            fill.setAlpha(90)
            painter.fillRect(box, fill)
            painter.setPen(colours.text)
            arrow = {"+": f"{one.name} ▸", "-": f"◂ {one.name}"}.get(one.strand, one.name)
            shown = metrics.elidedText(arrow, Qt.TextElideMode.ElideRight, box.width() - 4)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, shown)

    @staticmethod
    def _inner(area: QRectF, font: QFont) -> QRectF:
        line = QFontMetricsF(font).height()
        return area.adjusted(12, 4, -12, -2 * line - 10)

    def _figure(self) -> ExportFigure | None:
        return None if self.pile is None else ExportFigure(f"{self.pile.text.name} piled up", _FIGURE_SIZE, self._paint)

    def _paint(self, painter: QPainter, area: QRectF) -> None:
        font = figure_font(8)
        painter.setFont(font)
        self.paint_pile(painter, area, PAPER, font)
