"""Plan of scoring a database on a GPU: strips of columns of the queries, and separate parts for the longest and for shorter subjects.

The longest subjects may need more time than all others together. In this case they are scored with more lanes each on some multiprocessors,
while the other multiprocessors score the other subjects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "HALF_PRECISION",
    "SIXTEEN_BITS",
    "TABLE_ROWS",
    "THIRTY_TWO_BITS",
    "AlignmentShape",
    "Part",
    "Planner",
    "Subjects",
    "fastest_number_type",
    "predicted_cycles",
    "query_groups",
    "threads_for",
]

SIXTEEN_BITS, HALF_PRECISION, THIRTY_TWO_BITS = 1, 2, 3
"""Number types of the kernels: NUMBERS of alignment.cu."""
TABLE_ROWS = 28
_RING_BYTES = 128 * 16  # shared memory between two warps that share a subject
_LANES, _COLUMNS = (2, 4, 8, 16, 32), (16, 24, 32, 40, 48, 56, 60, 64, 72)
_LANES_OF_WARPS, _COLUMNS_OF_WARPS, _THREADS_OF_WARPS = (64, 128), (4, 8, 16), (128, 256)
_FEW_THREADS = 256  # fills a multiprocessor; more threads run more subjects at once, but each takes longer
_SHARES = np.array([4, 8, 12, 16, 20, 24, 28, 32, 40, 48])  # candidate numbers of multiprocessors reserved for the longest subjects
_FEWEST_LONG, _WORTH_A_CUT = 16, 0.97
# Cycles measured on an H200. A step computes some rows of the columns of a lane, on a quarter of a multiprocessor. Its time is the sum of
# `_CELL_CYCLES` per cell, `_MERGING_CYCLES` per cell if a word has two subjects, and `_STEP_CYCLES`. The next step starts after a latency,
# which is longer if warps share a subject. `_SLOWER` has factors by subjects per word and threads per block.
_ROWS, _ROWS_OF_WARPS = 4, 2  # rows of a step; if warps share a subject
_CELL_CYCLES = {SIXTEEN_BITS: 8.6, HALF_PRECISION: 13.0, THIRTY_TWO_BITS: 11.0}
_MERGING_CYCLES, _STEP_CYCLES, _LAUNCH_CYCLES = 1.7, 70.0, 10_000.0
_STEP_LATENCY, _STEP_LATENCY_OF_WARPS = 230.0, 290.0
_SLOWER = {(1, 512): 1.07, (2, 384): 1.03}


@dataclass(frozen=True)
class AlignmentShape:
    """Shape of a launch: `subjects` per word, lanes per subject, columns per lane, threads per block."""

    numbers: int
    subjects: int
    lanes: int
    columns: int
    threads: int

    @property
    def width(self) -> int:
        """Number of columns of a strip."""
        return self.lanes * self.columns

    @property
    def shared_bytes(self) -> int:
        """Shared memory (bytes) of a block, for the score table and the values passed between the warps of a subject."""
        between = self.threads // 32 if self.lanes > 32 else 0
        return TABLE_ROWS * max(self.lanes, 8) * self.columns * 4 + between * _RING_BYTES

    @property
    def subjects_of_block(self) -> int:
        """Number of subjects that the warps of a block score concurrently."""
        return self.threads // self.lanes * self.subjects

    def macros(self) -> tuple[str, ...]:
        """Macros of alignment.cu for this shape."""
        return (
            f"NUMBERS={self.numbers}",
            f"SUBJECTS={self.subjects}",
            f"LANES={self.lanes}",
            f"COLUMNS={self.columns}",
            f"THREADS={self.threads}",
        )


class Subjects(NamedTuple):
    """Sizes of a set of subjects: number of subjects, number of residues, and lengths of the longest and of the shortest subject."""

    n: int
    rows: int
    longest: int
    shortest: int


class Part(NamedTuple):
    """Subjects `first:last`, counted from the longest, and the number of blocks and launch shape with which they are scored."""

    first: int
    last: int
    shape: AlignmentShape
    blocks: int


def fastest_number_type(capability: int) -> int:
    """Return the fastest number type for a compute capability."""
    return SIXTEEN_BITS if capability >= 90 else HALF_PRECISION if capability >= 80 else THIRTY_TWO_BITS


def query_groups(numbers: int, lengths: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return groups of queries, each as the number of subjects per word and the indices of the queries.

    With one subject per word, the halves of a word hold strips of two queries (except for 32-bit numbers). A query that is longer than all
    shorter queries together is a separate group with two subjects per word, since half of the words would otherwise be unused.
    """
    together = sorted((query for query, length in enumerate(lengths) if length), key=lambda query: -lengths[query])
    alone: list[int] = []
    # If a query is longer than all others together, half of the words would be unused.
    while numbers != THIRTY_TWO_BITS and together and lengths[together[0]] > sum(lengths[query] for query in together[1:]):
        alone.append(together.pop(0))
    return [(in_word, queries) for in_word, queries in ((1, together), *((2, [query]) for query in alone)) if queries]


