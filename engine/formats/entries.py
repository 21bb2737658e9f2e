"""Reader of annotated entries of protein databases, which are parsed by Biopython and converted to columns.

Each format is an `EntryFormat`, which finds the ends of entries and parses text into `Entry` objects. The entries are converted to FASTA in
memory, so that the FASTA reader checks their sequences and headers.
"""

import string
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.formats.fasta import MAXIMUM_CHROMOSOME_BYTES, looks_like_chromosome, parse_fasta, too_long
from proteoscope.engine.formats.features import FeatureRow, Features
from proteoscope.engine.formats.protein_records import MAXIMUM_NUCLEOTIDES, MAXIMUM_RESIDUES, ProteinRecords
from proteoscope.engine.formats.sources import Block, ByteSource, blocks
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.unfolding import ANNOTATED, ANNOTATION_BYTES

__all__ = ["PARSER_ERRORS", "Entry", "EntryError", "EntryFormat", "clean_sequence", "feature_row", "flat_file_cut", "read_entries"]

PARSER_ERRORS = (ValueError, KeyError, IndexError, AttributeError, TypeError, AssertionError, NotImplementedError)
"""Exceptions that Biopython's parsers raise for malformed text, since Biopython has no exception class for this."""
MAXIMUM_LINE_BYTES = 1 << 20
"""Maximum length of a line in formats that consist of lines; most lines have 80 characters, some descriptions a few thousand."""
MAXIMUM_ENTRY_BYTES = 64 << 20
"""Maximum size of a protein's entry; the longest entry of UniProt has 3 MB as XML."""
_RESIDUES = (string.ascii_uppercase + "*").encode()
_DROPPED = b" \t\r\n0123456789-."
_CAPITALS = bytes.maketrans(string.ascii_lowercase.encode(), string.ascii_uppercase.encode())


class Entry(NamedTuple):
    """Entry of a protein database.

    Attributes
    ----------
    accession, description : str
        Accession and description, as in a FASTA header.
    sequence : bytes
        Residues in ASCII capitals; empty for a record that only reports `n_unread` and `n_untranslated`.
    features : sequence of FeatureRow
        Features of the sequence.
    line : int
        Line of the text where the entry begins, from 1.
    n_unread : int
        Number of features that could not be parsed.
    n_untranslated : int
        Number of coding sequences without a protein sequence.
    """

    accession: str
    description: str
    sequence: bytes
    features: Sequence[FeatureRow]
    line: int
    n_unread: int = 0
    n_untranslated: int = 0


class EntryError(ValueError):
    """Error in an entry.

    Attributes
    ----------
    line : int
        Line of the text where the entry begins or where the error is, from 1.
    reason : str
        Description of the error.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class EntryFormat(Protocol):
    """Format of annotated entries.

    Attributes
    ----------
    name : str
        Name of the format in the registry.
    has_lines : bool
        True if the text consists of short lines (at most `MAXIMUM_LINE_BYTES`).
    """

    name: str
    has_lines: bool

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete entry in a text; 0 if no entry is complete."""

    def entries(self, block: Block, *, with_chromosomes: bool) -> Iterator[Entry]:
        """Yield the entries of a block, which ends between two entries or at the end of the file.

        Parameters
        ----------
        block : Block
            Section of the file.
        with_chromosomes : bool
            True to yield the nucleotide sequences of records, False for the proteins that they encode.

        Raises
        ------
        EntryError
            If an entry is invalid or truncated.
        """


def read_entries(source: ByteSource, written_as: EntryFormat, progress: Progress, *, with_chromosomes: bool) -> list[ProteinRecords]:
    """Read the entries of a file as records with features.

    Parameters
    ----------
    source : ByteSource
        Open file.
    written_as : EntryFormat
        Format of the file.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.
    with_chromosomes : bool
        See `EntryFormat.entries`.

    Returns
    -------
    list of ProteinRecords
        Records of each block of the file.

    Raises
    ------
    InputError
        If an entry is invalid, truncated, too long or without a name, or if a sequence has a character that is not a residue.
    Cancelled
        If the user cancels.
    """
    from Bio import BiopythonWarning  # slow to import: only annotated or translated sequences need it

    path, parts, n_lines, n_outside, n_unread, n_untranslated = source.path, [], 0, 0, 0, 0
    limit = MAXIMUM_CHROMOSOME_BYTES if with_chromosomes or written_as.has_lines else MAXIMUM_ENTRY_BYTES

    def cut(text: bytes) -> int:
        if written_as.has_lines and len(text) - 1 - max(text.rfind(b"\n"), text.rfind(b"\r")) > MAXIMUM_LINE_BYTES:
            place = f"line {n_lines + _n_lines(text) + 1}"
            reason = f"the line is longer than {MAXIMUM_LINE_BYTES:,} bytes"
            raise InputError(path, reason, place=place, remedy=f"Check that it is a file of {written_as.name}, as its beginning suggests")
        end = written_as.cut(text)
        if not end and len(text) > limit:
            reason = f"no entry ends within {limit >> 20} MB"
            raise InputError(path, reason, place=f"line {n_lines + 1}", remedy="Download it again")
        return end

    for block in blocks(source, cut, maximum_bytes=2 * limit):
        if source.is_gzip:
            source.unfolding.add(ANNOTATION_BYTES, len(block.text), place=f"line {n_lines + 1}")
        try:
            with warnings.catch_warnings():
                # Biopython warns about oddities of entries that it reads correctly.
                warnings.simplefilter("ignore", BiopythonWarning)
                entries = [
                    _checked(entry, path, n_lines, with_chromosomes)
                    for entry in _counted(source, written_as.entries(block, with_chromosomes=with_chromosomes))
                ]
        except EntryError as error:
            place = f"line {n_lines + error.line}"
            raise InputError(
                path, error.reason, place=place, remedy=f"Download the {written_as.name} file again, or remove the entry"
            ) from None
        except RecursionError:
            raise InputError(path, "its parts are nested too deeply", place=f"after line {n_lines}", remedy="Download it again") from None
        if entries:
            records, n = _records(path, entries, n_lines, with_chromosomes)
            parts.append(records)
            n_outside += n
            n_unread += sum(entry.n_unread for entry in entries)
            n_untranslated += sum(entry.n_untranslated for entry in entries)
        n_lines += _n_lines(block.text)
        progress.advance(block.consumed)
    if n_outside:
        outside = counted(n_outside, "feature that lies outside its sequence", "features that lie outside their sequences")
        progress.message(f"{path}: {outside} left out", "warning")
    if n_untranslated:
        untranslated = counted(n_untranslated, "coding sequence (CDS) without", "coding sequences (CDS) without")
        progress.message(f"{path}: {untranslated} /translation left out; translation=six-frame translates the nucleotides", "warning")
    if n_unread:
        broken = counted(n_unread, "feature with an invalid position or text", "features with an invalid position or text")
        progress.message(f"{path}: {broken} left out", "warning")
    return parts


