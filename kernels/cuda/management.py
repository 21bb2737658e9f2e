"""What a card is used for now, whoever uses it, as NVIDIA's management library tells it, which comes with every driver."""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from proteoscope.kernels.cuda.driver import card_identity

__all__ = ["CardUse", "card_use"]

_LIBRARY = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"


class CardUse(NamedTuple):
    """Bytes of memory in use and altogether, and the share of the last moments in which a kernel ran, None where it is not told."""

    used_bytes: int
    memory_bytes: int
    busy_share: float | None


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


def card_use(number: int) -> CardUse | None:
    """Of CUDA device `number`, found by its UUID, since the library numbers cards otherwise; None where it is not told.

    For a device that was found usable: a driver that is out of order could take the process along.
    """
    library, found = _library(), card_identity(number)
    if library is None or found is None:
        return None
    handle, memory, busy = ctypes.c_void_p(), _Memory(), _Utilization()
    try:
        name = f"GPU-{UUID(bytes=found.uuid)}".encode()
        if library.nvmlDeviceGetHandleByUUID(name, ctypes.byref(handle)) or library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            return None
        is_told = library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(busy)) == 0
    except AttributeError:
        return None
    return CardUse(int(memory.used), int(memory.total), busy.gpu / 100 if is_told else None)


@lru_cache
def _library() -> ctypes.CDLL | None:
    """The library, which stays open: to begin with it takes tenths of a second."""
    try:
        library = ctypes.CDLL(_LIBRARY)
        return None if library.nvmlInit_v2() else library
    except (OSError, AttributeError):
        return None
