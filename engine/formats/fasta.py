"""Reader of protein sequences from FASTA files, plain or gzipped."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.protein_records import MAXIMUM_NUCLEOTIDES, MAXIMUM_RESIDUES, TRANSLATE, ProteinRecords
from proteoscope.engine.formats.sequence_type import are_nucleotides, character_counts
from proteoscope.engine.formats.sources import Block, ByteSource, blocks, decoded
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import RECORDS

__all__ = ["MAXIMUM_CHROMOSOME_BYTES", "looks_like_chromosome", "parse_fasta", "read_fasta", "too_long"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAXIMUM_HEADER_BYTES = 1 << 20
"""Maximum size of a header; databases that join the headers of identical sequences have headers of up to a third of this size."""
_MAXIMUM_RECORD_BYTES = 16 << 20
"""Maximum size of a protein's record; a header and a protein need less, even with blanks between the residues."""
MAXIMUM_CHROMOSOME_BYTES = 400 << 20
_MINIMUM_RECORD_BYTES = 8
_NUCLEOTIDE_SHARE = 0.9
"""Minimum fraction of A, C, G, T, U and N in a sequence that looks like a chromosome; its other symbols may be IUPAC ambiguity codes."""


def _cut(text: bytes) -> int:
    """Return the byte offset of the start of the last record in a text, which may be incomplete; 0 if it is the only record."""
    return max(text.rfind(b"\n>"), text.rfind(b"\r>")) + 1


def read_fasta(source: ByteSource, progress: Progress, *, every_record: bool, with_chromosomes: bool) -> list[ProteinRecords]:
    """Read the records of a FASTA file.

    Parameters
    ----------
    source : ByteSource
        Open file.
    progress : Progress
        Progress, which receives the number of bytes read and is checked for cancellation.
    every_record, with_chromosomes : bool
        See `proteoscope.engine.formats.protein_files.read_proteins`.

    Returns
    -------
    list of ProteinRecords
        Records of each block of the file.

    Raises
    ------
    InputError
        If the file is invalid (see `proteoscope.engine.formats.protein_files.read_proteins`).
    Cancelled
        If the user cancels.
    """
    path, parts = source.path, []
    n_lines = 0
    maximum_bytes = MAXIMUM_CHROMOSOME_BYTES if with_chromosomes else _MAXIMUM_RECORD_BYTES

    def cut(text: bytes) -> int:
        end = _cut(text)
        if not end and (len(text) > maximum_bytes or (len(text) > _MAXIMUM_RECORD_BYTES and not _begins_with_chromosome(text))):
            raise _endless(path, text, n_lines, with_chromosomes=with_chromosomes)
        return end

    def count(n: int) -> None:
        source.unfolding.add(RECORDS, n)

    for block in blocks(source, cut, maximum_bytes=2 * maximum_bytes):
        records, lines = parse_fasta(path, block, n_lines, every_record=every_record, with_chromosomes=with_chromosomes, count=count)
        n_lines += lines
        parts.append(records)
        progress.advance(block.consumed)
    return parts


def _begins_with_chromosome(text: bytes) -> bool:
    """Return True if the first record in the text, which is too long for a protein, consists of nucleotides."""
    rest = text[: _MAXIMUM_RECORD_BYTES >> 2].upper()
    header_end = max(rest.find(b"\n"), 0) or max(rest.find(b"\r"), 0)
    return bool(header_end) and looks_like_chromosome(np.frombuffer(rest[header_end:], dtype=np.uint8))


def looks_like_chromosome(sequence: NDArray[np.uint8]) -> bool:
    """Return True if at least 90 % of the capitals of a sequence are A, C, G, T, U or N.

    Parameters
    ----------
    sequence : ndarray of uint8, shape (length,)
        ASCII characters; only capitals are counted.
    """
    counts = character_counts(sequence)
    return bool(counts[list(b"ACGTUN")].sum() >= _NUCLEOTIDE_SHARE * counts[ord("A") : ord("Z") + 1].sum() > 0)


def _endless(path: Path, text: bytes, n_lines: int, *, with_chromosomes: bool) -> InputError:
    """Return the error for a text whose first record is too long."""
    header, _, rest = text.partition(b"\n") if b"\n" in text else text.partition(b"\r")
    if len(header) > MAXIMUM_HEADER_BYTES:
        return _too_long_header(path, n_lines + 1)
    return too_long(path, np.frombuffer(rest.upper(), dtype=np.uint8), n_lines + 1, with_chromosomes=with_chromosomes)


def _too_long_header(path: Path, line: int) -> InputError:
    reason = f"the header is longer than {MAXIMUM_HEADER_BYTES:,} bytes"
    return InputError(path, reason, place=f"line {line}", remedy="Check that it is a FASTA file of proteins, or shorten the header")


