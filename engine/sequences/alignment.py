"""The alignments of hits: trace-back on the processor, in memory that grows with the length and not with its square.

The matrix is computed by rows of the query. A matrix that fits keeps where each of its cells came from: such pairs are aligned many in a
call. A larger one keeps a row in every so many, and computes the rows in between again when the trace comes to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.arrays import Texts, offsets_of
from engine.execution.threads import run_on_threads
from engine.jobs.progress import Progress
from engine.sequences.matrices import LETTERS
from engine.sequences.scheme import ScoringScheme
from kernels.partitions import equal_partitions

__all__ = ["AlignedPairs", "Alignment", "Pairs", "align_pair", "align_pairs"]

_CELLS_KEPT = 16 << 20
_CELLS_OF_A_TASK = 100_000_000
_CELLS_BETWEEN_LOOKS = 50_000_000  # about a fifth of a second
_PAIR, _SUBJECT_ALONE, _QUERY_ALONE = 1, 2, 3
_CIGAR = {_PAIR: "M", _SUBJECT_ALONE: "D", _QUERY_ALONE: "I"}
_WITH_GAPS = np.frombuffer(f"{LETTERS}-".encode(), np.uint8)  # a gap's -1 is the last
_POSITIVE, _APART, _GAP = np.uint8(ord("+")), np.uint8(ord(" ")), np.uint8(ord("-"))


@dataclass(frozen=True)
class Alignment:
    """A local alignment of best score.

    Attributes
    ----------
    score : of the alignment. query_start, subject_start : of its first residues, from 0.
    query, subject : (c,) int8, residue codes in each column, -1 for a gap.
    is_positive : (c,) bool, residues that the matrix scores above zero.
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
        """Behind the last residue of the query."""
        return self.query_start + int((self.query >= 0).sum())

    @property
    def subject_end(self) -> int:
        """Behind the last residue of the subject."""
        return self.subject_start + int((self.subject >= 0).sum())

    @property
    def identities(self) -> int:
        """Columns with the same residue twice."""
        return int(((self.query == self.subject) & (self.query >= 0)).sum())

    @property
    def mismatches(self) -> int:
        """Columns with two different residues."""
        return int(((self.query != self.subject) & (self.query >= 0) & (self.subject >= 0)).sum())

    @property
    def positives(self) -> int:
        """Columns that the matrix scores above zero."""
        return int(self.is_positive.sum())

    @cached_property
    def runs(self) -> tuple[tuple[int, str], ...]:
        """Lengths and letters of the CIGAR: M two residues, I the query's alone, D the subject's alone."""
        if not len(self):
            return ()
        steps = np.where(self.subject < 0, _QUERY_ALONE, np.where(self.query < 0, _SUBJECT_ALONE, _PAIR))
        cuts = np.concatenate(([0], np.flatnonzero(np.diff(steps)) + 1, [len(steps)]))
        return tuple((stop - start, _CIGAR[int(steps[start])]) for start, stop in pairwise(cuts.tolist()))

    @property
    def gap_openings(self) -> int:
        """Runs of gaps."""
        return sum(letter != "M" for _, letter in self.runs)

    @property
    def cigar(self) -> str:
        """As ``57M2D14M``."""
        return "".join(f"{length}{letter}" for length, letter in self.runs)

    def lines(self) -> tuple[str, str, str]:
        """The three lines of the alignment: query, what they share (the letter, ``+`` for a positive pair), subject."""
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
    cells_kept: int = _CELLS_KEPT,
) -> Alignment:
    """An alignment of best score of two sequences; among several, the one that ends first in the query, then in the subject.

    Parameters
    ----------
    query, subject : (m,) and (n,) int8 residue codes. score : the best score where it is known, which spares the rows behind the alignment.
    cells_kept : of the matrix, at most so many are in memory at a time, besides
        about the square root of m times n.
    """
    found, query_start, subject_start, steps = _traced(query, subject, scheme, progress, score, cells_kept)
    forward = steps[::-1]
    query_columns, subject_columns = forward != _SUBJECT_ALONE, forward != _QUERY_ALONE
    columns = np.full((2, len(forward)), -1, np.int8)
    columns[0, query_columns] = query[query_start : query_start + int(query_columns.sum())]
    columns[1, subject_columns] = subject[subject_start : subject_start + int(subject_columns.sum())]
    is_pair = query_columns & subject_columns
    is_positive = is_pair & (scheme.matrix.scores[np.maximum(columns[0], 0), np.maximum(columns[1], 0)] > 0)
    return Alignment(found, query_start, subject_start, columns[0], columns[1], is_positive)


