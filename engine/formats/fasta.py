"""Read protein sequences from FASTA files, plain or gzipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.letters import are_nucleotides, letter_counts
from proteoscope.engine.formats.protein_records import MAXIMUM_NUCLEOTIDES, MAXIMUM_RESIDUES, TRANSLATE, ProteinRecords
from proteoscope.engine.formats.sources import Block, ByteSource, blocks
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import RECORDS

__all__ = ["MAXIMUM_CHROMOSOME_BYTES", "are_of_chromosome", "parse_fasta", "read_fasta", "too_long"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAXIMUM_HEADER_BYTES = 1 << 20
"""Of one record: databases that put the names of all organisms with one sequence behind each other come to a third of it."""
_MAXIMUM_RECORD_BYTES = 16 << 20
"""A part of the file in which no record ends: a header, and a protein with blanks between its residues, are shorter."""
MAXIMUM_CHROMOSOME_BYTES = 400 << 20
_MINIMUM_RECORD_BYTES = 8
_NUCLEOTIDE_SHARE = 0.9
"""Of the letters of a sequence that may be as long as a chromosome; the others may be IUPAC's for several bases."""
"""Records that a file may hold for each of its bytes, gzipped or not: a name alone takes several."""


def _cut(text: bytes) -> int:
    """Before the last record."""
    return max(text.rfind(b"\n>"), text.rfind(b"\r>")) + 1


def read_fasta(source: ByteSource, progress: Progress, *, every_record: bool, with_chromosomes: bool) -> list[ProteinRecords]:
    """The records of a FASTA file; `every_record` and `with_chromosomes` as `proteoscope.engine.formats.protein_files.read_proteins` has
    them.

    Raises
    ------
    InputError : see there. Cancelled : the user asked to stop.
    """
    path, parts = source.path, []
    n_lines = 0
    maximum_bytes = MAXIMUM_CHROMOSOME_BYTES if with_chromosomes else _MAXIMUM_RECORD_BYTES

    def cut(text: bytes) -> int:
        end = _cut(text)
        if not end and (len(text) > maximum_bytes or (len(text) > _MAXIMUM_RECORD_BYTES and not _begins_a_chromosome(text))):
            raise _endless(path, text, n_lines, with_chromosomes=with_chromosomes)
        return end

    def count(n: int) -> None:
        source.unfolding.add(RECORDS, n)

    for block in blocks(source, cut, most=2 * maximum_bytes):
        records, lines = parse_fasta(path, block, n_lines, every_record=every_record, with_chromosomes=with_chromosomes, count=count)
        n_lines += lines
        parts.append(records)
        progress.advance(block.consumed)
    return parts


def _begins_a_chromosome(text: bytes) -> bool:
    """Whether a text that begins with a record goes on with nucleotides, as far as a protein would go."""
    rest = text[: _MAXIMUM_RECORD_BYTES >> 2].upper()
    header_end = max(rest.find(b"\n"), 0) or max(rest.find(b"\r"), 0)
    return bool(header_end) and are_of_chromosome(np.frombuffer(rest[header_end:], dtype=np.uint8))


def are_of_chromosome(letters: NDArray[np.uint8]) -> bool:
    """Whether nine of ten letters, of capitals and what else there may be, are A, C, G, T, U or N."""
    counts = letter_counts(letters)
    return bool(counts[list(b"ACGTUN")].sum() >= _NUCLEOTIDE_SHARE * counts[ord("A") : ord("Z") + 1].sum() > 0)


def _endless(path: Path, text: bytes, n_lines: int, *, with_chromosomes: bool) -> InputError:
    """What to say of a text that begins with a record and in which none ends."""
    header, _, rest = text.partition(b"\n") if b"\n" in text else text.partition(b"\r")
    if len(header) > MAXIMUM_HEADER_BYTES:
        return _too_long_header(path, n_lines + 1)
    return too_long(path, np.frombuffer(rest.upper(), dtype=np.uint8), n_lines + 1, with_chromosomes=with_chromosomes)


def _too_long_header(path: Path, line: int) -> InputError:
    reason = f"the header is longer than {MAXIMUM_HEADER_BYTES:,} bytes"
    return InputError(path, reason, place=f"line {line}", remedy="Is it a FASTA file of proteins? Shorten the header")