def too_long(path: Path, sequence: NDArray[np.uint8], line: int, *, with_chromosomes: bool = False) -> InputError:
    """Return the error for a sequence that is too long.

    Parameters
    ----------
    path : Path
        File with the sequence, for the message.
    sequence : ndarray of uint8, shape (length,)
        Characters of the sequence, or of its beginning: ASCII capitals, and any other characters of the file.
    line : int
        Line of the record's header, from 1.
    with_chromosomes : bool
        True if nucleotides are expected.

    Returns
    -------
    InputError
        Error to raise.
    """
    if with_chromosomes and looks_like_chromosome(sequence):
        reason = f"the sequence has more than {MAXIMUM_NUCLEOTIDES:,} nucleotides"
        return InputError(path, reason, place=f"line {line}", remedy="Split it")
    counts = character_counts(sequence)
    counts[: ord("A")] = counts[ord("Z") + 1 :] = 0
    if counts.sum() > MAXIMUM_RESIDUES and are_nucleotides(counts):
        reason, remedy = "the sequence is a chromosome of nucleotides, not a protein", TRANSLATE
    elif counts.sum() > MAXIMUM_RESIDUES:
        reason, remedy = f"the sequence has more than {MAXIMUM_RESIDUES:,} residues, more than any protein", "Split or remove it"
    else:
        reason, remedy = f"the record is longer than {_MAXIMUM_RECORD_BYTES >> 20} MB", "Check that it is a FASTA file of proteins"
    return InputError(path, reason, place=f"line {line}", remedy=remedy)


def parse_fasta(
    path: Path, block: Block, n_lines: int, *, every_record: bool, with_chromosomes: bool, count: Callable[[int], None] | None = None
) -> tuple[ProteinRecords, int]:
    """Parse the records of a block.

    Parameters
    ----------
    path : Path
        File of the block, for messages.
    block : Block
        Section of the file that consists of complete records.
    n_lines : int
        Number of lines of the file before the block.
    every_record : bool
        True to include records without residues.
    with_chromosomes : bool
        True to accept sequences of up to `MAXIMUM_NUCLEOTIDES` nucleotides.
    count : callable, optional
        Function that receives the number of records before they are processed, and may raise an exception.

    Returns
    -------
    records : ProteinRecords
        Records of the block.
    lines : int
        Number of lines of the block.

    Raises
    ------
    InputError
        If a record is invalid or too long.
    """
    data = block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text
    text = np.frombuffer(data, dtype=np.uint8)
    n_headers = data.count(b">")
    if n_headers > len(data) // _MINIMUM_RECORD_BYTES:
        # Most > are inside headers: count exactly, which is slower, to save memory.
        n_headers = data.count(b"\n>") + data.count(b"\r>") + data.startswith(b">")
    headers = np.empty((n_headers, 3), dtype=np.int64)
    residues, offsets = np.empty(len(data), dtype=np.uint8), np.zeros(n_headers + 1, dtype=np.int64)
    digests = np.empty(n_headers, dtype=np.uint64)
    n, lines, refused, refused_line = kernels.cpu.text.scan_fasta(text, headers, residues, offsets, digests)
    if refused >= 0:
        character = data[refused : refused + 1].decode("latin-1")
        shown = repr(character) if character.isprintable() else f"byte {data[refused]}"
        reason = f"{shown} is not a residue"
        raise InputError(
            path,
            reason,
            place=f"line {n_lines + refused_line}",
            remedy="Use A to Z for residues; check that it is a FASTA file of proteins",
        )
    if count is not None:
        count(n)
    long_headers = np.flatnonzero(headers[:n, 1] - headers[:n, 0] > MAXIMUM_HEADER_BYTES)
    if len(long_headers):
        raise _too_long_header(path, n_lines + int(headers[long_headers[0], 2]))
    lengths = np.diff(offsets[: n + 1])
    for i in np.flatnonzero(lengths > MAXIMUM_RESIDUES).tolist():
        sequence = residues[offsets[i] : offsets[i + 1]]
        if not (with_chromosomes and lengths[i] <= MAXIMUM_NUCLEOTIDES and looks_like_chromosome(sequence)):
            raise too_long(path, sequence, n_lines + int(headers[i, 2]), with_chromosomes=with_chromosomes)
    accessions, descriptions = [], []
    for start, stop in headers[:n, :2].tolist():
        words = data[start:stop].split(None, 1)
        accessions.append(words[0] if words else b"")
        descriptions.append(words[1].rstrip() if len(words) == 2 else b"")
    if not data.isascii():
        accessions, descriptions = ([decoded(text).encode() for text in texts] for texts in (accessions, descriptions))
    selected = np.flatnonzero((lengths > 0) | every_record)
    if len(selected) < n:
        # Empty records have no residues: removing their offsets is enough.
        accessions, descriptions = [accessions[i] for i in selected.tolist()], [descriptions[i] for i in selected.tolist()]
        offsets = np.append(offsets[selected], offsets[n])
    else:
        offsets = offsets[: n + 1]
    at = n_lines + headers[selected, 2]
    if b"" in accessions:
        line = int(at[accessions.index(b"")])
        raise InputError(path, "the record has no name", place=f"line {line}", remedy="Put an accession right after the >")
    return ProteinRecords(path, residues[: offsets[-1]].copy(), offsets, accessions, descriptions, at, digests[selected], n), lines
