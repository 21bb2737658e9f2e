"""The tables of a sequence search as the window shows them: how they are linked and filtered, and what is drawn of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale

from engine.project import Project
from engine.sequence_search.entry import SEQUENCE_SEARCH
from engine.tables import Column
from gui.alignment.aligned_pair import AlignedPair
from gui.plots.distributions import Histogram
from gui.plots.hit_bars import Bar, Bars
from gui.results.finished_run import FinishedRun, open_finished_run
from gui.results.query_hits_view import hits_of_query
from gui.tables.columns import shown_text
from gui.tables.source import Condition, TableSource

__all__ = [
    "HitFilter",
    "HitSummary",
    "aligned_pair",
    "bars_of_query",
    "facts",
    "hit_conditions",
    "open_sequence_search",
    "score_histogram",
    "summary",
]

_E_VALUE = Column("e_value", "", "", "e_value")

_PAIR = (
    *("query", "subject", "description", "query_start", "subject_start", "aligned_query", "aligned_middle", "aligned_subject"),
    *("score", "bit_score", "e_value", "identity", "positives", "gap_openings", "alignment_length", "query_coverage"),
)
_MOST_BARS = 500
_BINS, _LEAST_BINS = 60, 10
_LEAST_SEEN = 0.05
"""Subjects expected at a score, up to which a curve is worth drawing."""
_BEYOND = 1.6


def open_sequence_search(project: Project, run_id: str | None) -> FinishedRun:
    """Open a finished sequence search, the last one where `run_id` is None.

    Raises
    ------
    InputError, StorageError : there is none, or its tables are missing or damaged.
    """
    return open_finished_run(project, SEQUENCE_SEARCH, run_id, more=("score_counts",), optional=("score_expectations",))


@dataclass(frozen=True)
class HitSummary:
    """What a sequence search found. `query`: one of them. `n_subjects`: sequences of the database.

    `lambda_`, `K`, `statistics`: of its E-values.
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
    """Count hits and queries."""
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


def facts(run: FinishedRun, found: HitSummary, locale: QLocale) -> tuple[str, ...]:
    """What was searched with what, for the header: files, scoring, statistics, time and device."""
    files = [", ".join(path.name for kind, path in run.inputs if kind == wanted) for wanted in ("queries", "database")]
    values = run.parameters
    scoring = f"{values['matrix']}, gaps {values['gap_open']}/{values['gap_extend']}"
    parts = [" against ".join(files), scoring]
    if found.statistics and found.statistics != "none":
        numbers = (locale.toString(number, "g", 3) for number in (found.lambda_, found.K))
        parts.append("lambda {}, K {} ".format(*numbers) + f"({found.statistics})")
    if run.run.finished is not None:
        seconds = (run.run.finished - run.run.started).total_seconds()
        parts.append(f"{locale.toString(seconds, 'f', 1)} s on {run.run.device or 'cpu'}")
    return tuple(parts)


@dataclass(frozen=True)
class HitFilter:
    """What the user wants to see of the hits. None, 0: any. Identity and coverage are parts of one."""

    text: str = ""
    e_value: float | None = None
    identity: float = 0.0
    coverage: float = 0.0


def hit_conditions(chosen: HitFilter) -> list[Condition]:
    """The conditions that a filter puts on hits."""
    conditions = []
    if chosen.e_value is not None:
        conditions.append(Condition("e_value <= ?", (chosen.e_value,)))
    if chosen.identity > 0:
        conditions.append(Condition("identity >= ?", (chosen.identity,)))
    if chosen.coverage > 0:
        conditions.append(Condition("query_coverage >= ?", (chosen.coverage,)))
    if text := chosen.text.strip().lower():
        conditions.append(
            # A tab is shown as the blank that is typed for it.
            Condition(
                "contains(lower(subject), ?) OR contains(translate(lower(description), chr(9), ' '), ?) OR contains(lower(query), ?)",
                (text, text, text),
            )
        )
    return conditions


def bars_of_query(source: TableSource, query: str, index: int, length: int, conditions: Sequence[Condition]) -> Bars:
    """The best hits of a query that satisfy conditions, to be drawn along it."""
    wanted = [*hits_of_query(index), *conditions]
    where = " AND ".join(f"({one.sql})" for one in wanted)
    parameters = [value for one in wanted for value in one.parameters]
    rows = source.query(
        "SELECT file_row_number AS row, subject, description, query_start, query_end, bit_score, e_value, identity, "
        f"count(*) OVER () AS total FROM hits WHERE {where} ORDER BY row LIMIT {_MOST_BARS}",
        parameters,
    ).to_pylist()
    bars = tuple(
        Bar(
            row["row"],
            row["subject"],
            row["description"],
            row["query_start"],
            row["query_end"],
            row["bit_score"],
            row["e_value"],
            row["identity"],
        )
        for row in rows
    )
    return Bars(query, length, bars, rows[0]["total"] if rows else 0)


