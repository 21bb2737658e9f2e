"""Sizes and formats of figure files: widths of journal columns, file types and resolutions.

Figures are laid out for their width, not scaled, so that text has the same size at each width: 7 to 8 points, and at least
`MINIMUM_FONT`.
"""

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
"""Minimum font size in points; smaller text is not readable in print."""
_POINTS_PER_MM = 72 / 25.4
_LEAST_HEIGHT, _MOST_HEIGHT = 0.75, 1.25
"""Limits of a figure's height relative to its default height; otherwise a narrow figure would be too low for its text."""


class PageSize(NamedTuple):
    """Setting of the figure width: `millimetres`, or None for the default width of each figure."""

    name: str
    title: str
    millimetres: float | None

    @property
    def width(self) -> float | None:
        """Width in points, or None for the default width of each figure."""
        return None if self.millimetres is None else self.millimetres * _POINTS_PER_MM


ONE_COLUMN = PageSize("one-column", "One column, 85 mm", 85.0)
TWO_COLUMNS = PageSize("two-columns", "Two columns, 178 mm", 178.0)
OWN_WIDTH = PageSize("own", "Width of the figure", None)
PAGE_SIZES = (ONE_COLUMN, TWO_COLUMNS, OWN_WIDTH)
"""Width settings that the window and the command line offer."""

FIGURE_TYPES = ("svg", "pdf", "png")


class FigureFormat(NamedTuple):
    """File type, width and resolution of figures."""

    type: str = "svg"
    size: PageSize = TWO_COLUMNS
    dpi: int = DPI


FIGURE_FORMAT = FigureFormat()
"""Default file type, width and resolution."""


def page_size(name: str) -> PageSize:
    """Return the page size with this name.

    >>> page_size("two-columns").millimetres
    178.0
    """
    return next(size for size in PAGE_SIZES if size.name == name)


def laid_out_size(page: tuple[float, float], width: float | None) -> tuple[float, float]:
    """Return the width and height of a figure in points; None as `width` selects its default width.

    `page` is the default width and height in points. The height is proportional to the width, but at least 0.75 and at most 1.25 times the
    default height.

    >>> laid_out_size((400.0, 320.0), 200.0), laid_out_size((400.0, 320.0), None)
    ((200.0, 240.0), (400.0, 320.0))
    """
    if width is None:
        return page
    return width, page[1] * min(max(width / page[0], _LEAST_HEIGHT), _MOST_HEIGHT)
