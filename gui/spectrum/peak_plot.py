"""What every plot of peaks over m/z has in common: the peaks with their labels, zooming, and the peak under the pointer."""
# ruff: noqa: N802 - Qt and pyqtgraph give these names

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QPainter, QPainterPath, QPen, QTransform
from PySide6.QtWidgets import QGraphicsObject, QWidget

from proteoscope.engine.views.label_layout import place_labels
from proteoscope.engine.views.shown_peaks import UNMATCHED, ShownPeaks
from proteoscope.gui.colours import PlotColours, plot_colours
from proteoscope.gui.room import pixels_with_letters
from proteoscope.gui.spectrum.figure import FigureRange, peaks_by_kind

__all__ = ["PeakPlace", "PeakPlot", "PlotItem"]

_NEAR = 7.0
"""Pixels from the pointer within which a peak is meant."""
_AXIS_WIDTH = 58
_ZOOM = 0.8


class PeakPlace(NamedTuple):
    """A peak of one of the spectra that are drawn."""

    spectrum: int
    peak: int


class PeakPlot(pg.GraphicsLayoutWidget):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Peaks over m/z: of one spectrum, or of two, the second hanging from the axis.

    Wheel: zoom m/z around the pointer. Drag: zoom into the box. Double click, 0 or Home: everything. Keys: + and - zoom, left and right
    move, up and down change the height.
    """

    _is_made = False
    _top = 116.0
    """Percent of the base peak that the plot reaches to, so that its label has room."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drawn: tuple[ShownPeaks, ...] = ()
        self._hovered: PeakPlace | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(name)
        self.ci.setContentsMargins(4, 2, 10, 2)
        self.ci.setSpacing(2)
        self._plots: list[Any] = []
        self.upper = self._add_plot(0, "Relative intensity (%)", has_height=True)
        self._peaks = _PeaksItem(self.upper.vb)
        self._labels = [_LabelsItem(self.upper.vb), _LabelsItem(self.upper.vb)]
        self._mark = _MarkItem(self.upper.vb)
        for item in (self._peaks, *self._labels, self._mark):
            self.upper.addItem(item, ignoreBounds=True)
        self.scene().sigMouseMoved.connect(self._hover)

    @property
    def shown_range(self) -> FigureRange:
        """What part of the spectrum is in sight."""
        (low, high), (_, top) = self.upper.viewRange()
        return FigureRange(float(low), float(high), float(top))

    @property
    def label_texts(self) -> list[str]:
        """The labels that found a place when the plot was last drawn."""
        return [label.text for item in self._labels for label in item.placed]

    @property
    def label_boxes(self) -> list[QRectF]:
        """Where they stand, in pixels of the view."""
        return [label.box for item in self._labels for label in item.placed]

    def reset_range(self) -> None:
        """Show the whole spectrum."""
        low, high = self._whole()
        for plot in self._plots:
            plot.setLimits(xMin=low, xMax=high, minXRange=0.02)
        self.upper.setLimits(yMin=self._foot(self._top * 1.5), yMax=self._top * 1.5, minYRange=0.01)
        self.upper.setRange(xRange=(low, high), yRange=(self._foot(self._top), self._top), padding=0)

    def zoom_height(self, top: float) -> None:
        """Show intensities up to `top` percent."""
        self.upper.vb.setYRange(self._foot(top), top, padding=0)

    def pixels_of(self, place: PeakPlace) -> QPointF:
        """Where the tip of a peak is drawn, in pixels of this widget."""
        return QPointF(self.mapFromScene(self.upper.vb.mapViewToScene(QPointF(*self._tip(place)))))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Zoom and move."""
        box = self.upper.vb
        (low, high), (_, top) = box.viewRange()
        step = (high - low) * 0.2
        match event.key():
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                box.scaleBy(x=_ZOOM)
            case Qt.Key.Key_Minus:
                box.scaleBy(x=1 / _ZOOM)
            case Qt.Key.Key_0 | Qt.Key.Key_Home:
                self.reset_range()
            case Qt.Key.Key_Left | Qt.Key.Key_Right:
                least, most = self._whole()
                move = -min(step, low - least) if event.key() == Qt.Key.Key_Left else min(step, most - high)
                box.setXRange(low + move, high + move, padding=0)
            case Qt.Key.Key_Up:
                self.zoom_height(top * _ZOOM)
            case Qt.Key.Key_Down:
                self.zoom_height(min(top / _ZOOM, self._top))
            case _:
                QWidget.keyPressEvent(self, event)
                return
        event.accept()

    def changeEvent(self, event: QEvent) -> None:
        """Take the colours and the font of the new theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and self._is_made:
            self._recolour()

    def leaveEvent(self, event: QEvent) -> None:
        """No peak is meant any more."""
        super().leaveEvent(event)
        self._set_hovered(None)

    def _draw_peaks(self, *drawn: ShownPeaks) -> None:
        """Draw a spectrum, or two, or none."""
        self._drawn = drawn
        colours = plot_colours(self.palette())
        self._peaks.show_peaks(drawn, colours)
        for at, item in enumerate(self._labels):
            item.show_peaks(drawn[at] if at < len(drawn) else None, colours)
        self._mark.colour = colours.text

    def _draw(self) -> None:
        """Draw everything anew, in the colours of the palette."""
        raise NotImplementedError

    def _tell_hovered(self, place: PeakPlace | None) -> None:
        """The pointer is at another peak, or at none."""
        raise NotImplementedError

    def _marked(self, place: PeakPlace) -> list[PeakPlace]:
        """What to mark while the pointer is at a peak."""
        return [place]

    def _add_plot(self, row: int, left: str, *, has_height: bool) -> Any:
        axes = {"left": _MagnitudeAxis("left")} if has_height else None
        plot = self.addPlot(row=row, col=0, viewBox=_PeakBox(self, has_height=has_height), axisItems=axes)
        plot.setMenuEnabled(False)
        plot.hideButtons()
        plot.getAxis("left").setWidth(pixels_with_letters(self, _AXIS_WIDTH))
        plot.setLabel("left", left)
        for axis in ("left", "bottom"):
            plot.getAxis(axis).enableAutoSIPrefix(False)
        self._plots.append(plot)
        return plot

    def _foot(self, top: float) -> float:
        """Where the view begins that reaches to `top`."""
        return -top if len(self._drawn) > 1 else 0.0

    def _tip(self, place: PeakPlace) -> tuple[float, float]:
        drawn = self._drawn[place.spectrum]
        return float(drawn.mz[place.peak]), float(drawn.height[place.peak]) * drawn.side

    def _whole(self) -> tuple[float, float]:
        ends = [float(end) for drawn in self._drawn if len(drawn.mz) for end in drawn.mz[[0, -1]]]
        if not ends:
            return 0.0, 1000.0
        first, last = min(ends), max(ends)
        margin = max(2.0, (last - first) * 0.03)
        return max(0.0, first - margin), last + margin

    def _recolour(self) -> None:
        """Take the colours and the font of the theme; called first by who derives from this, when it is made."""
        self._is_made = True
        colours = plot_colours(self.palette())
        self.setBackground(colours.background)
        font = QFont(self.font())
        for plot in self._plots:
            for side in ("left", "bottom"):
                axis = plot.getAxis(side)
                axis.setPen(QPen(colours.faint, 0))
                axis.setTextPen(colours.text)
                axis.setTickFont(font)
                axis.label.setFont(font)
        for item in self._labels:
            item.font = font
        self._draw()

    def _hover(self, at: QPointF) -> None:
        if not self._drawn or not self.upper.vb.sceneBoundingRect().contains(at):
            self._set_hovered(None)
            return
        pointer = self.upper.vb.mapSceneToView(at)
        spectrum = int(pointer.y() < 0 and len(self._drawn) > 1)
        drawn = self._drawn[spectrum]
        width, height = self.upper.vb.viewPixelSize()
        first, last = np.searchsorted(drawn.mz, (pointer.x() - _NEAR * width, pointer.x() + _NEAR * width))
        if first == last:
            self._set_hovered(None)
            return
        # The nearest in pixels, where the tip counts too: of peaks that stand close, the pointer may tell them apart by height.
        above = np.maximum(0.0, pointer.y() * drawn.side - drawn.height[first:last]) / height
        distance = np.abs(drawn.mz[first:last] - pointer.x()) / width + above * 0.2 - 0.02 * drawn.height[first:last]
        self._set_hovered(PeakPlace(spectrum, int(first + np.argmin(distance))))

    def _set_hovered(self, place: PeakPlace | None) -> None:
        if place == self._hovered:
            return
        self._hovered = place
        self._mark.show_at([] if place is None else [self._tip(one) for one in self._marked(place)])
        self._tell_hovered(place)


