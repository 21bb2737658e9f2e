"""Measurement of each workload type on a device with samples of a few sizes.

Micro-benchmarks show neither the speed of an inner loop nor how well it uses a GPU. Therefore the kernels of the workload type run on
samples whose size increases until they take long enough. Disturbances only lengthen runs, and may last for a while: samples are measured
again after the samples of other types, and the minimum is used.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from proteoscope.engine.execution.cost.parameters import KindCosts, WorkSize
from proteoscope.engine.execution.kinds import workload_type
from proteoscope.engine.execution.workload import GpuShape, PredictableWorkloadType, Sample, Workload, count_bytes
from proteoscope.kernels.device import Device

__all__ = ["SECONDS_OF_KIND", "KindSamples", "Run", "measure_workload", "minimum_run", "raise_clock", "run_sample", "runs_in_turn"]

_SIZES = tuple(0.75 * 4.0**power for power in range(-5, 1))
SECONDS_OF_KIND = 0.15
"""Time of a type's samples, s, after which larger samples are measured only until the minimum number of sizes is reached."""
_LONG = 0.045  # seconds: samples do not grow beyond this
_AWAKE = 0.005  # seconds of computation after which the clock of a GPU is high
_FEWEST_SIZES = 3
_LONG_RUN_SECONDS = 0.005  # seconds: the overhead of profiling is negligible compared with these
_MAXIMUM_HOST_RATIO = 2.0  # limit of the ratio of host time to the line through all samples, and of its inverse
_COMPILED = 16.0  # factor over the seconds of a smaller sample above which something was compiled
_SEED = 20181


@dataclass(frozen=True)
class Run:
    """Times of a sample: total seconds, seconds in kernels, and seconds in transfers without a concurrent kernel.

    `is_noted` is True if kernels and transfers were recorded; otherwise their times are 0.
    """

    seconds: float
    kernel: float
    transfer: float
    is_noted: bool = True

    @property
    def host(self) -> float:
        """Seconds outside kernels and transfers."""
        return max(0.0, self.seconds - self.kernel - self.transfer)


def measure_workload(workload: Workload, states: Sequence[Any], gpu: GpuShape | None) -> WorkSize:
    """Return the size of a workload in the model's units.

    Raises
    ------
    ValueError
        If the workload type, or its requirements, are unknown.
    """
    kind = _predictable_type(workload)
    rounds = [kind.costs(workload, state) for state in states]
    outs = sum(count_bytes(kind.empty(workload, state, len(costs))) for state, costs in zip(states, rounds, strict=True))
    return WorkSize(
        sum(kind.operations(workload, state, gpu) for state in states),
        sum(len(costs) for costs in rounds),
        float(count_bytes(workload.sources) + count_bytes([*states])),
        float(outs),
        len(states),
    )


def _predictable_type(workload: Workload) -> PredictableWorkloadType:
    kind = workload_type(workload)
    if not isinstance(kind, PredictableWorkloadType):
        raise ValueError(f"workload type '{workload.kind:.60}' has no cost model")
    return kind


def run_sample(sample: Sample, device: Device, *, is_noted: bool = True) -> Run:
    """Open a workload on a device, run its rounds and close it; `is_noted` records kernels and transfers separately.

    Recording takes time; without recording, the run takes as long as in a search.
    """
    kind = workload_type(sample.workload)
    timed = getattr(device, "busy_seconds", None)
    if timed is not None:
        timed()
        device.is_noting = is_noted  # type: ignore[attr-defined] # only devices that record kernels have it
    began = time.perf_counter()
    with kind.open(sample.workload, device, is_shared=False) as opened:
        for state in sample.states:
            n = len(kind.costs(sample.workload, state))
            rows, first = kind.empty(sample.workload, state, n), 0
            opened.begin(state, None)
            with closing(opened.search(0, n)) as chunks:
                for chunk in chunks:
                    if chunk.rows is not None and chunk.end > first:
                        kind.merge(rows, first, chunk.end, chunk.rows)
                        first = chunk.end
    seconds = time.perf_counter() - began
    kernel, transfer = timed() if timed is not None else (seconds, 0.0)
    return Run(seconds, min(kernel, seconds), max(0.0, min(transfer, seconds - kernel)), timed is None or is_noted)


def raise_clock(sample: Sample, device: Device, seconds: float = 0.0) -> None:
    """Run a sample on a GPU until the GPU has computed for 5 ms, since an idle GPU lowers its clock; do nothing on the CPU.

    `seconds` is the time for which the GPU has already computed.
    """
    while not device.is_processor and seconds < _AWAKE:
        seconds += run_sample(sample, device, is_noted=False).seconds


def runs_in_turn(sample: Sample, device: Device) -> list[Run]:
    """Run a sample with recording; after a short run on a GPU, run it again without recording. Return the runs.

    The second run is faster, since memory is already allocated.
    """
    runs = [run_sample(sample, device)]
    if not device.is_processor and runs[0].seconds <= _LONG_RUN_SECONDS:
        runs.append(run_sample(sample, device, is_noted=False))
    return runs