def _counted(source: ByteSource, entries: Iterator[Entry]) -> Iterator[Entry]:
    """Yield entries unchanged; count the entries of gzipped files, since their number is limited."""
    for entry in entries:
        if source.is_gzip:
            source.unfolding.add(ANNOTATED, 1)
        yield entry


def _n_lines(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")


def _checked(entry: Entry, path: Path, n_lines: int, with_chromosomes: bool) -> Entry:
    """Return an entry with its accession reduced to one word, after checking its sequence."""
    accession = "".join(entry.accession.split()[:1])
    if not accession:
        raise EntryError(entry.line, "the entry has no accession")
    other = entry.sequence.translate(None, _RESIDUES)
    if other:
        character = other[:1].decode("latin-1")
        shown = repr(character) if character.isprintable() else f"byte {other[0]}"
        raise EntryError(entry.line, f"{shown} in the sequence of {shortened(accession)} is not a residue")
    if len(entry.sequence) > MAXIMUM_RESIDUES:
        residues = np.frombuffer(entry.sequence, np.uint8)
        if not (with_chromosomes and len(residues) <= MAXIMUM_NUCLEOTIDES and looks_like_chromosome(residues)):
            raise too_long(path, residues, n_lines + entry.line, with_chromosomes=with_chromosomes)
    return entry._replace(accession=accession)


def _records(path: Path, entries: list[Entry], n_lines: int, with_chromosomes: bool) -> tuple[ProteinRecords, int]:
    """Return the records of entries, and the number of their features that lie outside the sequences."""
    text = b"".join(
        b">%b %b\n%b\n"
        % (entry.accession.encode("utf-8", "replace"), " ".join(entry.description.split()).encode("utf-8", "replace"), entry.sequence)
        for entry in entries
    )
    records, _ = parse_fasta(path, Block(text, 0, True, True, 0), n_lines, every_record=True, with_chromosomes=with_chromosomes)
    inside = [[row for row in entry.features if 1 <= row.first <= row.last <= len(entry.sequence)] for entry in entries]
    filled = [i for i, entry in enumerate(entries) if entry.sequence]
    if len(filled) < len(entries):
        records, _ = parse_fasta(path, Block(text, 0, True, True, 0), n_lines, every_record=False, with_chromosomes=with_chromosomes)
    n_outside = sum(len(entry.features) for entry in entries) - sum(map(len, inside))
    lines = n_lines + np.array([entries[i].line for i in filled], np.int64)
    return replace(records, lines=lines, features=Features.from_rows([inside[i] for i in filled])), n_outside


def clean_sequence(sequence: bytes) -> bytes:
    """Return a sequence in capitals without blanks, digits and gaps, and without ``*`` at the end, as the FASTA reader does.

    >>> clean_sequence(b"mkv-l 10 *")
    b'MKVL'
    """
    return sequence.translate(_CAPITALS, _DROPPED).rstrip(b"*")


def feature_row(kind: int, start: Any, end: Any, text: str) -> FeatureRow | None:
    """Return a feature at a position given by Biopython; None if the start or the end is unknown.

    Parameters
    ----------
    kind : int
        Index of the kind of feature in `FEATURE_KINDS`.
    start, end : position of Biopython
        Position of the first residue, from 0, and end position (exclusive).
    text : str
        Description of the feature.
    """
    try:
        return FeatureRow(kind, int(start) + 1, int(end), text)
    except (TypeError, ValueError):
        return None


def flat_file_cut(text: bytes) -> int:
    """Return the byte offset of the end of the last line ``//`` in a text; 0 if there is no such line."""
    for end in (b"\n//\n", b"\n//\r\n", b"\r//\r"):
        at = text.rfind(end)
        if at >= 0:
            return at + len(end)
    return 0
