"""Pictures of figures in the window and on paper, and where a colour is in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage, QPainter

from proteoscope.engine.views.drawings import Clip, Drawing
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import Figure
from proteoscope.engine.views.palette import PAPER, Rgb
from proteoscope.gui.plots.drawing_view import paint_drawing
from proteoscope.gui.plots.export import figure_font
from proteoscope.gui.plots.figure_view import FigureView

Pixels = NDArray[np.uint8]
_SCALE = 2


def on_screen(view: FigureView, panel: int = 0) -> Pixels:
    """(rows, columns, 3) what a view shows within the axes of a panel."""
    image, inner, ratio = view.grab().toImage(), view.inner(panel), view.devicePixelRatioF()
    return _cropped(image, inner.left() * ratio, inner.top() * ratio, inner.width() * ratio, inner.height() * ratio)


def on_paper(figure: Figure, panel: int = 0) -> Pixels:
    """(rows, columns, 3) what the page of a figure shows within the axes of a panel."""
    return of_drawing(lay_out(figure), panel)


def of_drawing(drawing: Drawing, panel: int = 0) -> Pixels:
    """(rows, columns, 3) what a page shows within the axes of a panel."""
    image = QImage(round(drawing.width) * _SCALE, round(drawing.height) * _SCALE, QImage.Format.Format_RGB32)
    image.fill(0xFFFFFF)
    painter = QPainter(image)
    painter.scale(_SCALE, _SCALE)
    paint_drawing(painter, drawing, PAPER, figure_font())
    painter.end()
    clip = [shape for shape in drawing.shapes if isinstance(shape, Clip)][panel]
    return _cropped(image, *(_SCALE * one for one in (clip.x, clip.y + 1, clip.width, clip.height - 2)))


def extent(pixels: Pixels, colour: Rgb, tolerance: int = 24) -> NDArray[np.float64]:
    """(4,) where a colour begins and ends across and, from below, upwards, as shares of the axes."""
    rows, columns = np.nonzero(np.abs(pixels.astype(int) - np.array(colour)).max(axis=2) <= tolerance)
    assert len(rows), f"nothing is drawn in {colour}"
    height, width = pixels.shape[:2]
    return np.array([columns.min() / width, (columns.max() + 1) / width, 1 - (rows.max() + 1) / height, 1 - rows.min() / height])


def _cropped(image: QImage, left: float, top: float, width: float, height: float) -> Pixels:
    image = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())[:, : 3 * image.width()]
    pixels = rows.reshape(image.height(), image.width(), 3)
    return pixels[round(top) : round(top + height), round(left) : round(left + width)]