def threads_for(columns: int, subjects: int) -> int:
    """Return the number of threads of a block, one per multiprocessor, whose registers can hold `columns` columns per thread.

    Parameters
    ----------
    columns
        Columns per lane.
    subjects
        Subjects per word. Two subjects need more registers.
    """
    most_of_512, most_of_384 = (32, 48) if subjects == 1 else (0, 40)
    return 512 if columns <= most_of_512 else 384 if columns <= most_of_384 else 256


@lru_cache
def _shapes(numbers: int, subjects: int, threads: int | None, shared_bytes: int) -> _Shapes:
    of_warp = [
        (lanes, columns, n)
        for lanes, columns in product(_LANES, _COLUMNS)
        for n in sorted({threads or threads_for(columns, subjects), threads or _FEW_THREADS})
    ]
    of_block = [] if threads else list(product(_LANES_OF_WARPS, _COLUMNS_OF_WARPS, _THREADS_OF_WARPS))
    result = [AlignmentShape(numbers, subjects, *sizes) for sizes in (*of_warp, *of_block)]
    return _Shapes([shape for shape in result if shape.shared_bytes <= shared_bytes])


class _Shapes:
    """Launch configurations (`AlignmentShape`) for one number type, and their costs."""

    def __init__(self, shapes: list[AlignmentShape]) -> None:
        self.shapes = shapes
        lanes, columns, threads, self.width = (
            np.array([getattr(shape, name) for shape in shapes], np.float64) for name in ("lanes", "columns", "threads", "width")
        )
        subjects = shapes[0].subjects
        self._rows = np.where(lanes <= 32, _ROWS, _ROWS_OF_WARPS)
        of_step = self._rows * (_CELL_CYCLES[shapes[0].numbers] + _MERGING_CYCLES * (subjects - 1)) * columns + _STEP_CYCLES
        side_by_side = threads / 128  # warps per quarter of a multiprocessor
        latency = np.where(lanes <= 32, _STEP_LATENCY, _STEP_LATENCY_OF_WARPS)
        self._step = side_by_side * of_step + latency  # cycles between two steps of a warp
        slower = np.array([_SLOWER.get((subjects, shape.threads), 1.0) for shape in shapes])
        self._occupied = self._step / (4 * side_by_side) * slower * lanes / (32 * subjects)  # multiprocessor cycles per step
        self._more_steps = np.where(lanes <= 32, lanes, 2 * lanes - 32)

    def launches(self, lengths: Sequence[int]) -> NDArray[np.float64]:
        """Return the number of launches for each query of the given lengths."""
        return np.ceil(np.array(lengths, np.float64)[:, None] / self.width).sum(axis=0)

    def cycles(self, lengths: Sequence[int], some: tuple[Any, ...], multiprocessors: Any) -> NDArray[np.float64]:
        """Return the cycles of scoring subjects with each launch shape (last dimension).

        The result is the mean per multiprocessor, or the cycles of the longest subject if these are more. `some` has the fields of
        `Subjects`. `multiprocessors` is a number, or an array of alternatives, which is then the second last dimension.
        """
        n, rows, longest, shortest = (np.asarray(values, np.float64)[..., None] for values in some)
        launches = self.launches(lengths)
        whole = launches * (rows / self._rows + self._more_steps * n) * self._occupied
        end = launches * ((shortest / self._rows + self._more_steps) * self._step + _LAUNCH_CYCLES)
        path = launches * ((longest / self._rows + self._more_steps) * self._step + _LAUNCH_CYCLES)
        if np.ndim(multiprocessors):
            whole, end, path = whole[..., None, :], end[..., None, :], path[..., None, :]
            multiprocessors = multiprocessors[:, None]
        return np.maximum(whole / multiprocessors + end, path)


