"""Benchmark problems of the ATGPU model, and rates of basic operations, on a GPU, with the kernels of analyses.cu.

Each transfer and each computation ends before the next begins, as in the model; they are timed separately.
`proteoscope.kernels.analyses_layouts` has the ATGPU analysis of each problem: rounds, operations, memory blocks, words and transfers in and
out, shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.analyses_layouts import BLOCK, OPERATIONS, TILE, TOGETHER, Spent, scan_levels
from proteoscope.kernels.cuda.modules import Gpu

__all__ = ["Analyses"]

_FILE = "analyses.cu"
_BLOCKS = 8  # blocks per multiprocessor when a rate is measured


class Analyses:
    """Problems on a device, computed with 32-bit integers that wrap around."""

    def __init__(self, device: Gpu) -> None:
        self._gpu, self._stream = device, device.stream()

    def add(self, a: NDArray[np.uint32], b: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the sums of two vectors, (n,)."""
        n = len(a)

        def work(buffers: list[Any]) -> None:
            self._launch("add_vectors", -(-n // BLOCK), (*buffers, np.int64(n)))

        return self._done((a, b), n, n, work, -1)

    def multiply(self, a: NDArray[np.uint32], b: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the product of two matrices, (n, n)."""
        n = len(a)

        def work(buffers: list[Any]) -> None:
            self._launch("multiply_matrices", (-(-n // TILE)) ** 2, (*buffers, np.int32(n)))

        result, spent = self._done((a, b), n * n, n * n, work, -1)
        return result.reshape(n, n), spent

    def reduce(self, values: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the sum of a vector, (1,)."""
        levels = scan_levels(len(values))
        workspace = [self._gpu.buffer(4 * -(-size // (2 * BLOCK))) for size in levels]

        def work(buffers: list[Any]) -> None:
            source = buffers[0]
            for size, sums in zip(levels, workspace, strict=True):
                self._launch("reduce_blocks", -(-size // (2 * BLOCK)), (source, sums, np.int64(size)))
                source = sums
            buffers.append(source)

        return self._done((values,), 0, 1, work, -1)

    def scan(self, values: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], Spent]:
        """Return the exclusive prefix sums, (n,)."""
        levels = scan_levels(len(values))
        workspace = [self._gpu.buffer(4 * -(-size // (2 * BLOCK))) for size in levels]

        def work(buffers: list[Any]) -> None:
            sources = [buffers[0], *workspace[:-1]]
            for size, source, sums in zip(levels, sources, workspace, strict=True):
                self._launch("scan_blocks", -(-size // (2 * BLOCK)), (source, sums, np.int64(size)))
            for size, source, sums in list(zip(levels, sources, workspace, strict=True))[-2::-1]:
                self._launch("add_to_blocks", -(-size // (2 * BLOCK)), (source, sums, np.int64(size)))

        return self._done((values,), 0, len(values), work, 0)

    def rate(self, operation: str, steps: int) -> tuple[float, float]:
        """Run an operation of `OPERATIONS`, `steps` x `TOGETHER` times per thread; return the number of operations and the seconds."""
        blocks = _BLOCKS * self._gpu.multiprocessors()
        workspace = self._gpu.buffer(4 * BLOCK * blocks)
        began = perf_counter()
        self._launch("repeat_operation", blocks, (workspace, np.int32(steps)), (f"RATE={OPERATIONS.index(operation)}",))
        self._gpu.wait(self._stream)
        return float(blocks * BLOCK * TOGETHER * steps), perf_counter() - began

    def stream(self, n: int, repeats: int) -> float:
        """Return the seconds of repeatedly adding two vectors of n words without transfers, with one synchronisation."""
        buffers = [self._gpu.buffer(4 * n) for _ in range(3)]
        for buffer in buffers[:2]:
            self._gpu.clear(buffer, 4 * n, self._stream)
        self._gpu.wait(self._stream)
        began = perf_counter()
        for _ in range(repeats):
            self._launch("add_vectors", -(-n // BLOCK), (*buffers, np.int64(n)))
        self._gpu.wait(self._stream)
        return perf_counter() - began

    def _launch(self, kernel: str, blocks: int, arguments: Sequence[Any], defines: tuple[str, ...] = ()) -> None:
        self._gpu.launch(_FILE, kernel, blocks, BLOCK, arguments, self._stream, defines=defines)

    def _done(self, given: Sequence[NDArray], workspace: int, n_out: int, work: Any, position: int) -> tuple[NDArray[np.uint32], Spent]:
        """Send inputs, call `work` with all buffers, and fetch the buffer with index `position`; return its values and the times.

        The buffers are the inputs and the workspace, followed by buffers that `work` appends.
        """
        gpu, stream = self._gpu, self._stream
        buffers = [gpu.buffer(values.nbytes) for values in given] + ([gpu.buffer(4 * workspace)] if workspace else [])
        result = np.empty(n_out, np.uint32)
        marks = [perf_counter()]
        for buffer, values in zip(buffers, given, strict=False):
            gpu.upload(buffer, np.ascontiguousarray(values), stream)
        gpu.wait(stream)
        marks.append(perf_counter())
        work(buffers)
        gpu.wait(stream)
        marks.append(perf_counter())
        gpu.download(result, buffers[position], stream)
        gpu.wait(stream)
        marks.append(perf_counter())
        return result, Spent(*np.diff(marks).tolist())
