"""Reader of MGF files that contain the peptides (``SEQ=``) or compounds of their spectra, such as files from GNPS and MassBank."""

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.noted_peptides import parse_peptide
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, parse
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector, take_precursor, take_time
from proteoscope.engine.formats.libraries.msp import take_charge, take_polarity
from proteoscope.engine.formats.libraries.text_entries import Line, TextLibrary, find_last_line, rows_with
from proteoscope.engine.formats.numbers import MISSING
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress

__all__ = ["MgfLibrary", "has_molecule_names", "read_mgf"]

_KEYS_OF_NAMES = ("NAME", "COMPOUND_NAME", "TITLE", "SPECTRUMID")
_LINES = re.compile(rb"[^\r\n]+")
_KEYS_OF_COMPOUNDS = ("NAME", "COMPOUND_NAME", "SMILES", "INCHI", "INCHIKEY", "INCHIAUX", "FORMULA")
_NUMBERS = re.compile(rb"(?:(?:PEPMASS|PRECURSOR_MZ)[ \t]*=[ \t]*)?([-+]?[0-9.,].*)", re.IGNORECASE)

_NAMED = re.compile(
    rb"^[ \t]*(?:SEQ|NAME|COMPOUND_NAME|SPECTRUMID|FORMULA|MOLECULAR_FORMULA|INCHI|INCHIKEY|INCHIAUX|SMILES|ADDUCT)[ \t]*=[ \t]*[^\s]",
    re.MULTILINE | re.IGNORECASE,
)


def has_molecule_names(beginning: bytes) -> bool:
    """Return True if the beginning of an MGF file names the molecules of its spectra, as in a library."""
    return _NAMED.search(beginning) is not None


def read_mgf(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the spectra of an MGF file to a library.

    Parameters
    ----------
    source : ByteSource
        File.
    library : LibraryCollector
        Library that receives the spectra.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.

    Raises
    ------
    InputError
        If the file as a whole is not in this format.
    """
    MgfLibrary(source).read(library, progress)


class MgfLibrary(TextLibrary):
    """Reader of MGF files as spectral libraries."""

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the last line ``BEGIN IONS``, or 0."""
        return find_last_line(text, (b"BEGIN IONS",))

    def entry_rows(self, data: bytes, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the line table that are ``BEGIN IONS``."""
        return rows_with(data, table, b"BEGIN IONS", is_whole=True)

    def numbers(self, text: bytes) -> Iterator[bytes]:
        """Yield the m/z and intensities of precursors and peaks as text."""
        for line in _LINES.finditer(text):
            if match := _NUMBERS.fullmatch(line[0].strip()):
                yield from match[1].split()[:2]

    def entry(self, lines: list[Line]) -> Entry:
        """Return the entry described by its lines."""
        fields: dict[str, str] = {}
        issue = ""
        for _, text in lines:
            key, sign, value = text.partition("=")
            if sign:
                fields.setdefault(key.strip().upper(), value.strip())
            elif text[:1] not in "#;!/" and text not in ("BEGIN IONS", "END IONS"):
                issue = "one of its lines is neither a peak nor of the form KEY=VALUE"
        entry = Entry(lines[0][0], next((fields[key] for key in _KEYS_OF_NAMES if fields.get(key)), ""), issue=issue)
        if not any(text == "END IONS" for _, text in lines):
            entry.issue = "it has no END IONS: it is cut off"
        if fields.get("MSLEVEL", "").strip() == "1":
            entry.issue = "it is an MS1 spectrum (MSLEVEL=1), not a fragment spectrum"
        entry.formula = fields.get("FORMULA", "") or fields.get("MOLECULAR_FORMULA", "")
        entry.inchikey = fields.get("INCHIKEY", "") or fields.get("INCHIAUX", "")
        entry.adduct = fields.get("ADDUCT", "") or fields.get("PRECURSOR_TYPE", "")
        take_time(entry, fields.get("RTINSECONDS", ""), 1.0, self._decimal)
        words = (fields.get("PEPMASS", "") or fields.get("PRECURSOR_MZ", "")).split(maxsplit=2)
        take_precursor(entry, words[0] if words else "", self._decimal)
        take_charge(entry, words[2] if len(words) > 2 else fields.get("CHARGE", ""))
        take_polarity(entry, fields.get("IONMODE", "") or fields.get("ION_MODE", "") or fields.get("POLARITY", ""))
        _take_peptide(entry, fields.get("SEQ", ""), is_compound=any(fields.get(key) for key in _KEYS_OF_COMPOUNDS))
        return entry


def _take_peptide(entry: Entry, text: str, *, is_compound: bool) -> None:
    """Set the peptide of an entry from the text of ``SEQ``, unless the text is empty or a placeholder such as ``*..*``."""
    if not text.strip("*.-_ ") or text.lower() in MISSING:
        return
    try:
        entry.peptide = parse_peptide(text)
    except ValueError:
        try:
            peptidoform = parse(text)
        except ParameterError:
            if is_compound:
                entry.remark = entry.remark or "no peptide can be read from its SEQ, and it is read as a compound"
            else:
                entry.issue = entry.issue or "its peptide cannot be read"
            return
        entry.peptide = Peptidoform(peptidoform.sequence, peptidoform.modifications, None, peptidoform.unlocalised, peptidoform.labile)
