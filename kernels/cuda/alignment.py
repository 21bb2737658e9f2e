"""Smith-Waterman scores of queries against a database on a GPU: those of `kernels.cpu.alignment`, with the kernels of alignment.cu.

The database stays on the device where it fits; else it comes in batches through pinned buffers, the next one while one is scored. A launch
computes a strip of the columns of two queries, or of one query with two subjects at a time. What leaves the strip on its right stays in
device memory for the next launch. Pairs whose score passes what the numbers hold are listed on the device and scored again with 32 bits.

ATGPU analysis, for queries of m residues in all against n subjects of r residues in all, in strips of w columns (a word has 4 bytes):

* rounds: the batches of the database, one where the memory suffices, and m / 2w launches in each (m / w with two
  subjects, and with 32 bits);
* words in: r / 4 + 2n, once where the database stays; out: n for each query;
* operations: m r cells; for two of them 3.8 on the slower pipe (4.8 with two subjects) and 2.3 on the multiplier's, with DPX;
* memory blocks: one of 32 bytes for 4 residues of a subject and strip, in and out, besides the residues;
* shared memory: 112 bytes for each column of a strip, 56 with two subjects.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.cuda.modules import Card, sent
from kernels.device import DeviceMemoryError

__all__ = ["HALF_PRECISION", "SIXTEEN_BITS", "THIRTY_TWO_BITS", "AlignmentSearch"]

SIXTEEN_BITS, HALF_PRECISION, THIRTY_TWO_BITS = 1, 2, 3
"""Numbers that the kernels compute with: NUMBERS of alignment.cu."""

_FILE = "alignment.cu"
_TABLE_ROWS = 28
_LANES, _COLUMNS = (2, 4, 8, 16, 32), (16, 24, 32, 40, 48, 56, 64, 72)
_LIST_THREADS = 256
_COUNTERS = 4096
_SHARE_OF_FREE_MEMORY = 0.8
_RESIDUES_OF_BATCH = 1 << 27  # where the database does not stay on the device
_BORDER_BYTES = 8  # of a residue
_CELLS_OF_GROUP = 250_000_000_000  # between two looks at a cancel: 50 ms on an H200
_GREATEST = {SIXTEEN_BITS: (1 << 15) - 1, HALF_PRECISION: 1 << 11}
_LARGEST_COST = {SIXTEEN_BITS: 1 << 12, HALF_PRECISION: 1 << 9}  # of a gap's residue or, below zero, of a pair; and greatest score
# Measured on an H200. What two rows of a lane's columns cost, in cycles of a quarter of a multiprocessor: each cell, the merging of two
# subjects' scores, and all that is not a cell; how much more by subjects of a word and threads of a block; and how long they take a warp
# that has the multiprocessor for itself, for each column.
_CELL_CYCLES = {SIXTEEN_BITS: 9.5, HALF_PRECISION: 13.0, THIRTY_TWO_BITS: 11.0}
_MERGING_CYCLES, _STEP_CYCLES, _COLUMN_LATENCY = 2.0, 80.0, 40.0
_SLOWER = {(1, 256): 1.04, (2, 384): 1.02}


@dataclass(frozen=True)
class _Numbers:
    """A scheme in the numbers of one kind, as the kernels take them."""

    kind: int
    matrix: NDArray[np.int32]
    most: int  # the greatest score that is certainly right
    macros: tuple[str, ...]  # of alignment.cu

    @classmethod
    def of(cls, kind: int, scores: NDArray[np.int64], opening: int, extending: int) -> _Numbers:
        """`opening` : cost of a gap's first residue."""
        table, zero = scores + opening, 0
        if kind == SIXTEEN_BITS:
            zero = opening + extending
            words = zero * 0x10001, -opening * 0x10001, (-extending & 0xFFFF) * 0x10001, -extending * 0x10001
        elif kind == HALF_PRECISION:
            table, less_opening, less_extending = (_half_bits(values) for values in (table, -opening, -extending))
            words = 0, int(less_opening) * 0x10001, int(less_extending) * 0x10001, int(less_extending) * 0x10001
        else:
            words = 0, -opening, -extending, -extending
        most = _GREATEST[kind] - max(0, int(scores.max())) - zero if kind in _GREATEST else np.iinfo(np.int32).max
        names = "ZERO", "MINUS_OPENING", "MINUS_EXTENDING", "MINUS_EXTENDING_WHOLE"
        macros = tuple(f"{name}={word & 0xFFFFFFFF:#x}u" for name, word in zip(names, words, strict=True))
        return cls(kind, np.ascontiguousarray(table, np.int32), most, (*macros, f"BORROWS={int(table.min() < 0)}"))


