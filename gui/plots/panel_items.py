"""Axes and marks of a figure's panel as pyqtgraph items."""
# ruff: noqa: N802, N803, D102 - Qt and pyqtgraph give these names

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QLocale, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen
from PySide6.QtWidgets import QWidget

from proteoscope.engine.views.drawings import Axis, Drawing, Shape
from proteoscope.engine.views.figure_layout import PanelArea
from proteoscope.engine.views.figures import (
    Band,
    Bars,
    Corner,
    Line,
    Mark,
    Names,
    Panel,
    Pixels,
    Rule,
    Scatter,
    Spikes,
    Surface,
    Text,
)
from proteoscope.engine.views.palette import PAPER, Ink, Palette
from proteoscope.gui.colours import qt_colour
from proteoscope.gui.plots.drawing_view import paint_drawing

TICK = 4
_PIXELS_PER_POINT = 96 / 72
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?![\w.,]*\w)")


def localised(text: str) -> str:
    """Return a text with its numbers (such as ``1,234.5``) in the separators of the user's locale."""
    locale = QLocale()
    has_groups = not locale.numberOptions() & QLocale.NumberOption.OmitGroupSeparator
    separators = str.maketrans({",": locale.groupSeparator() if has_groups else "", ".": locale.decimalPoint()})
    return _NUMBER.sub(lambda number: number[0].translate(separators), text)


