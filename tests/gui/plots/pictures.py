"""Helpers for figures in the window and on the page: their images, the extent of a colour, and mouse events."""

from __future__ import annotations

from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from proteoscope.engine.views.drawings import Clip, Drawing
from proteoscope.engine.views.figure_layout import lay_out
from proteoscope.engine.views.figures import Figure
from proteoscope.engine.views.palette import Rgb
from proteoscope.engine.views.paper import png
from proteoscope.gui.plots.figure_view import FigureView
from proteoscope.gui.plots.run_map import RunMap

Pixels = NDArray[np.uint8]
_SCALE = 2


def on_screen(view: FigureView, panel: int = 0) -> Pixels:
    """Return the image (rows, columns, 3) of a view within the axes of a panel."""
    image, inner, ratio = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB888), view.inner(panel), view.devicePixelRatioF()
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())[:, : 3 * image.width()]
    pixels = rows.reshape(image.height(), image.width(), 3).copy()
    return _cropped(pixels, inner.left() * ratio, inner.top() * ratio, inner.width() * ratio, inner.height() * ratio)


def on_paper(figure: Figure, panel: int = 0) -> Pixels:
    """Return the image (rows, columns, 3) of a figure's page within the axes of a panel."""
    return of_drawing(lay_out(figure), panel)


def of_drawing(drawing: Drawing, panel: int = 0) -> Pixels:
    """Return the image (rows, columns, 3) of a page within the axes of a panel."""
    pixels = np.asarray(Image.open(BytesIO(png(drawing, 72 * _SCALE))).convert("RGB"))
    clip = [shape for shape in drawing.shapes if isinstance(shape, Clip)][panel]
    return _cropped(pixels, *(_SCALE * length for length in (clip.x, clip.y + 1, clip.width, clip.height - 2)))


def extent(pixels: Pixels, colour: Rgb, tolerance: int = 24) -> NDArray[np.float64]:
    """Return the start and end (4,) of a colour, left to right and bottom to top, as fractions of the axes."""
    rows, columns = np.nonzero(np.abs(pixels.astype(int) - np.array(colour)).max(axis=2) <= tolerance)
    assert len(rows), f"nothing is drawn in {colour}"
    height, width = pixels.shape[:2]
    return np.array([columns.min() / width, (columns.max() + 1) / width, 1 - (rows.max() + 1) / height, 1 - rows.min() / height])


def wheel(view: FigureView, at: QPointF, degrees: int = 120) -> None:
    """Turn the wheel at a position."""
    event = QWheelEvent(
        at,
        QPointF(view.mapToGlobal(at.toPoint())),
        QPoint(),
        QPoint(0, degrees),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view.viewport(), event)


def pull(view: FigureView, first: QPoint, last: QPoint) -> None:
    """Press the button at one position and release it at another."""
    QTest.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=first)
    for at in ((first + last) / 2, last):
        QTest.mouseMove(view.viewport(), at)
    QTest.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=last)


def place_of_point(shown: RunMap, point: int) -> QPointF:
    """Return the position of a point on a map."""
    assert shown.points is not None
    return shown.canvas.place_of(float(shown.points.x[point]), float(shown.points.mz[point]))


def point_at(shown: RunMap, at: QPointF) -> int | None:
    """Return the point of a map at a position."""
    picked = shown.canvas.picked_at(at)
    return None if picked is None else picked.target


def _cropped(pixels: Pixels, left: float, top: float, width: float, height: float) -> Pixels:
    return pixels[round(top) : round(top + height), round(left) : round(left + width)]