class Planner:
    """Selection of launch shapes for a GPU.

    Parameters
    ----------
    shared_bytes
        Maximum shared memory of a block.
    requested
        Fixed lanes, columns and threads per block, or None to select them.
    """

    def __init__(self, multiprocessors: int, shared_bytes: int, requested: tuple[int, int] | None, threads: int | None) -> None:
        self._multiprocessors, self._shared_bytes, self._requested, self._threads = multiprocessors, shared_bytes, requested, threads

    def _possible(self, numbers: int, subjects: int) -> _Shapes:
        if self._requested:
            return _Shapes(
                [
                    AlignmentShape(
                        numbers,
                        subjects,
                        *self._requested,
                        self._threads or max(self._requested[0], threads_for(self._requested[1], subjects)),
                    )
                ]
            )
        return _shapes(numbers, subjects, self._threads, self._shared_bytes)

    def shape(self, numbers: int, in_word: int, lengths: Sequence[int], subjects: Subjects) -> Part:
        """Return a single part with all subjects and the shape that is predicted to be fastest for queries of the given lengths."""
        return self._whole(self._possible(numbers, in_word), lengths, subjects)[1]

    def _whole(self, possible: _Shapes, lengths: Sequence[int], subjects: Subjects) -> tuple[float, Part]:
        cycles = possible.cycles(lengths, subjects, self._multiprocessors)
        best = int(np.argmin(cycles))
        return float(cycles[best]), Part(0, subjects.n, possible.shapes[best], self._multiprocessors)

    def parts(self, numbers: int, in_word: int, lengths: Sequence[int], subjects: Subjects, longest: NDArray, rows: NDArray) -> list[Part]:
        """Return one part with all subjects; or, if predicted to be faster, two concurrent parts: the longest subjects, and the others.

        Parameters
        ----------
        numbers
            Number type of the scores.
        in_word
            Number of subjects per word: 1 or 2.
        lengths
            Lengths of the queries.
        subjects
            Sizes of the set of subjects.
        longest : (n,)
            Lengths of all subjects, longest first.
        rows : (n + 1,)
            Cumulative number of residues of the subjects, longest first, from 0.
        """
        return self.plan(numbers, in_word, lengths, subjects, longest, rows)[1]

    def plan(
        self, numbers: int, in_word: int, lengths: Sequence[int], subjects: Subjects, longest: NDArray, rows: NDArray
    ) -> tuple[float, list[Part]]:
        """Return the predicted cycles and the parts. If words hold strips of two queries, the two queries share these cycles."""
        possible = self._possible(numbers, in_word)
        alone, part = self._whole(possible, lengths, subjects)
        shares = _SHARES[self._multiprocessors // 2 >= _SHARES]
        cuts = _FEWEST_LONG << np.arange(12)
        cuts = cuts[cuts <= subjects.n // 2]
        if self._requested or not len(cuts) or not len(shares):
            return alone, [part]
        first = cuts, rows[cuts], np.full_like(cuts, longest[0]), longest[cuts - 1]
        others = subjects.n - cuts, rows[-1] - rows[cuts], longest[cuts], np.full_like(cuts, subjects.shortest)
        of_first = possible.cycles(lengths, first, shares)
        of_others = possible.cycles(lengths, others, self._multiprocessors - shares)
        together = np.maximum(of_first.min(axis=-1), of_others.min(axis=-1))
        cut, share = np.unravel_index(int(np.argmin(together)), together.shape)
        if together[cut, share] > _WORTH_A_CUT * alone:
            return alone, [part]
        n, shapes = int(cuts[cut]), [possible.shapes[int(np.argmin(of[cut, share]))] for of in (of_first, of_others)]
        blocks = min(int(shares[share]), -(-n // shapes[0].subjects_of_block))
        return float(together[cut, share]), [Part(0, n, shapes[0], blocks), Part(n, subjects.n, shapes[1], self._multiprocessors - blocks)]


def predicted_cycles(
    capability: int, multiprocessors: int, shared_bytes: int, lengths: Sequence[int], subjects: NDArray[np.int64]
) -> float:
    """Return the predicted cycles of scoring queries of the given `lengths` against `subjects`, given by their lengths (n,)."""
    planner, numbers = Planner(multiprocessors, shared_bytes, None, None), fastest_number_type(capability)
    longest = np.sort(subjects)[::-1]
    if not len(longest):
        return 0.0
    rows = np.concatenate(([0], np.cumsum(longest)))
    every, cycles = Subjects(len(longest), int(rows[-1]), int(longest[0]), int(longest[-1])), 0.0
    for in_word, queries in query_groups(numbers, lengths):
        halves = 2.0 if in_word == 1 and numbers != THIRTY_TWO_BITS else 1.0
        cycles += planner.plan(numbers, in_word, [lengths[query] for query in queries], every, longest, rows)[0] / halves
    return cycles
