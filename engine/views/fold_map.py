"""Map of folds: a matrix of the TM-scores of all pairs of chains of a database, ordered by hierarchical clustering.

The distance of two chains is 1 minus the TM-score normalised by the longer chain, or 1 if the search did not superpose them. Linkage is
average (UPGMA; Sokal & Michener 1958). The clusters of the table (`proteoscope.engine.structure_search.fold_clusters`) are coloured next to
the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.entry import ExportRequest
from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.files import storage_errors
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.page_sizes import laid_out_size
from proteoscope.engine.project import Project
from proteoscope.engine.results.counts import counted
from proteoscope.engine.structure_search.tables import CLUSTERS
from proteoscope.engine.views.conditions import Condition, any_of, compares
from proteoscope.engine.views.drawings import Bar, Cells, Drawing, Label, PaperFigure, Shape, in_lines, shortened, text_width
from proteoscope.engine.views.figure_files import save_figure
from proteoscope.engine.views.finished_run import FinishedRun, open_run
from proteoscope.engine.views.heat_map import tree_shapes
from proteoscope.engine.views.palette import SERIES_COLOURS, Ink, Shade
from proteoscope.engine.views.quantity_clusters import average_linkage
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "FIGURE_SIZE",
    "MAXIMUM_CHAINS",
    "FoldMap",
    "draw_fold_map",
    "export_figures",
    "has_fold_clusters",
    "read_fold_map",
    "select_pairs",
]

FIGURE_SIZE = (400.0, 440.0)
"""Width and height of the map on a page, points."""
MAXIMUM_CHAINS = 1000
"""Maximum number of chains in a map; the chains of the largest clusters are shown."""
_LEAST_SHOWN = 0.2
"""TM-score with the colour of the background; unrelated chains have a mean TM-score of 0.2 to 0.3."""
_MISSING: Ink = "grid"
_FONT_SIZE = 8.0
_IMAGE_PIXELS = 2000
"""Approximate length of a side of the image in files."""
_NOTE = (
    "TM-scores normalised by the longer chain. Order: average linkage of 1 - TM-score; pairs that were not superposed count as 0. Left:"
    " clusters of the table, whose chains have a TM-score of 0.5 or more with the representative."
)


@dataclass(frozen=True, eq=False)
class FoldMap:
    """TM-scores of n chains with each other, in the order of the map.

    Attributes
    ----------
    names : tuple of str
        Names of the chains.
    cluster, size : ndarray of int64, shape (n,)
        Number of each chain's cluster (1 is the largest), and number of chains in this cluster.
    scores : ndarray of float64, shape (n, n)
        TM-scores normalised by the longer chain, 0 to 1; NaN for pairs that were not superposed.
    hits : ndarray of int64, shape (n, n)
        Row of each pair in the table of hits; -1 for pairs that were not superposed.
    tree : ndarray of float64, shape (n - 1, 4)
        Merges of the chains, as in `scipy.cluster.hierarchy.linkage`.
    n_chains, n_clusters
        Number of all chains and of their clusters.
    """

    names: tuple[str, ...]
    cluster: NDArray[np.int64]
    size: NDArray[np.int64]
    scores: NDArray[np.float64]
    hits: NDArray[np.int64]
    tree: NDArray[np.float64]
    n_chains: int
    n_clusters: int


def has_fold_clusters(run: FinishedRun) -> bool:
    """Return True if a structure search compared all chains with each other, and thus has clusters."""
    return CLUSTERS.name in run.tables.paths


def select_pairs(chain: int) -> list[Condition]:
    """Return the condition that selects all hits in which a chain of the database is the query or the target."""
    return [any_of((compares("query_index", "=", chain), compares("target_index", "=", chain)))]


def read_fold_map(source: TableSource, most: int = MAXIMUM_CHAINS) -> FoldMap | None:
    """Return the map of the chains of the largest clusters, or None if there are fewer than two chains.

    Parameters
    ----------
    source
        Any open table of a search of all chains against all.
    most
        Maximum number of chains; the memory is about 40 bytes for each pair of them.
    """
    counts = source.query("SELECT count(*) AS chains, count(DISTINCT cluster) AS clusters FROM clusters").to_pylist()[0]
    chains = source.query("SELECT cluster, size, chain, chain_index FROM clusters ORDER BY file_row_number LIMIT ?", [most])
    index, rows = np.unique(chains["chain_index"].to_numpy(), return_index=True)  # a damaged table may repeat chains
    n = len(index)
    if n < 2:
        return None
    pairs = source.query(
        "WITH shown AS (SELECT DISTINCT chain_index FROM (SELECT chain_index FROM clusters ORDER BY file_row_number LIMIT ?)) "
        "SELECT query_index, target_index, hits.file_row_number AS hit, "
        "CASE WHEN target_length > length THEN tm_score_target ELSE tm_score_query END AS score "
        "FROM hits JOIN queries USING (query_index) WHERE query_index IN (FROM shown) AND target_index IN (FROM shown)",
        [most],
    )
    first, second = (np.searchsorted(index, pairs[name].to_numpy()) for name in ("query_index", "target_index"))
    scores, hits = np.full((n, n), np.nan), np.full((n, n), -1)
    for row, column in ((first, second), (second, first)):
        scores[row, column] = np.clip(pairs["score"].to_numpy().astype(np.float64), 0.0, 1.0)
        hits[row, column] = pairs["hit"].to_numpy()
    np.fill_diagonal(scores, 1.0)
    np.fill_diagonal(hits, -1)
    tree, order = average_linkage(1.0 - np.nan_to_num(scores))
    rows, which = rows[order], np.ix_(order, order)
    names = chains["chain"].take(rows).to_pylist()
    cluster, size = (chains[name].to_numpy()[rows].astype(np.int64) for name in ("cluster", "size"))
    return FoldMap(tuple(names), cluster, size, scores[which], hits[which], tree, counts["chains"], counts["clusters"])


def draw_fold_map(folds: FoldMap, width: float = 400.0, height: float = 440.0, font_size: float = _FONT_SIZE) -> Drawing:
    """Draw the matrix with the tree and the clusters of its rows; a click on a cell selects the hit of the pair."""
    n = len(folds.names)
    chosen = f"the {n:,} chains of the largest clusters, of {folds.n_chains:,}" if n < folds.n_chains else counted(n, "chain")
    title = f"Map of folds: {chosen}; {counted(folds.n_clusters, 'cluster')}"
    shapes: list[Shape] = [Label(8, font_size * 1.8, shortened(title, width - 16, font_size), is_bold=True)]
    legend, legend_height = _legend(width, font_size)
    shapes += legend
    lines = in_lines(_NOTE, width - 16, font_size)
    tree, strip = min(width * 0.14, 60.0), font_size
    left, upper = 8 + tree + strip, legend_height + font_size * 4.6
    labels = [shortened(name, font_size * 10, font_size) for name in folds.names]
    side = max(20.0, height - upper - font_size * (1.6 + 1.25 * len(lines)))
    has_names = side / n >= font_size * 0.95
    names = 1.15 * max(text_width(label, font_size) for label in labels) + 8 if has_names else 0.0
    side = max(20.0, min(side, width - 8 - left - names))
    step = side / n
    has_names = has_names and step >= font_size * 0.95
    shapes += tree_shapes(folds.tree, n, lambda at, far: (left - strip - 2 - far * (tree - 4), upper + (at + 0.5) * step), step)
    shapes += _strip(folds, left - strip, upper, strip - 2, step)

    def tip(row: int, column: int) -> str:
        if row == column:
            return f"{folds.names[row]}, cluster {folds.cluster[row]:,}: {counted(int(folds.size[row]), 'chain')}"
        score = folds.scores[row, column]
        reported = f"TM-score {score:.3f}" if np.isfinite(score) else "not superposed"
        return f"{folds.names[row]} and {folds.names[column]}: {reported}"

    scale = max(1, min(16, _IMAGE_PIXELS // n))
    values = np.clip((folds.scores - _LEAST_SHOWN) / (1.0 - _LEAST_SHOWN), 0.0, 1.0)
    shapes += [Label(8, upper + side + font_size * (1.8 + 1.25 * at), line, ink="faint") for at, line in enumerate(lines)]
    shapes.append(Cells(left, upper, side, side, values, (_MISSING,), folds.hits, tip, scale))
    if has_names:
        shapes += [Label(left + side + 5, upper + (at + 0.5) * step + font_size * 0.35, label) for at, label in enumerate(labels)]
    return Drawing(width, height, title, tuple(shapes), font_size)


def _strip(folds: FoldMap, x: float, upper: float, width: float, step: float) -> list[Shape]:
    """Return the bars next to the matrix, one for the rows of each cluster of several chains; only the largest clusters have colours."""
    shapes: list[Shape] = []
    changes = np.flatnonzero(np.diff(folds.cluster)) + 1
    for first, last in pairwise([0, *changes.tolist(), len(folds.cluster)]):
        number, size = int(folds.cluster[first]), int(folds.size[first])
        if size > 1:
            ink: Ink = number - 1 if number <= len(SERIES_COLOURS) else "faint"
            tip = f"Cluster {number:,}: {counted(size, 'chain')}"
            shapes.append(Bar(x, upper + first * step, width, (last - first) * step, ink, tip=tip))
    return shapes


def _legend(width: float, font_size: float) -> tuple[list[Shape], float]:
    """Draw the legend: the scale of TM-scores and the colour of pairs that were not superposed.

    Returns the shapes, and the additional height that the second line of the legend needs, 0 if there is only one line.
    """
    y, steps, low = font_size * 3.5, 9, f"TM-score {_LEAST_SHOWN:g}"
    x = 8 + 1.1 * text_width(low, font_size) + 4
    shapes: list[Shape] = [Label(8, y, low)]
    shapes += [Bar(x + 8 * k, y - 0.8 * font_size, 8.3, 0.9 * font_size, Shade(k / (steps - 1))) for k in range(steps)]
    x += 8 * steps + 4
    shapes.append(Label(x, y, "1"))
    x, text = x + 2.5 * font_size, "not superposed"
    more = 1.4 * font_size if x + 1.3 * font_size + 1.1 * text_width(text, font_size) > width else 0.0
    x, y = (8.0 if more else x), y + more
    shapes.append(Bar(x, y - 0.8 * font_size, 0.9 * font_size, 0.9 * font_size, _MISSING))
    return [*shapes, Label(x + 1.3 * font_size, y, text)], more


def export_figures(project: Project, request: ExportRequest, progress: Progress) -> list[Path]:
    """Export the map of folds of a run (see `proteoscope.engine.entry.Search.export`).

    Raises
    ------
    InputError
        If the run did not compare all chains with each other, or has fewer than two.
    ParameterError
        If thresholds of changes were given.
    """
    if request.q_value is not None or request.fold_change:
        raise ParameterError("a map of folds has no thresholds for changes: leave out --q-value and --fold-change")
    progress.stage("Drawing", 1)
    with open_run(project, request.run_id) as run:
        folds = read_fold_map(run.tables.source(CLUSTERS.name)) if has_fold_clusters(run) else None
    if folds is None:
        remedy = "Search with --all, or “Compare all chains of the database with each other”, in a database of two chains or more"
        raise InputError(project.folder, f"run '{request.run_id}' has no map of folds", remedy=remedy)
    with storage_errors(request.target):
        request.target.mkdir(parents=True, exist_ok=True)
    figure = PaperFigure("fold-map", lambda width: draw_fold_map(folds, *laid_out_size(FIGURE_SIZE, width)))
    path = request.target / f"{figure.name}.{request.figures.type}"
    save_figure(path, figure, request.figures.size, request.figures.dpi)
    progress.advance()
    return [path]
