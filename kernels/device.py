"""Protocol of devices, CPU and GPU, and their kernel packages.

`proteoscope.kernels.cpu` and `proteoscope.kernels.cuda` have the same classes and functions. A class takes its device first; its methods
are generators that yield their progress at least every tenth of a second or two, so that the caller can check for cancellation and measure
speeds. Closing the generator ends the work.
"""

from __future__ import annotations

from types import ModuleType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["Device", "DeviceError", "DeviceMemoryError", "StopFlag", "UnsupportedSearchError", "backend_module", "stop_flag"]

StopFlag: TypeAlias = NDArray[np.uint8]
"""(1,) uint8 that kernels read while they work: 0, or 1 to stop immediately."""


class DeviceError(RuntimeError):
    """Raised if the device failed or a kernel does not compile; its work must be repeated elsewhere."""


class DeviceMemoryError(DeviceError):
    """Raised if the device has not enough free memory; a smaller batch may fit."""


class UnsupportedSearchError(DeviceError):
    """The search is beyond the fixed sizes of the device's kernels (the message names it); the CPU has no limits."""


class Device(Protocol):
    """A CPU with a number of threads, or a GPU.

    Attributes
    ----------
    name
        Display name: "cpu", "cuda:0".
    kernels
        Package of `proteoscope.kernels` with its kernels, "cpu" or "cuda"; '' for a device of another machine.
    is_processor
        True if it uses the caller's memory, and threads that also feed GPUs.
    """

    name: str
    kernels: str
    is_processor: bool


def backend_module(device: Device, module: str) -> ModuleType:
    """Import and return the module of this name among the kernels of a device."""
    result: ModuleType = getattr(kernels.cuda if device.kernels == "cuda" else kernels.cpu, module)
    return result


def stop_flag() -> StopFlag:
    """Return a flag that is not set."""
    return np.zeros(1, np.uint8)
