"""Reader of pepXML of any engine, including PeptideProphet, iProphet and Percolator results.

pepXML: Keller et al. 2005, Mol Syst Biol 1:2005.0017. Pyteomics (Levitsky et al. 2019, J Proteome Res 18:709) reads the queries; this
module converts its dictionaries to columns.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lxml import etree
from pyteomics.auxiliary import PyteomicsError
from pyteomics.pepxml import PepXML

from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, is_sequence
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.recognition import HEAD_BYTES
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import (
    CHECKED_EVERY,
    NumberReader,
    SourceBytes,
    UnreadableValueError,
    broken_xml,
    elements,
    read_with_decimal_sign,
)
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import name_score_column, score_called
from proteoscope.engine.matches.match_lists.identifications import Identifications, MatchCollector

__all__ = ["read_pepxml"]

_Q_VALUES = {"q_value", "q-value", "percolator_qvalue", "qvalue", "q value"}
_ERRORS = {"posterior_error_probability", "percolator_pep", "pep", "posterior error probability_score"}
_PROBABILITIES = {"peptideprophet_result": "score_peptideprophet", "interprophet_result": "score_iprophet"}
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)""")
_HYDROGEN, _HYDROXYL, _TERMINAL_ERROR = 1.007825, 17.00274, 0.01  # Da
_NUMBERS = {
    "search_hit": ("hit_rank",),
    "modification_info": ("mod_nterm_mass", "mod_cterm_mass"),
    "mod_aminoacid_mass": ("position", "mass"),
}
"""Attributes that Pyteomics converts to numbers."""
_PLAIN_ENCODING = re.compile(r"(?i)utf-?8|(us-)?ascii|iso-?8859-\d{1,2}|windows-125\d|latin-?\d")


class _Queries(PepXML):  # type: ignore[misc] # Pyteomics has no types
    """Reader of the spectrum queries of a pepXML file as Pyteomics' dictionaries.

    To these dictionaries, this class adds the ``run`` of each query, and the ``problem`` of each hit with an unreadable number (such
    numbers would stop Pyteomics). Values are texts, except those that Pyteomics converts to numbers.
    """

    _default_schema = PepXML._default_schema | {
        "ints": {("search_hit", "hit_rank"), ("mod_aminoacid_mass", "position")},
        "floats": {("mod_aminoacid_mass", "mass")},
        "bools": set(),
    }
    _convert_items = ()

    def __init__(self, source: SourceBytes, numbers: NumberReader) -> None:
        super().__init__(source, read_schema=False, use_index=False)
        self._numbers = numbers
        self._problem: UnreadableValueError | None = None

    def _get_version_info(self) -> tuple[None, None]:
        """Return (None, None) instead of the version of the file.

        Pyteomics needs the version only to read an XML schema; finding it would mean reading a compressed file twice.
        """
        return None, None

    def _get_info_smart(self, element: Any, **options: Any) -> dict[str, Any]:
        name = element.tag.rpartition("}")[2]
        if name == "search_hit":
            self._problem = None
        self._correct_numbers(name, element)
        info: dict[str, Any] = super()._get_info_smart(element, **options)
        if name == "search_hit":
            info.setdefault("hit_rank", 1)  # Pyteomics sorts hits by it
            info["problem"] = self._problem
        elif name == "spectrum_query":
            run = element.getparent()
            info["run"] = run.get("base_name", "") + run.get("raw_data", "")
            # Pyteomics clears previous queries but does not remove their elements.
            while element.getprevious() is not None:
                del run[0]
        return info

    def _correct_numbers(self, name: str, element: Any) -> None:
        """Correct the attributes of an element that Pyteomics converts to numbers.

        Decimal commas become points. An unreadable number becomes 0, and an error is recorded for its hit.
        """
        for attribute in _NUMBERS.get(name, ()):
            if name != "mod_aminoacid_mass" and not element.get(attribute, "").strip():
                element.attrib.pop(attribute, None)
                continue
            is_whole = attribute in ("hit_rank", "position")
            try:
                number = self._numbers.number(element, attribute)
                if not math.isfinite(number) or (is_whole and number != math.floor(number)):
                    kind = "whole number" if is_whole else "number"
                    raise UnreadableValueError(f"{attribute} is not a {kind}", element.get(attribute, ""))
            except UnreadableValueError as error:
                self._problem, number = self._problem or error, 0.0
            element.set(attribute, str(int(number)) if is_whole else repr(number))


