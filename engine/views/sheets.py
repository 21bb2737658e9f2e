"""Base class of figures that are larger than the window and drawn only in the visible region; measurement of text."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import FIXED_CHARACTER, Drawing, Shape

__all__ = ["CENTRE", "LINE", "Region", "Sheet", "TextMeasure", "selected_characters"]

LINE = 1.17
"""Height of a line of text relative to the font size."""
CENTRE = 0.35
"""Distance of the baseline below the middle of a text, relative to the font size."""
_CHARACTER = 0.6
"""Mean width of a character of DejaVu Sans relative to the font size."""


@dataclass(frozen=True)
class TextMeasure:
    """Sizes of the texts of a figure, in points or pixels.

    This class estimates them for paper, and the window has a subclass for its fonts.

    Attributes
    ----------
    font_size
        Font size of the figure.
    """

    font_size: float = 8.0

    @property
    def line(self) -> float:
        """Height of a line of text."""
        return LINE * self.font_size

    def width(self, text: str, size: float = 1.0, *, is_fixed: bool = False, is_bold: bool = False) -> float:
        """Return the width of a text; for the other parameters, see `proteoscope.engine.views.drawings.Label`."""
        return len(text) * (FIXED_CHARACTER if is_fixed else _CHARACTER) * size * self.font_size

    def number(self, value: float) -> str:
        """Format an integer with thousands separators; in the window, with the separators of the locale."""
        return f"{value:,.0f}"

    def cell(self, size: float = 1.0) -> float:
        """Return the width of a character of the monospaced font, measured as the mean in a long text, since rows are drawn as one text."""
        return self.width("W" * 100, size, is_fixed=True) / 100

    def elided(self, text: str, width: float, *, is_bold: bool = False) -> str:
        """Return a text shortened to a width with an ellipsis; '' if not even the ellipsis fits."""
        if self.width(text, is_bold=is_bold) <= width:
            return text
        n_fitting = bisect_right(range(len(text)), width, key=lambda n: self.width(f"{text[:n]}…", is_bold=is_bold))
        return f"{text[: n_fitting - 1]}…" if n_fitting else ""


class Region(NamedTuple):
    """Rectangle of a figure, in points or pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.top + self.height

    def holds(self, x: float, y: float) -> bool:
        """Return True if the rectangle contains a point."""
        return self.left <= x < self.right and self.top <= y < self.bottom


class Sheet:
    """Figure laid out for the text sizes of a `TextMeasure`.

    Attributes
    ----------
    measure
        Sizes of the texts.
    title
        Description for screen readers.
    size
        Width and height of the whole figure.
    """

    measure: TextMeasure
    title: str
    size: tuple[float, float]

    def shapes(self, region: Region) -> list[Shape]:
        """Return the shapes in a region, in coordinates of the whole figure."""
        raise NotImplementedError

    def draw(self, region: Region | None = None) -> Drawing:
        """Return the drawing of the whole figure, or only of the shapes in a region."""
        shapes = self.shapes(Region(0.0, 0.0, *self.size) if region is None else region)
        return Drawing(*self.size, self.title, tuple(shapes), self.measure.font_size)


def selected_characters(codes: NDArray[np.uint8], is_selected: NDArray[np.bool_]) -> str:
    """Return ASCII characters as text, with blanks in place of unselected characters and without trailing blanks.

    `codes` and `is_selected` have shape (n,).

    >>> selected_characters(np.frombuffer(b"ABCD", np.uint8), np.array([True, False, True, False]))
    'A C'
    """
    return np.where(is_selected, codes, np.uint8(ord(" "))).tobytes().decode("ascii").rstrip()
