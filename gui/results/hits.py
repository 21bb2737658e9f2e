"""Texts for the header, histogram and alignment of a sequence search's results."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QLocale

from proteoscope.engine.results.columns import Column
from proteoscope.engine.views.aligned_pair import AlignedPair
from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.hits import HitSummary
from proteoscope.gui.tables.columns import shown_text

_E_VALUE = Column("e_value", "", "", "e_value")


def facts(run: FinishedRun, summary: HitSummary, locale: QLocale) -> tuple[str, ...]:
    """Return texts for the header: input files, scoring, statistics, duration and device."""
    files = [", ".join(path.name for kind, path in run.inputs if kind == wanted) for wanted in ("queries", "database")]
    values = run.parameters
    scoring = f"{values['matrix']}, gaps {values['gap_open']}/{values['gap_extend']}"
    parts = [" against ".join(files), scoring]
    if summary.statistics and summary.statistics != "none":
        numbers = (locale.toString(number, "g", 3) for number in (summary.lambda_, summary.K))
        parts.append("lambda {}, K {} ".format(*numbers) + f"({summary.statistics})")
    if run.run.finished is not None:
        seconds = (run.run.finished - run.run.started).total_seconds()
        parts.append(f"{locale.toString(seconds, 'f', 1)} s on {run.run.device or 'cpu'}")
    return tuple(parts)


def with_facts(pair: AlignedPair) -> AlignedPair:
    """Return the alignment with lines of text about its score, E-value, identity, gaps and coverage."""
    values, locale = pair.hit, QLocale()
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
    return replace(pair, facts=(", ".join(quality), ", ".join(more)))


def _gap_text(values: Mapping[str, Any], locale: QLocale) -> str:
    """Return a text with the number of gap openings and the number of gap residues, since ``gaps`` alone could mean either."""
    openings, residues = values["gap_openings"], sum(values[line].count("-") for line in ("aligned_query", "aligned_subject"))
    if not openings:
        return "no gaps"
    counted = ((openings, "gap opening"), (residues, "residue"))
    parts = [f"{locale.toString(number)} {name}{'' if number == 1 else 's'}" for number, name in counted]
    return f"{parts[0]} ({parts[1]})"


def beyond_text(histogram: Histogram, locale: QLocale) -> str:
    """Return a text with the number of sequences that score above the last bin of a histogram, or ''."""
    if not histogram.n_beyond or histogram.highest is None:
        return ""
    return f"{locale.toString(histogram.n_beyond)} score higher, up to {locale.toString(int(histogram.highest))} →"
