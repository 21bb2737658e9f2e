"""Figures as marks on axes, which the window draws with pyqtgraph and `lay_out` converts to shapes for a page.

Values are in units of the axes: m/z, minutes, counts. Arrays of marks have shape (n,). Figures do not depend on the size or device of the
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
    """n marks that a click can select.

    Attributes
    ----------
    targets
        What a click on each mark selects, shape (n,), or empty if clicks select nothing.
    tips
        Function that returns the tooltip of the mark with an index, or None.
    """

    targets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    tips: Callable[[int], str] | None = None


@dataclass(frozen=True)
class Spikes(Pickable):
    """n vertical lines from `foot` to `y`, such as the peaks of a spectrum."""

    x: Values
    y: Values
    ink: Ink = "text"
    width: float = 1.0
    foot: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line through n points."""

    x: Values
    y: Values
    ink: Ink = "text"
    width: float = 1.5
    is_dashed: bool = False


@dataclass(frozen=True)
class Surface:
    """The filled area between two lines, `low` and `high`, over the same x."""

    x: Values
    low: Values
    high: Values
    ink: Ink = "text"
    opacity: float = 0.25


@dataclass(frozen=True)
class Bars(Pickable):
    """n rectangles from `left` to `right` and from `foot` to `height`."""

    left: Values
    right: Values
    height: Values
    ink: Ink = "text"
    opacity: float = 1.0
    foot: float = 0.0
    has_outline: bool = False


@dataclass(frozen=True)
class Scatter(Pickable):
    """n dots, `size` points wide. `is_hollow`: rings instead of dots."""

    x: Values
    y: Values
    ink: Ink = "text"
    size: float = 3.0
    is_hollow: bool = False


@dataclass(frozen=True)
class Rule:
    """A line across the whole panel with a text at its end, at an x value if `is_upright`, otherwise at a y value."""

    at: float
    is_upright: bool = True
    ink: Ink = "text"
    width: float = 1.0
    is_dashed: bool = True
    text: str = ""


@dataclass(frozen=True)
class Band:
    """A vertical strip between two x values, as high as the panel."""

    low: float
    high: float
    ink: Ink = "mark"
    opacity: float = 0.25


@dataclass(frozen=True)
class Text:
    """A text at a point, in axis values."""

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
        Tips of vertical lines that no name may cover, shape (m,).
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
    """A text in a corner of the panel, independent of the visible range.

    If texts in both corners do not fit, the left one is shortened. Names leave this line free.
    """

    text: str
    is_right: bool = False
    is_low: bool = False


class Render(Protocol):
    """Function that renders the marks in the visible ranges as an image."""

    def __call__(
        self, x: tuple[float, float], y: tuple[float, float], width: int, height: int, scale: float, palette: Palette
    ) -> NDArray[np.uint8]:
        """Return red, green, blue and opacity, shape (height, width, 4), uint8.

        `x` and `y` are the visible ranges, `scale` is the number of pixels per point of the page.
        """


@dataclass(frozen=True)
class Pixels:
    """Data points that are too many for individual marks, rendered as an image."""

    render: Render


class Picked(NamedTuple):
    """Result of pointing at a panel: the target of a click, or None, and the tooltip."""

    target: Any
    tip: str = ""


Mark = Spikes | Line | Surface | Bars | Scatter | Rule | Band | Text | Names | Corner | Pixels


@dataclass(frozen=True)
class Panel:
    """Marks on two axes in drawing order, so that later ones cover earlier ones.

    Attributes
    ----------
    share
        Relative height of the panel in the figure.
    smallest
        Minimum visible range of x and of y; None if the axis cannot be zoomed.
    is_standing
        True if zooming y changes only its upper end, as for peaks: the base (the middle of a mirrored axis) is fixed, and the wheel does
        not zoom y.
    of_view
        Function that returns a panel for a visible x range (low, high, width in pixels), with its own marks, y axis and `pick`. Used if
        there are more marks than pixels; None if the marks do not depend on the range.
    pick
        Function that returns the mark at x and y, given the width and height of a pixel in axis values; None selects the nearest mark that
        has targets or tooltips.
    title
        Text above the panel.
    """

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    share: float = 1.0
    smallest: tuple[float | None, float | None] = (None, None)
    is_standing: bool = False
    of_view: Callable[[float, float, int], Panel] | None = None
    pick: Callable[[float, float, float, float], Picked | None] | None = None
    title: str = ""


@dataclass(frozen=True)
class LegendEntry:
    """An entry of the legend: a name next to a line or a box in the colour of its marks."""

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
    """Panels in rows with a common x axis, whose numbers and title are below the last row.

    Attributes
    ----------
    name
        Suggested file name.
    title
        Description of the picture for accessibility.
    heading
        Lines of text above the panels, the first one bold.
    size
        Width and height on a page, points.
    n_columns
        Number of columns of panels; with several, each panel has its own x numbers.
    strip
        Shapes between heading and panels, or None.
    x_range
        Initial x range, also in files; None for the whole axis.
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
