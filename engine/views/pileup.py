"""Pile-up: the alignments that cover a range of a reference, with the differences of each read from the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts, ranges
from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.read_alignment.sequences import complement_table, other_strand
from proteoscope.engine.results.arrow import in_one
from proteoscope.engine.results.cigars import cigar_runs
from proteoscope.engine.views.conditions import Condition, is_missing, negated
from proteoscope.engine.views.read_pair import draw_lines
from proteoscope.engine.views.reads import NO_READS, ShownReference, covers_positions
from proteoscope.engine.views.tables import TableSource

__all__ = ["MAXIMUM_BASES", "MAXIMUM_READS", "MAXIMUM_WIDTH", "Pileup", "find_differences", "read_pileup"]

MAXIMUM_READS = 10_000
"""Maximum number of alignments in a pile-up; the number of omitted alignments is shown."""
MAXIMUM_BASES = 1 << 23
"""Maximum number of bases of the visible alignments; long reads reach this limit first."""
MAXIMUM_WIDTH = 20_000
"""Maximum width of a pile-up in reference positions."""
_COLUMNS = ("text_start", "text_end", "pattern_start", "pattern_end", "strand", "cigar", "md", "pattern_row", "pattern")
_DASH = ord("-")
_EQUAL, _MISMATCH, _INSERTED, _DELETED = b"=XID"
_DIFFERENT, _OF_TEXT, _OF_READ = (_MISMATCH, _DELETED), tuple(b"=XD"), tuple(b"=XI")


@dataclass(frozen=True)
class Pileup:
    """Alignments (n) that cover the positions `first` to `last` of a reference, with m differences.

    Attributes
    ----------
    n_left_out
        Number of alignments omitted because of the maximum numbers.
    row
        Row of each alignment in the table of alignments, shape (n,), int64.
    start, end
        First and last covered position of the reference, from 1, shape (n,), int64.
    is_reverse
        True for reads aligned as reverse complements, shape (n,).
    lane
        Line of the figure for each alignment, from 0, (n,), int64.
    read
        Index of the alignment to which each difference belongs, (m,), int64.
    position
        Position of each difference in the reference, from 1; for an insertion, the position before it, shape (m,), int64.
    symbol
        Base of the read (ASCII), ``-`` for a deletion, ``+`` for an insertion, shape (m,), uint8.
    reference
        Bases of the reference (ASCII) derived from the alignments, 0 if no alignment covers the position, (last - first + 1,), uint8.
    """

    text: ShownReference
    first: int
    last: int
    n_left_out: int
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    lane: NDArray[np.int64]
    read: NDArray[np.int64]
    position: NDArray[np.int64]
    symbol: NDArray[np.uint8]
    reference: NDArray[np.uint8]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def n_lanes(self) -> int:
        """Number of lines of the figure."""
        return int(self.lane.max(initial=-1)) + 1

    def counts(self, position: int) -> dict[str, int]:
        """Count the bases of the alignments at a position of the reference, most frequent first; ``-`` counts deletions."""
        covers = (self.start <= position) & (self.end >= position)
        at = (self.position == position) & (self.symbol != ord("+"))
        result: dict[str, int] = {}
        for symbol in self.symbol[at].tolist():
            result[chr(symbol)] = result.get(chr(symbol), 0) + 1
        reference = self.reference[position - self.first] if self.first <= position <= self.last else 0
        n_same = int(covers.sum()) - int(at.sum())
        if n_same:
            result[chr(reference) if reference else "?"] = n_same
        return dict(sorted(result.items(), key=lambda item: -item[1]))


def read_pileup(source: TableSource, text: ShownReference, first: int, last: int, conditions: Iterable[Condition] = ()) -> Pileup:
    """Return the pile-up of alignments that cover positions `first` to `last` (from 1) of a reference and satisfy all conditions.

    Raises
    ------
    ProteoscopeError
        If the run has no table of reads, or its tables do not belong together.
    """
    if "patterns" not in source.paths:
        raise ProteoscopeError(NO_READS)
    first = max(1, min(first, text.length))
    last = max(first, min(last, text.length, first + MAXIMUM_WIDTH - 1))
    wanted = [*covers_positions(text, first, last), negated(is_missing("text_start")), *conditions]
    rows = source.rows(wanted, [("text_start", False)])
    n_left_out = max(0, len(rows) - MAXIMUM_READS)
    if n_left_out:
        rows = _spread(rows, MAXIMUM_READS)
    n_bases = _covered_bases(source, rows, first, last)
    if n_bases > MAXIMUM_BASES:
        fewer = _spread(rows, max(1, len(rows) * MAXIMUM_BASES // n_bases))
        n_left_out, rows = n_left_out + len(rows) - len(fewer), fewer
    columns = source.values(rows, _COLUMNS)
    differences = find_differences(columns, _read_sequences(source, columns["pattern_row"].to_numpy()), first, last)
    start, end = (columns[name].to_numpy().astype(np.int64) for name in ("text_start", "text_end"))
    is_reverse = pa.compute.equal(columns["strand"], "-").to_numpy()
    names = tuple(columns["pattern"].to_pylist())
    return Pileup(text, first, last, n_left_out, rows, start, end, is_reverse, _lanes(start, end), *differences, names)


def _spread(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return n of the rows, evenly spaced; the choice is deterministic."""
    return rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]


