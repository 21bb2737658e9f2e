"""Shipped calibrations of reference devices, used for devices that are not calibrated on this machine."""

from __future__ import annotations

from functools import lru_cache

from proteoscope import resources
from proteoscope.engine.execution.cost.parameters import DeviceParameters, KindCosts
from proteoscope.engine.execution.devices import Device

__all__ = ["reference_parameters"]


def reference_parameters(device: Device, threads: int) -> DeviceParameters:
    """Return the shipped parameters: an H200 for a GPU, another CPU with as many threads for the CPU."""
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
