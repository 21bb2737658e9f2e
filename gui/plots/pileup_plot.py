"""Alignments piled up at a place of a text in the window: zoomed, and chosen by a click."""
# ruff: noqa: N802, N815 - Qt gives these names

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QLocale, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from proteoscope.engine.formats.tracks import TrackFeature
from proteoscope.engine.views.drawings import PaperFigure
from proteoscope.engine.views.pileup import MAXIMUM_WIDTH, Pileup
from proteoscope.engine.views.pileup_drawing import PileupSheet, draw_pileup, inner_region
from proteoscope.engine.views.reads import ShownText
from proteoscope.gui.colours import palette_of, plot_colours
from proteoscope.gui.plots.drawing_view import WidgetMeasure, paint_drawing
from proteoscope.gui.plots.export import ExportAction
from proteoscope.gui.plots.zoomed import Ranges, ZoomedPlot
from proteoscope.gui.room import pixels_with_letters

__all__ = ["PileupPlot"]

_LEAST_LETTERS = 20.0
_SOON_MS = 120


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
        return QRectF(*inner_region(WidgetMeasure.from_font(self.font()), (self.width(), self.height())))

    @property
    def chosen(self) -> int | None:
        """Row of the marked alignment in the table, or None."""
        return self._chosen

    @property
    def is_waiting(self) -> bool:
        """True if `rangeAsked` is about to be emitted."""
        return self._later.isActive()

    @property
    def sheet(self) -> PileupSheet | None:
        """What is shown, laid out for the size of this widget."""
        if self.pile is None:
            return None
        size = float(self.width()), float(self.height())
        sheet = PileupSheet(self.pile, self.features, self._ranges[0], WidgetMeasure.from_font(self.font()), size)
        sheet.chosen = self._chosen
        return sheet

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
        """The feature, or the alignment and the characters, at a place of this widget."""
        return "" if (sheet := self.sheet) is None else sheet.text_at(at.x(), at.y())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw it, or the text."""
        colours, sheet = plot_colours(self.palette()), self.sheet
        with QPainter(self) as painter:
            painter.fillRect(event.rect(), colours.background)
            if sheet is None:
                painter.setPen(colours.faint)
                area = self.rect().adjusted(20, 12, -20, -12)
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self.text)
                return
            paint_drawing(painter, sheet.draw(), palette_of(self.palette()), self.font())
            self._paint_pull(painter, colours)

    def _ask(self) -> None:
        if self._of is not None:
            self.rangeAsked.emit(*self.letters)

    def _whole(self) -> Ranges | None:
        return None if self._of is None else ((0.5, self._of.length + 0.5),)

    def _least(self) -> tuple[float, ...]:
        return (_LEAST_LETTERS,)

    def _can_be_clicked(self, at: QPointF) -> bool:
        return (sheet := self.sheet) is not None and sheet.read_at(at.x(), at.y()) is not None

    def _click(self, at: QPointF) -> None:
        sheet = self.sheet
        read = None if sheet is None else sheet.read_at(at.x(), at.y())
        if sheet is not None and read is not None:
            self.rowChosen.emit(int(sheet.pile.row[read]))

    def _figure(self) -> PaperFigure | None:
        if self.pile is None:
            return None
        return PaperFigure(f"{self.pile.text.name} piled up", draw_pileup(self.pile, self.features, self._ranges[0]))
