"""Read protein sequences from FASTA files, plain or gzipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError, shortened
from engine.formats.letters import are_nucleotides, letter_counts
from engine.formats.proteins import Proteins
from engine.formats.recognition import recognise
from engine.formats.sources import Block, ByteSource, blocks
from engine.jobs.progress import Progress

__all__ = ["read_proteins"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BEGIN_WITH_A_NAME = "Give a FASTA file: begin each sequence with a line > and a name"

MAXIMUM_RESIDUES = 1_000_000
"""Of one protein; the largest known have 45,000. What is longer is a chromosome."""
MAXIMUM_NUCLEOTIDES = 300_000_000
"""Of one sequence of nucleotides, where these are wanted; the longest human chromosome has 249,000,000."""
MAXIMUM_HEADER_BYTES = 1 << 20
"""Of one record: databases that put the names of all organisms with one sequence behind each other come to a third of it."""
_MAXIMUM_RECORD_BYTES = 16 << 20
"""A part of the file in which no record ends: a header, and a protein with blanks between its residues, are shorter."""
_MAXIMUM_CHROMOSOME_BYTES = 400 << 20
_MINIMUM_RECORD_BYTES = 8
_NUCLEOTIDE_SHARE = 0.9
"""Of the letters of a sequence that may be as long as a chromosome; the others may be IUPAC's for several bases."""
_FREE_RECORDS, _MAXIMUM_RECORDS_PER_BYTE = 1 << 17, 0.5
"""Records that a file may hold for each of its bytes, gzipped or not: a name alone takes several."""


@dataclass
class _Records:
    """Records of a block: residues and header texts end to end with their offsets, line of each header, digest of each sequence."""

    path: Path
    residues: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    accessions: list[bytes]
    descriptions: list[bytes]
    lines: NDArray[np.int64]
    digests: NDArray[np.uint64]
    n_read: int
    """Records of the block, those without residues too."""


def read_proteins(
    paths: Sequence[str | Path], *, progress: Progress | None = None, every_record: bool = False, with_chromosomes: bool = False
) -> Proteins:
    """Read the proteins of FASTA files, in the order given.

    Letters become capitals; blanks, digits and gaps (``-``, ``.``) within a sequence are dropped, ``*`` at its end too. Lines that begin
    with ``;`` are comments. Records without residues are left out. A record whose accession and sequence both stood before is left out;
    the same accession with another sequence is an error, because results are reported by
    accession and nobody could tell which of the two was found.

    Parameters
    ----------
    every_record : keep each record of the files, in their order, those without residues and those of a name that stood before too, and
        take nucleotides for what they look like to the caller: for searches that tell records apart by their place. They read no spectra,
        so that remedies speak of FASTA alone.
    with_chromosomes : sequences of nucleotides may have up to `MAXIMUM_NUCLEOTIDES` letters.

    Raises
    ------
    InputError
        Naming the file, the line, the reason and the remedy: a file that is missing, unreadable, empty, cut off or no FASTA, a character
        that is no residue, a record without a name, two sequences of one name, nucleotides instead of proteins, no sequence at all, a
        sequence of more than `MAXIMUM_RESIDUES`, or `MAXIMUM_NUCLEOTIDES`.
    Cancelled
        When the user asked to stop.
    """
    progress = progress or Progress()
    files = [Path(path) for path in paths]
    if not files:
        raise ValueError("no FASTA files were given")
    total = 0
    for path in files:
        with ByteSource(path) as source:
            _check_kind(source, every_record)
            total += source.size
    progress.stage("Reading sequences" if with_chromosomes else "Reading proteins", total)
    parts = [part for path in files for part in _read_file(path, progress, every_record, with_chromosomes)]
    if every_record:
        return _join(parts, every_record)
    letters = np.zeros(256, dtype=np.int64)
    for part in parts:
        letters += np.bincount(part.residues, minlength=256)
    if are_nucleotides(letters):
        raise InputError(files[0], "the sequences are nucleotides, not proteins", remedy="Translate them, or give a protein database")
    return _join(parts, every_record)


def _check_kind(source: ByteSource, every_record: bool) -> None:
    try:
        found = recognise(source)
    except InputError as error:
        if every_record and "mzML" in error.remedy:
            raise InputError(error.path, error.reason, place=error.place, remedy=_BEGIN_WITH_A_NAME) from None
        raise
    if found.sort != "proteins":
        if found.sort == "identifications":
            raise InputError(
                source.path, f"holds identifications ({found.name}), where a FASTA file of proteins belongs", remedy="Give a FASTA file"
            )
        remedy = _BEGIN_WITH_A_NAME if every_record else "Give it among the spectra, and a FASTA file of proteins here"
        raise InputError(source.path, f"is a file of spectra ({found.name}), where a FASTA file of proteins belongs", remedy=remedy)


