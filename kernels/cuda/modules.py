"""Interface between launchers of kernels and a GPU: buffers, streams, and kernels that are compiled once per device.

CuPy is imported when the first GPU is opened, since importing it would slow the start of the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.rates import USUAL_RATES, GpuRates
from proteoscope.kernels.device import Device, DeviceError, DeviceMemoryError

__all__ = ["COMPILER_OPTIONS", "CudaGpu", "Gpu", "header_options", "open_gpu", "source", "struct"]

COMPILER_OPTIONS = ("-std=c++17", "--fmad=false")
"""Options of the compiler; fused multiply-adds are off, since they round differently from the kernels of the CPU."""


class Gpu(Device, Protocol):
    """Functions of a device for launchers of kernels; streams and buffers are opaque, and commands on a stream run in order.

    Several threads may use a GPU if each has separate streams. A buffer, and the source of a transfer from pinned memory, must exist until
    its stream is complete, since freed memory is reused by the next request on any stream.

    Attributes
    ----------
    rates
        Measured or typical speeds.
    """

    rates: GpuRates

    def free_bytes(self) -> int:
        """Return the device memory that can be allocated now."""

    def maximum_shared_bytes(self) -> int:
        """Return the maximum shared memory of a block, static and dynamic together."""

    def compute_capability(self) -> int:
        """Return ten times the compute capability: 90 for 9.0."""

    def multiprocessors(self) -> int:
        """Return the number of multiprocessors."""

    def buffer(self, n_bytes: int) -> Any:
        """Return a buffer in device memory; raise DeviceMemoryError if it does not fit."""

    def address(self, buffer: Any) -> int:
        """Return the address of a buffer for kernels that find their arrays in a struct."""

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return pinned host memory, from which transfers overlap with kernels; raise DeviceMemoryError if there is none."""

    def stream(self, *, is_urgent: bool = False) -> Any:
        """Return a new stream; kernels on an urgent one start before kernels that wait on others."""

    def record(self, stream: Any) -> Any:
        """Return an event that occurs when all commands so far on a stream are complete."""

    def wait_for(self, stream: Any, event: Any) -> None:
        """Let later commands on a stream wait for an event of another stream."""

    def upload(self, buffer: Any, values: NDArray, stream: Any, *, offset: int = 0) -> None:
        """Copy a contiguous array to a buffer from byte `offset` on; asynchronously from pinned memory."""

    def download(self, values: NDArray, buffer: Any, stream: Any, *, offset: int = 0) -> None:
        """Copy bytes of a buffer, from byte `offset` on, to a contiguous array; asynchronously to pinned memory."""

    def clear(self, buffer: Any, n_bytes: int, stream: Any) -> None:
        """Set the first `n_bytes` bytes of a buffer to zero."""

    def launch(
        self,
        file: str,
        kernel: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        stream: Any,
        *,
        shared_bytes: int = 0,
        defines: tuple[str, ...] = (),
    ) -> None:
        """Start a kernel in a source file of this package, which is compiled once per set of macros (`defines`, such as ``"LANES=8"``).

        Arguments are buffers and NumPy scalars of the parameters' types. A NumPy uint64 is passed as a pointer; a zero-dimensional array
        is passed by value as a struct (see `struct`).
        """

    def wait(self, stream: Any) -> None:
        """Wait until all commands on a stream are complete; raise DeviceError for errors in them."""


def source(file: str) -> str:
    """Return the text of a `.cu` or `.cuh` file of this package."""
    return (files(__package__) / file).read_text(encoding="utf-8")


@lru_cache
def header_options() -> tuple[str, ...]:
    """Return the compiler options with which source files find the headers of this package.

    They include a digest of the headers, since CuPy's cache depends only on the text of a source file and the options.
    """
    folder = Path(str(files(__package__)))
    digest = sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.cuh")))).hexdigest()
    return f"-I{folder}", f"-DHEADERS_{digest[:16]}"


