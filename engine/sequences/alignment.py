"""The alignments of hits: trace-back on the processor, in memory that grows with the length and not with its square.

The matrix is computed by rows of the query. A matrix that fits keeps where each of its cells came from: such pairs are aligned many in a
call. A larger one keeps a row in every so many, and computes the rows in between again when the trace comes to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import Texts, offsets_of, read_only
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.sequences.matrices import LETTERS
from proteoscope.engine.sequences.scheme import ScoringScheme
from proteoscope.kernels.partitions import equal_partitions

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.rows import RowArrays
    from proteoscope.kernels.cpu.traceback import Traces

__all__ = ["AlignedPairs", "Alignment", "Pairs", "align_pair", "align_pairs"]

_CELLS_KEPT = 16 << 20
_CELLS_OF_A_TASK = 100_000_000
_LANES_WORTH = 6  # subjects as long as the longest that are searched for their ends in the time that aligning them whole takes
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
    m, n = len(query), len(subject)
    rows = max(1, min(m, max(cells_kept // max(n, 1), int(np.sqrt(m)))))
    keeps = rows >= m
    opening, extending = scheme.first_residue_cost, scheme.gap_extend
    reach = score if score >= 0 else max(0, scheme.matrix.greatest) * min(m, n)
    bits = 16 if reach <= _most_of_16_bits(scheme) else 32
    arrays = _row_arrays(scheme, subject, bits)
    h_rows, f_row = arrays.h_rows, arrays.f_row
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
            kernels.cpu.rows.score_rows(codes, arrays, opening, extending, start, stop, best, score, part, keeps_directions)

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
            if kernels.cpu.rows.trace_back(directions, first, place, steps) or first == 0:
                break
            first -= rows
    return found, int(place[0]) + 1, int(place[1]) + 1, steps[: place[3]]


def _row_arrays(scheme: ScoringScheme, subject: NDArray[np.int8], bits: int) -> RowArrays:
    """What the kernels by rows take of a subject, see `proteoscope.kernels.cpu.rows.row_arrays`."""
    return kernels.cpu.rows.row_arrays(_substitution(scheme), subject, bits)


def _substitution(scheme: ScoringScheme) -> kernels.cpu.substitution.Substitution:
    """A scheme as the processor's kernels take it."""
    return kernels.cpu.substitution.Substitution(scheme.matrix.scores, scheme.gap_open, scheme.gap_extend)


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

    def with_places(self, query_places: NDArray[np.int64], subject_places: NDArray[np.int64]) -> Pairs:
        """The same of other parts of the sequences."""
        return Pairs(self.queries, query_places, self.subjects, subject_places, self.scores)

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
    whole, pairs = pairs, _narrowed(pairs, scheme, threads, progress)
    query_lengths, subject_lengths = pairs.lengths
    tasks = equal_partitions(query_lengths * subject_lengths, threads, maximum_cost=_CELLS_OF_A_TASK)

    def work(task: int) -> tuple[NDArray, ...]:
        return _drawn(pairs.part(tasks[task].first, tasks[task].last), scheme, progress, cells_kept)

    made = run_on_threads(work, range(len(tasks)), threads, progress, steps=lambda task: tasks[task].last - tasks[task].first)
    made = made or [_drawn(pairs, scheme, progress, cells_kept)]  # where there are no pairs
    by_place = sorted(range(len(tasks)), key=lambda task: tasks[task].first) or [0]
    found, counts, cigars = (np.concatenate([made[task][part] for task in by_place]) for part in range(3))
    lines = np.concatenate([made[task][3] for task in by_place], axis=1)
    found[:, 1] += (pairs.query_places - whole.query_places)[:, 0]
    found[:, 2] += (pairs.subject_places - whole.subject_places)[:, 0]
    return _columns(found, counts, cigars, lines)


def _columns(found: NDArray[np.int64], counts: NDArray[np.int64], cigars: NDArray[np.uint8], lines: NDArray[np.uint8]) -> AlignedPairs:
    offsets = offsets_of(found[:, 0])
    # The gaps of a line are what its residues leave of the columns.
    query_residues, subject_residues = (np.diff(np.concatenate(([0], np.cumsum(line != _GAP)))[offsets]) for line in lines[[0, 2]])
    identities, mismatches, positives, openings, cigar_bytes = counts.T
    return AlignedPairs(
        found[:, 1],
        found[:, 2],
        found[:, 1] + query_residues,
        found[:, 2] + subject_residues,
        identities,
        mismatches,
        positives,
        openings,
        Texts(cigars, offsets_of(cigar_bytes)),
        *(Texts(line, offsets) for line in lines),
    )


