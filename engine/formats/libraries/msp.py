"""Reader of MSP, the text format of NIST, and its variants: SpectraST (sptxt), MS-DIAL, MassBank, Prosit and MS2PIP.

An entry consists of lines ``KEY: VALUE``, including ``Name:`` and a comment of ``KEY=VALUE`` pairs, and ends with its peaks.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, noted_modification, parse_peptide
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector, read_charge, take_precursor, take_time
from proteoscope.engine.formats.libraries.text_entries import Line, TextLibrary, find_last_line
from proteoscope.engine.formats.numbers import whole_or
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.formats.spectrum_blocks import parse_polarity
from proteoscope.engine.jobs.progress import Progress

__all__ = ["MspLibrary", "adduct_charge", "read_msp", "take_charge", "take_polarity", "without_description"]

_COMMENT_CHARACTERS = 1 << 16
_PAIR = re.compile(r'(?<!\w)(\w{1,40})=("[^"]*"|[^\s"]*)')
_PEPTIDE_NAME = re.compile(r"((?:[A-Za-z]|\[[^\]]{1,200}\]|\([^)]{1,200}\)|[-.+])+)/(-?\d{1,3})(?:[_\s].*)?")
_MODIFICATION = re.compile(r"/(-?\d{1,5}),([A-Za-z.\[\]-]{1,10}),([^/]{1,200}?)(?=/-?\d|$)")
_MODIFICATION_IN_BRACKETS = re.compile(r"\((-?\d{1,5}),([A-Za-z.\[\]-]{1,10}),([^()]{1,200})\)")
_NUMBERS = re.compile(rb"(?:PRECURSOR[ _]?M/?Z[ \t]*:[ \t]*)?([-+(]?[0-9.,].*)", re.IGNORECASE)
_ADDUCT_CHARGE = re.compile(r"\](\d{0,3})([+-])")
_SPECIES_AND_CHARGE = re.compile(r"(?<!\w)Ch=(\d{1,3})(?!\w)")
_SHORT_NAMES = {
    "CAM": "Carbamidomethyl",
    "Pyro-glu": "Gln->pyro-Glu",
    "Pyro_glu": "Glu->pyro-Glu",
    "Pyro-cmC": "Pyro-carbamidomethyl",
    "Pyro_cmC": "Pyro-carbamidomethyl",
    "AB_old_ICATd0": "ICAT-D",
    "AB_old_ICATd8": "ICAT-D:2H(8)",
    "iTRAQ": "iTRAQ4plex",
    "TMT": "TMT6plex",
}
"""Unimod names of modifications that have other names in NIST and SpectraST."""
_LINES = re.compile(rb"[^\r\n]+")
_PAIR_KEYS = frozenset(
    (
        "charge",
        "inchikey",
        "mods",
        "ms_mode",
        "mz_exact",
        "nreps",
        "parent",
        "precursor_type",
        "protein",
        "remark",
        "retentiontime",
        "rt",
        "spec",
    )
)
"""Keys of the pairs in a comment that describe the entry."""
_SINGLE = ("precursormz", "charge", "numpeaks", "ionmode")
"""Keys that must not have different values in an entry."""
_ANCHORS = (b"name:", b"compound_name:", b"compoundname:", b"compound name:", b"num peaks", b"num_peaks", b"numpeaks")
_TAIL = 1 << 16
"""Number of bytes at the end of a text that usually suffice for its last entry."""
_PEAK_CHARACTERS = b"0123456789.+-("


def read_msp(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the entries of an MSP or sptxt file to a library.

    Parameters
    ----------
    source : ByteSource
        File.
    library : LibraryCollector
        Library that receives the entries.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.

    Raises
    ------
    InputError
        If the file as a whole is not in this format.
    """
    MspLibrary(source).read(library, progress)


