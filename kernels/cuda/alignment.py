"""Smith-Waterman scores on a GPU, equal to those of `proteoscope.kernels.cpu.alignment`, with the kernels of alignment.cu.

The database stays on the device if it fits; otherwise it is sent in batches through pinned buffers while other batches are scored. A launch
computes a strip of columns of two queries, or of one query with two subjects. Values at the right edge of the strip stay in device memory
for the next launch. If the longest subjects would take longer than all other subjects, the two sets are scored concurrently on separate
streams. Pairs whose scores overflow are listed on the device and scored again with 32 bits.

ATGPU analysis of queries of m residues in total against n subjects of r residues in total, in strips of w columns and words of 4 bytes:

* rounds: one per batch of the database (one batch if memory suffices), each with m / 2w launches (m / w with two subjects or with 32 bits);
* words in: r / 4 + 2n, only once if the database stays on the device; words out: n for each query;
* operations: m r cells; two of them take 3.5 cycles on the slower pipe and 2.6 (3.6 with two subjects) on the multiplier's pipe, with DPX;
* memory blocks: in addition to the residues, for each strip one block of 32 bytes read and one written per 4 residues of a subject;
* shared memory: 112 bytes for each column of a strip.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.counts import OperationCounts
from proteoscope.kernels.cuda.alignment_plan import (
    HALF_PRECISION,
    SIXTEEN_BITS,
    THIRTY_TWO_BITS,
    AlignmentShape,
    Part,
    Planner,
    Subjects,
    fastest_number_type,
    query_groups,
)
from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError

__all__ = ["AlignmentSearch"]

_FILE = "alignment.cu"
_LIST_THREADS = 256
_COUNTERS = 4096
_SHARE_OF_FREE_MEMORY = 0.8
_RESIDUES_OF_BATCH = 1 << 27  # residues per batch if the database does not fit on the device
_BORDER_BYTES = 8  # bytes per residue for the values at the border of a strip
_CELLS_OF_GROUP = 250_000_000_000  # matrix cells between two checks for a cancel: 50 ms on an H200
_STAGED_BYTES = 16 << 20  # scores copied together through pinned memory
_PLANS_CACHED = 64
_ROWS_OF_SUBJECT = 16  # starting a subject, and its lanes in turn, takes as long as this number of rows
_GREATEST = {SIXTEEN_BITS: (1 << 15) - 1, HALF_PRECISION: 1 << 11}
_LARGEST_COST = {SIXTEEN_BITS: 1 << 12, HALF_PRECISION: 1 << 9}  # maximum cost of a gap residue or a mismatch, and maximum score
_LARGEST_SKEW = 64  # maximum cost of extending a gap with which scores are skewed
_ROWS, _DIAGONALS = 4, 80  # maximum rows, and rows and columns together, of a step with skewed scores
_NO_LIMIT = np.iinfo(np.int32).max
_MATRIX_BYTES = 4 * 27 * 27
_STRIP = np.dtype([("residues", np.uint64), ("scores", np.uint64), ("passed", np.uint64), ("n", np.int32)], align=True)
_STRIPS = np.dtype([("low", _STRIP), ("high", _STRIP), ("continued", np.uint32), ("most", np.int32)], align=True)
_SUBJECTS = np.dtype(
    [
        ("residues", np.uint64),
        ("offsets", np.uint64),
        ("order", np.uint64),
        ("border_in", np.uint64),
        ("border_out", np.uint64),
        ("n", np.uint32),
        ("n_items", np.uint32),
    ],
    align=True,
)


@dataclass(frozen=True)
class _Numbers:
    """Scoring scheme in one number type, in the layout of the kernels."""

    kind: int
    matrix: NDArray[np.int32]
    most: int  # largest score that cannot have overflowed
    macros: tuple[str, ...]  # macro definitions for alignment.cu

    @classmethod
    def of(cls, kind: int, scores: NDArray[np.int64], opening: int, extending: int) -> _Numbers:
        """Create the numbers from scores; `opening` is the cost of the first residue of a gap."""
        table, zero, skew, greatest = scores + opening, 0, 0, max(0, int(scores.max()))
        if kind == SIXTEEN_BITS:
            zero = opening + extending
            if extending <= _LARGEST_SKEW and table.min() + extending >= 0:
                table, skew = table + extending, extending
            words = zero * 0x10001, -opening * 0x10001, (-extending & 0xFFFF) * 0x10001
        elif kind == HALF_PRECISION:
            table, less_opening, less_extending = (_half_bits(values) for values in (table, -opening, -extending))
            words = 0, int(less_opening) * 0x10001, int(less_extending) * 0x10001
        else:
            words = 0, -opening, -extending
        # Skewed scores are compared after each step, and no row adds more than `greatest`.
        most = _GREATEST[kind] - zero - (_ROWS * greatest + _DIAGONALS * skew if skew else greatest) if kind in _GREATEST else _NO_LIMIT
        names = "ZERO", "MINUS_OPENING", "MINUS_EXTENDING", "SKEW"
        macros = tuple(f"{name}={word & 0xFFFFFFFF:#x}u" for name, word in zip(names, (*words, skew * 0x10001), strict=True))
        return cls(kind, np.ascontiguousarray(table, np.int32), most, macros)


def _half_bits(values: Any) -> NDArray[np.int64]:
    return np.asarray(values, np.float16).view(np.uint16).astype(np.int64)


@dataclass(frozen=True)
class _Strip:
    """Columns of a query: index of the query, first column, and number of columns."""

    query: int
    begin: int
    n: int
    is_last: bool


_Pair = tuple[_Strip | None, _Strip | None]
"""Strips in the lower and in the upper half of words."""


def _strips(query: int, length: int, width: int) -> list[_Strip]:
    return [_Strip(query, begin, min(width, length - begin), begin + width >= length) for begin in range(0, length, width)]


def _pairs(queries: Sequence[int], lengths: Sequence[int], width: int, has_halves: bool) -> list[_Pair]:
    """Return the strips that each launch computes."""
    halves: list[list[_Strip]] = [[], []]
    for query in queries:
        (min(halves, key=len) if has_halves else halves[0]).extend(_strips(query, lengths[query], width))
    return list(zip_longest(halves[0], halves[1]))


def _has_before(pair: _Pair) -> bool:
    return any(strip and strip.begin for strip in pair)


def _has_after(pair: _Pair) -> bool:
    return any(strip and not strip.is_last for strip in pair)


@dataclass(frozen=True)
class _Batch:
    """Subjects `first:last` on the device: addresses of their residues, offsets and, unless sorted by length, order.

    Attributes
    ----------
    lengths
        (n,), number of residues of each subject, longest first.
    rows
        (n + 1,), cumulative number of residues.
    slot
        Memory of the batch, which is retained while kernels may read it.
    """

    first: int
    last: int
    residues: int
    offsets: int
    order: int
    lengths: NDArray[np.int64]
    rows: NDArray[np.int64]
    slot: _Slot | None = None

    @property
    def n(self) -> int:
        """Number of subjects."""
        return self.last - self.first

    def subjects(self, n_items: int) -> Subjects:
        """Return the size of the first `n_items` subjects, for planning."""
        rows = int(self.rows[-1]) * n_items // max(1, self.n)
        return Subjects(n_items, rows, int(self.lengths[0]), int(self.lengths[-1]))


_InOrder = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32] | None]
"""Lengths of subjects, longest first, their cumulative sums, and their order unless sorted by length."""


class AlignmentSearch:
    """Database of sequences on a GPU that is prepared for searches.

    Parameters
    ----------
    device
        GPU.
    residues
        Residue codes, int8: 0 to 25 for A to Z, 26 for ``*``.
    offsets : (n + 1,) int64
        Start of each sequence in `residues`. A database sorted by length need not be sorted again.

    Attributes
    ----------
    cells_done
        Approximate number of cells computed by the current call, for progress.
    """

    memory_bytes: int | None = None
    """Maximum device memory, bytes; by default 80 % of the free memory."""
    numbers: int | None = None
    """Number type; by default selected by compute capability."""
    shape: tuple[int, int] | None = None
    """Number of lanes per subject and columns per lane; by default those predicted to be fastest."""
    threads: int | None = None
    """Number of threads per block; by default as many as registers allow."""
    n_longest: int | None = None
    """Number of long subjects that are scored concurrently with more lanes; by default the number predicted to be fastest; 0 for none."""
    longest_shape: tuple[int, int, int, int] = (128, 4, 256, 1)
    """Lanes, columns, threads and multiprocessors for the long subjects, if their number is set."""

    def __init__(self, device: Gpu, residues: NDArray[np.int8], offsets: NDArray[np.int64]) -> None:
        gpu = device
        self._gpu, self._residues, self._offsets = gpu, residues, np.ascontiguousarray(offsets, np.int64)
        capability = gpu.compute_capability()
        self._kind = self.numbers or fastest_number_type(capability)
        self._multiprocessors, self._maximum_shared = gpu.multiprocessors(), gpu.maximum_shared_bytes()
        self._half_shared = self._maximum_shared // 2 + 1024
        self._planner = Planner(self._multiprocessors, self._maximum_shared, self.shape, self.threads)
        self._plans: dict[tuple[Any, ...], list[Part]] = {}
        self.cells_done = 0
        self._scheme: tuple[bytes, tuple[_Numbers, _Numbers]] | None = None
        self._in_order: tuple[tuple[int, int], _InOrder] | None = None
        free = int(gpu.free_bytes() * _SHARE_OF_FREE_MEMORY)
        self._budget = free if self.memory_bytes is None else min(free, self.memory_bytes)
        self._lengths = np.diff(self._offsets)
        self._is_sorted = bool((self._lengths[1:] >= self._lengths[:-1]).all())
        self._stream, self._side_stream, self._copies = gpu.stream(), gpu.stream(), gpu.stream()
        self._resident: tuple[Any, Any] | None = None
        if self._residues.nbytes + self._offsets.nbytes <= self._budget // 3:  # the remaining memory is for borders, scores and lists
            with suppress(DeviceMemoryError):
                buffers = sent(gpu, {"residues": self._residues, "offsets": self._offsets}, self._stream)
                self._resident = buffers["residues"], buffers["offsets"]
                self._budget -= self._residues.nbytes + self._offsets.nbytes
            gpu.wait(self._stream)

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

        Yields the end of the finished subjects after each launch (several times the same value if subjects take several launches); all
        columns of `out` before it are written. Closing the generator stops the computation.

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

        Raises
        ------
        DeviceError
            If the device fails.
        DeviceMemoryError
            If not even one subject fits. Columns after the last yielded end are unchanged.
        """
        last, self.cells_done = len(self._lengths) if last is None else last, 0
        numbers = self._numbers_of(matrix_scores, gap_open, gap_extend)
        try:
            work, loader, batch = self._begun(queries, numbers, first, last)
            while batch is not None:
                following: _Batch | None = None
                for i, _ in enumerate(work.score(batch)):
                    if i == 0:  # while the kernels run
                        following = next(loader, None)
                    work.wait()
                    yield batch.first
                work.deliver(batch, out)
                self.cells_done = sum(map(len, queries)) * int(self._offsets[batch.last] - self._offsets[first])
                yield batch.last
                batch = following
        finally:
            for stream in (self._stream, self._side_stream, self._copies):
                self._gpu.wait(stream)

    def work(self, lengths: Sequence[int], first: int = 0, last: int | None = None) -> OperationCounts:
        """Return the operations of scoring queries of the given lengths against the subjects `first:last`.

        An operation is a matrix cell; repeated cells after an overflow are not counted.
        """
        last = len(self._lengths) if last is None else last
        cuts, rounds, cells, blocks, shared = self._cuts(first, last, len(lengths)), 0, 0, 0, 0
        words_in = -(-(sum(lengths) + 2 * _MATRIX_BYTES) // 4)
        for begun, stop in cuts:
            sizes, rows, order = self._by_length(begun, stop)
            batch = _Batch(begun, stop, 0, 0, int(order is not None), sizes, rows)
            words_in += (0 if order is None else batch.n) + (0 if self._resident else -(-int(rows[-1]) // 4) + 2 * (batch.n + 1))
            for chunks in self._partitions(self._kind, lengths, batch):
                for part, pairs in chunks:
                    rows_of_part = int(rows[part.last] - rows[part.first])
                    passes = sum(_has_before(pair) + _has_after(pair) for pair in pairs)
                    rounds += len(pairs)
                    cells += rows_of_part * sum(strip.n for pair in pairs for strip in pair if strip)
                    blocks += len(pairs) * -(-rows_of_part // 32) + passes * -(-rows_of_part // 4)
                    shared = max(shared, self._shared_bytes(part))
        return OperationCounts(rounds, cells, blocks, words_in, len(lengths) * (last - first + len(cuts)), shared)

    def costs(self, lengths: Sequence[int]) -> NDArray[np.float64]:
        """Return the cost of each subject, (n,), for partitioning: matrix cells with queries of the given lengths, plus a constant."""
        return sum(lengths) * (self._lengths + _ROWS_OF_SUBJECT).astype(np.float64)

    def _partitions(self, kind: int, lengths: Sequence[int], batch: _Batch) -> Iterator[list[tuple[Part, list[_Pair]]]]:
        """Yield groups of concurrent parts of a batch, with the strips of each launch; the groups are scored one after the other."""
        for in_word, queries in query_groups(kind, lengths) if batch.n else ():
            parts = self._parts(kind, in_word, [lengths[query] for query in queries], batch)
            has_halves = in_word == 1 and kind != THIRTY_TWO_BITS
            yield [(part, _pairs(queries, lengths, part.shape.width, has_halves)) for part in parts]

    def _shared_bytes(self, part: Part) -> int:
        """Return the bytes of shared memory of a block. Blocks of concurrent parts do not run on the same multiprocessor."""
        needed = part.shape.shared_bytes
        return needed if part.blocks == self._multiprocessors else max(needed, self._half_shared)

    def _numbers_of(self, matrix_scores: NDArray[np.integer], gap_open: int, gap_extend: int) -> tuple[_Numbers, _Numbers]:
        """Return the scores and gap costs in the usual number type, and in 32 bits; the results are cached for unchanged arguments."""
        scores, opening = np.asarray(matrix_scores, np.int64), gap_open + gap_extend
        key = scores.tobytes() + np.array([opening, gap_extend]).tobytes()
        if self._scheme is None or self._scheme[0] != key:
            largest = max(opening, gap_extend, int(np.abs(scores).max(initial=0)))
            wide = _Numbers.of(THIRTY_TWO_BITS, scores, opening, gap_extend)
            fits = self._kind in _GREATEST and largest <= _LARGEST_COST[self._kind]
            self._scheme = key, (_Numbers.of(self._kind, scores, opening, gap_extend) if fits else wide, wide)
        return self._scheme[1]

    def _begun(
        self, queries: Sequence[NDArray[np.int8]], numbers: tuple[_Numbers, _Numbers], first: int, last: int
    ) -> tuple[_Work, Iterator[_Batch], _Batch | None]:
        """Allocate device memory and load the first batch; the batches are smaller if the device has too little memory."""
        while True:
            cuts = self._cuts(first, last, len(queries))
            try:
                work = _Work(self, queries, numbers, cuts)
                loader = self._loaded(cuts)
                return work, loader, next(loader, None)
            except DeviceMemoryError:
                self._gpu.wait(self._copies)  # the queries may already be in transfer
                if all(stop - begun == 1 for begun, stop in cuts):
                    raise
                self._budget //= 2

    def _cuts(self, first: int, last: int, n_queries: int) -> list[tuple[int, int]]:
        """Return the ranges of subjects that fit on the device."""
        of_subject = 4 * (n_queries + 1) + _BORDER_BYTES + (0 if self._is_sorted else 8) + (0 if self._resident else 16)
        of_residue = _BORDER_BYTES + (0 if self._resident else 2)
        if self._resident and of_residue * int(self._offsets[last] - self._offsets[first]) + of_subject * (last - first) <= self._budget:
            return [(first, last)] if first < last else []
        cost = of_residue * (self._offsets[first : last + 1] - self._offsets[first]) + of_subject * np.arange(last - first + 1)
        cuts, begun = [], first
        while begun < last:
            stop = first + int(np.searchsorted(cost, cost[begun - first] + self._budget, side="right")) - 1
            if stop == begun:
                raise DeviceMemoryError(
                    f"{self._gpu.name} has {self._budget / 1e6:,.0f} MB of memory available, not enough for one sequence"
                )
            if not self._resident:
                most = int(np.searchsorted(self._offsets, self._offsets[begun] + _RESIDUES_OF_BATCH, side="right")) - 1
                stop = min(stop, max(most, begun + 1))
            cuts.append((begun, min(stop, last)))
            begun = cuts[-1][1]
        return cuts

    def _loaded(self, cuts: list[tuple[int, int]]) -> Iterator[_Batch]:
        """Yield the batches on the device, each loaded while the previous one may still be scored."""
        gpu, offsets = self._gpu, self._offsets
        maximum_residues = 0 if self._resident else max((int(offsets[last] - offsets[first]) for first, last in cuts), default=0)
        most = max((last - first for first, last in cuts), default=0)
        slots = [_Slot(gpu, maximum_residues, most, not self._resident, not self._is_sorted) for _ in cuts[:2]]
        for i, (first, last) in enumerate(cuts):
            slot = slots[i % 2]
            lengths, rows, order = self._by_length(first, last)
            if order is not None:
                slot.load("order", order, self._copies)
            if self._resident is None:
                slot.load("residues", self._residues[offsets[first] : offsets[last]], self._copies)
                slot.load("offsets", offsets[first : last + 1], self._copies)
                positions = slot.address("residues"), slot.address("offsets")
            else:
                positions = gpu.address(self._resident[0]) + int(offsets[first]), gpu.address(self._resident[1]) + 8 * first
            gpu.wait(self._copies)
            yield _Batch(first, last, *positions, 0 if order is None else slot.address("order"), lengths, rows, slot)

    def _by_length(self, first: int, last: int) -> _InOrder:
        """Return the subjects `first:last` sorted by length; the result of the previous call is cached."""
        if self._in_order is None or self._in_order[0] != (first, last):
            lengths, order = self._lengths[first:last], None
            if self._is_sorted:
                result = lengths[::-1], self._offsets[last] - self._offsets[first : last + 1][::-1]
            else:
                order = np.argsort(-lengths, kind="stable").astype(np.uint32)
                result = lengths[order], np.concatenate(([0], np.cumsum(lengths[order])))
            self._in_order = (first, last), (*result, order)
        return self._in_order[1]

    def _parts(self, numbers: int, in_word: int, lengths: Sequence[int], batch: _Batch) -> list[Part]:
        """Return the parts of a batch for queries of the given lengths; the result of the previous call is cached."""
        if self.n_longest is not None:
            return self._parts_as_set(numbers, in_word, lengths, batch)
        key = numbers, in_word, tuple(lengths), batch.first, batch.last
        if key not in self._plans:
            if len(self._plans) == _PLANS_CACHED:
                del self._plans[next(iter(self._plans))]
            self._plans[key] = self._planner.parts(numbers, in_word, lengths, batch.subjects(batch.n), batch.lengths, batch.rows)
        return self._plans[key]

    def _parts_as_set(self, numbers: int, in_word: int, lengths: Sequence[int], batch: _Batch) -> list[Part]:
        n, (lanes, columns, threads, blocks) = min(self.n_longest or 0, batch.n), self.longest_shape
        others = batch.subjects(batch.n)._replace(longest=int(batch.lengths[min(n, batch.n - 1)]))
        whole = self._planner.shape(numbers, in_word, lengths, others)
        if n == 0:
            return [whole]
        shape = AlignmentShape(numbers, in_word, lanes, columns, threads)
        rest = [whole._replace(first=n, last=batch.n, blocks=max(1, self._multiprocessors - blocks))] if n < batch.n else []
        return [Part(0, n, shape, blocks), *rest]


class _Slot:
    """Device and pinned memory of a batch."""

    def __init__(self, gpu: Gpu, n_residues: int, n: int, with_residues: bool, with_order: bool) -> None:
        self._gpu = gpu
        sizes = {"residues": n_residues, "offsets": 8 * (n + 1)} if with_residues else {}
        sizes |= {"order": 4 * n} if with_order else {}
        self._buffers = {name: gpu.buffer(size) for name, size in sizes.items()}
        self._pinned = {name: gpu.pinned(size) for name, size in sizes.items()}

    def address(self, name: str) -> int:
        """Return the device address of a column."""
        return self._gpu.address(self._buffers[name])

    def load(self, name: str, values: NDArray, stream: Any) -> None:
        """Start sending a column; the transfer of the previous column must be complete."""
        staged = self._pinned[name][: values.nbytes].view(values.dtype)
        staged[:] = values
        self._gpu.upload(self._buffers[name], staged, stream)


@dataclass(frozen=True)
class _Launch:
    """Launch of a strip (range of columns) of one or two queries against a part of the subjects of a batch.

    `subjects` is the argument of the kernel; its addresses of borders are set when the kernel is launched.
    """

    part: Part
    pair: _Pair
    subjects: NDArray[np.void]
    border: int  # byte offset of the part's border
    scores: int  # byte offset of the score of the first query with the part's first subject
    row_bytes: int  # bytes of a row, which has the scores of one query
    stream: Any
    cells: int


class _Work:
    """Queries of a call on the device, with space for the scores of a batch.

    The buffer `words`, initially 0, contains the counters from which warps take subjects, the overflow flags of queries, and the scores.
    """

    def __init__(
        self, search: AlignmentSearch, queries: Sequence[NDArray[np.int8]], numbers: tuple[_Numbers, _Numbers], cuts: list[tuple[int, int]]
    ) -> None:
        gpu, offsets = search._gpu, search._offsets
        self._search, self._gpu, self._stream = search, gpu, search._stream
        self._narrow, self._wide = numbers
        self._lengths = [len(query) for query in queries]
        n = max((last - first for first, last in cuts), default=0)
        n_residues = max((int(offsets[last] - offsets[first]) for first, last in cuts), default=0)
        packed = np.concatenate([self._wide.matrix.reshape(-1).view(np.int8), self._narrow.matrix.reshape(-1).view(np.int8), *queries])
        n_scores, n_queries = len(queries) * n, len(queries)
        self._words, self._found = gpu.buffer(4 * (_COUNTERS + n_queries + n_scores)), gpu.buffer(4 * (n + 1))
        self._border = gpu.buffer(_BORDER_BYTES * (n_residues + n) + 64)
        self._sent, self._packed = gpu.buffer(packed.nbytes), packed
        self._words_at, self._border_at, self._sent_at = (gpu.address(buffer) for buffer in (self._words, self._border, self._sent))
        self._n_counted = 0
        self._begins = (2 * self._wide.matrix.nbytes + np.cumsum([0, *self._lengths])).tolist()
        staged = n_queries + n_scores
        self._staged = gpu.pinned(4 * (staged if 4 * staged <= _STAGED_BYTES else n_queries)).view(np.int32)
        gpu.upload(self._sent, packed, search._copies)

    def wait(self) -> None:
        """Wait until all started kernels and transfers are complete."""
        self._gpu.wait(self._search._side_stream)
        self._gpu.wait(self._stream)

    def score(self, batch: _Batch) -> Iterator[None]:
        """Score all queries against a batch; yields while the device is busy."""
        search, n_queries = self._search, len(self._lengths)
        # The streams start after this; it runs while the launches are being prepared.
        self._gpu.clear(self._words, 4 * (_COUNTERS + n_queries * (1 + batch.n)), search._copies)
        self._n_counted = 0
        for chunks in search._partitions(self._narrow.kind, self._lengths, batch):
            launches = self._launches(batch, chunks)
            self._gpu.wait(search._copies)
            if len(chunks) > 1:  # wait before reusing buffers that the streams share
                self.wait()
            yield from self._launched(launches, self._narrow)
        self._gpu.wait(search._copies)
        self._gpu.wait(search._side_stream)
        self._gpu.download(self._staged[: self._n_staged(batch)], self._words, self._stream, offset=4 * _COUNTERS)
        yield
        for query in np.flatnonzero(self._staged[:n_queries]).tolist():
            yield from self._score_overflows(query, batch)

    def _n_staged(self, batch: _Batch) -> int:
        """Return the number of words that are fetched through pinned memory: the overflow flags and, if there is space, the scores."""
        n_queries = len(self._lengths)
        return n_queries * (1 + batch.n) if len(self._staged) >= n_queries * (1 + batch.n) else n_queries

    def _score_overflows(self, query: int, batch: _Batch) -> Iterator[None]:
        """Compute again, with 32 bits, the scores of a query that overflowed."""
        gpu, stream, count = self._gpu, self._stream, np.zeros(1, np.uint32)
        gpu.clear(self._found, 4, stream)
        scores = np.uint64(self._words_at + self._row(query, batch))
        arguments = scores, np.uint32(batch.n), np.int32(self._narrow.most), self._found
        gpu.launch(_FILE, "list_overflows", _list_blocks(batch.n), _LIST_THREADS, arguments, stream)
        gpu.download(count, self._found, stream)
        gpu.wait(stream)
        some = batch.subjects(int(count[0]))
        part = self._search._planner.shape(THIRTY_TWO_BITS, 1, [self._lengths[query]], some)
        subjects = self._subjects(batch, part, gpu.address(self._found) + 4, some.n)
        pairs = _pairs([query], self._lengths, part.shape.width, False)
        yield from self._launched([self._launch(batch, part, pair, subjects, some.rows, stream) for pair in pairs], self._wide)
        n = len(self._lengths)
        if self._n_staged(batch) > n:
            row = self._staged[n + query * batch.n : n + (query + 1) * batch.n]
            gpu.download(row, self._words, stream, offset=self._row(query, batch))
        yield

    def _row(self, query: int, batch: _Batch) -> int:
        """Return the byte offset of the scores of a query."""
        return 4 * (_COUNTERS + len(self._lengths) + query * batch.n)

    def _launches(self, batch: _Batch, parts: list[tuple[Part, list[_Pair]]]) -> list[_Launch]:
        """Return the launches of all parts of a batch, alternating between concurrent parts."""
        streams = (self._stream,) if len(parts) == 1 else (self._search._side_stream, self._stream)
        of_parts: list[list[tuple[float, _Launch]]] = []
        border = 0
        for (part, pairs), stream in zip(parts, streams, strict=True):
            subjects, rows = (
                self._subjects(batch, part, batch.order, part.last - part.first),
                int(batch.rows[part.last] - batch.rows[part.first]),
            )
            some = [self._launch(batch, part, pair, subjects, rows, stream, border) for pair in pairs]
            of_parts.append([((i + 1) / len(some), launch) for i, launch in enumerate(some)])
            if not batch.order:
                border += 16 * ((rows + part.last - part.first) // 2 + 2)
        return [launch for _, launch in sorted((item for items in of_parts for item in items), key=lambda item: item[0])]

    def _subjects(self, batch: _Batch, part: Part, order: int, n_items: int) -> NDArray[np.void]:
        """Return the argument of the kernel that describes subjects.

        If the batch is sorted by length, the argument describes the subjects of `part` only. Otherwise it describes the whole batch, and
        the address of the order of the subjects.
        """
        if order:
            first = 4 * part.first if order == batch.order else 0
            return np.array((batch.residues, batch.offsets, order + first, 0, 0, batch.n, n_items), _SUBJECTS)
        before = int(batch.rows[-1] - batch.rows[part.last])
        return np.array((batch.residues + before, batch.offsets + 8 * (batch.n - part.last), 0, 0, 0, n_items, n_items), _SUBJECTS)

    def _launch(
        self, batch: _Batch, part: Part, pair: _Pair, subjects: NDArray[np.void], rows: int, stream: Any, border: int = 0
    ) -> _Launch:
        scores = self._row(0, batch) + (0 if subjects["order"] else 4 * (batch.n - part.last))
        return _Launch(part, pair, subjects, border, scores, 4 * batch.n, stream, sum(strip.n for strip in pair if strip) * rows)

    def _launched(self, launches: list[_Launch], numbers: _Numbers) -> Iterator[None]:
        """Launch the kernels in groups; yields between groups."""
        cells = 0
        for launch in launches:
            if cells >= _CELLS_OF_GROUP:
                yield
                cells = 0
            self._start(launch, numbers)
            cells += launch.cells

    def _start(self, launch: _Launch, numbers: _Numbers) -> None:
        gpu, part, shape = self._gpu, launch.part, launch.part.shape
        if self._n_counted == _COUNTERS:
            self.wait()
            gpu.clear(self._words, 4 * _COUNTERS, self._stream)
            gpu.wait(self._stream)
            self._n_counted = 0
        border = self._border_at + launch.border
        halves = (0xFFFF, 0xFFFF0000) if shape.subjects == 1 and numbers is not self._wide else (0xFFFFFFFF, 0)
        retained = sum(half for strip, half in zip(launch.pair, halves, strict=True) if strip and strip.begin)
        subjects = launch.subjects.copy()
        subjects["border_in"], subjects["border_out"] = border if retained else 0, border if _has_after(launch.pair) else 0
        strips = np.array((*(self._half(launch, strip) for strip in launch.pair), retained, numbers.most), _STRIPS)
        matrix = self._sent_at + (0 if numbers is self._wide else self._wide.matrix.nbytes)
        # As raw bytes, since accessing fields of structs through CuPy is slow.
        structs = subjects.view(f"V{_SUBJECTS.itemsize}"), strips.view(f"V{_STRIPS.itemsize}")
        arguments = (
            *structs,
            np.uint64(matrix),
            np.uint32(1),
            np.uint64(self._words_at + 4 * self._n_counted),
            np.uint32(1),
            np.uint32(1 << 16),
        )
        self._n_counted += 1
        blocks = min(part.blocks, -(-int(subjects["n_items"]) // shape.subjects_of_block))
        gpu.launch(
            _FILE,
            "score_strips",
            blocks,
            shape.threads,
            arguments,
            launch.stream,
            shared_bytes=self._search._shared_bytes(part),
            defines=(*shape.macros(), *numbers.macros),
        )

    def _half(self, launch: _Launch, strip: _Strip | None) -> tuple[int, int, int, int]:
        """Return the addresses of the residues, scores and overflow flag of a strip, and the number of its residues; zeros for None."""
        if strip is None:
            return 0, 0, 0, 0
        query_scores = strip.query * launch.row_bytes
        residues = self._sent_at + self._begins[strip.query] + strip.begin
        passed = self._words_at + 4 * (_COUNTERS + strip.query)
        return residues, self._words_at + launch.scores + query_scores, passed, strip.n

    def deliver(self, batch: _Batch, out: NDArray[np.int32]) -> None:
        """Copy the scores of a batch to their columns of `out`."""
        n = len(self._lengths)
        if self._n_staged(batch) > n:
            out[:, batch.first : batch.last] = self._staged[n : n * (1 + batch.n)].reshape(n, batch.n)
            return
        for query, row in enumerate(out):
            self._gpu.download(row[batch.first : batch.last], self._words, self._stream, offset=self._row(query, batch))
        self._gpu.wait(self._stream)


def _list_blocks(n: int) -> int:
    return min(1024, -(-n // _LIST_THREADS))
