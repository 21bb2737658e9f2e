"""Measured properties of a device: ATGPU parameters, rates of inner operations, and costs of each workload type."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from proteoscope.engine.execution.cost.atgpu import Machine
from proteoscope.engine.execution.workload import GpuShape

__all__ = ["USUAL_START_SECONDS", "DeviceParameters", "KindCosts", "TransferCosts", "WorkSize"]

USUAL_START_SECONDS = 0.9
"""Seconds of opening an uncalibrated GPU: importing CuPy and creating a context."""
_WORD = 4
_WARP = 32
_THREADS_OF_BLOCK = 256
_RESIDENT_BLOCKS = 8  # of this size: the 2048 threads of a multiprocessor limit them, before H = 32 of GPUs since compute capability 7.0


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _line(x: Sequence[float], y: Sequence[float], at: float) -> float:
    """Interpolate linearly in logarithms; extrapolate the last segment."""
    if at <= 0.0 or not x:
        return 0.0
    if len(x) == 1:
        return y[0] * at / x[0]
    if at >= x[-1]:
        # At the marginal rate between the last two points.
        marginal = max(0.0, (y[-1] - y[-2]) / (x[-1] - x[-2]))
        return y[-1] + (at - x[-1]) * (marginal or y[-1] / x[-1])
    place = next(number for number in range(1, len(x)) if at <= x[number])
    slope = (log(y[place]) - log(y[place - 1])) / (log(x[place]) - log(x[place - 1]))
    if at < x[0]:
        slope = min(1.0, max(0.0, slope))
    return exp(log(y[place]) + slope * (log(at) - log(x[place])))


class TransferCosts(_Measured):
    """Transfer times by direction: ascending bytes and seconds to and from the GPU; empty for the CPU."""

    sizes: tuple[PositiveFloat, ...] = Field(default=(), max_length=32)
    seconds_in: tuple[PositiveFloat, ...] = Field(default=(), max_length=32)
    seconds_out: tuple[PositiveFloat, ...] = Field(default=(), max_length=32)

    @model_validator(mode="after")
    def _is_a_curve(self) -> TransferCosts:
        if not len(self.sizes) == len(self.seconds_in) == len(self.seconds_out) or any(
            after <= before for before, after in pairwise(self.sizes)
        ):
            raise ValueError("sizes must ascend, with one number of seconds for each")
        return self

    def seconds(self, n_bytes: float, is_inward: bool) -> float:
        """Return the seconds of one transfer, at least those of the smallest measured one."""
        seconds = self.seconds_in if is_inward else self.seconds_out
        return seconds[0] if seconds and n_bytes <= self.sizes[0] else _line(self.sizes, seconds, n_bytes)

    def alpha(self, is_inward: bool) -> float:
        """Return the seconds to start a transfer, as of the smallest one measured."""
        return self.seconds(0.0, is_inward)

    def beta(self, is_inward: bool) -> float:
        """Return the seconds per byte up to the second largest transfer; the largest uses new memory pages."""
        seconds = self.seconds_in if is_inward else self.seconds_out
        return (seconds[-2] - seconds[0]) / (self.sizes[-2] - self.sizes[0]) if len(self.sizes) > 2 else 0.0


class WorkSize(NamedTuple):
    """Size of a workload in the units of the model: operations of its type, resulting rows, bytes to and from the device, rounds."""

    operations: float
    items: int
    bytes_in: float
    bytes_out: float
    rounds: int = 1


class KindCosts(_Measured):
    """Costs of a workload type on a device, from samples of several sizes, since no single rate describes how well a GPU is filled.

    Attributes
    ----------
    operations
        Operations of the samples, ascending.
    kernel
        Kernel seconds of each (on the CPU all seconds).
    moved, transfer
        Ascending bytes, and seconds of transfers without a concurrent kernel.
    host_fixed, host_item, host_byte
        Other host seconds: opening and closing, per row, and per byte moved.
    host_over_line
        Host seconds of the samples in `moved` beyond these three, since overlapping work is not linear.
    """

    operations: tuple[PositiveFloat, ...] = Field(min_length=1, max_length=64)
    kernel: tuple[PositiveFloat, ...] = Field(min_length=1, max_length=64)
    moved: tuple[PositiveFloat, ...] = Field(default=(), max_length=64)
    transfer: tuple[PositiveFloat, ...] = Field(default=(), max_length=64)
    host_fixed: float = Field(default=0.0, ge=0)
    host_item: float = Field(default=0.0, ge=0)
    host_byte: float = Field(default=0.0, ge=0)
    host_over_line: tuple[PositiveFloat, ...] = Field(default=(), max_length=64)

    @model_validator(mode="after")
    def _is_a_curve(self) -> KindCosts:
        for x, y in ((self.operations, self.kernel), (self.moved, self.transfer)):
            if len(x) != len(y) or any(after <= before for before, after in pairwise(x)):
                raise ValueError("sizes must ascend, with one number of seconds for each")
        if len(self.host_over_line) not in (0, len(self.moved)):
            raise ValueError("expected host seconds of each sample, or none")
        return self

    def kernel_seconds(self, operations: float) -> float:
        """Interpolate in logarithms between samples; beyond them use the rate of a full GPU."""
        return _line(self.operations, self.kernel, operations)

    def transfer_seconds(self, n_bytes: float) -> float:
        """Return the seconds of transfers of `n_bytes` during which no kernel runs, interpolated likewise."""
        return _line(self.moved, self.transfer, n_bytes)

    def host_seconds(self, items: int, n_bytes: float) -> float:
        """Return other host seconds for numbers of rows and bytes."""
        line = self.host_fixed + self.host_item * items + self.host_byte * n_bytes
        if not self.host_over_line or n_bytes <= 0.0:
            return line
        return line * float(np.interp(log(n_bytes), [log(size) for size in self.moved], self.host_over_line))


class DeviceParameters(_Measured):
    """Parameters of a device in the cost model.

    Attributes
    ----------
    description
        Name of the device.
    threads
        Number of CPU threads; 0 for a GPU.
    multiprocessors, cores, shared_bytes, memory_bytes, capability
        Properties of a GPU; on the CPU each thread counts as a multiprocessor.
    transfers
        Times of transfers to and from pageable memory, which searches use.
    sigma, launch
        Seconds of a launch with and without waiting for its end.
    memory_bandwidth
        Bytes per second, read and written by a kernel.
    rates
        Inner operations per second, by name.
    start
        Seconds to open a GPU.
    kinds
        Costs of workload types, by name.
    """

    description: str = Field(max_length=400)
    threads: int = Field(ge=0)
    multiprocessors: int = Field(ge=1)
    cores: int = Field(ge=1)
    shared_bytes: int = Field(ge=0)
    memory_bytes: int = Field(ge=0)
    capability: int = Field(ge=0)
    transfers: TransferCosts
    sigma: float = Field(ge=0)
    launch: float = Field(ge=0)
    memory_bandwidth: PositiveFloat
    rates: dict[str, PositiveFloat] = Field(max_length=64)
    start: float = Field(default=USUAL_START_SECONDS, ge=0)
    kinds: dict[str, KindCosts] = Field(default_factory=dict, max_length=64)

    @property
    def is_processor(self) -> bool:
        """True for the CPU."""
        return self.threads > 0

    @property
    def gpu(self) -> GpuShape | None:
        """Properties for launch plans; None for the CPU."""
        return None if self.is_processor else GpuShape(self.multiprocessors, self.shared_bytes, self.capability)

    def machine(self, rate: str = "integer") -> Machine:
        """Return the parameters of ATGPU(b, k', M, G) for an inner operation.

        The blocks of a multiprocessor share its rate; gamma is the rate of a block when all multiprocessors are full.
        """
        threads, resident = (1, 1) if self.is_processor else (_THREADS_OF_BLOCK, _RESIDENT_BLOCKS)
        gamma = self.rates[rate] / (self.multiprocessors * resident * threads)
        block_bytes = _WARP * _WORD
        return Machine(
            self.cores,
            self.multiprocessors,
            self.shared_bytes // _WORD or 1 << 30,
            max(1, self.memory_bytes // _WORD),
            resident,
            self.transfers.alpha(True),
            self.transfers.beta(True) * _WORD,
            self.transfers.alpha(False),
            self.transfers.beta(False) * _WORD,
            self.sigma,
            self.launch,
            gamma,
            block_bytes / self.memory_bandwidth * gamma,
            None if "cached" not in self.rates else block_bytes / (_WORD * self.rates["cached"]) * gamma,
        )
