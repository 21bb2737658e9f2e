"""Speeds of a GPU, from which plans and batch sizes are computed: measured speeds, or the speeds of the usual GPU."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["USUAL_RATES", "GpuRates", "items_between_checks"]


class GpuRates(NamedTuple):
    """Speeds of a whole GPU.

    Attributes
    ----------
    maxima
        Number of maxima of sums of integers per second.
    multiply_adds
        Number of fused multiply-adds per second.
    lookups
        Number of look-ups in shared memory per second.
    memory_bytes
        Number of bytes that kernels read and write per second.
    launch
        Time of an asynchronous launch, s.
    """

    maxima: float
    multiply_adds: float
    lookups: float
    memory_bytes: float
    launch: float


USUAL_RATES = GpuRates(1.615e13, 3.081e13, 7.556e12, 3.187e12, 1.317e-5)
"""Speeds of an H200, to which the constants of plans were fitted; assumed for GPUs that were not measured."""


def items_between_checks(n: float, rate: float, usual: float) -> int:
    """Return the number of operations between two checks for cancellation: `n`, or fewer (at least 1) on a GPU slower than the usual one.

    `rate` and `usual` are the operations per second of the GPU and of the usual GPU.
    """
    return max(1, int(n * min(1.0, rate / usual)))
