"""Reader of mzIdentML 1.1 and 1.2.

Jones et al. 2012, Mol Cell Proteomics 11:M111.014381; Vizcaíno et al. 2017, Mol Cell Proteomics 16:1275.
"""

import math
from typing import Any, NamedTuple
from urllib.parse import unquote

from proteoscope.engine.arrays import PeptideRow
from proteoscope.engine.chemistry.modification_places import SearchedModification, locate_modification, move_to_terminal_residues
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, is_sequence
from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.imported.xml_events import NumberReader, UnreadableValueError, elements, read_with_decimal_sign
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.engine_scores import name_score_column, score_called
from proteoscope.engine.matches.match_lists.identifications import Identifications, MatchCollector
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
    """Read the matches of an mzIdentML file."""
    return read_with_decimal_sign(source, progress, _read)


def _read(source: ByteSource, numbers: NumberReader, progress: Progress) -> Identifications:
    reader = _Reader(source, numbers)
    for name, element in elements(source, progress, _MAIN, whole_names=_WHOLE):
        reader.take(name, element)
    reader.warn(progress)
    return reader.found.finish()


class _WrittenPeptide(NamedTuple):
    """Peptide as written in the file.

    Attributes
    ----------
    sequence : str
        Sequence of the peptide.
    placed : list of NotedModification
        Modifications with a location.
    unplaced : list of tuple
        Pairs of a modification without a location, and the residues that may have this modification.
    reason : str
        Reason why the peptide is unreadable, or ''.
    value : str
        Unreadable value in the file, or ''.
    """

    sequence: str
    placed: list[NotedModification]
    unplaced: list[tuple[NotedModification, str]]
    reason: str
    value: str = ""


