"""Painting of a list of numbers as a strip of coloured boxes: blue below their median, orange above, empty if missing."""

from collections.abc import Sequence

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPalette, QPen

from proteoscope.engine.views.heat import relative
from proteoscope.engine.views.palette import Shade
from proteoscope.gui.colours import palette_of, qt_colour

_FULL = 3.0
"""log2 ratio to the median from which the colour is fully saturated."""
_MARGIN = 2


def paint_heat(painter: QPainter, area: QRect, values: Sequence[float | None], palette: QPalette) -> None:
    """Draw a box for each value, from left to right, into `area`."""
    inner = QRectF(area).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
    width = inner.width() / len(values)
    surface, line = palette_of(palette), palette.color(QPalette.ColorRole.Mid)
    painter.save()
    for position, fraction in enumerate(relative(values).tolist()):
        box = QRectF(inner.left() + position * width, inner.top(), max(width - 1, 1.0), inner.height())
        if fraction == fraction:
            painter.fillRect(box, qt_colour(Shade(fraction / _FULL), surface))
        painter.setPen(QPen(line, 1, Qt.PenStyle.SolidLine if fraction == fraction else Qt.PenStyle.DotLine))
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
    painter.restore()
