"""Writers of alignments as SAM (Sequence Alignment/Map Format Specification 1.6) and as PAF, from rows of the table ``alignments``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, row_mask, take_segments
from proteoscope.engine.escaped_names import ESCAPES, NameCharacters, escape_unprintable_texts
from proteoscope.engine.files import atomic_file, storage_errors, temporary_path
from proteoscope.engine.formats.fastq import looks_like_phred_64
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.read_alignment.mate_names import template_names, trimmed
from proteoscope.engine.read_alignment.sequences import ALPHABET, NamedSequences, complement_table
from proteoscope.engine.results.cigars import count_cigar_symbols
from proteoscope.engine.results.sam import (
    LONGEST_READ_NAME,
    NO_QUALITY,
    READ_NAME_CHARACTERS,
    SECONDARY,
    UNPLACED,
    SamNames,
    SamRecords,
    sam_header,
    sam_lines,
    text_arrays,
)
from proteoscope.engine.results.separated import write_lines
from proteoscope.engine.spectra.spooling import release_pages
from proteoscope.kernels.text_layouts import SamSequences

__all__ = ["Aligned", "paf_lines", "write_paf", "write_sam"]

_IS_PAIRED, _IS_PROPER, _MATE_IS_UNPLACED, _IS_REVERSE, _MATE_IS_REVERSE, _IS_FIRST, _IS_SECOND = 1, 2, 8, 16, 32, 64, 128
_ROWS, _BASES = 1 << 15, 1 << 24  # maximum rows and bases of a batch of lines
_COPIED_BYTES = 1 << 26
_PHRED_64_SHIFT = 31
_NOWHERE = np.int64(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Aligned:
    """Reads and references to which rows of alignments refer: the rows of the tables ``patterns`` and ``texts``.

    Attributes
    ----------
    codes : ndarray, shape (bases,)
        Codes of all reads, one byte per base; may be mapped from a file.
    qualities : ndarray of uint8, shape (bases,) or None
        Qualities of all reads as characters; may be mapped from a file.
    offsets : ndarray of int64, shape (reads + 1,)
        Start of each read in `codes` and `qualities`, followed by their length.
    reference_names : Texts
        Names of the references.
    reference_lengths : ndarray of int64, shape (references,)
        Lengths of the references in bases.
    alphabet : ndarray of uint8
        ASCII character of each code.
    """

    codes: NDArray[Any]
    qualities: NDArray[np.uint8] | None
    offsets: NDArray[np.int64]
    reference_names: Texts
    reference_lengths: NDArray[np.int64]
    alphabet: NDArray[np.uint8]

    @classmethod
    def from_sequences(cls, references: NamedSequences, reads: NamedSequences) -> Aligned:
        """Return the data of references and reads that records of their alignments need."""
        codes, offsets = reads.sequences
        return cls(codes, reads.qualities, offsets, references.names, references.lengths, ALPHABET)


def write_sam(
    out: Path, tables: Iterable[pa.Table], aligned: Aligned, progress: Progress, *, is_sorted: bool = False, threads: int = 1
) -> None:
    """Write rows of the table ``alignments`` as SAM.

    The first alignment of a read with the best score is primary; a read without alignments has one unmapped record. Names end before the
    first blank; characters that are invalid in SAM are escaped, such as ``%40``. A ``*`` in a protein becomes X.

    Parameters
    ----------
    out : Path
        File to write.
    tables : iterable of Table
        Rows, ordered by read.
    aligned : Aligned
        Reads and references of the rows.
    progress : Progress
        Progress of the run.
    is_sorted : bool
        True to sort records by position, with unmapped records last, through a temporary file in the folder of `out`.
    threads : int
        Number of threads that format the records.

    Raises
    ------
    StorageError
        If the file cannot be written.
    Cancelled
        If the user cancels.
    """
    numbers = np.arange(len(aligned.reference_names))
    names = SamNames()
    references = Texts.from_strings(names.names(numbers, aligned.reference_names))
    names.warn(progress, "reference")
    header = sam_header(references.strings(), aligned.reference_lengths.tolist(), is_sorted=is_sorted)
    written = _SamLines(aligned, references)
    parts = _batches(_whole_reads(tables))
    if is_sorted:
        _write_sorted(out, header, parts, written.lines, progress, threads)
    else:
        write_lines(out, header, parts, lambda table: written.lines(table)[0], progress, threads=threads)
    _warn_names(progress, written.n_escaped, written.n_cut)


def _warn_names(progress: Progress, n_escaped: int, n_cut: int) -> None:
    """Warn if names of reads in SAM differ from the names in their file."""
    if n_escaped:
        progress.message(f"{_count_names(n_escaped)} with characters that SAM does not allow; they are {ESCAPES}", "warning")
    if n_cut:
        cut = (
            f"SAM allows no more: {'it is cut and ends' if n_cut == 1 else 'they are cut and end'} with the number of the read in its file"
        )
        progress.message(f"{_count_names(n_cut)} of more than {LONGEST_READ_NAME} characters. {cut}", "warning")


def _count_names(n: int) -> str:
    return "1 read has a name" if n == 1 else f"{n:,} reads have names"


def write_paf(out: Path, tables: Iterable[pa.Table], aligned: Aligned, progress: Progress, *, threads: int = 1) -> None:
    """Write the aligned rows of the table ``alignments`` as PAF with the tags NM, AS and cg.

    Raises
    ------
    StorageError
        If the file cannot be written.
    Cancelled
        If the user cancels.
    """

    def lines(table: pa.Table) -> bytes:
        return paf_lines(table, aligned)

    write_lines(out, b"", _batches(tables), lines, progress, threads=threads)


def _whole_reads(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows in tables that do not divide a read or a pair of mates."""
    carried: pa.Table | None = None
    for table in tables:
        rows = table if carried is None else pa.concat_tables([carried, table])
        cut = _starts(rows)[-1] if len(rows) else 0
        if cut:
            yield rows[:cut]
        carried = rows[cut:]
    if carried is not None and len(carried):
        yield carried


