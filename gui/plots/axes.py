"""Axes drawn by our own painter, for plots that are the same on the screen and on paper."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QLineF, QLocale, QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen

from proteoscope.engine.views.drawings import Scale
from proteoscope.engine.views.ticks import nice_ticks, powers_of_ten, square_ticks
from proteoscope.gui.colours import PlotColours

__all__ = ["Axes", "AxisTitles", "draw_axes", "tick_texts"]

_TICK = 4.0


def tick_texts(ticks: list[float], locale: QLocale) -> list[str]:
    """The ticks as numbers of the user's language, all with the same decimals."""
    step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else max(abs(ticks[0]), 1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [locale.toString(tick if abs(tick) > step / 1e6 else 0.0, "f", decimals) for tick in ticks]


class Axes:
    """A rectangle of the page and the range of values that it shows. `scale`: of the vertical axis; by roots it begins with 0."""

    def __init__(self, area: QRectF, x_range: tuple[float, float], y_range: tuple[float, float], *, scale: Scale = "linear") -> None:
        self.area, self.x_range, self.y_range, self.scale = area, x_range, y_range, scale

    def x(self, value: float) -> float:
        """Place of a value on the page."""
        low, high = self.x_range
        return self.area.left() + (value - low) / (high - low) * self.area.width()

    def y(self, value: float) -> float:
        """Place of a value on the page, downwards."""
        return float(self.ys(np.array([value]))[0])

    def xs(self, values: np.ndarray) -> np.ndarray:
        """Places of many values."""
        low, high = self.x_range
        return np.asarray(self.area.left() + (values - low) / (high - low) * self.area.width())

    def ys(self, values: np.ndarray) -> np.ndarray:
        """Places of many values, downwards; those below the range of a logarithmic axis lie at its foot."""
        low, high = self.y_range
        if self.scale == "logarithmic":
            values, low, high = np.log10(np.maximum(values, low)), math.log10(low), math.log10(high)
        elif self.scale == "square-root":
            values, low, high = np.sqrt(np.maximum(values, 0.0)), 0.0, math.sqrt(high)
        return np.asarray(self.area.bottom() - (values - low) / (high - low) * self.area.height())


class AxisTitles(NamedTuple):
    """What stands beside the two axes. `margin`: from the left axis to the middle of its title."""

    x: str = ""
    y: str = ""
    margin: float = 44.0


def draw_axes(
    painter: QPainter,
    axes: Axes,
    colours: PlotColours,
    font: QFont,
    titles: AxisTitles,
    *,
    has_x_numbers: bool = True,
    x_is_whole: bool = False,
    y_is_count: bool = False,
    y_is_mirrored: bool = False,
) -> None:
    """Draw the two axes with ticks, numbers and titles. `y_is_mirrored`: values grow from nought both ways."""
    locale = QLocale()
    metrics = QFontMetricsF(font)
    area = axes.area
    painter.setFont(font)
    painter.setPen(QPen(colours.text, 0.8))
    painter.drawLine(QLineF(area.bottomLeft(), area.bottomRight()))
    painter.drawLine(QLineF(area.topLeft(), area.bottomLeft()))
    ticks = nice_ticks(*axes.x_range, max(2, int(area.width() / (metrics.horizontalAdvance("0000") * 2.2))), whole=x_is_whole)
    for tick, text in zip(ticks, tick_texts(ticks, locale), strict=True):
        at = axes.x(tick)
        painter.drawLine(QLineF(at, area.bottom(), at, area.bottom() + _TICK))
        if has_x_numbers:
            box = QRectF(at - 60, area.bottom() + _TICK + 1, 120, metrics.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, text)
    n_wanted = max(3, int(area.height() / (metrics.height() * 2.2)))
    if axes.scale == "logarithmic":
        ticks = powers_of_ten(*axes.y_range, n_wanted)
    elif axes.scale == "square-root":
        ticks = square_ticks(axes.y_range[1], n_wanted)
    else:
        ticks = nice_ticks(*axes.y_range, n_wanted, whole=y_is_count)
    texts = tick_texts(ticks, locale) if axes.scale == "linear" else [locale.toString(round(tick)) for tick in ticks]
    if y_is_mirrored:
        texts = tick_texts([abs(tick) for tick in ticks], locale)
    for tick, text in zip(ticks, texts, strict=True):
        at = axes.y(tick)
        painter.drawLine(QLineF(area.left() - _TICK, at, area.left(), at))
        box = QRectF(area.left() - _TICK - 3 - 100, at - metrics.height() / 2, 100, metrics.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)
    if titles.x:
        box = QRectF(area.left(), area.bottom() + _TICK + 2 + metrics.height(), area.width(), metrics.height() + 2)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, titles.x)
    if titles.y:
        painter.save()
        painter.translate(QPointF(area.left() - titles.margin, area.center().y()))
        painter.rotate(-90)
        painter.drawText(QRectF(-150, -metrics.height() / 2, 300, metrics.height()), Qt.AlignmentFlag.AlignCenter, titles.y)
        painter.restore()
