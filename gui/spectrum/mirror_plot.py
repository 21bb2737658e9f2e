"""Two spectra mirrored at the m/z axis: the one that is looked at above, the one that it is compared with below."""
# ruff: noqa: N815 - Qt and pyqtgraph give these names

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.mirror import MirroredSpectra
from proteoscope.gui.colours import PAPER, plot_colours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import figure_font
from proteoscope.gui.spectrum.figure import FigureRange, paint_peaks
from proteoscope.gui.spectrum.peak_plot import PeakPlace, PeakPlot, PlotItem

__all__ = ["FIGURE_SIZE", "MirrorPlot", "corner_texts", "paint_mirror", "peak_text"]

FIGURE_SIZE = QSizeF(510, 320)
"""Points: as wide as two columns of a journal's page (180 mm)."""


class MirrorPlot(PeakPlot):
    """Two spectra, or one that is compared with none. Peaks that both have are coloured."""

    peakHovered = Signal(int, int)
    """Which of the spectra has the peak under the pointer, and the peak; -1 and -1 where there is none."""

    # Names stand above and below the highest peaks and their labels.
    _top = 134.0

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Two spectra compared", parent)
        for item in self._labels:
            item.lines_free = 1
        self._mirrored: MirroredSpectra | None = None
        self.upper.setLabel("bottom", "m/z")
        self._corners = _CornersItem(self.upper.vb)
        self.upper.addItem(self._corners, ignoreBounds=True)
        self._recolour()

    @property
    def corner_texts(self) -> list[str]:
        """What stands in the corners: the similarity, and the names of the spectra."""
        return [text for text, _ in self._corners.texts]

    def show_spectra(self, mirrored: MirroredSpectra | None) -> None:
        """Draw two spectra, or nothing."""
        self._set_hovered(None)
        self._mirrored = mirrored
        self._draw()
        self.reset_range()

    def _tell_hovered(self, place: PeakPlace | None) -> None:
        self.peakHovered.emit(*(place or (-1, -1)))

    def _marked(self, place: PeakPlace) -> list[PeakPlace]:
        partner = None if self._mirrored is None else self._mirrored.partner(*place)
        return [place] if partner is None else [place, PeakPlace(1 - place.spectrum, partner)]

    def _draw(self) -> None:
        self._draw_peaks(*([] if self._mirrored is None else self._mirrored.shown))
        colours = plot_colours(self.palette())
        texts = [] if self._mirrored is None else corner_texts(self._mirrored)
        self._corners.show_texts(texts, self.font(), colours.text, colours.background)


class _CornersItem(PlotItem):
    """Texts in the corners of the plot, and the axis between the two spectra."""

    def __init__(self, box: Any) -> None:
        super().__init__(box)
        self.texts: list[tuple[str, Qt.AlignmentFlag]] = []
        self._font, self._colour, self._background = QFont(), QColor(), QColor()
        self.setZValue(9)

    def show_texts(self, texts: list[tuple[str, Qt.AlignmentFlag]], font: QFont, colour: QColor, background: QColor) -> None:
        self.texts, self._font, self._colour, self._background = texts, font, colour, QColor(background)
        self._background.setAlpha(190)
        self.update()

    def paint(self, painter: QPainter, *_: Any) -> None:
        transform, shown = painter.worldTransform(), self.boundingRect()
        area = transform.mapRect(shown)
        painter.save()
        painter.resetTransform()
        if shown.top() < 0:
            painter.setPen(QPen(self._colour, 0.8))
            base = transform.map(QPointF(shown.left(), 0.0)).y()
            painter.drawLine(QLineF(area.left(), base, area.right(), base))
        _paint_corners(painter, area, self.texts, self._font, self._colour, self._background)
        painter.restore()


def corner_texts(mirrored: MirroredSpectra) -> list[tuple[str, Qt.AlignmentFlag]]:
    """What is written in which corner."""
    side = Qt.AlignmentFlag
    texts = []
    if mirrored.similarity is not None:
        texts.append((f"{mirrored.similarity_name} {QLocale().toString(mirrored.similarity, 'f', 3)}", side.AlignRight | side.AlignTop))
    texts.append((mirrored.upper.name, side.AlignLeft | side.AlignTop))
    if mirrored.lower is not None:
        texts.append((mirrored.lower.name, side.AlignLeft | side.AlignBottom))
    if mirrored.n_moved:
        difference = QLocale().toString(mirrored.shift, "f", 4)
        texts.append((f"{counted(mirrored.n_moved, 'peak')} moved by {difference} Th", side.AlignRight | side.AlignBottom))
    return texts


