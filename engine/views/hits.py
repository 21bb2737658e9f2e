"""Data of the view of a sequence search: filtered hits, their ranges on the query, and the score distribution."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.features import FEATURES
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.conditions import Condition, compares, contains_in, given, where_clause
from proteoscope.engine.views.coverage import ProteinFeature, protein_features
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "Bar",
    "HitFilter",
    "HitSummary",
    "QueryBars",
    "aligned_pair",
    "hit_conditions",
    "read_query_bars",
    "score_histogram",
    "select_query_hits",
    "summary",
]

_MAXIMUM_BARS = 500
_SHOWN_FEATURES = ("domain", "site", "modification", "disulfide bond")
_PAIR = (
    *("query", "subject", "description", "query_start", "subject_start", "aligned_query", "aligned_middle", "aligned_subject"),
    *("score", "bit_score", "e_value", "identity", "positives", "gap_openings", "alignment_length", "query_coverage"),
)
_BINS, _MINIMUM_BINS = 60, 10
_MINIMUM_SEEN = 0.05
"""Minimum expected number of sequences at a score for which the curve is drawn."""
_BEYOND = 1.6


@dataclass(frozen=True)
class HitSummary:
    """Counts of a sequence search; `query` is the name of one of the queries, and `n_subjects` the number of sequences in the database.

    `lambda_` and `K` are the parameters of the E-values, and `statistics` is their source.
    """

    query: str
    n_hits: int
    n_queries: int
    n_with_hits: int
    n_subjects: int
    lambda_: float
    K: float
    statistics: str


def summary(source: TableSource) -> HitSummary:
    """Count the hits and queries of a search; `source` is any open table of the run."""
    row = source.query(
        "SELECT any_value(query) AS query, sum(n_hits) AS hits, count(*) AS n, count(*) FILTER (n_hits > 0) AS found, "
        'max("lambda") AS lambda, max(K) AS K, max(statistics) AS source FROM queries'
    ).to_pylist()[0]
    subjects = source.query(
        "SELECT sum(n_subjects) AS n FROM score_counts WHERE query_index = (SELECT min(query_index) FROM score_counts)"
    )["n"][0].as_py()
    return HitSummary(
        row["query"] or "",
        int(row["hits"] or 0),
        row["n"],
        row["found"],
        int(subjects or 0),
        row["lambda"] or 0.0,
        row["K"] or 0.0,
        row["source"] or "",
    )


@dataclass(frozen=True)
class HitFilter:
    """Filter of hits; None and 0 mean no restriction. Identity and coverage are minimum fractions, 0 to 1."""

    text: str = ""
    e_value: float | None = None
    identity: float = 0.0
    coverage: float = 0.0


def hit_conditions(chosen: HitFilter) -> list[Condition]:
    """Return the conditions of a filter on hits."""
    least_identity, least_coverage = (fraction if fraction > 0 else None for fraction in (chosen.identity, chosen.coverage))
    bounds = given(("e_value", "<=", chosen.e_value), ("identity", ">=", least_identity), ("query_coverage", ">=", least_coverage))
    return [*bounds, *contains_in(("subject", "description", "query"), chosen.text)]


def select_query_hits(index: int) -> list[Condition]:
    """Return the condition that selects the hits of the query with an index."""
    return [compares("query_index", "=", index)]


@dataclass(frozen=True)
class Bar:
    """Hit along a query: row in the table of hits, name, scores, and the first and last query residue, from 1."""

    row: int
    name: str
    description: str
    start: int
    end: int
    bit_score: float | None
    e_value: float | None
    identity: float
    features: tuple[ProteinFeature, ...] = ()
    """Database features in the aligned range of the subject, such as domains, sites, modifications and disulfide bonds."""


@dataclass(frozen=True)
class QueryBars:
    """Query with its best hits.

    Attributes
    ----------
    total
        Number of all hits that satisfy the conditions, including those not in `bars`.
    features
        Database features of the query.
    """

    query: str
    query_length: int
    bars: tuple[Bar, ...]
    total: int
    features: tuple[ProteinFeature, ...] = ()


def read_query_bars(source: TableSource, index: int, conditions: Sequence[Condition] = ()) -> QueryBars:
    """Return the query at `index`, and its best hits that satisfy all conditions; `source` is any open table of the run."""
    query, length = _query(source, index)
    where, parameters = where_clause([*select_query_hits(index), *conditions])
    rows = source.query(
        'SELECT file_row_number AS row, subject AS name, description, query_start AS start, query_end AS "end", bit_score, e_value, '
        f"identity, count(*) OVER () AS total FROM hits{where} ORDER BY row LIMIT {_MAXIMUM_BARS}",
        parameters,
    ).to_pylist()
    total = rows[0]["total"] if rows else 0
    of_query, of_hits = _features(source, query, length, f"hits{where} ORDER BY row LIMIT {_MAXIMUM_BARS}", parameters)
    bars = (Bar(**{name: row[name] for name in row if name != "total"}, features=tuple(of_hits.get(row["row"], ()))) for row in rows)
    return QueryBars(query, length, tuple(bars), total, of_query)


def _features(
    source: TableSource, query: str, length: int, hits: str, parameters: Sequence[Any]
) -> tuple[tuple[ProteinFeature, ...], dict[int, list[ProteinFeature]]]:
    """Return the features of a query, and the features of each hit's subject in the aligned range, by row of the hit.

    Both are empty if the run stores no features. `hits` is the SQL text after FROM that selects the hits: table, conditions, order by
    ``row`` and limit.
    """
    if FEATURES.name not in source.paths:
        return (), {}
    requested = "SELECT kind, first, last, description FROM features WHERE accession = ? ORDER BY file_row_number"
    of_query = protein_features(source.query(requested, [query]).to_pylist(), length)
    result: dict[int, list[ProteinFeature]] = {}
    rows = source.query(
        "SELECT found.row, found.subject_length AS length, features.kind, features.first, features.last, features.description FROM "
        f"(SELECT file_row_number AS row, subject, subject_start, subject_end, subject_length FROM {hits}) AS found JOIN features "
        "ON features.accession = found.subject AND features.first <= found.subject_end AND features.last >= found.subject_start "
        "ORDER BY found.row, features.file_row_number",
        parameters,
    ).to_pylist()
    for row in rows:
        result.setdefault(row["row"], []).extend(
            protein_feature for protein_feature in protein_features([row], row["length"]) if protein_feature.group in _SHOWN_FEATURES
        )
    return of_query, result


def _query(source: TableSource, index: int) -> tuple[str, int]:
    """Return the name and length of the query with an index."""
    result = source.query("SELECT query, length FROM queries WHERE query_index = ?", [index]).to_pylist()
    if not result:
        raise ParameterError(f"there is no query {index} in this run")
    return result[0]["query"], result[0]["length"]


def aligned_pair(source: TableSource, row: int) -> AlignedPair:
    """Return the alignment of the hit in a row of the table of hits."""
    values = source.row(row, _PAIR)
    return AlignedPair(
        values["query"],
        values["subject"],
        values["description"] or "",
        values["query_start"],
        values["subject_start"],
        values["aligned_query"],
        values["aligned_middle"],
        values["aligned_subject"],
        hit=values,
    )


def score_histogram(source: TableSource, index: int) -> Histogram:
    """Return the histogram of the alignment scores of all subjects with the query at `index`.

    The curve is the number of subjects expected by chance, from the statistics of the search. The mark is the minimum score of a hit. The
    bins end a little above the scores that are expected by chance; `n_beyond` subjects have higher scores.
    """
    counted = source.query("SELECT score, n_subjects FROM score_counts WHERE query_index = ? ORDER BY score", [index])
    scores, counts = (counted[name].to_numpy().astype(np.int64) for name in ("score", "n_subjects"))
    positions, expected = np.empty(0), np.empty(0)
    if "score_expectations" in source.paths:
        chance = source.query(
            "SELECT score, n_expected FROM score_expectations WHERE query_index = ? AND n_expected >= ? ORDER BY score",
            [index, _MINIMUM_SEEN],
        )
        positions, expected = chance["score"].to_numpy().astype(np.float64), chance["n_expected"].to_numpy()
    title, x_title, y_title = f"Scores of {_query(source, index)[0]}", "Score", "Sequences"
    if not len(scores):
        return Histogram(title, x_title, y_title, np.array([0.0, 1.0]), (("Sequences", np.zeros(1, np.int64)),), None, "No scores.")
    low = int(min(scores[0], positions[0] if len(positions) else scores[0]))
    by_chance = float(positions[-1]) if len(positions) else float(np.percentile(np.repeat(scores, np.minimum(counts, 1000)), 99))
    high = min(int(scores[-1]), low + int(_BEYOND * (by_chance - low)))
    high = max(high, low + _MINIMUM_BINS - 1)
    width = max(1, -(-(high + 1 - low) // _BINS))
    edges = np.arange(low, high + width + 1, width, dtype=np.float64)
    within = scores < edges[-1]
    in_bins, _ = np.histogram(scores[within], edges, weights=counts[within])
    n_beyond = int(counts[~within].sum())
    least = source.query("SELECT min(score) AS least FROM hits WHERE query_index = ?", [index])["least"][0].as_py()
    mark = (float(least), "hits from") if least is not None and least < edges[-1] else None
    curve = None
    if len(positions):
        # A bin covers `width` scores, so the expectation per score is multiplied; a score is drawn at its middle.
        curve = ("Expected by chance", positions + 0.5, expected * width)
    series = (("Sequences", in_bins.astype(np.int64)),)
    return Histogram(
        title,
        x_title,
        y_title,
        edges,
        series,
        mark,
        "",
        curve=curve,
        is_whole=True,
        n_beyond=n_beyond,
        highest=float(scores[-1]),
    )
