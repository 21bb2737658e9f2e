"""Alignments of hits, computed by trace-back on the CPU in memory that grows linearly with the sequence lengths.

The alignment matrix is computed row by row of the query. If it fits into memory, the origin of each cell is stored, and many such pairs are
aligned in one call. For a larger matrix, some rows are stored, and the rows between them are recomputed when the trace reaches them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, read_only, segment_offsets
from proteoscope.engine.execution.resources import run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences.matrices import SYMBOLS
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.device import StopFlag, equal_partitions, stop_flag

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.rows import RowArrays
    from proteoscope.kernels.cpu.traceback import Traces

__all__ = ["CELLS_OF_A_TASK", "AlignedPairs", "Alignment", "Pairs", "align_pair", "align_pairs", "bounded_scores"]

CELLS_OF_A_TASK = 100_000_000
"""Maximum number of matrix cells of a task with several pairs, about a hundredth of a second."""
_STORED_CELLS = 16 << 20
_CELLS_BETWEEN_CHECKS = 50_000_000  # about a fifth of a second
_PAIR, _SUBJECT_ONLY, _QUERY_ONLY = 1, 2, 3
_CIGAR = {_PAIR: "M", _SUBJECT_ONLY: "D", _QUERY_ONLY: "I"}
_WITH_GAPS = np.frombuffer(f"{SYMBOLS}-".encode(), np.uint8)  # the code -1 of a gap selects the last symbol
_POSITIVE, _APART, _GAP = np.uint8(ord("+")), np.uint8(ord(" ")), np.uint8(ord("-"))


@dataclass(frozen=True)
class Alignment:
    """Local alignment of a query and a subject.

    Attributes
    ----------
    score : int
        Score of the alignment.
    query_start, subject_start : int
        Indices of the first aligned residues, from 0.
    query, subject : ndarray of int8, shape (c,)
        Residue code in each of the c columns, -1 for a gap.
    is_positive : ndarray of bool, shape (c,)
        True for residue pairs with a positive score.
    """

    score: int
    query_start: int
    subject_start: int
    query: NDArray[np.int8]
    subject: NDArray[np.int8]
    is_positive: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.query)

    @property
    def query_end(self) -> int:
        """End index of the aligned query residues (exclusive)."""
        return self.query_start + int((self.query >= 0).sum())

    @property
    def subject_end(self) -> int:
        """End index of the aligned subject residues (exclusive)."""
        return self.subject_start + int((self.subject >= 0).sum())

    @property
    def identities(self) -> int:
        """Number of columns with two identical residues."""
        return int(((self.query == self.subject) & (self.query >= 0)).sum())

    @property
    def mismatches(self) -> int:
        """Number of columns with two different residues."""
        return int(((self.query != self.subject) & (self.query >= 0) & (self.subject >= 0)).sum())

    @property
    def positives(self) -> int:
        """Number of columns with two residues whose score is positive."""
        return int(self.is_positive.sum())

    @cached_property
    def runs(self) -> tuple[tuple[int, str], ...]:
        """CIGAR as (number of columns, operation): M two residues, I residue of the query only, D residue of the subject only."""
        if not len(self):
            return ()
        steps = np.where(self.subject < 0, _QUERY_ONLY, np.where(self.query < 0, _SUBJECT_ONLY, _PAIR))
        cuts = np.concatenate(([0], np.flatnonzero(np.diff(steps)) + 1, [len(steps)]))
        return tuple((stop - start, _CIGAR[int(steps[start])]) for start, stop in pairwise(cuts.tolist()))

    @property
    def gap_openings(self) -> int:
        """Number of gaps."""
        return sum(operation != "M" for _, operation in self.runs)

    @property
    def cigar(self) -> str:
        """CIGAR, such as ``57M2D14M``."""
        return "".join(f"{length}{operation}" for length, operation in self.runs)

    def lines(self) -> tuple[str, str, str]:
        """Return the lines of the alignment: query, matches (the residue, or ``+`` for a positive pair) and subject."""
        query, subject = _WITH_GAPS[self.query], _WITH_GAPS[self.subject]
        middle = np.where(self.query == self.subject, query, np.where(self.is_positive, _POSITIVE, _APART))
        return query.tobytes().decode("ascii"), middle.tobytes().decode("ascii"), subject.tobytes().decode("ascii")


def align_pair(
    query: NDArray[np.int8],
    subject: NDArray[np.int8],
    scheme: ScoringScheme,
    progress: Progress,
    *,
    score: int = -1,
    stored_cells: int = _STORED_CELLS,
) -> Alignment:
    """Return an alignment of two sequences with the best score.

    Of several alignments with the best score, the one that ends first in the query, then first in the subject, is returned.

    Parameters
    ----------
    query, subject : ndarray of int8, shape (m,) and (n,)
        Residue codes.
    scheme : ScoringScheme
        Matrix and gap costs.
    progress : Progress
        Progress, which is checked for cancellation.
    score : int
        Best score if known, which avoids computing rows after the end of the alignment; otherwise -1.
    stored_cells : int
        Maximum number of matrix cells in memory, in addition to about the square root of m times n.

    Returns
    -------
    Alignment
        Best alignment; without columns if no score is positive.
    """
    best_score, query_start, subject_start, steps = _traced(query, subject, scheme, progress, score, stored_cells)
    forward = steps[::-1]
    query_columns, subject_columns = forward != _SUBJECT_ONLY, forward != _QUERY_ONLY
    columns = np.full((2, len(forward)), -1, np.int8)
    columns[0, query_columns] = query[query_start : query_start + int(query_columns.sum())]
    columns[1, subject_columns] = subject[subject_start : subject_start + int(subject_columns.sum())]
    is_pair = query_columns & subject_columns
    is_positive = is_pair & (scheme.matrix.scores[np.maximum(columns[0], 0), np.maximum(columns[1], 0)] > 0)
    return Alignment(best_score, query_start, subject_start, columns[0], columns[1], is_positive)


def _traced(
    query: NDArray[np.int8], subject: NDArray[np.int8], scheme: ScoringScheme, progress: Progress, score: int, stored_cells: int
) -> tuple[int, int, int, NDArray[np.uint8]]:
    """Return the score, the start index in the query and in the subject, and the type of each column, last column first.

    The parameters are those of `align_pair`.
    """
    m, n = len(query), len(subject)
    rows = max(1, min(m, max(stored_cells // max(n, 1), int(np.sqrt(m)))))
    fits = rows >= m
    opening, extending = scheme.first_residue_cost, scheme.gap_extend
    reach = score if score >= 0 else max(0, scheme.matrix.greatest) * min(m, n)
    bits = 16 if reach <= _maximum_of_16_bits(scheme) else 32
    arrays = _row_arrays(scheme, subject, bits)
    h_rows, f_row = arrays.h_rows, arrays.f_row
    width = len(f_row)
    codes, best = query.astype(np.int64), np.array([0, -1, -1], np.int64)
    step = max(1, _CELLS_BETWEEN_CHECKS // max(n, 1))
    directions = np.empty((rows, width), np.uint8)
    stored_rows: dict[int, tuple[NDArray[np.integer], NDArray[np.integer]]] = {}

    def compute(first: int, last: int, stores_directions: bool) -> None:
        for start in range(first, last, step):
            progress.check()
            stop = min(last, start + step)
            part = directions[start - first : stop - first]
            kernels.cpu.rows.score_rows(codes, arrays, opening, extending, start, stop, best, score, part, stores_directions)

    for first in range(0, m, rows):
        if not fits:
            stored_rows[first] = (h_rows[first % 2].copy(), f_row.copy())
        compute(first, min(m, first + rows), fits)
    best_score, end_row, end_column = best.tolist()
    position = np.array([end_row, end_column, 0, 0], np.int64)
    steps = np.zeros(m + n, np.uint8)
    if best_score > 0:
        first = end_row // rows * rows
        while True:
            if not fits:
                h_rows[first % 2], f_row[:] = stored_rows[first]
                compute(first, min(end_row + 1, first + rows), True)
            if kernels.cpu.rows.trace_back(directions, first, position, steps) or first == 0:
                break
            first -= rows
    return best_score, int(position[0]) + 1, int(position[1]) + 1, steps[: position[3]]


def _row_arrays(scheme: ScoringScheme, subject: NDArray[np.int8], bits: int) -> RowArrays:
    """Return the arguments of the row kernels for a subject (see `proteoscope.kernels.cpu.rows.row_arrays`)."""
    return kernels.cpu.rows.row_arrays(_substitution(scheme), subject, bits)


def _substitution(scheme: ScoringScheme) -> kernels.cpu.substitution.Substitution:
    """Return a scoring scheme as an argument of the CPU kernels."""
    return kernels.cpu.substitution.Substitution(scheme.matrix.scores, scheme.gap_open, scheme.gap_extend)


def _maximum_of_16_bits(scheme: ScoringScheme) -> int:
    """Return the maximum score of pairs that can be aligned with 16-bit integers, or -1 if the substitution scores do not fit 16 bits."""
    greatest = np.iinfo(np.int16).max
    return int(greatest) - 1 - scheme.first_residue_cost if -int(scheme.matrix.scores.min()) < greatest else -1


@dataclass(frozen=True)
class AlignedPairs:
    """Local alignments of n pairs of sequences, as columns.

    Attributes
    ----------
    query_start, subject_start : ndarray of int64, shape (n,)
        Indices of the first aligned residues, from 0.
    query_end, subject_end : ndarray of int64, shape (n,)
        End indices (exclusive).
    identities, mismatches, positives, gap_openings : ndarray of int64, shape (n,)
        Counts of the columns of each alignment, as in `Alignment`.
    cigars : Texts
        CIGARs, such as ``57M2D14M``.
    query, middle, subject : Texts
        Lines of each alignment, as in `Alignment.lines`.
    """

    query_start: NDArray[np.int64]
    subject_start: NDArray[np.int64]
    query_end: NDArray[np.int64]
    subject_end: NDArray[np.int64]
    identities: NDArray[np.int64]
    mismatches: NDArray[np.int64]
    positives: NDArray[np.int64]
    gap_openings: NDArray[np.int64]
    cigars: Texts
    query: Texts
    middle: Texts
    subject: Texts


@dataclass(frozen=True)
class Pairs:
    """Pairs (n) of sequences to align.

    Attributes
    ----------
    queries, subjects : ndarray of int8
        Residue codes of all queries and of all subjects.
    query_places, subject_places : ndarray of int64, shape (n, 2)
        Start and end index of the sequences of each pair in `queries` and `subjects`.
    scores : ndarray of int64, shape (n,)
        Best score of each pair.
    """

    queries: NDArray[np.int8]
    query_places: NDArray[np.int64]
    subjects: NDArray[np.int8]
    subject_places: NDArray[np.int64]
    scores: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number of residues of the query and of the subject of each pair, each of shape (n,)."""
        return self.query_places[:, 1] - self.query_places[:, 0], self.subject_places[:, 1] - self.subject_places[:, 0]

    def with_places(self, query_places: NDArray[np.int64], subject_places: NDArray[np.int64]) -> Pairs:
        """Return the same pairs with other ranges of their sequences.

        Parameters
        ----------
        query_places, subject_places : ndarray of int64, shape (n, 2)
            Start and end index in `queries` and `subjects`.
        """
        return Pairs(self.queries, query_places, self.subjects, subject_places, self.scores)

    def part(self, first: int, last: int) -> Pairs:
        """Return the pairs with the indices `first` to `last` (exclusive)."""
        rows = slice(first, last)
        return Pairs(self.queries, self.query_places[rows], self.subjects, self.subject_places[rows], self.scores[rows])


