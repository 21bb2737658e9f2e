"""Histograms of table columns: counts computed by DuckDB, and figures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.results.queries import identifier
from proteoscope.engine.views.conditions import Condition, where_clause
from proteoscope.engine.views.drawings import Axis
from proteoscope.engine.views.figures import Band, Figure, LegendEntry, Line, Mark, Panel, Picked, Rule, Surface, Text
from proteoscope.engine.views.palette import Ink
from proteoscope.engine.views.tables import TableSource

__all__ = ["Histogram", "bin_counts", "bin_edges", "histogram_figure"]

_BINS = 60
_INKS: tuple[Ink, ...] = ("target", "decoy")
_FOOT = 0.5
"""Lower end of a logarithmic axis of counts."""


@dataclass(frozen=True)
class Histogram:
    """Counts in n bins of equal width.

    Attributes
    ----------
    edges
        Bin edges, shape (n + 1,), float64.
    series
        Name of each series, and its counts, (n,).
    mark
        Marked value and its label, or None.
    summary
        Sentence that describes the histogram, or ''.
    curve
        Name, x positions and heights of a reference curve, or None.
    n_beyond, highest
        Number of values above the last bin, and their maximum.
    n_missing
        Number of rows without a value.
    is_whole
        True if the values are integers or sums of integers.
    chosen
        Range selected by a filter, or None.
    """

    title: str
    x_title: str
    y_title: str
    edges: NDArray[np.float64]
    series: tuple[tuple[str, NDArray[np.int64]], ...]
    mark: tuple[float, str] | None
    summary: str
    curve: tuple[str, NDArray[np.float64], NDArray[np.float64]] | None = None
    is_whole: bool = False
    chosen: tuple[float, float] | None = None
    n_beyond: int = 0
    highest: float | None = None
    n_missing: int = 0

    @property
    def is_empty(self) -> bool:
        """True if all counts are 0."""
        return not any(counts.any() for _, counts in self.series)


def bin_edges(source: TableSource, column: str, conditions: Sequence[Condition]) -> NDArray[np.float64]:
    """Return the edges of 60 equal bins over the values of a column, (61,), or of one bin if there are no values, (2,).

    Only rows that satisfy all conditions count; the conditions must exclude infinite values and NaN.
    """
    where, parameters = where_clause(conditions)
    name = identifier(column)
    row = source.query(f"SELECT min({name}) AS low, max({name}) AS high FROM {identifier(source.name)}{where}", parameters).to_pylist()[0]
    low, high = row["low"], row["high"]
    if low is None:
        return np.array([0.0, 1.0])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _BINS + 1)


def bin_counts(source: TableSource, column: str, conditions: Sequence[Condition], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the values of a column in n equal bins, in the rows that satisfy all conditions.

    Parameters
    ----------
    edges
        Bin edges that enclose all values, shape (n + 1,). The last bin includes its upper edge.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    where, parameters = where_clause(conditions)
    n, low, width = len(edges) - 1, float(edges[0]), float(edges[-1] - edges[0])
    table = source.query(
        f"SELECT least(CAST(floor(({identifier(column)} - ?) / ? * {n}) AS INTEGER), {n - 1}) AS bin, count(*) AS n "
        f"FROM {identifier(source.name)}{where} GROUP BY bin",
        [low, width, *parameters],
    )
    counts = np.zeros(n, np.int64)
    counts[table["bin"].to_numpy()] = table["n"].to_numpy()
    return counts


def histogram_figure(histogram: Histogram, *, is_log: bool = False, note: str = "", has_targets: bool = False) -> Figure:
    """Return the figure of a histogram, with counts as steps and the first series in front.

    Parameters
    ----------
    is_log
        True for a logarithmic axis of counts.
    note
        Text near the upper right corner.
    has_targets
        True if a click selects the edges of a bin.
    """
    edges = histogram.edges
    highest = max((int(counts.max(initial=0)) for _, counts in histogram.series), default=0) or 1
    ends = (_FOOT, highest * 2.0) if is_log else (0.0, highest * 1.08)
    y = Axis(*ends, histogram.y_title, is_whole=True, scale="logarithmic" if is_log else "linear")
    x = Axis(float(edges[0]), float(edges[-1]), histogram.x_title, is_whole=histogram.is_whole)
    series = list(zip(histogram.series, _INKS, strict=False))
    marks: list[Mark] = []
    if histogram.chosen is not None:
        marks.append(Band(max(histogram.chosen[0], x.low), min(histogram.chosen[1], x.high)))
    at = np.repeat(edges, 2)
    for (_, counts), ink in reversed(series):
        heights = np.concatenate(([y.low], np.repeat(counts, 2), [y.low])).astype(np.float64)
        marks += [Surface(at, np.full(len(at), y.low), heights, ink, 0.35), Line(at, heights, ink, 1.0)]
    legend = [LegendEntry(name, ink) for (name, _), ink in series]
    if histogram.curve is not None:
        name, positions, values = histogram.curve
        within = (positions >= x.low) & (positions <= x.high) & (values > y.low)
        # A single point is not a line; values at or below the lower end of the axis are invisible.
        if np.count_nonzero(within) > 1:
            marks.append(Line(positions, values, "decoy", 1.8))
            legend.append(LegendEntry(name, "decoy", is_line=True))
    marked = ""
    if histogram.mark is not None:
        where, what = histogram.mark
        marked = f", {what} at {where:.2f}"
        marks.append(Rule(where, text=f"{what}: {_number(where)}"))
    if note:
        low, high = y.scaled([y.low, y.high]).tolist()
        marks.append(Text(x.high, float(y.unscaled(low + 0.84 * (high - low))), note, "end", "faint"))

    def pick(value: float, _: float, across: float, up: float) -> Picked:
        i = min(max(int((value - x.low) / (x.high - x.low) * (len(edges) - 1)), 0), len(edges) - 2)
        return Picked((float(edges[i]), float(edges[i + 1])) if has_targets else None, _tip(histogram, i))

    counted = ", ".join(f"{int(counts.sum())} {name.lower()}" for name, counts in histogram.series)
    panel = Panel(x, y, tuple(marks), pick=pick)
    title = histogram.title
    return Figure(title, f"{title}: {counted}{marked}", (panel,), (title,), tuple(legend) if len(legend) > 1 else (), size=(340.0, 230.0))


def _tip(histogram: Histogram, i: int) -> str:
    """Return the tooltip of bin `i`."""
    counted = ", ".join(f"{name}: {counts[i]:,}" for name, counts in histogram.series)
    low, high = float(histogram.edges[i]), float(histogram.edges[i + 1])
    if histogram.curve is not None:
        name, x, y = histogram.curve
        within = (x >= low) & (x < high)
        counted += f", {name.lower()}: {y[within].mean():.3g}" if within.any() else ""
    if histogram.is_whole:
        low, high = math.ceil(low), math.ceil(high) - 1
    return f"{' to '.join(dict.fromkeys(_number(end) for end in (low, high)))}: {counted}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