class MspLibrary(TextLibrary):
    """Reader of MSP and of SpectraST's text format."""

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the start of the last entry in a text; 0 if only one entry starts in it.

        An entry starts at the first line after the peaks of the previous entry, or, without peaks, after its number of peaks.
        """
        start = max(0, len(text) - _TAIL)
        last = find_last_line(text[start:].lower(), _ANCHORS)
        at = start + last if last or not start else find_last_line(text.lower(), _ANCHORS)
        while at > 0:
            end = at - 2 if text[at - 2 : at] == b"\r\n" else at - 1
            start = max(text.rfind(b"\n", 0, end), text.rfind(b"\r", 0, end)) + 1
            line = text[start:end].strip()
            if line and (line[:1] in _PEAK_CHARACTERS or _line_key(line) == b"numpeaks"):
                return at
            at = start
        return 0

    def entry_rows(self, data: bytes, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of `table` with the first lines of entries; an entry ends after its peaks, or before a second ``Name:``."""
        rows = np.empty(len(table), np.int64)
        return rows[: kernels.cpu.library_text.msp_entry_rows(np.frombuffer(data, np.uint8), table, rows)]

    def numbers(self, text: bytes) -> Iterator[bytes]:
        """Yield the m/z and intensities of precursors and peaks as text."""
        for line in _LINES.finditer(text):
            if match := _NUMBERS.fullmatch(line[0].strip()):
                for word in match[1].split()[:2]:
                    yield word.strip(b";()")

    def entry(self, lines: list[Line]) -> Entry:
        """Return the entry described by its lines."""
        fields: dict[str, str] = {}
        pairs: dict[str, str] = {}
        issue, has_words = "", False
        for _, text in lines:
            key, colon, value = text.partition(":")
            if not colon:
                # A declared number of peaks reveals misread peaks. Without this number, a line without a key makes the entry invalid.
                has_words = has_words or not text.startswith("#")
                continue
            key, value = _plain(key), value.strip()
            if key in ("comment", "comments"):
                for name, pair in _PAIR.findall(value[:_COMMENT_CHARACTERS]):
                    if (name := name.lower()) in _PAIR_KEYS:
                        pairs.setdefault(name, pair.strip('"'))
                continue
            before = fields.setdefault(key, value)
            if before != value:
                if not before:
                    fields[key] = value
                elif value and key in _SINGLE:
                    issue = f"it has two different values of {text.partition(':')[0].strip()}"
        entry = Entry(lines[0][0], fields.get("name", "") or fields.get("compoundname", ""), issue=issue)
        _take_molecule(entry, fields, pairs)
        if not (fields.get("inchikey") or fields.get("smiles") or fields.get("formula") or fields.get("inchi")):
            _take_peptide(entry, fields, pairs)
        _take_numbers(entry, fields, pairs, self._decimal)
        _take_proteins(entry, pairs)
        if has_words and entry.n_announced < 0:
            entry.issue = entry.issue or "one of its lines is neither a peak nor of the form KEY: VALUE"
        return entry


def _line_key(line: bytes) -> bytes:
    """Return the normalised key of a line."""
    return _plain_bytes(line.partition(b":")[0])


@lru_cache(1 << 10)
def _plain_bytes(key: bytes) -> bytes:
    """Normalise a key given as bytes."""
    return _plain(key.decode("latin-1")).encode("latin-1", "replace")


@lru_cache(1 << 10)
def _plain(key: str) -> str:
    """Return a key without blanks and underscores, in lower case, since programs write the same key differently."""
    return "".join(key.split()).replace("_", "").lower()


def _take_molecule(entry: Entry, fields: dict[str, str], pairs: dict[str, str]) -> None:
    entry.formula = fields.get("formula", "")
    entry.inchikey = fields.get("inchikey", "") or pairs.get("inchikey", "")
    entry.adduct = fields.get("precursortype", "") or fields.get("adduct", "") or pairs.get("precursor_type", "")


def _take_peptide(entry: Entry, fields: dict[str, str], pairs: dict[str, str]) -> None:
    named = _PEPTIDE_NAME.fullmatch(entry.name) if len(entry.name) < 2000 else None
    if named is None:
        return
    entry.charge = int(named[2])
    try:
        peptide = parse_peptide(named[1])
    except ValueError:
        return
    noted = pairs.get("mods", "")
    if not noted or noted[0] == "0":
        entry.peptide = peptide
        return
    # The name may abbreviate modifications, such as M(O) or C[160], that the comment gives in full.
    placed = _MODIFICATION_IN_BRACKETS.findall(noted) if "(" in noted.partition("/")[0] else _MODIFICATION.findall(noted)
    digits = re.match(r"\d{1,5}", noted)
    if digits is None or int(digits[0]) != len(placed):
        entry.issue = "the modifications of its peptide cannot be read"
        return
    length = len(peptide.sequence)
    entry.peptide = NotedPeptide(peptide.sequence, tuple(sorted(_placed(int(at), name, length) for at, _, name in placed)))


