"""Read sequences with qualities from FASTQ files, plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, ranges
from proteoscope.engine.errors import InputError, shortened
from proteoscope.engine.escaped_names import escape_unprintable_texts, warn_escaped_names
from proteoscope.engine.formats.protein_records import MAXIMUM_ACCESSION_BYTES, too_long_name
from proteoscope.engine.formats.sources import BLOCK_BYTES, ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.spectra.spooling import GrowingColumn, passed_through
from proteoscope.engine.unfolding import READS

__all__ = ["ReadBlock", "Reads", "is_fastq", "looks_like_phred_64", "read_blocks", "read_fastq"]

_MINIMUM_RECORD_BYTES = 5  # of a block: @, a letter, and three ends of lines
_MAXIMUM_RECORD_BYTES = 64 << 20
"""Records that a file may hold for each of its bytes, gzipped or not."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAM_HEADERS = tuple(b"@" + code + b"\t" for code in (b"HD", b"SQ", b"RG", b"PG", b"CO"))
# Qualities of Illumina before 1.8 began at ; or @ and reached h. Those of Sanger's kind begin at !, and machines that write no low ones
# write K at the most, or go up to ~.
_MINIMUM_OF_64, _SURELY_64, _GREATEST_OF_64 = ord(";"), ord("L"), ord("h")


@dataclass(frozen=True)
class Reads:
    """n sequences with qualities.

    Attributes
    ----------
    names : the first word of each, characters that cannot be printed escaped. letters, qualities : (total,) uint8, ASCII capitals and
        the characters of the file; offsets : (n + 1,)
        int64 into both.
    is_phred_64 : whether the qualities look as if they began at 64, as Illumina's did before 2011, and not at 33.
    """

    names: Texts
    letters: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    is_phred_64: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass
class ReadBlock:
    """The records of a block: columns as in `Reads`, letters of each, bytes of the block, whether the file ends with it, and how many names
    hold escaped characters."""

    names: Texts
    letters: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    n_bytes: int
    is_last: bool
    n_escaped: int


def is_fastq(source: ByteSource) -> bool:
    """Whether a file begins as FASTQ does: with an @ at the beginning of its first line that is not blank."""
    return source.peek(1 << 12).removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n").startswith(b"@")


def read_fastq(path: str | Path, *, progress: Progress | None = None, spool: Path | None = None) -> Reads:
    """Read a FASTQ file.

    Letters become capitals and a point N. Letters and qualities may go over several lines, with blanks at their ends. The line with + may
    repeat the first line or only the name. Empty reads are kept.

    Parameters
    ----------
    spool : a folder; letters, qualities and names that take more than some hundred megabytes are mapped from nameless files there.

    Raises
    ------
    InputError : naming the file, the line, the reason and the remedy: a file that is missing, unreadable, empty, cut off or no FASTQ, a
        record without a name, a letter that is none, other numbers of qualities than of letters, a quality out of bounds.
    StorageError : the disk of `spool` refused. Cancelled : the user asked to stop.
    """
    progress, path = progress or Progress(), Path(path)
    with ByteSource(path) as source:
        if not is_fastq(source):
            raise InputError(path, "is no FASTQ file: it does not begin with @", place="line 1", remedy="Give FASTQ or FASTA")
        progress.stage("Reading reads", source.size)
        columns = [GrowingColumn(np.uint8, spool) for _ in range(3)]
        places = [GrowingColumn(np.int64) for _ in range(2)]
        ends, n_escaped = [0, 0], 0
        for column in places:
            column.append(np.zeros(1, np.int64))
        for part in read_blocks(source, progress):
            n_escaped += part.n_escaped
            for column, values in zip(columns, (part.letters, part.qualities, part.names.letters), strict=True):
                column.append(values)
            for number, lengths in enumerate((part.lengths, np.diff(part.names.offsets))):
                stops = ends[number] + np.cumsum(lengths)
                places[number].append(stops)
                ends[number] = int(stops[-1]) if len(stops) else ends[number]
    warn_escaped_names(progress, path, n_escaped)
    letters, qualities, names = (column.finish() for column in columns)
    offsets, name_offsets = (column.finish() for column in places)
    return Reads(Texts(names, name_offsets), letters, qualities, offsets, looks_like_phred_64(qualities))


def looks_like_phred_64(qualities: NDArray[np.uint8]) -> bool:
    """Whether qualities look as if they began at 64, as Illumina's did before 2011, and not at 33."""
    if not len(qualities):
        return False
    bounds = [(int(piece.min()), int(piece.max())) for piece in passed_through(qualities)]
    least, greatest = min(one for one, _ in bounds), max(one for _, one in bounds)
    return least >= _MINIMUM_OF_64 and _SURELY_64 <= greatest <= _GREATEST_OF_64


