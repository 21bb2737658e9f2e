"""Colours of figures that can be distinguished with any colour vision (after Okabe & Ito 2008, jfly.uni-koeln.de/color).

A surface is the background of a figure. On dark surfaces the same hues are lighter. Every colour has a contrast of at least 3 : 1 with its
background (WCAG 2.1, 1.4.11) and of at least 7 : 1 in the high-contrast theme (black). Text on coloured cells and areas has at least
4.5 : 1, and 7 : 1 in the high-contrast theme (1.4.3 and 1.4.6). Labels repeat as text what colours show.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.shown_peaks import LOSS, SHARED, SHIFTED, UNMATCHED

__all__ = [
    "ION_KINDS",
    "PAPER",
    "SERIES_COLOURS",
    "Fixed",
    "Ink",
    "Ion",
    "Legible",
    "OnCell",
    "Palette",
    "Rgb",
    "Shade",
    "cell_colours",
    "contrast",
    "has_dark_text",
    "opacity_below_text",
    "rgb_of",
]

Rgb = tuple[int, int, int]


class Shade(NamedTuple):
    """Mixed colour: `part` runs from -1 (colour of the first series) over 0 (background) to 1 (colour of the second series)."""

    part: float


class Fixed(NamedTuple):
    """Colour that is the same on every surface."""

    red: int
    green: int
    blue: int


class Legible(NamedTuple):
    """Colour that is mixed with the text colour until its contrast with the surface is at least 3 : 1."""

    red: int
    green: int
    blue: int


class OnCell(NamedTuple):
    """Colour of text on a cell (see `cell_colours`): black if `is_dark`, else white; always black in the high-contrast theme."""

    is_dark: bool


class Ion(NamedTuple):
    """Colour of a kind of peak: the symbol of an ion series, `LOSS`, `SHARED`, `SHIFTED` or `UNMATCHED`."""

    kind: str


Ink = (
    Literal["text", "faint", "grid", "background", "target", "decoy", "mark", "highlight", "highlighted"]
    | int
    | Shade
    | Ion
    | Fixed
    | Legible
    | OnCell
)
"""Colour of a shape: a name, an index into `SERIES_COLOURS`, a mixed colour, a kind of peak, or a given colour."""

SERIES_COLOURS = (
    "#0072b2",
    "#d55e00",
    "#004932",
    "#e750ff",
    "#725302",
    "#0096ba",
    "#0500bf",
    "#552a02",
    "#a70747",
    "#00675d",
    "#868077",
    "#b88c67",
)
"""Colours of up to twelve series on a white page; pairs have a CIEDE2000 distance of at least 10 with any colour vision."""
_SERIES_ON_DARK = (
    "#aaabff",
    "#e9920e",
    "#51bb95",
    "#ce98bc",
    "#ffdea4",
    "#087afa",
    "#e900bd",
    "#cbff0b",
    "#eb0165",
    "#90f1ff",
    "#fffff4",
    "#987001",
)
"""Colours of series on a dark surface."""
_UNMATCHED, _UNMATCHED_ON_DARK = "#8d949e", "#767d88"
_IONS: dict[str, int] = {"b": 0, "y": 1, "a": 2, "c": 5, "x": 4, "z": 3, "p": 6, "i": 8, LOSS: 11, SHARED: 2, SHIFTED: 3}
"""Index into `SERIES_COLOURS` of each kind of peak."""
ION_KINDS = (*_IONS, UNMATCHED)
_NAMED = {"target": "b", "decoy": "y", "mark": "z"}
"""Named colours that equal the colour of an ion series."""
_LUMINANCE = (0.2126, 0.7152, 0.0722)
_MIDDLE_LUMINANCE = (1.05 * 0.05) ** 0.5 - 0.05
"""Luminance on which black and white have the same contrast, 4.58 : 1."""
_HIGH_CONTRAST = 7.0
"""Minimum contrast in the high-contrast theme (WCAG 2.1, level AAA, for text)."""
_LEAST_CONTRAST, _CONTRAST_STEPS = 3.0, 20
_TEXT_CONTRAST = 4.5
"""Minimum contrast of text in the other themes (WCAG 2.1, level AA)."""


@dataclass(frozen=True)
class Palette:
    """Colours of the surface on which a figure is drawn, and of text and lines, as ``#rrggbb``.

    `highlight` is the background of a selection, and `highlighted` is the colour of text on it.
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
        """True if text is white on black, as in the high-contrast theme."""
        return (self.background, self.text) == ("#000000", "#ffffff")


PAPER = Palette("#ffffff", "#000000", "#4a4a4a", "#d5d5d5")
"""Palette of figures in files: a white page regardless of the theme."""


