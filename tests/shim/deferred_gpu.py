"""GPU that runs commands as late as CUDA allows, so that a missing wait changes results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.shim.shim_gpu import ShimGpu

__all__ = ["DeferredGpu"]


class _Stream:
    """Commands in order; the first `done` ones have run."""

    def __init__(self) -> None:
        self.commands: list[Callable[[], None]] = []
        self.done = 0


class DeferredGpu(ShimGpu):
    """GPU whose commands run when the host waits for their stream, or when another stream must wait for them.

    As in CUDA, transfers from memory that is not pinned read it at once, and transfers to such memory wait for their stream.

    Attributes
    ----------
    log : list of str
        Names of kernels, ``download`` and ``upload``, in the order in which the host requested them.
    hold : callable
        Called before each upload with its buffer and offset, in the thread that sends; may wait.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[str] = []
        self.hold: Callable[[NDArray[np.uint8], int], object] = lambda buffer, offset: None
        self._pinned: list[tuple[int, int]] = []
        self._running = threading.RLock()

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        memory = super().pinned(n_bytes)
        self._pinned.append((memory.ctypes.data, memory.ctypes.data + memory.nbytes))
        return memory

    def stream(self, *, is_urgent: bool = False) -> Any:
        return _Stream()

    def record(self, stream: _Stream) -> Any:
        return stream, len(stream.commands)

    def wait_for(self, stream: _Stream, event: Any) -> None:
        stream.commands.append(lambda: self._run(*event))

    def upload(self, buffer: NDArray[np.uint8], values: NDArray, stream: _Stream, *, offset: int = 0) -> None:
        self.hold(buffer, offset)
        self.log.append("upload")
        read = values if self._is_pinned(values) else values.copy()
        stream.commands.append(lambda: ShimGpu.upload(self, buffer, read, None, offset=offset))

    def download(self, values: NDArray, buffer: NDArray[np.uint8], stream: _Stream, *, offset: int = 0) -> None:
        self.log.append("download")
        stream.commands.append(lambda: ShimGpu.download(self, values, buffer, None, offset=offset))
        if not self._is_pinned(values):
            self._run(stream, len(stream.commands))

    def clear(self, buffer: NDArray[np.uint8], n_bytes: int, stream: _Stream) -> None:
        stream.commands.append(lambda: ShimGpu.clear(self, buffer, n_bytes, None))

    def launch(self, file: str, kernel: str, blocks: int, threads: int, arguments: Any, stream: _Stream, **options: Any) -> None:
        self.log.append(kernel)
        stream.commands.append(lambda: ShimGpu.launch(self, file, kernel, blocks, threads, arguments, None, **options))

    def wait(self, stream: _Stream) -> None:
        self._run(stream, len(stream.commands))
        super().wait(None)

    def _run(self, stream: _Stream, end: int) -> None:
        with self._running:
            while stream.done < end:
                stream.done += 1
                stream.commands[stream.done - 1]()

    def _is_pinned(self, values: NDArray) -> bool:
        return any(start <= values.ctypes.data < end for start, end in self._pinned)
