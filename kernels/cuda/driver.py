"""Functions of the CUDA driver, which every NVIDIA driver has (CUDA Driver API, NVIDIA), called through ctypes.

Importing CuPy for these calls would take 0.2 s of each command with the GIL, while files are read.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from functools import lru_cache
from typing import Any, NamedTuple

from proteoscope.kernels.device import DeviceError, DeviceMemoryError

__all__ = ["Attribute", "Context", "GpuIdentity", "Handle", "begin_context", "gpu_identity", "identity"]

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuGetErrorName": (c_int, POINTER(c_char_p)),
    "cuGetErrorString": (c_int, POINTER(c_char_p)),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemAllocAsync": (POINTER(c_uint64), c_size_t, c_void_p),
    "cuMemFreeAsync": (c_uint64, c_void_p),
    "cuDeviceGetDefaultMemPool": (POINTER(c_void_p), c_int),
    "cuMemPoolGetAttribute": (c_void_p, c_int, c_void_p),
    "cuMemPoolSetAttribute": (c_void_p, c_int, c_void_p),
    "cuMemPoolTrimTo": (c_void_p, c_size_t),
    "cuMemHostAlloc": (POINTER(c_void_p), c_size_t, c_uint),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuStreamCreateWithPriority": (POINTER(c_void_p), c_uint, c_int),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
}
"""Functions of the driver with the types of their arguments. All functions return 0 or the number of an error."""
_OUT_OF_MEMORY = 2


class Attribute:
    """Numbers of attributes of a device, a function and a pool of memory in the driver's interface."""

    CLOCK_RATE = 13
    MULTIPROCESSORS = 16
    CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
    SHARED_BYTES = 97
    HAS_POOLS = 115
    FUNCTION_SHARED_BYTES = 8
    POOL_RELEASE_THRESHOLD, POOL_RESERVED_BYTES, POOL_USED_BYTES = 4, 5, 7


class _Functions:
    """Functions of a driver library, which are looked up when they are first used, since old drivers lack some."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        function: Any = getattr(self._library, name)
        function.argtypes = _FUNCTIONS[name]
        setattr(self, name, function)
        return function


@lru_cache(maxsize=2)
def _open(library: str) -> tuple[_Functions, _Functions]:
    """Return the functions of the driver, and functions that retain the GIL, for calls that take less time than waiting for it."""
    return _Functions(ctypes.CDLL(library)), _Functions(ctypes.PyDLL(library))


class Handle:
    """Object of the driver, such as a stream, which is destroyed with this object."""

    __slots__ = ("_destroy", "value")

    def __init__(self, value: Any, destroy: Callable[[Any], object]) -> None:
        self.value, self._destroy = value, destroy

    def __del__(self) -> None:
        self._destroy(self.value)


class Context:
    """Primary context of a CUDA device, which is created if it does not exist, and lasts as long as the process.

    Raises
    ------
    DeviceError
        If there is no driver, or it cannot open the device.
    """

    def __init__(self, number: int) -> None:
        self.name, self._context = f"cuda:{number}", c_void_p()
        try:
            self.functions, self.fast = _open(_LIBRARY)
        except OSError as error:
            raise DeviceError(f"{self.name}: the NVIDIA driver cannot be loaded: {error}") from error
        device = c_int()
        self._raise(self.functions.cuInit(0))
        self._raise(self.functions.cuDeviceGet(byref(device), number))
        self._raise(self.functions.cuDevicePrimaryCtxRetain(byref(self._context), device))
        self.device = device.value

    def call(self, function: Callable[..., int], *arguments: Any) -> None:
        """Call a function of the driver in this context, which may be another than that of the last call in this thread.

        Raises
        ------
        DeviceMemoryError
            If there is not enough memory.
        DeviceError
            If the call fails otherwise, or an earlier kernel failed.
        """
        if status := self.fast.cuCtxSetCurrent(self._context) or function(*arguments):
            self._raise(status)

    def create(self, function: Callable[..., int], *arguments: Any, kind: Any = c_void_p) -> Any:
        """Return the value that a function of the driver stores in the place that its first argument gives; see `call`."""
        result = kind()
        self.call(function, byref(result), *arguments)
        return result.value

    def attempt(self, function: Callable[..., int], *arguments: Any) -> None:
        """Call a function that releases something; if it fails, the next use of the device reports the error.

        Python may release objects at any time, also during a call for another device, whose context remains current.
        """
        previous = c_void_p()
        self.fast.cuCtxGetCurrent(byref(previous))
        if not self.fast.cuCtxSetCurrent(self._context):
            function(*arguments)
        self.fast.cuCtxSetCurrent(previous)

    def attribute(self, number: int) -> int:
        """Return an attribute of the device."""
        return int(self.create(self.functions.cuDeviceGetAttribute, number, self.device, kind=c_int))

    def _raise(self, status: int) -> None:
        if not status:
            return
        name, text = c_char_p(), c_char_p()
        self.functions.cuGetErrorName(status, byref(name))
        self.functions.cuGetErrorString(status, byref(text))
        described = ": ".join(part.value.decode(errors="replace") for part in (name, text) if part.value) or f"error {status}"
        if status == _OUT_OF_MEMORY:
            raise DeviceMemoryError(f"{self.name} does not have enough free memory: {described}")
        raise DeviceError(f"{self.name} failed: {described}")


def begin_context(number: int) -> bool:
    """Create the primary context of CUDA device `number`; return True on success.

    This takes tenths of a second without the GIL; the context lasts as long as the process. It is only for devices known to be
    usable, since a broken driver could crash the process. Errors are reported when the GPU is opened.
    """
    try:
        Context(number)
    except (DeviceError, AttributeError):
        return False
    return True


class GpuIdentity(NamedTuple):
    """Unique identity of a GPU, and its maximum clock in kHz."""

    uuid: bytes
    clock: int


def gpu_identity(number: int) -> GpuIdentity | None:
    """Return the identity of CUDA device `number`, or None if the driver does not report it."""
    try:
        driver = ctypes.CDLL(_LIBRARY)
        device, uuid, clock = ctypes.c_int(), (ctypes.c_ubyte * 16)(), ctypes.c_int()
        ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid
        if (
            driver.cuInit(0)
            or driver.cuDeviceGet(ctypes.byref(device), number)
            or ask(uuid, device)
            or driver.cuDeviceGetAttribute(ctypes.byref(clock), Attribute.CLOCK_RATE, device)
        ):
            return None
        return GpuIdentity(bytes(uuid), clock.value)
    except (OSError, AttributeError):
        return None


def identity(number: int) -> str:
    """Return UUID and clock (kHz) of CUDA device `number` as text; only the number if the driver does not report these."""
    result = gpu_identity(number)
    return f"device {number}" if result is None else f"{result.uuid.hex()} at {result.clock} kHz"
