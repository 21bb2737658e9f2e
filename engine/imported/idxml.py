"""idXML, the identifications of OpenMS (Röst et al. 2016, Nat Methods 13:741; schema IdXML_1_5)."""

from __future__ import annotations

from typing import Any

from proteoscope.engine.chemistry.noted_peptides import parse_peptide
from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import elements, number_of, whole_number_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import score_called, score_column_of
from proteoscope.engine.matches.listed.identifications import Identifications, MatchCollector

__all__ = ["read_idxml"]

_Q_VALUES = {"q-value", "qvalue", "psm-level q-value", "ms:1002354", "percolator:q value", "ms-gf:qvalue", "fdr", "q-value_score"}
_ERRORS = {"posterior error probability", "posterior error probability_score", "pep", "ms:1001493", "ms:1002192"}
_DECOYS = {"target": 0, "decoy": 1, "target+decoy": 0}
_MAXIMUM_DIGITS = 16
_NO_SCORES = {"target_decoy", "protein_references", "spectrum_reference", "map_index", "rank", "isotope_error"}


def read_idxml(source: ByteSource, progress: Progress) -> Identifications:
    """The matches of an idXML file."""
    found = MatchCollector("idXML", source.unfolding)
    accessions: dict[str, int] = {}
    runs: list[str] = []
    for name, element in elements(
        source, progress, ("ProteinHit", "ProteinIdentification", "PeptideIdentification"), kept=("PeptideIdentification",)
    ):
        if name == "ProteinHit":
            accessions[element.get("id", "")] = found.accession(element.get("accession", ""))
        elif name == "ProteinIdentification":
            engine = element.getparent()
            found.program = found.program or ("" if engine is None else engine.get("search_engine", ""))
            told = [part.get("value", "") for part in element.iter("UserParam") if part.get("name") == "spectra_data"]
            runs = [path for value in told for path in value.strip("[]").split(",") if path] or runs
        else:
            _add_identification(source, element, runs, accessions, found)
    return found.finish()


def _add_identification(
    source: ByteSource, identification: Any, runs: list[str], accessions: dict[str, int], found: MatchCollector
) -> None:
    reference = identification.get("spectrum_reference", "") or _params(identification).get("spectrum_reference", "")
    place = f"spectrum {shortened(reference, 60)}" if reference else f"after match {found.n}"
    own = _params(identification)
    index = own.get("id_merge_index", "0")
    is_index = index.isdecimal() and len(index) < _MAXIMUM_DIGITS and int(index) < len(runs)
    run = runs[int(index)] if is_index else runs[0] if len(runs) == 1 else ""
    called = identification.get("score_type", "")
    sense = 1 if identification.get("higher_score_better", "true").lower() == "true" else -1
    told: dict[str, Any] = {
        "native_id": reference, "run": run.strip().removeprefix("file://"),
        "retention_time": number_of(source, identification, "RT", place),
        "precursor_mz": number_of(source, identification, "MZ", place),
    }  # fmt: skip
    hits = identification.findall("{*}PeptideHit")
    for number, hit in enumerate(hits, 1):
        params, charge = _params(hit), whole_number_of(source, hit, "charge", place, 0)
        try:
            peptide = parse_peptide(hit.get("sequence", ""))
        except ValueError as error:
            found.leave(
                f"no peptide can be read from its text: {error}", place=found.next_place, peptide=hit.get("sequence", ""), charge=charge,
                **told,
            )  # fmt: skip
            continue
        scores: dict[str, float] = {}
        rates: dict[str, float] = {}
        for name, value in params.items():
            if name not in _NO_SCORES:
                _take(name, value, scores, rates, is_main=False, found=found, sense=sense)
        _take(called, hit.get("score", ""), scores, rates, is_main=True, found=found, sense=sense)
        references = (hit.get("protein_refs", "") or "").split()
        proteins = [accessions[one] for one in references if one in accessions]
        rank = params.get("rank", "")
        found.add(
            found.peptide(peptide), proteins, scores, place=found.next_place, charge=charge,
            rank=int(rank) + 1 if rank.isdecimal() and rank == str(number - 1) else number,
            is_decoy=_DECOYS.get(params.get("target_decoy", ""), -1), **told, **rates,
        )  # fmt: skip


def _take(
    name: str, text: str, scores: dict[str, float], rates: dict[str, float], *, is_main: bool, found: MatchCollector, sense: int
) -> None:
    """Take a number of a hit for what it is called; the score that ranks the hits is taken also where nobody knows its name."""
    try:
        value = float(text)
    except ValueError:
        return
    lowered = name.lower()
    if lowered in _Q_VALUES:
        rates["q_value"] = value
    elif lowered in _ERRORS:
        rates["posterior_error"] = value
    else:
        known = score_called(name) or score_called(name.removesuffix("_score"))
        column = known.column if known is not None else "score_main" if is_main else score_column_of(name)
        scores[column] = value
        if is_main and column == "score_main":
            found.senses[column] = sense


def _params(element: Any) -> dict[str, str]:
    """The user's parameters of an element, by their names."""
    return {part.get("name", ""): part.get("value", "") for part in element.findall("{*}UserParam")}
