"""Predicted time of a workload on a device: transfers, kernels, synchronisation, and host operations."""

from __future__ import annotations

from typing import Literal, NamedTuple

from proteoscope.engine.execution.cost.parameters import DeviceParameters, WorkSize

__all__ = ["Bound", "Prediction", "find_bound", "predict_workload"]

Bound = Literal["transfer", "memory", "compute", "host"]
"""Component that limits the time of a workload."""


class Prediction(NamedTuple):
    """Predicted seconds of a workload, by component.

    `operations` is the time of the kernels' operations at the measured rate; `memory` is the minimum time of moving the transferred bytes
    once through device memory.
    """

    transfer: float
    kernel: float
    synchronisation: float
    host: float
    memory: float = 0.0

    @property
    def seconds(self) -> float:
        """Sum of all components, seconds."""
        return self.transfer + self.kernel + self.synchronisation + self.host


def predict_workload(parameters: DeviceParameters, kind: str, size: WorkSize) -> Prediction:
    """Return the predicted seconds of a workload of the given size on a device.

    Raises
    ------
    KeyError
        If the workload type was not measured on the device.
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
    """Return the largest component: transfers, host, or kernels, which are limited by memory or computation."""
    largest = max(prediction.transfer, prediction.kernel, prediction.host + prediction.synchronisation)
    if largest == prediction.kernel:
        return "memory" if prediction.memory > prediction.kernel / 2 else "compute"
    return "transfer" if largest == prediction.transfer else "host"
