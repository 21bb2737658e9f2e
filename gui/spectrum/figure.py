"""The annotated spectrum as a figure for a publication: one painter code for SVG, PDF and PNG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from proteoscope.engine.views.annotation import AnnotatedSpectrum
from proteoscope.engine.views.label_layout import place_labels
from proteoscope.engine.views.shown_peaks import UNMATCHED, ShownPeaks
from proteoscope.gui.colours import PAPER, PlotColours
from proteoscope.gui.plots.axes import Axes, AxisTitles, draw_axes
from proteoscope.gui.plots.export import figure_font
from proteoscope.gui.spectrum.peptide_ladder import ladder_height, paint_ladder

__all__ = ["FIGURE_SIZE", "ErrorUnit", "FigureRange", "error_reach", "hover_text", "paint_figure", "paint_peaks", "peaks_by_kind"]

ErrorUnit = Literal["ppm", "Da"]

FIGURE_SIZE = QSizeF(510, 360)
"""Points: as wide as two columns of a journal's page (180 mm)."""


@dataclass(frozen=True)
class FigureRange:
    """What part of the spectrum is drawn: m/z in thomson, intensity in percent from 0 to `top`."""

    low: float
    high: float
    top: float


def paint_figure(painter: QPainter, area: QRectF, spectrum: AnnotatedSpectrum, shown: FigureRange, unit: ErrorUnit) -> None:
    """Paint title, peptide, spectrum and errors into `area` (points)."""
    colours, font = PAPER, figure_font(8)
    metrics = QFontMetricsF(font)
    line = metrics.height()
    left, right = area.left() + 54, area.right() - 8
    painter.setFont(figure_font(8, is_bold=True))
    painter.setPen(colours.text)
    top = area.top() + 6
    painter.drawText(QRectF(left, top, right - left, line), Qt.AlignmentFlag.AlignLeft, str(spectrum.peptidoform))
    painter.setFont(font)
    painter.setPen(colours.faint)
    painter.drawText(QRectF(left, top + line, right - left, line), Qt.AlignmentFlag.AlignLeft, spectrum.title)
    top += 2 * line + 2
    paint_ladder(painter, QRectF(left, top, right - left, ladder_height(font)), spectrum, colours, font)
    top += ladder_height(font)

    errors_height = 58.0
    bottom = area.bottom() - 2 * line - 10
    upper = Axes(QRectF(left, top, right - left, bottom - errors_height - 12 - top), (shown.low, shown.high), (0.0, shown.top))
    lower = Axes(QRectF(left, bottom - errors_height, right - left, errors_height), (shown.low, shown.high), _error_range(spectrum, unit))
    paint_peaks(painter, upper, spectrum.shown, colours, font)
    draw_axes(painter, upper, colours, font, AxisTitles(y="Relative intensity (%)"), has_x_numbers=False)
    _paint_errors(painter, lower, spectrum, colours, unit)
    draw_axes(painter, lower, colours, font, AxisTitles("m/z", f"Error ({unit})"))


def peaks_by_kind(drawn: ShownPeaks) -> list[tuple[str, NDArray[np.int64]]]:
    """Peaks by what colours them, in the order in which they are drawn: those that nothing explains first."""
    kinds = sorted(dict.fromkeys(drawn.kinds.tolist()), key=lambda kind: kind != UNMATCHED)
    return [(kind, np.flatnonzero(drawn.kinds == kind)) for kind in kinds]


