"""Figures as simple shapes on a page, which the window paints and the program writes as SVG, PDF and PNG.

Lengths are in points (1/72 inch); x and y are measured from the upper left corner. Colours come from `proteoscope.engine.views.palette`.
"""

import math
import textwrap
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proteoscope.engine.views.palette import PAPER, Ink, Palette, Shade, rgb_of
from proteoscope.engine.views.ticks import nice_ticks, powers_of_ten, square_ticks

__all__ = [
    "FIXED_CHARACTER",
    "Anchor",
    "Area",
    "Axis",
    "Bar",
    "Basic",
    "Box",
    "Cells",
    "Clip",
    "Curve",
    "Drawing",
    "Handle",
    "Image",
    "Label",
    "PaperFigure",
    "Points",
    "Scale",
    "Shape",
    "Spans",
    "Sticks",
    "Stroke",
    "Symbol",
    "draw_axes",
    "draw_x_axis",
    "format_colour",
    "in_lines",
    "shortened",
    "svg",
    "text_width",
]

Anchor = Literal["start", "middle", "end"]
Scale = Literal["linear", "square-root", "logarithmic"]

_MM_PER_POINT = 25.4 / 72
_LONGEST_NUMBER = 1e7
"""Smallest tick value that is shown in scientific notation."""
FIXED_CHARACTER = 0.602
"""Width of a character of DejaVu Sans Mono relative to the font size."""
_CAPITAL = 0.716
"""Height of capitals of Arial relative to the font size."""
_CHARACTER = 0.56
"""Mean width of a character relative to the font size, for estimates of text widths with an unknown font."""


@dataclass(frozen=True)
class Stroke:
    """Straight line from (x1, y1) to (x2, y2)."""

    x1: float
    y1: float
    x2: float
    y2: float
    ink: Ink = "text"
    width: float = 0.8
    is_dashed: bool = False


@dataclass(frozen=True)
class Box:
    """Rectangle whose upper left corner is (x, y)."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Bar(Box):
    """Filled rectangle, or the circle inside it if `is_round`.

    `target` is the object that a click selects, `tip` is the tooltip, `opacity` (0 to 1) is the opacity of the fill, and `outline` is the
    colour of the border, or None for no border.
    """

    ink: Ink = "text"
    is_round: bool = False
    target: Any = None
    tip: str = ""
    opacity: float = 1.0
    outline: Ink | None = None


@dataclass(frozen=True)
class Curve:
    """Line through n points; `x` and `y` have shape (n,)."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ink: Ink = "text"
    width: float = 1.5
    is_dashed: bool = False


@dataclass(frozen=True)
class Area:
    """Filled polygon of n corners without a border; `x` and `y` have shape (n,)."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ink: Ink = "text"
    opacity: float = 1.0


@dataclass(frozen=True)
class Sticks:
    """Vertical lines (n) of one colour from `y1` to `y2`; the arrays have shape (n,)."""

    x: NDArray[np.float64]
    y1: NDArray[np.float64]
    y2: NDArray[np.float64]
    ink: Ink = "text"
    width: float = 0.8


@dataclass(frozen=True)
class Spans:
    """Horizontal bars (n) of one height and colour from `x1` to `x2`, with upper edges `y`; the arrays have shape (n,)."""

    x1: NDArray[np.float64]
    x2: NDArray[np.float64]
    y: NDArray[np.float64]
    height: float
    ink: Ink = "text"
    opacity: float = 1.0


@dataclass(frozen=True)
class Points:
    """Dots of one colour at `x` and `y`, each of shape (n,).

    `targets`, shape (n,), are the numbers of the objects that clicks on the dots select; they are empty if clicks select nothing.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ink: Ink = "text"
    size: float = 3.0
    targets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def centres(self) -> NDArray[np.float64]:
        """Distinct positions of the dots, rounded to half a point, (k, 2): one position for dots that would cover each other."""
        return np.unique(np.rint(np.column_stack((self.x, self.y)) * 2), axis=0) / 2