def _traced(
    query: NDArray[np.int8], subject: NDArray[np.int8], scheme: ScoringScheme, progress: Progress, score: int, cells_kept: int
) -> tuple[int, int, int, NDArray[np.uint8]]:
    """Score of the alignment that `align_pair` finds, the first residues of query and subject, and its steps, the last first."""
    from kernels.cpu.rows import score_rows, trace_back

    m, n = len(query), len(subject)
    rows = max(1, min(m, max(cells_kept // max(n, 1), int(np.sqrt(m)))))
    keeps = rows >= m
    opening, extending = scheme.first_residue_cost, scheme.gap_extend
    reach = score if score >= 0 else max(0, scheme.matrix.greatest) * min(m, n)
    bits = 16 if reach <= _most_of_16_bits(scheme) else 32
    profile, decay, h_rows, f_row = _row_arrays(scheme, subject, bits)
    width = len(f_row)
    codes, best = query.astype(np.int64), np.array([0, -1, -1], np.int64)
    step = max(1, _CELLS_BETWEEN_LOOKS // max(n, 1))
    directions = np.empty((rows, width), np.uint8)
    kept: dict[int, tuple[NDArray, NDArray]] = {}

    def compute(first: int, last: int, keeps_directions: bool) -> None:
        for start in range(first, last, step):
            progress.check()
            stop = min(last, start + step)
            part = directions[start - first : stop - first]
            score_rows(codes, profile, opening, extending, decay, start, stop, h_rows, f_row, best, score, part, keeps_directions)

    for first in range(0, m, rows):
        if not keeps:
            kept[first] = (h_rows[first % 2].copy(), f_row.copy())
        compute(first, min(m, first + rows), keeps)
    found, end_row, end_column = best.tolist()
    place = np.array([end_row, end_column, 0, 0], np.int64)
    steps = np.zeros(m + n, np.uint8)
    if found > 0:
        first = end_row // rows * rows
        while True:
            if not keeps:
                h_rows[first % 2], f_row[:] = kept[first]
                compute(first, min(end_row + 1, first + rows), True)
            if trace_back(directions, first, place, steps) or first == 0:
                break
            first -= rows
    return found, int(place[0]) + 1, int(place[1]) + 1, steps[: place[3]]


def _row_arrays(scheme: ScoringScheme, subject: NDArray[np.int8], bits: int) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """What the kernels by rows take of a subject, see `kernels.cpu.rows.row_arrays`."""
    from kernels.cpu.rows import row_arrays
    from kernels.cpu.substitution import Substitution

    return row_arrays(Substitution(scheme.matrix.scores, scheme.gap_open, scheme.gap_extend), subject, bits)


def _most_of_16_bits(scheme: ScoringScheme) -> int:
    """The largest score of a pair whose matrix 16 bits hold; -1 where they do not hold the scheme."""
    greatest = np.iinfo(np.int16).max
    return int(greatest) - 1 - scheme.first_residue_cost if -int(scheme.matrix.scores.min()) < greatest else -1


@dataclass(frozen=True)
class AlignedPairs:
    """n local alignments as columns.

    Attributes
    ----------
    query_start, subject_start, query_end, subject_end : (n,) int64, of the first residues, from 0, and behind the last.
    identities, mismatches, positives, gap_openings : (n,) int64, as those of an `Alignment`.
    cigars : as ``57M2D14M``. query, middle, subject : the three lines of each.
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
    """n pairs to align: of sequences in one array each, where each pair's begin and end, (n, 2) int64, and the best scores, (n,) int64."""

    queries: NDArray[np.int8]
    query_places: NDArray[np.int64]
    subjects: NDArray[np.int8]
    subject_places: NDArray[np.int64]
    scores: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def lengths(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Residues of the queries and of the subjects."""
        return self.query_places[:, 1] - self.query_places[:, 0], self.subject_places[:, 1] - self.subject_places[:, 0]

    def part(self, first: int, last: int) -> Pairs:
        """Some that follow one another."""
        some = slice(first, last)
        return Pairs(self.queries, self.query_places[some], self.subjects, self.subject_places[some], self.scores[some])


def align_pairs(pairs: Pairs, scheme: ScoringScheme, threads: int, progress: Progress, *, cells_kept: int = _CELLS_KEPT) -> AlignedPairs:
    """The alignments that `align_pair` finds, on all threads; `progress` advances by each.

    Parameters
    ----------
    cells_kept : a pair with a larger matrix is aligned by itself, as `align_pair` does.
    """
    query_lengths, subject_lengths = pairs.lengths
    tasks = equal_partitions(query_lengths * subject_lengths, threads, most_cost=_CELLS_OF_A_TASK)

    def work(task: int) -> tuple[NDArray, ...]:
        return _drawn(pairs.part(tasks[task].first, tasks[task].last), scheme, progress, cells_kept)

    made = run_on_threads(work, range(len(tasks)), threads, progress, steps=lambda task: tasks[task].last - tasks[task].first)
    made = made or [_drawn(pairs, scheme, progress, cells_kept)]  # where there are no pairs
    by_place = sorted(range(len(tasks)), key=lambda task: tasks[task].first) or [0]
    found, counts, cigars = (np.concatenate([made[task][part] for task in by_place]) for part in range(3))
    lines = np.concatenate([made[task][3] for task in by_place], axis=1)
    return _columns(found, counts, cigars, lines)


def _columns(found: NDArray[np.int64], counts: NDArray[np.int64], cigars: NDArray[np.uint8], lines: NDArray[np.uint8]) -> AlignedPairs:
    offsets = offsets_of(found[:, 0])
    # The gaps of a line are what its residues leave of the columns.
    query_residues, subject_residues = (np.diff(np.concatenate(([0], np.cumsum(line != _GAP)))[offsets]) for line in lines[[0, 2]])
    identities, mismatches, positives, openings, cigar_bytes = counts.T
    return AlignedPairs(
        found[:, 1], found[:, 2], found[:, 1] + query_residues, found[:, 2] + subject_residues,
        identities, mismatches, positives, openings, Texts(cigars, offsets_of(cigar_bytes)), *(Texts(line, offsets) for line in lines),
    )  # fmt: skip


def _drawn(pairs: Pairs, scheme: ScoringScheme, progress: Progress, cells_kept: int) -> tuple[NDArray, ...]:
    """Alignments of some pairs: `found`, `counts`, `cigars` and `lines` of `kernels.cpu.traceback.draw_pairs`."""
    from kernels.cpu.traceback import CIGAR_BYTES, N_COUNTS, draw_pairs

    query_lengths, subject_lengths = pairs.lengths
    offsets = offsets_of(query_lengths + subject_lengths)
    steps, found = np.empty(offsets[-1], np.uint8), np.zeros((len(pairs), 3), np.int64)
    is_alone = query_lengths * subject_lengths > cells_kept
    is_narrow = pairs.scores <= _most_of_16_bits(scheme)
    for bits, is_meant in ((16, is_narrow & ~is_alone), (32, ~is_narrow & ~is_alone)):
        if is_meant.any():
            _trace(pairs, np.flatnonzero(is_meant), scheme, bits, steps, offsets, found)
    for k in np.flatnonzero(is_alone).tolist():
        query, subject = pairs.queries[slice(*pairs.query_places[k])], pairs.subjects[slice(*pairs.subject_places[k])]
        _, query_start, subject_start, own = _traced(query, subject, scheme, progress, int(pairs.scores[k]), cells_kept)
        found[k] = len(own), query_start, subject_start
        steps[offsets[k] : offsets[k] + len(own)] = own
    columns = int(found[:, 0].sum())
    lines, cigars, counts = np.empty((3, columns), np.uint8), np.empty(2 * columns, np.uint8), np.empty((len(pairs), N_COUNTS), np.int64)
    draw_pairs(
        steps, offsets, found, pairs.queries, pairs.query_places, pairs.subjects, pairs.subject_places, scheme.matrix.scores,
        _WITH_GAPS, lines, cigars, counts,
    )  # fmt: skip
    return found, counts, cigars[: counts[:, CIGAR_BYTES].sum()].copy(), lines


def _trace(
    pairs: Pairs, chosen: NDArray[np.int64], scheme: ScoringScheme, bits: int,
    steps: NDArray[np.uint8], offsets: NDArray[np.int64], found: NDArray[np.int64],
) -> None:  # fmt: skip
    """Align chosen pairs, with numbers of so many bits; fills `steps` and `found`."""
    from kernels.cpu.traceback import trace_pairs

    query_lengths, subject_lengths = (lengths[chosen] for lengths in pairs.lengths)
    longest = int(subject_lengths.argmax())
    longest_subject = pairs.subjects[slice(*pairs.subject_places[chosen[longest]])]
    profiles, decay, h_rows, f_rows = _row_arrays(scheme, longest_subject, bits)
    widths = -(-subject_lengths // len(decay)) * len(decay)
    trace_pairs(
        chosen, pairs.queries, pairs.query_places, pairs.subjects, pairs.subject_places, pairs.scores, scheme.matrix.scores,
        scheme.first_residue_cost, scheme.gap_extend, decay, profiles, h_rows.reshape(-1), f_rows,
        np.empty(int((query_lengths * widths).max()), np.uint8), steps, offsets, found,
    )  # fmt: skip
