"""Colours between those of two series, over whatever they are drawn on."""

from __future__ import annotations

from PySide6.QtGui import QColor

from proteoscope.engine.views.drawings import SERIES_COLOURS

__all__ = ["series_colour", "shade_colour"]

_LIGHTER = 135


def series_colour(place: int, background: QColor) -> QColor:
    """The colour of a series; lighter on a dark background."""
    colour = QColor(SERIES_COLOURS[place % len(SERIES_COLOURS)])
    return colour.lighter(_LIGHTER) if background.lightness() < 128 else colour


def shade_colour(part: float, background: QColor) -> QColor:
    """The colour of an `engine.views.drawings.Shade`: from that of the first series (-1) over the background to that of the second (1)."""
    full, share = series_colour(0 if part < 0 else 1, background), min(abs(part), 1.0)
    mixed = zip((full.red(), full.green(), full.blue()), (background.red(), background.green(), background.blue()), strict=True)
    return QColor(*(round(low + (high - low) * share) for high, low in mixed))