def _half_bits(values: Any) -> NDArray[np.int64]:
    return np.asarray(values, np.float16).view(np.uint16).astype(np.int64)


@dataclass(frozen=True)
class _Shape:
    """How a launch is cut: `subjects` of a word, lanes of a subject, columns of a lane."""

    numbers: int
    subjects: int
    lanes: int
    columns: int
    threads: int

    @property
    def width(self) -> int:
        """Columns of a strip."""
        return self.lanes * self.columns

    @property
    def shared_bytes(self) -> int:
        """Of the table of scores."""
        return _TABLE_ROWS * max(self.lanes, 8) * self.columns * (4 // self.subjects)

    @property
    def subjects_of_block(self) -> int:
        """How many the warps of a block score at a time."""
        return self.threads // self.lanes * self.subjects

    def macros(self) -> tuple[str, ...]:
        """Of alignment.cu."""
        return (
            f"NUMBERS={self.numbers}", f"SUBJECTS={self.subjects}", f"LANES={self.lanes}", f"COLUMNS={self.columns}",
            f"THREADS={self.threads}",
        )  # fmt: skip


@dataclass(frozen=True)
class _Strip:
    """Columns of a query: its number, the first column and how many."""

    query: int
    begin: int
    n: int
    is_last: bool


@dataclass(frozen=True)
class _Batch:
    """Subjects `first:last`, on the device: addresses of their residues, offsets and, unless they stand by length, order."""

    first: int
    last: int
    n_residues: int
    longest: int
    residues: int
    offsets: int
    order: int

    @property
    def n(self) -> int:
        """Its subjects."""
        return self.last - self.first


class AlignmentSearch:
    """A database of sequences on a device, ready to be searched.

    Parameters
    ----------
    card : the device.
    residues : int8 codes: A to Z are 0 to 25, ``*`` is 26. offsets : (n + 1,) int64, where each sequence begins. A database in order of
        length, shortest first, needs no sorting here.
    memory_bytes : of the device, at most; 80 % of what is free when None.
    numbers : what to compute with; by the card's compute capability when None.
    shape : lanes of a subject and columns of a lane; those that should be fastest when None.
    threads : of a block; as many as the registers suffice for when None.
    """

    def __init__(
        self,
        card: Card,
        residues: NDArray[np.int8],
        offsets: NDArray[np.int64],
        *,
        memory_bytes: int | None = None,
        numbers: int | None = None,
        shape: tuple[int, int] | None = None,
        threads: int | None = None,
    ) -> None:
        self._card, self._residues, self._offsets = card, residues, np.ascontiguousarray(offsets, np.int64)
        self._shape_wished, self._threads = shape, threads
        capability = card.compute_capability()
        self._numbers = numbers or (SIXTEEN_BITS if capability >= 90 else HALF_PRECISION if capability >= 80 else THIRTY_TWO_BITS)
        self._multiprocessors, self._shared_bytes = card.multiprocessors(), card.most_shared_bytes()
        free = int(card.free_bytes() * _SHARE_OF_FREE_MEMORY)
        self._budget = free if memory_bytes is None else min(free, memory_bytes)
        self._lengths = np.diff(self._offsets)
        self._is_sorted = bool((self._lengths[1:] >= self._lengths[:-1]).all())
        self._stream, self._copies = card.stream(), card.stream()
        self._resident: tuple[Any, Any] | None = None
        if self._residues.nbytes + self._offsets.nbytes <= self._budget // 3:  # the rest is for borders, scores and lists
            with suppress(DeviceMemoryError):
                buffers = sent(card, {"residues": self._residues, "offsets": self._offsets}, self._stream)
                self._resident = buffers["residues"], buffers["offsets"]
                self._budget -= self._residues.nbytes + self._offsets.nbytes
            card.wait(self._stream)

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
        """Score every query against the subjects `first:last`, exactly.

        Yields after each piece of work the end of what is done, often the same again: `out` holds all subjects before it. Closing the
        generator stops the work.

        Parameters
        ----------
        queries : codes of each. matrix_scores : (27, 27), by the codes of the query's and of the subject's residue.
        gap_open, gap_extend : a gap of k residues costs ``gap_open + k * gap_extend``.
        out : (queries, subjects) int32, whose columns `first:last` are filled; other columns are left alone.

        Raises
        ------
        DeviceError : the device failed. DeviceMemoryError : not even one subject fits. Columns from the last yielded end on are as they
        were.
        """
        last = len(self._lengths) if last is None else last
        scheme = np.asarray(matrix_scores, np.int64), gap_open + gap_extend, gap_extend
        try:
            work, loader, batch = self._begun(queries, scheme, first, last)
            while batch is not None:
                following: _Batch | None = None
                for i, _ in enumerate(work.score(batch)):
                    if i == 0:  # while the kernels run
                        following = next(loader, None)
                    self._card.wait(self._stream)
                    yield batch.first
                work.download(batch, out)
                yield batch.last
                batch = following
        finally:
            self._card.wait(self._stream)
            self._card.wait(self._copies)

    def _begun(
        self, queries: Sequence[NDArray[np.int8]], scheme: tuple[NDArray[np.int64], int, int], first: int, last: int
    ) -> tuple[_Work, Iterator[_Batch], _Batch | None]:
        """Room on the device, all that a call needs, with the first batch there; in smaller batches where the device refuses it."""
        while True:
            cuts = self._cuts(first, last, len(queries))
            try:
                work = _Work(self._card, self._stream, queries, scheme, self._numbers, self._plan, cuts, self._offsets)
                loader = self._loaded(cuts)
                return work, loader, next(loader, None)
            except DeviceMemoryError:
                if all(stop - begun == 1 for begun, stop in cuts):
                    raise
                self._budget //= 2

    def _cuts(self, first: int, last: int, n_queries: int) -> list[tuple[int, int]]:
        """Batches of subjects that fit on the device."""
        of_subject = 4 * (n_queries + 1) + _BORDER_BYTES + (0 if self._is_sorted else 8) + (0 if self._resident else 16)
        of_residue = _BORDER_BYTES + (0 if self._resident else 2)
        if self._resident and of_residue * int(self._offsets[last] - self._offsets[first]) + of_subject * (last - first) <= self._budget:
            return [(first, last)] if first < last else []
        cost = of_residue * (self._offsets[first : last + 1] - self._offsets[first]) + of_subject * np.arange(last - first + 1)
        cuts, begun = [], first
        while begun < last:
            stop = first + int(np.searchsorted(cost, cost[begun - first] + self._budget, side="right")) - 1
            if stop == begun:
                raise DeviceMemoryError(f"{self._card.name} has {self._budget / 1e6:,.0f} MB to give, not enough for one sequence")
            if not self._resident:
                most = int(np.searchsorted(self._offsets, self._offsets[begun] + _RESIDUES_OF_BATCH, side="right")) - 1
                stop = min(stop, max(most, begun + 1))
            cuts.append((begun, min(stop, last)))
            begun = cuts[-1][1]
        return cuts

    def _loaded(self, cuts: list[tuple[int, int]]) -> Iterator[_Batch]:
        """The batches, each on the device when it comes, which may be while the one before is still scored."""
        card, offsets = self._card, self._offsets
        most_residues = 0 if self._resident else max((int(offsets[last] - offsets[first]) for first, last in cuts), default=0)
        most = max((last - first for first, last in cuts), default=0)
        slots = [_Slot(card, most_residues, most, not self._resident, not self._is_sorted) for _ in cuts[:2]]
        for i, (first, last) in enumerate(cuts):
            lengths = self._lengths[first:last]
            n_residues, longest = int(offsets[last] - offsets[first]), int(lengths[-1] if self._is_sorted else lengths.max())
            slot = slots[i % 2]
            if not self._is_sorted:
                slot.load("order", np.argsort(-lengths, kind="stable").astype(np.uint32), self._copies)
            if self._resident is None:
                slot.load("residues", self._residues[offsets[first] : offsets[last]], self._copies)
                slot.load("offsets", offsets[first : last + 1], self._copies)
                places = slot.address("residues"), slot.address("offsets")
            else:
                places = card.address(self._resident[0]) + int(offsets[first]), card.address(self._resident[1]) + 8 * first
            card.wait(self._copies)
            yield _Batch(first, last, n_residues, longest, *places, 0 if self._is_sorted else slot.address("order"))

    def _plan(self, numbers: int, subjects: int, lengths: Sequence[int], batch: _Batch, n_items: int) -> _Shape:
        """The shape that should score queries of these lengths soonest, against `n_items` of a batch."""
        if self._shape_wished:
            return _Shape(numbers, subjects, *self._shape_wished, self._threads or _threads_for(self._shape_wished[1]))
        shapes = [_Shape(numbers, subjects, *one, self._threads or _threads_for(one[1])) for one in product(_LANES, _COLUMNS)]
        shapes = [shape for shape in shapes if shape.shared_bytes <= self._shared_bytes]
        rows = batch.n_residues * n_items / max(1, batch.n)
        cell_cycles = _CELL_CYCLES[numbers] + _MERGING_CYCLES * (subjects - 1)

        def seconds(shape: _Shape) -> float:
            steps = (rows + 2 * shape.lanes * n_items) * shape.lanes / (2 * 32 * subjects)
            whole = steps * (2 * cell_cycles * shape.columns + _STEP_CYCLES) / (4 * self._multiprocessors)
            whole *= _SLOWER.get((subjects, shape.threads), 1.0)
            alone = (batch.longest / 2 + shape.lanes) * (_COLUMN_LATENCY * shape.columns + _STEP_CYCLES)
            return max(whole, alone) * sum(-(-length // shape.width) for length in lengths)

        return min(shapes, key=seconds)


def _threads_for(columns: int) -> int:
    """Threads of a block, one on each multiprocessor, that keep so many columns in registers."""
    return 512 if columns <= 32 else 384 if columns <= 48 else 256


class _Slot:
    """Room on the device and in pinned memory for what a batch brings along."""

    def __init__(self, card: Card, n_residues: int, n: int, brings_residues: bool, brings_order: bool) -> None:
        self._card = card
        sizes = {"residues": n_residues, "offsets": 8 * (n + 1)} if brings_residues else {}
        sizes |= {"order": 4 * n} if brings_order else {}
        self._buffers = {name: card.buffer(size) for name, size in sizes.items()}
        self._pinned = {name: card.pinned(size) for name, size in sizes.items()}

    def address(self, name: str) -> int:
        """Where a column lies on the device."""
        return self._card.address(self._buffers[name])

    def load(self, name: str, values: NDArray, stream: Any) -> None:
        """Send a column. What was sent before must have arrived."""
        staged = self._pinned[name][: values.nbytes].view(values.dtype)
        staged[:] = values
        self._card.upload(self._buffers[name], staged, stream)


_Launch = tuple[_Shape, _Strip | None, _Strip | None]


class _Work:
    """The queries of a call on the device, with room for the scores of a batch."""

    def __init__(
        self,
        card: Card,
        stream: Any,
        queries: Sequence[NDArray[np.int8]],
        scheme: tuple[NDArray[np.int64], int, int],
        kind: int,
        plan: Callable[[int, int, Sequence[int], _Batch, int], _Shape],
        cuts: list[tuple[int, int]],
        offsets: NDArray[np.int64],
    ) -> None:
        self._card, self._stream, self._plan, self._multiprocessors = card, stream, plan, card.multiprocessors()
        self._lengths = [len(query) for query in queries]
        scores, opening, extending = scheme
        largest = max(opening, extending, int(np.abs(scores).max(initial=0)))
        self._wide = _Numbers.of(THIRTY_TWO_BITS, scores, opening, extending)
        fits = kind in _GREATEST and largest <= _LARGEST_COST[kind]
        self._narrow = _Numbers.of(kind, scores, opening, extending) if fits else self._wide
        self._begins = np.concatenate(([0], np.cumsum(self._lengths))).astype(np.int64)
        n = max((last - first for first, last in cuts), default=0)
        n_residues = max((int(offsets[last] - offsets[first]) for first, last in cuts), default=0)
        self._scores, self._found = [card.buffer(4 * n) for _ in queries], card.buffer(4 * (n + 1))
        self._border = card.buffer(_BORDER_BYTES * (n_residues + n + 2))
        self._counters, self._n_counted = card.buffer(4 * _COUNTERS), _COUNTERS
        residues = np.concatenate([np.zeros(0, np.int8), *queries]).astype(np.int8)
        buffers = sent(card, {"queries": residues, "wide": self._wide.matrix, "narrow": self._narrow.matrix}, stream)
        self._queries = buffers["queries"]
        self._matrices = {id(self._wide): buffers["wide"], id(self._narrow): buffers["narrow"]}
        card.wait(stream)

    def score(self, batch: _Batch) -> Iterator[None]:
        """Score all queries against a batch; comes back whenever the device has work for a while."""
        card, stream = self._card, self._stream
        for scores in self._scores:
            card.clear(scores, 4 * batch.n, stream)
        queries = [i for i, length in enumerate(self._lengths) if length]
        yield from self._launched(self._launches(queries, batch), batch, self._narrow, batch.order, batch.n)
        if self._narrow is not self._wide:
            for query in queries:
                yield from self._score_overflows(query, batch)

    def _score_overflows(self, query: int, batch: _Batch) -> Iterator[None]:
        card, stream = self._card, self._stream
        count = np.zeros(1, np.uint32)
        card.clear(self._found, 4, stream)
        arguments = self._scores[query], np.uint32(batch.n), np.int32(self._narrow.most), self._found
        card.launch(_FILE, "list_overflows", min(1024, -(-batch.n // _LIST_THREADS)), _LIST_THREADS, arguments, stream)
        card.download(count, self._found, stream)
        card.wait(stream)
        if count[0]:
            shape = self._plan(THIRTY_TWO_BITS, 1, [self._lengths[query]], batch, int(count[0]))
            launches: list[_Launch] = [(shape, strip, None) for strip in self._strips(query, shape.width)]
            yield from self._launched(launches, batch, self._wide, card.address(self._found) + 4, int(count[0]))

    def _strips(self, query: int, width: int) -> list[_Strip]:
        length = self._lengths[query]
        return [_Strip(query, begin, min(width, length - begin), begin + width >= length) for begin in range(0, length, width)]

    def _launches(self, queries: list[int], batch: _Batch) -> list[_Launch]:
        """Strips of two queries together, as far as the queries can be shared out between the halves of the words; the rest alone."""
        kind = self._narrow.kind
        by_length = sorted(queries, key=lambda query: -self._lengths[query])
        if kind == THIRTY_TWO_BITS:
            shape = self._plan(kind, 1, [self._lengths[query] for query in queries], batch, batch.n)
            return [(shape, strip, None) for query in by_length for strip in self._strips(query, shape.width)]
        alone: list[int] = []
        # A query longer than all others together would leave half of the words unused.
        while by_length and self._lengths[by_length[0]] > sum(self._lengths[query] for query in by_length[1:]):
            alone.append(by_length.pop(0))
        launches: list[_Launch] = []
        if by_length:
            shape = self._plan(kind, 1, [self._lengths[query] for query in by_length], batch, batch.n)
            halves: tuple[list[_Strip], list[_Strip]] = [], []
            for query in by_length:
                min(halves, key=len).extend(self._strips(query, shape.width))
            launches += [(shape, *pair) for pair in zip_longest(*halves)]
        for query in alone:
            shape = self._plan(kind, 2, [self._lengths[query]], batch, batch.n)
            launches += [(shape, strip, None) for strip in self._strips(query, shape.width)]
        return launches

    def _launched(self, launches: list[_Launch], batch: _Batch, numbers: _Numbers, order: int, n_items: int) -> Iterator[None]:
        cells = 0
        for shape, low, high in launches:
            self._launch(shape, low, high, batch, numbers, order, n_items)
            cells += sum(strip.n for strip in (low, high) if strip) * batch.n_residues * n_items // max(1, batch.n)
            if cells >= _CELLS_OF_GROUP:
                yield
                cells = 0
        yield

    def _launch(
        self, shape: _Shape, low: _Strip | None, high: _Strip | None, batch: _Batch, numbers: _Numbers, order: int, n_items: int
    ) -> None:
        card = self._card
        if self._n_counted == _COUNTERS:
            card.clear(self._counters, 4 * _COUNTERS, self._stream)
            self._n_counted = 0
        kept = 0
        for strip, half in ((low, 0xFFFF if shape.subjects == 1 and numbers is not self._wide else 0xFFFFFFFF), (high, 0xFFFF0000)):
            kept |= half if strip and strip.begin else 0
        goes_on = any(strip and not strip.is_last for strip in (low, high))
        border = card.address(self._border)
        arguments = (
            np.uint64(batch.residues), np.uint64(batch.offsets), np.uint32(batch.n), np.uint64(order), np.uint32(n_items),
            *self._half(low), *self._half(high), self._matrices[id(numbers)],
            np.uint64(border if kept else 0), np.uint64(border if goes_on else 0), np.uint32(kept), np.uint32(1),
            np.uint64(card.address(self._counters) + 4 * self._n_counted),
        )  # fmt: skip
        self._n_counted += 1
        blocks = min(self._multiprocessors, -(-n_items // shape.subjects_of_block))
        card.launch(
            _FILE, "score_strips", blocks, shape.threads, arguments, self._stream,
            shared_bytes=shape.shared_bytes, defines=(*shape.macros(), *numbers.macros),
        )  # fmt: skip

    def _half(self, strip: _Strip | None) -> tuple[np.uint64, np.int32, np.uint64]:
        """Where the residues of a strip lie, how many they are, and where the scores go."""
        if strip is None:
            return np.uint64(0), np.int32(0), np.uint64(0)
        residues = self._card.address(self._queries) + int(self._begins[strip.query]) + strip.begin
        return np.uint64(residues), np.int32(strip.n), np.uint64(self._card.address(self._scores[strip.query]))

    def download(self, batch: _Batch, out: NDArray[np.int32]) -> None:
        """Bring the scores of a batch to their columns of `out`."""
        for row, scores in zip(out, self._scores, strict=True):
            self._card.download(row[batch.first : batch.last], scores, self._stream)
        self._card.wait(self._stream)
