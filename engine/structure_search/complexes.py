"""Search of complexes: all chains of a query file against all chains of each database file; files are ranked by sums over chains.

Query chains are assigned to different target chains such that the sum of z-scores is maximal (the assignment problem). Complexes are scored
chain by chain; the relative arrangement of chains is not considered.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import ChainRow
from proteoscope.engine.files import atomic_file
from proteoscope.engine.results.separated import UNQUOTED, header_line, separated_lines
from proteoscope.engine.structure_search.candidates import Comparison, compute_rewards, superpose_targets
from proteoscope.engine.structure_search.hits import StructureQueryHits, relatedness
from proteoscope.engine.structure_search.structures import DescribedChains
from proteoscope.engine.structure_search.tables import COMPLEXES

__all__ = ["COLUMNS", "ComplexHit", "assignment", "by_file", "complex_hits", "complex_writer"]


@dataclass(frozen=True, slots=True)
class ComplexHit:
    """Database file whose chains match the chains of a query file.

    Attributes
    ----------
    query, target : str
        Names of the files.
    query_chains, target_chains : int
        Number of chains of each file.
    matched_chains : int
        Number of assigned chains.
    z_score, score : float
        Sums over the assigned chains.
    tm_score_query, tm_score_target : float
        Length-weighted means over the chains of each file, which are superposed separately; unassigned chains count as 0.
    pairs : str
        Assigned chains as texts ``query=target``, joined by commas.
    """

    query: str
    target: str
    query_chains: int
    target_chains: int
    matched_chains: int
    z_score: float
    score: float
    tm_score_query: float
    tm_score_target: float
    pairs: str


COLUMNS = COMPLEXES.saved
"""Columns of the table of complexes, in order."""


def assignment(worth: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Assign rows to different columns such that the total of `worth` is maximal.

    A row is assigned only to a column with a positive value of `worth`. The algorithm is the Hungarian method by shortest paths (Jonker &
    Volgenant, Computing 38, 1987, 325-340), which adds one row after the other in O(n^3).

    Examples
    --------
    >>> assignment(np.array([[3.0, 2.9], [2.8, 0.5]]))
    [(0, 1), (1, 0)]
    """
    if worth.shape[0] > worth.shape[1]:
        return sorted((row, column) for column, row in assignment(worth.T))
    cost = -np.maximum(worth, 0.0)
    n, m = cost.shape
    by_row, by_column = np.zeros(n), np.zeros(m)
    row_of, column_before = np.full(m, -1), np.full(m, -1)
    for begin in range(n):
        least, is_done = np.full(m, np.inf), np.zeros(m, np.bool_)
        row, column, previous = begin, -1, 0.0
        # Find the shortest path from this row to a free column.
        while row >= 0:
            through = previous + cost[row] - by_row[row] - by_column
            shorter = ~is_done & (through < least)
            least[shorter], column_before[shorter] = through[shorter], column
            column = int(np.where(is_done, np.inf, least).argmin())
            is_done[column] = True
            row, previous = int(row_of[column]), float(least[column])
        # Update the prices of visited nodes, and exchange the matches along the path.
        passed = is_done.copy()
        passed[column] = False
        by_row[begin] += previous
        by_row[row_of[passed]] += previous - least[passed]
        by_column[passed] -= previous - least[passed]
        while column >= 0:
            before = int(column_before[column])
            row_of[column] = begin if before < 0 else row_of[before]
            column = before
    return sorted((row, column) for column, row in enumerate(row_of.tolist()) if row >= 0 and worth[row, column] > 0.0)


def complex_hits(comparison: Comparison, chains: Sequence[StructureQueryHits]) -> list[ComplexHit]:
    """Return the database files that match the chains of a query file, best first.

    The sensitive mode ranks the files with the highest sums of z-scores by the sum of `relatedness`; the published mode ranks files by the
    sum of scores. The number of files is limited like the number of hits per query.

    Parameters
    ----------
    comparison : Comparison
        Queries, database and sessions.
    chains : sequence of StructureQueryHits
        Hits of each chain of the query file.
    """
    database, is_sensitive = comparison.database, comparison.is_sensitive
    z = np.stack([chain.z_scores for chain in chains])
    scores = np.stack([chain.scores for chain in chains])
    worth = np.where(scores > 0.0, np.maximum(z, 0.0) if is_sensitive else scores, 0.0)
    best = _best_files(worth, database.file, len(database.files), comparison.n_candidates)
    tm_scores = _tm_scores(comparison, chains, best)
    query = comparison.queries.files[comparison.queries.file[_query_row(comparison, chains[0])]]
    sizes = np.bincount(database.file, minlength=len(database.files))
    result = []
    for number, pairs in best:
        tm = np.array([tm_scores[pair] for pair in pairs])
        z_sum, score = (float(sum(table[k, target] for k, target in pairs)) for table in (z, scores))
        rank = float(relatedness(np.array([z_sum]), np.array([tm.mean(axis=1).sum()]))[0]) if is_sensitive else score
        names = ",".join(f"{chains[k].query}={database.chains.names[target]}" for k, target in pairs)
        result.append(
            (
                rank,
                ComplexHit(
                    query,
                    database.files[number],
                    len(chains),
                    int(sizes[number]),
                    len(pairs),
                    round(z_sum, 3),
                    round(score, 3),
                    round(float(tm[:, 0].sum()) / len(chains), 4),
                    round(float(tm[:, 1].sum()) / int(sizes[number]), 4),
                    names,
                ),
            )
        )
    result.sort(key=lambda ranked: -ranked[0])
    return [hits for _, hits in result[: comparison.parameters.hits_per_query]]


