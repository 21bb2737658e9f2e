"""Distributions over a whole run, counted by DuckDB."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gui.tables.source import TableSource

__all__ = ["Histogram", "mass_error_histogram", "score_histogram"]

_BINS = 60


@dataclass(frozen=True)
class Histogram:
    """Counts in bins of equal width.

    Attributes
    ----------
    edges : (n + 1,) float64.
    series : name and (n,) counts of each; drawn one over the other.
    mark : where a line is drawn, and what it says; None: no line.
    summary : one sentence that says what is to be seen.
    curve : name, places and heights of a line over the bins; None: no line.
    is_log : whether the counts are drawn on an axis of powers of ten.
    note : what lies beyond the last bin. is_whole : whether what is counted has whole numbers, as scores have that are sums of them.
    chosen : a range that is shown behind the bins, as what a filter lets through; None: none.
    """

    title: str
    x_title: str
    y_title: str
    edges: NDArray[np.float64]
    series: tuple[tuple[str, NDArray[np.int64]], ...]
    mark: tuple[float, str] | None
    summary: str
    curve: tuple[str, NDArray[np.float64], NDArray[np.float64]] | None = None
    is_log: bool = False
    note: str = ""
    is_whole: bool = False
    chosen: tuple[float, float] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was counted."""
        return not any(counts.any() for _, counts in self.series)


def score_histogram(source: TableSource, fdr: float) -> Histogram:
    """Scores of targets and decoys of rank 1, and the score from which PSMs are accepted at `fdr`."""
    where = "rank = 1 AND isfinite(score)"
    edges = _edges(source, "score", where)
    targets = _counts(source, "score", f"{where} AND NOT is_decoy", edges)
    decoys = _counts(source, "score", f"{where} AND is_decoy", edges)
    found = source.query("SELECT min(score) AS least FROM psms WHERE rank = 1 AND NOT is_decoy AND q_value <= ?", [fdr])["least"][0].as_py()
    mark = None if found is None else (float(found), f"{fdr * 100:g} % FDR")
    summary = "No PSM is accepted." if found is None else ""
    return Histogram("Score distribution", "Score", "PSMs", edges, (("Targets", targets), ("Decoys", decoys)), mark, summary)


def mass_error_histogram(source: TableSource, fdr: float) -> Histogram:
    """Errors of the precursor mass (ppm) of accepted targets of rank 1, and their median."""
    where = f"rank = 1 AND NOT is_decoy AND q_value <= {float(fdr)!r} AND isfinite(mass_error_ppm)"
    edges = _edges(source, "mass_error_ppm", where)
    counts = _counts(source, "mass_error_ppm", where, edges)
    row = source.query(
        f"SELECT median(mass_error_ppm) AS middle, stddev_samp(mass_error_ppm) AS deviation, count(*) AS n FROM psms WHERE {where}"
    ).to_pylist()[0]
    mark = None if row["middle"] is None else (float(row["middle"]), "median")
    summary = "No PSM is accepted." if not row["n"] else ""
    return Histogram("Mass errors of accepted PSMs", "Precursor mass error (ppm)", "PSMs", edges, (("Targets", counts),), mark, summary)


def _edges(source: TableSource, column: str, where: str) -> NDArray[np.float64]:
    row = source.query(f"SELECT min({column}) AS low, max({column}) AS high FROM psms WHERE {where}").to_pylist()[0]
    low, high = row["low"], row["high"]
    if low is None:
        return np.array([0.0, 1.0])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, _BINS + 1)


def _counts(source: TableSource, column: str, where: str, edges: NDArray[np.float64]) -> NDArray[np.int64]:
    n, low, width = len(edges) - 1, float(edges[0]), float(edges[-1] - edges[0])
    # The largest value lies on the last edge and belongs to the last bin.
    table = source.query(
        f"SELECT least(CAST(floor(({column} - ?) / ? * {n}) AS INTEGER), {n - 1}) AS bin, count(*) AS n "
        f"FROM psms WHERE {where} GROUP BY bin",
        [low, width],
    )
    counts = np.zeros(n, np.int64)
    counts[table["bin"].to_numpy()] = table["n"].to_numpy()
    return counts