def paint_peaks(painter: QPainter, axes: Axes, drawn: ShownPeaks, colours: PlotColours, font: QFont) -> None:
    """Paint the peaks of a spectrum, and their labels where they have room."""
    in_sight = (drawn.mz >= axes.x_range[0]) & (drawn.mz <= axes.x_range[1])
    base, side = axes.y(0.0), drawn.side
    end = axes.area.top() if side == 1 else axes.area.bottom()
    # As if they stood on the axis: y downwards from what is the top then.
    x, y = axes.xs(drawn.mz), side * axes.ys(side * drawn.height)
    y = np.maximum(y, side * end)
    for kind, peaks in peaks_by_kind(drawn):
        painter.setPen(QPen(colours.ions[kind], 0.5 if kind == UNMATCHED else 1.0))
        painter.drawLines([QLineF(x[i], base, x[i], side * y[i]) for i in peaks[in_sight[peaks]].tolist()])
    shown = np.flatnonzero(in_sight[drawn.named])
    if not len(shown):
        return
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    tips = drawn.named[shown]
    widths = np.array([metrics.horizontalAdvance(drawn.labels[i]) for i in shown.tolist()])
    bounds = (axes.area.left() + 1, side * end, axes.area.right(), side * base)
    height = metrics.height() * 0.9
    placed = place_labels(x[tips], y[tips], widths, height, drawn.height[tips], x[in_sight], y[in_sight], bounds)
    for one in placed:
        match, tip = int(shown[one.label]), int(tips[one.label])
        colour = colours.ions[str(drawn.kinds[tip])]
        if one.foot is not None:
            painter.setPen(QPen(colour, 0.4, Qt.PenStyle.DotLine))
            painter.drawLine(QLineF(one.foot, side * (one.top + height), x[tip], side * y[tip]))
        painter.setPen(colour)
        top = one.top if side == 1 else -one.top - height
        painter.drawText(QPointF(one.left, top + metrics.ascent() * 0.9), drawn.labels[match])


def _error_range(spectrum: AnnotatedSpectrum, unit: ErrorUnit) -> tuple[float, float]:
    reach = error_reach(spectrum, unit) * 1.15
    return -reach, reach


def error_reach(spectrum: AnnotatedSpectrum, unit: ErrorUnit) -> float:
    """Largest error that the tolerance lets through, in the unit asked for."""
    tolerance = spectrum.settings.tolerance
    if tolerance.unit == unit:
        return max(tolerance.value, 1e-6)
    # In the other unit the tolerance widens with m/z or narrows: what is found decides.
    found = np.abs(spectrum.matches.error_ppm if unit == "ppm" else spectrum.matches.error)
    return max(float(found.max(initial=0.0)), 1e-4)


def _paint_errors(painter: QPainter, axes: Axes, spectrum: AnnotatedSpectrum, colours: PlotColours, unit: ErrorUnit) -> None:
    painter.setPen(QPen(colours.grid, 0.5))
    painter.drawLine(QLineF(axes.area.left(), axes.y(0), axes.area.right(), axes.y(0)))
    errors = spectrum.matches.error_ppm if unit == "ppm" else spectrum.matches.error
    mz = spectrum.peaks.mz[spectrum.matches.peak]
    x, y = axes.xs(mz), axes.ys(errors)
    painter.setPen(Qt.PenStyle.NoPen)
    for i, kind in enumerate(spectrum.kinds):
        if axes.x_range[0] <= mz[i] <= axes.x_range[1]:
            painter.setBrush(colours.ions[kind])
            painter.drawEllipse(QPointF(x[i], y[i]), 1.6, 1.6)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def hover_text(spectrum: AnnotatedSpectrum, peak: int) -> str:
    """What is known of a peak, on one line."""
    locale = QLocale()
    mz, intensity = float(spectrum.peaks.mz[peak]), float(spectrum.peaks.intensity[peak])
    text = f"m/z {locale.toString(mz, 'f', 4)}   intensity {locale.toString(intensity, 'g', 4)}"
    text += f" ({locale.toString(float(spectrum.relative[peak]), 'f', 1)} %)"
    match = spectrum.match_of_peak.get(peak)
    if match is None:
        return f"{text}   not explained"
    error, error_ppm = float(spectrum.matches.error[match]), float(spectrum.matches.error_ppm[match])
    return f"{text}   {spectrum.labels[match]}   {locale.toString(error_ppm, 'f', 2)} ppm   {locale.toString(error, 'f', 4)} Da"
