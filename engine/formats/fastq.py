"""Reader of sequences with qualities from FASTQ files, plain or gzipped."""

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
from proteoscope.engine.formats.sources import BLOCK_BYTES, ByteSource, decoded
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.spectra.spooling import GrowingColumn, iterate_chunks
from proteoscope.engine.unfolding import READS

__all__ = ["ReadBlock", "Reads", "is_fastq", "looks_like_phred_64", "read_blocks", "read_fastq"]

_MINIMUM_RECORD_BYTES = 5  # @, a name of one character, and three line ends
_MAXIMUM_RECORD_BYTES = 64 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAM_HEADERS = tuple(b"@" + code + b"\t" for code in (b"HD", b"SQ", b"RG", b"PG", b"CO"))
# Qualities of Illumina before version 1.8 range from ; or @ to h. Sanger's qualities begin at !. The highest
# quality of Sanger files without low qualities is at most K, or beyond h.
_MINIMUM_OF_64, _MINIMUM_OF_64_ONLY, _GREATEST_OF_64 = ord(";"), ord("L"), ord("h")


@dataclass(frozen=True)
class Reads:
    """Sequences (n) with base qualities.

    Attributes
    ----------
    names : Texts
        First word of each header, with unprintable characters escaped.
    bases : ndarray of uint8, shape (total,)
        Bases of all reads in ASCII capitals.
    qualities : ndarray of uint8, shape (total,)
        Quality characters as in the file.
    offsets : ndarray of int64, shape (n + 1,)
        Read i is ``offsets[i]:offsets[i + 1]`` of `bases` and `qualities`.
    is_phred_64 : bool
        True if the qualities appear to be encoded with offset 64, as in Illumina's files before 2011, instead of 33.
    """

    names: Texts
    bases: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    is_phred_64: bool

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass
class ReadBlock:
    """Reads (n) of a block; `names`, `bases` and `qualities` have the same meaning as in `Reads`.

    Attributes
    ----------
    lengths : ndarray of int64, shape (n,)
        Number of bases of each read.
    n_bytes : int
        Size of the block in bytes.
    is_last : bool
        True if the file ends with the block.
    n_escaped : int
        Number of names with escaped characters.
    """

    names: Texts
    bases: NDArray[np.uint8]
    qualities: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    n_bytes: int
    is_last: bool
    n_escaped: int


def is_fastq(source: ByteSource) -> bool:
    """Return True if the first line that is not blank begins with @, as in FASTQ."""
    return source.peek(1 << 12).removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n").startswith(b"@")


def read_fastq(path: str | Path, *, progress: Progress | None = None, spool: Path | None = None) -> Reads:
    """Read a FASTQ file.

    Bases become capitals, and a point becomes N. Bases and qualities may span several lines, with blanks at the line ends. The line with +
    may repeat the header or only the name. Empty reads are included.

    Parameters
    ----------
    path : str or Path
        FASTQ file, plain or gzipped.
    progress : Progress, optional
        Progress, which receives the number of bytes read and is checked for cancellation.
    spool : Path, optional
        Folder for unnamed temporary files, which store bases, qualities and names of more than several hundred megabytes (memory-mapped).

    Returns
    -------
    Reads
        Reads in order of the file.

    Raises
    ------
    InputError
        If the file is missing, unreadable, empty, truncated or not FASTQ; or if a record has no name, an invalid base or quality, or
        different numbers of qualities and bases. The message names file, line, reason and remedy.
    StorageError
        If the disk of `spool` is full or not writable.
    Cancelled
        If the user cancels.
    """
    progress, path = progress or Progress(), Path(path)
    with ByteSource(path) as source:
        if not is_fastq(source):
            raise InputError(path, "is not a FASTQ file: it does not begin with @", place="line 1", remedy="Give FASTQ or FASTA")
        progress.stage("Reading reads", source.size)
        columns = [GrowingColumn(np.uint8, spool) for _ in range(3)]
        positions = [GrowingColumn(np.int64) for _ in range(2)]
        ends, n_escaped = [0, 0], 0
        for offsets_column in positions:
            offsets_column.append(np.zeros(1, np.int64))
        for part in read_blocks(source, progress):
            n_escaped += part.n_escaped
            for column, values in zip(columns, (part.bases, part.qualities, part.names.characters), strict=True):
                column.append(values)
            for number, lengths in enumerate((part.lengths, np.diff(part.names.offsets))):
                stops = ends[number] + np.cumsum(lengths)
                positions[number].append(stops)
                ends[number] = int(stops[-1]) if len(stops) else ends[number]
    warn_escaped_names(progress, path, n_escaped)
    symbols, qualities, names = (column.finish() for column in columns)
    offsets, name_offsets = (column.finish() for column in positions)
    return Reads(Texts(names, name_offsets), symbols, qualities, offsets, looks_like_phred_64(qualities))


def looks_like_phred_64(qualities: NDArray[np.uint8]) -> bool:
    """Return True if qualities appear to be encoded with offset 64, as in Illumina's files before 2011, instead of 33.

    `qualities` are ASCII characters, (total,).
    """
    if not len(qualities):
        return False
    bounds = [(int(chunk.min()), int(chunk.max())) for chunk in iterate_chunks(qualities)]
    minimum, maximum = min(low for low, _ in bounds), max(high for _, high in bounds)
    return minimum >= _MINIMUM_OF_64 and _MINIMUM_OF_64_ONLY <= maximum <= _GREATEST_OF_64


