"""Data of the view of a structure search: which hits, how many each threshold keeps, and a hit with its query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structure_search.hit_chains import HitChains
from proteoscope.engine.views.conditions import Condition, all_of, compares, contains_in, is_finite
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.hits import hits_of_query
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "BOUNDED",
    "StructureFilter",
    "StructureSummary",
    "ThresholdColumns",
    "chains_of_run",
    "hit_of_row",
    "structure_conditions",
    "structure_summary",
    "threshold_columns",
]

BOUNDED: dict[str, Literal[">=", "<="]] = {
    "same_fold_probability": ">=",
    "z_score": ">=",
    "tm_score_query": ">=",
    "query_coverage": ">=",
    "rmsd": "<=",
}
"""The columns of hits that a filter bounds, and how."""
_EVEN = 0.5
HIT_COLUMNS = (
    *("query", "target", "description", "score", "z_score", "e_value", "same_fold_probability"),
    *("aligned_length", "identity", "rmsd", "tm_score_query", "tm_score_target"),
    *("query_coverage", "target_coverage", "phase1_ratio", "rotation", "translation", "cigar", "query_index", "target_index"),
    *("target_length", "target_sequence", "target_states"),
)


@dataclass(frozen=True)
class StructureFilter:
    """Which hits to see. `bounds`: of the columns of `BOUNDED`, in the table's units (parts of one, ångström)."""

    text: str = ""
    bounds: Mapping[str, float] = field(default_factory=dict)


def structure_conditions(chosen: StructureFilter) -> list[Condition]:
    """The conditions that a filter puts on hits; not-a-number never passes."""
    bounds = [
        all_of((is_finite(column), compares(column, sign, chosen.bounds[column])))
        for column, sign in BOUNDED.items()
        if column in chosen.bounds
    ]
    return [*bounds, *contains_in(("target", "description", "query"), chosen.text)]


@dataclass(frozen=True)
class ThresholdColumns:
    """The columns of some hits that thresholds are put on, each ascending and without what is not finite, so that a count is a search.

    Attributes
    ----------
    total : hits. columns : by name, (k,) float64 with k at most `total`.
    """

    total: int
    columns: Mapping[str, NDArray[np.float64]]

    def count(self, column: str, bound: float | None) -> int:
        """How many hits a bound of a column alone keeps, in the table's unit; None is any."""
        if bound is None:
            return self.total
        values = self.columns[column]
        if BOUNDED[column] == ">=":
            return len(values) - int(np.searchsorted(values, bound, "left"))
        return int(np.searchsorted(values, bound, "right"))


def threshold_columns(source: TableSource, query: int | None) -> ThresholdColumns:
    """Read the columns of a query's hits, of all where it is None. `source`: of the hits."""
    found = source.columns(list(BOUNDED), [] if query is None else hits_of_query(query))
    columns = {}
    for name in BOUNDED:
        values = found[name].to_numpy().astype(np.float64)
        columns[name] = np.sort(values[np.isfinite(values)])
    return ThresholdColumns(len(found), columns)


@dataclass(frozen=True)
class StructureSummary:
    """Results of a structure search. `query`: one of them. `n_aligned`: pairs of chains that phase 2 looked at.

    `best_e_value`, `best_probability`: the smallest E-value and the greatest probability of the same fold of all hits; None where none is
    known.
    """

    query: str
    n_hits: int
    n_queries: int
    n_with_hits: int
    n_aligned: int
    best_e_value: float | None = None
    best_probability: float | None = None

    @property
    def is_all_chance(self) -> bool:
        """Whether chance alone gives hits as good as all of these: as many unrelated chains score as well as the best, and none has
        probably the fold of its query."""
        known = self.best_e_value is not None or self.best_probability is not None
        return self.n_hits > 0 and known and (self.best_e_value or 1.0) >= 1.0 and (self.best_probability or 0.0) < _EVEN


def structure_summary(source: TableSource) -> StructureSummary:
    """Count hits and queries."""
    row = source.query(
        "SELECT any_value(query) AS query, sum(n_hits) AS hits, count(*) AS n, count(*) FILTER (n_hits > 0) AS found, "
        "sum(n_aligned) AS aligned FROM queries"
    ).to_pylist()[0]
    best = source.query(
        "SELECT min(e_value) FILTER (isfinite(e_value)) AS e_value, "
        "max(same_fold_probability) FILTER (isfinite(same_fold_probability)) AS probability FROM hits"
    ).to_pylist()[0]
    n_aligned = int(row["aligned"] or 0)
    shares = best["e_value"], best["probability"]
    return StructureSummary(row["query"] or "", int(row["hits"] or 0), row["n"], row["found"], n_aligned, *shares)


def chains_of_run(run: FinishedRun) -> HitChains:
    """What reads the chains of a run's hits again from the files that it names; for one thread."""
    return HitChains(run.inputs, float(run.parameters["minimum_confidence"]), run.parameters["models"], run.check_input)


def hit_of_row(source: TableSource, row: int) -> dict[str, Any]:
    """The hit at a place of the table, with the residues, states and length of its query."""
    hit = source.row(row, HIT_COLUMNS)
    query = source.query(
        "SELECT sequence AS query_sequence, states AS query_states, length AS query_length FROM queries WHERE query_index = ?",
        [hit["query_index"]],
    ).to_pylist()
    return {**hit, **query[0]}
