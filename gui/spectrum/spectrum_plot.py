"""The spectrum on the screen: peaks, labels and errors, to be zoomed and hovered over."""
# ruff: noqa: N815 - Qt and pyqtgraph give these names

from __future__ import annotations

import pyqtgraph as pg
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.annotation import AnnotatedSpectrum
from proteoscope.gui.colours import plot_colours
from proteoscope.gui.spectrum.figure import ErrorUnit, error_reach
from proteoscope.gui.spectrum.peak_plot import PeakPlace, PeakPlot

__all__ = ["SpectrumPlot"]


class SpectrumPlot(PeakPlot):
    """An annotated spectrum over a panel of its m/z errors."""

    peakHovered = Signal(int)
    """The peak under the pointer, -1 where there is none."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("Annotated spectrum", parent)
        self._spectrum: AnnotatedSpectrum | None = None
        self._unit: ErrorUnit = "ppm"
        self.upper.getAxis("bottom").setStyle(showValues=False)
        self.upper.getAxis("bottom").setHeight(8)
        self.lower = self._add_plot(1, "Error (ppm)", has_height=False)
        self.lower.setLabel("bottom", "m/z")
        self.lower.setXLink(self.upper)
        self.ci.layout.setRowStretchFactor(0, 4)
        self.ci.layout.setRowStretchFactor(1, 1)
        self.ci.layout.setRowMinimumHeight(1, 92)
        self._zero = pg.InfiniteLine(0, angle=0)
        self._bounds = [pg.InfiniteLine(0, angle=0), pg.InfiniteLine(0, angle=0)]
        self._errors = pg.ScatterPlotItem(size=6, pxMode=True, pen=None)
        for item in (self._zero, *self._bounds, self._errors):
            self.lower.addItem(item, ignoreBounds=True)
        self._recolour()

    def show_spectrum(self, spectrum: AnnotatedSpectrum | None, *, keeps_range: bool = False) -> None:
        """Draw a spectrum, or nothing. `keeps_range`: it is the same one, annotated in another way."""
        self._set_hovered(None)
        self._spectrum = spectrum
        self._draw()
        if not keeps_range:
            self.reset_range()

    def set_error_unit(self, unit: ErrorUnit) -> None:
        """Show errors in ppm or in dalton."""
        self._unit = unit
        self._draw_errors()

    def pixels_of_peak(self, peak: int) -> QPointF:
        """Where the tip of a peak is drawn, in pixels of this widget."""
        return self.pixels_of(PeakPlace(0, peak))

    def _tell_hovered(self, place: PeakPlace | None) -> None:
        self.peakHovered.emit(-1 if place is None else place.peak)

    def _recolour(self) -> None:
        colours = plot_colours(self.palette())
        self._zero.setPen(pg.mkPen(colours.faint, width=1))
        for line in self._bounds:
            line.setPen(pg.mkPen(colours.grid, width=1, style=Qt.PenStyle.DashLine))
        super()._recolour()

    def _draw(self) -> None:
        self._draw_peaks(*([] if self._spectrum is None else [self._spectrum.shown]))
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