def rgb_of(ink: Ink, palette: Palette = PAPER) -> Rgb:
    """Return red, green and blue (0 to 255) of an ink on the surface of a palette."""
    if isinstance(ink, Shade):
        fraction, full, back = min(abs(ink.part), 1.0), rgb_of(0 if ink.part < 0 else 1, palette), _rgb(palette.background)
        red, green, blue = (round(low + (high - low) * fraction) for high, low in zip(full, back, strict=True))
        return red, green, blue
    if isinstance(ink, Ion):
        if ink.kind == UNMATCHED:
            return _readable(_rgb(_UNMATCHED_ON_DARK if palette.is_dark else _UNMATCHED), palette)
        return rgb_of(_IONS[ink.kind], palette)
    if isinstance(ink, Fixed):
        return ink
    if isinstance(ink, Legible):
        return _with_contrast(ink, palette)
    if isinstance(ink, OnCell):
        return (0, 0, 0) if ink.is_dark or palette.is_high_contrast else (255, 255, 255)
    if isinstance(ink, int):
        series = _SERIES_ON_DARK if palette.is_dark else SERIES_COLOURS
        return _readable(_rgb(series[ink % len(series)]), palette)
    if ink in _NAMED:
        return rgb_of(Ion(_NAMED[ink]), palette)
    surface: str = getattr(palette, ink)
    return _rgb(surface)


def cell_colours(colours: NDArray[np.uint8], palette: Palette) -> NDArray[np.uint8]:
    """Return the colours in which cells with text are drawn; in the high-contrast theme, cells are lightened, since their text is black.

    Parameters
    ----------
    colours : ndarray of uint8, shape (rows, columns, 4)
        Red, green, blue and opacity.
    palette : Palette
        Surface of the figure.
    """
    if not palette.is_high_contrast:
        return colours
    distinct, inverse = np.unique(colours.reshape(-1, 4), axis=0, return_inverse=True)
    lightened = np.array([(*_readable((red, green, blue), palette), opacity) for red, green, blue, opacity in distinct.tolist()], np.uint8)
    return lightened[inverse.reshape(-1)].reshape(colours.shape)


def has_dark_text(colours: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return True for colours (red, green, blue in the last axis) on which black text has more contrast than white, at least 4.5 : 1."""
    parts = colours[..., :3] / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ _LUMINANCE >= _MIDDLE_LUMINANCE)


@lru_cache(maxsize=1024)
def opacity_below_text(ink: Ink, opacity: float, palette: Palette) -> float:
    """Return the opacity of an area, reduced so that text on it has the minimum contrast; the opacity 1 is returned unchanged."""
    if opacity == 1.0:
        return opacity
    text, back, colour = rgb_of("text", palette), rgb_of("background", palette), rgb_of(ink, palette)
    least = _HIGH_CONTRAST if palette.is_high_contrast else _TEXT_CONTRAST
    for step in range(_CONTRAST_STEPS):
        fraction = opacity * (1 - step / _CONTRAST_STEPS)
        red, green, blue = (round(low + (high - low) * fraction) for low, high in zip(back, colour, strict=True))
        if contrast(text, (red, green, blue)) >= least:
            return fraction
    return 0.0


def contrast(first: Rgb, other: Rgb) -> float:
    """Return the contrast ratio of two colours, from 1 to 21, as defined by WCAG 2.1."""
    low, high = sorted((_luminance(first), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _readable(colour: Rgb, palette: Palette) -> Rgb:
    """Return the colour; in the high-contrast theme, increase its contrast to at least `_HIGH_CONTRAST`."""
    return _with_contrast(colour, palette, _HIGH_CONTRAST) if palette.is_high_contrast else colour


@lru_cache(maxsize=1024)
def _with_contrast(colour: Rgb, palette: Palette, least: float = _LEAST_CONTRAST) -> Rgb:
    """Return the colour, mixed with just enough of the text colour for a minimum contrast with the background."""
    text, back = _rgb(palette.text), _rgb(palette.background)
    for step in range(_CONTRAST_STEPS + 1):
        red, green, blue = (round(start + (end - start) * step / _CONTRAST_STEPS) for start, end in zip(colour, text, strict=True))
        if contrast(back, (red, green, blue)) >= least:
            break
    return red, green, blue


def _luminance(colour: Rgb) -> float:
    """Return the relative luminance of a colour (WCAG 2.1)."""
    parts = (part / 255 for part in colour)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip(_LUMINANCE, linear, strict=True))


def _rgb(text: str) -> Rgb:
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)
