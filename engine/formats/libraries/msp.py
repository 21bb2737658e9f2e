"""MSP, the text of NIST, and what others made of it: SpectraST (sptxt), MS-DIAL, MassBank, Prosit and MS2PIP.

An entry begins with ``Name:``; lines ``KEY: VALUE`` follow, one of which is a comment of ``KEY=VALUE`` pairs, and then the peaks.
"""

from __future__ import annotations

import re

from proteoscope.engine.chemistry.noted_peptides import NotedModification, NotedPeptide, noted_modification, parse_peptide
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector, first_charge
from proteoscope.engine.formats.libraries.text_entries import Line, TextLibrary, last_of
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress

__all__ = ["MspLibrary", "adduct_charge", "read_msp", "seconds_of", "without_description"]

_COMMENT_LETTERS = 1 << 16
_PAIR = re.compile(r'(?<!\w)(\w{1,40})=("[^"]*"|[^\s"]*)')
_PEPTIDE_NAME = re.compile(r"((?:[A-Za-z]|\[[^\]]{1,200}\]|\([^)]{1,200}\)|[-.+])+)/(-?\d{1,3})(?:[_\s].*)?")
_MODIFICATION = re.compile(r"/(-?\d{1,5}),([A-Za-z.\[\]-]{1,10}),([^/]{1,200}?)(?=/-?\d|$)")
_MODIFICATION_IN_BRACKETS = re.compile(r"\((-?\d{1,5}),([A-Za-z.\[\]-]{1,10}),([^()]{1,200})\)")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")
_ADDUCT_CHARGE = re.compile(r"\](\d{0,3})([+-])")
_SPECIES_AND_CHARGE = re.compile(r"(?<!\w)Ch=(\d{1,3})(?!\w)")
_SHORT_NAMES = {
    "CAM": "Carbamidomethyl", "Pyro-glu": "Gln->pyro-Glu", "Pyro_glu": "Glu->pyro-Glu", "Pyro-cmC": "Pyro-carbamidomethyl",
    "Pyro_cmC": "Pyro-carbamidomethyl", "AB_old_ICATd0": "ICAT-D", "AB_old_ICATd8": "ICAT-D:2H(8)",
    "iTRAQ": "iTRAQ4plex",
    "TMT": "TMT6plex",
}  # fmt: skip
"""What NIST and SpectraST call modifications that Unimod calls otherwise."""
_OF_SMALL_MOLECULES = ("inchikey", "smiles", "formula", "inchi")