def _starts(rows: pa.Table) -> NDArray[np.int64]:
    """Return the first row of each read or pair of mates."""
    groups = rows["pattern_row"].to_numpy()
    if len(rows) and rows["mate"][0].is_valid:
        groups = groups // 2
    return np.flatnonzero(np.diff(groups, prepend=-1))


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables of about `_ROWS` rows. Tables with long reads have fewer rows; a table has more rows if one read has more."""
    for table in tables:
        starts, longest = np.append(_starts(table), len(table)), int(_numbers(table, "pattern_length").max(initial=1))
        rows = max(1, min(_ROWS, _BASES // max(1, longest)))
        cuts = np.unique(starts[np.searchsorted(starts, np.arange(0, len(table), rows))])
        for first, last in zip(cuts, np.append(cuts[1:], len(table)), strict=True):
            if first < last:
                yield table[int(first) : int(last)].combine_chunks()


def _numbers(table: pa.Table, name: str, missing: int = 0) -> NDArray[np.int64]:
    return np.asarray(pa.compute.fill_null(table[name], missing).to_numpy(), np.int64)


def _texts(table: pa.Table, name: str) -> Texts:
    column = pa.compute.fill_null(table[name], "")
    return Texts.from_arrow(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)


def _is_reverse(table: pa.Table) -> NDArray[np.bool_]:
    return np.asarray(pa.compute.fill_null(pa.compute.equal(table["strand"], "-"), False).to_numpy(), np.bool_)


def _is_missing(table: pa.Table) -> NDArray[np.bool_]:
    """Return True for each row that is written as unmapped, since it has no alignment, or an alignment without reference bases."""
    return np.asarray(table["score"].is_null().to_numpy(), np.bool_) | (_numbers(table, "text_end") < _numbers(table, "text_start"))


_PAF_NAME_CHARACTERS = NameCharacters(bytes(range(ord("!"), 127)) + bytes(range(128, 256)))


class _ReadNames(NamedTuple):
    """Names of n reads as written in SAM.

    Attributes
    ----------
    names : Texts
        Names that SAM allows.
    is_escaped, is_cut : ndarray of bool, shape (n,)
        True for each name with escaped characters, and for each shortened name.
    """

    names: Texts
    is_escaped: NDArray[np.bool_]
    is_cut: NDArray[np.bool_]


def _read_names(names: Texts, rows: NDArray[np.int64], *, are_mates: bool) -> _ReadNames:
    """Return the names of reads as written in SAM.

    Two mates have the same name. A name that is too long is shortened, and the number of the read in its file is appended, which makes the
    name unique.

    Parameters
    ----------
    names : Texts
        Names of the reads, n of them.
    rows : ndarray of int64, shape (n,)
        Rows of the reads in their file.
    are_mates : bool
        True if names 2 i and 2 i + 1 belong to mates.
    """
    names, is_escaped = READ_NAME_CHARACTERS.escape_texts(template_names(names) if are_mates else names)
    lengths = np.diff(names.offsets)
    is_cut = lengths > LONGEST_READ_NAME
    if not is_cut.any():
        return _ReadNames(names, is_escaped, is_cut)
    numbers = pa.array(rows // (2 if are_mates else 1) + 1).cast(pa.string())
    endings = Texts.from_arrow(pa.compute.if_else(pa.array(is_cut), pa.compute.binary_join_element_wise("_", numbers, ""), ""))
    beginnings = trimmed(names, np.where(is_cut, LONGEST_READ_NAME - np.diff(endings.offsets), lengths))
    joined = pa.compute.binary_join_element_wise(beginnings.arrow(), endings.arrow(), "")
    return _ReadNames(Texts.from_arrow(joined), is_escaped, is_cut)


class _SamLines:
    """Formatter of alignments as lines of SAM.

    Parameters
    ----------
    aligned : Aligned
        Reads and references of the rows.
    references : Texts
        Names of the references as written in SAM.
    """

    def __init__(self, aligned: Aligned, references: Texts) -> None:
        self._texts, self._aligned = references, aligned
        self._alphabet = np.where(aligned.alphabet == ord("*"), np.uint8(ord("X")), aligned.alphabet)
        self.n_escaped = self.n_cut = 0
        self._lock = threading.Lock()
        self._shift = _PHRED_64_SHIFT if aligned.qualities is not None and looks_like_phred_64(aligned.qualities) else 0

    def _sequences(self, first: int, last: int) -> SamSequences:
        """Return the bases and qualities of the reads `first:last`; then free the memory of arrays mapped from a file."""
        offsets = self._aligned.offsets[first : last + 1]
        begin, end = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
        symbols = self._alphabet[self._aligned.codes[begin:end]]
        qualities = symbols[:0]
        if self._aligned.qualities is not None:
            qualities = self._aligned.qualities[begin:end].copy()
            release_pages(self._aligned.qualities)
        release_pages(self._aligned.codes)
        return SamSequences(symbols, qualities, offsets - begin, complement_table(), self._shift)

    def lines(self, rows: pa.Table) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
        """Return lines of SAM; `rows` contain all rows of each of their reads.

        Returns
        -------
        lines : bytes
            Text of all lines.
        ends : ndarray of int64
            End of each line in the text.
        keys : ndarray of int64
            Sort key of each line, calculated from reference and position; unmapped records have the maximum.
        """
        chunk, is_primary = _records(rows)
        n, is_missing, is_reverse, reads = len(chunk), _is_missing(chunk), _is_reverse(chunk), _numbers(chunk, "pattern_row")
        are_mates = n > 0 and chunk["mate"][0].is_valid and np.array_equal(reads, reads[0] + np.arange(n)) and n % 2 == 0
        text = np.where(is_missing, -1, _numbers(chunk, "text_row", -1))
        start, end = np.where(is_missing, 0, _numbers(chunk, "text_start")), _numbers(chunk, "text_end")
        flags = UNPLACED * is_missing + _IS_REVERSE * is_reverse + SECONDARY * ~is_primary
        positions = np.zeros((n, 6), np.int64)
        positions[:, 3] = -1
        if are_mates:
            flags += _mate_flags(chunk, is_missing, is_reverse)
            _fill_mates(positions, text, start, end, is_missing)
        positions[:, 0], positions[:, 1] = (
            np.where(is_missing & are_mates, positions[:, 3], text),
            np.where(is_missing & are_mates, positions[:, 4], start),
        )
        positions[:, 2] = np.where(is_missing, 0, _numbers(chunk, "mapping_quality", NO_QUALITY))
        before = _numbers(chunk, "pattern_start", 1) - 1
        after = _numbers(chunk, "pattern_length") - _numbers(chunk, "pattern_end")
        clips = np.where(is_reverse[:, None], np.stack([after, before], axis=1), np.stack([before, after], axis=1))
        names, is_escaped, is_cut = _read_names(_texts(chunk, "pattern"), reads, are_mates=are_mates)
        with self._lock:
            self.n_escaped += len(np.unique(reads[is_escaped]))
            self.n_cut += len(np.unique(reads[is_cut]))
        cigars = _texts(chunk, "cigar")
        first, last = (int(reads[0]), int(reads[-1]) + 1) if n else (0, 0)
        records = SamRecords(names, flags, positions, cigars, clips, _tags(chunk, is_missing), reads - first)
        lines, ends = sam_lines(records, self._texts, self._sequences(first, last))
        keys = np.where(positions[:, 0] < 0, _NOWHERE, positions[:, 0] << 32 | positions[:, 1])
        return lines, ends, keys


def _tags(table: pa.Table, is_missing: NDArray[np.bool_]) -> Texts:
    """Return the tags NM, AS and MD of each record; empty for unmapped records."""
    columns = {name: pa.compute.fill_null(table[name], "").combine_chunks() for name in ("cigar", "md")}
    edits = pa.compute.cast(pa.array(count_cigar_symbols(columns["cigar"], "XID")), pa.string())
    scores = pa.compute.cast(pa.compute.fill_null(table["score"], 0), pa.string()).combine_chunks()
    tags = pa.compute.binary_join_element_wise("\tNM:i:", edits, "\tAS:i:", scores, "\tMD:Z:", columns["md"], "")
    return Texts.from_arrow(pa.compute.if_else(pa.array(is_missing), "", tags))


def _records(rows: pa.Table) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Return the rows that become records, and True for the primary record of each read; `rows` contain all rows of each of their reads."""
    reads, is_missing = _numbers(rows, "pattern_row"), _is_missing(rows)
    scores = np.where(is_missing, np.iinfo(np.int64).min, _numbers(rows, "score"))
    starts = np.flatnonzero(np.diff(reads, prepend=-1))
    if len(starts) == len(rows):
        return rows, np.ones(len(rows), np.bool_)
    best = np.repeat(np.maximum.reduceat(scores, starts), np.diff(np.append(starts, len(rows))))
    candidates = np.flatnonzero(scores == best)
    is_primary = row_mask(len(rows), candidates[np.unique(reads[candidates], return_index=True)[1]])
    retained = np.flatnonzero(is_primary | ~is_missing)
    return rows.take(retained).combine_chunks(), is_primary[retained]