class _MagnitudeAxis(pg.AxisItem):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Intensities, which are never negative: those of the spectrum that hangs from the axis grow downwards."""

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        """The numbers at the ticks."""
        texts: list[str] = super().tickStrings([abs(value) for value in values], scale, spacing)
        return texts


class _PeakBox(pg.ViewBox):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Zooms m/z by the wheel, into a box by dragging, and out by a double click."""

    def __init__(self, plot: PeakPlot, *, has_height: bool) -> None:
        super().__init__(enableMenu=False)
        self._plot = plot
        self._has_height = has_height
        self.setMouseMode(pg.ViewBox.RectMode)
        self.setMouseEnabled(x=True, y=False)
        self.disableAutoRange()

    def showAxRect(self, ax: QRectF, **options: Any) -> None:
        """The end of dragging a box: peaks always stand on the axis."""
        self._plot.upper.vb.setXRange(ax.left(), ax.right(), padding=0)
        if self._has_height:
            self._plot.zoom_height(max(abs(ax.top()), abs(ax.bottom())))

    def mouseClickEvent(self, ev: Any) -> None:
        """A double click shows everything."""
        if ev.double() and ev.button() == Qt.MouseButton.LeftButton:
            self._plot.reset_range()
            ev.accept()


class PlotItem(QGraphicsObject):
    """Something that is drawn over the whole plot, in the plot's own values."""

    def __init__(self, box: _PeakBox) -> None:
        super().__init__()
        self._box = box
        box.sigRangeChanged.connect(self._follow)
        box.sigResized.connect(self._follow)

    def boundingRect(self) -> QRectF:
        """All that is in sight."""
        return QRectF(self._box.viewRect())

    def _follow(self, *_: Any) -> None:
        self.prepareGeometryChange()
        self.update()


