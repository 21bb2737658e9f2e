"""MGF files whose spectra say what they are of: peptides (``SEQ=``), or compounds, as those of GNPS and MassBank do."""

from __future__ import annotations

import re

from proteoscope.engine.chemistry.noted_peptides import parse_peptide
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, parse
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector, first_charge
from proteoscope.engine.formats.libraries.msp import adduct_charge, seconds_of
from proteoscope.engine.formats.libraries.text_entries import Line, TextLibrary, last_of
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress

__all__ = ["MgfLibrary", "names_its_spectra", "read_mgf"]

_KEYS_OF_NAMES = ("NAME", "COMPOUND_NAME", "TITLE", "SPECTRUMID")

_SAID = re.compile(
    rb"^[ \t]*(?:SEQ|NAME|COMPOUND_NAME|SPECTRUMID|FORMULA|MOLECULAR_FORMULA|INCHI|INCHIKEY|INCHIAUX|SMILES|ADDUCT)[ \t]*=[ \t]*[^\s]",
    re.MULTILINE | re.IGNORECASE,
)


def names_its_spectra(beginning: bytes) -> bool:
    """Whether an MGF file that begins so says what its spectra are of, as a library does: not those that an instrument measured."""
    return _SAID.search(beginning) is not None


def read_mgf(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the spectra of an MGF file to a library."""
    MgfLibrary(source).read(library, progress)


class MgfLibrary(TextLibrary):
    """Reader of MGF as a library."""

    def cut(self, text: bytes) -> int:
        """Before the last ``BEGIN IONS``."""
        return last_of(text, (b"BEGIN IONS",))

    def begins_entry(self, line: bytes) -> bool:
        """Whether it is a ``BEGIN IONS``."""
        return line == b"BEGIN IONS"

    def entry(self, lines: list[Line]) -> Entry:
        """An entry from its lines."""
        found: dict[str, str] = {}
        for _, text in lines:
            key, sign, value = text.partition("=")
            if sign:
                found.setdefault(key.strip().upper(), value.strip())
        entry = Entry(lines[0][0], next((found[key] for key in _KEYS_OF_NAMES if found.get(key)), ""))
        if not any(text == "END IONS" for _, text in lines):
            entry.fault = "it has no END IONS: it is cut off"
        entry.formula = found.get("FORMULA", "") or found.get("MOLECULAR_FORMULA", "")
        entry.inchikey = found.get("INCHIKEY", "") or found.get("INCHIAUX", "")
        entry.adduct = found.get("ADDUCT", "") or found.get("PRECURSOR_TYPE", "")
        entry.charge = first_charge(found.get("CHARGE", "")) or adduct_charge(entry.adduct)
        if entry.charge > 0 and found.get("IONMODE", "").lower().startswith("neg"):
            entry.charge = -entry.charge
        entry.retention_time = seconds_of(found.get("RTINSECONDS", ""), 1.0)
        words = (found.get("PEPMASS", "") or found.get("PRECURSOR_MZ", "")).split(maxsplit=1)
        try:
            number = float(words[0]) if words and len(words[0]) <= 40 else 0.0
        except ValueError:
            number = 0.0
            entry.fault = entry.fault or "the m/z of its precursor is no number"
        if number != 0:
            entry.precursor_mz = number
        _take_peptide(entry, found.get("SEQ", ""))
        return entry


def _take_peptide(entry: Entry, text: str) -> None:
    if not text:
        return
    try:
        entry.peptide = parse_peptide(text)
    except ValueError:
        try:
            found = parse(text)
        except ParameterError:
            entry.fault = entry.fault or "its peptide cannot be read"
            return
        entry.peptide = Peptidoform(found.sequence, found.modifications, None, found.unlocalised, found.labile)
