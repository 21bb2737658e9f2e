"""The words of a structure search in the window: of its header, and the alignment of a hit with its coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QLocale

from engine.errors import ProteoscopeError
from engine.results.columns import Column
from engine.structure_search.hit_chains import FoundChain, HitChains, trace_geometry
from engine.views.finished_run import FinishedRun
from gui.alignment.structure_pair import ChainFacts, StructurePair
from gui.results.facts import time_facts
from gui.results.query_hits_view import files_text
from gui.structure.traces import trace_of_hit
from gui.tables.columns import shown_text

__all__ = ["structure_facts", "structure_pair"]

_E_VALUE, _SAME_FOLD = Column("e_value", "", "", "e_value"), Column("same_fold_probability", "", "", "percent")


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
        *([f"same fold with {fold} %"] if (fold := shown_text(_SAME_FOLD, hit["same_fold_probability"], locale)) else []),
        *([f"E-value {e_value}"] if (e_value := shown_text(_E_VALUE, hit["e_value"], locale)) else []),
        f"z-score {number(hit['z_score'], 1)}",
    )
    return ", ".join(fit), ", ".join(more)
