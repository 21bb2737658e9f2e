"""Figures of quantities: profiles of proteins, principal components and correlations of samples, and missing values."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import (
    Axis,
    Bar,
    Curve,
    Drawing,
    Label,
    Points,
    Shape,
    Stroke,
    draw_axes,
    in_lines,
    shortened,
    text_width,
)
from proteoscope.engine.views.label_layout import place_near_dots
from proteoscope.engine.views.palette import Ink, Shade
from proteoscope.engine.views.quantities import STATES, Components, Samples

__all__ = [
    "Rectangle",
    "condition_inks",
    "draw_components",
    "draw_correlations",
    "draw_missing",
    "draw_names",
    "draw_profile",
    "missing_blocks",
    "nothing_drawn",
    "sample_foot",
    "sample_names",
]

MAXIMUM_NAMES = 40
"""Maximum number of named dots."""
_PEPTIDES_DRAWN = 60
_FIRST_CONDITION = 2
"""Index of the colour of the first condition; the first two colours show values (high and low, up and down)."""
_BELOW_TEXT = 0.4
"""Darkest shade of cells with text, which leaves a contrast of 7 : 1 to text in all themes."""
_CELLS = 6000
"""Maximum number of cells in the figure of missing values; more would be slow and too small to see."""
_NAME_WIDTH = 1.18
"""Assumed width of names relative to other text, since genes and accessions consist mostly of capitals and digits."""
_RING = 7.5
"""Radius in pixels of the ring that the window draws around a selected dot."""
Rectangle = tuple[float, float, float, float]
_STATE_INKS: dict[str, Ink] = {"measured": 0, "transferred": 5, "too low": 11, "refused": 3, "no shared ion": 7, "not seen": "grid"}


def draw_names(
    names: Sequence[str], x: NDArray[np.float64], y: NDArray[np.float64], obstacles: NDArray[np.float64], area: Rectangle, font_size: float
) -> list[Shape]:
    """Draw the names of dots that fit without overlap, with leader lines to distant names.

    Names are given in the order of their importance.

    Parameters
    ----------
    x, y
        Positions of the named dots, shape (n,).
    obstacles
        Positions of all dots, shape (m, 2).
    area
        Left, top, right and bottom of the plot.
    """
    texts = [shortened(name, font_size * 9, font_size) for name in names]
    widths = np.array([_NAME_WIDTH * text_width(text, font_size) for text in texts])
    shapes: list[Shape] = []
    dots = np.column_stack((x, y))
    for label in place_near_dots(dots, widths, font_size * 1.1, obstacles, area, ring=_RING, most=MAXIMUM_NAMES):
        if label.leader is not None:
            shapes.append(Stroke(float(x[label.label]), float(y[label.label]), *label.leader, "faint", 0.4))
        shapes.append(Label(label.left + float(widths[label.label]) / 2, label.top + font_size * 0.85, texts[label.label], "middle"))
    return shapes


def draw_profile(
    proteins: Samples, peptides: Samples, accession: str, width: float = 420.0, height: float = 260.0, font_size: float = 8.0
) -> Drawing:
    """Draw the quantities of a protein by sample, and below them the quantities of its peptides with the fewest missing values.

    A click on the dot of a peptide selects its row in the table of peptides.
    """
    rows = peptides.rows_of(accession)
    of_protein = proteins.log2[proteins.row_of[accession]] if accession in proteins.row_of else np.full(len(proteins.samples), np.nan)
    order = np.lexsort((-np.nan_to_num(peptides.log2[rows]).sum(axis=1), -peptides.has[rows].sum(axis=1)))
    shown = rows[order][:_PEPTIDES_DRAWN]
    more = f", {len(shown)} of them drawn" if len(shown) < len(rows) else ""
    title = f"{accession} and {counted(len(rows), 'peptide')}{more}"
    every = np.concatenate([of_protein, peptides.log2[shown].ravel()])
    every = every[np.isfinite(every)]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    workspace = (high - low) * 0.08 or 0.5
    foot = sample_foot(proteins, font_size)
    area = (font_size * 2 + 34, font_size * 3.2, width - font_size * 2, height - foot)
    left, top, right, bottom = area
    x = _places(proteins, left, right)

    def upwards(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return bottom - (values - low + workspace) / (high - low + 2 * workspace) * (bottom - top)

    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    shapes += _upward_axis(area, Axis(low - workspace, high + workspace, "log2 quantity"), font_size)
    for position, row in enumerate(shown.tolist()):
        ink, y = position % 12, upwards(peptides.log2[row])
        shapes += _joined(x, y, ink, 0.9)
        has = np.isfinite(y)
        shapes.append(Points(x[has], y[has], ink, 3.5, np.full(int(has.sum()), row, np.int64)))
    y = upwards(of_protein)
    shapes += [*_joined(x, y, "text", 2.2), Points(x[np.isfinite(y)], y[np.isfinite(y)], "text", 5.5)]
    shapes += sample_names(proteins, x, bottom, foot, font_size)
    return Drawing(width, height, title, tuple(shapes), font_size)


def _upward_axis(area: tuple[float, float, float, float], axis: Axis, font_size: float) -> list[Shape]:
    """Draw axes like `draw_axes`, but without ticks and numbers on the horizontal axis, which has names."""
    bottom = area[3]
    drawn = draw_axes(area, Axis(0, 1), axis, font_size)
    is_across = [
        (isinstance(shape, Stroke) and shape.x1 == shape.x2 and shape.y1 == bottom)
        or (isinstance(shape, Label) and shape.y > bottom + font_size)
        for shape in drawn
    ]
    return [shape for shape, across in zip(drawn, is_across, strict=True) if not across]


def _joined(x: NDArray[np.float64], y: NDArray[np.float64], ink: Ink, width: float) -> list[Shape]:
    """Draw lines between adjacent values; missing values interrupt the line."""
    has = np.isfinite(y)
    ends = np.flatnonzero(np.diff(np.concatenate([[False], has, [False]]).astype(np.int8)))
    return [Curve(x[first:last], y[first:last], ink, width) for first, last in ends.reshape(-1, 2).tolist() if last - first > 1]


def _places(samples: Samples, left: float, right: float) -> NDArray[np.float64]:
    n = len(samples.samples)
    return left + (np.arange(n) + 0.5) * (right - left) / n


def sample_foot(samples: Samples, font_size: float) -> float:
    """Return the height that the vertical sample names below a figure need, including the line with the conditions."""
    longest = max((text_width(shortened(name, font_size * 9, font_size), font_size) for name in samples.samples), default=0.0)
    return longest + font_size * (3.6 if any(samples.conditions) else 1.6)


def sample_names(samples: Samples, x: NDArray[np.float64], top: float, foot: float, font_size: float) -> list[Shape]:
    """Draw the sample names below a figure (every second, third … name if there are too many), and a named bar for each condition."""
    n = len(samples.samples)
    step = max(1, int(np.ceil(font_size * 1.15 * n / max(float(x[-1] - x[0]) + 1, 1)))) if n > 1 else 1
    shapes: list[Shape] = []
    for position in range(0, n, step):
        name = shortened(samples.samples[position], font_size * 9, font_size)
        shapes.append(Label(float(x[position]) + font_size * 0.35, top + 6, name, "end", is_upright=True))
    if any(samples.conditions):
        half = (float(x[1] - x[0]) if n > 1 else 40.0) / 2
        inks = condition_inks(samples)
        y = top + foot - font_size * 1.9
        begin = 0
        for position in range(1, n + 1):
            if position == n or samples.conditions[position] != samples.conditions[begin]:
                name = samples.conditions[begin]
                left, right = float(x[begin]) - half + 1, float(x[position - 1]) + half - 1
                if name:
                    shapes.append(Bar(left, y, right - left, 3, inks[name]))
                    name = shortened(name, right - left - font_size, font_size)
                    shapes.append(Label((left + right) / 2, y + font_size * 1.3, name, "middle"))
                begin = position
    return shapes


def condition_inks(samples: Samples) -> dict[str, int]:
    """Return the index of the colour of each condition; it is the same in all figures whose samples are in the order of the design."""
    conditions = dict.fromkeys(condition for condition in samples.conditions if condition)
    return {name: position for position, name in enumerate(conditions, start=_FIRST_CONDITION)}


def nothing_drawn(title: str, why: str, width: float, height: float, font_size: float) -> Drawing:
    """Return a drawing with a title and the reason why there is no figure."""
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    lines = in_lines(why, width - 16, font_size)
    shapes += [Label(8, font_size * (4 + 1.4 * at), line, ink="faint") for at, line in enumerate(lines)]
    return Drawing(width, height, title, tuple(shapes), font_size)


def draw_components(
    components: Components | None, samples: Samples, width: float = 320.0, height: float = 260.0, font_size: float = 8.0
) -> Drawing:
    """Draw samples by their first two principal components, coloured by condition; a click on a dot selects the sample."""
    title = "Principal components"
    if components is None:
        reported = "At least three samples, and three proteins with quantities in all samples, are needed."
        return nothing_drawn(title, reported, width, height, font_size)
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    area = (font_size * 2 + 34, font_size * 5.2, width - font_size * 2, height - font_size * 4)
    left, top, right, bottom = area
    has = np.isfinite(components.scores[:, 0])
    axes = []
    for number in range(2):
        values = components.scores[has, number]
        workspace = (float(values.max() - values.min()) or 1.0) * 0.16
        name = f"Component {number + 1} ({100 * components.variance_fraction[number]:.0f} %)"
        axes.append(Axis(float(values.min()) - workspace, float(values.max()) + workspace, name))
    shapes += draw_axes(area, axes[0], axes[1], font_size)
    x = left + (components.scores[:, 0] - axes[0].low) / (axes[0].high - axes[0].low) * (right - left)
    y = bottom - (components.scores[:, 1] - axes[1].low) / (axes[1].high - axes[1].low) * (bottom - top)
    inks = condition_inks(samples)
    for position in np.flatnonzero(has).tolist():
        ink: Ink = inks.get(samples.conditions[position], "faint")
        at = np.array([position], np.int64)
        shapes.append(Points(x[at], y[at], ink, 7.0, at))
    names = [name for name, is_drawn in zip(samples.samples, has.tolist(), strict=True) if is_drawn]
    shapes += draw_names(names, x[has], y[has], np.column_stack((x[has], y[has])), area, font_size)
    across = left
    for condition, ink in inks.items():
        name = shortened(condition, font_size * 12, font_size)
        if across + text_width(name, font_size) + 20 < right:
            shapes += [Bar(across, font_size * 3.3 - 5, 6, 6, ink, is_round=True), Label(across + 10, font_size * 3.3, name)]
            across += text_width(name, font_size) + 24
    shapes.append(Label(right, font_size * 4.9, f"{components.n_items:,} proteins in all samples", "end", "faint"))
    return Drawing(width, height, title, tuple(shapes), font_size)


def draw_correlations(
    correlation: NDArray[np.float64], samples: Samples, width: float = 320.0, height: float = 260.0, font_size: float = 8.0
) -> Drawing:
    """Draw the correlations of all pairs of samples, coloured from the minimum (pale) to 1.

    A click on a cell selects the index of the sample of its row.
    """
    n = len(samples.samples)
    reported = correlation[np.isfinite(correlation)]
    if not len(reported):
        needed = "At least three proteins with different quantities in two samples are needed."
        return nothing_drawn("Correlations between samples", needed, width, height, font_size)
    least = float(reported.min())
    title = f"Correlation, {least:.2f} (faint) to 1"
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    margin = max((text_width(shortened(name, font_size * 9, font_size), font_size) for name in samples.samples), default=0.0) + 12
    foot = sample_foot(samples, font_size)
    side = max(20.0, min(width - margin - 8, height - font_size * 3 - foot))
    top, cell = font_size * 2.8, side / n
    is_written = cell > text_width("0.00", font_size) + 4
    full = _BELOW_TEXT if is_written else 1.0
    for row in range(n):
        for column in range(n):
            coefficient = float(correlation[row, column])
            tip = f"{samples.samples[row]}, {samples.samples[column]}: {coefficient:.4f}" if coefficient == coefficient else ""
            ink: Ink = Shade(-full * (0.08 + 0.92 * (coefficient - least) / ((1 - least) or 1.0))) if coefficient == coefficient else "grid"
            box = (margin + column * cell, top + row * cell, max(cell - 0.8, 0.5), max(cell - 0.8, 0.5))
            shapes.append(Bar(*box, ink, target=row, tip=tip))
            if coefficient == coefficient and is_written:
                shapes.append(Label(box[0] + cell / 2, box[1] + cell / 2 + font_size * 0.35, f"{coefficient:.2f}", "middle"))
    step = max(1, int(np.ceil(font_size * 1.15 / cell)))
    for row in range(0, n, step):
        at = top + (row + 0.5) * cell + font_size * 0.35
        shapes.append(Label(margin - 6, at, shortened(samples.samples[row], font_size * 9, font_size), "end"))
    shapes += sample_names(samples, _places(samples, margin, margin + side), top + side, foot, font_size)
    return Drawing(width, height, title, tuple(shapes), font_size)


def missing_blocks(samples: Samples, most: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Divide the rows of `Samples.by_missing` into up to `most` blocks.

    Returns, for each block, the fraction of rows that have a quantity in each sample, shape (blocks, s), and the first row, shape
    (blocks,).
    """
    order = samples.by_missing
    if not len(order):
        return np.zeros((0, len(samples.samples))), np.zeros(0, np.int64)
    n_blocks = min(len(order), max(1, most))
    starts = np.arange(n_blocks) * len(order) // n_blocks
    sizes = np.diff(np.append(starts, len(order)))
    parts = np.add.reduceat(samples.has[order].astype(np.float64), starts, axis=0) / sizes[:, None]
    return parts, order[starts]


