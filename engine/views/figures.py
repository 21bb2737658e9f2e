"""Figures as marks on axes, which the window draws with pyqtgraph and `lay_out` converts to shapes on a page.

Values are in units of the axes: m/z, minutes, counts. Arrays of n marks have shape (n,). Figures do not depend on the size or device of the
drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import Anchor, Axis, Shape
from proteoscope.engine.views.palette import Ink, Palette

__all__ = [
    "Band",
    "Bars",
    "Corner",
    "Figure",
    "LegendEntry",
    "Line",
    "Mark",
    "Names",
    "Panel",
    "Pickable",
    "Picked",
    "Pixels",
    "Render",
    "Rule",
    "Scatter",
    "Spikes",
    "Strip",
    "Surface",
    "Text",
]

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Pickable:
    """Marks (n) that a click can select.

    Attributes
    ----------
    targets
        Object that a click on each mark selects, (n,), or empty if clicks select nothing.
    tips
        Function that returns the tooltip of a mark, given its index; None if there are no tooltips.
    """

    targets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    tips: Callable[[int], str] | None = None


@dataclass(frozen=True)
class Spikes(Pickable):
    """Vertical lines (n) from `foot` to `y`, such as the peaks of a spectrum."""

    x: Values
    y: Values
    ink: Ink = "text"
    width: float = 1.0
    foot: float = 0.0


@dataclass(frozen=True)
class Line:
    """Line through n points."""

    x: Values
    y: Values
    ink: Ink = "text"
    width: float = 1.5
    is_dashed: bool = False


@dataclass(frozen=True)
class Surface:
    """Filled area between two lines, `low` and `high`, over the same x values."""

    x: Values
    low: Values
    high: Values
    ink: Ink = "text"
    opacity: float = 0.25


@dataclass(frozen=True)
class Bars(Pickable):
    """Rectangles (n) from `left` to `right` and from `foot` to `height`."""

    left: Values
    right: Values
    height: Values
    ink: Ink = "text"
    opacity: float = 1.0
    foot: float = 0.0
    has_outline: bool = False


@dataclass(frozen=True)
class Scatter(Pickable):
    """Dots (n) that are `size` points wide, or rings if `is_hollow`."""

    x: Values
    y: Values
    ink: Ink = "text"
    size: float = 3.0
    is_hollow: bool = False


@dataclass(frozen=True)
class Rule:
    """Line across the whole panel, with a text at its end: vertical at an x value if `is_upright`, otherwise horizontal at a y value."""

    at: float
    is_upright: bool = True
    ink: Ink = "text"
    width: float = 1.0
    is_dashed: bool = True
    text: str = ""


@dataclass(frozen=True)
class Band:
    """Vertical strip between two x values, as high as the panel."""

    low: float
    high: float
    ink: Ink = "mark"
    opacity: float = 0.25


@dataclass(frozen=True)
class Text:
    """Text at a point given by axis values."""

    x: float
    y: float
    text: str
    anchor: Anchor = "middle"
    ink: Ink = "text"


@dataclass(frozen=True)
class Names:
    """Names of n points, placed without overlap, most important first; names that do not fit are omitted.

    Attributes
    ----------
    inks
        Colour of each name, or one colour for all.
    importance
        Importance of each name, shape (n,), float64.
    obstacle_x, obstacle_y
        Upper ends of vertical lines that no name may cover, (m,).
    is_below
        True if names are placed below their points.
    """

    x: Values
    y: Values
    texts: Sequence[str]
    importance: Values
    inks: list[Ink] | Ink = "text"
    obstacle_x: Values = field(default_factory=lambda: np.empty(0))
    obstacle_y: Values = field(default_factory=lambda: np.empty(0))
    is_below: bool = False


@dataclass(frozen=True)
class Corner:
    """Text in a corner of the panel, independent of the visible range.

    If the texts of the left and the right corner do not fit next to each other, the left text is shortened. No names (`Names`) are placed
    at the height of corner texts.
    """

    text: str
    is_right: bool = False
    is_low: bool = False


class Render(Protocol):
    """Function that renders marks in the visible ranges as an image."""

    def __call__(
        self, x: tuple[float, float], y: tuple[float, float], width: int, height: int, scale: float, palette: Palette
    ) -> NDArray[np.uint8]:
        """Return red, green, blue and opacity, shape (height, width, 4), uint8.

        `x` and `y` are the visible ranges of the axes, and `scale` is the number of pixels per point of the page.
        """


@dataclass(frozen=True)
class Pixels:
    """Data points that are rendered as an image because they are too many for individual marks."""

    render: Render


class Picked(NamedTuple):
    """Mark under the pointer: the object that a click selects, or None, and the tooltip."""

    target: Any
    tip: str = ""


Mark = Spikes | Line | Surface | Bars | Scatter | Rule | Band | Text | Names | Corner | Pixels


@dataclass(frozen=True)
class Panel:
    """Marks on two axes in drawing order: later marks cover earlier ones.

    Attributes
    ----------
    relative_height
        Relative height of the panel in the figure.
    smallest
        Minimum visible range of x and of y; None if the axis cannot be zoomed.
    is_base_fixed
        True if zooming the y axis changes only its upper end, as for peaks: the base (the middle of a mirrored axis) is fixed, and the
        mouse wheel does not zoom the y axis.
    of_view
        Function that returns a panel whose marks, y axis and `pick` suit a visible x range, given the range's low and high end and its
        width in pixels. Used if there are more marks than pixels; None if the marks do not depend on the range.
    pick
        Function that returns the mark at a point, given x, y, and the width and height of a pixel in axis values. None to select the
        nearest mark with a target or tooltip.
    title
        Text above the panel.
    """

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    relative_height: float = 1.0
    smallest: tuple[float | None, float | None] = (None, None)
    is_base_fixed: bool = False
    of_view: Callable[[float, float, int], Panel] | None = None
    pick: Callable[[float, float, float, float], Picked | None] | None = None
    title: str = ""


@dataclass(frozen=True)
class LegendEntry:
    """Entry of the legend: a name, and a line or a box in the colour of the marks."""

    name: str
    ink: Ink
    is_line: bool = False


@dataclass(frozen=True)
class Strip:
    """Shapes between the heading and the panels that are independent of the axes.

    Attributes
    ----------
    lines
        Height, as a multiple of the font size.
    draw
        Function that returns the shapes, given left, top, width and font size.
    """

    lines: float
    draw: Callable[[float, float, float, float], list[Shape]]


@dataclass(frozen=True)
class Figure:
    """Panels in rows with a common x axis; the numbers and title of the axis are below the last row.

    Attributes
    ----------
    name
        File name that is suggested when the figure is saved.
    title
        Description of the picture for accessibility.
    heading
        Lines of text above the panels, the first line in bold.
    size
        Width and height on a page, points.
    n_columns
        Number of columns of panels; if there are several, each panel has x axis numbers.
    strip
        Shapes between heading and panels, or None.
    x_range
        Initial x range, also of saved figures; None for the whole axis.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    heading: tuple[str, ...] = ()
    legend: tuple[LegendEntry, ...] = ()
    size: tuple[float, float] = (510.0, 200.0)
    n_columns: int = 1
    x_range: tuple[float, float] | None = None
    strip: Strip | None = None
