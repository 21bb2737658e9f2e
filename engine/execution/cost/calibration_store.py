"""Stored measurements of devices: calibrations, and speeds of each workload type in earlier searches (cost per second).

Calibrations of this machine are stored under a key: UUID, driver and clock of a GPU, or model and threads of the CPU. Calibrations of
reference devices are shipped with the program.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Annotated

from pydantic import Field

from proteoscope import kernels, resources
from proteoscope.engine.execution.cost.parameters import DeviceParameters, KindCosts
from proteoscope.engine.execution.device_store import Facts
from proteoscope.engine.execution.devices import Device, gpus, processor

__all__ = [
    "calibrated_at",
    "measured_speed",
    "reference_parameters",
    "speeds_by_kind",
    "store_calibration",
    "store_speeds",
    "stored_calibration",
]

_FORMAT = 3
"""Version of the stored numbers; it changes when workload types count operations differently, which requires new calibrations."""
_SPEEDS: Facts[float] = Facts("speeds", Annotated[float, Field(gt=0, allow_inf_nan=False)], 256)
_CALIBRATIONS: Facts[DeviceParameters] = Facts("calibrations", DeviceParameters, 16)


def stored_calibration(device: Device, threads: int) -> DeviceParameters | None:
    """Return the calibration of a GPU, or of the CPU with a number of threads; None if it was not calibrated on this machine."""
    return _CALIBRATIONS.get(_key(device, threads))


def calibrated_at(device: Device, threads: int) -> datetime | None:
    """Return the time of a device's calibration; None if it was not calibrated."""
    return _CALIBRATIONS.stored_at(_key(device, threads))


def store_calibration(device: Device, threads: int, parameters: DeviceParameters) -> None:
    """Store a calibration for later estimates."""
    _CALIBRATIONS.store({_key(device, threads): parameters})


def _key(device: Device, threads: int) -> str:
    if not device.numbers:
        return f"{_FORMAT} {processor().description}, {threads} used"
    return f"{_FORMAT} {kernels.cuda.driver.identity(device.numbers[0])}, {device.description}"


def reference_parameters(device: Device, threads: int) -> DeviceParameters:
    """Return parameters that are shipped with the program: for any GPU, those of an H200; for a CPU, those of a reference CPU.

    The parameters of the CPU are scaled to `threads`.
    """
    if device.numbers:
        return _shipped("card")
    shipped = _shipped("processor")
    times = max(1, threads) / shipped.threads
    kinds = {
        name: KindCosts(operations=costs.operations, kernel=tuple(max(seconds / times, 1e-6) for seconds in costs.kernel))
        for name, costs in shipped.kinds.items()
    }
    return shipped.model_copy(update={"threads": max(1, threads), "multiprocessors": max(1, threads), "kinds": kinds})


@lru_cache
def _shipped(name: str) -> DeviceParameters:
    return DeviceParameters.model_validate_json(resources.path("devices", f"{name}.json").read_bytes())


def measured_speed(kind: str, device: str, threads: int) -> float | None:
    """Return the speed of a device for a workload type in earlier searches; None if it has computed none.

    Parameters
    ----------
    kind : str
        Name in `proteoscope.engine.execution.kinds.KINDS`.
    device : str
        Name of the device.
    threads : int
        Number of CPU threads.
    """
    return _SPEEDS.get(f"{kind}: {_title(device, threads)}")


def speeds_by_kind(device: str, threads: int) -> dict[str, float]:
    """Return the speeds of a device in earlier searches, by workload type."""
    parts = {key.partition(": ")[::2]: speed for key, speed in _SPEEDS.all().items()}
    return {kind: speed for (kind, title), speed in parts.items() if title == _title(device, threads)}


def store_speeds(kind: str, speeds: Mapping[str, float], threads: int) -> None:
    """Store the speeds of devices, given by device name, for a workload type."""
    _SPEEDS.store({f"{kind}: {_title(device, threads)}": speed for device, speed in speeds.items()})


def _title(device: str, threads: int) -> str:
    """Return the key under which a device is stored: description and driver of a GPU, or description and threads of the CPU."""
    if device == "cpu":
        return f"{processor().description}, {threads} used"
    return next((gpu.description for gpu in gpus() if gpu.name == device), device)
