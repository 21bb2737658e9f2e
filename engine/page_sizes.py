"""Sizes of figures in files: the widths of a journal's columns, and the resolution of pictures.

Figures are laid out for the width, not scaled, so that their texts have the same size at each width: 7 to 8 points, the smallest
`MINIMUM_FONT`.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "DPI",
    "FIGURE_FORMAT",
    "FIGURE_TYPES",
    "MAXIMUM_DPI",
    "MINIMUM_DPI",
    "MINIMUM_FONT",
    "ONE_COLUMN",
    "OWN_WIDTH",
    "PAGE_SIZES",
    "TWO_COLUMNS",
    "FigureFormat",
    "PageSize",
    "laid_out_size",
    "page_size",
]

DPI = 300
MINIMUM_DPI, MAXIMUM_DPI = 72, 1200
MINIMUM_FONT = 6.0
"""Points; smaller texts are not readable in print."""
_POINTS_PER_MM = 72 / 25.4
_LEAST_HEIGHT, _MOST_HEIGHT = 0.75, 1.25
"""Of a figure, as parts of its own height: narrow figures would be too low for their texts."""


class PageSize(NamedTuple):
    """A width of figures. `millimetres`: None for the figure's own."""

    name: str
    title: str
    millimetres: float | None

    @property
    def width(self) -> float | None:
        """Width in points, or None."""
        return None if self.millimetres is None else self.millimetres * _POINTS_PER_MM


ONE_COLUMN = PageSize("one-column", "One column, 85 mm", 85.0)
TWO_COLUMNS = PageSize("two-columns", "Two columns, 178 mm", 178.0)
OWN_WIDTH = PageSize("own", "Width of the figure", None)
PAGE_SIZES = (ONE_COLUMN, TWO_COLUMNS, OWN_WIDTH)
"""Presets of the window and of the command line."""

FIGURE_TYPES = ("svg", "pdf", "png")


class FigureFormat(NamedTuple):
    """Type, width and resolution of the files of figures."""

    type: str = "svg"
    size: PageSize = TWO_COLUMNS
    dpi: int = DPI


FIGURE_FORMAT = FigureFormat()
"""The default."""


def page_size(name: str) -> PageSize:
    """Return a preset by its name.

    >>> page_size("two-columns").millimetres
    178.0
    """
    return next(size for size in PAGE_SIZES if size.name == name)


def laid_out_size(page: tuple[float, float], width: float | None) -> tuple[float, float]:
    """Return width and height of a figure, points, of a width (None: its own); the height follows within limits.

    >>> laid_out_size((400.0, 320.0), 200.0), laid_out_size((400.0, 320.0), None)
    ((200.0, 240.0), (400.0, 320.0))
    """
    if width is None:
        return page
    return width, page[1] * min(max(width / page[0], _LEAST_HEIGHT), _MOST_HEIGHT)