def struct(gpu: Gpu, layout: np.dtype, members: Mapping[str, Any]) -> NDArray[np.void]:
    """Return a struct for a kernel as a zero-dimensional array.

    Buffers become addresses and must exist until the kernel is complete.
    """
    made = np.zeros((), layout)
    assert set(layout.names or ()) == set(members)
    for name, value in members.items():
        is_number = isinstance(value, int | float | np.integer | np.floating)
        made[name] = value if is_number else gpu.address(value)
    return made


class _CudaErrors:
    """Context manager that converts errors of CuPy to errors of this module, with little overhead, since short searches use it often."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        import cupy  # optional, and slow to import: only searches on a GPU need it
        from cupy.cuda import compiler  # optional, and slow to import: only searches on a GPU need it

        if isinstance(error, cupy.cuda.memory.OutOfMemoryError):
            raise DeviceMemoryError(f"{self._name} does not have enough free memory: {error}") from error
        if isinstance(error, compiler.CompileException):
            raise DeviceError(f"a kernel does not compile for {self._name}:\n{error}") from error
        if isinstance(error, cupy.cuda.runtime.CUDARuntimeError | cupy.cuda.driver.CUDADriverError):
            is_memory = "MemoryAllocation" in str(error) or "OUT_OF_MEMORY" in str(error)
            raise (DeviceMemoryError if is_memory else DeviceError)(f"{self._name} failed: {error}") from error


class CudaGpu:
    """GPU with a CUDA device number, accessed through CuPy."""

    kernels = "cuda"
    is_processor = False

    def __init__(self, number: int) -> None:
        import cupy  # optional, and slow to import: only searches on a GPU need it

        self._cupy, self._modules = cupy, {}  # type: ignore[var-annotated]
        self._functions: dict[tuple[str, tuple[str, ...], str], tuple[Any, int]] = {}
        self._compiling, self._attributes = Lock(), dict[str, int]()
        self.name = f"cuda:{number}"
        self.rates = USUAL_RATES
        self._errors = _CudaErrors(self.name)
        with self._errors:
            self._device = cupy.cuda.Device(number)

    def limit_memory(self, n_bytes: int) -> None:
        """Limit the total memory of buffers and of CuPy's pool, bytes; 0 for no limit."""
        with self._errors, self._device:
            pool = self._cupy.get_default_memory_pool()
            if n_bytes:
                pool.free_all_blocks()
            pool.set_limit(size=n_bytes)

    def free_bytes(self) -> int:
        """Return the device memory that can be allocated now, including unused memory of CuPy's pool, within the limit."""
        with self._errors, self._device:
            pool = self._cupy.get_default_memory_pool()
            free, _ = self._cupy.cuda.runtime.memGetInfo()
            limit, free = int(pool.get_limit()), int(free) + int(pool.free_bytes())
            return min(free, max(0, limit - int(pool.used_bytes()))) if limit else free

    def maximum_shared_bytes(self) -> int:
        """Return the maximum shared memory of a block (see `Gpu`)."""
        return self._attribute("MaxSharedMemoryPerBlockOptin")

    def compute_capability(self) -> int:
        """Return ten times the compute capability (see `Gpu`)."""
        with self._errors:
            return int(self._device.compute_capability)

    def multiprocessors(self) -> int:
        """Return the number of multiprocessors (see `Gpu`)."""
        return self._attribute("MultiProcessorCount")

    def _attribute(self, name: str) -> int:
        """Return a device attribute, cached, since it is needed for launches that take microseconds."""
        if name not in self._attributes:
            with self._errors:
                self._attributes[name] = int(self._device.attributes[name])
        return self._attributes[name]

    def buffer(self, n_bytes: int) -> Any:
        """Return a buffer in device memory (see `Gpu`)."""
        with self._errors, self._device:
            return self._cupy.empty(max(16, n_bytes), np.uint8)

    def address(self, buffer: Any) -> int:
        """Return the address of a buffer (see `Gpu`)."""
        return int(buffer.data.ptr)

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return pinned host memory (see `Gpu`)."""
        with self._errors, self._device:
            memory = self._cupy.cuda.alloc_pinned_memory(max(16, n_bytes))
            return np.frombuffer(memory, np.uint8, max(16, n_bytes))

    def stream(self, *, is_urgent: bool = False) -> Any:
        """Return a new stream (see `Gpu`)."""
        with self._errors, self._device:
            return self._cupy.cuda.Stream(non_blocking=True, priority=-1 if is_urgent else 0)

    def record(self, stream: Any) -> Any:
        """Return an event on a stream (see `Gpu`)."""
        with self._errors, self._device:
            event = self._cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            return event

    def wait_for(self, stream: Any, event: Any) -> None:
        """Let later commands on a stream wait for an event (see `Gpu`)."""
        with self._errors, self._device:
            stream.wait_event(event)

    def upload(self, buffer: Any, values: NDArray, stream: Any, *, offset: int = 0) -> None:
        """Copy an array to a buffer (see `Gpu`)."""
        if values.nbytes:
            with self._errors, self._device:
                (buffer.data + offset).copy_from_host_async(values.ctypes.data, values.nbytes, stream)

    def download(self, values: NDArray, buffer: Any, stream: Any, *, offset: int = 0) -> None:
        """Copy bytes of a buffer to an array (see `Gpu`)."""
        if values.nbytes:
            with self._errors, self._device:
                (buffer.data + offset).copy_to_host_async(values.ctypes.data, values.nbytes, stream)

    def clear(self, buffer: Any, n_bytes: int, stream: Any) -> None:
        """Set the first bytes of a buffer to zero (see `Gpu`)."""
        with self._errors, self._device:
            buffer.data.memset_async(0, n_bytes, stream)

    def launch(
        self,
        file: str,
        kernel: str,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        stream: Any,
        *,
        shared_bytes: int = 0,
        defines: tuple[str, ...] = (),
    ) -> None:
        """Start a kernel (see `Gpu`)."""
        if blocks <= 0:
            return
        with self._errors, self._device, stream:
            function, workspace = self._functions.get((file, defines, kernel)) or self._compiled(file, defines, kernel)
            if shared_bytes > workspace:  # more than 48 KB with the static part must be requested
                function.max_dynamic_shared_size_bytes = shared_bytes
                self._functions[file, defines, kernel] = function, shared_bytes
            function((blocks,), (threads,), tuple(arguments), shared_mem=shared_bytes)

    def compile(self, file: str, defines: tuple[str, ...]) -> None:
        """Compile a source file with the given macros, unless it is cached, and cache it on disk; may be called from several threads.

        Raises
        ------
        DeviceError
            If the compilation fails.
        """
        with self._errors, self._device:
            self._module(file, defines).compile()

    def _module(self, file: str, defines: tuple[str, ...]) -> Any:
        options = (*COMPILER_OPTIONS, *header_options(), *(f"-D{define}" for define in defines))
        return self._cupy.RawModule(code=source(file), options=options, backend="nvrtc")

    def _compiled(self, file: str, defines: tuple[str, ...], kernel: str) -> tuple[Any, int]:
        """Return a kernel and its maximum dynamic shared memory."""
        with self._compiling:  # other threads wait for the module instead of also compiling it
            if (file, defines) not in self._modules:
                self._modules[file, defines] = self._module(file, defines)
            function = self._modules[file, defines].get_function(kernel)
            result = self._functions[file, defines, kernel] = function, function.max_dynamic_shared_size_bytes
            return result

    def wait(self, stream: Any) -> None:
        """Wait until all commands on a stream are complete (see `Gpu`)."""
        with self._errors, self._device:
            stream.synchronize()


@lru_cache
def open_gpu(number: int) -> CudaGpu:
    """Return the GPU of a CUDA device; its kernels are compiled once.

    Raises
    ------
    DeviceError
        If the device cannot be opened.
    """
    return CudaGpu(number)
