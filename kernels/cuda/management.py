"""Current use of a GPU by all processes, from NVIDIA's management library, which is part of every driver."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from proteoscope.kernels.cuda.driver import gpu_identity

__all__ = ["DeviceUse", "gpu_use"]

_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"


class DeviceUse(NamedTuple):
    """Current use of a device: memory in use and in total, bytes, and fraction of the recent time in which it was busy, or None."""

    used_bytes: int
    memory_bytes: int
    busy_share: float | None


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def gpu_use(number: int) -> DeviceUse | None:
    """Return the current use of CUDA device `number`, or None if it is not reported.

    The device is identified by UUID, since the library numbers GPUs differently. Call this only for devices known to be usable: a broken
    driver could crash the process.
    """
    library, result = _library(), gpu_identity(number)
    if library is None or result is None:
        return None
    handle, memory, busy = ctypes.c_void_p(), _Memory(), _Utilization()
    try:
        name = f"GPU-{UUID(bytes=result.uuid)}".encode()
        if library.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)) or library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            return None
        is_measured = library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy)) == 0
    except AttributeError:
        return None
    return DeviceUse(int(memory.used), int(memory.total), busy.gpu / 100 if is_measured else None)


@lru_cache
def _library() -> ctypes.CDLL | None:
    """Return the management library, which stays open, since initialising it takes tenths of a second."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        return None if library.nvmlInit_v2() else library
    except (OSError, AttributeError):
        return None