def align_pairs(
    pairs: Pairs, scheme: ScoringScheme, threads: int, progress: Progress, *, stored_cells: int = _STORED_CELLS
) -> AlignedPairs:
    """Return the alignments of many pairs, as defined by `align_pair`, computed in several threads.

    Parameters
    ----------
    pairs : Pairs
        Pairs with their best scores.
    scheme : ScoringScheme
        Matrix and gap costs.
    threads : int
        Number of threads.
    progress : Progress
        Progress, which advances by one step per pair, and is checked for cancellation.
    stored_cells : int
        Maximum number of matrix cells of a pair that is aligned in a batch; larger pairs are aligned one by one, as in `align_pair`.

    Returns
    -------
    AlignedPairs
        Alignments in the order of the pairs.
    """
    query_lengths, subject_lengths = pairs.lengths
    tasks, stop = equal_partitions(query_lengths * subject_lengths, threads, maximum_cost=CELLS_OF_A_TASK), stop_flag()

    def work(task: int) -> tuple[NDArray[Any], ...]:
        whole = pairs.part(tasks[task].first, tasks[task].last)
        narrow = _narrowed(whole, scheme, stop)
        progress.check()  # ranges are incomplete if the stop flag was set
        result, *drawn = _drawn(narrow, scheme, progress, stored_cells)
        result[:, 1] += (narrow.query_places - whole.query_places)[:, 0]
        result[:, 2] += (narrow.subject_places - whole.subject_places)[:, 0]
        return result, *drawn

    drawn = run_on_threads(work, range(len(tasks)), threads, progress, steps=lambda task: tasks[task].last - tasks[task].first, stop=stop)
    drawn = drawn or [_drawn(pairs, scheme, progress, stored_cells)]  # without pairs
    by_place = sorted(range(len(tasks)), key=lambda task: tasks[task].first) or [0]
    result, counts, cigars = (np.concatenate([drawn[task][part] for task in by_place]) for part in range(3))
    lines = np.concatenate([drawn[task][3] for task in by_place], axis=1)
    return _columns(result, counts, cigars, lines)


