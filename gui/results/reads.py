"""Texts for the header, histograms and alignment in the results of a read alignment."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QLocale

from proteoscope.engine.views.finished_run import FinishedRun
from proteoscope.engine.views.histograms import Histogram
from proteoscope.engine.views.reads import ReadRow
from proteoscope.gui.results.facts import files_facts, time_facts

_MODES = {"prefix": "with a prefix of the reference", "within": "with any part of the reference", "local": "parts of both"}


def with_missing_count(histogram: Histogram, locale: QLocale) -> Histogram:
    """Return a histogram whose axis title includes the number of rows without an alignment."""
    if not histogram.n_missing:
        return histogram
    return replace(histogram, x_title=f"{histogram.x_title}; {locale.toString(histogram.n_missing)} without an alignment")


def with_facts(row: ReadRow) -> ReadRow:
    """Return the row with a line of text about its alignment: score, identity, gaps and positions."""
    return row if row.pair is None else replace(row, pair=replace(row.pair, facts=_facts_of(row.pair.hit, QLocale())))


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
    for name, title in (("text", "reference"), ("pattern", "read")):
        start, end, length = (locale.toString(values[f"{name}_{part}"]) for part in ("start", "end", "length"))
        where.append(f"{title} {start} to {end} of {length}")
    if values.get("mate") is not None:
        where.append(f"mate {values['mate']}")
    # A single text, which is wrapped between its parts if necessary.
    return (", ".join([*how_good, *where]),)


def read_facts(run: FinishedRun) -> tuple[str, ...]:
    """Return texts for the header of a read alignment: input files, alignment mode, scores and costs, duration and device."""
    parameters, locale = run.parameters, QLocale()
    gaps = f"at most {locale.toString(parameters['maximum_gaps'])} gap{'' if parameters['maximum_gaps'] == 1 else 's'}"
    scores = parameters["matrix"] or f"match {parameters['match']}, mismatch {parameters['mismatch']}"
    costs = f"gaps {parameters['gap_open']} + {parameters['gap_extend']} per base"
    strands = ", both strands" if parameters["strands"] == "both" else ""
    names = {kind: names for kind, _, names in (fact.partition(": ") for fact in files_facts(run))}
    files = [f"{title}: {names[kind]}" for kind, title in (("texts", "reference"), ("patterns", "reads")) if kind in names]
    return (*files, f"{_MODES.get(parameters['mode'], parameters['mode'])}, {gaps}{strands}", f"{scores}, {costs}", *time_facts(run))