def read_blocks(source: ByteSource, progress: Progress, block_bytes: int = 0) -> Iterator[ReadBlock]:
    """Yield the reads of a file, block by block.

    Parameters
    ----------
    source : ByteSource
        Open FASTQ file.
    progress : Progress
        Progress, which receives the number of bytes read and is checked for cancellation.
    block_bytes : int
        Size of a block in bytes; 0 for the default.

    Yields
    ------
    ReadBlock
        Complete reads of the block.

    Raises
    ------
    InputError
        If the file is invalid, as in `read_fastq`.
    Cancelled
        If the user cancels.
    """
    carried, lines, reported = b"", 0, 0
    is_first, is_last = True, False
    while not is_last:
        new_bytes = source.read(max(block_bytes or BLOCK_BYTES, len(carried)))
        is_last = not new_bytes
        text = carried + new_bytes
        if is_first:
            text, is_first = text.removeprefix(_BYTE_ORDER_MARK), False
        records, n_lines = _scanned(source.path, text, lines, is_last=is_last)
        carried, lines = text[records.n_bytes :], lines + n_lines
        source.unfolding.add(READS, len(records.lengths), place=f"line {lines}")
        yield records
        if not records.n_bytes and len(carried) > _MAXIMUM_RECORD_BYTES:
            reason = f"no record ends within {_MAXIMUM_RECORD_BYTES >> 20} MB"
            raise InputError(source.path, reason, place=f"after line {lines}", remedy="Check that it is a FASTQ file")
        progress.advance(source.consumed - reported)
        reported = source.consumed
        progress.check()


def _scanned(path: Path, data: bytes, n_lines: int, *, is_last: bool) -> tuple[ReadBlock, int]:
    """Return the complete reads of a text, and its number of lines; `n_lines` is the number of lines of the file before the text."""
    text = np.frombuffer(data, np.uint8)
    # Two upper bounds, because many @ are qualities: the number of @, and the number of records of minimum size (the last may lack its line
    # end).
    maximum = min(data.count(b"@"), len(data) // _MINIMUM_RECORD_BYTES + 1)
    headers, offsets = np.empty((maximum, kernels.cpu.fastq_text.HEADER_FIELDS), np.int64), np.zeros(maximum + 1, np.int64)
    symbols, qualities = np.empty(len(data), np.uint8), np.empty(len(data), np.uint8)
    n, consumed, lines, issue, position, line, count = kernels.cpu.fastq_text.scan_fastq(
        text, is_last, headers, symbols, qualities, offsets
    )
    if issue != kernels.cpu.fastq_text.NONE:
        begun = data[consumed:].split(b"\n", 1)[0].rstrip(b"\r")
        raise _error(path, data, issue, int(position), n_lines + int(line), begun, int(count))
    offsets, total = offsets[: n + 1], int(offsets[n])
    name_offsets, flat = ranges(headers[:n, 0], headers[:n, 1])
    names = Texts(text[flat], name_offsets)
    long_names = np.flatnonzero(np.diff(name_offsets) > MAXIMUM_ACCESSION_BYTES)
    if len(long_names):
        raise too_long_name(path, n_lines + 1 + data.count(b"\n", 0, int(headers[long_names[0], 0])))
    if (names.characters > 127).any():
        names = Texts.from_strings(decoded(name.tobytes()) for name in np.split(names.characters, name_offsets[1:-1]))
    names, n_escaped = escape_unprintable_texts(names)
    lengths = np.diff(offsets)
    return ReadBlock(names, symbols[:total].copy(), qualities[:total].copy(), lengths, int(consumed), is_last, n_escaped), int(lines)


def _error(path: Path, data: bytes, issue: int, position: int, line: int, begun: bytes, count: int) -> InputError:
    """Return the error for an invalid record."""
    record = shortened(begun[1:].decode("latin-1").split(None, 1)[0]) if begun[1:].split() else ""
    character = data[position : position + 1].decode("latin-1")
    shown = repr(character) if character.isprintable() else f"byte {data[position]}" if position < len(data) else ""
    where = f"line {line}"
    match issue:
        case kernels.cpu.fastq_text.NOT_BEGUN:
            return InputError(path, f"a record begins with {shown}, not with @", place=where, remedy="Is a line missing before it?")
        case kernels.cpu.fastq_text.NO_NAME:
            return InputError(path, "the record has no name", place=where, remedy="Put a name right after the @")
        case kernels.cpu.fastq_text.BAD_SYMBOL:
            remedy = "Bases are A to Z, in upper or lower case; check for a missing line with +"
            if begun.startswith(_SAM_HEADERS):
                reason, remedy = "is SAM, not FASTQ: it begins with a header line", "Convert it with samtools fastq"
                return InputError(path, reason, place=f"line {line - 1}", remedy=remedy)
            if character in "0123":
                remedy = "Colour-space reads of SOLiD are not supported: convert them to bases with the tools of the sequencer"
            return InputError(path, f"{shown} in {record} is not a base", place=where, remedy=remedy)
        case kernels.cpu.fastq_text.OTHER_NAME:
            return InputError(path, f"the name after + is not {record}", place=where, remedy="Remove the name after the +")
        case kernels.cpu.fastq_text.OTHER_LENGTH:
            reason = f"the number of qualities of {record} ({count}) differs from its number of bases"
            return InputError(path, reason, place=where, remedy="Each base has one quality; copy or make the file again")
        case kernels.cpu.fastq_text.BAD_QUALITY:
            return InputError(path, f"{shown} in {record} is not a quality", place=where, remedy="Qualities are the characters ! to ~")
    return InputError(path, f"the file is cut off within {record or 'a record'}", place=where, remedy="Copy or download it again")