def _query_row(comparison: Comparison, query_hits: StructureQueryHits) -> ChainRow:
    """Return the index of a query among the queries sorted by length."""
    return ChainRow(int(np.flatnonzero(comparison.queries.file_order == query_hits.index)[0]))


def _best_files(worth: NDArray[np.float64], file: NDArray[np.int64], n_files: int, wanted: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the files with the highest total score, and the assigned pairs (row of `worth`, database chain) of each file.

    Parameters
    ----------
    worth : ndarray, shape (query chains, database chains)
        Score of assigning each query chain to each database chain.
    file : ndarray of int64, shape (database chains,)
        Index of the file of each database chain.
    n_files : int
        Number of files.
    wanted : int
        Maximum number of returned files.
    """
    order = np.argsort(file, kind="stable")
    bounds = np.searchsorted(file[order], np.arange(n_files + 1))
    # Upper bound of a file: the sum of the best partners of all chains, even if several chains share a partner.
    at_most = np.zeros(n_files)
    for row in worth:
        best = np.zeros(n_files)
        np.maximum.at(best, file, row)
        at_most += best
    result: list[tuple[float, int, list[tuple[int, int]]]] = []
    for number in np.argsort(-at_most, kind="stable").tolist():
        if at_most[number] <= 0.0 or (len(result) >= wanted and at_most[number] <= result[-1][0]):
            break
        members = order[bounds[number] : bounds[number + 1]]
        pairs = [(row, int(members[column])) for row, column in assignment(worth[:, members])]
        result.append((float(sum(worth[pair] for pair in pairs)), number, pairs))
        result.sort(key=lambda ranked: (-ranked[0], ranked[1]))
        del result[wanted:]
    return [(number, pairs) for _, number, pairs in result]


def _tm_scores(
    comparison: Comparison, chains: Sequence[StructureQueryHits], best: Sequence[tuple[int, list[tuple[int, int]]]]
) -> dict[tuple[int, int], tuple[float, float]]:
    """Return the TM-scores normalised by query and by target of all assigned pairs, by (index of the query chain in `chains`, target).

    The TM-scores of hits are taken from `chains`; other pairs are superposed here.
    """
    place = np.argsort(comparison.database.file_order)
    cached: dict[tuple[int, int], tuple[float, float]] = {}
    for k, chain in enumerate(chains):
        targets, *both = (chain.hits[name].to_numpy() for name in ("target_index", "tm_score_query", "tm_score_target"))
        scores = zip(*(tm.tolist() for tm in both), strict=True)
        cached |= {(k, target): pair for target, pair in zip(place[targets].tolist(), scores, strict=True)}
    for k, chain in enumerate(chains):
        missing = sorted({target for _, pairs in best for row, target in pairs if row == k and (k, target) not in cached})
        query = _query_row(comparison, chain)
        (aligned,) = superpose_targets(comparison, [(query, np.array(missing, np.int64), compute_rewards(comparison, query)[0])])
        scores = zip(aligned.tm_score_query.tolist(), aligned.tm_score_target.tolist(), strict=True)
        cached |= {(k, target): pair for target, pair in zip(missing, scores, strict=True)}
    return cached


def by_file(queries: DescribedChains, query_hits: Iterator[StructureQueryHits]) -> Iterator[Iterator[StructureQueryHits]]:
    """Yield, for each query file, the hits of its chains."""
    place = np.argsort(queries.file_order)
    return (chains for _, chains in groupby(query_hits, key=lambda hits: int(queries.file[place[hits.index]])))


@contextmanager
def complex_writer(path: Path | None) -> Iterator[Callable[[Sequence[ComplexHit]], None] | None]:
    """Yield a function that writes complexes to a tab-separated file, which appears only when complete; yield None without a path."""
    if path is None:
        yield None
        return
    with atomic_file(path) as file:
        file.write(header_line(COMPLEXES.saved_columns))

        def write(hits: Sequence[ComplexHit]) -> None:
            columns = dict(zip(COLUMNS, zip(*map(astuple, hits), strict=True), strict=True)) if hits else dict.fromkeys(COLUMNS, ())
            file.write(separated_lines(COMPLEXES.arrow(columns), COMPLEXES.saved_columns, UNQUOTED))

        yield write
