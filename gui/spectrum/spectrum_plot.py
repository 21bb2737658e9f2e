"""The spectrum on the screen: peaks, labels and errors, to be zoomed and hovered over."""
# ruff: noqa: N802, N815 - Qt and pyqtgraph give these names

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QKeyEvent, QPainter, QPainterPath, QPen, QTransform
from PySide6.QtWidgets import QGraphicsObject, QWidget

from gui.plots.colours import PlotColours, plot_colours
from gui.plots.ion_kinds import UNMATCHED
from gui.spectrum.annotated_spectrum import AnnotatedSpectrum
from gui.spectrum.figure import ErrorUnit, FigureRange, error_reach
from gui.spectrum.label_layout import place_labels

__all__ = ["SpectrumPlot"]

_TOP = 116.0
"""Percent of the base peak that the plot reaches to, so that its label has room."""
_NEAR = 7.0
"""Pixels from the pointer within which a peak is meant."""
_AXIS_WIDTH = 58
_ZOOM = 0.8


class SpectrumPlot(pg.GraphicsLayoutWidget):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """An annotated spectrum over a panel of its m/z errors.

    Wheel: zoom m/z around the pointer. Drag: zoom into the box. Double click, 0 or Home: everything. Keys: + and - zoom, left and right
    move, up and down change the height.
    """

    peakHovered = Signal(int)
    """The peak under the pointer, -1 where there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spectrum: AnnotatedSpectrum | None = None
        self._unit: ErrorUnit = "ppm"
        self._hovered = -1
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Annotated spectrum")
        self.ci.setContentsMargins(4, 2, 10, 2)
        self.ci.setSpacing(2)
        self.upper = self.addPlot(row=0, col=0, viewBox=_SpectrumBox(self, has_height=True))
        self.lower = self.addPlot(row=1, col=0, viewBox=_SpectrumBox(self, has_height=False))
        for plot, left in ((self.upper, "Relative intensity (%)"), (self.lower, "Error (ppm)")):
            plot.setMenuEnabled(False)
            plot.hideButtons()
            plot.getAxis("left").setWidth(_AXIS_WIDTH)
            plot.setLabel("left", left)
            for axis in ("left", "bottom"):
                plot.getAxis(axis).enableAutoSIPrefix(False)
        self.upper.getAxis("bottom").setStyle(showValues=False)
        self.upper.getAxis("bottom").setHeight(8)
        self.lower.setLabel("bottom", "m/z")
        self.lower.setXLink(self.upper)
        self.ci.layout.setRowStretchFactor(0, 4)
        self.ci.layout.setRowStretchFactor(1, 1)
        self.ci.layout.setRowMinimumHeight(1, 92)
        self._peaks, self._labels, self._mark = _PeaksItem(self.upper.vb), _LabelsItem(self.upper.vb), _MarkItem(self.upper.vb)
        for item in (self._peaks, self._labels, self._mark):
            self.upper.addItem(item, ignoreBounds=True)
        self._zero = pg.InfiniteLine(0, angle=0)
        self._bounds = [pg.InfiniteLine(0, angle=0), pg.InfiniteLine(0, angle=0)]
        self._errors = pg.ScatterPlotItem(size=6, pxMode=True, pen=None)
        for item in (self._zero, *self._bounds, self._errors):
            self.lower.addItem(item, ignoreBounds=True)
        self.scene().sigMouseMoved.connect(self._hover)
        self._recolour()

    @property
    def shown_range(self) -> FigureRange:
        """What part of the spectrum is in sight."""
        (low, high), (_, top) = self.upper.viewRange()
        return FigureRange(float(low), float(high), float(top))

    @property
    def label_texts(self) -> list[str]:
        """The labels that found a place when the plot was last drawn."""
        return [label.text for label in self._labels.placed]

    @property
    def label_boxes(self) -> list[QRectF]:
        """Where they stand, in pixels of the view."""
        return [label.box for label in self._labels.placed]

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None, *, keeps_range: bool = False) -> None:
        """Draw a spectrum, or nothing. `keeps_range`: it is the same one, annotated in another way."""
        self._spectrum = spectrum
        self._set_hovered(-1)
        self._draw()
        if not keeps_range:
            self.reset_range()

    def set_error_unit(self, unit: ErrorUnit) -> None:
        """Show errors in ppm or in dalton."""
        self._unit = unit
        self._draw_errors()

    def reset_range(self) -> None:
        """Show the whole spectrum."""
        low, high = self._whole()
        for plot in (self.upper, self.lower):
            plot.setLimits(xMin=low, xMax=high, minXRange=0.02)
        self.upper.setLimits(yMin=0, yMax=_TOP * 1.5, minYRange=0.01)
        self.upper.setRange(xRange=(low, high), yRange=(0, _TOP), padding=0)

    def pixels_of_peak(self, peak: int) -> QPointF:
        """Where the tip of a peak is drawn, in pixels of this widget."""
        spectrum = self._spectrum
        assert spectrum is not None
        scene = self.upper.vb.mapViewToScene(QPointF(float(spectrum.peaks.mz[peak]), float(spectrum.relative[peak])))
        return QPointF(self.mapFromScene(scene))

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
                box.setYRange(0, top * _ZOOM, padding=0)
            case Qt.Key.Key_Down:
                box.setYRange(0, min(top / _ZOOM, _TOP), padding=0)
            case _:
                QWidget.keyPressEvent(self, event)
                return
        event.accept()

    def changeEvent(self, event: QEvent) -> None:
        """Take the colours and the font of the new theme."""
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange) and hasattr(self, "_errors"):
            self._recolour()

    def leaveEvent(self, event: QEvent) -> None:
        """No peak is meant any more."""
        super().leaveEvent(event)
        self._set_hovered(-1)

    def _whole(self) -> tuple[float, float]:
        if self._spectrum is None or not len(self._spectrum.peaks.mz):
            return 0.0, 1000.0
        first, last = float(self._spectrum.peaks.mz[0]), float(self._spectrum.peaks.mz[-1])
        margin = max(2.0, (last - first) * 0.03)
        return max(0.0, first - margin), last + margin

    def _recolour(self) -> None:
        colours = plot_colours(self.palette())
        self.setBackground(colours.background)
        font = QFont(self.font())
        for plot in (self.upper, self.lower):
            for side in ("left", "bottom"):
                axis = plot.getAxis(side)
                axis.setPen(QPen(colours.faint, 0))
                axis.setTextPen(colours.text)
                axis.setTickFont(font)
                axis.label.setFont(font)
        self._zero.setPen(pg.mkPen(colours.faint, width=1))
        for line in self._bounds:
            line.setPen(pg.mkPen(colours.grid, width=1, style=Qt.PenStyle.DashLine))
        self._labels.font = font
        self._draw()

    def _draw(self) -> None:
        colours = plot_colours(self.palette())
        self._peaks.show_spectrum(self._spectrum, colours)
        self._labels.show_spectrum(self._spectrum, colours)
        self._mark.colour = colours.text
        self._draw_errors()

    def _draw_errors(self) -> None:
        spectrum, unit = self._spectrum, self._unit
        self.lower.setLabel("left", f"Error ({unit})")
        if spectrum is None:
            self._errors.setData(x=[], y=[])
            return
        colours = plot_colours(self.palette())
        errors = spectrum.matches.error_ppm if unit == "ppm" else spectrum.matches.error
        brushes = {kind: pg.mkBrush(colour) for kind, colour in colours.ions.items()}
        self._errors.setData(x=spectrum.peaks.mz[spectrum.matches.peak], y=errors, brush=[brushes[kind] for kind in spectrum.kinds])
        reach = error_reach(spectrum, unit)
        for line, at in zip(self._bounds, (-reach, reach), strict=True):
            line.setValue(at)
            line.setVisible(spectrum.settings.tolerance.unit == unit)
        self.lower.setYRange(-reach * 1.2, reach * 1.2, padding=0)

    def _hover(self, at: QPointF) -> None:
        spectrum = self._spectrum
        if spectrum is None or not self.upper.vb.sceneBoundingRect().contains(at):
            self._set_hovered(-1)
            return
        pointer = self.upper.vb.mapSceneToView(at)
        mz = spectrum.peaks.mz
        width = self.upper.vb.viewPixelSize()[0]
        first, last = np.searchsorted(mz, (pointer.x() - _NEAR * width, pointer.x() + _NEAR * width))
        if first == last:
            self._set_hovered(-1)
            return
        # The nearest in pixels, where the tip counts too: of peaks that stand close, the pointer may tell them apart by height.
        height = self.upper.vb.viewPixelSize()[1]
        above = np.maximum(0.0, pointer.y() - spectrum.relative[first:last]) / height
        distance = np.abs(mz[first:last] - pointer.x()) / width + above * 0.2 - 0.02 * spectrum.relative[first:last]
        self._set_hovered(int(first + np.argmin(distance)))

    def _set_hovered(self, peak: int) -> None:
        if peak == self._hovered:
            return
        self._hovered = peak
        spectrum = self._spectrum
        self._mark.show_at(None if peak < 0 or spectrum is None else (float(spectrum.peaks.mz[peak]), float(spectrum.relative[peak])))
        self.peakHovered.emit(peak)


class _SpectrumBox(pg.ViewBox):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Zooms m/z by the wheel, into a box by dragging, and out by a double click."""

    def __init__(self, plot: SpectrumPlot, *, has_height: bool) -> None:
        super().__init__(enableMenu=False)
        self._plot = plot
        self._has_height = has_height
        self.setMouseMode(pg.ViewBox.RectMode)
        self.setMouseEnabled(x=True, y=False)
        self.disableAutoRange()

    def showAxRect(self, ax: QRectF, **options: Any) -> None:
        """The end of dragging a box: peaks always stand on the axis."""
        upper = self._plot.upper.vb
        upper.setXRange(ax.left(), ax.right(), padding=0)
        if self._has_height:
            upper.setYRange(0, max(ax.top(), ax.bottom()), padding=0)

    def mouseClickEvent(self, ev: Any) -> None:
        """A double click shows everything."""
        if ev.double() and ev.button() == Qt.MouseButton.LeftButton:
            self._plot.reset_range()
            ev.accept()


