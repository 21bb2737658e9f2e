"""Colours of figures, which readers with any colour vision can distinguish (after Okabe & Ito 2008, jfly.uni-koeln.de/color).

On dark surfaces the same hues are lighter. Every colour has a contrast of at least 3 : 1 with its background (WCAG 2.1, 1.4.11),
7 : 1 on the black surface of high contrast, and labels say in text what colours say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from proteoscope.engine.views.shown_peaks import LOSS, SHARED, SHIFTED, UNMATCHED

__all__ = ["ION_KINDS", "PAPER", "SERIES_COLOURS", "Fixed", "Ink", "Ion", "Palette", "Rgb", "Shade", "rgb_of"]

Rgb = tuple[int, int, int]


class Shade(NamedTuple):
    """A colour between that of the first series (-1), the background (0) and that of the second series (1)."""

    part: float


class Fixed(NamedTuple):
    """A colour that is the same on every surface."""

    red: int
    green: int
    blue: int


class Ion(NamedTuple):
    """Ink of an ion series, named by its symbol, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`."""

    kind: str


Ink = Literal["text", "faint", "grid", "background", "target", "decoy", "mark", "highlight", "highlighted"] | int | Shade | Ion | Fixed
"""The colour of a shape: a name, the place of a series in `SERIES_COLOURS` (from 0), a shade, an ion series, or a fixed colour."""

SERIES_COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#8a6d00",
    "#56b4e9",
    "#6a3d9a",
    "#7a6a2f",
    "#b3261e",
    "#1b8a8f",
    "#555555",
    "#e69f00",
)
"""Colours of up to twelve series on a white page."""
_IONS_ON_LIGHT = {
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
_IONS_ON_DARK = {
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
ION_KINDS = tuple(_IONS_ON_LIGHT)
_NAMED = {"target": "b", "decoy": "y", "mark": "z"}
"""Colours that have the hue of an ion series."""
_LIGHTER = 1.35
_LEAST_CONTRAST = 7.0
"""Of text in high contrast (WCAG 2.1, level AAA)."""


@dataclass(frozen=True)
class Palette:
    """The surface that a figure is drawn on, and what text and lines have as colours there, as ``#rrggbb``.

    `highlight`: background of the selection; `highlighted`: text on it.
    """

    background: str
    text: str
    faint: str
    grid: str
    highlight: str = SERIES_COLOURS[0]
    highlighted: str = "#ffffff"

    @property
    def is_dark(self) -> bool:
        """True if the background is darker than medium grey."""
        red, green, blue = _rgb(self.background)
        return max(red, green, blue) + min(red, green, blue) < 256

    @property
    def is_high_contrast(self) -> bool:
        """True for white text on black, the surface of the high-contrast theme."""
        return (self.background, self.text) == ("#000000", "#ffffff")


PAPER = Palette("#ffffff", "#000000", "#4a4a4a", "#d5d5d5")
"""Palette of figures in files: a white page regardless of the theme."""


def rgb_of(ink: Ink, palette: Palette = PAPER) -> Rgb:
    """Return the colour of an ink on a surface: red, green and blue, 0 to 255."""
    if isinstance(ink, Shade):
        share, full, back = min(abs(ink.part), 1.0), rgb_of(0 if ink.part < 0 else 1, palette), _rgb(palette.background)
        red, green, blue = (round(low + (high - low) * share) for high, low in zip(full, back, strict=True))
        return red, green, blue
    if isinstance(ink, Ion):
        return _readable(_rgb((_IONS_ON_DARK if palette.is_dark else _IONS_ON_LIGHT)[ink.kind]), palette)
    if isinstance(ink, Fixed):
        return ink
    if isinstance(ink, int):
        colour = _rgb(SERIES_COLOURS[ink % len(SERIES_COLOURS)])
        return _readable(_lighter(colour), palette) if palette.is_dark else colour
    if ink in _NAMED:
        return rgb_of(Ion(_NAMED[ink]), palette)
    surface: str = getattr(palette, ink)
    return _rgb(surface)


def _rgb(text: str) -> Rgb:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _readable(colour: Rgb, palette: Palette) -> Rgb:
    """Return the colour, mixed with as much white as text in high contrast needs."""
    while palette.is_high_contrast and _luminance(colour) + 0.05 < _LEAST_CONTRAST * 0.05:
        red, green, blue = (round(part + (255 - part) * 0.05) for part in colour)
        colour = red, green, blue
    return colour


def _luminance(colour: Rgb) -> float:
    """Return the relative luminance (WCAG 2.1)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (value / 255 for value in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _lighter(colour: Rgb) -> Rgb:
    """Return the colour with a greater HSV value; an excess over full brightness lowers the saturation."""
    highest = max(colour)
    value = highest * _LIGHTER
    if value <= 255:
        red, green, blue = (round(part * _LIGHTER) for part in colour)
        return red, green, blue
    saturation = 1 - min(colour) / highest if highest else 0.0
    lowered = max(0.0, saturation - (value - 255) / 255)
    red, green, blue = (round(255 * (1 - lowered * (highest - part) / max(highest - min(colour), 1))) for part in colour)
    return red, green, blue
