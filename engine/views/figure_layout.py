"""Layout of figures on a page: conversion of marks to shapes, with axes, legend and labels that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.page_sizes import DPI, laid_out_size
from proteoscope.engine.views.drawings import (
    Anchor,
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
    Corner,
    Figure,
    LegendEntry,
    Line,
    Mark,
    Names,
    Panel,
    Pickable,
    Picked,
    Pixels,
    Rule,
    Scatter,
    Spikes,
    Surface,
)
from proteoscope.engine.views.label_layout import place_labels
from proteoscope.engine.views.palette import PAPER, Ink

__all__ = ["PanelArea", "figure_at_width", "lay_out", "restrict_panel"]

_FONT_SIZE = 8.0
_GAP = 12.0
"""Distance between panels, points."""
_NAME_WIDTH = 1.25
"""Assumed width of names relative to other text, since names consist mostly of wide characters and must not overlap."""
_NEAR = 7.0
"""Maximum distance between a click and the mark that it selects, points."""
_COLUMNS_PER_POINT = 2.0
"""Number of columns of data per point of page width, for panels that depend on the visible range."""
_PIXELS_PER_POINT = DPI / 72
"""Resolution of images within a figure, pixels per point."""

Range = tuple[float, float]
Rectangle = tuple[float, float, float, float]
"""Left, top, right and bottom edges, points."""
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
    size
        Width and height, points; None for the default size of the figure.
    x_range, y_ranges
        Drawn x range (common to all panels), and drawn y range of each panel; None for the initial range.
    """
    x_range = figure.x_range if x_range is None else x_range
    width, height = figure.size if size is None else size
    panels = [
        restrict_panel(panel, x_range, y_ranges[i] if i < len(y_ranges) else None, round(_COLUMNS_PER_POINT * width / figure.n_columns))
        for i, panel in enumerate(figure.panels)
    ]
    numbers = [panel.y.tick_texts(panel.y.ticks(max(3, int(height / (font_size * 3))))) for panel in panels]
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
    if figure.strip is not None:
        shapes += figure.strip.draw(left, top + 0.25 * font_size, right - left, font_size)
        top += figure.strip.lines * font_size
    top += 0.75 * font_size
    below = 3.2 * font_size + 8
    for i, area in enumerate(_areas(figure, (left, top, right, height - below), below, font_size)):
        has_numbers = figure.n_columns > 1 or i == len(panels) - 1
        shapes += _panel_shapes(PanelArea(panels[i], *area, font_size), has_numbers)
    return Drawing(width, height, figure.title, tuple(shapes), font_size)


def figure_at_width(figure: Figure, width: float | None, x_range: Range | None = None, y_ranges: Sequence[Range | None] = ()) -> Drawing:
    """Draw a figure at a width in points (None for its default width); see `lay_out`."""
    return lay_out(figure, laid_out_size(figure.size, width), x_range=x_range, y_ranges=y_ranges)


def restrict_panel(panel: Panel, x_range: Range | None, y_range: Range | None, n_columns: int) -> Panel:
    """Return a panel that shows only the given ranges (None: whole x axis, or initial y range); `n_columns` is its width in pixels."""
    low, high = (panel.x.low, panel.x.high) if x_range is None else x_range
    if panel.of_view is not None:
        made = panel.of_view(low, high, max(2, n_columns))
        panel = replace(panel, marks=made.marks, y=made.y, pick=made.pick or panel.pick)
    y = panel.y if y_range is None else replace(panel.y, low=y_range[0], high=y_range[1])
    return replace(panel, x=replace(panel.x, low=low, high=high), y=y)


def _areas(figure: Figure, whole: Rectangle, below: float, font_size: float) -> list[Rectangle]:
    """Return the rectangle of each panel within the rectangle `whole`; `below` is the height of the numbers and title of the x axis."""
    left, top, right, bottom = whole
    n_columns = figure.n_columns
    rows = [figure.panels[at : at + n_columns] for at in range(0, len(figure.panels), n_columns)]
    gap, title = _GAP if n_columns == 1 else below, 1.5 * font_size
    shares = [max(panel.relative_height for panel in row) for row in rows]
    titles = [title if any(panel.title for panel in row) else 0.0 for row in rows]
    free = bottom - top - gap * (len(rows) - 1) - sum(titles)
    width = (right - left - (n_columns - 1) * left) / n_columns
    areas = []
    for row, fraction, above in zip(rows, shares, titles, strict=True):
        top += above
        end = top + free * fraction / sum(shares)
        areas += [(left + at * (width + left), top, left + at * (width + left) + width, end) for at in range(len(row))]
        top = end + gap
    return areas


