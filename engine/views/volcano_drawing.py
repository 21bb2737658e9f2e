"""Volcano plot of a comparison: fold changes and p-values, with the thresholds that define a change."""

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.results.counts import counted
from proteoscope.engine.views.drawings import Axis, Drawing, Handle, Label, Points, Shape, Stroke, draw_axes, shortened, text_width
from proteoscope.engine.views.palette import Ink, Ion
from proteoscope.engine.views.quantities import Volcano
from proteoscope.engine.views.quantity_drawings import draw_names
from proteoscope.engine.views.shown_peaks import UNMATCHED

__all__ = ["draw_volcano"]

_CANDIDATES = 80
"""Maximum number of named changes, the most significant ones; names without space are omitted."""
_DOWN: Ink = 0
_UP: Ink = 1
_LEAST_Q_VALUE = 1e-4
"""Minimum q-value threshold when dragged; thresholds are rounded as in the fields of the window."""


def draw_volcano(
    volcano: Volcano, q_value: float, fold_change: float, width: float = 400.0, height: float = 320.0, font_size: float = 8.0
) -> Drawing:
    """Draw fold changes against p-values; changes are coloured and counted at both sides, and the most significant ones are named.

    A click on a dot selects its row in the table of changes. The thresholds `q_value` and `fold_change` are handles that can be dragged.
    """
    changed = volcano.changed(q_value, fold_change)
    up, down = changed & (volcano.fold_change > 0), changed & (volcano.fold_change < 0)
    title = f"{volcano.comparison}: {up.sum():,} up, {down.sum():,} down, of {counted(len(volcano), 'tested protein')}"
    widest = max(float(np.abs(volcano.fold_change).max(initial=1.0)) * 1.06, 1.0)
    highest = max(float(volcano.height.max(initial=1.0)) * 1.08, 1.0)
    counts = f"{down.sum():,} down", f"{up.sum():,} up"
    cuts = f"q-value ≤ {q_value:.3g}" + (f", |log2| ≥ {fold_change:.3g}" if fold_change else "")
    left, right, bottom = font_size * 2 + 30, width - font_size * 2, height - font_size * 4
    needed = text_width(cuts, font_size) + 2 * 1.2 * max(text_width(count, font_size) for count in counts) + 2 * font_size
    has_line = needed > right - left
    top = font_size * (6.0 if has_line else 4.6)
    area = (left, top, right, bottom)

    def across(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return left + (values + widest) / (2 * widest) * (right - left)

    def upwards(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return bottom - values / highest * (bottom - top)

    def q_value_of(y: float) -> float:
        return max(round(volcano.q_value_at((bottom - y) / (bottom - top) * highest), 4), _LEAST_Q_VALUE)

    def fold_change_of(x: float) -> float:
        return round(abs((x - left) / (right - left) * 2 - 1) * widest, 2)

    heading = f"{volcano.comparison}, {counted(len(volcano), 'tested protein')}"
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(heading, width - 16, font_size), is_bold=True)]
    shapes += draw_axes(area, Axis(-widest, widest, "log2 fold change"), Axis(0, highest, "-log10 p-value"), font_size)
    # A threshold beyond all proteins is drawn at the edge, so that it can be dragged.
    y = float(upwards(np.array([min(max(volcano.height_at(q_value), 0.0), highest)]))[0])
    sides = sorted({-min(fold_change, widest), min(fold_change, widest)})
    lines = [float(across(np.array([side]))[0]) for side in sides]
    tip = f"Changes have at least this absolute log2 fold change, {fold_change:.2f}. Drag to move."
    handles = [Handle("q_value", y, left, right, False, q_value_of, f"Changes have at most this q-value, {q_value:.4g}. Drag to move.")]
    handles += [Handle("fold_change", x, top, bottom, True, fold_change_of, tip) for x in lines]
    shapes += [Stroke(left, y, right, y, "faint", 0.8, is_dashed=True)]
    shapes += [Stroke(x, top, x, bottom, "faint", 0.8, is_dashed=True) for x in lines]
    x_all, y_all = across(volcano.fold_change), upwards(volcano.height)
    dots: tuple[tuple[NDArray[np.bool_], Ink, float], ...] = ((~changed, Ion(UNMATCHED), 3.0), (down, _DOWN, 4.5), (up, _UP, 4.5))
    shapes += [Points(x_all[chosen], y_all[chosen], ink, size, volcano.row[chosen]) for chosen, ink, size in dots]
    surest = np.flatnonzero(changed)
    surest = surest[np.argsort(volcano.p_value[surest], kind="stable")][:_CANDIDATES]
    names = [volcano.label[row] for row in surest.tolist()]
    shapes += draw_names(names, x_all[surest], y_all[surest], np.column_stack((x_all, y_all)), area, font_size)
    over = top - font_size * 0.6
    shapes += [Label(left + 2, over, counts[0], ink=_DOWN, is_bold=True), Label(right - 2, over, counts[1], "end", _UP, is_bold=True)]
    shapes += [Label((left + right) / 2, over - (1.3 * font_size if has_line else 0), cuts, "middle", "faint")]
    return Drawing(width, height, title, tuple(shapes), font_size, tuple(handles))