def _paint_corners(
    painter: QPainter,
    area: QRectF,
    texts: list[tuple[str, Qt.AlignmentFlag]],
    font: QFont,
    colour: QColor,
    background: QColor | None,
) -> None:
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    room = area.adjusted(6, 3, -6, -3)
    # The similarity, which comes first, keeps its room at the right; a name makes do with what is left of the line.
    taken = 0.0
    for text, corner in texts:
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, max(0.0, room.width() - taken))
        width = metrics.horizontalAdvance(shown)
        if corner & Qt.AlignmentFlag.AlignRight:
            taken = width + 16
        left = room.right() - width if corner & Qt.AlignmentFlag.AlignRight else room.left()
        top = room.bottom() - metrics.height() if corner & Qt.AlignmentFlag.AlignBottom else room.top()
        box = QRectF(left, top, width, metrics.height())
        if background is not None:
            painter.fillRect(box.adjusted(-2, 0, 2, 0), background)
        painter.setPen(colour)
        painter.drawText(box.adjusted(-2, 0, 2, 0), Qt.AlignmentFlag.AlignCenter, shown)


def paint_mirror(painter: QPainter, area: QRectF, mirrored: MirroredSpectra, shown: FigureRange) -> None:
    """Paint title and spectra into `area` (points)."""
    colours, font = PAPER, figure_font(8)
    line = QFontMetricsF(font).height()
    left, right = area.left() + 54, area.right() - 8
    painter.setFont(figure_font(8, is_bold=True))
    painter.setPen(colours.text)
    title = QFontMetricsF(painter.font()).elidedText(mirrored.title, Qt.TextElideMode.ElideMiddle, right - left)
    painter.drawText(QRectF(left, area.top() + 6, right - left, line), Qt.AlignmentFlag.AlignLeft, title)
    box = QRectF(left, area.top() + 10 + line, right - left, area.height() - 3 * line - 24)
    axes = Axes(box, (shown.low, shown.high), (-shown.top if mirrored.lower is not None else 0.0, shown.top))
    for drawn in mirrored.shown:
        paint_peaks(painter, axes, drawn, colours, font)
    painter.setPen(QPen(colours.text, 0.5))
    painter.drawLine(QLineF(box.left(), axes.y(0.0), box.right(), axes.y(0.0)))
    draw_axes(painter, axes, colours, font, AxisTitles("m/z", "Relative intensity (%)"), y_is_mirrored=True)
    _paint_corners(painter, box, corner_texts(mirrored), font, colours.text, None)


def peak_text(mirrored: MirroredSpectra, half: int, peak: int) -> str:
    """What is known of a peak and of the one that is the same in the other spectrum, on one line."""
    locale = QLocale()

    def told(at: int, one: int) -> str:
        of = mirrored.halves[at]
        name = "" if of.ions is None or one not in of.ions.match_of_peak else f"{of.ions.labels[of.ions.match_of_peak[one]]}, "
        mz, intensity = locale.toString(float(of.peaks.mz[one]), "f", 4), locale.toString(float(of.peaks.intensity[one]), "g", 4)
        return f"{name}m/z {mz}, intensity {intensity} ({locale.toString(float(of.relative[one]), 'f', 1)} %)"

    partner = mirrored.partner(half, peak)
    side = ("above: ", "below: ") if mirrored.lower is not None else ("", "")
    if partner is None:
        return side[half] + told(half, peak) + ("" if mirrored.lower is None or mirrored.is_one_spectrum else "   only here")
    both = {half: peak, 1 - half: partner}
    difference = float(mirrored.upper.peaks.mz[both[0]] - mirrored.halves[1].peaks.mz[both[1]])
    return f"{side[0]}{told(0, both[0])}   {side[1]}{told(1, both[1])}   {locale.toString(difference, 'f', 4)} Th apart"
