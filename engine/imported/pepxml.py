"""pepXML (Keller et al. 2005, Mol Syst Biol 1:2005.0017), by whichever engine, with what PeptideProphet, iProphet and Percolator added.

Pyteomics (Levitsky et al. 2019, J Proteome Res 18:709) reads the queries; here its dictionaries become columns.
"""

from __future__ import annotations

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
from proteoscope.engine.imported.xml_events import CHECKED_EVERY, SourceBytes, broken_xml, elements, number_of, whole_number_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import score_column_of
from proteoscope.engine.matches.listed.identifications import Identifications, MatchCollector

__all__ = ["read_pepxml"]

_Q_VALUES = {"q_value", "q-value", "percolator_qvalue", "qvalue", "q value"}
_ERRORS = {"posterior_error_probability", "percolator_pep", "pep", "posterior error probability_score"}
_PROBABILITIES = {"peptideprophet_result": "score_peptideprophet", "interprophet_result": "score_iprophet"}
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([^"'>]*)""")
_PLAIN_ENCODING = re.compile(r"(?i)utf-?8|(us-)?ascii|iso-?8859-\d{1,2}|windows-125\d|latin-?\d")


class _Queries(PepXML):
    """Spectrum queries of a pepXML file as Pyteomics' dictionaries, each with the ``run`` that it stands in."""

    def _get_version_info(self) -> tuple[None, None]:
        """No version: it decides nothing where no schema is fetched, and a packed file cannot be read twice."""
        return None, None

    def _get_info_smart(self, element: Any, **options: Any) -> dict[str, Any]:
        info: dict[str, Any] = super()._get_info_smart(element, **options)
        name = element.tag.rpartition("}")[2]
        if name == "search_hit":
            info.setdefault("hit_rank", 1)  # which Pyteomics sorts by
        elif name == "spectrum_query":
            run = element.getparent()
            info["run"] = run.get("base_name", "") + run.get("raw_data", "")
            # Pyteomics empties the queries before this one, and leaves their elements standing.
            while element.getprevious() is not None:
                del run[0]
        return info


def read_pepxml(source: ByteSource, progress: Progress) -> Identifications:
    """The matches of a pepXML file."""
    _check_encoding(source)
    found = MatchCollector("pepXML", source.unfolding)
    found.program = _program(source)
    n = 0
    for query in _queries(source, progress):
        n = _add_query(source, query, found, n)
    return found.finish()


def _program(source: ByteSource) -> str:
    """The search engine that the file names before its first query, empty where it names none. Queries do not lead back to it."""
    with ByteSource(source.path) as beginning:
        for name, element in elements(beginning, Progress(), ("search_summary", "spectrum_query")):
            return str(element.get("search_engine", "")) if name == "search_summary" else ""
    return ""


def _queries(source: ByteSource, progress: Progress) -> Iterator[dict[str, Any]]:
    """The queries of the file, one after the other.

    Raises
    ------
    InputError : the XML is broken or cut off, or holds something else where pepXML wants a number. Cancelled : the user asked to stop.
    """
    place = "before the first spectrum"
    try:
        for n, query in enumerate(_Queries(SourceBytes(source, progress), read_schema=False, use_index=False)):
            if n % CHECKED_EVERY == 0:
                progress.check()
            place = f"after spectrum {shortened(str(query.get('spectrum', n)), 80)}"
            yield query
    except etree.XMLSyntaxError as error:
        raise broken_xml(source, error) from None
    except (PyteomicsError, LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
        # What Pyteomics raises of elements that lack what the schema demands, or hold text in place of numbers.
        said = shortened(" ".join(str(getattr(error, "message", error)).split("\n", 1)[0].split()), 120)
        raise InputError(
            source.path, f"a match holds what pepXML does not allow ({type(error).__name__}: {said})", place=place,
            remedy="Write the file again",
        ) from None  # fmt: skip


def _check_encoding(source: ByteSource) -> None:
    """Refuse encodings in which a declaration of entities would not have been seen when the file was recognised: Pyteomics' parser resolves
    them."""
    declared = _ENCODING.match(source.peek(HEAD_BYTES).removeprefix(b"\xef\xbb\xbf"))
    encoding = declared[1].decode("utf-8", "replace") if declared else "UTF-8"
    if not _PLAIN_ENCODING.fullmatch(encoding.strip()):
        raise InputError(
            source.path, f"the XML is in the encoding {shortened(repr(encoding), 40)}", place="line 1", remedy="Save it as UTF-8"
        )


def _add_query(source: ByteSource, query: Mapping[str, Any], found: MatchCollector, n: int) -> int:
    spectrum = query.get("spectrum", "")
    place = f"spectrum {shortened(spectrum, 80)}" if spectrum else f"after match {n}"
    charge = whole_number_of(source, query, "assumed_charge", place, 0)
    mass = number_of(source, query, "precursor_neutral_mass", place)
    told = {
        "run": query["run"], "native_id": query.get("spectrumNativeID", ""), "title": spectrum, "charge": charge,
        "scan": whole_number_of(source, query, "start_scan", place, -1),
        "retention_time": number_of(source, query, "retention_time_sec", place),
        "precursor_mz": mass / charge + 1.007276466622 if charge > 0 else math.nan,
    }  # fmt: skip
    for result in query.get("search_result", [query]):
        for hit in result.get("search_hit", []):
            n += 1
            _add_hit(source, hit, found, place, {"place": n, **told})
    return n


def _add_hit(source: ByteSource, hit: Mapping[str, Any], found: MatchCollector, place: str, told: dict[str, Any]) -> None:
    sequence = hit.get("peptide", "")
    if not is_sequence(sequence):
        found.leave("its peptide is not a sequence of residues", peptide=sequence, **told)
        return
    scores: dict[str, float] = {}
    rates: dict[str, float] = {}
    for name, value in _search_scores(hit):
        _take_score(name, value, scores, rates)
    for result in hit.get("analysis_result", []):
        for name, column in _PROBABILITIES.items():
            if name in result:
                scores[column] = number_of(source, result[name], "probability", place)
                rates.setdefault("posterior_error", 1.0 - scores[column])
    for name in ("num_matched_ions", "massdiff"):
        if hit.get(name) is not None:
            scores[score_column_of(name)] = number_of(source, hit, name, place)
    proteins = [one["protein"] for one in hit.get("proteins", hit.get("alternative_protein", [])) if one.get("protein")]
    modifications = _modifications(source, hit.get("modifications", []), len(sequence), place)
    peptide = found.peptide(NotedPeptide(sequence, tuple(sorted(modifications, key=lambda noted: noted.position))))
    found.add(
        peptide, list(map(found.accession, proteins)), scores,
        rank=whole_number_of(source, hit, "hit_rank", place, 1),
        calculated_mass=number_of(source, hit, "calc_neutral_pep_mass", place), **told, **rates,
    )  # fmt: skip


def _search_scores(hit: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values of the engine's scores, which are a list where one of them has more than a name and a value."""
    scores = hit.get("search_score", {})
    if isinstance(scores, Mapping):
        yield from scores.items()
        return
    for score in scores:
        if "name" in score and "value" in score:
            yield score["name"], score["value"]
        elif len(score) == 1:
            yield from score.items()


def _take_score(name: str, value: Any, scores: dict[str, float], rates: dict[str, float]) -> None:
    try:
        number = float(value)
    except ValueError:
        return  # text, as a comment of the engine
    if name.lower() in _Q_VALUES:
        rates["q_value"] = number
    elif name.lower() in _ERRORS:
        rates["posterior_error"] = number
    elif name:
        scores[score_column_of(name)] = number


def _modifications(source: ByteSource, noted: list[dict[str, Any]], length: int, place: str) -> list[NotedModification]:
    """Modifications of a hit: masses of residues and termini with them, or what is added where the file says that too."""
    found = []
    for one in noted:
        position = whole_number_of(source, one, "position", place, -1)
        if not 0 <= position <= length + 1:
            continue
        added = [number_of(source, one, name, place) for name in ("static", "variable") if one.get(name) not in (None, "")]
        mass = sum(added) if added else number_of(source, one, "mass", place)
        found.append(NotedModification(position, "", mass, is_whole=not added))
    return found
