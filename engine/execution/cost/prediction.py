"""Predicted time of a workload on a device: transfers, kernels, synchronisation, and host work."""

from __future__ import annotations

from typing import Literal, NamedTuple

from proteoscope.engine.execution.cost.parameters import DeviceParameters, WorkSize

__all__ = ["Bound", "Prediction", "find_bound", "predict_workload"]

Bound = Literal["transfer", "memory", "compute", "host"]
"""Limiting factor of a workload."""


class Prediction(NamedTuple):
    """Seconds of a workload.

    `operations` run at the device's rate in the kernels' time; `memory` is the kernels' minimum time of moving the transferred bytes once
    through device memory.
    """

    transfer: float
    kernel: float
    synchronisation: float
    host: float
    memory: float = 0.0

    @property
    def seconds(self) -> float:
        """Sum of all parts."""
        return self.transfer + self.kernel + self.synchronisation + self.host


def predict_workload(parameters: DeviceParameters, kind: str, size: WorkSize) -> Prediction:
    """Return the seconds of a workload of this size on a device.

    Raises
    ------
    KeyError
        The workload type was not measured on the device.
    """
    costs, moved = parameters.kinds[kind], size.bytes_in + size.bytes_out
    kernel = costs.kernel_seconds(size.operations)
    if parameters.is_processor:
        return Prediction(0.0, kernel, 0.0, 0.0, moved / parameters.memory_bandwidth)
    # Of the host's time, the part in which it waits for rounds to end.
    host = costs.host_seconds(size.items, moved)
    synchronisation = min(size.rounds * parameters.sigma, host)
    memory = min(kernel, moved / parameters.memory_bandwidth)
    return Prediction(costs.transfer_seconds(moved), kernel, synchronisation, host - synchronisation, memory)


def find_bound(prediction: Prediction) -> Bound:
    """Return the largest part: transfers, host work, or kernels, which are memory-bound if they do little else."""
    largest = max(prediction.transfer, prediction.kernel, prediction.host + prediction.synchronisation)
    if largest == prediction.kernel:
        return "memory" if prediction.memory > prediction.kernel / 2 else "compute"
    return "transfer" if largest == prediction.transfer else "host"
