"""Texts for the header and the alignment of a structure search's results."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QLocale

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.structure_hits import StructureSummary
from proteoscope.engine.views.structure_pair import StructurePair
from proteoscope.gui.results.facts import time_facts
from proteoscope.gui.results.query_hits_view import files_text
from proteoscope.gui.tables.columns import shown_text

_E_VALUE, _SAME_FOLD = Column("e_value", "", "", "e_value"), Column("same_fold_probability", "", "", "percent")


def structure_facts(run: FinishedRun, locale: QLocale) -> tuple[str, ...]:
    """Return texts for the header: input files, mode, duration and device."""
    values = run.parameters
    weights = ", ".join(locale.toString(float(value), "g", 3) for value in values["weights"])
    threshold = float(values["qualification_threshold"])
    parts = [files_text(run.inputs), f"{values['mode']} mode"]
    if any(float(value) != 1.0 for value in values["weights"]):
        parts.append(f"weights {weights}")
    parts.append(f"qualification threshold {locale.toString(threshold, 'g', 3)}" if threshold > 0 else "all chains aligned")
    return (*parts, *time_facts(run))


def chance_fact(summary: StructureSummary, locale: QLocale) -> tuple[str, ...]:
    """Return a warning if all hits are as expected by chance, otherwise ()."""
    if not summary.is_all_chance:
        return ()
    best = []
    if summary.best_e_value is not None:
        best.append(f"the best E-value is {shown_text(_E_VALUE, summary.best_e_value, locale)}")
    if summary.best_probability is not None:
        best.append(f"the highest probability of the same fold is {shown_text(_SAME_FOLD, summary.best_probability, locale)} %")
    return (f"All hits are as expected by chance: {', '.join(best)}",)


def with_facts(pair: StructurePair) -> StructurePair:
    """Return the alignment with lines of text about its scores, and with its note about missing structures, if any."""
    return replace(pair, facts=(*_facts(pair.hit, QLocale()), *([pair.note] if pair.note else [])))


def _facts(hit: Mapping[str, Any], locale: QLocale) -> tuple[str, str]:
    """Return two lines of text about the superposition: fit (TM-score, RMSD), and identity, coverage and significance."""

    def number(value: float, decimals: int) -> str:
        return locale.toString(float(value), "f", decimals)

    pairs = locale.toString(hit["aligned_length"])
    fit = (
        f"TM-score {number(hit['tm_score_query'], 3)} normalised by the query's length ({locale.toString(hit['query_length'])})",
        f"{number(hit['tm_score_target'], 3)} by the target's ({locale.toString(hit['target_length'])})",
        f"RMSD {number(hit['rmsd'], 2)} Å over {pairs} pair{'' if hit['aligned_length'] == 1 else 's'}",
    )
    more = (
        f"identity {number(hit['identity'] * 100, 1)} % of the pairs",
        f"coverage {number(hit['query_coverage'] * 100, 0)} % of the query",
        f"{number(hit['target_coverage'] * 100, 0)} % of the target",
        *([f"same fold with {fold} %"] if (fold := shown_text(_SAME_FOLD, hit["same_fold_probability"], locale)) else []),
        *([f"E-value {e_value}"] if (e_value := shown_text(_E_VALUE, hit["e_value"], locale)) else []),
        f"z-score {number(hit['z_score'], 1)}",
    )
    return ", ".join(fit), ", ".join(more)
