"""Raised cards, which a palette alone cannot draw.

An application-wide style sheet could draw them, but it makes every widget several times slower to create, and a theme change takes seconds.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame

__all__ = ["Card"]

_RADIUS = 6.0


class Card(QFrame):
    """A raised part of a page with rounded corners."""

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802, D102 - Qt's name
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(self.palette().color(QPalette.ColorRole.Mid))
            painter.setBrush(self.palette().color(QPalette.ColorRole.Button))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), _RADIUS, _RADIUS)