def _covered_bases(source: TableSource, rows: NDArray[np.int64], first: int, last: int) -> int:
    ends = source.values(rows, ("text_start", "text_end"))
    start, end = (ends[name].to_numpy().astype(np.int64) for name in ("text_start", "text_end"))
    return int((np.minimum(end, last) - np.maximum(start, first) + 1).sum())


def _read_sequences(source: TableSource, rows: NDArray[np.int64]) -> Texts:
    """Return the sequences of the reads in the given rows of the table of reads."""
    different, position = np.unique(rows, return_inverse=True)
    result = source.sibling("patterns").values(different, ("sequence",))["sequence"]
    if len(result) != len(different):
        raise ProteoscopeError("The run's table of reads does not contain all aligned reads. Run the search again.")
    return Texts.from_arrow(in_one(result)).take(position.astype(np.int64))


def find_differences(
    columns: pa.Table, reads: Texts, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the differences of alignments in a range, and the bases of the reference derived from the alignments.

    Parameters
    ----------
    columns
        Rows of n alignments of the table of alignments.
    reads
        Sequence of the read of each alignment, in its original direction.
    first, last
        First and last position of the range, from 1.

    Returns
    -------
    read, position, symbol, reference
        Arrays as in `Pileup`.

    Raises
    ------
    ProteoscopeError
        If the columns do not belong together.
    """
    n, runs = len(columns), cigar_runs(in_one(columns["cigar"]))
    start, read_start, read_end = (columns[name].to_numpy().astype(np.int64) - 1 for name in ("text_start", "pattern_start", "pattern_end"))
    is_reverse = pa.compute.equal(columns["strand"], "-").to_numpy()
    row = np.repeat(np.arange(n), np.diff(runs.offsets))
    of_text, of_read = (np.where(np.isin(runs.kind, kinds), runs.length, 0) for kinds in (_OF_TEXT, _OF_READ))
    text_before, read_before = (_before(lengths, runs.offsets, row) for lengths in (of_text, of_read))
    n_read = np.bincount(row, of_read, n).astype(np.int64)
    if (n_read != read_end - read_start + 1).any() or (read_end >= np.diff(reads.offsets)).any() or (read_start < 0).any():
        wrong = int(np.flatnonzero((n_read != read_end - read_start + 1) | (read_end >= np.diff(reads.offsets)) | (read_start < 0))[0])
        raise ProteoscopeError(f"{columns['pattern'][wrong].as_py()}: the alignment of this read cannot be drawn. Run the search again.")
    # First position of each operation in the reference, from 1.
    position = start[row] + text_before + 1
    complement = complement_table()

    def bases(run: NDArray[np.int64], within: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the bases, in the direction of the reference, that are `within` bases after the starts of the CIGAR operations `run`."""
        of = row[run]
        at = read_before[run] + within
        symbols = reads.characters[reads.offsets[of] + np.where(is_reverse[of], read_end[of] - at, read_start[of] + at)]
        forward: NDArray[np.uint8] = np.where(is_reverse[of], complement[symbols], symbols)
        return forward

    parts = []
    for kind in _DIFFERENT:
        chosen = np.flatnonzero((runs.kind == kind) & (position <= last) & (position + runs.length > first))
        low, high = np.maximum(position[chosen], first), np.minimum(position[chosen] + runs.length[chosen], last + 1)
        offsets, positions = ranges(low, high)
        run = np.repeat(chosen, np.diff(offsets))
        symbols = bases(run, positions - position[run]) if kind == _MISMATCH else np.full(len(positions), _DASH, np.uint8)
        parts.append((row[run], positions, symbols))
    inserted = np.flatnonzero((runs.kind == _INSERTED) & (position - 1 >= first) & (position - 1 <= last))
    parts.append((row[inserted], position[inserted] - 1, np.full(len(inserted), ord("+"), np.uint8)))
    read, positions, symbols = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((positions, read))
    reference = np.zeros(last - first + 1, np.uint8)
    _show_equal(reference, np.flatnonzero(runs.kind == _EQUAL), position, runs.length, first, last, bases)
    _show_different(reference, columns, reads, first, last)
    return read[order], positions[order], symbols[order], reference


def _before(lengths: NDArray[np.int64], offsets: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each operation, the sum of the lengths of the preceding operations of the same CIGAR."""
    total = np.concatenate(([0], np.cumsum(lengths)))
    return total[:-1] - total[offsets[:-1]][row]


def _show_equal(
    reference: NDArray[np.uint8],
    equal: NDArray[np.int64],
    position: NDArray[np.int64],
    length: NDArray[np.int64],
    first: int,
    last: int,
    bases: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.uint8]],
) -> None:
    """Set the bases of `reference` where a read is equal to it: at the CIGAR operations with the indices `equal`."""
    equal = equal[np.argsort(position[equal], kind="stable")]
    low, high = np.maximum(position[equal], first), np.minimum(position[equal] + length[equal], last + 1)
    # Skip positions that earlier operations have set.
    low = np.maximum(low, np.concatenate(([first], np.maximum.accumulate(high)[:-1]))) if len(high) else low
    offsets, positions = ranges(low, np.maximum(low, high))
    run = np.repeat(equal, np.diff(offsets))
    reference[positions - first] = bases(run, positions - position[run])


def _show_different(reference: NDArray[np.uint8], columns: pa.Table, reads: Texts, first: int, last: int) -> None:
    """Set the bases of `reference` at covered positions where no read is equal to it, from the MD fields of the alignments."""
    start, end = (columns[name].to_numpy().astype(np.int64) for name in ("text_start", "text_end"))
    depth = np.zeros(last - first + 2, np.int64)
    np.add.at(depth, np.clip(start, first, last + 1) - first, 1)
    np.add.at(depth, np.clip(end + 1, first, last + 1) - first, -1)
    is_covered = np.cumsum(depth)[:-1] > 0
    unknown = np.flatnonzero((reference == 0) & is_covered) + first
    while len(unknown):
        at = int(np.flatnonzero((start <= unknown[0]) & (end >= unknown[0]))[0])
        subject = _reference_line({name: columns[name][at].as_py() for name in columns.column_names}, reads[at : at + 1].strings()[0])
        low, high = max(first, int(start[at])), min(last, int(end[at]))
        part = reference[low - first : high + 1 - first]
        part[part == 0] = subject[low - start[at] : high + 1 - start[at]][part == 0]
        unknown = unknown[unknown > high]


def _reference_line(row: dict[str, Any], bases: str) -> NDArray[np.uint8]:
    """Return the bases of the reference in the range of an alignment, uint8."""
    try:
        pattern = bases[row["pattern_start"] - 1 : row["pattern_end"]]
        _, subject = draw_lines(other_strand(pattern) if row["strand"] == "-" else pattern, row["cigar"], row["md"])
    except (ValueError, TypeError) as error:
        raise ProteoscopeError(f"{row['pattern']}: the alignment of this read cannot be drawn. Run the search again.") from error
    line = np.frombuffer(subject.encode("ascii", "replace"), np.uint8)
    reference: NDArray[np.uint8] = line[line != _DASH]
    return reference


def _lanes(start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the line of the figure for each alignment: the first line in which no earlier alignment overlaps it; `start` is ascending."""
    lane = np.empty(len(start), np.int64)
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    n_lanes = 0
    for at, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while busy and busy[0][0] < begin - 1:
            heappush(free, heappop(busy)[1])
        if free:
            lane[at] = heappop(free)
        else:
            lane[at] = n_lanes
            n_lanes += 1
        heappush(busy, (stop, int(lane[at])))
    return lane