def _mate_flags(table: pa.Table, is_missing: NDArray[np.bool_], is_reverse: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the flags of SAM that records of mates have in addition."""
    other = np.arange(len(table)) ^ 1
    is_proper = np.asarray(pa.compute.fill_null(table["is_proper_pair"], False).to_numpy(), np.bool_)
    first = _numbers(table, "mate") == 1
    flags = _IS_PAIRED + _IS_PROPER * is_proper + _MATE_IS_UNPLACED * is_missing[other] + _MATE_IS_REVERSE * is_reverse[other]
    all_flags: NDArray[np.int64] = flags + np.where(first, _IS_FIRST, _IS_SECOND)
    return all_flags


def _fill_mates(
    positions: NDArray[np.int64], text: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], is_missing: NDArray[np.bool_]
) -> None:
    """Set the columns of `positions` with the position of the mate and the fragment length.

    If the mate of a read is unmapped, its position is that of the read.
    """
    other = np.arange(len(text)) ^ 1
    positions[:, 3] = np.where(is_missing[other], text, text[other])
    positions[:, 4] = np.where(is_missing[other], start, start[other])
    is_together = ~is_missing & ~is_missing[other] & (text == text[other])
    length = np.maximum(end, end[other]) - np.minimum(start, start[other]) + 1
    is_leftmost = (start < start[other]) | ((start == start[other]) & (np.arange(len(text)) < other))
    positions[:, 5] = np.where(is_together, np.where(is_leftmost, length, -length), 0)


def _paf_names(names: Texts) -> Texts:
    """Return names with escaped blanks and control characters; names contain these only if another program modified the project."""
    return _PAF_NAME_CHARACTERS.escape_texts(escape_unprintable_texts(names)[0])[0]


def paf_lines(rows: pa.Table, aligned: Aligned) -> bytes:
    """Return lines of PAF for the rows of mapped reads."""
    chunk = rows.take(np.flatnonzero(~_is_missing(rows))).combine_chunks()
    text = _numbers(chunk, "text_row", -1)
    reference_names = _paf_names(aligned.reference_names)
    columns = [
        _numbers(chunk, "pattern_length"),
        _numbers(chunk, "pattern_start") - 1,
        _numbers(chunk, "pattern_end"),
        text,
        _numbers(chunk, "text_length"),
        _numbers(chunk, "text_start") - 1,
        _numbers(chunk, "text_end"),
        _numbers(chunk, "mapping_quality", NO_QUALITY),
    ]
    names, cigars = _paf_names(_texts(chunk, "pattern")), _texts(chunk, "cigar")
    longest = int(np.diff(reference_names.offsets).max(initial=0))
    workspace = len(names.used) + len(cigars.used) + len(chunk) * (kernels.cpu.alignment_lines.MAXIMUM_NUMBERS + longest)
    lines, ends = np.empty(workspace, np.uint8), np.zeros(len(chunk), np.int64)
    kernels.cpu.alignment_lines.write_paf_lines(
        text_arrays(names),
        text_arrays(reference_names),
        _is_reverse(chunk),
        np.ascontiguousarray(np.stack(columns, axis=1)),
        _numbers(chunk, "score"),
        text_arrays(cigars),
        lines,
        ends,
    )
    return lines[: ends[-1] if len(chunk) else 0].tobytes()


def _write_sorted(
    out: Path, header: bytes, tables: Iterable[pa.Table], lines: Callable[[pa.Table], Any], progress: Progress, threads: int
) -> None:
    """Write lines ordered by key: each batch is sorted and written to a temporary file in the folder of `out`, then batches are merged.

    Each batch is sorted so that merging reads adjacent lines, and thus few memory pages, of the temporary file.
    """
    ends, keys = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]

    def noted(table: pa.Table) -> tuple[bytes, NDArray[np.int64], NDArray[np.int64]]:
        made, stops, of_table = lines(table)
        order = np.argsort(of_table, kind="stable")
        taken, positions = take_segments(np.frombuffer(made, np.uint8), np.append(0, stops), order)
        return taken.tobytes(), positions[1:], of_table[order]

    def note(written_lines: tuple[bytes, NDArray[np.int64], NDArray[np.int64]]) -> bytes:
        ends.append(written_lines[1] + ends[-1][-1])
        keys.append(written_lines[2])
        return written_lines[0]

    with ExitStack() as stack:
        with storage_errors(out):
            unsorted = stack.enter_context(temporary_path(out))
        write_lines(unsorted, b"", tables, noted, progress, threads=threads, then=note)
        offsets, order = np.concatenate([end for end in ends if len(end)]), np.argsort(np.concatenate(keys), kind="stable")
        lengths = np.diff(offsets)[order]
        with atomic_file(out) as file:
            file.write(header)
            if len(order):
                records = np.memmap(unsorted, np.uint8, "r")
                marks = np.append(0, np.cumsum(lengths))
                begin = 0
                while begin < len(order):
                    end = max(begin + 1, int(np.searchsorted(marks, marks[begin] + _COPIED_BYTES, side="right")) - 1)
                    file.write(take_segments(records, offsets, order[begin:end])[0].tobytes())
                    release_pages(records)
                    progress.check()
                    begin = end
                del records
