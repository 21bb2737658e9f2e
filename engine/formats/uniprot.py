"""Entries of UniProt as text (``.dat``, of Swiss-Prot and TrEMBL) and as XML, parsed by Biopython.

Formats: https://web.expasy.org/docs/userman.html and https://www.uniprot.org/docs/uniprot.xsd. Accession and description are composed as
in UniProt's FASTA files (https://www.uniprot.org/help/fasta-headers), so that all formats give the same tables.
"""

import io
import re
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import ParseError

from Bio import SwissProt
from Bio.SeqIO.UniprotIO import UniprotIterator

from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.entries import PARSER_ERRORS, Entry, EntryError, clean_sequence, feature_row, flat_file_cut
from proteoscope.engine.formats.features import FeatureRow, kind_code
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.formats.tags import xml_encoding

__all__ = ["SwissProtText", "UniprotXml"]

_NEEDED = re.compile(rb"^(?:ID|AC|DT|DE|GN|OS|OX|PE|FT|SQ|  |//)[^\n]*\n?", re.MULTILINE)
"""Regular expression of the lines of an entry that are parsed; the rest, mainly references and comments, is two thirds of an entry."""
_ENTRY_START = re.compile(rb"^ID   ", re.MULTILINE)
_MAXIMUM_CONTINUED = 500
"""Maximum number of lines of a feature; descriptions of splice variants have up to about forty."""
_LONG_FEATURE = re.compile(rb"(?:^FT {10}[^\n]*\n){%d}" % _MAXIMUM_CONTINUED, re.MULTILINE)
_ENTRY_END = re.compile(r"^//[^\n]*(?:\n|\Z)", re.MULTILINE)
_FEATURE = re.compile(r"^FT {3}\S[^\n]*\n(?:FT {4}[^\n]*\n)*", re.MULTILINE)
_FEATURE_ALONE = "ID   A_B   Reviewed;   1 AA.\n{}//\n"
"""Text of an entry that contains only one feature."""
_XML_ENTRY = re.compile(rb"<entry\b.*?</entry>", re.DOTALL)
_XML_FEATURE = re.compile(rb"<feature\b(?:[^>]*/>|.*?</feature>)", re.DOTALL)
_EVIDENCE = re.compile(r" ?\{[A-Z]{2,}:[^}]*\}")
_FULL_NAME = re.compile(r"(?:RecName|SubName): Full=(.*?);")
_FRAGMENT = re.compile(r"Flags:[^:]*\b(Fragments?)\b")
_COMMON_NAME = re.compile(
    r" \((?!strain|isolate|subsp|serovar|serotype|biovar|pathovar|clone|type|group|lineage)[^()]*(?:\([^()]*\)[^()]*)*\)$"
)
_EXISTENCE = {
    "evidence at protein level": 1,
    "evidence at transcript level": 2,
    "inferred from homology": 3,
    "predicted": 4,
    "uncertain": 5,
}


