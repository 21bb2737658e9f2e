"""Stored calibrations, by UUID, driver and clock of a GPU, or model and threads of the processor."""

from __future__ import annotations

from datetime import datetime

from proteoscope import kernels
from proteoscope.engine.execution.cost.parameters import DeviceParameters
from proteoscope.engine.execution.device_store import Facts
from proteoscope.engine.execution.devices import Device, processor

__all__ = ["calibrated_at", "store_calibration", "stored_calibration"]

_FORMAT = 3
"""Version of the numbers' meaning: workload types with other operation counts need another calibration."""
_CALIBRATIONS: Facts[DeviceParameters] = Facts("calibrations", DeviceParameters, 16)


def stored_calibration(device: Device, threads: int) -> DeviceParameters | None:
    """Return the calibration of the processor with these threads, or of a GPU; None if it was not calibrated on this machine."""
    return _CALIBRATIONS.get(_key(device, threads))


def calibrated_at(device: Device, threads: int) -> datetime | None:
    """Return the time of a device's calibration, or None if it was not calibrated."""
    return _CALIBRATIONS.stored_at(_key(device, threads))


def store_calibration(device: Device, threads: int, parameters: DeviceParameters) -> None:
    """Store a calibration for later estimates."""
    _CALIBRATIONS.store({_key(device, threads): parameters})


def _key(device: Device, threads: int) -> str:
    if not device.numbers:
        return f"{_FORMAT} {processor().description}, {threads} used"
    return f"{_FORMAT} {kernels.cuda.driver.identity(device.numbers[0])}, {device.description}"