def _columns(alignments: NDArray[np.int64], counts: NDArray[np.int64], cigars: NDArray[np.uint8], lines: NDArray[np.uint8]) -> AlignedPairs:
    offsets = segment_offsets(alignments[:, 0])
    # The number of residues of a line is the number of its columns that are not gaps.
    query_residues, subject_residues = (np.diff(np.concatenate(([0], np.cumsum(line != _GAP)))[offsets]) for line in lines[[0, 2]])
    identities, mismatches, positives, openings, cigar_bytes = counts.T
    return AlignedPairs(
        alignments[:, 1],
        alignments[:, 2],
        alignments[:, 1] + query_residues,
        alignments[:, 2] + subject_residues,
        identities,
        mismatches,
        positives,
        openings,
        Texts(cigars, segment_offsets(cigar_bytes)),
        *(Texts(line, offsets) for line in lines),
    )


def bounded_scores(pairs: Pairs, scheme: ScoringScheme, stop: StopFlag) -> NDArray[np.int64]:
    """Return the best score of each pair, but at most its score in `pairs`, of shape (n,).

    Parameters
    ----------
    pairs : Pairs
        Pairs with the upper limit of each score.
    scheme : ScoringScheme
        Matrix and gap costs.
    stop : ndarray of uint8, shape (1,)
        Stop flag; if it is set, the call ends early.
    """
    return kernels.cpu.striped.limited_scores(_substitution(scheme), _sequences(pairs), pairs.scores, stop)