def aligned_pair(source: TableSource, row: int) -> AlignedPair:
    """The alignment of the hit at a place of the table."""
    return _pair(source.values(np.array([row]), _PAIR).to_pylist()[0], QLocale())


def _pair(values: dict[str, Any], locale: QLocale) -> AlignedPair:
    columns = values["alignment_length"]
    quality = (
        f"{locale.toString(values['bit_score'], 'f', 1)} bits (score {locale.toString(values['score'])})",
        f"E-value {shown_text(_E_VALUE, values['e_value'], locale)}",
        f"identity {locale.toString(values['identity'] * 100, 'f', 1)} % of {locale.toString(columns)}",
    )
    more = (
        f"positives {locale.toString(values['positives'] / max(columns, 1) * 100, 'f', 1)} %",
        _gap_text(values, locale),
        f"coverage {locale.toString(values['query_coverage'] * 100, 'f', 0)} % of the query",
    )
    return AlignedPair(
        values["query"], values["subject"], values["description"] or "", values["query_start"], values["subject_start"],
        values["aligned_query"], values["aligned_middle"], values["aligned_subject"], (", ".join(quality), ", ".join(more)),
    )  # fmt: skip


def _gap_text(values: dict[str, Any], locale: QLocale) -> str:
    """Runs of gaps and the residues in them, since ``gaps`` alone is the one to some programs and the other to BLAST."""
    openings, residues = values["gap_openings"], sum(values[line].count("-") for line in ("aligned_query", "aligned_subject"))
    if not openings:
        return "no gaps"
    counted = ((openings, "gap opening"), (residues, "residue"))
    parts = [f"{locale.toString(number)} {name}{'' if number == 1 else 's'}" for number, name in counted]
    return f"{parts[0]} ({parts[1]})"


def score_histogram(source: TableSource, query: str, index: int, *, has_expectations: bool, is_log: bool) -> Histogram:
    """Scores of all subjects with a query, what chance lets one expect by the search's statistics, and the least score of a hit.

    The bins end where chance gives nothing any more; how many subjects score higher is said in words.
    """
    counted = source.query("SELECT score, n_subjects FROM score_counts WHERE query_index = ? ORDER BY score", [index])
    scores, counts = (counted[name].to_numpy().astype(np.int64) for name in ("score", "n_subjects"))
    places, expected = np.empty(0), np.empty(0)
    if has_expectations:
        chance = source.query(
            "SELECT score, n_expected FROM score_expectations WHERE query_index = ? AND n_expected >= ? ORDER BY score",
            [index, _LEAST_SEEN],
        )
        places, expected = chance["score"].to_numpy().astype(np.float64), chance["n_expected"].to_numpy()
    title, x_title, y_title = f"Scores of {query}", "Score", "Sequences"
    if not len(scores):
        return Histogram(title, x_title, y_title, np.array([0.0, 1.0]), (("Sequences", np.zeros(1, np.int64)),), None, "No scores.")
    low = int(min(scores[0], places[0] if len(places) else scores[0]))
    by_chance = float(places[-1]) if len(places) else float(np.percentile(np.repeat(scores, np.minimum(counts, 1000)), 99))
    high = min(int(scores[-1]), low + int(_BEYOND * (by_chance - low)))
    high = max(high, low + _LEAST_BINS - 1)
    width = max(1, -(-(high + 1 - low) // _BINS))
    edges = np.arange(low, high + width + 1, width, dtype=np.float64)
    within = scores < edges[-1]
    in_bins, _ = np.histogram(scores[within], edges, weights=counts[within])
    n_beyond = int(counts[~within].sum())
    locale = QLocale()
    note = f"{locale.toString(n_beyond)} score higher, up to {locale.toString(int(scores[-1]))} →" if n_beyond else ""
    least = source.query("SELECT min(score) AS least FROM hits WHERE query_index = ?", [index])["least"][0].as_py()
    mark = (float(least), "hits from") if least is not None and least < edges[-1] else None
    curve = None
    if len(places):
        # A bin of several scores holds what is expected of all of them, and is drawn at its middle.
        curve = ("Expected by chance", places + 0.5, expected * width)
    series = (("Sequences", in_bins.astype(np.int64)),)
    return Histogram(title, x_title, y_title, edges, series, mark, "", curve=curve, is_log=is_log, note=note, is_whole=True)