def read_pepxml(source: ByteSource, progress: Progress) -> Identifications:
    """Read the matches of a pepXML file."""
    _check_encoding(source)
    return read_with_decimal_sign(source, progress, _read)


def _read(source: ByteSource, numbers: NumberReader, progress: Progress) -> Identifications:
    result = MatchCollector("pepXML", source.unfolding)
    result.program = _program(source)
    n = 0
    for query in _queries(source, numbers, progress):
        n = _add_query(query, numbers, result, n)
    return result.finish()


def _program(source: ByteSource) -> str:
    """Return the name of the search engine, if the file states it before the first query; otherwise ''."""
    with ByteSource(source.path) as beginning:
        for name, element in elements(beginning, Progress(), ("search_summary", "spectrum_query")):
            return str(element.get("search_engine", "")) if name == "search_summary" else ""
    return ""


def _queries(source: ByteSource, numbers: NumberReader, progress: Progress) -> Iterator[dict[str, Any]]:
    """Yield the queries of the file in order.

    Raises
    ------
    InputError
        If the XML is malformed or truncated, or lacks required content.
    Cancelled
        If the user cancelled.
    """
    place = "before the first spectrum"
    try:
        for n, query in enumerate(_Queries(SourceBytes(source, progress), numbers)):
            if n % CHECKED_EVERY == 0:
                progress.check()
            place = f"after spectrum {shortened(str(query.get('spectrum', n)), 80)}"
            yield query
    except etree.XMLSyntaxError as error:
        raise broken_xml(source, error) from None
    except (PyteomicsError, LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
        # Pyteomics raises these errors for elements that lack required content.
        said = shortened(" ".join(str(getattr(error, "message", error)).split("\n", 1)[0].split()), 120)
        raise InputError(
            source.path,
            f"a match has content that pepXML does not allow ({type(error).__name__}: {said})",
            place=place,
            remedy="Write the file again",
        ) from None


def _check_encoding(source: ByteSource) -> None:
    """Raise InputError for encodings in which format detection does not find entity declarations, since Pyteomics resolves entities."""
    declared = _ENCODING.match(source.peek(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf"))
    encoding = declared[1].decode("utf-8", "replace") if declared else "UTF-8"
    if not _PLAIN_ENCODING.fullmatch(encoding.strip()):
        raise InputError(
            source.path, f"the XML is in the encoding {shortened(repr(encoding), 40)}", place="line 1", remedy="Save it as UTF-8"
        )


def _add_query(query: Mapping[str, Any], numbers: NumberReader, matches: MatchCollector, n: int) -> int:
    spectrum: dict[str, Any] = {"run": query["run"], "native_id": query.get("spectrumNativeID", ""), "title": query.get("spectrum", "")}
    problem: UnreadableValueError | None = None
    try:
        charge, mass = numbers.whole(query, "assumed_charge", 0), numbers.number(query, "precursor_neutral_mass")
        spectrum |= {
            "charge": charge,
            "scan": numbers.whole(query, "start_scan", -1),
            "retention_time": numbers.number(query, "retention_time_sec"),
            "precursor_mz": mass / charge + 1.007276466622 if charge > 0 else math.nan,
        }
    except UnreadableValueError as error:
        problem = error
    for result in query.get("search_result", [query]):
        for hit in result.get("search_hit", []):
            n += 1
            _add_hit(hit, numbers, matches, problem or hit["problem"], {"place": n, **spectrum})
    return n


def _add_hit(
    hit: Mapping[str, Any], numbers: NumberReader, matches: MatchCollector, problem: UnreadableValueError | None, spectrum: dict[str, Any]
) -> None:
    sequence = hit.get("peptide", "")
    if not is_sequence(sequence):
        matches.leave_out("its peptide is not a sequence of residues", peptide=sequence, **spectrum)
        return
    try:
        if problem is not None:
            raise problem
        scores, rates = _scores(hit, numbers)
        modifications = _modifications(hit.get("modifications", []), numbers, len(sequence))
        values = {"rank": numbers.whole(hit, "hit_rank", 1), "calculated_mass": numbers.number(hit, "calc_neutral_pep_mass")}
    except UnreadableValueError as error:
        matches.leave_out(error.reason, peptide=sequence, value=error.value, **spectrum)
        return
    proteins = [entry["protein"] for entry in hit.get("proteins", hit.get("alternative_protein", [])) if entry.get("protein")]
    peptide = matches.peptide(NotedPeptide(sequence, tuple(sorted(modifications, key=lambda noted: noted.position))))
    accessions = list(map(matches.accession, proteins))
    matches.add(peptide, accessions, scores, **values, **spectrum, **rates)


def _scores(hit: Mapping[str, Any], numbers: NumberReader) -> tuple[dict[str, float], dict[str, float]]:
    """Return the scores of a hit by column name, and its error rates by name."""
    scores: dict[str, float] = {}
    rates: dict[str, float] = {}
    for name, value in _search_scores(hit):
        _take_score(name, value, numbers, scores, rates)
    for result in hit.get("analysis_result", []):
        for name, column in _PROBABILITIES.items():
            if name in result:
                scores[column] = numbers.number(result[name], "probability")
                rates.setdefault("posterior_error", 1.0 - scores[column])
    for name in ("num_matched_ions", "massdiff"):
        if hit.get(name) is not None:
            scores[name_score_column(name)] = numbers.value(hit[name].removeprefix("+-"), name)
    return scores, rates


def _search_scores(hit: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each score of the search engine.

    Pyteomics returns the scores as a list, not as a dictionary, if a score has further attributes.
    """
    scores = hit.get("search_score", {})
    if isinstance(scores, Mapping):
        yield from scores.items()
        return
    for score in scores:
        if "name" in score and "value" in score:
            yield score["name"], score["value"]
        elif len(score) == 1:
            yield from score.items()


def _take_score(name: str, value: Any, numbers: NumberReader, scores: dict[str, float], rates: dict[str, float]) -> None:
    lowered = name.lower()
    is_rate = lowered in _Q_VALUES or lowered in _ERRORS
    try:
        number = value if isinstance(value, float) else numbers.value(value, name)
    except UnreadableValueError:
        if is_rate or score_called(name) is not None:
            raise
        return  # text, such as a comment of the engine
    if is_rate and not math.isnan(number):
        rates["q_value" if lowered in _Q_VALUES else "posterior_error"] = number
    elif name and not is_rate:
        scores[name_score_column(name)] = number


def _modifications(noted: list[dict[str, Any]], numbers: NumberReader, length: int) -> list[NotedModification]:
    """Return the modifications of a hit.

    Their masses are the added masses if the file contains these; otherwise the masses of the residues or termini with the modification.
    """
    result = []
    for modification in noted:
        position = numbers.whole(modification, "position", -1)
        if not 0 <= position <= length + 1:
            raise UnreadableValueError("one of its modifications is outside its sequence", str(position))
        added = [numbers.number(modification, name) for name in ("static", "variable") if modification.get(name) not in (None, "")]
        mass = sum(added) if added else numbers.number(modification, "mass")
        bare = {0: _HYDROGEN, length + 1: _HYDROXYL}.get(position)
        if not added and bare is not None and abs(mass - bare) < _TERMINAL_ERROR:
            continue  # an unmodified terminus, which some engines list too
        result.append(NotedModification(position, "", mass, is_whole=not added))
    return result