def _panel_shapes(position: PanelArea, has_x_numbers: bool) -> list[Shape]:
    panel, left, top, right, bottom, font_size = (
        position.panel,
        position.left,
        position.top,
        position.right,
        position.bottom,
        position.font_size,
    )
    marks = tuple(shape for mark in panel.marks for shape in position.shapes(mark))
    shapes: list[Shape] = [Clip(left, top - 1, right - left, bottom - top + 2, marks)]
    if panel.title:
        shapes.append(Label(left, top - 0.4 * font_size, shortened(panel.title, right - left, font_size)))
    x = panel.x if has_x_numbers else replace(panel.x, title="", short_titles=())
    return shapes + draw_axes((left, top, right, bottom), x, panel.y, font_size, has_x_numbers=has_x_numbers)


def _legend_width(legend: Sequence[LegendEntry], font_size: float) -> float:
    return sum(text_width(entry.name, font_size) + 2.5 * font_size for entry in legend)


def _legend(legend: Sequence[LegendEntry], right: float, baseline: float, font_size: float) -> list[Shape]:
    """Draw the legend entries (a box or a line, and a name), aligned to the right edge."""
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
class PanelArea:
    """Panel in a rectangle of a page or a window, which converts between axis values and points."""

    panel: Panel
    left: float
    top: float
    right: float
    bottom: float
    font_size: float

    def x(self, values: Values) -> Values:
        """Return the horizontal coordinates (points) of x axis values, in the same shape."""
        return self.left + self.panel.x.shares(values) * (self.right - self.left)

    def y(self, values: Values) -> Values:
        """Return the vertical coordinates (points, downwards) of y axis values, in the same shape."""
        return self.bottom - self.panel.y.shares(values) * (self.bottom - self.top)

    def values(self, across: float, down: float) -> tuple[float, float]:
        """Return the x and y axis values at a point of the page."""
        x, y = self.panel.x, self.panel.y
        (x_low, x_high), (low, high) = x.scaled([x.low, x.high]).tolist(), y.scaled([y.low, y.high]).tolist()
        fraction = (self.bottom - down) / (self.bottom - self.top)
        at = x_low + (across - self.left) / (self.right - self.left) * (x_high - x_low)
        return float(x.unscaled(at)), float(y.unscaled(low + fraction * (high - low)))

    def picked(self, across: float, down: float) -> Picked | None:
        """Return the target and tooltip of the mark at a point of the page, or of the nearest mark if near enough; otherwise None."""
        if self.panel.pick is not None:
            (x, y), (right, above) = self.values(across, down), self.values(across + 1, down - 1)
            return self.panel.pick(x, y, right - x, above - y)
        for mark in reversed(self.panel.marks):
            if isinstance(mark, Pickable) and (len(mark.targets) or mark.tips is not None):
                distances = self._distances(mark, across, down)
                if len(distances) and distances.min() <= _NEAR:
                    nearest = int(distances.argmin())
                    tip = "" if mark.tips is None else mark.tips(nearest)
                    return Picked(int(mark.targets[nearest]) if len(mark.targets) else None, tip)
        return None

    def target_place(self, target: object) -> tuple[float, float] | None:
        """Return the x and y axis values of the mark with a target, or None."""
        for mark in reversed(self.panel.marks):
            if isinstance(mark, Pickable) and isinstance(target, int):
                for at in np.flatnonzero(mark.targets == target)[:1].tolist():
                    if isinstance(mark, Bars):
                        return float(mark.left[at] + mark.right[at]) / 2, float(mark.height[at])
                    return float(mark.x[at]), float(mark.y[at])
        return None

    def _distances(self, mark: Spikes | Bars | Scatter, across: float, down: float) -> Values:
        """Return the distance in points, (n,), of each element of a mark from the position (`across`, `down`) on the page."""
        if isinstance(mark, Bars):
            left, right, ends = self.x(mark.left), self.x(mark.right), (self.y(mark.height), self.y(np.full(len(mark.left), mark.foot)))
        else:
            left = right = self.x(mark.x)
            ends = self.y(mark.y), self.y(mark.y if isinstance(mark, Scatter) else np.full(len(mark.x), mark.foot))
        apart = np.maximum(left - across, across - right), np.maximum(np.minimum(*ends) - down, down - np.maximum(*ends))
        return np.hypot(*(np.maximum(0.0, distance) for distance in apart))

    def shapes(self, mark: Mark) -> list[Basic]:
        """Convert a mark to shapes."""
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
            case Scatter(x, y, ink, size, targets=targets):
                seen = self._seen(x, x)
                if mark.is_hollow:
                    middles = zip(self.x(x[seen]).tolist(), self.y(y[seen]).tolist(), strict=True)
                    half = size / 2
                    return [Bar(at - half, down - half, size, size, is_round=True, opacity=0.0, outline=ink) for at, down in middles]
                return [Points(self.x(x[seen]), self.y(y[seen]), ink, size, targets[seen] if len(targets) else targets)]
            case Rule():
                return self._rule(mark)
            case Band(low, high, ink, opacity):
                ends = self.x(np.array([low, high])).tolist()
                return [Bar(ends[0], self.top, ends[1] - ends[0], self.bottom - self.top, ink, opacity=opacity)]
            case Names():
                return self._names(mark)
            case Corner():
                return [self._corner(mark)]
            case Pixels(render):
                width, height = self.right - self.left, self.bottom - self.top
                ranges = (self.panel.x.low, self.panel.x.high), (self.panel.y.low, self.panel.y.high)
                n_across, n_down = round(width * _PIXELS_PER_POINT), round(height * _PIXELS_PER_POINT)
                return [Image(self.left, self.top, width, height, render(*ranges, n_across, n_down, _PIXELS_PER_POINT, PAPER))]
            case _:
                across, down = float(self.x(np.array([mark.x]))[0]), float(self.y(np.array([mark.y]))[0])
                return [Label(across, down, mark.text, mark.anchor, mark.ink)]

    def _seen(self, low: Values, high: Values) -> NDArray[np.bool_]:
        """Return True for each mark that is at least partly in the visible x range; marks extend from `low` to `high` on the x axis."""
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

    def _corner(self, corner: Corner) -> Label:
        opposite = [other for other in self._corners(is_low=corner.is_low) if other.is_right and not corner.is_right]
        width = self.right - self.left - 12 - sum(text_width(other.text, self.font_size) + 16 for other in opposite)
        x, y = self.right - 6 if corner.is_right else self.left + 6, self.bottom - 0.6 * self.font_size
        anchor: Anchor = "end" if corner.is_right else "start"
        return Label(x, y if corner.is_low else self.top + 1.2 * self.font_size, shortened(corner.text, width, self.font_size), anchor)

    def _corners(self, *, is_low: bool) -> list[Corner]:
        return [mark for mark in self.panel.marks if isinstance(mark, Corner) and mark.is_low == is_low]

    def _names(self, names: Names) -> list[Basic]:
        """Draw the names for which there is space, with leader lines to displaced names."""
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
        widths = np.array([_NAME_WIDTH * text_width(names.texts[i], self.font_size) for i in seen.tolist()])
        edges = sorted((side * self.top, side * self.bottom))
        edges[0] += 1.5 * self.font_size if self._corners(is_low=names.is_below) else 0.0
        height = 1.1 * self.font_size
        placed = place_labels(
            x, y, widths, height, names.importance[seen], obstacle_x, obstacle_y, (self.left + 1, edges[0], self.right, edges[1])
        )
        shapes: list[Basic] = []
        for label in placed:
            name = int(seen[label.label])
            ink = names.inks[name] if isinstance(names.inks, list) else names.inks
            if label.foot is not None:
                ends = side * (label.top + height), side * float(y[label.label])
                shapes.append(Stroke(label.foot, ends[0], float(x[label.label]), ends[1], ink, 0.4, is_dashed=True))
            baseline = label.top + self.font_size if side == 1 else -label.top - 0.2 * self.font_size
            shapes.append(Label(label.left + widths[label.label] / 2, baseline, names.texts[name], "middle", ink))
        return shapes
