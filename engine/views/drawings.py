"""A figure as plain shapes, which the window paints and `svg` writes.

Lengths are points (1/72 inch), from the upper left corner. Colours are names, ``text``, ``faint``, ``grid`` and
``background``, the place of a series in `SERIES_COLOURS`, from 0, or a `Shade`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.ticks import nice_ticks

__all__ = [
    "SERIES_COLOURS",
    "Anchor",
    "Axis",
    "Bar",
    "Curve",
    "Drawing",
    "Ink",
    "Label",
    "Points",
    "Shade",
    "Stroke",
    "colour_of",
    "draw_axes",
    "in_lines",
    "shortened",
    "svg",
    "text_width",
]


class Shade(NamedTuple):
    """A colour between that of the first series (-1), the background (0) and that of the second series (1)."""

    part: float


Ink = Literal["text", "faint", "grid", "background"] | int | Shade
Anchor = Literal["start", "middle", "end"]

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
"""For up to twelve series on a white page; the first are those of Okabe & Ito (2008), told apart by readers with any colour vision."""
_INKS = {"text": "#000000", "faint": "#4a4a4a", "grid": "#d5d5d5", "background": "#ffffff"}
_LETTER = 0.56
"""Mean width of a letter as part of the height, for room alone: what writes the text knows its font, this module does not."""


@dataclass(frozen=True)
class Stroke:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    ink: Ink = "text"
    width: float = 0.8


@dataclass(frozen=True)
class Bar:
    """A rectangle, or with `is_round` a circle in it. `target`: what a click on it chooses."""

    x: float
    y: float
    width: float
    height: float
    ink: Ink = "text"
    is_round: bool = False
    target: Any = None
    tip: str = ""


@dataclass(frozen=True)
class Curve:
    """A line through (n,) points."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ink: Ink = "text"
    width: float = 1.5
    is_dashed: bool = False


@dataclass(frozen=True)
class Points:
    """(n,) dots of one colour. `targets`: what a click on each chooses."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    ink: Ink = "text"
    size: float = 3.0
    targets: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def places(self) -> NDArray[np.float64]:
        """(k, 2) places where there are dots, to half a point, which is finer than they are: those at one place are drawn once."""
        return np.unique(np.rint(np.column_stack((self.x, self.y)) * 2), axis=0) / 2


@dataclass(frozen=True)
class Label:
    """A text whose baseline begins, has its middle or ends at a point; `is_upright`: read from below."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    ink: Ink = "text"
    is_bold: bool = False
    is_upright: bool = False


Shape = Stroke | Bar | Curve | Points | Label


@dataclass(frozen=True)
class Drawing:
    """Shapes, those in front last. `title`: what is drawn, for people who do not see it. `font_size`: of all texts."""

    width: float
    height: float
    title: str
    shapes: tuple[Shape, ...]
    font_size: float = 8.0


@dataclass(frozen=True)
class Axis:
    """The range of an axis and its title; whether its values are whole, shares, or grow from nought both ways."""

    low: float
    high: float
    title: str = ""
    is_whole: bool = False
    is_percent: bool = False
    is_mirrored: bool = False


def text_width(text: str, font_size: float) -> float:
    """About as wide a text is."""
    return len(text) * _LETTER * font_size


def shortened(text: str, width: float, font_size: float) -> str:
    """As much of a text as about fits into a width, with an ellipsis where some is left out."""
    most = max(1, int(width / (font_size * _LETTER)))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def in_lines(text: str, width: float, font_size: float) -> list[str]:
    """A text in lines of which each about fits into a width; a word that is longer stands alone."""
    return textwrap.wrap(text, max(1, int(width / (font_size * _LETTER))), break_long_words=False, break_on_hyphens=False)