def _placed(at: int, name: str, length: int) -> NotedModification:
    """Return a modification of ``Mods=`` with the position of `NotedModification`.

    In ``Mods=``, residues are counted from 0, and -1 and -2 are the N-terminus and the C-terminus.
    """
    position = {-1: 0, -2: length + 1}.get(at, at + 1)
    name = name.strip()
    return noted_modification(position, name) if name[0] in "+-" else NotedModification(position, _SHORT_NAMES.get(name, name))


def _take_numbers(entry: Entry, fields: dict[str, str], pairs: dict[str, str], decimal: int) -> None:
    if not entry.charge:
        take_charge(entry, fields.get("charge", "") or pairs.get("charge", ""))
        if not entry.charge and (species := _SPECIES_AND_CHARGE.search(entry.name[-200:])):
            entry.charge = int(species[1])
    take_polarity(entry, fields.get("ionmode", "") or fields.get("polarity", "") or pairs.get("ms_mode", ""))
    for text in (fields.get("precursormz", ""), pairs.get("mz_exact", ""), pairs.get("parent", "")):
        if take_precursor(entry, text, decimal):
            break
    if fields.get("retentiontime") or fields.get("rt"):
        take_time(entry, fields.get("retentiontime") or fields.get("rt", ""), 60.0, decimal)
    elif "retentiontime" in pairs:
        # SpectraST: median, maximum and minimum in seconds
        take_time(entry, pairs["retentiontime"].partition(",")[0], 1.0, decimal)
    elif "rt" in pairs:
        take_time(entry, pairs["rt"], 60.0, decimal)  # NIST, minutes
    members = whole_or(pairs.get("nreps", "").partition("/")[0], 1)
    entry.n_members = members if 1 <= members < 1e9 else 1
    announced = fields.get("numpeaks", "")
    entry.n_announced = whole_or(announced, -1)
    if announced and entry.n_announced < 0:
        entry.issue = entry.issue or "its number of peaks is not a whole number"
    entry.is_decoy = pairs.get("remark", "").startswith("DECOY") or pairs.get("spec", "").lower() == "decoy"


def take_charge(entry: Entry, text: str) -> None:
    """Set the charge of an entry.

    Parameters
    ----------
    entry : Entry
        Entry; gets an issue if the charge cannot be parsed.
    text : str
        Charge, such as ``2+``; if it is empty, the charge of the adduct is used.
    """
    try:
        entry.charge = read_charge(text) or adduct_charge(entry.adduct)
    except ValueError:
        entry.issue = entry.issue or "its charge is not a whole number"


def take_polarity(entry: Entry, text: str) -> None:
    """Set the polarity of an entry; for negative ions, make the charge negative.

    Parameters
    ----------
    entry : Entry
        Entry with its charge.
    text : str
        Polarity, such as ``negative``; an empty text changes nothing.
    """
    if not text:
        return
    entry.polarity = parse_polarity(text.encode())
    if entry.charge > 0 and entry.polarity < 0:
        entry.charge = -entry.charge


def _take_proteins(entry: Entry, pairs: dict[str, str]) -> None:
    text = pairs.get("protein", "")
    count, slash, names = text.partition("/")
    # SpectraST begins with the number of proteins (2/P1,P2); NIST writes the header of the FASTA file.
    if slash and count.isdigit():
        entry.proteins = [name for name in names.split(",") if name]
    else:
        accession = without_description(text)
        entry.proteins = [accession] if accession else []


def without_description(text: str) -> str:
    """Return the accession of a protein, which is the first word of its FASTA header."""
    words = text.split(maxsplit=1)
    return words[0].rstrip(";,") if words else ""


def adduct_charge(adduct: str) -> int:
    """Return the charge of an adduct, 0 if unknown.

    Examples
    --------
    >>> adduct_charge("[M+2H]2+"), adduct_charge("[M-H]-"), adduct_charge("M")
    (2, -1, 0)
    """
    match = _ADDUCT_CHARGE.search(adduct[:200])
    if match is None:
        return 0
    return int(match[1] or 1) * (1 if match[2] == "+" else -1)
