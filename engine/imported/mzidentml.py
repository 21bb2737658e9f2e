"""mzIdentML 1.1 and 1.2 (Jones et al. 2012, Mol Cell Proteomics 11:M111.014381; Vizcaíno et al. 2017, Mol Cell Proteomics 16:1275)."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import unquote

from proteoscope.engine.chemistry.modification_places import SearchedModification, locate_modification, on_terminal_residues
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, is_sequence
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import elements, number_of, whole_number_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import score_called, score_column_of
from proteoscope.engine.matches.listed.identifications import Identifications, MatchCollector
from proteoscope.engine.row_numbers import PeptideRow
from proteoscope.engine.unfolding import SEARCHED

__all__ = ["read_mzidentml"]

_Q_VALUES = {"MS:1002354", "MS:1002054", "MS:1001491", "MS:1002315"}
_ERRORS = {"MS:1001493", "MS:1002192"}
_TITLE, _SCANS = "MS:1000796", {"MS:1003057", "MS:1001115"}
_MAXIMUM_DIGITS = 15
_TIMES = {"MS:1000016", "MS:1000894", "MS:1001114"}
_MINUTES = {"UO:0000031", "MS:1000038"}
_MAIN = (
    "DBSequence",
    "Peptide",
    "PeptideEvidence",
    "SpectraData",
    "SpectrumIdentificationResult",
    "AnalysisSoftware",
    "SearchModification",
)
_FRONT_RULES, _BACK_RULES = {"MS:1001189", "MS:1002057"}, {"MS:1001190", "MS:1002058"}
_WHOLE = ("Peptide", "SpectraData", "SpectrumIdentificationResult", "DBSequence", "SearchModification")


def read_mzidentml(source: ByteSource, progress: Progress) -> Identifications:
    """The matches of an mzIdentML file."""
    reader = _Reader(source)
    for name, element in elements(source, progress, _MAIN, kept=_WHOLE):
        reader.take(name, element)
    reader.warn(progress)
    return reader.found.finish()


class _WrittenPeptide(NamedTuple):
    """A peptide of the file: located modifications, those without a location with the residues named, and why it cannot be read, or ''."""

    sequence: str
    placed: list[NotedModification]
    unplaced: list[tuple[NotedModification, str]]
    reason: str


class _Reader:
    """What was met of a file so far, by its identifiers."""

    def __init__(self, source: ByteSource) -> None:
        self.source, self.found = source, MatchCollector("mzIdentML", source.unfolding)
        self.accessions: dict[str, int] = {}
        self.peptides: dict[str, _WrittenPeptide] = {}
        self.rows: dict[str, PeptideRow | str] = {}
        self.searched: list[SearchedModification] = []
        self.n_placed = 0
        self.evidence: dict[str, tuple[str, bool | None]] = {}
        self.evidence_of: dict[str, list[str]] = {}
        self.peptide_of_evidence: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.n = 0

    def take(self, name: str, element: Any) -> None:
        """Take an element that has ended."""
        if name == "DBSequence":
            self.accessions[element.get("id", "")] = self.found.accession(element.get("accession", ""))
        elif name == "Peptide":
            self.peptides[element.get("id", "")] = self._peptide(element)
        elif name == "SearchModification":
            self.source.unfolding.add(SEARCHED, 1)
            self.searched.append(_searched_modification(self.source, element))
        elif name == "PeptideEvidence":
            self._take_evidence(element)
        elif name == "SpectraData":
            self.files[element.get("id", "")] = unquote(element.get("location", "") or element.get("name", ""))
        elif name == "AnalysisSoftware":
            self.found.program = self.found.program or element.get("name", "")
        else:
            self._take_result(element)

    def _take_evidence(self, element: Any) -> None:
        identifier, peptide = element.get("id", ""), element.get("peptide_ref", "")
        decoy = element.get("isDecoy")
        protein = element.get("dBSequence_ref", element.get("DBSequence_Ref", ""))
        self.evidence[identifier] = (protein, None if decoy is None else decoy.strip().lower() in ("true", "1"))
        self.peptide_of_evidence[identifier] = peptide
        self.evidence_of.setdefault(peptide, []).append(identifier)

    def _peptide(self, element: Any) -> _WrittenPeptide:
        sequence = "".join(part.text or "" for part in element if part.tag.endswith("equence")).strip().upper()
        place = f"peptide {shortened(element.get('id', ''), 80)}"
        written = _WrittenPeptide(sequence, [], [], "")
        if not is_sequence(sequence):
            return written._replace(reason="its peptide is not a sequence of residues")
        for part in element.iter("{*}Modification"):
            position = whole_number_of(self.source, part, "location", place, -1)
            mass = number_of(self.source, part, "monoisotopicMassDelta", place)
            terms = [(term.get("accession", ""), term.get("name", "")) for term in part.iter("{*}cvParam")]
            noted = NotedModification(position, _modification_name(terms), None if mass != mass else mass)
            if not (part.get("location") or "").strip():
                written.unplaced.append((noted, "".join((part.get("residues") or "").split())))
            elif 0 <= position <= len(sequence) + 1:
                written.placed.append(noted)
            else:
                written = written._replace(reason="a modification of it is located outside its sequence")
        for part in element.iter("{*}SubstitutionModification"):
            written = _substituted(written, part, whole_number_of(self.source, part, "location", place, -1))
        return written

    def _row(self, peptide_id: str) -> PeptideRow | str:
        """Row of a peptide, or why it has none. The modifications searched for, which locate others, follow the peptides in a file."""
        if peptide_id not in self.rows:
            written = self.peptides[peptide_id]
            reason, placed = written.reason, list(written.placed)
            occupied = {one.position for one in placed}
            for noted, residues in written.unplaced:
                position = locate_modification(noted, residues, written.sequence, occupied, self.searched)
                if position is None:
                    reason = reason or "a modification of it has no location, and several places or none can carry it"
                    continue
                occupied.add(position)
                placed.append(noted._replace(position=position))
            self.n_placed += bool(written.unplaced) and not reason
            peptide = NotedPeptide(written.sequence, tuple(sorted(placed, key=lambda one: one.position)))
            self.rows[peptide_id] = reason or self.found.peptide(on_terminal_residues(peptide))
        return self.rows[peptide_id]

    def warn(self, progress: Progress) -> None:
        """Warn of modifications that the file does not locate."""
        if self.n_placed:
            progress.message(
                f"{self.source.path.name}: {self.n_placed:,} peptides have a modification without a location; it is placed at the terminus"
                " that the search or Unimod names for it, or at the only residue that can carry it", "warning",
            )  # fmt: skip

    def _take_result(self, result: Any) -> None:
        identifier = result.get("spectrumID", "")
        place = f"spectrum {shortened(identifier, 80)}"
        told: dict[str, Any] = {
            "native_id": identifier, "run": self.files.get(result.get("spectraData_ref", ""), result.get("spectraData_ref", "")),
        }  # fmt: skip
        if told["run"] == result.get("spectraData_ref", "") and self.files:
            told["run"] = ""
        for part in result:
            accession, value = part.get("accession", ""), part.get("value", "")
            if accession == _TITLE:
                told["title"] = value
            elif accession in _SCANS and value.strip().isdecimal() and len(value) <= _MAXIMUM_DIGITS:
                told["scan"] = int(value)
            elif accession in _TIMES:
                time = number_of(self.source, part, "value", place)
                told["retention_time"] = time * 60.0 if part.get("unitAccession") in _MINUTES else time
        for item in result.iter("{*}SpectrumIdentificationItem"):
            self.n += 1
            self._take_item(item, told, place)

    def _take_item(self, item: Any, told: dict[str, Any], place: str) -> None:
        references = [part.get("peptideEvidence_ref", part.get("PeptideEvidence_Ref", "")) for part in item.iter("{*}PeptideEvidenceRef")]
        peptide_id = item.get("peptide_ref", "") or next((self.peptide_of_evidence.get(one, "") for one in references), "")
        if peptide_id not in self.peptides:
            raise InputError(
                self.source.path, f"refers to a peptide {shortened(repr(peptide_id), 60)} that the file does not describe", place=place,
                remedy="Is the file cut? Write it again",
            )  # fmt: skip
        peptide = self._row(peptide_id)
        charge = whole_number_of(self.source, item, "chargeState", place, 0)
        if isinstance(peptide, str):
            self.found.leave(peptide, place=self.n, peptide=self.peptides[peptide_id].sequence, charge=charge, **told)
            return
        known = [self.evidence[one] for one in references or self.evidence_of.get(peptide_id, []) if one in self.evidence]
        proteins = [self.accessions[protein] for protein, _ in known if protein in self.accessions]
        told_decoys = [decoy for _, decoy in known if decoy is not None]
        calculated = number_of(self.source, item, "calculatedMassToCharge", place)
        scores, rates = self._scores(item, place)
        self.found.add(
            peptide, proteins, scores, place=self.n, rank=whole_number_of(self.source, item, "rank", place, 0), charge=charge,
            precursor_mz=number_of(self.source, item, "experimentalMassToCharge", place),
            calculated_mass=(calculated - 1.007276466622) * charge if charge else float("nan"),
            is_decoy=int(all(told_decoys)) if told_decoys else -1, **told, **rates,
        )  # fmt: skip

    def _scores(self, item: Any, place: str) -> tuple[dict[str, float], dict[str, float]]:
        scores: dict[str, float] = {}
        rates: dict[str, float] = {}
        for part in item:
            tag = part.tag.rpartition("}")[2]
            if tag not in ("cvParam", "userParam") or part.get("value") is None:
                continue
            try:
                value = float(part.get("value"))
            except ValueError:
                continue  # a text, as a name of a file
            accession, name = part.get("accession", ""), part.get("name", "")
            if accession in _Q_VALUES or name.lower() in ("q-value", "psm q-value", "percolator q-value"):
                rates["q_value"] = value
            elif accession in _ERRORS or name.lower() in ("pep", "posterior error probability"):
                rates["posterior_error"] = value
            elif name:
                known = score_called(accession) or score_called(name)
                scores[known.column if known is not None else score_column_of(name)] = value
        return scores, rates


def _modification_name(terms: list[tuple[str, str]]) -> str:
    """What a modification is called: its record in Unimod, else its name; nothing for one that is said to be unknown."""
    for accession, _ in terms:
        if accession.upper().startswith("UNIMOD:"):
            return accession
    return next((name for accession, name in terms if accession != "MS:1001460" and not accession.startswith("MS:")), "")


def _substituted(written: _WrittenPeptide, part: Any, position: int) -> _WrittenPeptide:
    """The peptide with one residue replaced: the file writes the original sequence, and the spectrum is of the other."""
    original, replacement = (part.get(name, "").strip().upper() for name in ("originalResidue", "replacementResidue"))
    sequence = written.sequence
    residue = sequence[position - 1] if 1 <= position <= len(sequence) else ""
    is_residue = len(replacement) == 1 and replacement.isascii() and replacement.isalpha()
    if is_residue and residue and residue in (original, replacement):
        return written._replace(sequence=f"{sequence[: position - 1]}{replacement}{sequence[position:]}")
    return written._replace(reason=written.reason or "a residue that a substitution replaces is not at that place of its sequence")


def _searched_modification(source: ByteSource, element: Any) -> SearchedModification:
    """What a search looked for: name, mass, residues (empty where any) and termini."""
    terms = [(term.get("accession", ""), term.get("name", "")) for term in element.iterchildren("{*}cvParam")]
    rules = {term.get("accession", "") for rule in element.iter("{*}SpecificityRules") for term in rule.iter("{*}cvParam")}
    return SearchedModification(
        _modification_name(terms), number_of(source, element, "massDelta", "search modification"),
        "".join(one for one in element.get("residues", "") if one.isalpha()), bool(rules & _FRONT_RULES), bool(rules & _BACK_RULES),
    )  # fmt: skip