def _narrowed(pairs: Pairs, scheme: ScoringScheme, stop: StopFlag) -> Pairs:
    """Return the pairs with sequences cut to the range of the best alignment.

    `align_pair` returns the same result for the cut pairs, since they contain all alignments with the best score and the first end.
    """
    result, costs = pairs.with_places(pairs.query_places.copy(), pairs.subject_places.copy()), _substitution(scheme)
    rest, subject_lengths = pairs.scores > 0, pairs.lengths[1]
    for bits in costs.widths():
        chosen = np.flatnonzero(rest & (pairs.scores < costs.most(bits)))  # anchored alignments need one more than their score
        rest[chosen] = False
        if len(chosen):
            workspace = kernels.cpu.striped.striped_workspace(len(costs.scores), int(subject_lengths[chosen].max()), bits)
            kernels.cpu.striped.find_ranges(
                chosen,
                _sequences(pairs),
                pairs.scores,
                costs.table(bits),
                costs.first_residue_cost,
                costs.next_residue_cost,
                workspace,
                stop,
                result.query_places,
                result.subject_places,
            )
    return result


def _drawn(pairs: Pairs, scheme: ScoringScheme, progress: Progress, stored_cells: int) -> tuple[NDArray[Any], ...]:
    """Align pairs, and return the start indices, counts, CIGARs and lines of the alignments (see `kernels.cpu.traceback.draw_pairs`)."""
    query_lengths, subject_lengths = pairs.lengths
    offsets = segment_offsets(query_lengths + subject_lengths)
    steps, result = np.empty(offsets[-1], np.uint8), np.zeros((len(pairs), 3), np.int64)
    traces = kernels.cpu.traceback.Traces(steps, offsets, result)
    is_single = query_lengths * subject_lengths > stored_cells
    is_narrow = pairs.scores <= _maximum_of_16_bits(scheme)
    for bits, is_selected in ((16, is_narrow & ~is_single), (32, ~is_narrow & ~is_single)):
        if is_selected.any():
            _trace(pairs, np.flatnonzero(is_selected), scheme, bits, traces)
    for k in np.flatnonzero(is_single).tolist():
        query, subject = pairs.queries[slice(*pairs.query_places[k])], pairs.subjects[slice(*pairs.subject_places[k])]
        _, query_start, subject_start, single_steps = _traced(query, subject, scheme, progress, int(pairs.scores[k]), stored_cells)
        result[k] = len(single_steps), query_start, subject_start
        steps[offsets[k] : offsets[k] + len(single_steps)] = single_steps
    columns = int(result[:, 0].sum())
    lines, cigars, counts = (
        np.empty((3, columns), np.uint8),
        np.empty(2 * columns, np.uint8),
        np.empty((len(pairs), kernels.cpu.traceback.N_COUNTS), np.int64),
    )
    kernels.cpu.traceback.draw_pairs(traces, _sequences(pairs), scheme.matrix.scores, _WITH_GAPS, lines, cigars, counts)
    return result, counts, cigars[: counts[:, kernels.cpu.traceback.CIGAR_BYTES].sum()].copy(), lines