def read_msp(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the entries of an MSP or sptxt file to a library."""
    MspLibrary(source).read(library, progress)


class MspLibrary(TextLibrary):
    """Reader of MSP and of SpectraST's text."""

    def cut(self, text: bytes) -> int:
        """Before the last ``Name:``."""
        return last_of(text, (b"Name:", b"NAME:", b"name:"))

    def begins_entry(self, line: bytes) -> bool:
        """Whether it is a ``Name:``."""
        return line[:5] in (b"Name:", b"NAME:", b"name:")

    def entry(self, lines: list[Line]) -> Entry:
        """An entry from its lines."""
        found: dict[str, str] = {}
        pairs: dict[str, str] = {}
        for _, text in lines:
            key, colon, value = text.partition(":")
            key = key.strip().lower()
            if not colon:
                continue
            if key in ("comment", "comments"):
                for name, pair in _PAIR.findall(value[:_COMMENT_LETTERS]):
                    pairs.setdefault(name.lower(), pair.strip('"'))
            else:
                found.setdefault(key.replace(" ", "").replace("_", ""), value.strip())
        entry = Entry(lines[0][0], found.get("name", ""))
        _take_molecule(entry, found, pairs)
        if not any(found.get(key) for key in _OF_SMALL_MOLECULES):
            _take_peptide(entry, found, pairs)
        _take_numbers(entry, found, pairs)
        _take_proteins(entry, pairs)
        return entry


def _take_molecule(entry: Entry, found: dict[str, str], pairs: dict[str, str]) -> None:
    entry.formula = found.get("formula", "")
    entry.inchikey = found.get("inchikey", "") or pairs.get("inchikey", "")
    entry.adduct = found.get("precursortype", "") or found.get("adduct", "") or pairs.get("precursor_type", "")


def _take_peptide(entry: Entry, found: dict[str, str], pairs: dict[str, str]) -> None:
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
    # The name may abbreviate what the comment says in full: M(O), C[160].
    placed = _MODIFICATION_IN_BRACKETS.findall(noted) if "(" in noted.partition("/")[0] else _MODIFICATION.findall(noted)
    digits = re.match(r"\d{1,5}", noted)
    if digits is None or int(digits[0]) != len(placed):
        entry.fault = "the modifications of its peptide cannot be read"
        return
    length = len(peptide.sequence)
    entry.peptide = NotedPeptide(peptide.sequence, tuple(sorted(_placed(int(at), name, length) for at, _, name in placed)))


def _placed(at: int, name: str, length: int) -> NotedModification:
    """A modification of ``Mods=``, whose residues are counted from 0; -1 is the N-terminus, -2 the C-terminus."""
    position = {-1: 0, -2: length + 1}.get(at, at + 1)
    name = name.strip()
    return noted_modification(position, name) if name[0] in "+-" else NotedModification(position, _SHORT_NAMES.get(name, name))


def _take_numbers(entry: Entry, found: dict[str, str], pairs: dict[str, str]) -> None:
    if not entry.charge:
        entry.charge = first_charge(found.get("charge", "") or pairs.get("charge", "")) or adduct_charge(entry.adduct)
        if not entry.charge and (species := _SPECIES_AND_CHARGE.search(entry.name[-200:])):
            entry.charge = int(species[1])
    mode = (found.get("ionmode", "") or pairs.get("ms_mode", "")).strip().lower()
    if entry.charge > 0 and (mode.startswith("neg") or mode in ("n", "-")):
        entry.charge = -entry.charge
    for text in (found.get("precursormz", ""), pairs.get("mz_exact", ""), pairs.get("parent", "")):
        number = _number(text)
        if number > 0:
            entry.precursor_mz = number
            break
    if found.get("retentiontime") or found.get("rt"):
        entry.retention_time = seconds_of(found.get("retentiontime") or found.get("rt", ""), 60.0)
    elif "retentiontime" in pairs:
        entry.retention_time = seconds_of(pairs["retentiontime"], 1.0)  # SpectraST: median, highest and lowest, in seconds
    elif "rt" in pairs:
        entry.retention_time = seconds_of(pairs["rt"], 60.0)  # NIST, minutes
    members = _number(pairs.get("nreps", ""))
    entry.n_members = int(members) if 1 <= members < 1e9 else 1
    announced = _number(found.get("numpeaks", ""))
    entry.n_announced = int(announced) if 0 <= announced < 1e15 else -1
    entry.is_decoy = pairs.get("remark", "").startswith("DECOY") or pairs.get("spec", "").lower() == "decoy"


def _take_proteins(entry: Entry, pairs: dict[str, str]) -> None:
    text = pairs.get("protein", "")
    count, slash, names = text.partition("/")
    # SpectraST counts them first: 2/P1,P2; NIST writes the line of the FASTA file.
    if slash and count.isdigit():
        entry.proteins = ";".join(name for name in names.split(",") if name)
    else:
        entry.proteins = without_description(text)


def without_description(text: str) -> str:
    """The accession of a protein: the first word of its line in the FASTA file."""
    words = text.split(maxsplit=1)
    return words[0].rstrip(";,") if words else ""


def _number(text: str) -> float:
    """The number that a text begins with; NaN where it begins with none."""
    found = _NUMBER.match(text.lstrip())
    return float(found[0]) if found else float("nan")


def seconds_of(text: str, unit: float) -> float:
    """A time from a text in seconds: by the unit that it names, or by `unit` seconds; negative ones, which mean none, are NaN.

    >>> seconds_of("2.5 min", 1.0), seconds_of("90", 1.0), seconds_of("-1", 1.0)
    (150.0, 90.0, nan)
    """
    found = _NUMBER.match(text.lstrip())
    if found is None:
        return float("nan")
    behind = text.lstrip()[found.end() :].strip().lower()
    factor = 60.0 if behind.startswith("min") else 1.0 if behind.startswith("s") else unit
    seconds = float(found[0]) * factor
    return seconds if seconds >= 0 else float("nan")


def adduct_charge(adduct: str) -> int:
    """The charge that an adduct has, 0 where it names none.

    >>> adduct_charge("[M+2H]2+"), adduct_charge("[M-H]-"), adduct_charge("M")
    (2, -1, 0)
    """
    found = _ADDUCT_CHARGE.search(adduct[:200])
    if found is None:
        return 0
    return int(found[1] or 1) * (1 if found[2] == "+" else -1)
