"""Calls of the driver for opening a GPU, which run without the GIL while libraries are imported and files are read."""

from __future__ import annotations

import ctypes
import sys
from typing import NamedTuple

__all__ = ["GpuIdentity", "begin_context", "gpu_identity", "identity"]

_CLOCK_RATE = 13  # CU_DEVICE_ATTRIBUTE_CLOCK_RATE
_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


def begin_context(number: int) -> bool:
    """Create the primary context of CUDA device `number` for CuPy; return True on success.

    This takes tenths of a second without the GIL; the context lasts as long as the process. It is only for devices known to be
    usable, since a broken driver could crash the process. Errors are reported by CuPy later.
    """
    try:
        driver = ctypes.CDLL(_LIBRARY)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        return not (
            driver.cuInit(0)
            or driver.cuDeviceGet(ctypes.byref(device), number)
            or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        )
    except (OSError, AttributeError):
        return False


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
            or driver.cuDeviceGetAttribute(ctypes.byref(clock), _CLOCK_RATE, device)
        ):
            return None
        return GpuIdentity(bytes(uuid), clock.value)
    except (OSError, AttributeError):
        return None


def identity(number: int) -> str:
    """Return UUID and clock (kHz) of CUDA device `number` as text; only the number if the driver does not report these."""
    result = gpu_identity(number)
    return f"device {number}" if result is None else f"{result.uuid.hex()} at {result.clock} kHz"
