"""Heat map of proteins and samples, ordered by hierarchical clustering (`proteoscope.engine.views.quantity_clusters`)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.views.drawings import Bar, Cells, Curve, Drawing, Label, Shape, in_lines, shortened, text_width
from proteoscope.engine.views.palette import Ink, Shade
from proteoscope.engine.views.quantities import Samples
from proteoscope.engine.views.quantity_clusters import HeatMap
from proteoscope.engine.views.quantity_drawings import condition_inks, nothing_drawn, sample_foot, sample_names

__all__ = ["draw_heat_map", "tree_shapes"]

_MISSING: Ink = "grid"
_IMAGE_PIXELS = 2000
"""Approximate length of the longer side of the image in files."""


def draw_heat_map(
    heat: HeatMap | None,
    samples: Samples,
    width: float = 420.0,
    height: float = 420.0,
    font_size: float = 8.0,
    columns: Literal["samples", "runs"] = "samples",
) -> Drawing:
    """Draw the heat map with the trees of rows and columns; a click on a cell selects the row of its protein.

    `columns` is the plural noun of the columns. Without a heat map, the drawing contains the reason.
    """
    if heat is None:
        return nothing_drawn(
            "Heat map", "At least two samples, and two proteins with two quantities each, are needed.", width, height, font_size
        )
    n, n_samples = heat.values.shape
    chosen = f"the {n:,} most variable of {heat.n_eligible:,} proteins" if n < heat.n_eligible else f"{n:,} proteins"
    title = f"Heat map: {chosen} in {n_samples:,} {columns}"
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    clustered = "Rows and columns" if len(heat.column_tree) else "Rows"
    order = "design" if columns == "samples" else "experiment"
    note = (
        f"{clustered}: average linkage of root mean square differences between common log2 quantities, relative to the median of the row."
        f"{'' if len(heat.column_tree) else ' Columns are in the order of the ' + order + '.'}"
    )
    lines = in_lines(note, width - 16, font_size)
    shapes += [Label(8, height - font_size * (0.6 + 1.25 * (len(lines) - 1 - at)), line, ink="faint") for at, line in enumerate(lines)]
    shown = samples.ordered(heat.columns)
    inks = condition_inks(samples)
    named = shown.ordered(np.arange(n_samples), has_conditions=False)
    top = font_size * 4.2 + _legend(shapes, heat, inks, width, font_size)
    foot = sample_foot(named, font_size) + font_size * (0.8 + 1.25 * len(lines))
    labels = [shortened(samples.label[row], font_size * 9, font_size) for row in heat.rows.tolist()]
    tree = min(width * 0.14, 60.0)
    column_tree = font_size * 3 if len(heat.column_tree) else 0.0
    strip = font_size * 0.8 if inks else 0.0
    upper, bottom = top + column_tree + strip, max(height - foot, top + column_tree + strip + 20)
    has_names = (bottom - upper) / n >= font_size * 0.95
    names = 1.15 * max((text_width(label, font_size) for label in labels), default=0.0) + 8 if has_names else 0.0
    left, right = 8 + tree, width - 8 - names
    row_step, column_step = (bottom - upper) / n, (right - left) / n_samples
    shapes += tree_shapes(heat.row_tree, n, lambda at, far: (left - 3 - far * (tree - 3), upper + (at + 0.5) * row_step), row_step)
    shapes += tree_shapes(
        heat.column_tree,
        n_samples,
        lambda at, far: (left + (at + 0.5) * column_step, upper - strip - 3 - far * (column_tree - 3)),
        column_step,
    )
    for at, condition in enumerate(shown.conditions if inks else ()):
        if condition:
            box = (left + at * column_step, upper - strip, column_step, strip - 2)
            shapes.append(Bar(*box, inks[condition], tip=f"{shown.samples[at]}: {condition}"))

    def tip(row: int, column: int) -> str:
        value = samples.log2[heat.rows[row], heat.columns[column]]
        reported = f"{value:.2f} log2, {heat.values[row, column]:+.2f} from the median" if np.isfinite(value) else "no quantity"
        return f"{samples.label[heat.rows[row]]} in {shown.samples[column]}: {reported}"

    scale = max(1, min(16, _IMAGE_PIXELS // max(n, n_samples)))
    box = (left, upper, right - left, bottom - upper)
    shapes.append(Cells(*box, heat.values / heat.limit, (_MISSING,), heat.rows, tip, scale))
    if has_names:
        middle = upper + row_step / 2 + font_size * 0.35
        shapes += [Label(right + 5, middle + at * row_step, label) for at, label in enumerate(labels)]
    positions = left + (np.arange(n_samples) + 0.5) * column_step
    shapes += sample_names(named, positions, bottom, 0.0, font_size)
    return Drawing(width, height, title, tuple(shapes), font_size)


def _legend(shapes: list[Shape], heat: HeatMap, inks: dict[str, int], width: float, font_size: float) -> float:
    """Append the legend (values, missing values, conditions) to `shapes`, and return the height of all legend lines but the first."""
    at, line, steps = 8.0, 0, 9
    ends = f"{heat.limit:g}"
    entries: list[tuple[float, list[Shape]]] = []
    bar = 1.1 * text_width(f"-{ends}", font_size) + 4
    scale: list[Shape] = [Label(bar - 4, 0, f"-{ends}", "end")]
    scale += [Bar(bar + 8 * step, -0.8 * font_size, 8.3, 0.9 * font_size, Shade(2 * step / (steps - 1) - 1)) for step in range(steps)]
    scale.append(Label(bar + 8 * steps + 4, 0, f"{ends} log2"))
    entries.append((bar + 8 * steps + 4 + text_width(f"{ends} log2", font_size), scale))
    keys: tuple[tuple[str, Ink], ...] = (("no quantity", _MISSING), *inks.items())
    for name, ink in keys:
        text = shortened(name, font_size * 12, font_size)
        box: list[Shape] = [Bar(0, -0.8 * font_size, 0.9 * font_size, 0.9 * font_size, ink), Label(1.3 * font_size, 0, text)]
        entries.append((1.3 * font_size + text_width(text, font_size), box))
    for length, parts in entries:
        if at > 8.0 and at + length > width - 8:
            at, line = 8.0, line + 1
        y = font_size * (3.5 + 1.4 * line)
        for part in parts:
            assert isinstance(part, Bar | Label)
            shapes.append(replace(part, x=part.x + at, y=part.y + y))
        at += length + 1.6 * font_size
    return 1.4 * font_size * line


def tree_shapes(
    merges: NDArray[np.float64], n_leaves: int, position: Callable[[float, float], tuple[float, float]], step: float
) -> list[Shape]:
    """Return the lines of a tree, from merges as in `scipy.cluster.hierarchy.linkage`.

    `position` is a function that returns the point of a node on the page, given the position of the node among the leaves (0 for the first)
    and its height in the tree (0 for leaves, 1 for the root). `step` is the distance of adjacent leaves on the page, which limits the line
    width.
    """
    if not len(merges):
        return []
    width = min(0.6, 0.4 * step)
    middle, far = np.zeros(2 * n_leaves - 1), np.zeros(2 * n_leaves - 1)
    from scipy.cluster.hierarchy import leaves_list  # the clustering has already loaded this module

    middle[leaves_list(merges)] = np.arange(n_leaves)
    far[n_leaves:] = merges[:, 2] / (merges[:, 2].max() or 1.0)
    shapes: list[Shape] = []
    for node, (first, second) in enumerate(merges[:, :2].astype(np.int64).tolist(), start=n_leaves):
        middle[node] = (middle[first] + middle[second]) / 2
        corners = ((middle[first], far[first]), (middle[first], far[node]), (middle[second], far[node]), (middle[second], far[second]))
        points = np.array([position(float(at), float(up)) for at, up in corners])
        shapes.append(Curve(points[:, 0], points[:, 1], "text", width))
    return shapes
