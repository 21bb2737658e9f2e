"""Launch plans for alignment with a bounded number of gaps on a GPU, and their predicted cost.

Carroll's thesis (2018, chapter 5) compares four plans, which differ in where references are stored and where alignments are traced. All are
implemented here:

* MANY_TEXTS: each group of lanes has its own reference. For references with at most eight symbols, the scores of a base of the read are the
  bytes of one word, and the base of each column selects a byte; otherwise scores are in a table in shared memory.
* ONE_TEXT: a block has one reference, whose scores with each read symbol are stored in shared memory once. It suits references that fit in
  one strip, with several reads each.
* Alignments are traced on the GPU, from directions in its memory; or on the host, which gets the ends of the alignments and aligns the
  sections before them again.

A prediction counts the instructions of the inner loop in gapsmis.cu per column and row of a lane, times the rows, divided by the issue rate
of the multiprocessors, and the bytes of directions. For small tasks the time of one warp determines the result. All constants that are not
properties of the GPU are defined here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.rates import USUAL_RATES, GpuRates
from proteoscope.kernels.gapsmis_layouts import LOCAL, GapRules, score_bits

__all__ = [
    "CELLS_OF_LAUNCH",
    "CELLS_OF_PART",
    "EIGHT",
    "FOUR",
    "MANY_TEXTS",
    "NARROW",
    "ONE_TEXT",
    "PROFILE",
    "TABLE",
    "WIDE",
    "GapsMisShape",
    "Properties",
    "Task",
    "host_trace_seconds",
    "predicted_seconds",
    "seconds",
    "shapes",
]

CELLS_OF_LAUNCH = 1e11
"""Number of cells of all layers that are computed between two checks for cancellation, 20 to 50 ms on an H200."""
CELLS_OF_PART = 8e9
"""Number of cells of a block of pairs with references of their own, 1.5 ms on an H200.

The host needs .5 to .9 ms for the transfers, the launch and the results of a block, which the alignment of another block thus hides.
"""
MANY_TEXTS, ONE_TEXT = "many texts", "one text"
NARROW, WIDE = 1, 2
"""Number types: two pairs per 32-bit word, or one."""
TABLE, PROFILE, FOUR, EIGHT = 0, 1, 4, 8
"""Sources of scores: a table; the profile of a block's reference; words of bytes for references of up to four or eight symbols."""

_MAXIMUM_OF_THREAD, _FIXED = 168, 56  # registers per thread: maximum for three blocks per multiprocessor, and fixed number
_COLUMNS = (2, 4, 6, 8, 12, 16, 20, 24, 28)
_LANES = (4, 8, 16, 32)
_THREADS = 128
_SCORE_SLOTS = {TABLE: 5.5, PROFILE: 1.4, FOUR: 1.0, EIGHT: 4.0}  # instructions per column, including bank conflicts
_WARPS_PER_CYCLE = 2.0  # warp-wide maximum instructions that a multiprocessor issues per cycle
_CYCLES_PER_SECOND = 1.6e9  # clock rate of a typical GPU with this number of multiprocessors
_USUAL_MULTIPROCESSORS = 132
_INSTRUCTIONS_OF_MAXIMUM = {True: 1.0, False: 2.0}  # for compute capability 9.0 or later, and earlier
_CYCLES_OF_LONE_WARP = 3.0  # cycles per instruction if no other warp runs meanwhile
_DIRECTION_BYTES_PER_SECOND = 2.5e12  # of such a GPU; the next number is for compute capability below 9.0 (not measured)
_DIRECTION_BYTES_BEFORE = 6e11
_SECONDS_OF_LAUNCH = 1e-5
_SECONDS_OF_CHUNKS, _SECONDS_OF_CHUNKED_PAIR = 1.2e-4, 2.5e-8  # time on the host for sorting pairs by text
_SECONDS_OF_STEP = 1.2e-6  # step of a traceback: one dependent memory read
_HOST_CELLS_PER_SECOND = 1.5e9
_LONG_OF_BLOCK = 0.95  # quantile of the lengths that approximates the maximum in a block


