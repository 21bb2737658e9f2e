"""Interface between launchers of kernels and a GPU: buffers, streams, and kernels that are loaded once per device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, byref, c_float, c_int, c_size_t, c_uint8, c_uint64, c_void_p, create_string_buffer
from functools import lru_cache, partial
from itertools import accumulate, repeat
from threading import Lock
from typing import Any, Protocol
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.cuda.compiled import machine_code
from proteoscope.kernels.cuda.driver import Attribute, Context, Handle
from proteoscope.kernels.cuda.rates import USUAL_RATES, GpuRates
from proteoscope.kernels.device import Device, DeviceError, DeviceMemoryError

__all__ = ["CudaGpu", "Gpu", "open_gpu", "struct"]

_UNLIMITED = (1 << 64) - 1
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_WITHOUT_TIME = 2  # CU_EVENT_DISABLE_TIMING


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


class _Buffer:
    """Buffer in device memory, which is freed with this object.

    Attributes
    ----------
    pointer
        Address on the device.
    content
        The address as an argument of a kernel.
    """

    __slots__ = ("_free", "content", "pointer")

    def __init__(self, pointer: int, free: Callable[[int], None]) -> None:
        self.pointer, self.content, self._free = pointer, pointer.to_bytes(8, sys.byteorder), free

    def __del__(self) -> None:
        self._free(self.pointer)


class CudaGpu:
    """GPU with a CUDA device number.

    Buffers come from the driver's pool of the device, which retains freed memory. The pool orders allocations by a stream that has no other
    commands, so that memory is available as soon as a buffer exists.
    """

    kernels = "cuda"
    is_processor = False

    def __init__(self, number: int) -> None:
        self._context = context = Context(number)
        self.name, self.rates, self._cuda = context.name, USUAL_RATES, context.functions
        self._modules: dict[tuple[str, tuple[str, ...]], Any] = {}
        self._functions: dict[tuple[str, tuple[str, ...], str], tuple[Any, int]] = {}
        self._compiling, self._attributes, self._limit = Lock(), dict[int, int](), 0
        self._sizes: dict[int, int] = {}  # bytes of each buffer by its address
        self._unused_pinned: dict[int, list[int]] = {}  # addresses by size
        self._pool = self._pool_stream = None
        if self._attribute(Attribute.HAS_POOLS):
            self._pool = context.create(self._cuda.cuDeviceGetDefaultMemPool, context.device)
            self._pool_stream = self.stream()
            self._retain(_UNLIMITED)
            self.buffer(1)  # the first allocation takes 8 ms; GPUs are opened while files are read

    def limit_memory(self, n_bytes: int) -> None:
        """Limit the total memory of buffers, bytes; 0 for no limit."""
        self._limit = n_bytes
        if self._pool is not None:
            self._retain(n_bytes or _UNLIMITED)
            if n_bytes:
                self.release_unused(n_bytes)

    def _retain(self, n_bytes: int) -> None:
        """Let the pool retain at most `n_bytes` of memory without buffers."""
        threshold = byref(c_uint64(n_bytes))
        self._context.call(self._cuda.cuMemPoolSetAttribute, self._pool, Attribute.POOL_RELEASE_THRESHOLD, threshold)

    def used_bytes(self) -> int:
        """Return the total memory of buffers."""
        return sum(list(self._sizes.values()))

    def free_bytes(self) -> int:
        """Return the device memory that can be allocated now, including unused memory of the pool, within the limit."""
        reserved = self.reserved_bytes()  # first, since it waits for the end of earlier buffers
        free, total = c_size_t(), c_size_t()
        self._context.call(self._cuda.cuMemGetInfo_v2, byref(free), byref(total))
        result = free.value + max(0, reserved - self._of_pool(Attribute.POOL_USED_BYTES, reserved))
        return min(result, max(0, self._limit - self.used_bytes())) if self._limit else result

    def reserved_bytes(self) -> int:
        """Return the memory of buffers together with the memory that the pool retains."""
        if self._pool_stream is not None:
            self.wait(self._pool_stream)
        return self._of_pool(Attribute.POOL_RESERVED_BYTES, self.used_bytes())

    def _of_pool(self, attribute: int, without: int) -> int:
        """Return an attribute of the pool, or `without` if there is no pool."""
        value = c_uint64(without)
        if self._pool is not None:
            self._context.call(self._cuda.cuMemPoolGetAttribute, self._pool, attribute, byref(value))
        return value.value

    def maximum_shared_bytes(self) -> int:
        """Return the maximum shared memory of a block (see `Gpu`)."""
        return self._attribute(Attribute.SHARED_BYTES)

    def compute_capability(self) -> int:
        """Return ten times the compute capability (see `Gpu`)."""
        return 10 * self._attribute(Attribute.CAPABILITY_MAJOR) + self._attribute(Attribute.CAPABILITY_MINOR)

    def multiprocessors(self) -> int:
        """Return the number of multiprocessors (see `Gpu`)."""
        return self._attribute(Attribute.MULTIPROCESSORS)

    def clock_rate(self) -> int:
        """Return the maximum clock in kHz."""
        return self._attribute(Attribute.CLOCK_RATE)

    def _attribute(self, number: int) -> int:
        """Return a device attribute, cached, since it is needed for launches that take microseconds."""
        if number not in self._attributes:
            self._attributes[number] = self._context.attribute(number)
        return self._attributes[number]

    def buffer(self, n_bytes: int) -> Any:
        """Return a buffer in device memory (see `Gpu`)."""
        size, cuda = max(16, n_bytes), self._cuda
        if self._limit and self.used_bytes() + size > self._limit:
            raise DeviceMemoryError(f"{self.name} may use {self._limit} bytes, too few for another {size}")
        if self._pool_stream is None:
            pointer = self._context.create(cuda.cuMemAlloc_v2, size, kind=c_uint64)
        else:
            allocate = partial(self._context.create, cuda.cuMemAllocAsync, size, self._pool_stream.value, kind=c_uint64)
            try:
                pointer = allocate()
            except DeviceMemoryError:
                self.release_unused()
                pointer = allocate()
            self.wait(self._pool_stream)
        self._sizes[pointer] = size
        return _Buffer(pointer, self._free)

    def release_unused(self, retained: int = 0) -> None:
        """Return memory of the pool to the device, but `retained` bytes, as far as no buffer uses it."""
        if self._pool_stream is not None:
            self.wait(self._pool_stream)
            self._context.call(self._cuda.cuMemPoolTrimTo, self._pool, retained)

    def _free(self, pointer: int) -> None:
        self._sizes.pop(pointer, None)
        if self._pool_stream is None:
            self._context.attempt(self._cuda.cuMemFree_v2, pointer)
        else:
            self._context.attempt(self._cuda.cuMemFreeAsync, pointer, self._pool_stream.value)

    def address(self, buffer: Any) -> int:
        """Return the address of a buffer (see `Gpu`)."""
        return int(buffer.pointer)

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """Return pinned host memory (see `Gpu`)."""
        size = 1 << (max(16, n_bytes) - 1).bit_length()
        unused = self._unused_pinned.setdefault(size, [])
        try:
            pointer = unused.pop()
        except IndexError:
            pointer = self._context.create(self._cuda.cuMemHostAlloc, size, 0)
        memory = (c_uint8 * size).from_address(pointer)
        finalize(memory, unused.append, pointer).atexit = False
        return np.frombuffer(memoryview(memory), np.uint8, max(16, n_bytes))

    def stream(self, *, is_urgent: bool = False) -> Any:
        """Return a new stream (see `Gpu`)."""
        stream = self._context.create(self._cuda.cuStreamCreateWithPriority, _NON_BLOCKING, -1 if is_urgent else 0)
        return Handle(stream, partial(self._context.attempt, self._cuda.cuStreamDestroy_v2))

    def record(self, stream: Any, *, is_timed: bool = False) -> Any:
        """Return an event on a stream (see `Gpu`); if `is_timed`, its time can be read."""
        event = self._context.create(self._cuda.cuEventCreate, 0 if is_timed else _WITHOUT_TIME)
        result = Handle(event, partial(self._context.attempt, self._cuda.cuEventDestroy_v2))
        self._context.call(self._cuda.cuEventRecord, event, stream.value)
        return result

    def wait_for(self, stream: Any, event: Any) -> None:
        """Let later commands on a stream wait for an event (see `Gpu`)."""
        self._context.call(self._cuda.cuStreamWaitEvent, stream.value, event.value, 0)

    def seconds_between(self, start: Any, stop: Any) -> float:
        """Return the seconds between two timed events that have occurred."""
        return float(self._context.create(self._cuda.cuEventElapsedTime, start.value, stop.value, kind=c_float)) / 1e3

    def upload(self, buffer: Any, values: NDArray, stream: Any, *, offset: int = 0) -> None:
        """Copy an array to a buffer (see `Gpu`)."""
        if values.nbytes:
            place = buffer.pointer + offset
            self._context.call(self._cuda.cuMemcpyHtoDAsync_v2, place, values.ctypes.data, values.nbytes, stream.value)

    def download(self, values: NDArray, buffer: Any, stream: Any, *, offset: int = 0) -> None:
        """Copy bytes of a buffer to an array (see `Gpu`)."""
        if values.nbytes:
            place = buffer.pointer + offset
            self._context.call(self._cuda.cuMemcpyDtoHAsync_v2, values.ctypes.data, place, values.nbytes, stream.value)

    def clear(self, buffer: Any, n_bytes: int, stream: Any) -> None:
        """Set the first bytes of a buffer to zero (see `Gpu`)."""
        if n_bytes:
            self._context.call(self._cuda.cuMemsetD8Async, buffer.pointer, 0, n_bytes, stream.value)

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
        function, workspace = self._functions.get((file, defines, kernel)) or self._compiled(file, defines, kernel)
        if shared_bytes > workspace:  # more than 48 KB with the static part must be requested
            with self._compiling:  # another thread may request more at the same time
                if shared_bytes > self._functions[file, defines, kernel][1]:
                    self._context.call(self._cuda.cuFuncSetAttribute, function, Attribute.FUNCTION_SHARED_BYTES, shared_bytes)
                    self._functions[file, defines, kernel] = function, shared_bytes
        # The driver copies the arguments; their addresses suit every type.
        contents = [argument.content if isinstance(argument, _Buffer) else argument.tobytes() for argument in arguments]
        sizes = [-(-len(content) // 16) * 16 for content in contents]
        memory = create_string_buffer(b"".join(map(bytes.ljust, contents, sizes, repeat(b"\0"))))
        places = (c_void_p * (len(sizes) + 1))(*accumulate(sizes, initial=addressof(memory)))
        self._context.call(self._cuda.cuLaunchKernel, function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream.value, places, None)

    def compile(self, file: str, defines: tuple[str, ...]) -> bytes:
        """Return the machine code of a source file with the given macros, compiled unless it is cached; may be called from several threads.

        Raises
        ------
        DeviceError
            If the compilation fails.
        """
        try:
            return machine_code(file, defines, self.compute_capability())
        except DeviceError as error:
            raise DeviceError(f"{self.name}: {error}") from error

    def _compiled(self, file: str, defines: tuple[str, ...], kernel: str) -> tuple[Any, int]:
        """Return a kernel and its maximum dynamic shared memory."""
        context, cuda = self._context, self._cuda
        with self._compiling:  # other threads wait for the module instead of also compiling it
            if (file, defines) not in self._modules:
                self._modules[file, defines] = context.create(cuda.cuModuleLoadData, self.compile(file, defines))
            function = context.create(cuda.cuModuleGetFunction, self._modules[file, defines], kernel.encode())
            shared_bytes = self.function_attribute(function, Attribute.FUNCTION_SHARED_BYTES)
            result = self._functions[file, defines, kernel] = function, shared_bytes
            return result

    def function_attribute(self, function: Any, number: int) -> int:
        """Return an attribute of a loaded kernel by its number in the driver's interface."""
        return int(self._context.create(self._cuda.cuFuncGetAttribute, number, function, kind=c_int))

    def wait(self, stream: Any) -> None:
        """Wait until all commands on a stream are complete (see `Gpu`)."""
        self._context.call(self._cuda.cuStreamSynchronize, stream.value)


@lru_cache
def open_gpu(number: int) -> CudaGpu:
    """Return the GPU of a CUDA device; its kernels are compiled once.

    Raises
    ------
    DeviceError
        If the device cannot be opened.
    """
    return CudaGpu(number)