def _cut(text: bytes) -> int:
    """Before the last record."""
    return max(text.rfind(b"\n>"), text.rfind(b"\r>")) + 1


def _read_file(path: Path, progress: Progress, every_record: bool, with_chromosomes: bool) -> list[_Records]:
    parts = []
    n_lines = n_records = 0
    maximum_bytes = _MAXIMUM_CHROMOSOME_BYTES if with_chromosomes else _MAXIMUM_RECORD_BYTES

    def cut(text: bytes) -> int:
        end = _cut(text)
        if not end and (len(text) > maximum_bytes or (len(text) > _MAXIMUM_RECORD_BYTES and not _begins_a_chromosome(text))):
            raise _endless(path, text, n_lines, with_chromosomes=with_chromosomes)
        return end

    with ByteSource(path) as source:
        _check_kind(source, every_record)
        for block in blocks(source, cut, most=2 * maximum_bytes):
            records, lines = _parse(path, block, n_lines, every_record, with_chromosomes)
            n_lines += lines
            n_records += records.n_read
            if n_records > _FREE_RECORDS + _MAXIMUM_RECORDS_PER_BYTE * source.consumed:
                raise InputError(
                    path,
                    f"there are more than {n_records:,} records in {source.consumed:,} bytes, which no proteins are packed to",
                    remedy="If you trust the file, unpack it and give it unpacked",
                )
            parts.append(records)
            progress.advance(block.consumed)
    if not any(len(part.residues) for part in parts):
        raise InputError(path, "there is no protein sequence in it", remedy="Give a FASTA file with sequences")
    return parts


def _begins_a_chromosome(text: bytes) -> bool:
    """Whether a text that begins with a record goes on with nucleotides, as far as a protein would go."""
    rest = text[: _MAXIMUM_RECORD_BYTES >> 2].upper()
    header_end = max(rest.find(b"\n"), 0) or max(rest.find(b"\r"), 0)
    return bool(header_end) and _are_of_chromosome(np.frombuffer(rest[header_end:], dtype=np.uint8))


def _are_of_chromosome(letters: NDArray[np.uint8]) -> bool:
    """Whether nine of ten letters, of capitals and what else there may be, are A, C, G, T, U or N."""
    counts = letter_counts(letters)
    return bool(counts[list(b"ACGTUN")].sum() >= _NUCLEOTIDE_SHARE * counts[ord("A") : ord("Z") + 1].sum() > 0)


def _endless(path: Path, text: bytes, n_lines: int, *, with_chromosomes: bool) -> InputError:
    """What to say of a text that begins with a record and in which none ends."""
    header, _, rest = text.partition(b"\n") if b"\n" in text else text.partition(b"\r")
    if len(header) > MAXIMUM_HEADER_BYTES:
        return _too_long_header(path, n_lines + 1)
    return _too_long(path, np.frombuffer(rest.upper(), dtype=np.uint8), n_lines + 1, with_chromosomes=with_chromosomes)


def _too_long_header(path: Path, line: int) -> InputError:
    reason = f"the header is longer than {MAXIMUM_HEADER_BYTES:,} bytes"
    return InputError(path, reason, place=f"line {line}", remedy="Is it a FASTA file of proteins? Shorten the header")


def _too_long(path: Path, letters: NDArray[np.uint8], line: int, *, with_chromosomes: bool = False) -> InputError:
    """What to say of the sequence of a record, or its beginning: capitals, and what else there may be."""
    if with_chromosomes and _are_of_chromosome(letters):
        reason = f"the sequence has more than {MAXIMUM_NUCLEOTIDES:,} nucleotides"
        return InputError(path, reason, place=f"line {line}", remedy="Split it")
    counts = np.bincount(letters[(letters >= ord("A")) & (letters <= ord("Z"))], minlength=256)
    if counts.sum() > MAXIMUM_RESIDUES and are_nucleotides(counts):
        reason, remedy = "the sequence is a chromosome of nucleotides, not a protein", "Translate it, or give a protein database"
    elif counts.sum() > MAXIMUM_RESIDUES:
        reason, remedy = f"the sequence has more than {MAXIMUM_RESIDUES:,} residues, as no protein has", "Split or remove it"
    else:
        reason, remedy = f"the record is longer than {_MAXIMUM_RECORD_BYTES >> 20} MB", "Is it a FASTA file of proteins?"
    return InputError(path, reason, place=f"line {line}", remedy=remedy)