class _Item(QGraphicsObject):
    """Something that is drawn over the whole plot, in the plot's own values."""

    def __init__(self, box: _SpectrumBox) -> None:
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


class _PeaksItem(_Item):
    """All peaks of a spectrum: one path for each colour."""

    def __init__(self, box: _SpectrumBox) -> None:
        super().__init__(box)
        self._paths: list[tuple[QPen, QPainterPath]] = []

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None, colours: PlotColours) -> None:
        self._paths = []
        if spectrum is not None:
            mz, relative = spectrum.peaks.mz, spectrum.relative
            is_named = np.zeros(len(mz), np.bool_)
            is_named[spectrum.matches.peak] = True
            self._add(colours.ions[UNMATCHED], 1.0, mz[~is_named], relative[~is_named])
            kinds = np.array(spectrum.kinds)
            for kind in dict.fromkeys(spectrum.kinds):
                peaks = spectrum.matches.peak[kinds == kind]
                self._add(colours.ions[kind], 1.8, mz[peaks], relative[peaks])
        self.update()

    def _add(self, colour: QColor, width: float, mz: NDArray[np.float64], relative: NDArray[np.float64]) -> None:
        if not len(mz):
            return
        x, y = np.repeat(mz, 2), np.zeros(2 * len(mz))
        y[1::2] = relative
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
    """A name, its box and the tip of its peak, in pixels, and its colour."""

    text: str
    box: QRectF
    tip: QPointF
    colour: QColor


