"""Data of the view of a structure search: filtered hits, numbers of hits by threshold, and chains of hits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.structure_search.hit_chains import HitChains
from proteoscope.engine.views.conditions import Condition, all_of, compares, contains_in, is_finite
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.hits import select_query_hits
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "BOUNDED",
    "StructureFilter",
    "StructureSummary",
    "ThresholdColumns",
    "open_hit_chains",
    "read_hit_row",
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
"""Columns of hits to which a filter applies bounds, with the operator of the comparison."""
_EVEN = 0.5
HIT_COLUMNS = (
    *("query", "target", "description", "score", "z_score", "e_value", "same_fold_probability"),
    *("aligned_length", "identity", "rmsd", "tm_score_query", "tm_score_target"),
    *("query_coverage", "target_coverage", "phase1_ratio", "rotation", "translation", "cigar", "query_index", "target_index"),
    *("target_length", "target_sequence", "target_states"),
)


@dataclass(frozen=True)
class StructureFilter:
    """Filter of hits; `bounds` are the bounds of the columns in `BOUNDED`, in the units of the table (fractions, ångström)."""

    text: str = ""
    bounds: Mapping[str, float] = field(default_factory=dict)


def structure_conditions(chosen: StructureFilter) -> list[Condition]:
    """Return the conditions of a filter on hits; NaN satisfies no bound."""
    bounds = [
        all_of((is_finite(column), compares(column, sign, chosen.bounds[column])))
        for column, sign in BOUNDED.items()
        if column in chosen.bounds
    ]
    return [*bounds, *contains_in(("target", "description", "query"), chosen.text)]


@dataclass(frozen=True)
class ThresholdColumns:
    """Sorted values of the columns `BOUNDED`, in which `count` finds the number of hits within a bound by binary search.

    Attributes
    ----------
    total
        Number of hits.
    columns
        Finite values by column name, ascending, shape (k,), float64.
    """

    total: int
    columns: Mapping[str, NDArray[np.float64]]

    def count(self, column: str, bound: float | None) -> int:
        """Return the number of hits within the bound of a column, in the unit of the table; None means no bound."""
        if bound is None:
            return self.total
        values = self.columns[column]
        if BOUNDED[column] == ">=":
            return len(values) - int(np.searchsorted(values, bound, "left"))
        return int(np.searchsorted(values, bound, "right"))


def threshold_columns(source: TableSource, query: int | None) -> ThresholdColumns:
    """Read the columns in `BOUNDED` of the hits of a query, or of all hits for None; `source` is the table of hits."""
    result = source.columns(list(BOUNDED), [] if query is None else select_query_hits(query))
    columns = {}
    for name in BOUNDED:
        values = result[name].to_numpy().astype(np.float64)
        columns[name] = np.sort(values[np.isfinite(values)])
    return ThresholdColumns(len(result), columns)


@dataclass(frozen=True)
class StructureSummary:
    """Counts and best scores of a structure search; `query` is the name of any query.

    Attributes
    ----------
    n_aligned
        Number of pairs of chains aligned in phase 2.
    best_e_value, best_probability
        Minimum E-value and maximum same-fold probability of all hits, or None.
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
        """True if all hits may be due to chance: the best E-value is 1 or more, and no same-fold probability reaches 50 %."""
        is_rated = self.best_e_value is not None or self.best_probability is not None
        return self.n_hits > 0 and is_rated and (self.best_e_value or 1.0) >= 1.0 and (self.best_probability or 0.0) < _EVEN


def structure_summary(source: TableSource) -> StructureSummary:
    """Return the counts and best scores of a search; `source` is any open table of the run."""
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


def open_hit_chains(run: FinishedRun) -> HitChains:
    """Return a reader of the chains of hits from the input files of the run; only one thread may use it."""
    return HitChains(run.inputs, float(run.parameters["minimum_plddt"]), run.parameters["models"], run.check_input)


def read_hit_row(source: TableSource, row: int) -> dict[str, Any]:
    """Return the values of a hit, with sequence, secondary structure and length of its query."""
    hit = source.row(row, HIT_COLUMNS)
    query = source.query(
        "SELECT sequence AS query_sequence, states AS query_states, length AS query_length FROM queries WHERE query_index = ?",
        [hit["query_index"]],
    ).to_pylist()
    return {**hit, **query[0]}