def _narrowed(pairs: Pairs, scheme: ScoringScheme, threads: int, progress: Progress) -> Pairs:
    """The pairs without what lies before and behind any alignment of best score, where finding it out is less work than aligning.

    What `align_pair` finds is not changed by it: no score between is greater without the rest, and those on the alignment are the same.
    """
    query_places, subject_places = pairs.query_places.copy(), pairs.subject_places.copy()

    def work(lane_group: tuple[int, NDArray[np.int64]]) -> None:
        bits, group = lane_group
        rows, columns = pairs.query_places[group], pairs.subject_places[group]
        ends = _ends(pairs, bits, group, rows[0], columns, scheme, 1)
        # Backwards from the last of the ends.
        last_rows, last_columns = rows[:, 0] + ends[:, 0] + 1, np.minimum(columns[:, 0] + ends[:, 1] + 1, columns[:, 1])
        last = int(last_rows.max())
        turned = np.stack((columns[:, 0], last_columns), axis=1)
        begins = _ends(pairs, bits, group, np.array([rows[0, 0], last]), turned, scheme, -1)
        is_found = (np.minimum(ends, begins).min(axis=1) >= 0)[:, None]
        narrow = np.stack((last - 1 - begins[:, 2], last_rows), axis=1)
        query_places[group] = np.where(is_found, narrow, rows)
        # Where gaps cost nothing, scores go on behind the end of a sequence.
        narrow = np.stack((np.maximum(last_columns - 1 - begins[:, 3], columns[:, 0]), last_columns), axis=1)
        subject_places[group] = np.where(is_found, narrow, columns)

    run_on_threads(work, _lane_groups(pairs, scheme), threads, progress, steps=lambda _: 0)
    return pairs.with_places(query_places, subject_places)


def _lane_groups(pairs: Pairs, scheme: ScoringScheme) -> list[tuple[int, NDArray[np.int64]]]:
    """Pairs of one query that are searched for their ends side by side, with so many bits; the largest first."""
    query_lengths, subject_lengths = pairs.lengths
    cells, done = query_lengths * subject_lengths, (pairs.scores < 1) | (query_lengths * subject_lengths > _CELLS_OF_A_TASK)
    found = []
    costs = _substitution(scheme)
    for bits in [bits for bits in costs.widths() if bits < 32]:
        chosen = np.flatnonzero(~done & (pairs.scores <= costs.most(bits)))
        done[chosen] = True
        # Subjects of one query side by side, those of about the same length together.
        chosen = chosen[np.lexsort((subject_lengths[chosen], pairs.query_places[chosen, 1], pairs.query_places[chosen, 0]))]
        cuts = np.flatnonzero((np.diff(pairs.query_places[chosen], axis=0) != 0).any(axis=1)) + 1
        for own in np.split(chosen, cuts):
            groups = np.split(own, np.arange(kernels.cpu.lanes.lane_count(bits), len(own), kernels.cpu.lanes.lane_count(bits)))
            lengths = [subject_lengths[group] for group in groups]
            found += [(bits, one) for one, n in zip(groups, lengths, strict=True) if n.sum() >= _LANES_WORTH * n.max(initial=1)]
    return sorted(found, key=lambda one: -int(cells[one[1]].max()))