def minimum_run(runs: Sequence[Run], *, is_processor: bool) -> Run:
    """Return the minimum total, kernel and transfer time over several runs of a sample, since disturbances only lengthen runs.

    Kernel and transfer times are from runs with recording. The total time is from runs without recording, and from runs that are so long
    that recording makes no difference.
    """
    noted = [run for run in runs if run.is_noted]
    plain = [run for run in runs if is_processor or not run.is_noted or run.seconds > _LONG_RUN_SECONDS] or noted
    seconds = min(run.seconds for run in plain)
    if is_processor:
        return Run(seconds, seconds, 0.0)
    kernel = min(seconds, *(run.kernel for run in noted))
    return Run(seconds, kernel, min(seconds - kernel, *(run.transfer for run in noted)))


class KindSamples:
    """Samples of a workload type, and their minimum run times on a device so far.

    Parameters
    ----------
    name
        Name of the workload type.
    device
        Device to measure.
    gpu
        Properties of the GPU; None for the CPU.

    Raises
    ------
    ValueError
        The workload type has no cost model.
    """

    def __init__(self, name: str, device: Device, gpu: GpuShape | None) -> None:
        self._kind, self._device, self._gpu = _predictable_type(Workload(name, {}, {})), device, gpu
        self._samples: list[Sample] = []
        self._runs: list[list[Run]] = []

    def grow(self, seconds: float, check: Callable[[], None]) -> None:
        """Run at least three samples, each four times as large as the previous one, until a run takes long or the time `seconds` is over.

        Raises
        ------
        DeviceError
            If the device failed, or does not support the samples.
        Cancelled
            If `check`, which is called before each sample, raises it.
        """
        spent = last = 0.0
        for size in _SIZES:
            check()
            last = self._run_new(size, last)
            spent += last
            if len(self._runs) >= _FEWEST_SIZES and (last > _LONG or spent > seconds):
                break

    def _run_new(self, size: float, last: float) -> float:
        """Run a sample of another size and return its seconds; `last` is the time of the previous, smaller sample."""
        sample, runs = self._kind.samples(size, _SEED + len(self._runs)), list[Run]()
        self._samples.append(sample)
        self._runs.append(runs)
        first = run_sample(sample, self._device)
        raise_clock(sample, self._device, first.seconds)
        if last and first.seconds < _COMPILED * last:
            runs.append(first)
        if not runs or first.seconds <= _LONG_RUN_SECONDS:  # kernels for this size may have been compiled, or recording took time
            runs += runs_in_turn(sample, self._device)
        return min(run.seconds for run in runs)

    def again(self) -> None:
        """Run each sample again.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        raise_clock(self._samples[0], self._device)
        for sample, runs in zip(self._samples, self._runs, strict=True):
            runs += runs_in_turn(sample, self._device)

    def costs(self) -> KindCosts:
        """Return the costs of the workload type from the minimum run time of each sample."""
        is_processor = self._gpu is None
        sizes = [measure_workload(sample.workload, sample.states, self._gpu) for sample in self._samples]
        runs = [minimum_run(run, is_processor=is_processor) for run in self._runs]
        operations, kernel = _curve([size.operations for size in sizes], [run.kernel for run in runs])
        if is_processor:
            return KindCosts(operations=operations, kernel=kernel)
        moved = [size.bytes_in + size.bytes_out for size in sizes]
        rows = [(1.0, float(size.items), n_bytes) for size, n_bytes in zip(sizes, moved, strict=True)]
        took = [max(run.host, 1e-6) for run in runs]
        host = fitted(rows, took)
        line = [max(1e-7, sum(value * coefficient for value, coefficient in zip(row, host, strict=True))) for row in rows]
        over = [min(_MAXIMUM_HOST_RATIO, max(1.0 / _MAXIMUM_HOST_RATIO, seconds / fit)) for seconds, fit in zip(took, line, strict=True)]
        moved_curve, transfer = _curve(moved, [run.transfer for run in runs])
        return KindCosts(
            operations=operations,
            kernel=kernel,
            moved=moved_curve,
            transfer=transfer,
            host_fixed=host[0],
            host_item=host[1],
            host_byte=host[2],
            host_over_line=_curve(moved, over)[1],
        )


def fitted(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """Return non-negative coefficients of the columns of `rows` that give `values` with the minimum sum of squared relative errors."""
    from scipy.optimize import nnls  # slow to import: only a calibration needs it

    weights = 1.0 / np.maximum(values, 1e-12)
    weighted = np.asarray(rows) * weights[:, None]
    scale = np.abs(weighted).max(axis=0)
    scale[scale == 0.0] = 1.0
    result, _ = nnls(weighted / scale, np.ones(len(values)))
    return [float(coefficient) for coefficient in result / scale]


def _curve(x: Sequence[float], y: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the x and the y of the points, sorted by x; of points with equal x, only the one with the lowest y is included."""
    result: dict[float, float] = {}
    for at, value in sorted(zip(x, y, strict=True)):
        result[at] = max(min(value, result.get(at, value)), 1e-7)
    return tuple(result), tuple(result.values())