class PanelItems:
    """pyqtgraph items of a figure's panel: its axes and its marks.

    Parameters
    ----------
    view : QWidget
        Widget whose font is used.
    box : pg.ViewBox
        Drawing area of the marks.
    n_columns : int
        Number of panel columns of the figure.
    has_x_numbers, has_x_title : bool
        `has_x_numbers`: True if the lower axis has numbers. `has_x_title`: True if it has a title.
    """

    def __init__(self, view: QWidget, box: pg.ViewBox, n_columns: int, *, has_x_numbers: bool, has_x_title: bool) -> None:
        self._n_columns, self.box = n_columns, box
        self.left, self.bottom = _Axis("left"), _Axis("bottom", has_x_numbers, has_x_numbers and has_x_title)
        for axis in (self.left, self.bottom):
            axis.linkToView(self.box)
        self.title: Any = None
        self.panel_area: PanelArea | None = None
        self._view, self._palette = view, PAPER
        self._items: list[Any] = []
        self._drawn: tuple[Mark, ...] | None = None
        self._over: list[Any] = []
        self._texts = _Texts(self.box)

    @property
    def area(self) -> QRectF:
        """Drawing area of the marks, in pixels of the widget."""
        return QRectF(self.box.mapRectToScene(self.box.rect()))

    def take_theme(self, palette: Palette, font: QFont, width: float) -> None:
        self._palette, self._drawn = palette, None
        for axis in (self.left, self.bottom):
            axis.take_theme(palette, font)
        # Whole pixels, so that pictures are not resampled on the screen.
        self.left.setWidth(math.ceil(width))
        lines = 0.4 + self.bottom.has_numbers + self.bottom.has_title
        self.bottom.setHeight(math.ceil(lines * QFontMetricsF(font).height()) + TICK)
        box = self.box.rbScaleBox
        box.setPen(pg.mkPen(qt_colour("target", palette)))
        box.setBrush(pg.mkBrush(qt_colour("target", palette, 0.16)))

    def show_title(self, text: str, size: str) -> None:
        """Show a title, elided to the available space."""
        if self.title is not None:
            space = self._view.width() / max(1, self._n_columns) - 24
            shown = QFontMetricsF(self._view.font()).elidedText(text, Qt.TextElideMode.ElideRight, space)
            self.title.setText(escape(shown), color=qt_colour("text", self._palette), size=size)
            self.title.setMinimumWidth(1)

    def draw(self, panel: Panel) -> None:
        area, font = self.area, self._view.font()
        if area.width() < 2 or area.height() < 2:
            return
        size = QFontMetricsF(font).height() * 0.8
        self.panel_area = PanelArea(panel, area.left(), area.top(), area.right(), area.bottom(), size)
        self.left.show_axis(panel.y, area.height())
        self.bottom.show_axis(panel.x, area.width())
        ends = [axis.scaled([axis.low, axis.high]).tolist() for axis in (panel.x, panel.y)]
        self.box.setRange(xRange=ends[0], yRange=ends[1], padding=0, disableAutoRange=False)
        # Items of unchanged marks need not be replaced, since most follow the axes automatically.
        if panel.marks is not self._drawn or panel.y.scale != "linear" or any(isinstance(mark, Bars | Pixels) for mark in panel.marks):
            self._items, self._drawn = self._replaced(self._items, panel.marks), panel.marks
        shapes: list[Shape] = []
        for mark in panel.marks:
            if isinstance(mark, Corner | Names | Text):
                shapes += self.panel_area.shapes(mark)
            elif isinstance(mark, Rule):
                # The line of a rule is an item; only its label is drawn here.
                shapes += self.panel_area.shapes(mark)[1:]
        self._texts.show_shapes(Drawing(area.width(), area.height(), "", tuple(shapes), size), self._palette, font)

    def clear(self) -> None:
        """Remove all marks."""
        self.panel_area = self._drawn = None
        self._items, self._over = self._replaced(self._items, ()), self._replaced(self._over, ())
        self._texts.show_shapes(Drawing(0, 0, "", ()), self._palette, self._view.font())

    def highlight(self, marks: Sequence[Mark]) -> None:
        self._over = self._replaced(self._over, marks)

    def _replaced(self, items: list[Any], marks: Sequence[Mark]) -> list[Any]:
        for item in items:
            self.box.removeItem(item)
        made = [] if self.panel_area is None else [item for mark in marks if (item := self._item(mark, self.panel_area.panel)) is not None]
        for item in made:
            self.box.addItem(item, ignoreBounds=True)
        return made

    def _pen(self, ink: Ink, width: float = 1.0, *, is_dashed: bool = False, opacity: float = 1.0) -> QPen:
        style = Qt.PenStyle.DashLine if is_dashed else Qt.PenStyle.SolidLine
        return QPen(pg.mkPen(qt_colour(ink, self._palette, opacity), width=width, style=style))

    def _brush(self, ink: Ink, opacity: float = 1.0) -> Any:
        return pg.mkBrush(qt_colour(ink, self._palette, opacity))

    def _item(self, mark: Mark, panel: Panel) -> Any:
        """Return the item that draws a mark, or None for texts."""
        y_of = panel.y.scaled
        match mark:
            case Spikes(x, y, ink, width, foot):
                ends = np.empty(2 * len(x))
                ends[::2], ends[1::2] = y_of(np.full(len(x), foot)), y_of(y)
                # Vertical lines are sharpest and equally wide at whole pixels.
                width = max(1, round(_PIXELS_PER_POINT * width))
                return pg.PlotCurveItem(np.repeat(x, 2), ends, pen=self._pen(ink, width), connect="pairs", antialias=False)
            case Line(x, y, ink, width, is_dashed):
                return pg.PlotCurveItem(x, y_of(y), pen=self._pen(ink, width, is_dashed=is_dashed), antialias=True)
            case Surface(x, low, high, ink, opacity):
                curves = [pg.PlotCurveItem(x, y_of(ends)) for ends in (low, high)]
                return pg.FillBetweenItem(*curves, brush=self._brush(ink, opacity))
            case Bars():
                return self._bars(mark, panel)
            case Scatter(x, y, ink, size):
                style = {"pen": self._pen(ink, 1.8), "brush": None} if mark.is_hollow else {"pen": None, "brush": self._brush(ink)}
                return pg.ScatterPlotItem(x=x, y=y_of(y), size=size, pxMode=True, **style)
            case Rule(at, is_upright, ink, width, is_dashed):
                position = at if is_upright else float(y_of(at))
                return pg.InfiniteLine(position, angle=90 if is_upright else 0, pen=self._pen(ink, width, is_dashed=is_dashed))
            case Band(low, high, ink, opacity):
                return pg.LinearRegionItem((low, high), movable=False, brush=self._brush(ink, opacity), pen=self._pen(ink))
            case Pixels(render):
                return self._picture(render, panel)
        return None

    def _bars(self, bars: Bars, panel: Panel) -> Any:
        foot, height = (panel.y.scaled(values) for values in (np.full(len(bars.left), bars.foot), bars.height))
        seen = height != foot
        # Bars narrower than a pixel could vanish between two pixels.
        width = self.area.width() / (panel.x.high - panel.x.low) * float((bars.right - bars.left).min(initial=np.inf))
        is_thin, brush = width < 1, self._brush(bars.ink, bars.opacity)
        pen = (
            self._pen(bars.ink, opacity=1.0 if bars.has_outline else bars.opacity)
            if bars.has_outline or is_thin
            else QPen(Qt.PenStyle.NoPen)
        )
        return pg.BarGraphItem(x0=bars.left[seen], x1=bars.right[seen], y0=foot[seen], y1=height[seen], pen=pen, brush=brush)

    def _picture(self, render: Any, panel: Panel) -> Any:
        x, y, ratio = (panel.x.low, panel.x.high), (panel.y.low, panel.y.high), self._view.devicePixelRatioF()
        width, height = (max(1, round(pixels * ratio)) for pixels in (self.area.width(), self.area.height()))
        # pyqtgraph draws the rows of pictures from bottom to top.
        item = pg.ImageItem(render(x, y, width, height, ratio, self._palette)[::-1], axisOrder="row-major", levels=None)
        item.setRect(QRectF(x[0], y[0], x[1] - x[0], y[1] - y[0]))
        return item