def _sequences(pairs: Pairs) -> kernels.cpu.traceback.PairedSequences:
    """Return the sequences of pairs as an argument of kernels."""
    return kernels.cpu.traceback.PairedSequences(
        read_only(pairs.queries), pairs.query_places, read_only(pairs.subjects), pairs.subject_places
    )


def _trace(pairs: Pairs, chosen: NDArray[np.int64], scheme: ScoringScheme, bits: int, traces: Traces) -> None:
    """Align the pairs `chosen` with integers of `bits` bits, and write the steps of the alignments to `traces`."""
    query_lengths, subject_lengths = (lengths[chosen] for lengths in pairs.lengths)
    longest = int(subject_lengths.argmax())
    longest_subject = pairs.subjects[slice(*pairs.subject_places[chosen[longest]])]
    workspace = _row_arrays(scheme, longest_subject, bits)
    workspace = workspace._replace(h_rows=workspace.h_rows.reshape(-1))
    widths = -(-subject_lengths // len(workspace.decay)) * len(workspace.decay)
    kernels.cpu.traceback.trace_pairs(
        chosen,
        _sequences(pairs),
        pairs.scores,
        scheme.matrix.scores,
        scheme.first_residue_cost,
        scheme.gap_extend,
        workspace,
        np.empty(int((query_lengths * widths).max()), np.uint8),
        traces,
    )
