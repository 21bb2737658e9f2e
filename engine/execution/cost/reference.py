"""Devices that were measured once and ship, in whose place one that was not measured here is taken."""

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
    one = _shipped("processor")
    times = max(1, threads) / one.threads
    kinds = {
        name: KindCosts(operations=costs.operations, kernel=tuple(max(seconds / times, 1e-6) for seconds in costs.kernel))
        for name, costs in one.kinds.items()
    }
    return one.model_copy(update={"threads": max(1, threads), "multiprocessors": max(1, threads), "kinds": kinds})


@lru_cache
def _shipped(name: str) -> DeviceParameters:
    return DeviceParameters.model_validate_json(resources.path("devices", f"{name}.json").read_bytes())
