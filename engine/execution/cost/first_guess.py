"""The speed of a device at a work that nobody has done on it yet, by the cost model: what the scheduler begins with."""

from __future__ import annotations

from typing import Any

from proteoscope.engine.execution import cost as cost_package
from proteoscope.engine.execution.devices import gpus, processor
from proteoscope.engine.execution.kinds import kind_of
from proteoscope.engine.execution.work import PredictableKind, Work
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device

__all__ = ["predicted_speed"]


def predicted_speed(work: Work, state: Any, device: Device, threads: int) -> float | None:
    """Cost in a second, in the unit of the kind's costs; None where the device was not measured on this machine for this kind of work."""
    kind = kind_of(work)
    if not isinstance(kind, PredictableKind):
        return None
    found = processor() if device.name == Processor.name else next((gpu for gpu in gpus() if gpu.name == device.name), None)
    parameters = None if found is None else cost_package.kept.known_parameters(found, threads)
    if parameters is None or work.kind not in parameters.kinds:
        return None
    seconds = parameters.kinds[work.kind].kernel_seconds(kind.operations(work, state, parameters.card))
    cost = float(kind.costs(work, state).sum())
    return cost / seconds if cost > 0.0 and seconds > 0.0 else None
