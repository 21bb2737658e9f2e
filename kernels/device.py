"""What computes: one protocol for the processor and for every card, and the package of kernels that each of them runs.

`proteoscope.kernels.cpu` and `proteoscope.kernels.cuda` hold the same classes and functions. A class takes its device first; what it is
asked to do is a generator that yields how far it is, at least every tenth of a second or two, so that whoever drives it can look at a
cancel and measure a speed. Closing the generator ends the work.
"""

from __future__ import annotations

from types import ModuleType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = ["Device", "DeviceError", "DeviceMemoryError", "StopFlag", "UnsupportedSearchError", "stop_flag", "twin"]

StopFlag: TypeAlias = NDArray[np.uint8]
"""(1,) uint8 that kernels read while they work: 0, and 1 when they are to leave off at once."""


class DeviceError(RuntimeError):
    """The device failed, or a kernel does not compile; the message says how. What ran on it must be run again elsewhere."""


class DeviceMemoryError(DeviceError):
    """The device has not enough free memory; a smaller batch may fit."""


class UnsupportedSearchError(DeviceError):
    """The search is beyond the fixed sizes of the device's kernels (the message says which); the processor has none."""


class Device(Protocol):
    """A processor with so many threads, or a card.

    Attributes
    ----------
    name : "cpu", "cuda:0": as messages call it. kernels : which package of `proteoscope.kernels` has its kernels, "cpu" or "cuda"; empty
        for a device of another machine.
    is_processor : its memory is the caller's, its threads are taken from what feeds the cards.
    """

    name: str
    kernels: str
    is_processor: bool


def twin(device: Device, module: str) -> ModuleType:
    """The module of this name among the kernels of a device; imported when first asked for."""
    found: ModuleType = getattr(kernels.cuda if device.kernels == "cuda" else kernels.cpu, module)
    return found


def stop_flag() -> StopFlag:
    """A flag that is not set."""
    return np.zeros(1, np.uint8)