@dataclass(frozen=True)
class Properties:
    """Properties of a GPU that predictions use."""

    multiprocessors: int
    capability: int
    maximum_shared_bytes: int
    rates: GpuRates = USUAL_RATES

    @property
    def cycles_per_second(self) -> float:
        """Cycles per second; a multiprocessor issues `_WARPS_PER_CYCLE` instructions per cycle."""
        if self.rates == USUAL_RATES:
            return _CYCLES_PER_SECOND
        slots = self.rates.maxima * _INSTRUCTIONS_OF_MAXIMUM[self.capability >= 90] / self.multiprocessors
        return _CYCLES_PER_SECOND * slots * _USUAL_MULTIPROCESSORS / USUAL_RATES.maxima

    @property
    def direction_bytes_per_second(self) -> float:
        """Bytes of directions that a GPU writes per second."""
        if self.rates == USUAL_RATES and self.capability < 90:
            return _DIRECTION_BYTES_BEFORE
        return _DIRECTION_BYTES_PER_SECOND * self.rates.memory_bytes / USUAL_RATES.memory_bytes


@dataclass(frozen=True)
class Task:
    """Pairs that one launch aligns: their number, the lengths of the longest reference and read, and options.

    `patterns_of_text` is the mean number of pairs per reference, and `n_symbols` the number of distinct symbols in all reads.
    """

    n_pairs: int
    n: int
    m: int
    gaps: int
    mode: int
    numbers: int
    scores: int
    traces: bool
    patterns_of_text: float = 1.0
    n_symbols: int = 4


