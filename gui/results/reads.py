"""The words of a read alignment in the window: of its header and its histograms, and the alignment of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale

from engine.errors import ProteoscopeError
from engine.sequences.matrices import Matrix, read_matrix
from engine.views.finished_run import FinishedRun
from engine.views.histograms import Histogram
from engine.views.reads import ShownText
from engine.views.tables import TableSource
from gui.alignment.read_pair import ReadPair
from gui.results.facts import files_facts, time_facts

__all__ = ["ReadRow", "matrix_of", "read_facts", "read_row", "told_missing"]

_DRAWN_FROM = frozenset({"md", "pattern_row"})
"""Columns without which no alignment can be drawn; the first runs did not keep them."""
_NOT_KEPT = "This run did not keep what an alignment is drawn from. Do the search again to see it."
_DETAILS = (
    *("text", "pattern", "score", "gaps", "identity", "text_start", "text_end", "pattern_start", "pattern_end", "strand", "cigar"),
    *("text_length", "pattern_length", "mapping_quality", "mate", "md", "pattern_row", "text_row"),
)
_MODES = {"prefix": "with a prefix of the text", "within": "with any part of the text", "local": "parts of both"}


def told_missing(found: Histogram, locale: QLocale) -> Histogram:
    """A histogram whose axis tells how many rows have no alignment."""
    if not found.n_missing:
        return found
    return replace(found, x_title=f"{found.x_title}; {locale.toString(found.n_missing)} without an alignment")


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
    gaps = f"at most {locale.toString(asked['maximum_gaps'])} gap{'' if asked['maximum_gaps'] == 1 else 's'}"
    scores = asked["matrix"] or f"match {asked['match']}, mismatch {asked['mismatch']}"
    costs = f"gaps {asked['gap_open']} + {asked['gap_extend']} a letter"
    strands = ", both strands" if asked["strands"] == "both" else ""
    files = [one for one in files_facts(run) if not one.startswith("matrix:")]
    return (*files, f"{_MODES.get(asked['mode'], asked['mode'])}, {gaps}{strands}", f"{scores}, {costs}", *time_facts(run))