def draw_axes(area: tuple[float, float, float, float], x: Axis, y: Axis, font_size: float) -> list[Shape]:
    """Two axes with ticks, numbers and titles, as long as the axes at most, around an area (left, top, right, bottom)."""
    left, top, right, bottom = area
    shapes: list[Shape] = [Stroke(left, bottom, right, bottom), Stroke(left, top, left, bottom)]
    x_ticks = nice_ticks(x.low, x.high, max(2, int((right - left) / (font_size * 6))), whole=x.is_whole)
    for tick, text in zip(x_ticks, _tick_texts(x_ticks, x), strict=True):
        at = left + (tick - x.low) / (x.high - x.low) * (right - left)
        shapes += [Stroke(at, bottom, at, bottom + 4), Label(at, bottom + 5 + font_size, text, "middle")]
    y_ticks = nice_ticks(y.low, y.high, max(2, int((bottom - top) / (font_size * 3))), whole=y.is_whole)
    texts = _tick_texts(y_ticks, y)
    for tick, text in zip(y_ticks, texts, strict=True):
        at = bottom - (tick - y.low) / (y.high - y.low) * (bottom - top)
        shapes += [Stroke(left - 4, at, left, at), Label(left - 6, at + font_size * 0.35, text, "end")]
    widest = max((text_width(text, font_size) for text in texts), default=0.0)
    shapes.append(Label((left + right) / 2, bottom + 8 + 2.2 * font_size, shortened(x.title, right - left, font_size), "middle"))
    y_title = shortened(y.title, bottom - top, font_size)
    shapes.append(Label(left - 12 - widest, (top + bottom) / 2, y_title, "middle", is_upright=True))
    return shapes


def _tick_texts(ticks: Sequence[float], axis: Axis) -> list[str]:
    if axis.is_percent:
        return [f"{tick * 100:.3g} %" for tick in ticks]
    if axis.is_mirrored:
        return [f"{abs(tick):.6g}" for tick in ticks]
    return [f"{tick:,.0f}" if axis.is_whole else f"{tick:.6g}" for tick in ticks]


def svg(drawing: Drawing) -> bytes:
    """A drawing as Scalable Vector Graphics, its texts as text."""
    size = f'width="{drawing.width:g}pt" height="{drawing.height:g}pt" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    font = f'font-family="Arial, Helvetica, sans-serif" font-size="{drawing.font_size:g}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>', f"<title>{_written(drawing.title)}</title>"]
    lines.append(f'<rect width="100%" height="100%" fill="{_INKS["background"]}"/>')
    lines += [_svg_of(shape) for shape in drawing.shapes]
    return "\n".join([*lines, "</svg>", ""]).encode()


def _svg_of(shape: Shape) -> str:
    ink = f"{colour_of(shape.ink)}"
    match shape:
        case Stroke(x1, y1, x2, y2, _, width):
            return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{ink}" stroke-width="{width:g}"/>'
        case Bar(x, y, width, height):
            told = f"<title>{_written(shape.tip)}</title>" if shape.tip else ""
            form = f' rx="{width / 2:.2f}"' if shape.is_round else ""
            return f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"{form} fill="{ink}">{told}</rect>'
        case Curve(x, y, _, width, is_dashed):
            points = " ".join(f"{one:.2f},{other:.2f}" for one, other in zip(x.tolist(), y.tolist(), strict=True))
            dashes = ' stroke-dasharray="4 3"' if is_dashed else ""
            return f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="{width:g}" stroke-linejoin="round"{dashes}/>'
        case Points():
            path = "".join(f"M{x:g} {y:g}h.01" for x, y in shape.places.tolist())
            return f'<path d="{path}" fill="none" stroke="{ink}" stroke-width="{shape.size:g}" stroke-linecap="round"/>'
        case Label(x, y, text, anchor):
            turned = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if shape.is_upright else ""
            weight = ' font-weight="bold"' if shape.is_bold else ""
            return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}" fill="{ink}"{weight}{turned}>{_written(text)}</text>'


def colour_of(ink: Ink) -> str:
    """A colour on a white page, as ``#rrggbb``."""
    if isinstance(ink, Shade):
        part, full = min(abs(ink.part), 1.0), SERIES_COLOURS[0 if ink.part < 0 else 1]
        mixed = [255 + (int(full[at : at + 2], 16) - 255) * part for at in (1, 3, 5)]
        return "#" + "".join(f"{round(one):02x}" for one in mixed)
    return SERIES_COLOURS[ink % len(SERIES_COLOURS)] if isinstance(ink, int) else _INKS[ink]


def _written(text: str) -> str:
    """A text for XML, which holds no control characters."""
    return escape("".join(letter if letter.isprintable() else " " for letter in text))