class _PeaksItem(PlotItem):
    """All peaks: one path for each colour of each spectrum."""

    def __init__(self, box: _PeakBox) -> None:
        super().__init__(box)
        self._paths: list[tuple[QPen, QPainterPath]] = []

    def show_peaks(self, drawn: Sequence[ShownPeaks], colours: PlotColours) -> None:
        self._paths = []
        for one in drawn:
            for kind, peaks in peaks_by_kind(one):
                self._add(colours.ions[kind], 1.0 if kind == UNMATCHED else 1.8, one, peaks)
        self.update()

    def _add(self, colour: QColor, width: float, drawn: ShownPeaks, peaks: np.ndarray) -> None:
        x, y = np.repeat(drawn.mz[peaks], 2), np.zeros(2 * len(peaks))
        y[1::2] = drawn.height[peaks] * drawn.side
        pen = QPen(colour, width)
        pen.setCosmetic(True)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        self._paths.append((pen, pg.arrayToQPath(x, y, connect="pairs")))

    def paint(self, painter: QPainter, *_: Any) -> None:
        # Upright lines are sharpest where pixels are.
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for pen, path in self._paths:
            painter.setPen(pen)
            painter.drawPath(path)


class _Label(NamedTuple):
    """A name, its box, the line to the tip of its peak if it stands apart from it, in pixels, and its colour."""

    text: str
    box: QRectF
    leader: QLineF | None
    colour: QColor


