"""Plan and score: every query against every subject, in lanes of equal length, exactly.

The plan fills the lanes of a vector with sequences of nearly equal length, the longest first; where the longest is much longer than the
rest, several sequences follow one another in the other lanes. Scores are computed with 8 bits; the pairs whose score passes 254 again
with 16 bits, and those that pass 65,534 with 32. Few long sequences would leave most lanes empty: these are scored by rows, one pair after
the other, with 16 bits or else 32.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.execution.threads import run_on_threads
from engine.jobs.progress import Progress
from engine.sequences.matrices import LETTERS
from engine.sequences.scheme import ScoringScheme

__all__ = ["STEP_CELLS", "LaneGroup", "ProcessorScorer", "lane_groups", "score_all"]

STEP_CELLS = 1_000_000
"""Cells in a step of the progress."""

_BLOCK = 4  # columns that the kernel computes together
_PADDING_ALLOWED = 0.03  # of a group's columns, before its lanes are filled up with shorter sequences
_CELLS_OF_A_TASK = 4_000_000_000  # between two looks at a cancel: a tenth of a second with AVX-512, half of one with SSE
_CELLS_OF_A_CALL = 1_000_000_000
_ROW = 64  # elements of a row of the kernel's table
_CELLS_OF_ROWS = 100_000_000  # as _CELLS_OF_A_CALL
_VECTOR_BY_ROWS = 6  # vectors of lanes that take as long as one of a pair's row
_PAIR_BY_ROWS = 200_000  # vectors of lanes that take as long as preparing a pair


@dataclass(frozen=True)
class LaneGroup:
    """Sequences that are scored side by side, several in a lane where they are short.

    Attributes
    ----------
    subjects, lanes, first_columns : (n,) int64: number of the sequence, its lane, the column where it begins.
    end_blocks : (n,) int64, ascending: the block of columns in which it ends. is_followed : (n,) int64, 1 where another follows in
        its lane.
    n_blocks : of the longest lane.
    """

    subjects: NDArray[np.int64]
    lanes: NDArray[np.int64]
    first_columns: NDArray[np.int64]
    end_blocks: NDArray[np.int64]
    is_followed: NDArray[np.int64]
    n_blocks: int


def lane_groups(subjects: NDArray[np.int64], lengths: NDArray[np.int64], n_lanes: int) -> list[LaneGroup]:
    """Put sequences into lanes.

    Parameters
    ----------
    subjects : (n,) int64, their numbers. lengths : (n,) int64, at least 1.
    """
    order = np.argsort(-lengths, kind="stable")
    subjects, blocks = subjects[order], -(-lengths[order] // _BLOCK)
    groups, first, n = [], 0, len(subjects)
    while first < n:
        room = int(blocks[first])
        last = min(n, first + n_lanes)
        if last == n or int(blocks[first:last].sum()) >= (1 - _PADDING_ALLOWED) * room * n_lanes:
            lane, start = np.arange(last - first), np.zeros(last - first, np.int64)
        else:
            lane, start = _filled_lanes(blocks[first:], room, n_lanes)
            last = first + len(lane)
        groups.append(_group(subjects[first:last], blocks[first:last], lane, start))
        first = last
    return groups


def _filled_lanes(blocks: NDArray[np.int64], room: int, n_lanes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lane and first block of the sequences from the first on: each goes where most room is left, until one does not fit."""
    lanes, starts = [], []
    filled = [(0, lane) for lane in range(n_lanes)]
    for size in blocks.tolist():
        taken, lane = filled[0]
        if taken + size > room:
            break
        heapq.heapreplace(filled, (taken + size, lane))
        lanes.append(lane)
        starts.append(taken)
    return np.array(lanes, np.int64), np.array(starts, np.int64)


def _group(subjects: NDArray[np.int64], blocks: NDArray[np.int64], lanes: NDArray[np.int64], starts: NDArray[np.int64]) -> LaneGroup:
    ends = starts + blocks - 1
    last_of_lane = np.zeros(int(lanes.max()) + 1, np.int64)
    np.maximum.at(last_of_lane, lanes, ends)
    order = np.argsort(ends, kind="stable")
    is_followed = (ends < last_of_lane[lanes]).astype(np.int64)
    return LaneGroup(subjects[order], lanes[order], starts[order] * _BLOCK, ends[order], is_followed[order], int(ends.max()) + 1)


