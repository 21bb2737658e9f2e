"""Alignment with a bounded number of gaps on a GPU; counterpart of `proteoscope.kernels.cpu.gapsmis`, with the kernels of gapsmis.cu.

References and reads stay on the device. Pairs are processed in blocks of similar lengths, and each launch has the plan predicted to be
fastest by `proteoscope.kernels.cuda.gapsmis_plan`. As on the CPU, alignments with short references are traced in one pass. For other
references, a first pass finds the end of the alignment, and a second one traces in a window before it.

Sending, alignment and results overlap. A block begins as soon as its own references and reads have arrived; those of later pairs are sent
meanwhile. The next block begins, on another stream, before the results of the previous one are returned.

ATGPU analysis of k pairs of a read of m bases and a reference of n bases, with at most z gaps, in strips of w columns. `ReadSearch._work`
computes these numbers in words of 4 bytes:

* rounds: a launch for each block of pairs; with tracing, two launches for as many pairs as have space for their directions, and one more
  for long references;
* words in: once (n + m) / 4 for each reference and read, and 2 for their starts; 4 k for the pairs, and k more if lengths differ; words
  out: 2 k, and with tracing another 6 k + (2 z + 1) k;
* operations: k m n (z + 1) cells, n rounded up to whole strips; two of them take 5 instructions, and 1 in the lowest layer;
* memory blocks: n / 32 and m / 32 of each pair, (2 z + 1) / 8 in and out for each row between two strips; with tracing z m n / 2 bytes
  and one block for each step back;
* shared memory: 128 bytes of scores; 4 KB for many symbols; with one reference per block, 2 bytes for each column and symbol.

Directions of each of two blocks need at most `direction_bytes`, or a quarter of the free memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.kernels.counts import OperationCounts, total
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.gapsmis_plan import (
    CELLS_OF_LAUNCH,
    CELLS_OF_PART,
    EIGHT,
    FOUR,
    MANY_TEXTS,
    NARROW,
    ONE_TEXT,
    PROFILE,
    TABLE,
    WIDE,
    GapsMisShape,
    Properties,
    Task,
    host_trace_seconds,
    seconds,
    shapes,
)
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.rates import USUAL_RATES, items_between_checks
from proteoscope.kernels.cuda.sending import Sending, sent
from proteoscope.kernels.device import DeviceMemoryError, UnsupportedSearchError
from proteoscope.kernels.gapsmis_layouts import (
    LOCAL,
    N_SYMBOLS,
    NO_ALIGNMENT,
    PREFIX,
    SINGLE_PASS,
    Alignments,
    GapRules,
    Sequences,
    score_bits,
    windows,
)

__all__ = ["ReadSearch"]

_FILE = "gapsmis.cu"
_CODES = N_SYMBOLS + 1
_PADDING = N_SYMBOLS
_PAIRS_OF_BLOCK = 1 << 20
_TRACE_THREADS, _NOTING_THREADS = 128, 256
_CELLS = {False: CELLS_OF_PART, True: CELLS_OF_LAUNCH}  # cells of a block, by whether its pairs share references
_BLOCKS = 8  # blocks per multiprocessor, whose warps take units in turn
_BORDER_BYTES = 1 << 29
_SENDERS = 4  # threads that send sequences; with eight, this thread waited longer for the interpreter (12.1 instead of 9.7 ms on an H200)
_TEXT_END, _GAPS, _COLUMNS_FOUND = 2, 5, 6  # rows of the results
_PAIRS = np.dtype(
    [
        *[
            (name, np.uint64)
            for name in (
                "texts",
                "patterns",
                "text_offsets",
                "pattern_offsets",
                "text_of",
                "pattern_of",
                "order",
                "window_begins",
                "window_ends",
                "chunks",
                "scores",
                "ranks",
                "diagonal",
            )
        ],
        *[
            (name, np.int32)
            for name in (
                "n",
                "first",
                "n_places",
                "n_items",
                "seed",
                "zero",
                "lowest",
                "gain",
                "loss",
                "n_symbols",
            )
        ],
    ]
)
"""Layout of the struct Pairs in gapsmis.cu."""
_RESULTS = np.dtype(
    [
        *[(name, np.uint64) for name in ("found", "runs", "border", "directions")],
        *[(name, np.int32) for name in ("strips", "steps", "border_rows")],
    ],
    align=True,
)
"""Layout of the struct Results in gapsmis.cu."""


@dataclass(frozen=True)
class _Scale:
    """Representation of scores in the number types of the GPU, scaled and shifted such that none is negative."""

    numbers: int
    times: int
    opening: int
    extending: int
    zero: int
    lowest: int

    @classmethod
    def fit(cls, rules: GapRules, longest: int, numbers: int, *, traces: bool) -> _Scale | None:
        """Return the scale of scores; None if the number type cannot hold the scores of reads of the given length.

        Impossible cells start at the cost of opening a gap and stay below the score of any possible cell, as in `score_bits`.
        """
        times, gain, loss = 4 if traces else 1, longest * rules.maximum_gain, int(rules.maximum_loss(longest))
        opening = times * (rules.gap_open + rules.gap_extend)
        zero = opening + times * (loss + 2 * gain + 2)
        most = (1 << 15 if numbers == NARROW else 1 << 31) - 1
        span = zero + times * (gain + 2 + max(0, -int(rules.matrix.min(initial=0))))
        return cls(numbers, times, opening, times * rules.gap_extend, zero, zero - times * (loss + 1)) if span <= most else None


@dataclass(frozen=True)
class _Launch:
    """Launch of a kernel for the pairs `first:last` of a pass (one run of the kernel over all pairs of a block).

    See the struct Pairs for `order` and `chunks`; `strips` and `steps` are the size of the directions of a warp.
    """

    shape: GapsMisShape
    task: Task
    first: int
    last: int
    order: NDArray[np.uint32] | None
    chunks: NDArray[np.int32] | None

    @property
    def n_items(self) -> int:
        """Number of warps with pairs, or of slots of a chunk."""
        if self.chunks is not None:
            return len(self.chunks) * (self.shape.threads // 32)
        return -(-(self.last - self.first) // self.shape.pairs_of_warp)


class ReadSearch:
    """References and reads on a device that can be aligned in any pairs (see `proteoscope.kernels.cpu.gapsmis.ReadSearch`).

    Parameters
    ----------
    device
        GPU.
    texts, patterns
        Sequences of references and of reads, with codes below `N_SYMBOLS`.
    rules
        Allowed alignments and their scores.

    Raises
    ------
    ValueError
        If scores of these reads could exceed 32 bits.
    UnsupportedSearchError
        If scores could exceed 30 bits, since two bits hold directions.
    DeviceMemoryError
        If references and reads do not fit.
    """

    shape: GapsMisShape | None = None
    """Plan of launches; by default the one predicted to be fastest."""
    numbers: int | None = None
    """NARROW or WIDE; None selects NARROW if the GPU has instructions for it and the scores fit."""
    scores: int | None = None
    """Source of scores for the plan MANY_TEXTS; by default selected by the number of symbols."""
    traces_on_host: bool | None = None
    """True to trace alignments on the CPU; by default the device predicted to be faster."""
    host_threads: int = 1
    """Number of CPU threads that trace alignments."""
    direction_bytes: int = 4 << 30
    """Maximum device memory for directions of each of two blocks."""

    def __init__(self, device: Gpu, texts: Sequences, patterns: Sequences, rules: GapRules) -> None:
        gpu = self._gpu = device
        self._texts, self._patterns, self._rules = texts, patterns, rules
        self._streams, self._stream = (gpu.stream(), gpu.stream()), gpu.stream(is_urgent=True)
        columns: dict[str, NDArray[Any]] = {
            "texts": texts.codes,
            "patterns": patterns.codes,
            "text_offsets": np.ascontiguousarray(texts.offsets, np.int64),
            "pattern_offsets": np.ascontiguousarray(patterns.offsets, np.int64),
        }
        self._sending = Sending(gpu, columns, self._stream, _SENDERS)
        self._columns = self._sending.buffers
        self._symbols, self._noted, self._seen = np.zeros(2, np.uint32), [0, 0], gpu.buffer(8)
        gpu.clear(self._seen, 8, self._stream)
        self._text_lengths, self._pattern_lengths = np.diff(texts.offsets), np.diff(patterns.offsets)
        self._longest = int(self._pattern_lengths.max(initial=0))
        if not score_bits(rules, self._longest):
            raise ValueError("scores could exceed 32 bits")
        self._properties = Properties(gpu.multiprocessors(), gpu.compute_capability(), gpu.maximum_shared_bytes(), gpu.rates)
        self._cells = {shared: items_between_checks(n, gpu.rates.maxima, USUAL_RATES.maxima) for shared, n in _CELLS.items()}
        self._scales = {traces: self._scale(traces) for traces in (False, True)}
        self._lengths_differ = _differ(self._text_lengths) or _differ(self._pattern_lengths)
        self._tables: dict[tuple[int, ...], tuple[dict[str, Any], Any]] = {}
        self._best: dict[tuple[Task, bool], GapsMisShape] = {}

    def align(
        self,
        text_of: NDArray[np.int64],
        pattern_of: NDArray[np.int64],
        out: Alignments,
        first: int = 0,
        last: int | None = None,
        *,
        traces: bool = True,
    ) -> Generator[int, None, None]:
        """Align the pairs `first:last` on the GPU (see `proteoscope.kernels.cpu.gapsmis.ReadSearch.align`).

        Raises
        ------
        DeviceError
            If the device fails.
        DeviceMemoryError
            If the directions of one warp do not fit.
        """
        last, done = len(text_of) if last is None else last, first
        blocks = deque[tuple[int, Generator[None, None, None]]]()  # that are begun
        try:
            for number, (begin, end) in enumerate(self._blocks(text_of[first:last], pattern_of[first:last])):
                rows = slice(first + begin, first + end)
                self._receive(text_of[rows], pattern_of[rows])
                block = _Block(self, text_of[rows], pattern_of[rows], self._streams[number % 2])
                blocks.append((first + end, block.align(traces, Alignments(*(column[rows] for column in out)))))
                next(blocks[-1][1])
                if number:
                    yield from self._finish(*blocks[0], done)
                    done = blocks.popleft()[0]
            for end, steps in blocks:
                yield from self._finish(end, steps, done)
        finally:
            for stream in (*self._streams, self._stream):
                self._gpu.wait(stream)

    def _finish(self, end: int, steps: Generator[None, None, None], done: int) -> Generator[int, None, None]:
        for _ in steps:
            yield done
        yield end

    def _receive(self, text_of: NDArray[np.int64] | None = None, pattern_of: NDArray[np.int64] | None = None) -> None:
        """Wait until references and reads, by default all, are on the device, with the symbols in them known."""
        gpu, columns, ends = self._gpu, self._columns, dict[str, int]()
        for name, offsets, of in (("text", self._texts.offsets, text_of), ("pattern", self._patterns.offsets, pattern_of)):
            n = len(offsets) - 1 if of is None else int(of.max(initial=-1)) + 1
            ends |= {f"{name}_offsets": 8 * (n + 1), f"{name}s": int(offsets[n])}
        is_new = self._sending.arrive(ends) or not any(self._noted)
        for which, name in enumerate(("texts", "patterns")):
            begin, end = self._noted[which] // 16 * 16, ends[name]  # the kernel reads 16 bytes
            if end > self._noted[which]:
                codes, seen = (np.uint64(gpu.address(buffer) + n) for buffer, n in ((columns[name], begin), (self._seen, 4 * which)))
                blocks = min(4 * self._properties.multiprocessors, -(-(end - begin) // (16 * _NOTING_THREADS)))
                gpu.launch("symbols.cu", "note_symbols", blocks, _NOTING_THREADS, (codes, np.int64(end - begin), seen), self._stream)
                self._noted[which], is_new = end, True
        if is_new:
            gpu.download(self._symbols, self._seen, self._stream)
            gpu.wait(self._stream)

    def _work(self, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64], *, traces: bool = True) -> OperationCounts:
        """Return the operations (cells) of aligning the given pairs, for references short enough for one pass."""
        every = []
        for begin, end in self._blocks(text_of, pattern_of):
            n, block = end - begin, _Block(self, text_of[begin:end], pattern_of[begin:end], self._stream)
            result = 4 * _COLUMNS_FOUND * n + 4 * (2 * self._rules.maximum_gaps + 1) * n if traces else 8 * n
            every.append(OperationCounts(0, 0, 0, 4 * n, result // 4, 0, 3))
            every += [self._launch_work(launch, block) for launch in block.launches(None, traces, None)]
        return total(*every)

    def _launch_work(self, launch: _Launch, block: _Block) -> OperationCounts:
        shape, task = launch.shape, launch.task
        n, m = block.sides(launch.order if launch.order is not None else np.arange(launch.first, launch.last), None)
        if launch.chunks is not None:  # one block per chunk
            positions = launch.chunks[:, :1] + np.arange(shape.pairs_of_block)
            inside = positions < launch.chunks[:, 1:]
            n, m = (np.where(inside, side[np.minimum(positions, len(side) - 1)], 0).ravel() for side in (n, m))
        workspace = launch.n_items * shape.pairs_of_warp - len(n)
        n, m = (np.append(side, np.zeros(max(0, workspace), np.int64)) for side in (n, m))
        strips = -(-n.reshape(launch.n_items, -1).max(axis=1) // shape.width)
        rows = m.reshape(launch.n_items, -1, shape.halves).max(axis=2).sum(axis=1)
        cells = int((strips * rows).sum()) * shape.width * (task.gaps + 1) * shape.halves
        border = int((np.maximum(strips - 1, 0) * rows).sum()) * 2 * (2 * task.gaps + 1) * 4 // 32
        written = (
            int((strips * rows).sum())
            * shape.lanes
            * shape.step_words(task.gaps, floored=task.mode == LOCAL and not self._rules.seed_length)
        )
        blocks = border + (int(n.sum() + m.sum()) // 32) + (written * 4 // 32 + int(m.sum()) if task.traces else 0)
        words_in = (0 if launch.order is None else len(launch.order)) + (0 if launch.chunks is None else launch.chunks.size)
        transfers = (launch.order is not None) + (launch.chunks is not None)
        return OperationCounts(1 + task.traces, cells, blocks, words_in, 0, shape.shared_bytes(task.n_symbols), transfers)

    def _best_shape(self, task: Task) -> GapsMisShape:
        """Return the plan predicted to be fastest."""
        if self.shape is not None and (self.shape.plan == MANY_TEXTS or (task.n <= self.shape.width and task.patterns_of_text > 1)):
            return self.shape
        key = replace(task, patterns_of_text=float(round(task.patterns_of_text))), True
        if key not in self._best:
            self._best[key] = min(shapes(task, self._properties), key=lambda shape: seconds(shape, task, self._properties))
        return self._best[key]

    def _is_traced_on_host(self, task: Task) -> bool:
        """Return True if tracing on the CPU is predicted to be faster than on the GPU."""
        if self.traces_on_host is not None:
            return self.traces_on_host
        scores = replace(task, traces=False)
        here = seconds(self._best_shape(scores), scores, self._properties) + host_trace_seconds(task, self.host_threads)
        return here < seconds(self._best_shape(task), task, self._properties)

    def _task(self, n_pairs: int, n: int, m: int, *, traces: bool, patterns_of_text: float = 1.0) -> Task:
        """Return a task of pairs with references of up to `n` and reads of up to `m` bases after the seed."""
        rules, scale = self._rules, self._scales[traces]
        return Task(
            n_pairs,
            n,
            m,
            rules.maximum_gaps,
            rules.mode,
            scale.numbers,
            self._score_source(traces),
            traces,
            patterns_of_text,
            len(self._symbols_of(1)),
        )

    def _scale(self, traces: bool) -> _Scale:
        is_new = self._properties.capability >= 90
        wanted = (self.numbers,) if self.numbers else (NARROW, WIDE) if is_new else (WIDE,)
        result = next((scale for numbers in wanted if (scale := _Scale.fit(self._rules, self._longest, numbers, traces=traces))), None)
        if result is None:
            raise UnsupportedSearchError("these scores exceed the range of the GPU's numbers")
        return result

    def _symbols_of(self, which: int) -> list[int]:
        """Return the symbols in references (0) or in reads (1)."""
        return [symbol for symbol in range(N_SYMBOLS) if int(self._symbols[which]) >> symbol & 1]

    def _score_source(self, traces: bool) -> int:
        if self.scores is not None:
            return self.scores
        times = self._scales[traces].times
        values = times * self._rules.matrix[:, self._symbols_of(0)]
        is_small = values.min(initial=-times) >= -128 and values.max(initial=0) + 2 <= 127
        n = len(self._symbols_of(0))
        return FOUR if is_small and n <= 4 else EIGHT if is_small and n <= 8 else TABLE

    def _score_tables(self, shape: GapsMisShape, traces: bool, stream: Any) -> dict[str, Any]:
        """Return the score tables of a plan on the device (see the struct Pairs), for which later commands on the stream wait."""
        source, scale, rules = shape.scores, self._scales[traces], self._rules
        key = source, scale.times, *self._symbols.tolist()
        if key not in self._tables:
            full = np.full((_CODES, _CODES), -1, np.int64)  # rows by pattern symbol; padding has a negative score
            full[: rules.matrix.shape[0], : rules.matrix.shape[1]] = rules.matrix
            full = scale.times * full + (2 if traces else 0)
            ranks, texts, patterns = np.zeros(_CODES, np.int8), self._symbols_of(0), self._symbols_of(1)
            if source == TABLE:
                words = full
            elif source == PROFILE:
                ranks[patterns], ranks[_PADDING] = np.arange(len(patterns)), len(patterns)
                words = full[[*patterns, _PADDING]]
            else:
                ranks[texts] = np.arange(len(texts))
                some = np.zeros((_CODES, source), np.int8)
                some[:, : len(texts)] = full[:, texts]
                words = some.view(np.uint32)
            diagonal = np.zeros(_CODES, np.int32)
            shorter = min(rules.matrix.shape)
            diagonal[:shorter] = scale.times * np.diagonal(rules.matrix)
            arrays: dict[str, NDArray[Any]] = {"scores": words.astype(np.uint32, casting="unsafe"), "ranks": ranks, "diagonal": diagonal}
            self._tables[key] = sent(self._gpu, arrays, self._stream), self._gpu.record(self._stream)
        tables, event = self._tables[key]
        self._gpu.wait_for(stream, event)
        return tables

    @cached_property
    def _direction_limit(self) -> int:
        return min(self.direction_bytes, self._gpu.free_bytes() // 4)

    def _blocks(self, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yield blocks of pairs, limited by their cells and by the size of the result arrays.

        Blocks of pairs that share references are larger, since a plan may use the reference of a thread block for many of its pairs.
        """
        n, layers = len(text_of), self._rules.maximum_gaps + 1
        most = self._cells[n > len(self._text_lengths)]
        if not self._lengths_differ:
            cells = layers * (float(self._text_lengths[0]) + 1) * (self._longest + 1) if n else 1.0
            size = max(1, min(_PAIRS_OF_BLOCK, int(most / cells)))
            yield from ((begin, min(n, begin + size)) for begin in range(0, n, size))
            return
        marks = np.cumsum(layers * (self._text_lengths[text_of] + 1.0) * (self._pattern_lengths[pattern_of] + 1.0))
        begin = 0
        while begin < n:
            before = marks[begin - 1] if begin else 0.0
            end = int(np.searchsorted(marks, before + most, side="right"))
            end = min(n, begin + _PAIRS_OF_BLOCK, max(begin + 1, end))
            yield begin, end
            begin = end


