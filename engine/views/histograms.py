"""Histograms as data, and how DuckDB counts a column of a table into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.results.queries import identifier
from proteoscope.engine.views.conditions import Condition, where_clause
from proteoscope.engine.views.tables import TableSource

__all__ = ["Histogram", "bin_counts", "bin_edges"]

_BINS = 60


@dataclass(frozen=True)
class Histogram:
    """Counts in bins of equal width.

    Attributes
    ----------
    edges : (n + 1,) float64.
    series : name and (n,) counts of each.
    mark : a value worth a line, and what it is; None: none.
    summary : one sentence that says what is to be seen.
    curve : name, places and heights of what is compared with the counts; None: nothing.
    n_beyond, highest : how many values lie beyond the last bin, and the largest of them. n_missing : rows without a value.
    is_whole : whether what is counted has whole numbers, as scores have that are sums of them.
    chosen : the range that a filter lets through; None: there is none.
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
        """Whether nothing was counted."""
        return not any(counts.any() for _, counts in self.series)


def bin_edges(source: TableSource, column: str, conditions: Sequence[Condition]) -> NDArray[np.float64]:
    """Edges (61,) of equal bins that hold a column's values in the rows that satisfy all conditions; (2,) where there are none.

    The conditions must leave out what is not finite.
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
    """How many values of a column lie in each of n equal bins, (n,), in the rows that satisfy all conditions.

    Parameters
    ----------
    edges : (n + 1,), which hold all values. The largest value lies on the last edge and belongs to the last bin.
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
