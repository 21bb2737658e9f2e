"""Smith-Waterman scores of queries against a database on the CPU, equal to those of `proteoscope.kernels.cuda.alignment`.

Scores are computed in lanes of vector registers with 8 bits (`proteoscope.kernels.cpu.lanes`). Pairs whose score exceeds 127 minus the
largest matrix score are computed again with 16 bits; if the score then exceeds 32,767 minus the largest matrix score, they are computed
again with 32 bits. A few long sequences would leave most lanes empty; they are scored pair by pair (`proteoscope.kernels.cpu.striped`), as
are pairs that overflowed if this divides them better among the threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.counts import OperationCounts
from proteoscope.kernels.cpu.lanes import BLOCK_COLUMNS, LaneGroup, fill_columns, lane_count, lane_groups, score_lanes
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.striped import limited_scores
from proteoscope.kernels.cpu.substitution import Substitution
from proteoscope.kernels.cpu.traceback import PairedSequences
from proteoscope.kernels.cpu.vectors import aligned
from proteoscope.kernels.device import Partition, StopFlag, equal_partitions

__all__ = ["AlignmentSearch"]

_TASKS_OF_THREAD = 8  # minimum number of tasks of a thread, if there are enough groups of subjects or queries
_CELLS_OF_A_TASK = 4_000_000_000
_CELLS_OF_A_CALL = 250_000_000  # matrix cells between two checks of the stop flag: 20 ms with AVX-512, 0.1 s with SSE
_STRIPED_VECTOR = 2  # time per vector of a single pair, in units of a vector in the lane kernel
_STRIPED_ROWS = 60  # preparing a pair takes as long as this number of rows
_PLANS_CACHED = 4
_VECTORS_OF_BLOCK = 4  # vectors of H and E that are read and written for each row of the query in a block of columns
_VECTORS_OF_ROW = 4  # vectors of H and F, for each vector of columns in a row of a single pair


class AlignmentSearch:
    """Database of sequences that is prepared for searches.

    Parameters
    ----------
    device
        CPU that computes the scores.
    residues
        Residue codes, int8: 0 to 25 for A to Z, 26 for ``*``.
    offsets : (n + 1,) int64
        Start of each sequence in `residues`.

    Attributes
    ----------
    cells_done
        Approximate number of cells computed by the current call, for progress.
    """

    def __init__(self, device: Processor, residues: NDArray[np.int8], offsets: NDArray[np.int64]) -> None:
        self._processor, self._residues, self._offsets = device, residues, offsets
        self._lengths = np.diff(offsets)
        self._plans: dict[tuple[int, int, int], list[LaneGroup]] = {}
        self.cells_done = 0

    def score(
        self,
        queries: Sequence[NDArray[np.int8]],
        matrix_scores: NDArray[np.integer],
        gap_open: int,
        gap_extend: int,
        out: NDArray[np.int32],
        first: int = 0,
        last: int | None = None,
    ) -> Generator[int, None, None]:
        """Score every query against the subjects `first:last` exactly.

        Yields the end of the finished range at least every tenth of a second: `first` until all scores are known (the longest subjects are
        scored first, and pairs that overflow are scored again), then `last`. Closing the generator stops the computation.

        Parameters
        ----------
        queries
            Residue codes of each query.
        matrix_scores : (27, 27)
            Scores, indexed by the residue codes of query and subject.
        gap_open, gap_extend
            Gap costs; a gap of k residues costs ``gap_open + k * gap_extend``.
        out : (queries, subjects) int32
            Output; only the columns `first:last` are written.
        """
        last = len(self._lengths) if last is None else last
        self.cells_done = 0
        costs = Substitution(np.asarray(matrix_scores), gap_open, gap_extend)
        out[:, first:last] = 0
        subjects = first + np.flatnonzero(self._lengths[first:last])
        prepared = [_Query.of(query) for query in queries]
        every = range(len(queries))
        for position, bits in enumerate(costs.widths()):
            scorer = _Scorer(prepared, self._residues, self._offsets, costs, bits, out)
            if position == 0:
                tasks = scorer.tasks(self._plan(subjects, first, last, bits), every, self._processor.threads)
            else:
                overflowed = [subjects[row[subjects] < 0] for row in out]
                tasks = scorer.overflow_tasks(overflowed, self._processor.threads)
            if tasks:
                cells = np.cumsum([0, *(task.cells for task in tasks)])
                for done in self._processor.run(scorer.runner(tasks), _partitions(tasks), 0):
                    self.cells_done = max(self.cells_done, int(cells[done]))
                    yield first
        yield last

    def work(self, lengths: Sequence[int], first: int = 0, last: int | None = None) -> OperationCounts:
        """Return the operations of scoring queries of the given lengths against the subjects `first:last`.

        An operation is a matrix cell; repeated cells after an overflow are not counted.
        """
        last = len(self._lengths) if last is None else last
        subjects, bits = first + np.flatnonzero(self._lengths[first:last]), 8
        lanes, every, rounds, blocks, words = lane_count(bits), range(len(lengths)), 0, 0, 0
        for task in _tasks(self._plan(subjects, first, last, bits), lengths, every, self._lengths, lanes, self._processor.threads):
            n_blocks, rounds, words = task.group.n_blocks, rounds + 1, words + task.group.n_blocks * BLOCK_COLUMNS * lanes // 4
            longest = _longest_in_lanes(task.group, self._lengths, lanes)
            for length in lengths[task.first_query : task.last_query]:
                if length > longest:
                    rounds += 1
                    blocks += _VECTORS_OF_ROW * length * _n_vectors(task.group, self._lengths, lanes)
                else:
                    rounds += -(-n_blocks // _blocks_of_call(length, lanes))
                    blocks += _VECTORS_OF_BLOCK * n_blocks * length
        cells = sum(lengths) * int(self._offsets[last] - self._offsets[first])
        return OperationCounts(rounds, cells, blocks, words, len(lengths) * (last - first), 0)

    def costs(self, lengths: Sequence[int]) -> NDArray[np.float64]:
        """Return the cost of each subject, (n,), for partitioning: matrix cells with all queries of the given lengths."""
        return sum(lengths) * (-(-self._lengths // BLOCK_COLUMNS) * BLOCK_COLUMNS).astype(np.float64)

    def _plan(self, subjects: NDArray[np.int64], first: int, last: int, bits: int) -> list[LaneGroup]:
        """Return the lanes of `subjects`, the non-empty sequences among `first:last`; the most recent results are cached."""
        key = first, last, bits
        if key not in self._plans:
            if len(self._plans) == _PLANS_CACHED:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = lane_groups(subjects, self._lengths[subjects], lane_count(bits))
        return self._plans[key]


@dataclass(frozen=True)
class _Query:
    """Query as arrays of the kernel: row of the score profile of each residue, and residue code of each row."""

    rows: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[np.int8]) -> _Query:
        result, rows = np.unique(codes, return_inverse=True)
        return cls(rows.astype(np.int64), result.astype(np.int64))


@dataclass(frozen=True)
class _Task:
    group: LaneGroup
    first_query: int
    last_query: int
    cells: int


def _tasks(
    groups: Sequence[LaneGroup], query_lengths: Sequence[int], queries: range, lengths: NDArray[np.int64], lanes: int, threads: int
) -> list[_Task]:
    """Divide the scoring of the given queries into tasks; return the tasks, largest first."""
    tasks = []
    # If there are few groups of subjects, divide the queries too, so that every thread has work.
    parts = min(len(queries), -(-_TASKS_OF_THREAD * threads // len(groups))) if groups else 1
    total = sum(query_lengths[i] for i in queries)
    for group in groups:
        columns, residues = group.n_blocks * BLOCK_COLUMNS * lanes, int(lengths[group.subjects].sum())
        most = min(_CELLS_OF_A_TASK, columns * total / parts)
        first, rows = queries.start, 0
        for i in queries:
            rows += query_lengths[i]
            if rows * columns >= most or i == queries.stop - 1:
                tasks.append(_Task(group, first, i + 1, rows * residues))
                first, rows = i + 1, 0
    return sorted(tasks, key=lambda task: -task.cells)


def _partitions(tasks: Sequence[_Task]) -> list[Partition]:
    return [Partition(i, i + 1, float(task.cells)) for i, task in enumerate(tasks)]


def _blocks_of_call(query_length: int, lanes: int) -> int:
    """Return the number of column blocks that one call of `score_lanes` processes."""
    return max(1, _CELLS_OF_A_CALL // (max(1, query_length) * BLOCK_COLUMNS * lanes))


def _n_vectors(group: LaneGroup, lengths: NDArray[np.int64], lanes: int) -> int:
    """Return the number of vectors of a row of all subjects of a group, scored pair by pair."""
    return int((-(-lengths[group.subjects] // lanes)).sum())


def _longest_in_lanes(group: LaneGroup, lengths: NDArray[np.int64], lanes: int) -> float:
    """Return the maximum query length for which scoring a group of subjects in lanes is faster than scoring them one by one."""
    time = _STRIPED_VECTOR * _n_vectors(group, lengths, lanes)  # per residue of the query
    saved = group.n_blocks * BLOCK_COLUMNS - time
    return _STRIPED_ROWS * time / saved if saved > 0 else np.inf


class _Scorer:
    """Scoring of tasks with integers of one width; each thread has its own workspace."""

    def __init__(
        self,
        queries: Sequence[_Query],
        residues: NDArray[np.int8],
        offsets: NDArray[np.int64],
        costs: Substitution,
        bits: int,
        scores: NDArray[np.int32],
    ) -> None:
        self._queries, self._residues, self._offsets, self._lengths = queries, residues, offsets, np.diff(offsets)
        self._costs, self._scores = costs, scores
        self._bits, self._lanes = bits, lane_count(bits)
        self._table, self._most = costs.table(bits), costs.most(bits)
        self._longest = max((len(query.rows) for query in queries), default=0)
        self._own = threading.local()

    def tasks(self, groups: Sequence[LaneGroup], queries: range, threads: int) -> list[_Task]:
        """Divide the scoring of queries into tasks (see `_tasks`)."""
        return _tasks(groups, [len(query.rows) for query in self._queries], queries, self._lengths, self._lanes, threads)

    def overflow_tasks(self, overflowed: Sequence[NDArray[np.int64]], threads: int) -> list[_Task]:
        """Divide the scoring of each query with its `overflowed` subjects into tasks, which are small if there are few pairs."""
        cells = [len(query.rows) * self._lengths[subjects] for query, subjects in zip(self._queries, overflowed, strict=True)]
        most, tasks = max(1.0, sum(float(each.sum()) for each in cells) / (_TASKS_OF_THREAD * threads)), list[_Task]()
        for i, subjects in enumerate(overflowed):
            for part in equal_partitions(cells[i], 1, maximum_cost=most, per_worker=1):  # neighbours have similar lengths
                some = subjects[part.first : part.last]
                groups = lane_groups(some, self._lengths[some], self._lanes)
                tasks += self.tasks(groups, range(i, i + 1), threads)
        return sorted(tasks, key=lambda task: -task.cells)

    def runner(self, tasks: Sequence[_Task]) -> Callable[[int, int, StopFlag], None]:
        """Return the function for `Processor.run` that writes the scores of the tasks `first:last` to the score table."""

        def run(first: int, last: int, stop: StopFlag) -> None:
            for task in tasks[first:last]:
                self._run(task, stop)

        return run

    def _run(self, task: _Task, stop: StopFlag) -> None:
        group, lanes = task.group, self._lanes
        columns = aligned(group.n_blocks * BLOCK_COLUMNS * lanes, np.int8)
        fill_columns(
            self._residues, self._offsets[group.subjects], self._lengths[group.subjects], group.lanes, group.first_columns, lanes, columns
        )
        longest = _longest_in_lanes(group, self._lengths, lanes)
        for i in range(task.first_query, task.last_query):
            if len(self._queries[i].rows) > longest:
                self._score_pairs(self._queries[i], group.subjects, self._scores[i], stop)
            else:
                self._score(self._queries[i], group, columns, self._scores[i], stop)

    def _score(self, query: _Query, group: LaneGroup, columns: NDArray[np.int8], scores: NDArray[np.int32], stop: StopFlag) -> None:
        h_row, e_row, profile, best, clearing = self._work_space()
        step = _blocks_of_call(len(query.rows), self._lanes)
        for block in range(0, group.n_blocks, step):
            if stop[0]:
                return
            score_lanes(
                query.rows,
                query.codes,
                self._table,
                columns,
                block,
                min(group.n_blocks, block + step),
                group.end_blocks,
                group.lanes,
                group.subjects,
                group.is_followed,
                self._costs.first_residue_cost,
                self._costs.next_residue_cost,
                self._most,
                h_row,
                e_row,
                profile,
                best,
                clearing,
                scores,
            )

    def _score_pairs(self, query: _Query, subjects: NDArray[np.int64], scores: NDArray[np.int32], stop: StopFlag) -> None:
        codes, residues = query.codes[query.rows].astype(np.int8), self._residues.view()
        codes.flags.writeable = residues.flags.writeable = False
        places = np.tile([0, len(codes)], (len(subjects), 1)), np.stack((self._offsets[subjects], self._offsets[subjects + 1]), axis=1)
        limits = np.full(len(subjects), np.iinfo(np.int32).max, np.int64)
        pairs = PairedSequences(codes, places[0], residues, places[1])
        scores[subjects] = limited_scores(self._costs, pairs, limits, stop, self._bits)

    def _work_space(self) -> tuple[NDArray, ...]:
        if not hasattr(self._own, "arrays"):
            sizes = (self._longest, self._longest, len(self._costs.scores) * BLOCK_COLUMNS, 1, 1)
            self._own.arrays = tuple(aligned(size * self._lanes, self._table.dtype) for size in sizes)
        return self._own.arrays