class _Axis(pg.AxisItem):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Axis with the same ticks as in exported figures, and numbers in the user's locale."""

    def __init__(self, side: str, has_numbers: bool = True, has_title: bool = True) -> None:
        super().__init__(side, maxTickLength=TICK)
        self._shown, self.has_numbers, self.has_title = Axis(0.0, 1.0), has_numbers, has_title
        self.setStyle(showValues=has_numbers, autoExpandTextSpace=False, hideOverlappingLabels=False, tickAlpha=255, tickTextOffset=3)
        self.enableAutoSIPrefix(False)

    def take_theme(self, palette: Palette, font: QFont) -> None:
        for take in (self.setPen, self.setTextPen):
            take(qt_colour("text", palette))
        self.setTickFont(font)
        self.label.setFont(font)

    def show_axis(self, axis: Axis, length: float) -> None:
        metrics = QFontMetricsF(self.label.font())
        self._shown, self.picture = axis, None
        title = axis.fitting_title(metrics.horizontalAdvance, length) if self.has_title else ""
        title = metrics.elidedText(title, Qt.TextElideMode.ElideRight, max(10.0, length))
        if title != self.labelText:
            self.setLabel(title)
        # pyqtgraph centres the title only after a resize, but another text or font has another length.
        self.resizeEvent()

    def tickValues(self, minVal: float, maxVal: float, size: float) -> list[tuple[float, list[float]]]:
        axis, height = self._shown, QFontMetricsF(self.label.font()).height()
        least, lines = (2, 3.6) if self.orientation == "bottom" else (3, 2.2)
        ticks = axis.ticks(max(least, math.floor(size / (height * lines))))
        return [(1.0, axis.scaled(ticks).tolist())]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [localised(text) for text in self._shown.tick_texts(self._shown.unscaled(values).tolist())]


class _Texts(pg.GraphicsObject):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Item that draws names and texts over the marks of a panel, in pixel coordinates."""

    def __init__(self, box: pg.ViewBox) -> None:
        super().__init__(box)
        self._box = box
        self._drawing = Drawing(0, 0, "", ())
        self._palette, self._font = PAPER, QFont()
        self.setZValue(1000)

    def show_shapes(self, drawing: Drawing, palette: Palette, font: QFont) -> None:
        self._drawing, self._palette, self._font = drawing, palette, font
        self.prepareGeometryChange()
        self.update()

    def boundingRect(self) -> QRectF:
        return QRectF(self._box.rect())

    def paint(self, painter: QPainter, *_: Any) -> None:
        painter.translate(-self._box.scenePos())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        paint_drawing(painter, self._drawing, self._palette, self._font)