class _Reader:
    """Reader of a file, which stores elements by their identifiers."""

    def __init__(self, source: ByteSource, numbers: NumberReader) -> None:
        self.path, self.numbers, self.unfolding = source.path, numbers, source.unfolding
        self.found = MatchCollector("mzIdentML", source.unfolding)
        self.accessions: dict[str, int] = {}
        self.peptides: dict[str, _WrittenPeptide] = {}
        self.rows: dict[str, PeptideRow | str] = {}
        self.searched: list[SearchedModification] = []
        self.n_placed = 0
        self.unread_rules: list[str] = []
        self.evidence: dict[str, tuple[str, bool | None]] = {}
        self.evidence_of: dict[str, list[str]] = {}
        self.peptide_of_evidence: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.n = 0

    def take(self, name: str, element: Any) -> None:
        """Process an element that has been read completely."""
        if name == "DBSequence":
            self.accessions[element.get("id", "")] = self.found.accession(element.get("accession", ""))
        elif name == "Peptide":
            self.peptides[element.get("id", "")] = self._peptide(element)
        elif name == "SearchModification":
            self.unfolding.add(SEARCHED, 1)
            self._take_rule(element)
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
        written = _WrittenPeptide(sequence, [], [], "")
        if not is_sequence(sequence):
            return written._replace(reason="its peptide is not a sequence of residues")
        try:
            return self._modified(element, written)
        except UnreadableValueError as error:
            return written._replace(reason=f"in a modification of its peptide, {error.reason}", value=error.value)

    def _modified(self, element: Any, written: _WrittenPeptide) -> _WrittenPeptide:
        for part in element.iter("{*}Modification"):
            position = self.numbers.whole(part, "location", -1)
            mass = self.numbers.number(part, "monoisotopicMassDelta")
            terms = [(term.get("accession", ""), term.get("name", "")) for term in part.iter("{*}cvParam")]
            noted = NotedModification(position, _modification_name(terms), None if mass != mass else mass)
            if not (part.get("location") or "").strip():
                written.unplaced.append((noted, "".join((part.get("residues") or "").split())))
            elif 0 <= position <= len(written.sequence) + 1:
                written.placed.append(noted)
            else:
                written = written._replace(reason="one of its modifications is outside its sequence")
        for part in element.iter("{*}SubstitutionModification"):
            written = _substituted(written, part, self.numbers.whole(part, "location", -1))
        return written

    def _row(self, peptide_id: str) -> PeptideRow | str:
        """Return the index of the peptide with the id `peptide_id`, or the reason why it is unreadable.

        The peptide is converted here, not when it is read: modifications without a location need the list of searched modifications,
        which follows the peptides in the file.
        """
        if peptide_id not in self.rows:
            written = self.peptides[peptide_id]
            reason, placed = written.reason, list(written.placed)
            occupied = {modification.position for modification in placed}
            for noted, residues in written.unplaced:
                position = locate_modification(noted, residues, written.sequence, occupied, self.searched)
                if position is None:
                    reason = reason or "one of its modifications has no location, and several sites or none are possible"
                    continue
                occupied.add(position)
                placed.append(noted._replace(position=position))
            self.n_placed += bool(written.unplaced) and not reason
            peptide = NotedPeptide(written.sequence, tuple(sorted(placed, key=lambda modification: modification.position)))
            self.rows[peptide_id] = reason or self.found.peptide(move_to_terminal_residues(peptide))
        return self.rows[peptide_id]

    def warn(self, progress: Progress) -> None:
        """Warn about modifications that have no location in the file, and about unreadable search settings."""
        if self.unread_rules:
            progress.message(
                f"{self.path}: {len(self.unread_rules):,} searched modifications have a mass that is not a number"
                f" ({', '.join(self.unread_rules[:3])}), and cannot be used to locate modifications",
                "warning",
            )
        if self.n_placed:
            progress.message(
                f"{self.path.name}: {self.n_placed:,} peptides have a modification without a location; it is assigned to the"
                " terminus that the search or Unimod gives for it, or to the only possible residue",
                "warning",
            )

    def _take_rule(self, element: Any) -> None:
        """Store a modification that the original search used."""
        try:
            self.searched.append(_searched_modification(self.numbers, element))
        except UnreadableValueError as error:
            self.unread_rules.append(repr(error.value))

    def _take_result(self, result: Any) -> None:
        data = result.get("spectraData_ref", "")
        spectrum: dict[str, Any] = {"native_id": result.get("spectrumID", ""), "run": self.files.get(data, "" if self.files else data)}
        problem: UnreadableValueError | None = None
        for part in result:
            accession, value = part.get("accession", ""), part.get("value", "")
            if accession == _TITLE:
                spectrum["title"] = value
            elif accession in _SCANS and value.strip().isdecimal() and len(value) <= _MAXIMUM_DIGITS:
                spectrum["scan"] = int(value)
            elif accession in _TIMES:
                try:
                    time = self.numbers.value(value, part.get("name", "") or "retention time")
                except UnreadableValueError as error:
                    problem = error
                else:
                    spectrum["retention_time"] = time * 60.0 if part.get("unitAccession") in _MINUTES else time
        for item in result.iter("{*}SpectrumIdentificationItem"):
            self.n += 1
            self._take_item(item, spectrum, problem)

    def _take_item(self, item: Any, spectrum: dict[str, Any], problem: UnreadableValueError | None) -> None:
        references = [part.get("peptideEvidence_ref", part.get("PeptideEvidence_Ref", "")) for part in item.iter("{*}PeptideEvidenceRef")]
        peptide_id = item.get("peptide_ref", "") or next((self.peptide_of_evidence.get(reference, "") for reference in references), "")
        if peptide_id not in self.peptides:
            reason = "it refers to a peptide that the file does not describe"
            self.found.leave_out(reason, place=self.n, value=shortened(peptide_id, 60), **spectrum)
            return
        peptide, written = self._row(peptide_id), self.peptides[peptide_id]
        try:
            if problem is not None:
                raise problem
            values = self._values(item)
            scores, rates = self._scores(item)
        except UnreadableValueError as error:
            self.found.leave_out(error.reason, place=self.n, peptide=written.sequence, value=error.value, **spectrum)
            return
        if isinstance(peptide, str):
            charge = values["charge"]
            self.found.leave_out(peptide, place=self.n, peptide=written.sequence, charge=charge, value=written.value, **spectrum)
            return
        evidence = [
            self.evidence[reference] for reference in references or self.evidence_of.get(peptide_id, []) if reference in self.evidence
        ]
        proteins = [self.accessions[protein] for protein, _ in evidence if protein in self.accessions]
        decoys = [decoy for _, decoy in evidence if decoy is not None]
        is_decoy = int(all(decoys)) if decoys else -1
        self.found.add(peptide, proteins, scores, place=self.n, is_decoy=is_decoy, **values, **spectrum, **rates)

    def _values(self, item: Any) -> dict[str, Any]:
        """Return charge, rank, precursor m/z and calculated mass of a match."""
        charge, calculated = self.numbers.whole(item, "chargeState", 0), self.numbers.number(item, "calculatedMassToCharge")
        return {
            "charge": charge,
            "rank": self.numbers.whole(item, "rank", 0),
            "precursor_mz": self.numbers.number(item, "experimentalMassToCharge"),
            "calculated_mass": (calculated - 1.007276466622) * charge if charge else math.nan,
        }

    def _scores(self, item: Any) -> tuple[dict[str, float], dict[str, float]]:
        scores: dict[str, float] = {}
        rates: dict[str, float] = {}
        for part in item:
            tag = part.tag.rpartition("}")[2]
            if tag not in ("cvParam", "userParam") or part.get("value") is None:
                continue
            accession, name = part.get("accession", ""), part.get("name", "")
            is_q_value = accession in _Q_VALUES or name.lower() in ("q-value", "psm q-value", "percolator q-value")
            is_error = accession in _ERRORS or name.lower() in ("pep", "posterior error probability")
            engine_score = score_called(accession) or score_called(name)
            try:
                value = self.numbers.value(part.get("value"), name or accession)
            except UnreadableValueError:
                if is_q_value or is_error or engine_score is not None:
                    raise
                continue  # text, such as a file name
            if math.isnan(value):
                continue
            if is_q_value:
                rates["q_value"] = value
            elif is_error:
                rates["posterior_error"] = value
            elif name:
                scores[engine_score.column if engine_score is not None else name_score_column(name)] = value
        return scores, rates


