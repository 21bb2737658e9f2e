"""Measured speeds of devices in earlier searches, in cost per second of each workload type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from proteoscope.engine.execution.device_store import Facts
from proteoscope.engine.execution.devices import gpus, processor

__all__ = ["measured_speed", "speeds_by_kind", "store_speeds"]

_SPEEDS: Facts[float] = Facts("speeds", Annotated[float, Field(gt=0, allow_inf_nan=False)], 256)


def measured_speed(kind: str, device: str, threads: int) -> float | None:
    """Return the speed of a device for a workload type, or None if it has done none.

    Parameters
    ----------
    kind : str
        Name in `proteoscope.engine.execution.kinds.KINDS`.
    device : str
        Name of the device.
    threads : int
        Threads of the processor.
    """
    return _SPEEDS.get(f"{kind}: {_title(device, threads)}")


def speeds_by_kind(device: str, threads: int) -> dict[str, float]:
    """Return the speeds of a device, by workload type."""
    parts = {key.partition(": ")[::2]: speed for key, speed in _SPEEDS.all().items()}
    return {kind: speed for (kind, title), speed in parts.items() if title == _title(device, threads)}


def store_speeds(kind: str, speeds: Mapping[str, float], threads: int) -> None:
    """Store the speeds of devices, by name, for a workload type."""
    _SPEEDS.store({f"{kind}: {_title(device, threads)}": speed for device, speed in speeds.items()})


def _title(device: str, threads: int) -> str:
    """Return the description of a GPU, which names its driver, or that of the processor with its threads."""
    if device == "cpu":
        return f"{processor().description}, {threads} used"
    return next((gpu.description for gpu in gpus() if gpu.name == device), device)
