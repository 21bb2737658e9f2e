"""The table of a read alignment as the window shows it: filter, texts, depth, distributions, and the alignment of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale

from engine.errors import ProteoscopeError
from engine.sequences.matrices import Matrix, read_matrix
from gui.alignment.read_pair import ReadPair
from gui.plots.depth import Depth
from gui.plots.distributions import Histogram
from gui.results.facts import files_facts, time_facts
from gui.results.finished_run import FinishedRun
from gui.tables.source import Condition, TableSource

__all__ = [
    "ReadFilter", "ReadRow", "ReadSummary", "ShownText", "depth_of", "gaps_histogram", "identity_histogram", "matrix_of", "of_place",
    "read_conditions", "read_facts", "read_row", "read_summary",
]  # fmt: skip

_DRAWN_FROM = frozenset({"md", "pattern_row"})
"""Columns without which no alignment can be drawn; the first runs did not keep them."""
_NOT_KEPT = "This run did not keep what an alignment is drawn from. Do the search again to see it."
_DETAILS = (
    *("text", "pattern", "score", "gaps", "identity", "text_start", "text_end", "pattern_start", "pattern_end", "strand", "cigar"),
    *("text_length", "pattern_length", "mapping_quality", "mate", "md", "pattern_row", "text_row"),
)
_MOST_TEXTS = 200
"""That are offered for the depth; the text of the chosen row is shown whichever it is."""
_MOST_BINS = 60
_WHOLE_PERCENT = 100
_MODES = {"prefix": "with a prefix of the text", "within": "with any part of the text", "local": "parts of both"}


@dataclass(frozen=True)
class ReadFilter:
    """What the user wants to see of the alignments; None bounds nothing.

    `least_identity` and `below_identity` are in percent, the second one is not included. `rows`: ``aligned``, ``+`` or ``-`` (the
    strand), or ``none`` for pairs without an alignment.
    """

    text: str = ""
    least_score: int | None = None
    least_gaps: int | None = None
    most_gaps: int | None = None
    least_identity: float | None = None
    below_identity: float | None = None
    rows: str | None = None


def read_conditions(chosen: ReadFilter) -> list[Condition]:
    """The conditions that a filter puts on alignments."""
    bounds = (
        ("score >= ?", chosen.least_score, 1),
        ("gaps >= ?", chosen.least_gaps, 1),
        ("gaps <= ?", chosen.most_gaps, 1),
        ("identity >= ?", chosen.least_identity, _WHOLE_PERCENT),
        ("identity < ?", chosen.below_identity, _WHOLE_PERCENT),
    )
    # Divided as the search divides, so that what is equal compares so.
    conditions = [Condition(sql, (value / unit if unit > 1 else value,)) for sql, value, unit in bounds if value is not None]
    if chosen.rows in ("+", "-"):
        conditions.append(Condition("strand = ?", (chosen.rows,)))
    elif chosen.rows is not None:
        conditions.append(Condition(f"text_start IS {'NOT ' if chosen.rows == 'aligned' else ''}NULL"))
    if text := chosen.text.strip().lower():
        # A tab is shown as the blank that is typed for it.
        named = [f"contains(translate(lower({column}), chr(9), ' '), ?)" for column in ("pattern", "text")]
        conditions.append(Condition(" OR ".join([*named, "contains(lower(cigar), ?)"]), (text, text, text)))
    return conditions


@dataclass(frozen=True)
class ShownText:
    """A text whose depth can be shown. `row`: of the table of texts, None where a run did not keep it."""

    row: int | None
    name: str
    length: int

    @property
    def condition(self) -> Condition:
        """What says that a row is of it: its number, since several may have one name."""
        return Condition("text = ?", (self.name,)) if self.row is None else Condition("text_row = ?", (self.row,))

    def is_same(self, other: ShownText | None) -> bool:
        """Whether both are one text."""
        return other is not None and (self.row, self.name) == (other.row, other.name)


def of_place(text: ShownText, first: int, last: int) -> list[Condition]:
    """Conditions on alignments: they cover some of these letters of a text."""
    return [text.condition, Condition("text_start <= ? AND text_end >= ?", (last, first))]


@dataclass(frozen=True)
class ReadSummary:
    """What a read alignment found: rows, those with an alignment, texts and patterns of all rows, and the texts that have most alignments.

    `known`: columns that are not shown at first, since most runs leave them empty, but not this one.
    """

    n_rows: int
    n_aligned: int
    n_texts: int
    n_patterns: int
    texts: tuple[ShownText, ...]
    known: frozenset[str]


def read_summary(source: TableSource) -> ReadSummary:
    """Count the rows of a run."""
    patterns = "pattern_row" if "pattern_row" in source.types else "pattern"
    optional = [name for name in ("mapping_quality", "mate") if name in source.types]
    different = f"count(DISTINCT {patterns}) AS patterns, count(DISTINCT {_text_of(source)}) AS texts"
    counts = ", ".join(f"count({name}) AS {name}" for name in ("text_start", *optional))
    row = source.query(f"SELECT count(*) AS n, {different}, {counts} FROM alignments").to_pylist()[0]
    known = frozenset(name for name in optional if row[name])
    return ReadSummary(row["n"], row["text_start"], row["texts"], row["patterns"], _texts_of(source), known)


def _text_of(source: TableSource) -> str:
    return "text_row" if "text_row" in source.types else "text"


def _texts_of(source: TableSource) -> tuple[ShownText, ...]:
    """The texts with the most alignments, those first."""
    by = _text_of(source)
    rows = source.query(
        f"SELECT {by} AS one, any_value(text) AS text, any_value(text_length) AS length FROM alignments "
        f"WHERE text_start IS NOT NULL GROUP BY one ORDER BY count(*) DESC, min(file_row_number) LIMIT {_MOST_TEXTS}"
    ).to_pylist()
    return tuple(ShownText(row["one"] if by == "text_row" else None, row["text"], row["length"]) for row in rows)


def depth_of(source: TableSource, text: ShownText, conditions: Iterable[Condition]) -> Depth:
    """The depth of a text by the alignments that satisfy all conditions."""
    asked = [text.condition, Condition("text_start IS NOT NULL"), *conditions]
    where = " AND ".join(f"({one.sql})" for one in asked)
    found = source.query(f"SELECT text_start, text_end FROM alignments WHERE {where}", [one for each in asked for one in each.parameters])
    start, end = (found[name].to_numpy() for name in ("text_start", "text_end"))
    return Depth.of_ranges(text.name, text.length, start, end)


def gaps_histogram(source: TableSource, chosen: ReadFilter, *, is_log: bool = False) -> Histogram:
    """How many alignments have how many gaps, of those that pass the rest of the filter."""
    gaps, counts, without = _counted(source, "gaps", replace(chosen, least_gaps=None, most_gaps=None))
    edges = np.arange(-0.5, float(gaps.max(initial=2)) + 1.0)
    in_bins = np.histogram(gaps, edges, weights=counts)[0].astype(np.int64)
    marked = None
    if (chosen.least_gaps, chosen.most_gaps) != (None, None):
        most = edges[-1] if chosen.most_gaps is None else chosen.most_gaps + 0.5
        marked = ((chosen.least_gaps or 0) - 0.5, most)
    x_title, series = f"Gaps of an alignment{without}", (("Alignments", in_bins),)
    return Histogram("Gaps", x_title, "Alignments", edges, series, None, _NONE, is_log=is_log, is_whole=True, chosen=marked)


def identity_histogram(source: TableSource, chosen: ReadFilter, *, is_log: bool = False) -> Histogram:
    """How identical the alignments are, of those that pass the rest of the filter. A bin has its lower edge; the last has both."""
    identity, counts, without = _counted(source, "identity", replace(chosen, least_identity=None, below_identity=None))
    low = int(np.floor(_WHOLE_PERCENT * identity.min(initial=0.95)))
    width = -(-(_WHOLE_PERCENT - low) // _MOST_BINS) or 1
    edges = np.arange(_WHOLE_PERCENT - width * -(-(_WHOLE_PERCENT - low) // width), _WHOLE_PERCENT + 1, width, dtype=np.float64)
    place = np.minimum(np.searchsorted(edges / _WHOLE_PERCENT, identity, "right") - 1, len(edges) - 2)
    in_bins = np.bincount(place, weights=counts, minlength=len(edges) - 1).astype(np.int64)
    marked = None
    if (chosen.least_identity, chosen.below_identity) != (None, None):
        most = float(edges[-1]) if chosen.below_identity is None else chosen.below_identity
        marked = (chosen.least_identity or 0.0, most)
    x_title, series = f"Identical columns (%){without}", (("Alignments", in_bins),)
    return Histogram("Identity", x_title, "Alignments", edges, series, None, _NONE, is_log=is_log, chosen=marked)


_NONE = "No alignments pass the filter."


def _counted(source: TableSource, column: str, chosen: ReadFilter) -> tuple[np.ndarray, np.ndarray, str]:
    """The values of a column and how often each occurs, and how many rows have none, in words."""
    conditions = read_conditions(chosen)
    where = f" WHERE {' AND '.join(f'({one.sql})' for one in conditions)}" if conditions else ""
    parameters = [value for one in conditions for value in one.parameters]
    found = source.query(f"SELECT {column} AS value, count(*) AS n FROM alignments{where} GROUP BY value", parameters)
    values = found["value"].to_numpy().astype(np.float64)
    counts, is_known = found["n"].to_numpy(), np.isfinite(values)
    n_without = int(counts[~is_known].sum())
    without = f"; {QLocale().toString(n_without)} without an alignment" if n_without else ""
    return values[is_known], counts[is_known], without


def matrix_of(run: FinishedRun) -> Matrix | None:
    """The matrix that a run scored letters by; None where it had none, or where its file is gone."""
    name = str(run.parameters.get("matrix", ""))
    try:
        return read_matrix(name) if name else None
    except ProteoscopeError:
        return None


@dataclass(frozen=True)
class ReadRow:
    """A row of the table: its text and its first and last letter there, None where it has no place; its alignment, or why there is none."""

    text: ShownText | None
    letters: tuple[int, int] | None
    pair: ReadPair | None
    said: str = ""


def read_row(source: TableSource, patterns: TableSource | None, row: int, matrix: Matrix | None) -> ReadRow:
    """Read a row of the table. `patterns`: of the run, None where it did not keep them.

    Raises
    ------
    ProteoscopeError : the tables do not belong together, or are damaged.
    """
    values = source.values(np.array([row]), [name for name in _DETAILS if name in source.types]).to_pylist()[0]
    if values["text_start"] is None:
        missing = "no place was found for it" if values["text"] is None else f"no alignment with {values['text']} with so few gaps"
        return ReadRow(None, None, None, f"{values['pattern']}: {missing}.")
    text = ShownText(values.get("text_row"), values["text"], values["text_length"])
    letters = (values["text_start"], values["text_end"])
    if patterns is None or not values.keys() >= _DRAWN_FROM:
        return ReadRow(text, letters, None, _NOT_KEPT)
    pattern = patterns.values(np.array([values["pattern_row"]]), ("letters", "qualities")).to_pylist()
    if not pattern:
        raise ProteoscopeError(f"{values['pattern']}: its letters are not among those of the run. Do the search again.")
    names = (values["pattern"], values["text"], "(with the reverse complement)" if values["strand"] == "-" else "")
    facts = _facts_of(values, QLocale())
    return ReadRow(text, letters, ReadPair.of(names, pattern[0]["letters"], pattern[0]["qualities"] or "", values, facts, matrix))


def _facts_of(values: Mapping[str, Any], locale: QLocale) -> tuple[str, ...]:
    gaps = values["gaps"]
    how_good = [
        f"score {locale.toString(values['score'])}",
        f"identity {locale.toString(values['identity'] * 100, 'f', 1)} %",
        "no gaps" if not gaps else f"{locale.toString(gaps)} gap{'' if gaps == 1 else 's'}",
    ]
    if values.get("mapping_quality") is not None:
        how_good.append(f"mapping quality {values['mapping_quality']}")
    where = []
    for name in ("text", "pattern"):
        start, end, length = (locale.toString(values[f"{name}_{part}"]) for part in ("start", "end", "length"))
        where.append(f"{name} {start} to {end} of {length}")
    if values.get("mate") is not None:
        where.append(f"mate {values['mate']}")
    # One line where there is room, broken between its parts where there is not.
    return (", ".join([*how_good, *where]),)


def read_facts(run: FinishedRun) -> tuple[str, ...]:
    """What was aligned with what, how, and how long it took."""
    asked, locale = run.parameters, QLocale()
    gaps = f"at most {locale.toString(asked['max_gaps'])} gap{'' if asked['max_gaps'] == 1 else 's'}"
    scores = asked["matrix"] or f"match {asked['match']}, mismatch {asked['mismatch']}"
    costs = f"gaps {asked['gap_open']} + {asked['gap_extend']} a letter"
    strands = ", both strands" if asked["strands"] == "both" else ""
    files = [one for one in files_facts(run) if not one.startswith("matrix:")]
    return (*files, f"{_MODES.get(asked['mode'], asked['mode'])}, {gaps}{strands}", f"{scores}, {costs}", *time_facts(run))