def _modification_name(terms: list[tuple[str, str]]) -> str:
    """Return the Unimod accession of a modification, otherwise its name, given its terms; '' if there is neither."""
    for accession, _ in terms:
        if accession.upper().startswith("UNIMOD:"):
            return accession
    return next((name for accession, name in terms if accession != "MS:1001460" and not accession.startswith("MS:")), "")


def _substituted(written: _WrittenPeptide, part: Any, position: int) -> _WrittenPeptide:
    """Return the peptide with the residue at `position` replaced as the element `part` (``SubstitutionModification``) states.

    If the sequence has neither the original nor the new residue there, the peptide gets a reason.
    """
    original, replacement = (part.get(name, "").strip().upper() for name in ("originalResidue", "replacementResidue"))
    sequence = written.sequence
    residue = sequence[position - 1] if 1 <= position <= len(sequence) else ""
    is_residue = len(replacement) == 1 and replacement.isascii() and replacement.isalpha()
    if is_residue and residue and residue in (original, replacement):
        return written._replace(sequence=f"{sequence[: position - 1]}{replacement}{sequence[position:]}")
    return written._replace(reason=written.reason or "a residue that a substitution replaces is not at this position of its sequence")


def _searched_modification(numbers: NumberReader, element: Any) -> SearchedModification:
    """Return a modification that the original search used: name, mass, residues ('' for any) and termini."""
    terms = [(term.get("accession", ""), term.get("name", "")) for term in element.iterchildren("{*}cvParam")]
    rules = {term.get("accession", "") for rule in element.iter("{*}SpecificityRules") for term in rule.iter("{*}cvParam")}
    return SearchedModification(
        _modification_name(terms),
        numbers.number(element, "massDelta"),
        "".join(symbol for symbol in element.get("residues", "") if symbol.isalpha()),
        bool(rules & _FRONT_RULES),
        bool(rules & _BACK_RULES),
    )