@dataclass(frozen=True)
class GapsMisShape:
    """Plan of a launch: source of references, numbers of lanes (per pair, or per two pairs in NARROW numbers) and of columns per lane."""

    plan: str
    lanes: int
    columns: int
    numbers: int
    scores: int
    threads: int = _THREADS

    @property
    def width(self) -> int:
        """Number of columns of a strip."""
        return self.lanes * self.columns

    @property
    def halves(self) -> int:
        """Number of pairs that share a word: 2 with NARROW numbers, otherwise 1."""
        return 2 if self.numbers == NARROW else 1

    @property
    def pairs_of_warp(self) -> int:
        """Number of pairs per warp."""
        return 32 // self.lanes * self.halves

    @property
    def pairs_of_block(self) -> int:
        """Number of pairs per block."""
        return self.threads // 32 * self.pairs_of_warp

    def items(self, task: Task) -> int:
        """Return the number of warps with pairs."""
        if self.plan == ONE_TEXT:  # a block is partly idle if its text has too few patterns
            of_text = max(1.0, task.patterns_of_text)
            blocks = -(-int(of_text) // self.pairs_of_block) * max(1, round(task.n_pairs / of_text))
            return blocks * (self.threads // 32)
        return -(-task.n_pairs // self.pairs_of_warp)

    def strips(self, n: int) -> int:
        """Return the number of strips of a reference of length `n`."""
        return -(-n // self.width)

    def shared_bytes(self, n_symbols: int) -> int:
        """Return the dynamic shared memory of a block."""
        if self.plan != ONE_TEXT:
            return 0
        return (n_symbols + 1) * (-(-self.columns // 8)) * max(8, self.lanes) * 16

    def step_words(self, gaps: int, *, floored: bool) -> int:
        """Return the number of words of directions that a lane writes per row."""
        codes = 4 if self.numbers == NARROW else 8
        return (gaps + floored) * -(-self.columns // codes)

    def direction_bytes(self, n: int, m: int, gaps: int, *, floored: bool) -> int:
        """Return the bytes of directions of a warp for references and reads of up to the given lengths."""
        return self.strips(n) * (m + self.lanes) * self.step_words(gaps, floored=floored) * 128


def registers(columns: int, gaps: int, mode: int, *, traces: bool) -> int:
    """Return the approximate number of registers per thread: G and F of all layers, the symbol of each column, and a constant."""
    return columns * (2 * gaps + 2 + (mode == LOCAL and not traces)) + _FIXED + 6 * gaps


@lru_cache(maxsize=256)
def _columns(gaps: int, mode: int, traces: bool) -> tuple[int, ...]:
    fitting = tuple(column for column in _COLUMNS if registers(column, gaps, mode, traces=traces) <= _MAXIMUM_OF_THREAD)
    return fitting or _COLUMNS[:1]


def shapes(task: Task, properties: Properties) -> Iterator[GapsMisShape]:
    """Yield the shapes of launches that fit into the registers and the shared memory of the GPU."""
    for columns in _columns(task.gaps, task.mode, task.traces):
        for lanes in _LANES:
            yield GapsMisShape(MANY_TEXTS, lanes, columns, task.numbers, task.scores)
            single = GapsMisShape(ONE_TEXT, lanes, columns, task.numbers, PROFILE)
            is_possible = task.numbers == NARROW and columns % 8 == 0 and task.n <= single.width
            if is_possible and task.patterns_of_text >= 2 and single.shared_bytes(task.n_symbols) <= properties.maximum_shared_bytes - 2048:
                yield single


def row_slots(shape: GapsMisShape, task: Task) -> float:
    """Return the number of instructions that a lane issues per row."""
    sum_or, greatest = (1.0, 1.0) if shape.numbers == NARROW else (2.0, 2.0)
    layer = 3 * sum_or + greatest + 0.6 + (6.6 if task.traces else 0.0)
    column = _SCORE_SLOTS[shape.scores] + sum_or + task.gaps * layer
    column += greatest / 2 + (1.0 if task.traces else 0.0) if task.mode == LOCAL else 0.0
    # The units of a warp read and write at different addresses.
    units = 32 // shape.lanes
    scattered = 9.0 * units if task.traces else 7.0 * max(0, units - 4)
    return shape.columns * column + (0.0 if task.traces else 18.0) + 5.0 * (2 * task.gaps + 1) + scattered


def seconds(shape: GapsMisShape, task: Task, properties: Properties) -> float:
    """Return the predicted time of a launch, including trace-back, s."""
    items, strips, steps = shape.items(task), max(1, shape.strips(task.n)), task.m + shape.lanes
    of_warp = strips * (steps * row_slots(shape, task) + 30 * shape.columns + 300)
    of_block = shape.shared_bytes(task.n_symbols) / 2 / shape.threads * 12  # time for filling the table of the text
    slots = items * (of_warp + of_block)
    cycles = max(slots / (_WARPS_PER_CYCLE * properties.multiprocessors), of_warp * _CYCLES_OF_LONE_WARP) + of_warp / 2
    result = cycles / properties.cycles_per_second
    if task.traces:
        written = items * shape.direction_bytes(task.n, task.m, task.gaps, floored=task.mode == LOCAL)
        result = max(result, written / properties.direction_bytes_per_second) + task.m * _SECONDS_OF_STEP
    if shape.plan == ONE_TEXT:
        result += _SECONDS_OF_CHUNKS + task.n_pairs * _SECONDS_OF_CHUNKED_PAIR
    return result + _SECONDS_OF_LAUNCH * properties.rates.launch / USUAL_RATES.launch


def host_trace_seconds(task: Task, threads: int) -> float:
    """Return the predicted seconds in which the CPU aligns, for all pairs, the section of the reference before the known end.

    A section is assumed to have twice as many bases as the read, or all bases of a shorter reference.
    """
    return task.n_pairs * (task.m + 1.0) * (min(task.n, 2 * task.m) + 1.0) * (task.gaps + 1) / (_HOST_CELLS_PER_SECOND * threads)


def predicted_seconds(
    texts: NDArray[np.int64], patterns: NDArray[np.int64], rules: GapRules, properties: Properties, *, traces: bool
) -> float:
    """Return the predicted seconds of the best plan for n pairs of the given lengths, with four symbols and one reference per pair.

    Each launch computes a block of pairs and takes as long as its longest pair; all pairs are assumed to be as long as the longest tenth of
    the pairs.
    """
    if not len(texts):
        return 0.0
    n, m = (int(np.quantile(lengths, _LONG_OF_BLOCK)) for lengths in (texts, patterns))
    is_narrow = properties.capability >= 90 and score_bits(rules, int(patterns.max())) == 16
    size = max(1, min(len(texts), int(CELLS_OF_LAUNCH / ((rules.maximum_gaps + 1) * (n + 1.0) * (m + 1.0)))))
    whole, rest = divmod(len(texts), size)

    def best(pairs: int) -> float:
        task = Task(pairs, n, m, rules.maximum_gaps, rules.mode, NARROW if is_narrow else WIDE, FOUR, traces)
        return min(seconds(shape, task, properties) for shape in shapes(task, properties))

    return (whole * best(size) if whole else 0.0) + (best(rest) if rest else 0.0)