def too_long(path: Path, letters: NDArray[np.uint8], line: int, *, with_chromosomes: bool = False) -> InputError:
    """What to say of the sequence of a record, or its beginning: capitals, and what else there may be."""
    if with_chromosomes and are_of_chromosome(letters):
        reason = f"the sequence has more than {MAXIMUM_NUCLEOTIDES:,} nucleotides"
        return InputError(path, reason, place=f"line {line}", remedy="Split it")
    counts = letter_counts(letters)
    counts[: ord("A")] = counts[ord("Z") + 1 :] = 0
    if counts.sum() > MAXIMUM_RESIDUES and are_nucleotides(counts):
        reason, remedy = "the sequence is a chromosome of nucleotides, not a protein", TRANSLATE
    elif counts.sum() > MAXIMUM_RESIDUES:
        reason, remedy = f"the sequence has more than {MAXIMUM_RESIDUES:,} residues, as no protein has", "Split or remove it"
    else:
        reason, remedy = f"the record is longer than {_MAXIMUM_RECORD_BYTES >> 20} MB", "Is it a FASTA file of proteins?"
    return InputError(path, reason, place=f"line {line}", remedy=remedy)


def parse_fasta(
    path: Path, block: Block, n_lines: int, *, every_record: bool, with_chromosomes: bool, count: Callable[[int], None] | None = None
) -> tuple[ProteinRecords, int]:
    """The records of a block (those that have residues, or every one), and the number of its lines.

    `count` is told how many records there are before anything is made of them, and may raise.
    """
    data = block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text
    text = np.frombuffer(data, dtype=np.uint8)
    room = data.count(b">")
    if room > len(data) // _MINIMUM_RECORD_BYTES:
        # Most of them stand within headers; to count the others exactly takes longer.
        room = data.count(b"\n>") + data.count(b"\r>") + data.startswith(b">")
    headers = np.empty((room, 3), dtype=np.int64)
    residues, offsets = np.empty(len(data), dtype=np.uint8), np.zeros(room + 1, dtype=np.int64)
    digests = np.empty(room, dtype=np.uint64)
    n, lines, refused, refused_line = kernels.cpu.text.scan_fasta(text, headers, residues, offsets, digests)
    if refused >= 0:
        letter = data[refused : refused + 1].decode("latin-1")
        shown = repr(letter) if letter.isprintable() else f"byte {data[refused]}"
        reason = f"{shown} is not a residue"
        raise InputError(
            path, reason, place=f"line {n_lines + refused_line}", remedy="Residues are letters; is it a FASTA file of proteins?"
        )
    if count is not None:
        count(n)
    long_headers = np.flatnonzero(headers[:n, 1] - headers[:n, 0] > MAXIMUM_HEADER_BYTES)
    if len(long_headers):
        raise _too_long_header(path, n_lines + int(headers[long_headers[0], 2]))
    lengths = np.diff(offsets[: n + 1])
    for i in np.flatnonzero(lengths > MAXIMUM_RESIDUES).tolist():
        letters = residues[offsets[i] : offsets[i + 1]]
        if not (with_chromosomes and lengths[i] <= MAXIMUM_NUCLEOTIDES and are_of_chromosome(letters)):
            raise too_long(path, letters, n_lines + int(headers[i, 2]), with_chromosomes=with_chromosomes)
    accessions, descriptions = [], []
    for start, stop in headers[:n, :2].tolist():
        words = data[start:stop].split(None, 1)
        accessions.append(words[0] if words else b"")
        descriptions.append(words[1].rstrip() if len(words) == 2 else b"")
    if not data.isascii():
        accessions, descriptions = [_utf8(a) for a in accessions], [_utf8(d) for d in descriptions]
    kept = np.flatnonzero((lengths > 0) | every_record)
    if len(kept) < n:
        # An empty record has no residues to move: only its offset goes.
        accessions, descriptions = [accessions[i] for i in kept.tolist()], [descriptions[i] for i in kept.tolist()]
        offsets = np.append(offsets[kept], offsets[n])
    else:
        offsets = offsets[: n + 1]
    at = n_lines + headers[kept, 2]
    if b"" in accessions:
        line = int(at[accessions.index(b"")])
        raise InputError(path, "the record has no name", place=f"line {line}", remedy="Put an accession right after the >")
    return ProteinRecords(path, residues[: offsets[-1]].copy(), offsets, accessions, descriptions, at, digests[kept], n), lines


def _utf8(text: bytes) -> bytes:
    """Header text as UTF-8; old files are in Latin-1."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1").encode()
    return text
