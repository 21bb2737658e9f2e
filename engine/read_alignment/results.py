"""Tables and file of a read alignment: alignments, reads and references."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.project.run import ROW_GROUP, Run
from proteoscope.engine.read_alignment.sequences import ALPHABET, NamedSequences
from proteoscope.engine.read_alignment.tables import ALIGNMENTS, PATTERNS, TEXTS
from proteoscope.engine.results.separated import ROUNDED, write_separated
from proteoscope.kernels.gapsmis_layouts import NO_ALIGNMENT, Alignments

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.cigars import Cigars

__all__ = [
    "AlignmentRows",
    "AlignmentTotals",
    "RoundScorer",
    "ScoredRound",
    "alignment_rows",
    "better_strands",
    "write_alignments",
    "write_sequences",
]

_BASES = 1 << 27  # maximum bases of the reads of a table in memory


class AlignmentRows(NamedTuple):
    """Alignments of n pairs of a reference and a read, each a row of the table ``alignments``.

    Attributes
    ----------
    reference_of, read_of : ndarray of int64, shape (n,)
        Index of the reference, -1 if unmapped, and index of the read.
    alignments : Alignments
        Alignments, with positions in the references, and in the aligned reads or reverse complements.
    is_reverse : ndarray of bool, shape (n,)
        True if the reverse complement of the read is aligned.
    cigars : Cigars
        CIGAR strings along the reference.
    mapping_quality : ndarray of int32, shape (n,) or None
        Mapping quality, from 0 to 60; None if reads are not mapped.
    is_proper_pair : ndarray of bool, shape (n,) or None
        True for reads of a proper pair; None without mates.
    """

    reference_of: NDArray[np.int64]
    read_of: NDArray[np.int64]
    alignments: Alignments
    is_reverse: NDArray[np.bool_]
    cigars: Cigars
    mapping_quality: NDArray[np.int32] | None = None
    is_proper_pair: NDArray[np.bool_] | None = None


class ScoredRound(NamedTuple):
    """Alignments of a round, number of computed matrix cells, and names of the devices that computed them."""

    rows: AlignmentRows
    cells: int
    devices: list[str]

    @classmethod
    def from_session(cls, rows: AlignmentRows, cells: int, session: Session) -> ScoredRound:
        """Return the result of a round from its alignments, the number of cells, and the session that computed them."""
        return cls(rows, cells, [share.device for share in session.shares()] or list(session.devices))


@dataclass
class AlignmentTotals:
    """Counts over all rounds of a run.

    Attributes
    ----------
    best_identity : ndarray of float32, shape (reads,)
        Identity of each read with its most similar reference, from 0 to 1; -1 without an alignment.
    n_rows, n_aligned : int
        Number of rows, and of rows with an alignment.
    cells : int
        Number of computed matrix cells.
    devices : list of str
        Devices that computed alignments.
    """

    best_identity: NDArray[np.float32]
    n_rows: int = 0
    n_aligned: int = 0
    cells: int = 0
    devices: list[str] = field(default_factory=list)

    def add(self, scored: ScoredRound, table: pa.Table) -> None:
        """Add the counts of a round, whose alignments are also given as a table."""
        is_aligned = scored.rows.alignments.score != NO_ALIGNMENT
        identity = table["identity"].to_numpy()[is_aligned].astype(np.float32)
        np.maximum.at(self.best_identity, scored.rows.read_of[is_aligned], identity)
        self.n_rows += len(table)
        self.n_aligned += int(is_aligned.sum())
        self.cells += scored.cells
        self.devices += [device for device in scored.devices if device not in self.devices]


RoundScorer = Callable[[int, int], ScoredRound]
"""Function that scores a round, given the range (first, end) of its pairs or reads."""


def better_strands(forward: Alignments, reverse: Alignments) -> tuple[Alignments, NDArray[np.bool_]]:
    """Return the better of two alignments of each read, and True if it is on the reverse strand; forward if the scores are equal."""
    is_reverse = reverse.score > forward.score
    chosen = [
        np.where(is_reverse[:, None] if values.ndim == 2 else is_reverse, other, values)
        for values, other in zip(forward, reverse, strict=True)
    ]
    return Alignments(*chosen), is_reverse


def alignment_rows(references: NamedSequences, reads: NamedSequences, rows: AlignmentRows) -> pa.Table:
    """Return the rows of the table ``alignments``.

    Parameters
    ----------
    references, reads : NamedSequences
        References and reads.
    rows : AlignmentRows
        Alignments.
    """
    reference_of, read_of, result, is_reverse, cigars, mapping_quality, is_proper_pair = rows
    is_missing, has_text = result.score == NO_ALIGNMENT, reference_of >= 0
    text_length, pattern_length = references.lengths[reference_of], reads.lengths_of(read_of)
    start, end = result.pattern_start.astype(np.int64), result.pattern_end.astype(np.int64)
    # Positions in the given read where its reverse complement is aligned.
    given_start, given_end = np.where(is_reverse, pattern_length - end, start), np.where(is_reverse, pattern_length - start, end)
    signs = Texts.from_strings(["+", "-"]).take(is_reverse.astype(np.int64))
    numbers = {
        "score": result.score,
        "gaps": result.gaps,
        "identity": cigars.same / np.maximum(1, cigars.columns),
        "text_start": result.text_start + 1,
        "text_end": result.text_end,
        "pattern_start": given_start + 1,
        "pattern_end": given_end,
    }
    schema = ALIGNMENTS.schema()
    columns_of_place = {name: pa.array(values, schema.field(name).type, mask=is_missing) for name, values in numbers.items()}
    empty = pa.scalar(None, pa.string())
    written = {"strand": signs, "cigar": Texts(cigars.cigars, cigars.cigar_offsets), "md": Texts(cigars.mds, cigars.md_offsets)}
    for name, column in written.items():
        columns_of_place[name] = pa.compute.if_else(pa.array(is_missing), empty, column.arrow())
    names = references.names.take(np.maximum(0, reference_of)).arrow()
    columns_of_place["text"] = names if has_text.all() else pa.compute.if_else(pa.array(has_text), names, empty)
    columns_of_place["pattern"] = reads.names.take(read_of).arrow()
    columns_of_place["text_length"] = pa.array(text_length, pa.int32(), mask=~has_text)
    columns_of_place["pattern_length"] = pa.array(pattern_length, pa.int32())
    nothing = pa.nulls(len(reference_of), pa.int32())
    columns_of_place["mapping_quality"] = nothing if mapping_quality is None else pa.array(mapping_quality, pa.int32())
    columns_of_place["mate"] = pa.array(reads.mates(read_of), pa.int32()) if reads.are_mates else nothing
    columns_of_place["pattern_row"], columns_of_place["text_row"] = pa.array(read_of), pa.array(reference_of, mask=~has_text)
    columns_of_place["is_proper_pair"] = pa.nulls(len(reference_of), pa.bool_()) if is_proper_pair is None else pa.array(is_proper_pair)
    return ALIGNMENTS.arrow(columns_of_place)


def write_sequences(run: Run, references: NamedSequences, reads: NamedSequences) -> None:
    """Write the tables ``texts`` (references) and ``patterns`` (reads), to which the rows of alignments refer."""
    run.write_table("texts", TEXTS.arrow({"text": references.names.arrow(), "length": references.lengths}))
    offsets, begin = reads.sequences.offsets, 0
    with run.table_writer("patterns", PATTERNS.schema()) as writer:
        while begin < len(reads):
            end = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + _BASES, side="right")) - 1)
            for first in range(begin, end, ROW_GROUP):
                writer.write(_read_table(reads, first, min(end, first + ROW_GROUP)))
            begin = end


def _read_table(reads: NamedSequences, first: int, last: int) -> pa.Table:
    """Return the rows `first:last` of the table ``patterns``."""
    codes, offsets = reads.sequences
    positions = offsets[first : last + 1]
    symbols = Texts(ALPHABET[codes[positions[0] : positions[-1]]], positions - positions[0])
    no_qualities = Texts(np.empty(0, np.uint8), np.zeros(last - first + 1, np.int64))
    qualities = no_qualities if reads.qualities is None else Texts(reads.qualities, positions)
    mates = pa.array(reads.mates(np.arange(first, last)), pa.int32()) if reads.are_mates else pa.nulls(last - first, pa.int32())
    columns = [reads.names[first:last].arrow(), symbols.arrow(), qualities.arrow(), mates]
    reads.release()
    return pa.table(columns, schema=PATTERNS.schema())


def write_alignments(
    out: Path, tables: Iterable[pa.Table], progress: Progress, *, spreadsheet_safe: bool = False, threads: int = 1
) -> None:
    """Write rows as ``alignments.tsv``; pairs without an alignment have the score ``-inf`` and no positions.

    Parameters
    ----------
    out : Path
        File to write.
    tables : iterable of Table
        Rows, in the order of the file.
    progress : Progress
        Progress of the run.
    spreadsheet_safe : bool
        True to protect cells that spreadsheets would interpret as formulas.
    threads : int
        Number of threads that format the rows.

    Raises
    ------
    StorageError
        If the file cannot be written.
    Cancelled
        If the user cancels.
    """
    columns = ALIGNMENTS.saved_columns
    write_separated(out, tables, columns, progress, ROUNDED, spreadsheet_safe=spreadsheet_safe, threads=threads)
