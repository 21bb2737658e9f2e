"""pepXML (Keller et al. 2005, Mol Syst Biol 1:2005.0017), by whichever engine, with what PeptideProphet, iProphet and Percolator added."""

from __future__ import annotations

import math
from typing import Any

from engine.formats.sources import ByteSource
from engine.imported.identifications import Identifications, MatchCollector, NotedModification, NotedPeptide
from engine.imported.xml_events import elements, number_of, whole_number_of
from engine.jobs.progress import Progress
from engine.matches.engine_scores import score_column_of

__all__ = ["read_pepxml"]

_Q_VALUES = {"q_value", "q-value", "percolator_qvalue", "qvalue", "q value"}
_ERRORS = {"posterior_error_probability", "percolator_pep", "pep", "posterior error probability_score"}
_PROBABILITIES = {"peptideprophet_result": "score_peptideprophet", "interprophet_result": "score_iprophet"}


def read_pepxml(source: ByteSource, progress: Progress) -> Identifications:
    """The matches of a pepXML file."""
    found = MatchCollector("pepXML", source.path)
    run, n = "", 0
    # The run's name stands at its beginning: its element is not whole before its end.
    for name, element in _events(source, progress):
        if name == "msms_run_summary":
            run = element
            continue
        if name == "search_summary":
            found.program = found.program or element.get("search_engine", "")
            continue
        n = _add_query(source, element, run, found, n)
    return found.finish()


def _events(source: ByteSource, progress: Progress) -> Any:
    for name, element in elements(source, progress, ("spectrum_query", "search_summary"), kept=("spectrum_query",)):
        parent = element.getparent()
        if parent is not None and parent.tag.endswith("msms_run_summary"):
            yield "msms_run_summary", parent.get("base_name", "") + parent.get("raw_data", "")
        yield name, element


def _add_query(source: ByteSource, query: Any, run: str, found: MatchCollector, n: int) -> int:
    spectrum = query.get("spectrum", "")
    place = f"spectrum {spectrum[:80]}" if spectrum else f"after match {n}"
    charge = whole_number_of(source, query, "assumed_charge", place, 0)
    mass = number_of(source, query, "precursor_neutral_mass", place)
    told = {
        "run": run, "native_id": query.get("spectrumNativeID", ""), "title": spectrum, "charge": charge,
        "scan": whole_number_of(source, query, "start_scan", place, -1),
        "retention_time": number_of(source, query, "retention_time_sec", place),
        "precursor_mz": mass / charge + 1.007276466622 if charge > 0 else math.nan,
    }  # fmt: skip
    for hit in query.iter("{*}search_hit"):
        n += 1
        sequence = hit.get("peptide", "")
        modifications: list[NotedModification] = []
        proteins = [found.accession(hit.get("protein", ""))] if hit.get("protein") else []
        scores: dict[str, float] = {}
        rates: dict[str, float] = {}
        for part in hit.iter():
            tag = part.tag.rpartition("}")[2]
            if tag == "alternative_protein" and part.get("protein"):
                proteins.append(found.accession(part.get("protein")))
            elif tag == "modification_info":
                modifications += _modifications(source, part, len(sequence), place)
            elif tag == "search_score":
                _take_score(source, part, place, scores, rates)
            elif tag in _PROBABILITIES:
                probability = number_of(source, part, "probability", place)
                scores[_PROBABILITIES[tag]] = probability
                rates.setdefault("posterior_error", 1.0 - probability)
        for name in ("num_matched_ions", "massdiff"):
            if hit.get(name):
                scores[score_column_of(name)] = number_of(source, hit, name, place)
        if not (sequence.isascii() and sequence.isalpha() and sequence.isupper()):
            found.leave("its peptide is no sequence of residues")
            continue
        peptide = found.peptide(NotedPeptide(sequence, tuple(sorted(modifications, key=lambda one: one.position))))
        found.add(
            peptide, list(dict.fromkeys(proteins)), scores, place=n, rank=whole_number_of(source, hit, "hit_rank", place, 1),
            calculated_mass=number_of(source, hit, "calc_neutral_pep_mass", place), **told, **rates,
        )  # fmt: skip
    return n


def _take_score(source: ByteSource, part: Any, place: str, scores: dict[str, float], rates: dict[str, float]) -> None:
    name = part.get("name", "")
    try:
        value = float(part.get("value", "nan"))
    except ValueError:
        return  # text, as a comment of the engine
    if name.lower() in _Q_VALUES:
        rates["q_value"] = value
    elif name.lower() in _ERRORS:
        rates["posterior_error"] = value
    elif name:
        scores[score_column_of(name)] = value


def _modifications(source: ByteSource, info: Any, length: int, place: str) -> list[NotedModification]:
    """Modifications of a hit: masses of residues and termini with them, or what is added where the file says that too."""
    found = []
    for name, position in (("mod_nterm_mass", 0), ("mod_cterm_mass", length + 1)):
        if info.get(name):
            found.append(NotedModification(position, "", number_of(source, info, name, place), is_whole=True))
    for part in info.iter("{*}mod_aminoacid_mass"):
        position = whole_number_of(source, part, "position", place, -1)
        if not 1 <= position <= length:
            continue
        added = [number_of(source, part, name, place) for name in ("static", "variable") if part.get(name)]
        if added:
            found.append(NotedModification(position, "", sum(added)))
        else:
            found.append(NotedModification(position, "", number_of(source, part, "mass", place), is_whole=True))
    return found