@dataclass(frozen=True)
class _Query:
    """A query as the kernel takes it: the row of each residue, and the code of each row."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[np.int8]) -> _Query:
        found, rows = np.unique(codes, return_inverse=True)
        return cls(rows.astype(np.int64), found.astype(np.int64))


@dataclass(frozen=True)
class _Task:
    group: LaneGroup
    first_query: int
    last_query: int
    cells: int


def score_all(
    queries: Sequence[NDArray[np.int8]],
    residues: NDArray[np.int8],
    offsets: NDArray[np.int64],
    scheme: ScoringScheme,
    threads: int,
    progress: Progress,
) -> NDArray[np.int32]:
    """Smith-Waterman scores of every query and every subject, exact.

    Parameters
    ----------
    queries : residue codes of each. residues, offsets : the subjects' codes, and (n + 1,) int64 where each begins.
    progress : advances by one for each million cells.

    Returns
    -------
    (queries, subjects) int32. A sequence without residues scores 0.

    Raises
    ------
    ParameterError : a score could pass 32 bits. Cancelled : the user asked to stop.
    """
    lengths = np.diff(offsets)
    scheme.check(max(map(len, queries), default=0), int(lengths.max(initial=0)))
    scores = np.zeros((len(queries), len(lengths)), np.int32)
    scorer = ProcessorScorer(queries, residues, offsets, scheme, threads, scores, progress)
    scorer.score(0, len(lengths), advances=True)
    return scores


class ProcessorScorer:
    """Scores queries against one run of subjects after the other, on threads of the processor.

    Parameters
    ----------
    queries, residues, offsets : see `score_all`. scores : (queries, subjects) int32, zeros, to fill.
    """

    def __init__(
        self,
        queries: Sequence[NDArray[np.int8]],
        residues: NDArray[np.int8],
        offsets: NDArray[np.int64],
        scheme: ScoringScheme,
        threads: int,
        scores: NDArray[np.int32],
        progress: Progress,
    ) -> None:
        self._lengths, self._threads, self._scores, self._progress = np.diff(offsets), threads, scores, progress
        prepared = [_Query.of(query) for query in queries]
        self._scorers = [_Scorer(prepared, residues, offsets, scheme, bits, scores, progress) for bits in scheme.widths()]

    def score(self, first: int, last: int, *, advances: bool = False) -> None:
        """Score the subjects `first:last`; `advances` tells whether progress shall.

        Raises
        ------
        Cancelled : the user asked to stop.
        """
        subjects = first + np.flatnonzero(self._lengths[first:last])
        narrow, *wider = self._scorers
        self._run(narrow, narrow.tasks(subjects, range(len(self._scores)), self._threads), advances)
        for scorer in wider:
            passed = [subjects[row[subjects] < 0] for row in self._scores]
            self._run(
                scorer,
                [task for i, again in enumerate(passed) if len(again) for task in scorer.tasks(again, range(i, i + 1), self._threads)],
                False,
            )

    def _run(self, scorer: _Scorer, tasks: list[_Task], advances: bool) -> None:
        run_on_threads(scorer, tasks, self._threads, self._progress, steps=lambda task: task.cells // STEP_CELLS if advances else 0)


class _Scorer:
    """Scores tasks with numbers of one width, on any thread; each thread keeps its work space."""

    def __init__(
        self,
        queries: Sequence[_Query],
        residues: NDArray[np.int8],
        offsets: NDArray[np.int64],
        scheme: ScoringScheme,
        bits: int,
        scores: NDArray[np.int32],
        progress: Progress,
    ) -> None:
        from kernels.cpu import alignment

        self._kernels = alignment
        self._queries, self._residues, self._offsets, self._lengths = queries, residues, offsets, np.diff(offsets)
        self._scheme, self._scores, self._progress = scheme, scores, progress
        self._lanes = alignment.lane_count(bits)
        self._row_lanes = alignment.lane_count(16) if bits <= 16 and 16 in scheme.widths() else 0
        self._table = scheme.table(bits)
        self._longest = max((len(query.rows) for query in queries), default=0)
        self._own = threading.local()

    def tasks(self, subjects: NDArray[np.int64], queries: range, threads: int) -> list[_Task]:
        """Cut the work into tasks, the largest first."""
        tasks = []
        groups = lane_groups(subjects, self._lengths[subjects], self._lanes)
        # A database of few groups is cut along the queries, so that every thread has work.
        parts = min(len(queries), -(-8 * threads // len(groups))) if groups else 1
        total = sum(len(self._queries[i].rows) for i in queries)
        for group in groups:
            columns, residues = group.n_blocks * _BLOCK * self._lanes, int(self._lengths[group.subjects].sum())
            most = min(_CELLS_OF_A_TASK, columns * total / parts)
            first, rows = queries.start, 0
            for i in queries:
                rows += len(self._queries[i].rows)
                if rows * columns >= most or i == queries.stop - 1:
                    tasks.append(_Task(group, first, i + 1, rows * residues))
                    first, rows = i + 1, 0
        return sorted(tasks, key=lambda task: -task.cells)

    def __call__(self, task: _Task) -> None:
        """Score a task into the table of scores."""
        from kernels.cpu.vectors import aligned

        group, lanes = task.group, self._lanes
        columns = aligned(group.n_blocks * _BLOCK * lanes, np.int8)
        self._kernels.fill_columns(
            self._residues, self._offsets[group.subjects], self._lengths[group.subjects], group.lanes, group.first_columns, lanes, columns
        )
        vectors = int((self._lengths[group.subjects] // self._row_lanes + 1).sum()) if self._row_lanes else 0
        for i in range(task.first_query, task.last_query):
            length = len(self._queries[i].rows)
            by_rows = vectors * length * _VECTOR_BY_ROWS + len(group.subjects) * _PAIR_BY_ROWS
            if vectors and by_rows < group.n_blocks * _BLOCK * length:
                self._score_by_rows(self._queries[i], group, self._scores[i])
            else:
                self._score(self._queries[i], group, columns, self._scores[i])
            self._progress.check()

    def _score(self, query: _Query, group: LaneGroup, columns: NDArray[np.int8], scores: NDArray[np.int32]) -> None:
        h_row, e_row, profile, best, clearing = self._work_space()
        cells = max(1, len(query.rows)) * _BLOCK * self._lanes
        step = max(1, _CELLS_OF_A_CALL // cells)
        for block in range(0, group.n_blocks, step):
            self._progress.check()
            self._kernels.score_lanes(
                query.rows, query.codes, self._table, columns, block, min(group.n_blocks, block + step),
                group.end_blocks, group.lanes, group.subjects, group.is_followed,
                self._scheme.first_residue_cost, self._scheme.gap_extend, h_row, e_row, profile, best, clearing, scores,
            )  # fmt: skip

    def _score_by_rows(self, query: _Query, group: LaneGroup, scores: NDArray[np.int32]) -> None:
        codes = query.codes[query.rows]
        for subject in group.subjects.tolist():
            residues = self._residues[self._offsets[subject] : self._offsets[subject + 1]]
            score = self._best_of_rows(codes, residues, 16)
            # Sums stop at the greatest number: what is less is right.
            scores[subject] = score if score < np.iinfo(np.int16).max else self._best_of_rows(codes, residues, 32)

    def _best_of_rows(self, codes: NDArray[np.int64], subject: NDArray[np.int8], bits: int) -> int:
        """The score of a pair, or the greatest number of so many bits."""
        profile, decay, h_rows, f_row = self._scheme.row_arrays(subject, bits)
        best, directions, target = np.array([0, -1, -1], np.int64), np.empty((0, len(f_row)), np.uint8), int(np.iinfo(decay.dtype).max)
        step = max(1, _CELLS_OF_ROWS // len(f_row))
        for first in range(0, len(codes), step):
            self._progress.check()
            self._kernels.score_rows(
                codes, profile, self._scheme.first_residue_cost, self._scheme.gap_extend, decay, first, min(len(codes), first + step),
                h_rows, f_row, best, target, directions, False,
            )  # fmt: skip
        return int(best[0])

    def _work_space(self) -> tuple[NDArray, ...]:
        if not hasattr(self._own, "arrays"):
            from kernels.cpu.vectors import aligned

            sizes = (self._longest, self._longest, len(LETTERS) * _BLOCK, 1, 1)
            self._own.arrays = tuple(aligned(size * self._lanes, self._table.dtype) for size in sizes)
        return self._own.arrays
