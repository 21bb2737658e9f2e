"""Protocol of devices (CPU and GPU), and access to their kernel packages.

`proteoscope.kernels.cpu` and `proteoscope.kernels.cuda` have the same classes and functions. The first argument of a class is the
device. Methods are generators that yield their progress every tenth of a second or two, so that the caller can check for cancellation and
measure speeds. Closing a generator stops the computation.
"""

from __future__ import annotations

from types import ModuleType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["Device", "DeviceError", "DeviceMemoryError", "StopFlag", "UnsupportedSearchError", "backend_module", "stop_flag"]

StopFlag: TypeAlias = NDArray[np.uint8]
"""Flag, (1,) uint8, that kernels read while they run: 0 to continue, 1 to stop immediately."""


class DeviceError(RuntimeError):
    """Exception: the device fails, or a kernel does not compile; the computation must be repeated on another device."""


class DeviceMemoryError(DeviceError):
    """Exception: the device has not enough free memory; a smaller batch may fit."""


class UnsupportedSearchError(DeviceError):
    """Exception: the search exceeds a fixed limit of the device's kernels, which the message names; the CPU has no such limits."""


class Device(Protocol):
    """CPU with a number of threads, or GPU.

    Attributes
    ----------
    name
        Display name, such as "cpu" or "cuda:0".
    kernels
        Name of the device's subpackage of `proteoscope.kernels`, "cpu" or "cuda"; '' for a device of another machine.
    is_processor
        True for the CPU, which uses the memory and threads that the caller needs too.
    """

    name: str
    kernels: str
    is_processor: bool


def backend_module(device: Device, module: str) -> ModuleType:
    """Import and return the kernel module with a name for a device."""
    result: ModuleType = getattr(kernels.cuda if device.kernels == "cuda" else kernels.cpu, module)
    return result


def stop_flag() -> StopFlag:
    """Return a stop flag that is not set."""
    return np.zeros(1, np.uint8)
