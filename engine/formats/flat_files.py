"""Formats of annotated entries: GenBank and EMBL (proteins or nucleotides) and PIR, parsed by Biopython.

Formats: https://www.ncbi.nlm.nih.gov/genbank/samplerecord and https://www.insdc.org/submitting-standards/feature-table; PIR is NBRF's
format. A record of nucleotides yields the proteins of its coding sequences (``/translation``), named as in NCBI's FASTA files, or its
nucleotide sequence if nucleotides are requested.
"""

import io
import re
from collections.abc import Iterator
from typing import Any

from Bio import SeqIO
from Bio.Seq import UndefinedSequenceError
from Bio.SeqIO.PirIO import PirIterator

from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.entries import PARSER_ERRORS, Entry, EntryError, clean_sequence, feature_row, flat_file_cut
from proteoscope.engine.formats.features import FeatureRow, kind_code
from proteoscope.engine.formats.sources import Block

__all__ = ["Embl", "GenBank", "Pir"]

_RECORD_END = re.compile(rb"^//[ \t]*(?:\n|\Z)", re.MULTILINE)
_GENBANK_LENGTH = re.compile(rb"^LOCUS +\S+ +(\d+) (?:bp|aa)", re.MULTILINE)
_EMBL_LENGTH = re.compile(rb"^ID +[^\n]*?(\d+) (?:BP|AA)\.", re.MULTILINE)
_TEXTS = ("note", "product", "region_name", "site_type", "bond_type", "sec_str_type", "gene")
"""Qualifiers that may describe a feature, in order of preference."""
_SITE_KINDS = {
    "phosphorylation": "modified residue",
    "glycosylation": "glycosylation",
    "active": "active site",
    "lipid-binding": "lipidation",
}
"""Kinds of the features ``Site`` in GenBank, by their qualifier ``site_type``."""


_TRANSLATION_QUALIFIERS = {"translation", "pseudo", "pseudogene"}
"""Qualifiers of a coding sequence that has a protein sequence or is not translated in nature."""


