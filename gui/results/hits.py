"""The words of a sequence search in the window: of its header, its histogram, and the alignment of a hit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from PySide6.QtCore import QLocale

from engine.project import Project
from engine.results.columns import Column
from engine.sequence_search.entry import SEQUENCE_SEARCH
from engine.views.finished_run import FinishedRun, open_finished_run
from engine.views.histograms import Histogram
from engine.views.hits import HitSummary
from engine.views.tables import TableSource
from gui.alignment.aligned_pair import AlignedPair
from gui.tables.columns import shown_text

__all__ = ["aligned_pair", "facts", "open_sequence_search", "told_beyond"]

_E_VALUE = Column("e_value", "", "", "e_value")

_PAIR = (
    *("query", "subject", "description", "query_start", "subject_start", "aligned_query", "aligned_middle", "aligned_subject"),
    *("score", "bit_score", "e_value", "identity", "positives", "gap_openings", "alignment_length", "query_coverage"),
)


def open_sequence_search(project: Project, run_id: str | None) -> FinishedRun:
    """Open a finished sequence search, the last one where `run_id` is None.

    Raises
    ------
    InputError, StorageError : there is none, or its tables are missing or damaged.
    """
    return open_finished_run(project, SEQUENCE_SEARCH, run_id, more=("score_counts",), optional=("score_expectations",))


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


def told_beyond(found: Histogram, locale: QLocale) -> Histogram:
    """A histogram of scores with a note of those that lie beyond its bins."""
    if not found.n_beyond or found.highest is None:
        return found
    return replace(found, note=f"{locale.toString(found.n_beyond)} score higher, up to {locale.toString(int(found.highest))} →")
