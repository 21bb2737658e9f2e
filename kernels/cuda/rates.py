"""Speeds of a GPU used by plans and batch sizes, measured or those of the GPU on which constants were fitted."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["USUAL_RATES", "GpuRates", "between_looks"]


class GpuRates(NamedTuple):
    """Speeds of a whole GPU.

    Attributes
    ----------
    maxima
        Maxima of sums of integers per second.
    multiply_adds
        Fused multiply-adds per second.
    lookups
        Look-ups in shared memory per second.
    memory_bytes
        Bytes that kernels read and write per second.
    launch
        Seconds of an asynchronous launch.
    """

    maxima: float
    multiply_adds: float
    lookups: float
    memory_bytes: float
    launch: float


USUAL_RATES = GpuRates(1.615e13, 3.081e13, 7.556e12, 3.187e12, 1.317e-5)
"""Speeds of an H200, on which the constants of plans were fitted, also assumed for GPUs that were not measured."""


def between_looks(n: float, rate: float, usual: float) -> int:
    """Return the work done at `rate` in the time that `n` takes at the usual rate, between 1 and `n`, for prompt cancellation."""
    return max(1, int(n * min(1.0, rate / usual)))
