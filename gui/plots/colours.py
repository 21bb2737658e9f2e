"""Colours of ion series, told apart by readers with any colour vision (after Okabe & Ito 2008, jfly.uni-koeln.de/color).

On dark surfaces the same hues are lighter. Every one has a contrast of at least 3 : 1 on what it is drawn on (WCAG 2.1, 1.4.11),
and labels say in text what colours say.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor, QPalette

from proteoscope.engine.views.shown_peaks import LOSS, SHARED, SHIFTED, UNMATCHED

__all__ = ["PAPER", "PlotColours", "plot_colours"]

_ON_LIGHT = {
    "b": "#0072b2",
    "y": "#c04a00",
    "a": "#00795a",
    "c": "#2a8ac4",
    "x": "#8a6d00",
    "z": "#a8518a",
    "p": "#6a3d9a",
    "i": "#5f6b00",
    LOSS: "#7a6a2f",
    SHARED: "#00795a",
    SHIFTED: "#a8518a",
    UNMATCHED: "#8d949e",
}
_ON_DARK = {
    "b": "#56b4e9",
    "y": "#ff8f3f",
    "a": "#2fc79a",
    "c": "#8fd0f5",
    "x": "#f0e442",
    "z": "#e08fc4",
    "p": "#b99be8",
    "i": "#c3d04a",
    LOSS: "#c9b458",
    SHARED: "#2fc79a",
    SHIFTED: "#e08fc4",
    UNMATCHED: "#767d88",
}


@dataclass(frozen=True)
class PlotColours:
    """What a plot is drawn with. `ions` are by letter of the series, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`."""

    background: QColor
    text: QColor
    faint: QColor
    grid: QColor
    ions: dict[str, QColor]
    target: QColor
    decoy: QColor
    mark: QColor


def _colours(background: QColor, text: QColor, faint: QColor, grid: QColor, is_dark: bool) -> PlotColours:
    ions = {kind: QColor(name) for kind, name in (_ON_DARK if is_dark else _ON_LIGHT).items()}
    return PlotColours(background, text, faint, grid, ions, ions["b"], ions["y"], ions["z"])


PAPER = _colours(QColor("#ffffff"), QColor("#000000"), QColor("#4a4a4a"), QColor("#d5d5d5"), is_dark=False)
"""For figures: a white page whatever the screen looks like."""


def plot_colours(palette: QPalette) -> PlotColours:
    """Colours that fit a palette, light or dark."""
    base, text = palette.color(QPalette.ColorRole.Base), palette.color(QPalette.ColorRole.Text)
    grid = palette.color(QPalette.ColorRole.Mid)
    return _colours(base, text, palette.color(QPalette.ColorRole.PlaceholderText), grid, base.lightness() < 128)
