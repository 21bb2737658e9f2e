"""The tables of a structure search as the window shows them: summary, filter, counts, and the alignment of a hit with its coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLocale

from engine.errors import ProteoscopeError
from engine.structure_search.hit_chains import FoundChain, HitChains, trace_geometry
from gui.alignment.structure_pair import ChainFacts, StructurePair
from gui.results.facts import time_facts
from gui.results.finished_run import FinishedRun
from gui.results.query_hits_view import files_text, hits_of_query
from gui.structure.traces import trace_of_hit
from gui.tables.source import Condition, TableSource

__all__ = [
    "THRESHOLDS",
    "StructureFilter",
    "StructureSummary",
    "Threshold",
    "ThresholdColumns",
    "hit_of_row",
    "structure_conditions",
    "structure_facts",
    "structure_pair",
    "structure_summary",
    "threshold_columns",
]

HIT_COLUMNS = (
    *("query", "target", "description", "score", "z_score", "aligned_length", "identity", "rmsd", "tm_score_query", "tm_score_target"),
    *("query_coverage", "target_coverage", "phase1_ratio", "rotation", "translation", "cigar", "query_index", "target_index"),
    *("target_length", "target_sequence", "target_states"),
)


@dataclass(frozen=True)
class Threshold:
    """A bound that the user may put on a column of the hits.

    `is_least`: the column must be at least this, at most where it is not. `scale`: what one unit of the box is in the table.
    """

    column: str
    label: str
    name: str
    help: str
    step: float
    first: float
    is_least: bool = True
    scale: float = 1.0

    def condition(self, value: float) -> Condition:
        """What it asks of a row; not-a-number never passes."""
        sign = ">=" if self.is_least else "<="
        return Condition(f"isfinite({self.column}) AND {self.column} {sign} ?", (value * self.scale,))


THRESHOLDS = (
    Threshold("z_score", "&z-score ≥", "Least z-score",
              "Hides hits whose score is fewer standard deviations above that of unrelated chains; related chains mostly have 5 or more",
              1.0, 5.0),
    Threshold("tm_score_query", "&TM-score ≥", "Least TM-score by the query's length",
              "Hides hits whose superposition covers the query worse; above 0.5 the fold is mostly the same", 0.05, 0.5),
    Threshold("query_coverage", "Co&verage % ≥", "Least coverage of the query in percent",
              "Hides hits that align with a smaller part of the query's residues", 5.0, 50.0, scale=0.01),
    Threshold("rmsd", "RM&SD Å ≤", "Greatest RMSD in ångström",
              "Hides hits whose aligned Cα lie farther apart; it is smaller the fewer pairs there are, so look at the coverage too",
              0.5, 3.0, is_least=False),
)  # fmt: skip
"""In the order in which they stand in the filter."""


@dataclass(frozen=True)
class StructureFilter:
    """What the user wants to see of the hits. `bounds`: by column, in the units of the boxes; what is missing is any."""

    text: str = ""
    bounds: Mapping[str, float] | None = None


def structure_conditions(chosen: StructureFilter) -> list[Condition]:
    """The conditions that a filter puts on hits."""
    bounds = chosen.bounds or {}
    conditions = [one.condition(bounds[one.column]) for one in THRESHOLDS if one.column in bounds]
    if text := chosen.text.strip().lower():
        conditions.append(
            # A tab is shown as the blank that is typed for it.
            Condition(
                "contains(lower(target), ?) OR contains(translate(lower(description), chr(9), ' '), ?) OR contains(lower(query), ?)",
                (text, text, text),
            )
        )
    return conditions


@dataclass(frozen=True)
class ThresholdColumns:
    """The columns of some hits that thresholds are put on, each sorted, so that a count is a search."""

    total: int
    columns: Mapping[str, NDArray[np.float64]]

    def count(self, threshold: Threshold, value: float | None) -> int:
        """How many hits a threshold alone keeps; None is any."""
        if value is None:
            return self.total
        column, bound = self.columns[threshold.column], value * threshold.scale
        if threshold.is_least:
            return len(column) - int(np.searchsorted(column, bound, "left"))
        return int(np.searchsorted(column, bound, "right"))


def threshold_columns(source: TableSource, query: int | None) -> ThresholdColumns:
    """Read the columns of a query's hits, of all where it is None."""
    conditions = [] if query is None else hits_of_query(query)
    where = f" WHERE {conditions[0].sql}" if conditions else ""
    names = [one.column for one in THRESHOLDS]
    found = source.query(f"SELECT {', '.join(names)} FROM hits{where}", [value for one in conditions for value in one.parameters])
    columns = {}
    for name in names:
        values = found[name].to_numpy().astype(np.float64)
        columns[name] = np.sort(values[np.isfinite(values)])
    return ThresholdColumns(len(found), columns)