def read_blocks(source: ByteSource, progress: Progress, block_bytes: int = 0) -> Iterator[ReadBlock]:
    """Yield the records of a file, block by block.

    Parameters
    ----------
    block_bytes : int
        Size of a block; 0 for the usual one.

    Raises
    ------
    InputError
        See `read_fastq`.
    Cancelled
        The user asked to stop.
    """
    carried, lines, reported = b"", 0, 0
    is_first, is_last = True, False
    while not is_last:
        piece = source.read(max(block_bytes or BLOCK_BYTES, len(carried)))
        is_last = not piece
        text = carried + piece
        if is_first:
            text, is_first = text.removeprefix(_BYTE_ORDER_MARK), False
        records, n_lines = _scanned(source.path, text, lines, is_last=is_last)
        carried, lines = text[records.n_bytes :], lines + n_lines
        source.unfolding.add(READS, len(records.lengths), place=f"line {lines}")
        yield records
        if not records.n_bytes and len(carried) > _MAXIMUM_RECORD_BYTES:
            reason = f"no record ends within {_MAXIMUM_RECORD_BYTES >> 20} MB"
            raise InputError(source.path, reason, place=f"after line {lines}", remedy="Is it what its beginning looks like?")
        progress.advance(source.consumed - reported)
        reported = source.consumed
        progress.check()


def _scanned(path: Path, data: bytes, n_lines: int, *, is_last: bool) -> tuple[ReadBlock, int]:
    """The whole records of a text, and how many lines they take. `n_lines`: of the file before it."""
    text = np.frombuffer(data, np.uint8)
    # Most @ stand within qualities; a record takes some bytes, the last one perhaps without an end of its line.
    room = min(data.count(b"@"), len(data) // _MINIMUM_RECORD_BYTES + 1)
    headers, offsets = np.empty((room, kernels.cpu.fastq_text.HEADER_FIELDS), np.int64), np.zeros(room + 1, np.int64)
    letters, qualities = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    n, consumed, lines, issue, place, line, count = kernels.cpu.fastq_text.scan_fastq(text, is_last, headers, letters, qualities, offsets)
    if issue != kernels.cpu.fastq_text.NONE:
        begun = data[consumed:].split(b"\n", 1)[0].rstrip(b"\r")
        raise _error(path, data, issue, int(place), n_lines + int(line), begun, int(count))
    offsets, total = offsets[: n + 1], int(offsets[n])
    name_offsets, flat = ranges(headers[:n, 0], headers[:n, 1])
    names = Texts(text[flat], name_offsets)
    long_names = np.flatnonzero(np.diff(name_offsets) > MAXIMUM_ACCESSION_BYTES)
    if len(long_names):
        raise too_long_name(path, n_lines + 1 + data.count(b"\n", 0, int(headers[long_names[0], 0])))
    if (names.letters > 127).any():
        names = Texts.of(map(_decoded, np.split(names.letters, name_offsets[1:-1])))
    names, n_escaped = escape_unprintable_texts(names)
    lengths = np.diff(offsets)
    return ReadBlock(names, letters[:total].copy(), qualities[:total].copy(), lengths, int(consumed), is_last, n_escaped), int(lines)


def _decoded(name: NDArray[np.uint8]) -> str:
    """A name in UTF-8, or, in old files, in Latin-1."""
    try:
        return name.tobytes().decode()
    except UnicodeDecodeError:
        return name.tobytes().decode("latin-1")


def _error(path: Path, data: bytes, issue: int, place: int, line: int, begun: bytes, count: int) -> InputError:
    """The error for a record that is not as it must be."""
    record = shortened(begun[1:].decode("latin-1").split(None, 1)[0]) if begun[1:].split() else ""
    letter = data[place : place + 1].decode("latin-1")
    shown = repr(letter) if letter.isprintable() else f"byte {data[place]}" if place < len(data) else ""
    where = f"line {line}"
    match issue:
        case kernels.cpu.fastq_text.NOT_BEGUN:
            return InputError(path, f"a record begins with {shown}, not with @", place=where, remedy="Is a line missing before it?")
        case kernels.cpu.fastq_text.NO_NAME:
            return InputError(path, "the record has no name", place=where, remedy="Put a name right after the @")
        case kernels.cpu.fastq_text.BAD_LETTER:
            remedy = "Letters and N are expected; is the line with + missing?"
            if begun.startswith(_SAM_HEADERS):
                reason, remedy = "is SAM, not FASTQ: it begins with a header line", "Convert it with samtools fastq"
                return InputError(path, reason, place=f"line {line - 1}", remedy=remedy)
            if letter in "0123":
                remedy = "Colours of SOLiD are not aligned: convert them to bases with the tools of the sequencer"
            return InputError(path, f"{shown} in {record} is no letter", place=where, remedy=remedy)
        case kernels.cpu.fastq_text.OTHER_NAME:
            return InputError(path, f"the line with + repeats another name than {record}", place=where, remedy="Leave the + alone")
        case kernels.cpu.fastq_text.OTHER_LENGTH:
            reason = f"{record} has another number of qualities ({count}) than of letters"
            return InputError(path, reason, place=where, remedy="Each letter has one quality; copy or make the file again")
        case kernels.cpu.fastq_text.BAD_QUALITY:
            return InputError(path, f"{shown} in {record} is no quality", place=where, remedy="Qualities are the characters ! to ~")
    return InputError(path, f"the file is cut off within {record or 'a record'}", place=where, remedy="Copy or download it again")
