"""Benchmark problems of the ATGPU model, and rates of basic operations, on the CPU.

Counterpart of `proteoscope.kernels.cuda.analyses` with the same results and no transfers. Work is distributed to threads as in a search.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from time import perf_counter

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.analyses_layouts import OPERATIONS, TOGETHER, Spent
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Partition, StopFlag

__all__ = ["Analyses"]

_VALUES_OF_PARTITION = 1 << 16  # values
_TABLE = 256
_CACHED = 1 << 16  # words: larger than the first-level cache of a core, smaller than the second-level cache
_WORD = 0xFFFFFFFF


@njit(nogil=True, cache=True)
def _add(a, b, c, first, last):
    for i in range(first, last):
        c[i] = a[i] + b[i]


@njit(nogil=True, cache=True)
def _multiply(a, b, c, first, last):
    n = len(a)
    for i in range(first, last):
        for k in range(n):
            factor = a[i, k]
            for j in range(n):
                c[i, j] += factor * b[k, j]


@njit(nogil=True, cache=True)
def _sum(values, first, last):
    total = np.uint64(0)
    for i in range(first, last):
        total += values[i]
    return np.uint32(total)


@njit(nogil=True, cache=True)
def _scan(values, before, sums, first, last):
    total = np.uint64(before)
    for i in range(first, last):
        sums[i] = np.uint32(total)
        total += values[i]


@njit(nogil=True, cache=True)
def _repeat(kind, steps, together, values, sums, table, cached):
    for step in range(steps):
        for i in range(together):
            following = values[(i + 1) % together]
            if kind == 0 or kind == 1:
                values[i] = max(values[i] + np.uint32(3), following)
            elif kind == 2:
                values[i] = (values[i] >> np.uint32(8)) | (following << np.uint32(24))
            elif kind == 3:
                sums[i] = sums[i] * np.float32(0.999) + sums[(i + 1) % together]
            elif kind == 4:
                values[i] = table[(values[i] + np.uint32(i)) & np.uint32(255)]
            elif kind == 6:
                values[i] += cached[(step * together + i) & np.int64(_CACHED - 1)]
            else:
                table[(values[i] + np.uint32(i)) & np.uint32(255)] += np.uint32(1)


class Analyses:
    """Problems on a device, computed with 32-bit integers that wrap around."""

    def __init__(self, device: Processor) -> None:
        self._device = device

    def add(self, a: NDArray[np.uint32], b: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the sums of two vectors, (n,)."""
        result = np.empty(len(a), np.uint32)
        return result, self._spent(
            lambda: self._partitions(len(a), _VALUES_OF_PARTITION, lambda first, last: _add(a, b, result, first, last))
        )

    def multiply(self, a: NDArray[np.uint32], b: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the product of two matrices, (n, n)."""
        result = np.zeros((len(a), len(a)), np.uint32)
        return result, self._spent(lambda: self._partitions(len(a), 16, lambda first, last: _multiply(a, b, result, first, last)))

    def reduce(self, values: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the sum of a vector, (1,)."""
        result = np.zeros(1, np.uint32)

        def work() -> None:
            result[0] = sum(self._sums(values).values()) & _WORD

        return result, self._spent(work)

    def scan(self, values: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the exclusive prefix sums, (n,)."""
        result = np.empty(len(values), np.uint32)

        def work() -> None:
            sums = self._sums(values)
            starts = sorted(sums)
            before = dict(zip(starts, (total & _WORD for total in accumulate([0, *(sums[start] for start in starts[:-1])])), strict=True))
            self._partitions(len(values), _VALUES_OF_PARTITION, lambda first, last: _scan(values, before[first], result, first, last))

        return result, self._spent(work)

    def rate(self, operation: str, steps: int) -> tuple[float, float]:
        """Run an operation of `OPERATIONS`, `steps` x `TOGETHER` times per thread; return the number of operations and the seconds."""
        number, threads = OPERATIONS.index(operation), self._device.threads

        def work(first: int, last: int) -> None:
            table = np.arange(_TABLE, dtype=np.uint32) * np.uint32(40503)
            retained = np.zeros(_CACHED, np.uint32)
            _repeat(number, steps, TOGETHER, np.arange(TOGETHER, dtype=np.uint32), np.ones(TOGETHER, np.float32), table, retained)

        began = perf_counter()
        self._partitions(threads, 1, work)
        return float(threads * TOGETHER * steps), perf_counter() - began

    def stream(self, n: int, repeats: int) -> float:
        """Return the seconds of repeatedly adding two vectors of n words without transfers, with one synchronisation."""
        a, b, result = np.zeros(n, np.uint32), np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        began = perf_counter()
        for _ in range(repeats):
            self._partitions(n, _VALUES_OF_PARTITION, lambda first, last: _add(a, b, result, first, last))
        return perf_counter() - began

    def _sums(self, values: NDArray[np.uint32]) -> dict[int, int]:
        sums: dict[int, int] = {}

        def add(first: int, last: int) -> None:
            sums[first] = int(_sum(values, first, last))

        self._partitions(len(values), _VALUES_OF_PARTITION, add)
        return sums

    def _partitions(self, n: int, least: int, work: Callable[[int, int], None]) -> None:
        """Run `work` on one range of values per thread, with at least `least` values per thread."""
        count = max(1, min(self._device.threads, n // least))
        cuts = [n * number // count for number in range(count + 1)]
        chunks = [Partition(first, last, 1.0) for first, last in pairwise(cuts)]

        def called(first: int, last: int, stop: StopFlag) -> None:
            work(first, last)

        for _ in self._device.run(called, chunks, 0):
            pass

    @staticmethod
    def _spent(work: Callable[[], None]) -> Spent:
        began = perf_counter()
        work()
        return Spent(0.0, perf_counter() - began, 0.0)
