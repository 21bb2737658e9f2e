"""What a work should take on a device: the model's transfers, kernels, synchronisation, and what the host does."""

from __future__ import annotations

from typing import Literal, NamedTuple

from proteoscope.engine.execution.cost.pace import LAUNCH_BOUND, times_slower
from proteoscope.engine.execution.cost.parameters import DeviceParameters, WorkSize

__all__ = ["Bound", "Prediction", "bound_of", "predicted_work"]

Bound = Literal["transfer", "memory", "compute", "host"]
"""What decides how long a work takes."""


class Prediction(NamedTuple):
    """Seconds of a work. `operations` in the kernels' time go at the rate of the device; `memory`: of the kernels, what moving the bytes
    that came and went once through the card's memory takes at the least."""

    transfer: float
    kernel: float
    synchronisation: float
    host: float
    memory: float = 0.0

    @property
    def seconds(self) -> float:
        """All together."""
        return self.transfer + self.kernel + self.synchronisation + self.host

    @property
    def bound(self) -> Bound:
        """What takes the most."""
        return bound_of(self)

    def shares(self) -> dict[str, float]:
        """Of the whole, by name."""
        whole = self.seconds or 1.0
        return {name: getattr(self, name) / whole for name in ("transfer", "kernel", "synchronisation", "host")}


def predicted_work(parameters: DeviceParameters, kind: str, size: WorkSize, pace: float = 0.0) -> Prediction:
    """Seconds of a work of this size. `pace`: of the host at the moment (`host_pace`), which may be slower than when it was measured.

    Raises
    ------
    KeyError : this kind was not measured on the device.
    """
    costs, moved, slower = parameters.kinds[kind], size.bytes_in + size.bytes_out, times_slower(pace, parameters.pace)
    kernel = costs.kernel_seconds(size.operations)
    if parameters.is_processor:
        return Prediction(0.0, slower * kernel, 0.0, 0.0, moved / parameters.memory_bandwidth)
    if kernel < LAUNCH_BOUND:
        kernel *= slower
    # Of the host's time, the part in which it waits for rounds to end.
    host = costs.host_seconds(size.items, moved)
    synchronisation = min(size.rounds * parameters.sigma, host)
    host -= synchronisation
    transfer = costs.transfer_seconds(moved)
    return Prediction(slower * transfer, kernel, slower * synchronisation, slower * host, min(kernel, moved / parameters.memory_bandwidth))


def bound_of(prediction: Prediction) -> Bound:
    """What takes the most: transfers, what the host does, or kernels, which wait for memory where they do little else."""
    largest = max(prediction.transfer, prediction.kernel, prediction.host + prediction.synchronisation)
    if largest == prediction.kernel:
        return "memory" if prediction.memory > prediction.kernel / 2 else "compute"
    return "transfer" if largest == prediction.transfer else "host"
