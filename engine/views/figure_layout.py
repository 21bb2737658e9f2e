"""A figure laid out on a page: its marks as shapes, with axes, legend and names that cover nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import (
    Area,
    Bar,
    Basic,
    Clip,
    Curve,
    Drawing,
    Image,
    Label,
    Points,
    Shape,
    Sticks,
    Stroke,
    draw_axes,
    shortened,
    text_width,
)
from proteoscope.engine.views.figures import (
    Band,
    Bars,
    Figure,
    LegendEntry,
    Line,
    Mark,
    Names,
    Panel,
    Pixels,
    Rule,
    Scatter,
    Spikes,
    Surface,
)
from proteoscope.engine.views.label_layout import place_labels
from proteoscope.engine.views.palette import PAPER, Ink

__all__ = ["lay_out"]

_FONT_SIZE = 8.0
_GAP = 12.0
"""Points between panels."""
_PIXELS_PER_POINT = 4.0
"""Of pictures within a figure: 288 dpi."""

Range = tuple[float, float]
Values = NDArray[np.float64]


def lay_out(
    figure: Figure,
    size: tuple[float, float] | None = None,
    *,
    x_range: Range | None = None,
    y_ranges: Sequence[Range | None] = (),
    font_size: float = _FONT_SIZE,
) -> Drawing:
    """Draw a figure on a page.

    Parameters
    ----------
    size : width and height, points; None for the figure's own.
    x_range, y_ranges : what part is drawn, of all panels and of each; None for the axes' own ranges.
    """
    width, height = figure.size if size is None else size
    panels = [_shown(panel, x_range, y_ranges[i] if i < len(y_ranges) else None) for i, panel in enumerate(figure.panels)]
    numbers = [panel.y.tick_texts(panel.y.ticks(max(2, int(height / (font_size * 3))))) for panel in panels]
    left = 24 + font_size + max((text_width(text, font_size) for texts in numbers for text in texts), default=0.0)
    right, top = width - 1.5 * font_size, 0.75 * font_size
    shapes: list[Shape] = []
    for at, text in enumerate(figure.heading):
        top += 1.25 * font_size
        end = left - 6 if not figure.legend or at else left + _legend_width(figure.legend, font_size)
        shapes.append(Label(left, top, shortened(text, max(40.0, right - end), font_size), ink="faint" if at else "text", is_bold=not at))
    if figure.legend:
        top = max(top, 2 * font_size)
        shapes += _legend(figure.legend, right, 2 * font_size, font_size)
    top += 0.75 * font_size
    bottom = height - (3.2 * font_size + 8)
    free, shares = bottom - top - _GAP * (len(panels) - 1), sum(panel.share for panel in panels)
    for i, panel in enumerate(panels):
        end, is_last = top + free * panel.share / shares, i == len(panels) - 1
        place = _Place(panel, left, top, right, end, font_size)
        shapes.append(
            Clip(left, top - 1, right - left, end - top + 2, tuple(shape for mark in panel.marks for shape in place.shapes(mark)))
        )
        x = panel.x if is_last else replace(panel.x, title="")
        shapes += draw_axes((left, top, right, end), x, panel.y, font_size, has_x_numbers=is_last)
        top = end + _GAP
    return Drawing(width, height, figure.title, tuple(shapes), font_size)


def _shown(panel: Panel, x_range: Range | None, y_range: Range | None) -> Panel:
    x = panel.x if x_range is None else replace(panel.x, low=x_range[0], high=x_range[1])
    y = panel.y if y_range is None else replace(panel.y, low=y_range[0], high=y_range[1])
    return replace(panel, x=x, y=y)


def _legend_width(legend: Sequence[LegendEntry], font_size: float) -> float:
    return sum(text_width(entry.name, font_size) + 2.5 * font_size for entry in legend)


def _legend(legend: Sequence[LegendEntry], right: float, baseline: float, font_size: float) -> list[Shape]:
    """Names with a box or a line of their colour, up to the right end."""
    shapes: list[Shape] = []
    at = right - _legend_width(legend, font_size)
    for entry in legend:
        if entry.is_line:
            shapes.append(Stroke(at, baseline - 0.35 * font_size, at + font_size, baseline - 0.35 * font_size, entry.ink, 1.8))
        else:
            shapes.append(Bar(at, baseline - 0.8 * font_size, 0.9 * font_size, 0.9 * font_size, entry.ink))
        shapes.append(Label(at + 1.3 * font_size, baseline, entry.name))
        at += text_width(entry.name, font_size) + 2.5 * font_size
    return shapes


@dataclass(frozen=True)
class _Place:
    """A panel in a rectangle of the page."""

    panel: Panel
    left: float
    top: float
    right: float
    bottom: float
    font_size: float

    def x(self, values: Values) -> Values:
        """Places of values of the lower axis."""
        return self.left + self.panel.x.shares(values) * (self.right - self.left)

    def y(self, values: Values) -> Values:
        """Places of values of the left axis, downwards."""
        return self.bottom - self.panel.y.shares(values) * (self.bottom - self.top)

    def shapes(self, mark: Mark) -> list[Basic]:
        """A mark as shapes."""
        match mark:
            case Spikes(x, y, ink, width, foot):
                seen = self._seen(x, x)
                return [Sticks(self.x(x[seen]), self.y(np.full(int(seen.sum()), foot)), self.y(y[seen]), ink, width)]
            case Line(x, y, ink, width, is_dashed):
                return [Curve(self.x(x), self.y(y), ink, width, is_dashed)] if len(x) > 1 else []
            case Surface(x, low, high, ink, opacity):
                corners = np.concatenate((x, x[::-1])), np.concatenate((high, low[::-1]))
                return [Area(self.x(corners[0]), self.y(corners[1]), ink, opacity)] if len(x) > 1 else []
            case Bars():
                return self._bars(mark)
            case Scatter(x, y, ink, size, targets):
                seen = self._seen(x, x)
                return [Points(self.x(x[seen]), self.y(y[seen]), ink, size, targets[seen] if len(targets) else targets)]
            case Rule():
                return self._rule(mark)
            case Band(low, high, ink, opacity):
                ends = self.x(np.array([low, high])).tolist()
                return [Bar(ends[0], self.top, ends[1] - ends[0], self.bottom - self.top, ink, opacity=opacity)]
            case Names():
                return self._names(mark)
            case Pixels(render):
                width, height = self.right - self.left, self.bottom - self.top
                ranges = (self.panel.x.low, self.panel.x.high), (self.panel.y.low, self.panel.y.high)
                n_across, n_down = round(width * _PIXELS_PER_POINT), round(height * _PIXELS_PER_POINT)
                return [Image(self.left, self.top, width, height, render(*ranges, n_across, n_down, _PIXELS_PER_POINT, PAPER))]
            case _:
                across, down = float(self.x(np.array([mark.x]))[0]), float(self.y(np.array([mark.y]))[0])
                return [Label(across, down, mark.text, mark.anchor, mark.ink)]

    def _seen(self, low: Values, high: Values) -> NDArray[np.bool_]:
        """Which of the marks between two values of the lower axis are in the panel."""
        return (high >= self.panel.x.low) & (low <= self.panel.x.high)

    def _bars(self, bars: Bars) -> list[Basic]:
        seen = np.flatnonzero(self._seen(bars.left, bars.right) & (bars.height != bars.foot))
        left, right = self.x(bars.left[seen]), self.x(bars.right[seen])
        ends = self.y(bars.height[seen]), self.y(np.full(len(seen), bars.foot))
        top, bottom = np.minimum(*ends), np.maximum(*ends)
        outline: Ink | None = bars.ink if bars.has_outline else None
        rows = zip(left.tolist(), top.tolist(), np.maximum(0.3, right - left).tolist(), (bottom - top).tolist(), strict=True)
        return [Bar(*row, bars.ink, opacity=bars.opacity, outline=outline) for row in rows]

    def _rule(self, rule: Rule) -> list[Basic]:
        if rule.is_upright:
            at = float(self.x(np.array([rule.at]))[0])
            shapes: list[Basic] = [Stroke(at, self.top, at, self.bottom, rule.ink, rule.width, rule.is_dashed)]
            fits = at + 4 + text_width(rule.text, self.font_size) <= self.right
            label = Label(at + (4 if fits else -4), self.top + self.font_size, rule.text, "start" if fits else "end", rule.ink)
        else:
            at = float(self.y(np.array([rule.at]))[0])
            shapes = [Stroke(self.left, at, self.right, at, rule.ink, rule.width, rule.is_dashed)]
            label = Label(self.right - 2, at - 2, rule.text, "end", rule.ink)
        return [*shapes, label] if rule.text else shapes

    def _names(self, names: Names) -> list[Basic]:
        """Names that found a place, each with a line to its own where it is not directly at it."""
        side = -1 if names.is_below else 1
        seen = np.flatnonzero(self._seen(names.x, names.x))
        tips = [
            (self.x(x[some]), side * np.clip(self.y(y[some]), self.top, self.bottom))
            for x, y, some in (
                (names.x, names.y, seen),
                (names.obstacle_x, names.obstacle_y, self._seen(names.obstacle_x, names.obstacle_x)),
            )
        ]
        (x, y), (obstacle_x, obstacle_y) = tips
        if not len(seen):
            return []
        widths = np.array([text_width(names.texts[i], self.font_size) for i in seen.tolist()])
        edges = sorted((side * self.top, side * self.bottom))
        height = 1.1 * self.font_size
        placed = place_labels(
            x, y, widths, height, names.importance[seen], obstacle_x, obstacle_y, (self.left + 1, edges[0], self.right, edges[1])
        )
        shapes: list[Basic] = []
        for one in placed:
            name = int(seen[one.label])
            ink = names.inks[name] if isinstance(names.inks, list) else names.inks
            if one.foot is not None:
                ends = side * (one.top + height), side * float(y[one.label])
                shapes.append(Stroke(one.foot, ends[0], float(x[one.label]), ends[1], ink, 0.4, is_dashed=True))
            baseline = one.top + self.font_size if side == 1 else -one.top - 0.2 * self.font_size
            shapes.append(Label(one.left, baseline, names.texts[name], ink=ink))
        return shapes