def draw_missing(samples: Samples, row_name: str, width: float = 320.0, height: float = 300.0, font_size: float = 8.0) -> Drawing:
    """Draw the states of quantities by sample, and a map of missing quantities in which rows without missing quantities come first.

    A click on a cell selects the first row of its block.
    """
    n, n_samples = samples.has.shape
    n_whole = int(samples.has.all(axis=1).sum())
    title = f"{n_whole:,} of {n:,} {row_name} have a quantity in all samples"
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    counts = np.stack([(samples.state == code).sum(axis=0) for code in range(len(STATES))])
    left, right, top, foot = font_size * 2 + 26, width - font_size * 2, font_size * 4.6, sample_foot(samples, font_size)
    across = left
    for code in np.flatnonzero(counts.sum(axis=1)).tolist():
        shapes += [Bar(across, font_size * 3.2 - 5, 6, 6, _STATE_INKS[STATES[code]]), Label(across + 9, font_size * 3.2, STATES[code])]
        across += text_width(STATES[code], font_size) + 20
    bottom = max(top + 40, height - foot)
    middle = top + (bottom - top) * 0.3
    x, step = _places(samples, left, right), (right - left) / n_samples
    for sample in range(n_samples):
        y = middle
        for code in range(len(STATES)):
            part = counts[code, sample] / max(n, 1) * (middle - top)
            tip = f"{samples.samples[sample]}: {counts[code, sample]:,} {row_name} {STATES[code]}"
            if part > 0:
                y -= part
                shapes.append(Bar(float(x[sample]) - step / 2 + 1, y, step - 2, part, _STATE_INKS[STATES[code]], tip=tip))
    blocks, first = missing_blocks(samples, min(int(bottom - middle - 8), _CELLS // n_samples))
    tall = (bottom - middle - 8) / max(len(blocks), 1)
    for block in range(len(blocks)):
        for sample in range(n_samples):
            part = float(blocks[block, sample])
            box = (float(x[sample]) - step / 2 + 1, middle + 8 + block * tall, step - 2, tall + 0.2)
            shapes.append(Bar(*box, Shade(-part) if part > 0 else "grid", target=int(first[block])))
    shapes.append(Label(left - 6, middle + 8 + font_size, "all", "end", "faint"))
    shapes.append(Label(left - 6, bottom, "few", "end", "faint"))
    shapes += sample_names(samples, x, bottom, foot, font_size)
    return Drawing(width, height, title, tuple(shapes), font_size)