def _parse(path: Path, block: Block, n_lines: int, every_record: bool, with_chromosomes: bool) -> tuple[_Records, int]:
    """The records of a block (those that have residues, or every one), and the number of its lines."""
    from kernels.cpu import text as kernels

    data = block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text
    text = np.frombuffer(data, dtype=np.uint8)
    room = data.count(b">")
    if room > len(data) // _MINIMUM_RECORD_BYTES:
        # Most of them stand within headers; to count the others exactly takes longer.
        room = data.count(b"\n>") + data.count(b"\r>") + data.startswith(b">")
    headers = np.empty((room, 3), dtype=np.int64)
    residues, offsets = np.empty(len(data), dtype=np.uint8), np.zeros(room + 1, dtype=np.int64)
    digests = np.empty(room, dtype=np.uint64)
    n, lines, refused, refused_line = kernels.scan_fasta(text, headers, residues, offsets, digests)
    if refused >= 0:
        letter = data[refused : refused + 1].decode("latin-1")
        shown = repr(letter) if letter.isprintable() else f"byte {data[refused]}"
        reason = f"{shown} is not a residue"
        raise InputError(
            path, reason, place=f"line {n_lines + refused_line}", remedy="Residues are letters; is it a FASTA file of proteins?"
        )
    long_headers = np.flatnonzero(headers[:n, 1] - headers[:n, 0] > MAXIMUM_HEADER_BYTES)
    if len(long_headers):
        raise _too_long_header(path, n_lines + int(headers[long_headers[0], 2]))
    lengths = np.diff(offsets[: n + 1])
    for i in np.flatnonzero(lengths > MAXIMUM_RESIDUES).tolist():
        letters = residues[offsets[i] : offsets[i + 1]]
        if not (with_chromosomes and lengths[i] <= MAXIMUM_NUCLEOTIDES and _are_of_chromosome(letters)):
            raise _too_long(path, letters, n_lines + int(headers[i, 2]), with_chromosomes=with_chromosomes)
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
    return _Records(path, residues[: offsets[-1]].copy(), offsets, accessions, descriptions, at, digests[kept], n), lines


def _utf8(text: bytes) -> bytes:
    """Header text as UTF-8; old files are in Latin-1."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1").encode()
    return text


def _join(parts: list[_Records], every_record: bool) -> Proteins:
    """One set of columns, with every record or without those that stood before."""
    bases = np.cumsum([0] + [int(part.offsets[-1]) for part in parts])
    residues = np.concatenate([part.residues for part in parts])
    offsets = np.concatenate([*(part.offsets[:-1] + base for part, base in zip(parts, bases, strict=False)), bases[-1:]]).astype(np.int64)
    accessions = [accession for part in parts for accession in part.accessions]
    descriptions = [description for part in parts for description in part.descriptions]
    if not every_record and len(set(accessions)) < len(accessions):
        kept = _without_duplicates(parts, residues, offsets, accessions)
    else:
        kept = np.arange(len(accessions))
    if len(kept) < len(accessions):
        mask = np.zeros(len(accessions), dtype=np.bool_)
        mask[kept] = True
        lengths = np.diff(offsets)
        residues = residues[np.repeat(mask, lengths)]
        offsets = np.concatenate([[0], np.cumsum(lengths[mask])]).astype(np.int64)
        accessions, descriptions = [accessions[i] for i in kept.tolist()], [descriptions[i] for i in kept.tolist()]
    return Proteins(residues, offsets, *_column(accessions), *_column(descriptions))


def _without_duplicates(
    parts: list[_Records], residues: NDArray[np.uint8], offsets: NDArray[np.int64], accessions: list[bytes]
) -> NDArray[np.int64]:
    """Which records to keep. Digests decide where they differ; where they agree, the residues are compared."""
    digests = np.concatenate([part.digests for part in parts])
    lines = np.concatenate([part.lines for part in parts])
    paths = [part.path for part in parts for _ in part.accessions]
    first: dict[bytes, int] = {}
    kept = []
    for i, accession in enumerate(accessions):
        before = first.setdefault(accession, i)
        if before == i:
            kept.append(i)
            continue
        one, other = (residues[offsets[k] : offsets[k + 1]] for k in (before, i))
        if digests[before] != digests[i] or not np.array_equal(one, other):
            where = f"line {lines[before]}" if paths[before] == paths[i] else f"{paths[before]}, line {lines[before]}"
            raise InputError(
                paths[i],
                f"the accession {shortened(accession.decode())} has another sequence here than in {where}",
                place=f"line {lines[i]}",
                remedy="Rename or remove one of the two, so that results can be told apart",
            )
    return np.array(kept, dtype=np.int64)


def _column(texts: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Texts end to end, and their offsets."""
    offsets = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), out=offsets[1:])
    return np.frombuffer(b"".join(texts), dtype=np.uint8), offsets