@dataclass(frozen=True)
class StructureSummary:
    """What a structure search found. `query`: one of them. `n_aligned`: pairs of chains that phase 2 looked at."""

    query: str
    n_hits: int
    n_queries: int
    n_with_hits: int
    n_aligned: int


def structure_summary(source: TableSource) -> StructureSummary:
    """Count hits and queries."""
    row = source.query(
        "SELECT any_value(query) AS query, sum(n_hits) AS hits, count(*) AS n, count(*) FILTER (n_hits > 0) AS found, "
        "sum(n_aligned) AS aligned FROM queries"
    ).to_pylist()[0]
    return StructureSummary(row["query"] or "", int(row["hits"] or 0), row["n"], row["found"], int(row["aligned"] or 0))


def structure_facts(run: FinishedRun, locale: QLocale) -> tuple[str, ...]:
    """What was searched with what, for the header: files, mode, time and device."""
    values = run.parameters
    weights = ", ".join(locale.toString(float(one), "g", 3) for one in values["weights"])
    threshold = float(values["qualification_threshold"])
    parts = [files_text(run.inputs), f"{values['mode']} mode"]
    if any(float(one) != 1.0 for one in values["weights"]):
        parts.append(f"weights {weights}")
    parts.append(f"qualification threshold {locale.toString(threshold, 'g', 3)}" if threshold > 0 else "all chains aligned")
    return (*parts, *time_facts(run))


def hit_of_row(source: TableSource, row: int) -> dict[str, Any]:
    """The hit at a place of the table, with the residues, states and length of its query."""
    hit: dict[str, Any] = source.values(np.array([row]), HIT_COLUMNS).to_pylist()[0]
    query = source.query(
        "SELECT sequence AS query_sequence, states AS query_states, length AS query_length FROM queries WHERE query_index = ?",
        [hit["query_index"]],
    ).to_pylist()
    return {**hit, **query[0]}


def structure_pair(hit: Mapping[str, Any], chains: HitChains) -> StructurePair:
    """The alignment of a hit. Where the files are gone it has neither distances nor the authors' numbers, and says so."""
    facts_of = [ChainFacts.of_states(hit["query_states"]), ChainFacts.of_states(hit["target_states"])]
    found: list[FoundChain | None] = [None, None]
    notes = []
    reads = (
        lambda: chains.query(hit["query"], hit["query_sequence"]),
        lambda: chains.target(hit["target"], hit["target_sequence"], hit["target_index"]),
    )
    for k, read in enumerate(reads):
        try:
            chain = read()
        except ProteoscopeError as error:
            notes.append(str(error))
            continue
        found[k], facts_of[k] = chain, _facts_of(chain, facts_of[k].states)
    distances, both = None, None
    if found[0] is not None and found[1] is not None:
        both = found[0], found[1]
        pairs = trace_of_hit(hit, *both).pairs
        distances = None if pairs is None else pairs.distance
    note = f"Without distances and the authors' numbers: {notes[0]}" if notes else ""
    return StructurePair.of(
        (hit["query"], hit["target"], hit["description"] or ""), (hit["query_sequence"], hit["target_sequence"]), hit["cigar"], distances,
        (facts_of[0], facts_of[1]), (*_facts(hit, QLocale()), *([note] if note else [])), hit, both,
    )  # fmt: skip


def _facts_of(found: FoundChain, states: str) -> ChainFacts:
    chains = found.chains
    insertion = chains.insertion.tolist()
    labels = tuple(
        f"{number}{chr(code) if code else ''}" for number, code in zip(chains.author_number.tolist(), insertion, strict=True)
    )  # fmt: skip
    length, angle = trace_geometry(chains.position)
    return ChainFacts(states, labels, length, angle, chains.confidence)


def _facts(hit: Mapping[str, Any], locale: QLocale) -> tuple[str, str]:
    """How well the two fit, in two lines; each part stands in one piece."""

    def number(value: float, decimals: int) -> str:
        return locale.toString(float(value), "f", decimals)

    pairs = locale.toString(hit["aligned_length"])
    fit = (
        f"TM-score {number(hit['tm_score_query'], 3)} by the query's length ({locale.toString(hit['query_length'])})",
        f"{number(hit['tm_score_target'], 3)} by the target's ({locale.toString(hit['target_length'])})",
        f"RMSD {number(hit['rmsd'], 2)} Å over {pairs} pair{'' if hit['aligned_length'] == 1 else 's'}",
    )
    more = (
        f"identity {number(hit['identity'] * 100, 1)} % of the pairs",
        f"coverage {number(hit['query_coverage'] * 100, 0)} % of the query",
        f"{number(hit['target_coverage'] * 100, 0)} % of the target",
        f"z-score {number(hit['z_score'], 1)}",
    )
    return ", ".join(fit), ", ".join(more)
