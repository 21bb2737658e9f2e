"""Raised cards with rounded corners, which cannot be defined with a Qt palette.

The cards are painted by the program: a style sheet of the whole application would make the creation of every widget several times slower,
and a theme change would take seconds.
"""

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame

_RADIUS = 6.0


class Card(QFrame):
    """Frame around an area of a page, which looks raised and has rounded corners."""

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(self.palette().color(QPalette.ColorRole.Mid))
            painter.setBrush(self.palette().color(QPalette.ColorRole.Button))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
