"""Data of the view of a read alignment: filtered alignments, depth of references, and histograms of gaps and identity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.sequences.matrices import Matrix, read_matrix
from proteoscope.engine.views.conditions import Condition, compares, contains_in, given, is_missing, negated, where_clause
from proteoscope.engine.views.depth import Depth
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.read_pair import ReadPair
from proteoscope.engine.views.tables import TableSource

__all__ = [
    "NO_READS",
    "ReadFilter",
    "ReadRow",
    "ReadSummary",
    "ShownReference",
    "covers_positions",
    "gaps_histogram",
    "identity_histogram",
    "read_conditions",
    "read_depth",
    "read_row",
    "read_run_matrix",
    "read_summary",
]

_MAXIMUM_TEXTS = 200
"""Maximum number of references that the depth plot offers; the reference of the selected row is always included."""
_MAXIMUM_BINS = 60
NO_READS = "The run has no table of reads, which is needed to draw alignments. Run the search again to see the alignments."
"""Message for projects that lack the table of reads."""
_DETAILS = (
    *("text", "pattern", "score", "gaps", "identity", "text_start", "text_end", "pattern_start", "pattern_end", "strand", "cigar"),
    *("text_length", "pattern_length", "mapping_quality", "mate", "md", "pattern_row", "text_row"),
)
_WHOLE_PERCENT = 100


@dataclass(frozen=True)
class ReadFilter:
    """Filter of alignments; None means no restriction.

    Attributes
    ----------
    minimum_identity, below_identity
        Bounds of the identity in percent; the upper bound is exclusive.
    rows
        ``aligned``, ``+`` or ``-`` (strand), or ``none`` for pairs of read and reference that were compared but not aligned.
    """

    text: str = ""
    minimum_score: int | None = None
    minimum_gaps: int | None = None
    maximum_gaps: int | None = None
    minimum_identity: float | None = None
    below_identity: float | None = None
    rows: str | None = None


_ANY = ReadFilter()


def read_conditions(chosen: ReadFilter) -> list[Condition]:
    """Return the conditions of a filter on alignments."""
    # Divide as the search does, so that equal values compare as equal.
    least, below = (None if percent is None else percent / _WHOLE_PERCENT for percent in (chosen.minimum_identity, chosen.below_identity))
    conditions = given(
        *(("score", ">=", chosen.minimum_score), ("gaps", ">=", chosen.minimum_gaps), ("gaps", "<=", chosen.maximum_gaps)),
        *(("identity", ">=", least), ("identity", "<", below)),
    )
    if chosen.rows in ("+", "-"):
        conditions.append(compares("strand", "=", chosen.rows))
    elif chosen.rows is not None:
        conditions.append(negated(is_missing("text_start")) if chosen.rows == "aligned" else is_missing("text_start"))
    return [*conditions, *contains_in(("pattern", "text", "cigar"), chosen.text)]


@dataclass(frozen=True)
class ShownReference:
    """Reference whose depth can be shown; `row` is its row in the table of references."""

    row: int
    name: str
    length: int

    @property
    def condition(self) -> Condition:
        """Condition that selects the alignments to this reference; it uses the row, since several references may have the same name."""
        return compares("text_row", "=", self.row)

    def is_same(self, other: ShownReference | None) -> bool:
        """Return True if both are the same reference."""
        return other is not None and (self.row, self.name) == (other.row, other.name)


def covers_positions(text: ShownReference, first: int, last: int) -> list[Condition]:
    """Return the conditions that select alignments covering positions `first` to `last` (from 1) of a reference."""
    return [text.condition, compares("text_start", "<=", last), compares("text_end", ">=", first)]


@dataclass(frozen=True)
class ReadSummary:
    """Numbers of rows, aligned rows, references (`n_references`) and reads (`n_reads`) of a read alignment.

    Attributes
    ----------
    references
        References with the most alignments.
    filled
        Columns that are hidden by default, but have values in this run.
    """

    n_rows: int
    n_aligned: int
    n_references: int
    n_reads: int
    references: tuple[ShownReference, ...]
    filled: frozenset[str]


def read_summary(source: TableSource) -> ReadSummary:
    """Count alignments, reads and references of a run."""
    mostly_empty = ("mapping_quality", "mate")
    different = "count(DISTINCT pattern_row) AS patterns, count(DISTINCT text_row) AS texts"
    counts = ", ".join(f"count({name}) AS {name}" for name in ("text_start", *mostly_empty))
    row = source.query(f"SELECT count(*) AS n, {different}, {counts} FROM alignments").to_pylist()[0]
    filled = frozenset(name for name in mostly_empty if row[name])
    return ReadSummary(row["n"], row["text_start"], row["texts"], row["patterns"], _read_references(source), filled)


def _read_references(source: TableSource) -> tuple[ShownReference, ...]:
    """Return the references with the most alignments, in descending order."""
    rows = source.query(
        "SELECT text_row, any_value(text) AS text, any_value(text_length) AS length FROM alignments "
        f"WHERE text_start IS NOT NULL GROUP BY text_row ORDER BY count(*) DESC, min(file_row_number) LIMIT {_MAXIMUM_TEXTS}"
    ).to_pylist()
    return tuple(ShownReference(row["text_row"], row["text"], row["length"]) for row in rows)


def read_depth(source: TableSource, text: ShownReference, conditions: Iterable[Condition] = ()) -> Depth:
    """Return the depth of a reference, counting alignments that satisfy all conditions."""
    result = source.columns(("text_start", "text_end"), [text.condition, negated(is_missing("text_start")), *conditions])
    start, end = (result[name].to_numpy() for name in ("text_start", "text_end"))
    return Depth.from_ranges(text.name, text.length, start, end)


def gaps_histogram(source: TableSource, chosen: ReadFilter = _ANY) -> Histogram:
    """Return the histogram of the number of gaps of the alignments that match the filter; its limits of gaps are ignored."""
    gaps, counts, n_missing = _counted(source, "gaps", replace(chosen, minimum_gaps=None, maximum_gaps=None))
    edges = np.arange(-0.5, float(gaps.max(initial=2)) + 1.0)
    in_bins = np.histogram(gaps, edges, weights=counts)[0].astype(np.int64)
    marked = None
    if (chosen.minimum_gaps, chosen.maximum_gaps) != (None, None):
        most = edges[-1] if chosen.maximum_gaps is None else chosen.maximum_gaps + 0.5
        marked = ((chosen.minimum_gaps or 0) - 0.5, most)
    x_title, series = "Gaps of an alignment", (("Alignments", in_bins),)
    return Histogram("Gaps", x_title, "Alignments", edges, series, None, _NONE, is_whole=True, chosen=marked, n_missing=n_missing)


def identity_histogram(source: TableSource, chosen: ReadFilter = _ANY) -> Histogram:
    """Return the histogram of the identity of the alignments that match the filter; its limits of identity are ignored.

    Bins include their lower edge; the last bin also includes its upper edge.
    """
    identity, counts, n_missing = _counted(source, "identity", replace(chosen, minimum_identity=None, below_identity=None))
    low = int(np.floor(_WHOLE_PERCENT * identity.min(initial=0.95)))
    width = -(-(_WHOLE_PERCENT - low) // _MAXIMUM_BINS) or 1
    edges = np.arange(_WHOLE_PERCENT - width * -(-(_WHOLE_PERCENT - low) // width), _WHOLE_PERCENT + 1, width, dtype=np.float64)
    position = np.minimum(np.searchsorted(edges / _WHOLE_PERCENT, identity, "right") - 1, len(edges) - 2)
    in_bins = np.bincount(position, weights=counts, minlength=len(edges) - 1).astype(np.int64)
    marked = None
    if (chosen.minimum_identity, chosen.below_identity) != (None, None):
        most = float(edges[-1]) if chosen.below_identity is None else chosen.below_identity
        marked = (chosen.minimum_identity or 0.0, most)
    x_title, series = "Identical columns (%)", (("Alignments", in_bins),)
    return Histogram("Identity", x_title, "Alignments", edges, series, None, _NONE, chosen=marked, n_missing=n_missing)


_NONE = "No alignments pass the filter."


def _counted(source: TableSource, column: str, chosen: ReadFilter) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
    """Return the distinct values of a column, the count of each value, and the number of rows without a value."""
    where, parameters = where_clause(read_conditions(chosen))
    result = source.query(f"SELECT {column} AS value, count(*) AS n FROM alignments{where} GROUP BY value", parameters)
    values = result["value"].to_numpy().astype(np.float64)
    counts, is_known = result["n"].to_numpy(), np.isfinite(values)
    return values[is_known], counts[is_known], int(counts[~is_known].sum())


def read_run_matrix(run: FinishedRun) -> Matrix | None:
    """Return the scoring matrix of a run, or None if the run has none or its file is missing."""
    name = str(run.parameters.get("matrix", ""))
    try:
        return read_matrix(name) if name else None
    except ProteoscopeError:
        return None


@dataclass(frozen=True)
class ReadRow:
    """Row of the table of alignments.

    `text` and `interval` are the reference and its aligned range, or None. `pair` is the alignment; if it has the value None, `reason`
    contains the reason.
    """

    text: ShownReference | None
    interval: tuple[int, int] | None
    pair: ReadPair | None
    reason: str = ""


def read_row(source: TableSource, row: int, matrix: Matrix | None = None) -> ReadRow:
    """Read a row of the table of alignments.

    Parameters
    ----------
    matrix
        Scoring matrix that defines similar residues, from `read_run_matrix`, or None.

    Raises
    ------
    ProteoscopeError
        If the tables do not belong together, or are damaged.
    """
    values = source.row(row, _DETAILS)
    if values["text_start"] is None:
        missing = "not mapped to any reference" if values["text"] is None else f"cannot be aligned with {values['text']} with so few gaps"
        return ReadRow(None, None, None, f"{values['pattern']}: {missing}.")
    text = ShownReference(values["text_row"], values["text"], values["text_length"])
    symbols = (values["text_start"], values["text_end"])
    if "patterns" not in source.paths:
        return ReadRow(text, symbols, None, NO_READS)
    pattern = source.sibling("patterns").values(np.array([values["pattern_row"]]), ("sequence", "qualities")).to_pylist()
    if not pattern:
        raise ProteoscopeError(f"{values['pattern']}: its sequence is not in the run's table of reads. Run the search again.")
    names = (values["pattern"], values["text"], "(with the reverse complement)" if values["strand"] == "-" else "")
    return ReadRow(text, symbols, ReadPair.from_row(names, pattern[0]["sequence"], pattern[0]["qualities"] or "", values, matrix))