class SwissProtText:
    """UniProt's text format: lines that begin with a two-character code, and entries that end with ``//``."""

    name = "Swiss-Prot text"
    has_lines = True

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete entry in a text; 0 if no entry is complete."""
        return flat_file_cut(text)

    def entries(self, block: Block, *, with_chromosomes: bool) -> Iterator[Entry]:
        """Yield the entries of a block (see `proteoscope.engine.formats.entries.EntryFormat`)."""
        del with_chromosomes
        text = _with_line_ends(block.text)
        lines = _entry_lines(text)
        if block.is_last and text.strip():
            raise EntryError(lines[-1] if lines else 1, "the last entry is cut off: it has no line // at its end")
        if (match := _LONG_FEATURE.search(text)) is not None:
            raise EntryError(text.count(b"\n", 0, match.start()) + 1, f"a feature has more than {_MAXIMUM_CONTINUED:,} lines")
        needed, at, number = b"".join(_NEEDED.findall(text)).decode("utf-8", "replace"), 0, 0
        for end in _ENTRY_END.finditer(needed):
            line, lines_of_entry = lines[min(number, len(lines) - 1)] if lines else 1, needed[at : end.end()]
            at, number = end.end(), number + 1
            try:
                record, n_unread = next(SwissProt.parse(io.StringIO(lines_of_entry)), None), 0
            except PARSER_ERRORS:
                lines_of_entry, n_unread = _without_broken_features(lines_of_entry)
                try:
                    record = next(SwissProt.parse(io.StringIO(lines_of_entry)), None)
                except PARSER_ERRORS as error:
                    raise EntryError(line, f"the entry is broken ({shortened(str(error).strip())})") from None
            if record is not None:
                yield self._entry(record, line, n_unread)
        if number < len(lines):
            raise EntryError(lines[number], "the entry has no line // at its end")

    def _entry(self, record: Any, line: int, n_unread: int) -> Entry:
        if not record.accessions or not record.accessions[0]:
            raise EntryError(line, "the entry has no accession")
        sequence = clean_sequence(record.sequence.encode("ascii", "replace"))
        if len(sequence) != record.sequence_length:
            reason = f"the sequence has {len(sequence):,} residues, and its line ID declares {record.sequence_length:,}"
            raise EntryError(line, f"{reason}: it is cut off or damaged")
        source = "sp" if record.data_class in ("Reviewed", "STANDARD") else "tr"
        names = _EVIDENCE.sub("", record.description)
        full = _FULL_NAME.search(names)
        title = full.group(1).strip() if full else names.rstrip(". ;")
        fragment = _FRAGMENT.search(names)
        version = record.sequence_update[1] if record.sequence_update else 0
        description = _description(
            f"{title} ({fragment.group(1)})" if fragment and "(Fragment" not in title else title,
            _EVIDENCE.sub("", record.organism.rstrip(". ")),
            "".join(record.taxonomy_id[:1]),
            _gene(record.gene_name[0] if record.gene_name else {}),
            record.protein_existence,
            version,
        )
        features = [row for row in map(_text_feature, record.features) if row is not None]
        return Entry(f"{source}|{record.accessions[0]}|{record.entry_name}", description, sequence, features, line, n_unread)


def _without_broken_features(entry: str) -> tuple[str, int]:
    """Return the text of an entry without the features that cannot be parsed, and the number of these features."""
    n_broken = 0

    def retain(feature: re.Match[str]) -> str:
        nonlocal n_broken

        try:
            next(SwissProt.parse(io.StringIO(_FEATURE_ALONE.format(feature[0]))))
        except PARSER_ERRORS:
            n_broken += 1
            return ""
        return feature[0]

    return _FEATURE.sub(retain, entry), n_broken


def _entry_lines(text: bytes) -> list[int]:
    """Return the number of the first line of each entry, from 1."""
    lines, at, line = [], 0, 1
    for match in _ENTRY_START.finditer(text):
        line += text.count(b"\n", at, match.start())
        at = match.start()
        lines.append(line)
    return lines


def _with_line_ends(text: bytes) -> bytes:
    text = text.removeprefix(b"\xef\xbb\xbf")
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in text else text


def _text_feature(feature: Any) -> FeatureRow | None:
    kind = kind_code(feature.type)
    if kind < 0 or feature.location.ref:  # the position is in another isoform
        return None
    qualifiers = feature.qualifiers
    text = _EVIDENCE.sub("", qualifiers.get("note") or qualifiers.get("description") or qualifiers.get("ligand") or "")
    return feature_row(kind, feature.location.start, feature.location.end, text.rstrip("."))


def _gene(names: dict[str, Any]) -> str:
    gene = names.get("Name") or next((names[key][0] for key in ("OrderedLocusNames", "ORFNames") if names.get(key)), "")
    return _EVIDENCE.sub("", gene)


def _description(title: str, organism: str, taxonomy: str, gene: str, existence: int | str, version: int | str) -> str:
    """Return a description as in UniProt's FASTA headers: name, and organism, taxonomy, gene, existence and version with their keys."""
    while (shorter := _COMMON_NAME.sub("", organism)) != organism:
        organism = shorter
    parts = (("OS", organism), ("OX", taxonomy), ("GN", gene), ("PE", existence), ("SV", version))
    return " ".join([title, *(f"{key}={value}" for key, value in parts if value)])


