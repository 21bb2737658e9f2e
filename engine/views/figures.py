"""A figure as marks over axes, which the window draws with pyqtgraph and `lay_out` turns into shapes for a page.

Values are in units of the axes: m/z, minutes, counts. Nothing here knows how large the figure is drawn or on what.
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
    """(n,) marks that can be selected by a click.

    Attributes
    ----------
    targets
        (n,) or empty, result of a click on each.
    tips
        Function from index to tooltip, or None.
    """

    targets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    tips: Callable[[int], str] | None = None


@dataclass(frozen=True)
class Spikes(Pickable):
    """(n,) upright lines from `foot` to `y`, as the peaks of a spectrum."""

    x: Values
    y: Values
    ink: Ink = "text"
    width: float = 1.0
    foot: float = 0.0


@dataclass(frozen=True)
class Line:
    """A line through (n,) points."""

    x: Values
    y: Values
    ink: Ink = "text"
    width: float = 1.5
    is_dashed: bool = False


@dataclass(frozen=True)
class Surface:
    """The filled surface between two lines over the same (n,) x."""

    x: Values
    low: Values
    high: Values
    ink: Ink = "text"
    opacity: float = 0.25


@dataclass(frozen=True)
class Bars(Pickable):
    """(n,) rectangles from `left` to `right` and from `foot` to `height`."""

    left: Values
    right: Values
    height: Values
    ink: Ink = "text"
    opacity: float = 1.0
    foot: float = 0.0
    has_outline: bool = False


@dataclass(frozen=True)
class Scatter(Pickable):
    """(n,) dots, `size` points wide; `is_hollow`: rings instead of dots."""

    x: Values
    y: Values
    ink: Ink = "text"
    size: float = 3.0
    is_hollow: bool = False


@dataclass(frozen=True)
class Rule:
    """A line across the whole panel at a value of one axis, with a text at its end."""

    at: float
    is_upright: bool = True
    ink: Ink = "text"
    width: float = 1.0
    is_dashed: bool = True
    text: str = ""


@dataclass(frozen=True)
class Band:
    """A strip between two values of the lower axis, as high as the panel."""

    low: float
    high: float
    ink: Ink = "mark"
    opacity: float = 0.25


@dataclass(frozen=True)
class Text:
    """A text at a place."""

    x: float
    y: float
    text: str
    anchor: Anchor = "middle"
    ink: Ink = "text"


@dataclass(frozen=True)
class Names:
    """Names of (n,) positions, drawn without overlap, most important first.

    Attributes
    ----------
    inks
        Ink of each name, or one for all.
    importance
        (n,) float64.
    obstacle_x, obstacle_y
        (m,) tips of vertical lines that no name may cover.
    is_below
        True if names are placed below their positions.
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
    """A text in a corner of the panel, whatever part of the axes is drawn. The left one is shortened first; names leave the line free."""

    text: str
    is_right: bool = False
    is_low: bool = False


class Render(Protocol):
    """Makes a picture of what two ranges hold."""

    def __call__(
        self, x: tuple[float, float], y: tuple[float, float], width: int, height: int, scale: float, palette: Palette
    ) -> NDArray[np.uint8]:
        """(height, width, 4) red, green, blue and opacity; `scale`: pixels for a point of the page."""


@dataclass(frozen=True)
class Pixels:
    """Points too many for individual marks, drawn as pixels."""

    render: Render


class Picked(NamedTuple):
    """A place of a panel: the target of a click, or None, and the tooltip."""

    target: Any
    tip: str = ""


Mark = Spikes | Line | Surface | Bars | Scatter | Rule | Band | Text | Names | Corner | Pixels


@dataclass(frozen=True)
class Panel:
    """Marks over two axes, the last in front.

    Attributes
    ----------
    share
        Relative height of the panel in the figure.
    smallest
        Minimum range of x and of y when zoomed in; None if an axis is not zoomed.
    is_standing
        True if y is zoomed by its upper end only, as for peaks: the base (of a mirrored axis the middle) is fixed and the wheel ignores it.
    of_view
        Function from two ends of x and the pixels between them to a panel for that range, with fitting y axis and picking, for more marks
        than pixels; None if the marks do not depend on the range.
    pick
        Function from x, y and the size of a pixel to the mark there; None selects the nearest mark with targets or tooltips.
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
    """A name next to the colour of its marks, a line or a box."""

    name: str
    ink: Ink
    is_line: bool = False


@dataclass(frozen=True)
class Strip:
    """Shapes between the heading and the panels, which do not follow the axes.

    Attributes
    ----------
    lines
        Height, in font sizes.
    draw
        From left, top, width and font size to the shapes.
    """

    lines: float
    draw: Callable[[float, float, float, float], list[Shape]]


@dataclass(frozen=True)
class Figure:
    """Panels in rows over a shared x axis, which has numbers and title below the last one.

    Attributes
    ----------
    name
        File name for saving.
    title
        Description of the picture for accessibility.
    heading
        Lines of text above the panels, the first one bold.
    size
        Width and height on a page, points.
    n_columns
        Columns of panels; with several, each panel has its own x numbers.
    strip
        See `Strip`.
    x_range
        Initial range of x, also on paper; None for all.
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