class _FlatFile:
    """Format whose records end with a line ``//``."""

    name: str
    has_lines = True
    _parser: str
    _beginning: bytes
    _length: re.Pattern[bytes]
    _features: re.Pattern[bytes]
    _feature: re.Pattern[bytes]
    _feature_frame: tuple[bytes, bytes]

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete record in a text; 0 if no record is complete."""
        return flat_file_cut(text)

    def entries(self, block: Block, *, with_chromosomes: bool) -> Iterator[Entry]:
        """Yield the entries of a block (see `proteoscope.engine.formats.entries.EntryFormat`)."""
        text = block.text.removeprefix(b"\xef\xbb\xbf")
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
        line = at = 0
        for end in _RECORD_END.finditer(text):
            yield from self._parse_record(text[at : end.end()], line + 1, with_chromosomes)
            line += text.count(b"\n", at, end.end())
            at = end.end()
        if text[at:].strip():
            raise EntryError(line + 1, "the last record is cut off: it has no line // at its end")

    def _parse_record(self, text: bytes, line: int, with_chromosomes: bool) -> Iterator[Entry]:
        begins = text.find(self._beginning)
        if begins < 0 or (begins and text[begins - 1 : begins] != b"\n"):
            raise EntryError(line, f"the record does not begin with {self._beginning.decode().strip()}")
        line += text.count(b"\n", 0, begins)
        if text.count(b"\n" + self._beginning, begins) > 0:
            raise EntryError(line, "the record is cut off: another record begins before its end")
        n_broken = 0
        try:
            record = self._parsed(text[begins:])
        except PARSER_ERRORS:
            cleaned, n_broken = self._without_broken_features(text[begins:])
            try:
                record = self._parsed(cleaned)
            except PARSER_ERRORS as error:
                raise EntryError(line, f"the record is broken ({shortened(str(error).strip())})") from None
        if record is None:
            raise EntryError(line, "the record is broken")
        n_broken += sum(feature.location is None for feature in record.features)
        is_protein = record.annotations.get("molecule_type") == "protein"
        if is_protein or with_chromosomes:
            sequence, features = self._checked_sequence(record, text, line), _protein_features(record) if is_protein else ()
            yield Entry(_name(record), record.description.rstrip("."), sequence, features, line, n_broken)
            return
        coding = [feature for feature in record.features if feature.type == "CDS" and feature.location is not None]
        n_untranslated = sum(not _TRANSLATION_QUALIFIERS & feature.qualifiers.keys() for feature in coding)
        if n_broken or n_untranslated:
            # An entry without a sequence carries the counts of the record, which may have no protein; it is not listed as a protein.
            yield Entry(_name(record), "", b"", (), line, n_broken, n_untranslated)
        for feature in coding:
            if "translation" in feature.qualifiers:
                yield _coded(record, feature, line)

    def _parsed(self, text: bytes) -> Any:
        """Parse the first record of a text; return None if there is none.

        Raises
        ------
        PARSER_ERRORS
            If the text is malformed.
        """
        return next(SeqIO.parse(io.StringIO(text.decode("utf-8", "replace")), self._parser), None)

    def _without_broken_features(self, text: bytes) -> tuple[bytes, int]:
        """Return the text of a record without the features that cannot be parsed, and the number of these features."""
        first_line, n_broken = text[: text.find(b"\n") + 1], 0

        def retain(feature: re.Match[bytes]) -> bytes:
            nonlocal n_broken
            try:
                self._parsed(first_line + self._feature_frame[0] + feature[0] + self._feature_frame[1])
            except PARSER_ERRORS:
                n_broken += 1
                return b""
            return feature[0]

        return self._features.sub(lambda table: table[1] + self._feature.sub(retain, table[2]), text, count=1), n_broken

    def _checked_sequence(self, record: Any, text: bytes, line: int) -> bytes:
        """Return the sequence of a record; raise an error if its length differs from the length that the record states."""
        try:
            sequence = clean_sequence(bytes(record.seq))
        except UndefinedSequenceError:
            raise EntryError(line, "the record has no sequence, only a reference to it") from None
        declared = self._length.search(text)
        if declared is not None and int(declared.group(1)) != len(sequence.rstrip(b"*")):
            reason = f"the sequence has {len(sequence):,} residues, and the record declares {int(declared.group(1)):,}"
            raise EntryError(line, f"{reason}: it is cut off or damaged")
        return sequence


class GenBank(_FlatFile):
    """GenBank format, or GenPept for proteins."""

    name = "GenBank"
    _parser = "genbank"
    _beginning = b"LOCUS "
    _length = _GENBANK_LENGTH
    _features = re.compile(rb"^(FEATURES [^\n]*\n)((?: [^\n]*\n|\n)*)", re.MULTILINE)
    _feature = re.compile(rb"^ {1,20}\S[^\n]*\n(?: {21}[^\n]*\n|\n)*", re.MULTILINE)
    _feature_frame = b"FEATURES             Location/Qualifiers\n", b"ORIGIN\n//\n"


class Embl(_FlatFile):
    """EMBL format."""

    name = "EMBL"
    _parser = "embl"
    _beginning = b"ID   "
    _length = _EMBL_LENGTH
    _features = re.compile(rb"^(FH[^\n]*\n)((?:F[HT][^\n]*\n)*)", re.MULTILINE)
    _feature = re.compile(rb"^FT {1,18}\S[^\n]*\n(?:FT(?: {19}[^\n]*| *)\n)*", re.MULTILINE)
    _feature_frame = b"FH   Key             Location/Qualifiers\nFH\n", b"SQ   Sequence 0 BP;\n//\n"


def _name(record: Any) -> str:
    """Return the accession and version of a record, or the name of its locus if it has no accession."""
    return str(record.id if record.id.strip(". ") and record.id != "<unknown id>" else record.name)


def _coded(record: Any, feature: Any, line: int) -> Entry:
    """Return the protein that a coding sequence (`feature`) encodes, as an entry named by its accession, locus or position."""
    qualifiers = feature.qualifiers
    start, end = int(feature.location.start) + 1, int(feature.location.end)
    place = f"{_name(record)}:{start}-{end}({'-' if feature.location.strand == -1 else '+'})"
    accession = next((qualifiers[name][0] for name in ("protein_id", "locus_tag") if qualifiers.get(name)), place)
    title = next((qualifiers[name][0] for name in ("product", "gene", "note") if qualifiers.get(name)), "")
    organism = record.annotations.get("organism", "")
    description = f"{title} [{organism}]" if organism else title
    return Entry(accession, description, clean_sequence(qualifiers["translation"][0].encode("ascii", "replace")), (), line)


def _protein_features(record: Any) -> list[FeatureRow]:
    rows = []
    for feature in record.features:
        qualifiers = {name: values[0] for name, values in feature.qualifiers.items() if values}
        detail = qualifiers.get("sec_str_type", "").split("-")[-1].split()[-1:]
        kind = kind_code(_SITE_KINDS.get(qualifiers.get("site_type", ""), feature.type), "".join(detail))
        if kind >= 0 and feature.location is not None:
            text = next((qualifiers[name] for name in _TEXTS if name in qualifiers), "")
            row = feature_row(kind, feature.location.start, feature.location.end, text)
            rows += [row] if row is not None else []
    return rows


class Pir:
    """PIR format: a line ``>P1;`` with the name, a line with the description, and a sequence that ends with ``*``."""

    name = "PIR"
    has_lines = True

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the start of the last record in a text; 0 if no record is complete."""
        return max(text.rfind(b"\n>"), text.rfind(b"\r>")) + 1

    def entries(self, block: Block, *, with_chromosomes: bool) -> Iterator[Entry]:
        """Yield the entries of a block (see `proteoscope.engine.formats.entries.EntryFormat`)."""
        del with_chromosomes
        text = block.text.removeprefix(b"\xef\xbb\xbf")
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text
        starts = [match.start() for match in re.finditer(rb"^>", text, re.MULTILINE)]
        line = 1 + text.count(b"\n", 0, starts[0]) if starts else 1
        for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
            body = text[start:end]
            try:
                record = next(PirIterator(io.StringIO(_strip_remarks(body).decode("utf-8", "replace"))), None)
            except PARSER_ERRORS as error:
                raise EntryError(line, f"the record is broken ({shortened(str(error).strip())})") from None
            if record is None:
                raise EntryError(line, "the record has no description and no sequence")
            yield Entry(record.id, record.description, clean_sequence(bytes(record.seq)), (), line)
            line += body.count(b"\n")


def _strip_remarks(body: bytes) -> bytes:
    """Return a record without the remarks that follow the end of its sequence."""
    header, newline, rest = body.partition(b"\n")
    description, second, symbols = rest.partition(b"\n")
    sequence, star, _ = symbols.partition(b"*")
    return b"".join((header, newline, description, second, b"".join(sequence.split()) + star + b"\n"))
