"""X!Tandem's XML (Craig & Beavis 2004, Bioinformatics 20:1466; https://www.thegpm.org/docs/X_series_output_form.pdf)."""

from __future__ import annotations

import re
from typing import Any

from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, is_sequence
from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import elements, number_of, whole_number_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import score_column_of
from proteoscope.engine.matches.listed.identifications import Identifications, MatchCollector

__all__ = ["read_xtandem"]

_FILE = re.compile(r"models from '(?P<file>[^']*)'")
_TIME = re.compile(r"(?:PT)?(?P<seconds>\d+\.?\d*)S?")
_RUN_OF_TITLE = re.compile(r"^(?P<file>.+?) scan (?P<scan>\d{1,15}) \(charge \d+\)$")
_NATIVE_ID = re.compile(r"[A-Za-z]+=\S+")
_PROTON = 1.007276466622


def read_xtandem(source: ByteSource, progress: Progress) -> Identifications:
    """The matches of an X!Tandem file. A peptide that several proteins hold is one match; peptides of one score are as many of one rank."""
    found = MatchCollector("X!Tandem XML", source.unfolding)
    found.program = "X!Tandem"
    run: str | None = None
    for _, group in elements(source, progress, ("group",), kept=("group",)):
        if group.get("type") != "model":
            continue
        if run is None:
            root = group.getroottree().getroot()
            named = _FILE.search(root.get("label", ""))
            run = named["file"] if named else ""
        _add_group(source, group, run, found)
    return found.finish()


def _add_group(source: ByteSource, group: Any, run: str, found: MatchCollector) -> None:
    identifier = group.get("id", "")
    place = f"group {shortened(identifier, 40)}"
    charge = whole_number_of(source, group, "z", place, 0)
    protonated = number_of(source, group, "mh", place)
    time = _TIME.fullmatch(group.get("rt", "").strip())
    told: dict[str, Any] = {
        "run": run, "charge": charge, "precursor_mz": (protonated - _PROTON) / charge + _PROTON if charge else float("nan"),
        "retention_time": float(time["seconds"]) if time else float("nan"),
    }  # fmt: skip
    title = next((note.text or "" for note in group.iter("{*}note") if note.get("label") == "Description"), "").strip()
    named = _RUN_OF_TITLE.match(title)
    if named is not None:
        told |= {"run": named["file"], "scan": int(named["scan"])}
    elif _NATIVE_ID.match(title):
        told["native_id"] = title
    elif title:
        told["title"] = title.removesuffix(" RTINSECONDS=").strip()
    elif identifier.isdecimal() and len(identifier) < 16:
        told["scan"] = int(identifier)
    matches: dict[NotedPeptide, tuple[dict[str, float], list[int], float]] = {}
    unread = set[str]()
    for protein in group.iter("{*}protein"):
        label = next((note.text or "" for note in protein.iter("{*}note") if note.get("label") == "description"), "") or protein.get(
            "label", ""
        )
        accession = label.split()[0] if label.split() else ""
        if label.rstrip().endswith(":reversed") and not accession.endswith(":reversed"):
            accession += ":reversed"
        for domain in protein.iter("{*}domain"):
            sequence = domain.get("seq", "")
            if not is_sequence(sequence):
                unread.add(sequence)
                continue
            peptide = NotedPeptide(sequence, _modifications(source, domain, len(sequence), place))
            if peptide not in matches:
                names = (
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
                scores = {score_column_of(name): number_of(source, domain, name, place) for name in names if domain.get(name)}
                matches[peptide] = (scores, [], number_of(source, domain, "mh", place) - _PROTON)
            if accession:
                matches[peptide][1].append(found.accession(accession))
    for sequence in sorted(unread):
        found.leave("its peptide is not a sequence of residues", place=found.next_place, peptide=sequence, **told)
    for peptide, (scores, proteins, mass) in matches.items():
        found.add(
            found.peptide(peptide), proteins, scores, place=found.next_place, rank=1, calculated_mass=mass, **told
        )  # fmt: skip


def _modifications(source: ByteSource, domain: Any, length: int, place: str) -> tuple[NotedModification, ...]:
    """Modifications of a domain; those of X!Tandem stand on residues, at the ends of the peptide too, by their places in the protein."""
    start = whole_number_of(source, domain, "start", place, 1)
    found = []
    for part in domain.iter("{*}aa"):
        position = whole_number_of(source, part, "at", place, start) - start + 1
        mass = number_of(source, part, "modified", place)
        if 1 <= position <= length and mass == mass and not part.get("pm"):
            found.append(NotedModification(position, "", mass))
    return tuple(sorted(found, key=lambda one: one.position))