class UniprotXml:
    """UniProt's XML format.

    For safety, only the text from ``<entry`` to ``</entry>`` is parsed, without declarations, in a root element that this program adds.
    """

    name = "UniProt XML"
    has_lines = False

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete entry in a text; 0 if no entry is complete."""
        return text.rfind(b"</entry>") + len(b"</entry>") if b"</entry>" in text else 0

    def entries(self, block: Block, *, with_chromosomes: bool) -> Iterator[Entry]:
        """Yield the entries of a block; see `proteoscope.engine.formats.entries.EntryFormat`."""
        del with_chromosomes
        if block.is_first:
            self._encoding = xml_encoding(block.text)
        start = block.text.find(b"<entry")
        if block.is_last:
            if b"</uniprot>" not in block.text or start >= 0:
                at = block.text.count(b"\n", 0, max(start, 0)) + 1
                raise EntryError(at, "the file is cut off: it does not end with </uniprot>")
            return
        head = b'<?xml version="1.0" encoding="%b"?><uniprot xmlns="http://uniprot.org/uniprot">' % self._encoding.encode()
        before = block.text.count(b"\n", 0, start)
        text = block.text[start:]
        lines = []
        at = line = 0
        while (start := text.find(b"<entry", at)) >= 0:
            line += text.count(b"\n", at, start)
            lines.append(before + line + 1)
            line += text.count(b"\n", start, start + 6)
            at = start + 6
        records = UniprotIterator(io.BytesIO(head + text + b"</uniprot>"))
        number = 0
        while True:
            line_of_entry = lines[min(number, len(lines) - 1)] if lines else 1
            try:
                record = next(records, None)
            except ParseError as error:
                raise EntryError(before + error.position[0], f"the XML is broken ({shortened(str(error).partition(':')[0])})") from None
            except PARSER_ERRORS:
                break
            if record is None:
                return
            yield self._entry(record, line_of_entry)
            number += 1
        # The parser cannot continue: read the remaining entries one by one, without the features that cannot be parsed.
        for entry in _XML_ENTRY.findall(text)[number:]:
            line_of_entry = lines[min(number, len(lines) - 1)]
            number += 1
            cleaned, n_unread = _without_broken_elements(entry, head)
            try:
                record = next(UniprotIterator(io.BytesIO(head + cleaned + b"</uniprot>")))
            except (ParseError, StopIteration, *PARSER_ERRORS) as error:
                raise EntryError(line_of_entry, f"the entry is broken ({shortened(str(error).strip()) or type(error).__name__})") from None
            yield self._entry(record, line_of_entry, n_unread)

    def _entry(self, record: Any, line: int, n_unread: int = 0) -> Entry:
        annotations = record.annotations
        sequence = clean_sequence(bytes(record.seq or b""))
        if annotations.get("sequence_length", len(sequence)) != len(sequence) or not sequence:
            declared = annotations.get("sequence_length", "none")
            reason = f"the sequence has {len(sequence):,} residues, and its element declares {declared}"
            raise EntryError(line, f"{reason}: it is cut off or damaged")
        source = "sp" if annotations.get("dataset") == "Swiss-Prot" else "tr"
        title = record.description if record.description != "<unknown description>" else ""
        if "sequence_fragment" in annotations:
            title = f"{title} ({'Fragments' if annotations['sequence_fragment'] == 'multiple' else 'Fragment'})"
        taxonomy = next((name.partition(":")[2] for name in record.dbxrefs if name.startswith("NCBI Taxonomy:")), "")
        genes = (annotations.get(f"gene_name_{kind}") for kind in ("primary", "ordered locus", "ORF"))
        gene = next((name if isinstance(name, str) else name[0] for name in genes if name), "")
        existence = _EXISTENCE.get("".join(annotations.get("proteinExistence", ())[:1]).lower(), 0)
        organism, version = annotations.get("organism", ""), annotations.get("sequence_version", 0)
        description = _description(title, organism, taxonomy, gene, existence, version)
        features = [row for row in map(_xml_feature, record.features) if row is not None]
        return Entry(f"{source}|{record.id}|{record.name}", description, sequence, features, line, n_unread)


def _without_broken_elements(entry: bytes, head: bytes) -> tuple[bytes, int]:
    """Return the XML of an entry without the features that cannot be parsed, and the number of these features."""
    n_broken = 0

    def retain(feature: re.Match[bytes]) -> bytes:
        nonlocal n_broken

        try:
            next(UniprotIterator(io.BytesIO(head + b"<entry><accession>A</accession>" + feature[0] + b"</entry></uniprot>")))
        except (ParseError, *PARSER_ERRORS):
            n_broken += 1
            return b""
        return feature[0]

    return _XML_FEATURE.sub(retain, entry), n_broken


def _xml_feature(feature: Any) -> FeatureRow | None:
    kind = kind_code(feature.type)
    if kind < 0 or feature.location is None:
        return None
    qualifiers = feature.qualifiers
    text = qualifiers.get("description", "") or next((ligand["name"] for ligand in qualifiers.get("ligands", ()) if ligand["name"]), "")
    if qualifiers.get("original") and qualifiers.get("variation"):
        text = f"{qualifiers['original']} -> {qualifiers['variation']}" + (f" ({text})" if text else "")
    return feature_row(kind, feature.location.start, feature.location.end, text)
