"""Reader of idXML, the identifications of OpenMS (Röst et al. 2016, Nat Methods 13:741; schema IdXML_1_5)."""

import math
from typing import Any

from proteoscope.engine.chemistry.noted_peptides import parse_peptide
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import NumberReader, UnreadableValueError, elements, read_with_decimal_sign
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import name_score_column, score_called
from proteoscope.engine.matches.match_lists.identifications import Identifications, MatchCollector

__all__ = ["read_idxml"]

_Q_VALUES = {"q-value", "qvalue", "psm-level q-value", "ms:1002354", "percolator:q value", "ms-gf:qvalue", "fdr", "q-value_score"}
_ERRORS = {"posterior error probability", "posterior error probability_score", "pep", "ms:1001493", "ms:1002192"}
_DECOYS = {"target": 0, "decoy": 1, "target+decoy": 0}
_MAXIMUM_DIGITS = 16
_NO_SCORES = {"target_decoy", "protein_references", "spectrum_reference", "map_index", "rank", "isotope_error"}


def read_idxml(source: ByteSource, progress: Progress) -> Identifications:
    """Read the matches of an idXML file."""
    return read_with_decimal_sign(source, progress, _read)


def _read(source: ByteSource, numbers: NumberReader, progress: Progress) -> Identifications:
    result = MatchCollector("idXML", source.unfolding)
    accessions: dict[str, int] = {}
    runs: list[str] = []
    for name, element in elements(
        source, progress, ("ProteinHit", "ProteinIdentification", "PeptideIdentification"), whole_names=("PeptideIdentification",)
    ):
        if name == "ProteinHit":
            accessions[element.get("id", "")] = result.accession(element.get("accession", ""))
        elif name == "ProteinIdentification":
            engine = element.getparent()
            result.program = result.program or ("" if engine is None else engine.get("search_engine", ""))
            lists = [part.get("value", "") for part in element.iter("UserParam") if part.get("name") == "spectra_data"]
            runs = [path for value in lists for path in value.strip("[]").split(",") if path] or runs
        else:
            _add_identification(element, numbers, runs, accessions, result)
    return result.finish()


def _add_identification(
    identification: Any, numbers: NumberReader, runs: list[str], accessions: dict[str, int], matches: MatchCollector
) -> None:
    parameters = _params(identification)
    index = parameters.get("id_merge_index", "0")
    is_index = index.isdecimal() and len(index) < _MAXIMUM_DIGITS and int(index) < len(runs)
    run = runs[int(index)] if is_index else runs[0] if len(runs) == 1 else ""
    spectrum: dict[str, Any] = {
        "native_id": identification.get("spectrum_reference", "") or parameters.get("spectrum_reference", ""),
        "run": run.strip().removeprefix("file://"),
    }
    for number, hit in enumerate(identification.findall("{*}PeptideHit"), 1):
        text = hit.get("sequence", "")
        try:
            charge = numbers.whole(hit, "charge", 0)
            of_precursor = {"retention_time": numbers.number(identification, "RT"), "precursor_mz": numbers.number(identification, "MZ")}
            scores, rates = _scores(identification, hit, numbers, matches)
        except UnreadableValueError as error:
            matches.leave_out(error.reason, place=matches.next_match_number, peptide=text, value=error.value, **spectrum)
            continue
        try:
            peptide = parse_peptide(text)
        except ValueError as error:
            matches.leave_out(
                f"no peptide can be read from its text: {error}",
                place=matches.next_match_number,
                peptide=text,
                charge=charge,
                **spectrum,
            )
            continue
        references = (hit.get("protein_refs", "") or "").split()
        proteins = [accessions[reference] for reference in references if reference in accessions]
        params = _params(hit)
        rank = params.get("rank", "")
        matches.add(
            matches.peptide(peptide),
            proteins,
            scores,
            place=matches.next_match_number,
            charge=charge,
            rank=int(rank) + 1 if rank.isdecimal() and rank == str(number - 1) else number,
            is_decoy=_DECOYS.get(params.get("target_decoy", ""), -1),
            **spectrum,
            **of_precursor,
            **rates,
        )


def _scores(identification: Any, hit: Any, numbers: NumberReader, matches: MatchCollector) -> tuple[dict[str, float], dict[str, float]]:
    """Return the scores of a hit by column name, and its error rates by name.

    A main score with an unknown name gets the column ``score_main``. Texts among the scores are left out.
    """
    scores: dict[str, float] = {}
    rates: dict[str, float] = {}
    main = identification.get("score_type", "")
    sense = 1 if identification.get("higher_score_better", "true").lower() == "true" else -1
    texts = [(name, text, False) for name, text in _params(hit).items() if name not in _NO_SCORES]
    for name, text, is_main in (*texts, (main, hit.get("score", ""), True)):
        engine_score = score_called(name) or score_called(name.removesuffix("_score"))
        lowered = name.lower()
        is_rate = lowered in _Q_VALUES or lowered in _ERRORS
        try:
            value = numbers.value(text, name or "score")
        except UnreadableValueError:
            if is_main or is_rate or engine_score is not None:
                raise
            continue  # text, such as a file name
        if math.isnan(value):
            continue
        if is_rate:
            rates["q_value" if lowered in _Q_VALUES else "posterior_error"] = value
            continue
        column = engine_score.column if engine_score is not None else "score_main" if is_main else name_score_column(name)
        scores[column] = value
        if is_main and column == "score_main":
            matches.senses[column] = sense
    return scores, rates


def _params(element: Any) -> dict[str, str]:
    """Return the user parameters of an element by name."""
    return {part.get("name", ""): part.get("value", "") for part in element.findall("{*}UserParam")}