class _LabelsItem(PlotItem):
    """Names of peaks of one spectrum at their tips, laid out anew for each view."""

    def __init__(self, box: _PeakBox) -> None:
        super().__init__(box)
        self.font = QFont()
        self.lines_free = 0
        """Lines of text at the end of the plot that are for something else."""
        self.placed: list[_Label] = []
        self._drawn: ShownPeaks | None = None
        self._colours: PlotColours | None = None
        self._laid_out_for: QTransform | None = None
        self.setZValue(10)

    def show_peaks(self, drawn: ShownPeaks | None, colours: PlotColours) -> None:
        self._drawn, self._colours = drawn, colours
        self._laid_out_for = None
        self.update()

    def lay_out(self, transform: QTransform) -> None:
        """Find places for what is in sight, in pixels of the view. `transform`: from the plot's values to pixels."""
        drawn, colours = self._drawn, self._colours
        if drawn is None or colours is None:
            self.placed = []
            return
        if transform == self._laid_out_for:
            return
        self._laid_out_for = transform
        shown = self.boundingRect()
        area, side = transform.mapRect(shown), drawn.side
        first, last = np.searchsorted(drawn.mz, (shown.left(), shown.right()))
        x = transform.m11() * drawn.mz[first:last] + transform.dx()
        reach = shown.bottom() if side == 1 else -shown.top()
        # What hangs from the axis is laid out as if it stood on it.
        y = transform.m22() * np.minimum(drawn.height[first:last], reach) + side * transform.dy()
        metrics = QFontMetricsF(self.font)
        end = (area.top() if side == 1 else -area.bottom()) + self.lines_free * metrics.height()
        in_sight = np.flatnonzero((drawn.named >= first) & (drawn.named < last))
        tips = drawn.named[in_sight] - first
        texts = [drawn.labels[label] for label in in_sight.tolist()]
        widths = np.array([metrics.horizontalAdvance(text) for text in texts])
        placed = place_labels(
            x[tips],
            y[tips],
            widths,
            metrics.height(),
            drawn.height[tips + first],
            x,
            y,
            (area.left(), end, area.right(), side * transform.dy()),
        )
        height = metrics.height()
        self.placed = [
            _Label(
                texts[one.label],
                QRectF(one.left, one.top if side == 1 else -one.top - height, widths[one.label], height),
                None if one.foot is None else QLineF(one.foot, side * (one.top + height), x[tips[one.label]], side * y[tips[one.label]]),
                colours.ions[str(drawn.kinds[drawn.named[int(in_sight[one.label])]])],
            )
            for one in placed
        ]

    def paint(self, painter: QPainter, *_: Any) -> None:
        self.lay_out(painter.worldTransform())
        painter.save()
        painter.resetTransform()
        painter.setFont(self.font)
        for label in self.placed:
            if label.leader is not None:
                painter.setPen(QPen(label.colour, 0.8, Qt.PenStyle.DotLine))
                painter.drawLine(label.leader)
            painter.setPen(label.colour)
            painter.drawText(label.box.adjusted(-2, 0, 2, 0), Qt.AlignmentFlag.AlignCenter, label.text)
        painter.restore()


class _MarkItem(PlotItem):
    """Marks on the peak under the pointer, and on what belongs to it."""

    def __init__(self, box: _PeakBox) -> None:
        super().__init__(box)
        self.colour = QColor()
        self._tips: list[tuple[float, float]] = []
        self.setZValue(11)

    def show_at(self, tips: list[tuple[float, float]]) -> None:
        self._tips = tips
        self.update()

    def paint(self, painter: QPainter, *_: Any) -> None:
        if not self._tips:
            return
        transform = painter.worldTransform()
        painter.save()
        painter.resetTransform()
        for x, y in self._tips:
            tip, foot = transform.map(QPointF(x, y)), transform.map(QPointF(x, 0.0))
            painter.setPen(QPen(self.colour, 1.0, Qt.PenStyle.DotLine))
            painter.drawLine(QLineF(tip, foot))
            painter.setPen(QPen(self.colour, 1.4))
            painter.drawEllipse(tip, 3.5, 3.5)
        painter.restore()