def _taken(sequences: NDArray[np.int8], places: NDArray[np.int64], step: int) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Parts of sequences, forwards or backwards: residues and offsets."""
    lengths = places[:, 1] - places[:, 0]
    offsets = offsets_of(lengths)
    first = places[:, 0] if step > 0 else places[:, 1] - 1
    return sequences[np.repeat(first - step * offsets[:-1], lengths) + step * np.arange(offsets[-1])], offsets


def _ends(
    pairs: Pairs, bits: int, group: NDArray[np.int64], rows: NDArray[np.int64], places: NDArray[np.int64], scheme: ScoringScheme, step: int
) -> NDArray[np.int64]:
    """Ends of `proteoscope.kernels.cpu.traceback.find_ends` for pairs of one query, one in a lane; of the sequences turned round where
    `step` is -1.

    Parameters
    ----------
    rows, places : where the query and the subjects begin and end.
    """
    lanes, number, costs = kernels.cpu.lanes.lane_count(bits), np.dtype(f"int{bits}"), _substitution(scheme)
    residues, offsets = _taken(pairs.subjects, places, step)
    lengths = np.diff(offsets)
    n_blocks = -(-int(lengths.max()) // kernels.cpu.lanes.BLOCK_COLUMNS)
    columns = kernels.cpu.vectors.aligned(n_blocks * kernels.cpu.lanes.BLOCK_COLUMNS * lanes, np.int8)
    kernels.cpu.lanes.fill_columns(residues, offsets[:-1], lengths, np.arange(len(group)), np.zeros(len(group), np.int64), lanes, columns)
    letters, query = np.unique(pairs.queries[slice(*rows)][::step], return_inverse=True)
    targets = kernels.cpu.vectors.aligned(lanes, number)
    targets[:] = np.iinfo(number).max
    targets[: len(group)] = pairs.scores[group]
    sizes = kernels.cpu.lanes.BLOCK_COLUMNS * len(query), len(query), kernels.cpu.lanes.BLOCK_COLUMNS * len(letters), 1
    room = kernels.cpu.traceback.EndRoom(*(kernels.cpu.vectors.aligned(size * lanes, number) for size in sizes))
    ends = np.empty((lanes, 4), np.int64)
    kernels.cpu.traceback.find_ends(
        query.astype(np.int64),
        letters.astype(np.int64),
        costs.table(bits),
        columns,
        n_blocks,
        targets,
        costs.first_residue_cost,
        costs.next_residue_cost,
        room,
        ends,
    )
    return ends[: len(group)]


def _drawn(pairs: Pairs, scheme: ScoringScheme, progress: Progress, cells_kept: int) -> tuple[NDArray, ...]:
    """Alignments of some pairs: `found`, `counts`, `cigars` and `lines` of `proteoscope.kernels.cpu.traceback.draw_pairs`."""
    query_lengths, subject_lengths = pairs.lengths
    offsets = offsets_of(query_lengths + subject_lengths)
    steps, found = np.empty(offsets[-1], np.uint8), np.zeros((len(pairs), 3), np.int64)
    traces = kernels.cpu.traceback.Traces(steps, offsets, found)
    is_alone = query_lengths * subject_lengths > cells_kept
    is_narrow = pairs.scores <= _most_of_16_bits(scheme)
    for bits, is_meant in ((16, is_narrow & ~is_alone), (32, ~is_narrow & ~is_alone)):
        if is_meant.any():
            _trace(pairs, np.flatnonzero(is_meant), scheme, bits, traces)
    for k in np.flatnonzero(is_alone).tolist():
        query, subject = pairs.queries[slice(*pairs.query_places[k])], pairs.subjects[slice(*pairs.subject_places[k])]
        _, query_start, subject_start, own = _traced(query, subject, scheme, progress, int(pairs.scores[k]), cells_kept)
        found[k] = len(own), query_start, subject_start
        steps[offsets[k] : offsets[k] + len(own)] = own
    columns = int(found[:, 0].sum())
    lines, cigars, counts = (
        np.empty((3, columns), np.uint8),
        np.empty(2 * columns, np.uint8),
        np.empty((len(pairs), kernels.cpu.traceback.N_COUNTS), np.int64),
    )
    kernels.cpu.traceback.draw_pairs(traces, _sequences(pairs), scheme.matrix.scores, _WITH_GAPS, lines, cigars, counts)
    return found, counts, cigars[: counts[:, kernels.cpu.traceback.CIGAR_BYTES].sum()].copy(), lines


def _sequences(pairs: Pairs) -> kernels.cpu.traceback.PairedSequences:
    """The sequences of pairs as the kernels take them."""
    return kernels.cpu.traceback.PairedSequences(
        read_only(pairs.queries), pairs.query_places, read_only(pairs.subjects), pairs.subject_places
    )


def _trace(pairs: Pairs, chosen: NDArray[np.int64], scheme: ScoringScheme, bits: int, traces: Traces) -> None:
    """Align chosen pairs, with numbers of so many bits; fills their traces."""
    query_lengths, subject_lengths = (lengths[chosen] for lengths in pairs.lengths)
    longest = int(subject_lengths.argmax())
    longest_subject = pairs.subjects[slice(*pairs.subject_places[chosen[longest]])]
    room = _row_arrays(scheme, longest_subject, bits)
    room = room._replace(h_rows=room.h_rows.reshape(-1))
    widths = -(-subject_lengths // len(room.decay)) * len(room.decay)
    kernels.cpu.traceback.trace_pairs(
        chosen,
        _sequences(pairs),
        pairs.scores,
        scheme.matrix.scores,
        scheme.first_residue_cost,
        scheme.gap_extend,
        room,
        np.empty(int((query_lengths * widths).max()), np.uint8),
        traces,
    )
