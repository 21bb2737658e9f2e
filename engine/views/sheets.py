"""Figures that may be larger than the window: laid out once, drawn as far as they are in sight; and the widths of their texts."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import FIXED_CHARACTER, Drawing, Shape

__all__ = ["CENTRE", "LINE", "Region", "Sheet", "TextMeasure", "selected_characters"]

LINE = 1.17
"""Height of a line of text as part of the font size."""
CENTRE = 0.35
"""Distance of the baseline below the middle of a text, relative to the font size."""
_CHARACTER = 0.6
"""Mean width of a character of DejaVu Sans as part of the font size."""


@dataclass(frozen=True)
class TextMeasure:
    """Sizes of the texts of a figure, in points or pixels: here about those on paper; the window measures its fonts.

    Attributes
    ----------
    font_size
        Of the figure's texts.
    """

    font_size: float = 8.0

    @property
    def line(self) -> float:
        """Height of a line of text."""
        return LINE * self.font_size

    def width(self, text: str, size: float = 1.0, *, is_fixed: bool = False, is_bold: bool = False) -> float:
        """Width of a text; `size`, `is_fixed`, `is_bold`: see `proteoscope.engine.views.drawings.Label`."""
        return len(text) * (FIXED_CHARACTER if is_fixed else _CHARACTER) * size * self.font_size

    def number(self, value: float) -> str:
        """Format a whole number; the window uses the locale's separators."""
        return f"{value:,.0f}"

    def cell(self, size: float = 1.0) -> float:
        """Return the mean character width of a monospaced font, since a row is drawn as one text."""
        return self.width("W" * 100, size, is_fixed=True) / 100

    def elided(self, text: str, width: float, *, is_bold: bool = False) -> str:
        """Shorten a text to a width with an ellipsis; empty if not even that fits."""
        if self.width(text, is_bold=is_bold) <= width:
            return text
        n_fitting = bisect_right(range(len(text)), width, key=lambda n: self.width(f"{text[:n]}…", is_bold=is_bold))
        return f"{text[: n_fitting - 1]}…" if n_fitting else ""


class Region(NamedTuple):
    """A rectangle of a figure."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right end."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower end."""
        return self.top + self.height

    def holds(self, x: float, y: float) -> bool:
        """Return True if a point lies within."""
        return self.left <= x < self.right and self.top <= y < self.bottom


class Sheet:
    """A figure laid out for a size of its texts.

    Attributes
    ----------
    measure
        Of its texts.
    title
        Description for screen readers.
    size
        Width and height of all of it.
    """

    measure: TextMeasure
    title: str
    size: tuple[float, float]

    def shapes(self, region: Region) -> list[Shape]:
        """Return the shapes visible in a region, in coordinates of the whole."""
        raise NotImplementedError

    def draw(self, region: Region | None = None) -> Drawing:
        """Draw the sheet, or only a region."""
        shapes = self.shapes(Region(0.0, 0.0, *self.size) if region is None else region)
        return Drawing(*self.size, self.title, tuple(shapes), self.measure.font_size)


def selected_characters(codes: NDArray[np.uint8], is_selected: NDArray[np.bool_]) -> str:
    """Return selected (n,) ASCII characters with blanks in place of others, without trailing blanks.

    >>> selected_characters(np.frombuffer(b"ABCD", np.uint8), np.array([True, False, True, False]))
    'A C'
    """
    return np.where(is_selected, codes, np.uint8(ord(" "))).tobytes().decode("ascii").rstrip()
