"""Measured properties of a device: parameters of the ATGPU model, rates of basic operations, and costs of each workload type."""

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

USUAL_START_SECONDS = 0.5
"""Assumed time to open a GPU that is not calibrated, s: loading the driver, creating a context and loading kernels (0.3 s on an H200)."""
_WORD = 4
_WARP = 32
_THREADS_OF_BLOCK = 256
_RESIDENT_BLOCKS = 8  # limited by the 2048 threads of a multiprocessor (compute capability 7.0 or higher), not by H = 32 blocks


class _Measured(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)  # used if a device is calibrated


def _line(x: Sequence[float], y: Sequence[float], at: float) -> float:
    """Return the y at x = `at`: between points, log y is linear in log x; beyond the last point, y is linear in x."""
    if at <= 0.0 or not x:
        return 0.0
    if len(x) == 1:
        return y[0] * at / x[0]
    if at >= x[-1]:
        # Extrapolate at the marginal rate between the last two points.
        marginal = max(0.0, (y[-1] - y[-2]) / (x[-1] - x[-2]))
        return y[-1] + (at - x[-1]) * (marginal or y[-1] / x[-1])
    position = next(number for number in range(1, len(x)) if at <= x[number])
    slope = (log(y[position]) - log(y[position - 1])) / (log(x[position]) - log(x[position - 1]))
    if at < x[0]:
        slope = min(1.0, max(0.0, slope))
    return exp(log(y[position]) + slope * (log(at) - log(x[position])))


class TransferCosts(_Measured):
    """Transfer times by direction: ascending numbers of bytes, and seconds to and from the GPU; empty for the CPU."""

    sizes: tuple[PositiveFloat, ...] = Field(default=(), max_length=32)
    seconds_in: tuple[PositiveFloat, ...] = Field(default=(), max_length=32)
    seconds_out: tuple[PositiveFloat, ...] = Field(default=(), max_length=32)

    @model_validator(mode="after")
    def _check_curve(self) -> TransferCosts:
        if not len(self.sizes) == len(self.seconds_in) == len(self.seconds_out) or any(
            after <= before for before, after in pairwise(self.sizes)
        ):
            raise ValueError("sizes must ascend, with one number of seconds for each")
        return self

    def seconds(self, n_bytes: float, is_inward: bool) -> float:
        """Return the seconds of a transfer, at least the seconds of the smallest measured transfer."""
        seconds = self.seconds_in if is_inward else self.seconds_out
        return seconds[0] if seconds and n_bytes <= self.sizes[0] else _line(self.sizes, seconds, n_bytes)

    def alpha(self, is_inward: bool) -> float:
        """Return the seconds to start a transfer, which are the seconds of the smallest measured transfer."""
        return self.seconds(0.0, is_inward)

    def beta(self, is_inward: bool) -> float:
        """Return the seconds per byte, from the smallest and the second largest measured transfer.

        The largest transfer is not used, since it needs new memory pages.
        """
        seconds = self.seconds_in if is_inward else self.seconds_out
        return (seconds[-2] - seconds[0]) / (self.sizes[-2] - self.sizes[0]) if len(self.sizes) > 2 else 0.0


class WorkSize(NamedTuple):
    """Size of a workload in the units of the model: operations, result rows, bytes transferred to and from the device, and rounds."""

    operations: float
    items: int
    bytes_in: float
    bytes_out: float
    rounds: int = 1


class KindCosts(_Measured):
    """Costs of a workload type on a device, measured on samples of several sizes, since the rate depends on the number of running threads.

    Attributes
    ----------
    operations
        Numbers of operations of the samples, ascending.
    kernel
        Seconds in kernels of each sample (on the CPU, all seconds).
    moved, transfer
        Transferred bytes of the samples, ascending, and seconds of transfers without a concurrent kernel.
    host_fixed, host_item, host_byte
        Host seconds outside kernels and transfers: for opening and closing, per row, and per transferred byte.
    host_over_line
        For each element of `moved`, the measured host seconds divided by the seconds that the three components above predict.
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
    def _check_curve(self) -> KindCosts:
        for x, y in ((self.operations, self.kernel), (self.moved, self.transfer)):
            if len(x) != len(y) or any(after <= before for before, after in pairwise(x)):
                raise ValueError("sizes must ascend, with one number of seconds for each")
        if len(self.host_over_line) not in (0, len(self.moved)):
            raise ValueError("expected host seconds of each sample, or none")
        return self

    def kernel_seconds(self, operations: float) -> float:
        """Return the seconds in kernels for a number of operations, interpolated between samples, or extrapolated beyond the largest."""
        return _line(self.operations, self.kernel, operations)

    def transfer_seconds(self, n_bytes: float) -> float:
        """Return the seconds of transfers of `n_bytes` during which no kernel runs, interpolated between samples."""
        return _line(self.moved, self.transfer, n_bytes)

    def host_seconds(self, items: int, n_bytes: float) -> float:
        """Return the host seconds outside kernels and transfers, for given numbers of rows and bytes."""
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
        Properties of a GPU; for the CPU, each thread counts as a multiprocessor.
    transfers
        Times of transfers between the GPU and pageable memory, which searches use.
    sigma, launch
        Seconds to launch a kernel, with and without waiting for its end.
    memory_bandwidth
        Memory bandwidth of kernels that read and write, bytes per second.
    rates
        Number of basic operations per second, by name of the operation, such as ``integer`` (arithmetic) or ``cached`` (reading).
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
        """Properties of a GPU for planning launches; None for the CPU."""
        return None if self.is_processor else GpuShape(self.multiprocessors, self.shared_bytes, self.capability)

    def machine(self, rate: str = "integer") -> Machine:
        """Return the parameters of ATGPU(b, k', M, G) for the basic operation `rate`, a key of `rates`.

        The blocks of a multiprocessor share the rate; gamma is the rate per block when each multiprocessor holds its maximum number of
        blocks.
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