@dataclass(frozen=True)
class Label:
    """Text that starts, is centred or ends at a point of its baseline, depending on `anchor`.

    `is_upright` rotates the text to be read from bottom to top; `size` is the font size relative to the font size of the drawing;
    `is_fixed` selects a font of fixed width.
    """

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    ink: Ink = "text"
    is_bold: bool = False
    is_upright: bool = False
    size: float = 1.0
    is_fixed: bool = False


@dataclass(frozen=True)
class Image(Box):
    """A picture in a rectangle.

    Attributes
    ----------
    pixels
        Red, green, blue and opacity, shape (rows, columns, 4), uint8.
    has_text
        True if the pixels are cells on which text is drawn (`proteoscope.engine.views.palette.cell_colours`).
    """

    pixels: NDArray[np.uint8]
    has_text: bool = False


@dataclass(frozen=True)
class Cells(Box):
    """A grid of coloured cells in a rectangle, drawn as one image.

    Attributes
    ----------
    values
        Colour of each cell, shape (rows, columns). uint8 values: 0 for no colour, k for the colour ``inks[k - 1]``. float64 values: -1 to 1
        as in `Shade`, NaN for the colour ``inks[0]``.
    inks
        Colours of the cells.
    targets
        Number of the object that a click selects, -1 for none: for each row of cells, (rows,), or for each cell, (rows, columns). Shape
        (0,) if clicks select nothing.
    tip
        Function that returns the tooltip of a row and column, or None.
    scale
        Width and height of a cell in files, pixels; a value above 1 is needed because some viewers blur small images.
    """

    values: NDArray[np.uint8] | NDArray[np.float64]
    inks: tuple[Ink, ...]
    targets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    tip: Callable[[int, int], str] | None = None
    scale: int = 1

    def pixels(self, palette: Palette = PAPER) -> NDArray[np.uint8]:
        """Return red, green, blue and opacity of each cell in the colours of a palette, shape (rows, columns, 4), uint8."""
        colours = np.array([(0, 0, 0, 0), *((*rgb_of(ink, palette), 255) for ink in self.inks)], np.uint8)
        if self.values.dtype == np.uint8:
            # Four bytes as one number: NumPy looks it up several times faster than four separate bytes.
            return colours.view(np.uint32).ravel()[self.values].view(np.uint8).reshape(*self.values.shape, 4)
        fraction = np.clip(np.nan_to_num(self.values), -1.0, 1.0)[..., None]
        back, low, high = (np.array((*rgb_of(Shade(part), palette), 255), np.float64) for part in (0.0, -1.0, 1.0))
        mixed = np.where(fraction < 0, back + (low - back) * -fraction, back + (high - back) * fraction)
        mixed[~np.isfinite(self.values)] = colours[1]
        cells: NDArray[np.uint8] = np.rint(mixed).astype(np.uint8, order="C")
        return cells

    def image(self) -> Image:
        """Return the cells as an image on a white page, with `scale` by `scale` pixels per cell."""
        pixels = self.pixels().repeat(self.scale, axis=0).repeat(self.scale, axis=1)
        return Image(self.x, self.y, self.width, self.height, pixels)

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Return the row and column at a point of the drawing, or None."""
        n_rows, n_columns = self.values.shape
        row, column = math.floor((y - self.y) / self.height * n_rows), math.floor((x - self.x) / self.width * n_columns)
        return (row, column) if 0 <= row < n_rows and 0 <= column < n_columns else None


@dataclass(frozen=True)
class Symbol(Box):
    """Bold capital character stretched to a rectangle, for sequence logos."""

    text: str
    ink: Ink = "text"


Basic = Stroke | Bar | Curve | Area | Sticks | Points | Label | Image | Cells | Symbol | Spans


@dataclass(frozen=True)
class Clip(Box):
    """Shapes clipped to a rectangle."""

    shapes: tuple[Basic, ...]


Shape = Basic | Clip


@dataclass(frozen=True)
class Handle:
    """Line of a drawing that the user can drag in the window.

    Attributes
    ----------
    name
        Name of the setting that dragging the line changes.
    at, start, stop
        For a vertical line, `at` is its x, and `start` and `stop` are the y of its ends; for a horizontal line, `at` is its y. In points.
    is_upright
        True for a vertical line, which is dragged sideways.
    value
        Function that returns the value of the setting, given a position of the line.
    tip
        Tooltip.
    """

    name: str
    at: float
    start: float
    stop: float
    is_upright: bool
    value: Callable[[float], float]
    tip: str = ""


@dataclass(frozen=True)
class Drawing:
    """Shapes in drawing order: later shapes cover earlier ones.

    `title` is a description for screen readers, `font_size` the size of texts, and `handles` are lines that can be dragged.
    """

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...]
    font_size: float = 8.0
    handles: tuple[Handle, ...] = ()


class PaperFigure(NamedTuple):
    """Figure to be saved: its file name without extension, and a function that draws it.

    The parameter of the function is the width in points, or None for the default width.
    """

    name: str
    draw: Callable[[float | None], Drawing]


@dataclass(frozen=True)
class Axis:
    """Range, title and scale (linear, logarithmic or square root) of an axis.

    A square root axis starts at 0. On a logarithmic axis, values below the range are drawn at its lower end. If the title does not fit, it
    is replaced by the first of `short_titles` (longest first) that fits.
    """

    low: float
    high: float
    title: str = ""
    is_whole: bool = False
    is_percent: bool = False
    is_mirrored: bool = False
    scale: Scale = "linear"
    short_titles: tuple[str, ...] = ()

    def scaled(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return values transformed by the scale of the axis, such as logarithms, in the same shape."""
        if self.scale == "logarithmic":
            return np.asarray(np.log10(np.maximum(values, self.low)))
        if self.scale == "square-root":
            return np.asarray(np.sqrt(np.maximum(values, 0.0)))
        return np.asarray(values, np.float64)

    def unscaled(self, positions: ArrayLike) -> NDArray[np.float64]:
        """Return the values whose transforms are `positions`; inverse of `scaled`."""
        if self.scale == "logarithmic":
            return np.asarray(10.0 ** np.asarray(positions))
        return np.square(positions) if self.scale == "square-root" else np.asarray(positions, np.float64)

    def shares(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the positions of values on the axis as fractions of its length, 0 at `low` and 1 at `high`, in the same shape."""
        low, high = self.scaled([self.low, self.high]).tolist()
        return np.asarray((self.scaled(values) - low) / (high - low))

    def ticks(self, n_wanted: int) -> list[float]:
        """Return about `n_wanted` round values within the range."""
        if self.scale == "logarithmic":
            return powers_of_ten(self.low, self.high, n_wanted)
        if self.scale == "square-root":
            return square_ticks(self.high, n_wanted)
        return nice_ticks(self.low, self.high, n_wanted, whole=self.is_whole)

    def tick_texts(self, ticks: Sequence[float]) -> list[str]:
        """Return the labels of ticks."""
        if self.is_percent:
            return [f"{tick * 100:.3g} %" for tick in ticks]
        if self.is_whole or self.scale != "linear":
            return [f"{tick:,.0f}" for tick in ticks]
        step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else max(abs(tick) for tick in (*ticks, 0.0)) or 1.0
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        # Values that round to zero are written without a sign.
        shown = [0.0 if abs(tick) < step / 1e6 else abs(tick) if self.is_mirrored else tick for tick in ticks]
        return [f"{tick:,.{decimals}f}" if abs(tick) < _LONGEST_NUMBER else f"{tick:.6g}" for tick in shown]

    def fitting_title(self, width: Callable[[str], float], length: float) -> str:
        """Return the longest title that fits a length, otherwise the shortest."""
        titles = (self.title, *self.short_titles)
        return next((title for title in titles if width(title) <= length), titles[-1])


def text_width(text: str, font_size: float) -> float:
    """Return the approximate width of a text, in the unit of the font size."""
    return len(text) * _CHARACTER * font_size


def shortened(text: str, width: float, font_size: float) -> str:
    """Return a text shortened to an approximate width, with an ellipsis if necessary."""
    most = max(1, int(width / (font_size * _CHARACTER)))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def in_lines(text: str, width: float, font_size: float) -> list[str]:
    """Return the lines of a text wrapped to an approximate width; a word that is too long has a line of its own."""
    return textwrap.wrap(text, max(1, int(width / (font_size * _CHARACTER))), break_long_words=False, break_on_hyphens=False)


def draw_axes(area: tuple[float, float, float, float], x: Axis, y: Axis, font_size: float, *, has_x_numbers: bool = True) -> list[Shape]:
    """Draw the axes of an area (left, top, right, bottom) with ticks, numbers, and titles that are shortened to fit."""
    left, top, right, bottom = area
    shapes = [*draw_x_axis((left, right), bottom, x, font_size, has_numbers=has_x_numbers), Stroke(left, top, left, bottom)]
    ticks = y.ticks(max(3, int((bottom - top) / (font_size * 3))))
    texts = y.tick_texts(ticks)
    for at, text in zip((bottom - y.shares(np.array(ticks)) * (bottom - top)).tolist(), texts, strict=True):
        shapes += [Stroke(left - 4, at, left, at), Label(left - 6, at + font_size * 0.35, text, "end")]
    widest = max((text_width(text, font_size) for text in texts), default=0.0)
    if y.title:
        y_title = shortened(y.title, bottom - top, font_size)
        shapes.append(Label(left - 12 - widest, (top + bottom) / 2, y_title, "middle", is_upright=True))
    return shapes


def draw_x_axis(
    ends: tuple[float, float],
    bottom: float,
    x: Axis,
    font_size: float,
    *,
    has_numbers: bool = True,
    number: Callable[[float], str] | None = None,
) -> list[Shape]:
    """Draw a horizontal axis with ticks, numbers and title; the function `number` formats numbers."""
    left, right = ends
    shapes: list[Shape] = [Stroke(left, bottom, right, bottom)]
    ticks = x.ticks(max(2, int((right - left) / (font_size * 6))))
    texts = x.tick_texts(ticks) if number is None else [number(tick) for tick in ticks]
    for at, text in zip((left + x.shares(np.array(ticks)) * (right - left)).tolist(), texts, strict=True):
        shapes.append(Stroke(at, bottom, at, bottom + 4))
        if has_numbers:
            shapes.append(Label(at, bottom + 5 + font_size, text, "middle"))
    if x.title:
        x_title = shortened(x.fitting_title(lambda text: text_width(text, font_size), right - left), right - left, font_size)
        shapes.append(Label((left + right) / 2, bottom + 8 + 2.2 * font_size, x_title, "middle"))
    return shapes


def svg(drawing: Drawing) -> bytes:
    """Return a drawing as SVG in which texts are text elements."""
    width, height = (f"{length * _MM_PER_POINT:.6g}mm" for length in (drawing.width, drawing.height))
    size = f'width="{width}" height="{height}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    font = f'font-family="Arial, Helvetica, sans-serif" font-size="{drawing.font_size:g}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>', f"<title>{_written(drawing.title)}</title>"]
    lines.append(f'<rect width="100%" height="100%" fill="{format_colour("background")}"/>')
    lines += [_render_shape(shape, drawing.font_size, f"c{number}") for number, shape in enumerate(drawing.shapes)]
    return "\n".join([*lines, "</svg>", ""]).encode()


def _render_shape(shape: Shape, font_size: float, name: str) -> str:
    """Return a shape as an SVG element; `name` is unique in the drawing and becomes the identifier of a clip path."""
    match shape:
        case Stroke(x1, y1, x2, y2, ink, width, is_dashed):
            line = f'x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}"'
            return f'<line {line} stroke="{format_colour(ink)}" stroke-width="{width:g}"{_dashes(is_dashed)}/>'
        case Bar(x, y, width, height, ink):
            tip = f"<title>{_written(shape.tip)}</title>" if shape.tip else ""
            form = f' rx="{width / 2:.2f}"' if shape.is_round else ""
            form += "" if shape.outline is None else f' stroke="{format_colour(shape.outline)}"'
            box = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"'
            return f'<rect {box}{form} fill="{format_colour(ink)}"{_opacity(shape.opacity)}>{tip}</rect>'
        case Curve(x, y, ink, width, is_dashed):
            stroke = f'stroke="{format_colour(ink)}" stroke-width="{width:g}" stroke-linejoin="round"{_dashes(is_dashed)}'
            return f'<polyline points="{_corners(x, y)}" fill="none" {stroke}/>'
        case Area(x, y, ink, opacity):
            return f'<polygon points="{_corners(x, y)}" fill="{format_colour(ink)}"{_opacity(opacity)}/>'
        case Sticks(x, y1, y2, ink, width):
            ends = zip(x.tolist(), y1.tolist(), y2.tolist(), strict=True)
            path = "".join(f"M{at:.2f} {low:.2f}V{high:.2f}" for at, low, high in ends)
            return f'<path d="{path}" fill="none" stroke="{format_colour(ink)}" stroke-width="{width:g}"/>'
        case Spans(x1, x2, y, height, ink, opacity):
            ends = zip(x1.tolist(), y.tolist(), (x2 - x1).tolist(), strict=True)
            path = "".join(f"M{at:.2f} {down:.2f}h{width:.2f}v{height:.2f}h{-width:.2f}z" for at, down, width in ends)
            return f'<path d="{path}" fill="{format_colour(ink)}"{_opacity(opacity)}/>'
        case Points(ink=ink):
            path = "".join(f"M{x:g} {y:g}h.01" for x, y in shape.centres.tolist())
            return f'<path d="{path}" fill="none" stroke="{format_colour(ink)}" stroke-width="{shape.size:g}" stroke-linecap="round"/>'
        case Label(x, y, text, anchor, ink):
            style = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if shape.is_upright else ""
            style += ' font-weight="bold"' if shape.is_bold else ""
            style += f' font-size="{shape.size * font_size:g}"' if shape.size != 1 else ""
            style += _fixed(len(text) * FIXED_CHARACTER * shape.size * font_size) if shape.is_fixed else ""
            return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" fill="{format_colour(ink)}"{style}>{_written(text)}</text>'
        case Symbol(x, y, width, height, text, ink):
            place = f'transform="translate({x:.2f} {y + height:.2f}) scale(1 {height / width:.4f})" fill="{format_colour(ink)}"'
            length = f'font-size="{width / _CAPITAL:.3f}" textLength="{width:.2f}" lengthAdjust="spacingAndGlyphs"'
            return f'<text {place} font-weight="bold" {length}>{_written(text)}</text>'
        case Image(x, y, width, height, pixels):
            box = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" preserveAspectRatio="none"'
            return f'<image {box} image-rendering="pixelated" href="data:image/png;base64,{b64encode(_png(pixels)).decode()}"/>'
        case Cells():
            return _render_shape(shape.image(), font_size, name)
        case Clip(x, y, width, height, shapes):
            box = f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"/>'
            inner = "".join(_render_shape(shape, font_size, f"{name}-{number}") for number, shape in enumerate(shapes))
            return f'<defs><clipPath id="{name}">{box}</clipPath></defs><g clip-path="url(#{name})">{inner}</g>'


def _corners(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    return " ".join(f"{across:.2f},{down:.2f}" for across, down in zip(x.tolist(), y.tolist(), strict=True))


def _dashes(is_dashed: bool) -> str:
    return ' stroke-dasharray="4 3"' if is_dashed else ""


def _fixed(length: float) -> str:
    """Return the SVG attributes of a text in a font of fixed width.

    Spaces are preserved, and the text is `length` points long, whatever fonts the viewer has.
    """
    return f' font-family="Courier New, Courier, monospace" xml:space="preserve" style="white-space:pre" textLength="{length:.2f}"'


def _opacity(opacity: float) -> str:
    return "" if opacity == 1 else f' fill-opacity="{opacity:g}"'


def _png(pixels: NDArray[np.uint8]) -> bytes:
    from PIL import Image as Picture  # imported here, since it takes 50 ms, and few drawings contain pictures

    file = BytesIO()
    Picture.fromarray(pixels, "RGBA").save(file, "PNG")
    return file.getvalue()


def format_colour(ink: Ink) -> str:
    """Return the colour of an ink on a white page as ``#rrggbb``."""
    red, green, blue = rgb_of(ink)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _written(text: str) -> str:
    """Return a text escaped for XML and without control characters."""
    return escape("".join(character if character.isprintable() else " " for character in text))