class _LabelsItem(_Item):
    """Names of the ions over their peaks, laid out anew for each view."""

    def __init__(self, box: _SpectrumBox) -> None:
        super().__init__(box)
        self.font = QFont()
        self.placed: list[_Label] = []
        self._spectrum: AnnotatedSpectrum | None = None
        self._colours: PlotColours | None = None
        self._laid_out_for: QTransform | None = None
        self.setZValue(10)

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None, colours: PlotColours) -> None:
        self._spectrum, self._colours = spectrum, colours
        self._laid_out_for = None
        self.update()

    def lay_out(self, transform: QTransform) -> None:
        """Find places for what is in sight, in pixels of the view. `transform`: from the plot's values to pixels."""
        spectrum, colours = self._spectrum, self._colours
        if spectrum is None or colours is None:
            self.placed = []
            return
        shown = self.boundingRect()
        low, high, top = shown.left(), shown.right(), shown.bottom()
        if transform == self._laid_out_for:
            return
        self._laid_out_for = transform
        area = transform.mapRect(shown)
        mz = spectrum.peaks.mz
        first, last = np.searchsorted(mz, (low, high))
        x = transform.m11() * mz[first:last] + transform.dx()
        y = transform.m22() * np.minimum(spectrum.relative[first:last], top) + transform.dy()
        in_sight = np.flatnonzero((spectrum.matches.peak >= first) & (spectrum.matches.peak < last))
        tips = spectrum.matches.peak[in_sight] - first
        metrics = QFontMetricsF(self.font)
        texts = [spectrum.labels[match] for match in in_sight.tolist()]
        widths = np.array([metrics.horizontalAdvance(text) for text in texts])
        placed = place_labels(
            x[tips], y[tips], widths, metrics.height(), spectrum.relative[tips + first], x, y,
            (area.left(), area.top(), area.right(), area.bottom()),
        )  # fmt: skip
        self.placed = [
            _Label(
                texts[label],
                QRectF(at_x, at_y, widths[label], metrics.height()),
                QPointF(x[tips[label]], y[tips[label]]),
                colours.ions[spectrum.kinds[int(in_sight[label])]],
            )
            for label, at_x, at_y in placed
        ]

    def paint(self, painter: QPainter, *_: Any) -> None:
        self.lay_out(painter.worldTransform())
        painter.save()
        painter.resetTransform()
        painter.setFont(self.font)
        for label in self.placed:
            if label.tip.y() - label.box.bottom() > label.box.height() / 2:
                painter.setPen(QPen(label.colour, 0.8, Qt.PenStyle.DotLine))
                painter.drawLine(QLineF(label.tip.x(), label.box.bottom(), label.tip.x(), label.tip.y()))
            painter.setPen(label.colour)
            painter.drawText(label.box.adjusted(-2, 0, 2, 0), Qt.AlignmentFlag.AlignCenter, label.text)
        painter.restore()


class _MarkItem(_Item):
    """A mark on the peak under the pointer."""

    def __init__(self, box: _SpectrumBox) -> None:
        super().__init__(box)
        self.colour = QColor()
        self._at: tuple[float, float] | None = None
        self.setZValue(11)

    def show_at(self, at: tuple[float, float] | None) -> None:
        self._at = at
        self.update()

    def paint(self, painter: QPainter, *_: Any) -> None:
        if self._at is None:
            return
        transform = painter.worldTransform()
        tip, foot = transform.map(QPointF(*self._at)), transform.map(QPointF(self._at[0], 0.0))
        painter.save()
        painter.resetTransform()
        painter.setPen(QPen(self.colour, 1.0, Qt.PenStyle.DotLine))
        painter.drawLine(QLineF(tip, foot))
        painter.setPen(QPen(self.colour, 1.4))
        painter.drawEllipse(tip, 3.5, 3.5)
        painter.restore()