class _Block:
    """Pairs that are aligned together."""

    def __init__(self, search: ReadSearch, text_of: NDArray[np.int64], pattern_of: NDArray[np.int64], stream: Any) -> None:
        self._of, self._gpu, self._rules, self._stream = search, search._gpu, search._rules, stream
        self._text_of, self._pattern_of = np.ascontiguousarray(text_of, np.int64), np.ascontiguousarray(pattern_of, np.int64)
        self._n = len(text_of)
        self._floored = self._rules.mode == LOCAL and not self._rules.seed_length
        self._buffers: dict[str, Any] = {}
        self._buffers_in_use: list[Any] = []

    def align(self, traces: bool, out: Alignments) -> Generator[None, None, None]:
        """Write the rows of the pairs to `out`; other blocks may be begun where this one yields."""
        gpu, n = self._gpu, self._n
        # Unpinned memory would wait for the sequences that are being sent.
        self._indices = gpu.pinned(16 * n)[: 16 * n].view(np.int64).reshape(2, n)
        self._indices[:] = self._text_of, self._pattern_of
        self._buffers = {"indices": gpu.buffer(16 * n), "found": gpu.buffer(4 * _COLUMNS_FOUND * n)}
        gpu.upload(self._buffers["indices"], self._indices, self._stream)
        if not traces:
            yield from self._pass(None, False)
            self._write_ends(out)
            return
        sides = self.sides(None, None)
        task = self._of._task(n, int(np.max(sides[0])), int(np.max(sides[1])), traces=True)
        if self._of._is_traced_on_host(task):
            yield from self._pass(None, False)
            self._write_ends(out)
            yield from self._trace_on_host(out)
            return
        runs = 2 * self._rules.maximum_gaps + 1
        self._buffers["runs"] = gpu.buffer(4 * runs * n)
        times, more = SINGLE_PASS
        text, pattern = self._lengths()
        later = np.zeros(0, np.int64)
        if self._rules.mode == LOCAL or int(np.max(text)) > times * int(np.min(pattern)) + more:
            is_short = np.broadcast_to((text <= times * pattern + more) & (self._rules.mode != LOCAL), n)
            later = np.flatnonzero(~is_short)
        if not len(later):
            yield from self._pass(None, True)
        else:
            gpu.upload(self._buffers["found"], np.full(_COLUMNS_FOUND * n, -1, np.int32), self._stream)
            gpu.clear(self._buffers["runs"], 4 * runs * n, self._stream)
            at_once = np.flatnonzero(is_short)
            if len(at_once):
                yield from self._pass(at_once, True)
            yield from self._pass(later, False)
            score, ends = self._downloaded(0), self._downloaded(_TEXT_END)
            later = later[ends[later] >= 0]
            begins = np.zeros(n, np.int64)
            begins[later] = windows(self._rules, score[later], ends[later], np.broadcast_to(pattern, n)[later])
            if len(later):
                yield from self._pass(later, True, (begins, ends))
        result = np.empty((_COLUMNS_FOUND, n), np.int32)
        retained = out.runs if out.runs.flags.c_contiguous else np.empty((n, runs), np.int32)
        gpu.download(result, self._buffers["found"], self._stream)
        gpu.download(retained, self._buffers["runs"], self._stream)
        gpu.wait(self._stream)
        for column, values in zip(out[:6], result, strict=True):
            column[:] = values
        if retained is not out.runs:
            out.runs[:] = retained

    def _downloaded(self, row: int) -> NDArray[np.int32]:
        result = np.empty(self._n, np.int32)
        self._gpu.download(result, self._buffers["found"], self._stream, offset=4 * row * self._n)
        self._gpu.wait(self._stream)
        return result

    def _write_ends(self, out: Alignments) -> None:
        out.score[:], out.text_end[:] = self._downloaded(0), self._downloaded(_TEXT_END)
        for column in (out.text_start, out.pattern_start, out.pattern_end):
            column[:] = -1
        np.minimum(out.text_end, 0, out=out.gaps)  # -1 if there is no alignment
        out.runs[:] = 0

    def _trace_on_host(self, out: Alignments) -> Generator[None, None, None]:
        """Align again, on the CPU and with trace-back, the section of the reference before the known end of each alignment."""
        of = self._of
        some = np.flatnonzero(out.score != NO_ALIGNMENT)
        pattern_of = self._pattern_of[some]
        begins = windows(self._rules, out.score[some], out.text_end[some], of._pattern_lengths[pattern_of])
        lengths = out.text_end[some] - begins
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        first = of._texts.offsets[self._text_of[some]] + begins
        positions = np.repeat(first - offsets[:-1], lengths) + np.arange(offsets[-1])
        cut = Sequences(of._texts.codes[positions], offsets)
        result = Alignments.none(len(some), self._rules.maximum_gaps)
        search = kernels.cpu.gapsmis.ReadSearch(Processor(of.host_threads), cut, of._patterns, self._rules)
        for _ in search.align(np.arange(len(some)), pattern_of, result):
            yield
        for column, values in zip(out, result, strict=True):
            column[some] = values
        for column in (out.text_start, out.text_end):
            column[some] += begins.astype(np.int32)

    def _lengths(self) -> tuple[Any, Any]:
        """Return the lengths of references and of reads, each as one number if all are equal, otherwise (n,)."""
        of = self._of
        if not of._lengths_differ:
            return of._text_lengths[:1], of._pattern_lengths[:1]
        return of._text_lengths[self._text_of], of._pattern_lengths[self._pattern_of]

    def sides(self, chosen: NDArray[Any] | None, window: tuple[NDArray[Any], NDArray[Any]] | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the numbers of columns (reference) and rows (read) that the kernel computes for pairs, without the seed."""
        rules = self._rules
        n, m = self._lengths()
        if chosen is not None:
            n, m = (np.broadcast_to(side, self._n)[chosen] for side in (n, m))
        if window is not None:
            n = (window[1] - window[0])[chosen]
        elif rules.mode == PREFIX and rules.gap_extend:
            n = np.minimum(n, m + (m * rules.maximum_gain + rules.maximum_loss(m)) // rules.gap_extend)
        is_alive = (n >= rules.seed_length) & (m >= rules.seed_length)
        return tuple(np.where(is_alive, side - rules.seed_length, 0) for side in (n, m))  # type: ignore[return-value]

    def launches(self, chosen: NDArray[Any] | None, traces: bool, window: tuple[NDArray[Any], NDArray[Any]] | None) -> Iterator[_Launch]:
        """Yield the launches of a pass. A launch has pairs of similar lengths, as many as have space for their directions."""
        of, order = self._of, chosen
        n, m = self.sides(chosen, window)
        count = self._n if chosen is None else len(chosen)
        if len(n) > 1 and (_differ(n) or _differ(m)):
            by_length = np.lexsort((_compact(n), _compact(m)))
            order = by_length if chosen is None else chosen[by_length]
            n, m = n[by_length], m[by_length]
        # Different windows of one text count as different texts.
        is_shared = window is None and self._n > len(of._text_lengths)
        per_text = count / max(1, int(np.count_nonzero(np.bincount(self._text_of)))) if is_shared else 1.0
        begin = 0
        while begin < count:
            end = count
            while True:
                sides = [int(side[begin:end].max() if len(side) > 1 else side[0]) for side in (n, m)]
                task = of._task(end - begin, *sides, traces=traces, patterns_of_text=per_text * (end - begin) / count)
                shape = of._best_shape(task)
                needed = shape.direction_bytes(sides[0], sides[1], task.gaps, floored=self._floored) if traces else 0
                launch = self._launch(shape, task, begin, end, order)
                if needed * launch.n_items <= of._direction_limit:
                    break
                fewer = begin + min((end - begin) // 2, max(1, int((end - begin) * 0.95 * of._direction_limit / (needed * launch.n_items))))
                if fewer == begin:
                    raise DeviceMemoryError(
                        f"{of._gpu.name} has too little memory for the trace-back of {sides[1]:,} bases with {sides[0]:,}"
                    )
                end = fewer
            yield launch
            begin = end

    def _launch(self, shape: GapsMisShape, task: Task, first: int, last: int, order: NDArray[Any] | None) -> _Launch:
        chunks = None
        if shape.plan == ONE_TEXT:
            pairs = np.arange(first, last) if order is None else order[first:last]
            texts = self._text_of[pairs]
            by_text = np.argsort(_compact(texts), kind="stable")
            pairs, texts = pairs[by_text], texts[by_text]
            starts = np.flatnonzero(np.concatenate([[True], texts[1:] != texts[:-1]]))
            ends = np.append(starts[1:], len(texts))
            blocks = -(-(ends - starts) // shape.pairs_of_block)
            before = np.repeat(np.cumsum(blocks) - blocks, blocks)
            begins = np.repeat(starts, blocks) + shape.pairs_of_block * (np.arange(blocks.sum()) - before)
            chunks = np.stack([begins, np.minimum(begins + shape.pairs_of_block, np.repeat(ends, blocks))], axis=1).astype(np.int32)
            return _Launch(shape, task, first, last, pairs.astype(np.uint32), chunks)
        return _Launch(shape, task, first, last, None if order is None else order[first:last].astype(np.uint32), None)

    def _pass(
        self, chosen: NDArray[Any] | None, traces: bool, window: tuple[NDArray[Any], NDArray[Any]] | None = None
    ) -> Generator[None, None, None]:
        """Align all or selected pairs of the block, optionally in windows of their references."""
        gpu = self._gpu
        more: dict[str, Any] = {"window_begins": 0, "window_ends": 0}
        if window is not None:
            more = sent(gpu, {"window_begins": window[0], "window_ends": window[1]}, self._stream)
        for launch in self.launches(chosen, traces, window):
            self._start(launch, traces, more)
            yield
            gpu.wait(self._stream)
            self._buffers_in_use.clear()

    def _start(self, launch: _Launch, traces: bool, more: dict[str, Any]) -> None:
        of, gpu, shape, task, rules = self._of, self._gpu, launch.shape, launch.task, self._rules
        scale, warps = of._scales[traces], shape.threads // 32
        columns: dict[str, NDArray[Any]] = {}
        if launch.order is not None:
            columns["order"] = launch.order
        if launch.chunks is not None:
            columns["chunks"] = launch.chunks
        lists = {"order": 0, "chunks": 0} | sent(gpu, columns, self._stream)
        blocks = -(-launch.n_items // warps)
        strips, border = shape.strips(task.n), 0
        if strips > 1:
            border = 4 * (2 * task.gaps + 1) * (32 // shape.lanes) * (task.m + 1)
            most = max(1, _BORDER_BYTES // (border * warps))
            blocks = min(blocks, most, _BLOCKS * of._properties.multiprocessors)
        steps = task.m + shape.lanes
        of_warp = shape.direction_bytes(task.n, task.m, task.gaps, floored=self._floored) if traces else 0
        workspace = {"border": gpu.buffer(border * blocks * warps), "directions": gpu.buffer(of_warp * launch.n_items)}
        numbers = {
            "n": self._n,
            "first": launch.first,
            "n_places": launch.last - launch.first,
            "n_items": launch.n_items,
            "seed": rules.seed_length,
            "zero": scale.zero,
            "lowest": scale.lowest,
            "gain": rules.maximum_gain,
            "loss": max(rules.gap_extend, -int(rules.matrix.min(initial=0))),
            "n_symbols": task.n_symbols,
        }
        of_pairs = {"text_of": self._buffers["indices"], "pattern_of": gpu.address(self._buffers["indices"]) + 8 * self._n}
        pairs = struct(
            gpu, _PAIRS, {**of._columns, **of_pairs, **of._score_tables(shape, traces, self._stream), **lists, **more, **numbers}
        )
        results = struct(
            gpu,
            _RESULTS,
            {
                "found": self._buffers["found"],
                "runs": self._buffers.get("runs", 0),
                **workspace,
                "strips": strips,
                "steps": steps,
                "border_rows": task.m + 1,
            },
        )
        self._buffers_in_use += [lists, workspace, more]
        defines = (
            f"NUMBERS={shape.numbers}",
            f"GAPS={task.gaps}",
            f"MODE={rules.mode}",
            f"SEEDED={int(rules.seed_length > 0 and rules.mode != PREFIX)}",
            f"PUBLISHED={int(rules.is_published)}",
            f"TRACES={int(traces)}",
            f"SCORES={shape.scores}",
            f"LANES={shape.lanes}",
            f"COLUMNS={shape.columns}",
            f"THREADS={shape.threads}",
            f"OPENING={scale.opening}",
            f"EXTENDING={scale.extending}",
        )
        gpu.launch(
            _FILE,
            "align_reads",
            blocks,
            shape.threads,
            (pairs, results, np.uint32(1)),
            self._stream,
            shared_bytes=shape.shared_bytes(task.n_symbols),
            defines=defines,
        )
        if traces:
            threads = launch.n_items * shape.pairs_of_warp
            gpu.launch(_FILE, "trace_reads", -(-threads // _TRACE_THREADS), _TRACE_THREADS, (pairs, results), self._stream, defines=defines)


def _differ(lengths: NDArray[Any]) -> bool:
    return len(lengths) > 0 and lengths.min() != lengths.max()


def _compact(lengths: NDArray[Any]) -> NDArray[Any]:
    """Return lengths in the smallest integer type, which sorts faster."""
    return lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths
