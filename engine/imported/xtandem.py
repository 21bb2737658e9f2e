"""Reader of X!Tandem XML (Craig & Beavis 2004, Bioinformatics 20:1466; https://www.thegpm.org/docs/X_series_output_form.pdf)."""

import math
import re
from typing import Any

from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, is_sequence
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import NumberReader, UnreadableValueError, elements, read_with_decimal_sign
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import name_score_column
from proteoscope.engine.matches.match_lists.identifications import Identifications, MatchCollector

__all__ = ["read_xtandem"]

_FILE = re.compile(r"models from '(?P<file>[^']*)'")
_TIME = re.compile(r"(?:PT)?(?P<seconds>\d++[.,]?\d*+)S?")
_RUN_OF_TITLE = re.compile(r"^(?P<file>.+?) scan (?P<scan>\d{1,15}) \(charge \d+\)$")
_NATIVE_ID = re.compile(r"[A-Za-z]+=\S+")
_PROTON = 1.007276466622
_SCORES = (
    "expect",
    "hyperscore",
    "nextscore",
    "y_score",
    "b_score",
    "y_ions",
    "b_ions",
    "a_score",
    "c_score",
    "x_score",
    "z_score",
)


def read_xtandem(source: ByteSource, progress: Progress) -> Identifications:
    """Read the matches of an X!Tandem file; a peptide of several proteins is one match, and peptides with equal scores share a rank."""
    return read_with_decimal_sign(source, progress, _read)


def _read(source: ByteSource, numbers: NumberReader, progress: Progress) -> Identifications:
    result = MatchCollector("X!Tandem XML", source.unfolding)
    result.program = "X!Tandem"
    run: str | None = None
    for _, group in elements(source, progress, ("group",), whole_names=("group",)):
        if group.get("type") != "model":
            continue
        if run is None:
            root = group.getroottree().getroot()
            named = _FILE.search(root.get("label", ""))
            run = named["file"] if named else ""
        _add_group(group, numbers, run, result)
    return result.finish()


def _add_group(group: Any, numbers: NumberReader, run: str, collected: MatchCollector) -> None:
    spectrum = _spectrum(group, run)
    problem: UnreadableValueError | None = None
    precursor: dict[str, Any] = {}
    try:
        precursor = _precursor(group, numbers)
    except UnreadableValueError as error:
        problem = error
    matches: dict[NotedPeptide, tuple[dict[str, float], list[int], float]] = {}
    unread: dict[str, tuple[str, str]] = {}
    for protein in group.iter("{*}protein"):
        accession = _accession(protein)
        for domain in protein.iter("{*}domain"):
            sequence = domain.get("seq", "")
            try:
                peptide = _peptide(domain, numbers)
                if peptide is not None and peptide not in matches:
                    mass = numbers.number(domain, "mh") - _PROTON
                    scores = {name_score_column(name): numbers.number(domain, name) for name in _SCORES if domain.get(name)}
                    matches[peptide] = scores, [], mass
            except UnreadableValueError as error:
                unread.setdefault(sequence, (error.reason, error.value))
                continue
            if peptide is None:
                unread[sequence] = "its peptide is not a sequence of residues", ""
            elif accession:
                matches[peptide][1].append(collected.accession(accession))
    matches = {peptide: match for peptide, match in matches.items() if peptide.sequence not in unread}
    if problem is not None:
        unread |= {peptide.sequence: (problem.reason, problem.value) for peptide in matches}
        matches = {}
    for sequence, (reason, value) in sorted(unread.items()):
        collected.leave_out(reason, place=collected.next_match_number, peptide=sequence, value=value, **spectrum)
    for peptide, (scores, proteins, mass) in matches.items():
        collected.add(
            collected.peptide(peptide),
            proteins,
            scores,
            place=collected.next_match_number,
            rank=1,
            calculated_mass=mass,
            **spectrum,
            **precursor,
        )


def _spectrum(group: Any, run: str) -> dict[str, Any]:
    """Return the fields that identify the spectrum of a ``group`` element: file, and native identifier, title or scan number."""
    identifier = group.get("id", "")
    title = next((note.text or "" for note in group.iter("{*}note") if note.get("label") == "Description"), "").strip()
    named = _RUN_OF_TITLE.match(title)
    if named is not None:
        return {"run": named["file"], "scan": int(named["scan"])}
    if _NATIVE_ID.match(title):
        return {"run": run, "native_id": title}
    if title:
        return {"run": run, "title": title.removesuffix(" RTINSECONDS=").strip()}
    return {"run": run, "scan": int(identifier) if identifier.isdecimal() and len(identifier) < 16 else -1}


def _precursor(group: Any, numbers: NumberReader) -> dict[str, Any]:
    """Return charge, m/z and retention time of a group."""
    charge, protonated = numbers.whole(group, "z", 0), numbers.number(group, "mh")
    time = group.get("rt", "").strip()
    written = _TIME.fullmatch(time)
    return {
        "charge": charge,
        "precursor_mz": (protonated - _PROTON) / charge + _PROTON if charge else math.nan,
        "retention_time": numbers.value(written["seconds"] if written else time, "rt"),
    }


def _accession(protein: Any) -> str:
    label = next((note.text or "" for note in protein.iter("{*}note") if note.get("label") == "description"), "")
    label = label or protein.get("label", "")
    accession: str = label.split()[0] if label.split() else ""
    is_reversed = label.rstrip().endswith(":reversed") and not accession.endswith(":reversed")
    return f"{accession}:reversed" if is_reversed else accession


def _peptide(domain: Any, numbers: NumberReader) -> NotedPeptide | None:
    """Return the peptide of a domain, or None if its text is not a sequence."""
    sequence = domain.get("seq", "")
    if not is_sequence(sequence):
        return None
    return NotedPeptide(sequence, _modifications(domain, numbers, len(sequence)))


def _modifications(domain: Any, numbers: NumberReader, length: int) -> tuple[NotedModification, ...]:
    """Return the modifications of the peptide in a ``domain`` element; the element gives their positions in the protein."""
    start = numbers.whole(domain, "start", 1)
    result = []
    for part in domain.iter("{*}aa"):
        position = numbers.whole(part, "at", start) - start + 1
        mass = numbers.number(part, "modified")
        if not 1 <= position <= length:
            raise UnreadableValueError("one of its modifications is outside its sequence", part.get("at", ""))
        if mass == mass and not part.get("pm"):
            result.append(NotedModification(position, "", mass))
    return tuple(sorted(result, key=lambda modification: modification.position))
