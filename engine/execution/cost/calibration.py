"""Measurement of a device: transfers, launches, memory, rates of basic operations, and each workload type on samples of a few sizes.

A measurement takes a few seconds; kernels that are not compiled yet need additional time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.cost.kind_samples import SECONDS_OF_KIND, KindSamples
from proteoscope.engine.execution.cost.parameters import DeviceParameters, TransferCosts
from proteoscope.engine.execution.devices import processor
from proteoscope.engine.execution.workload import GpuShape
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.analyses_layouts import BLOCK, OPERATIONS
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.timing import TimedGpu
from proteoscope.kernels.device import Device, DeviceError, backend_module

__all__ = ["calibrate_gpu", "calibrate_processor"]

_NEW_PAGES = 32 << 20  # bytes from which the system allocates new pages for each array
# Measured numbers of bytes, below and above this limit, at which transfer times jump.
_SIZES_OF_TRANSFERS = *(1 << power for power in (10, 15, 17, 18, 19, 20, 21, 22, 23)), 24 << 20, 31 << 20, 34 << 20, 64 << 20, 128 << 20
_REPEATS = 3  # repetitions; the minimum counts, since interference only lengthens a run
_STEPS = 1 << 12  # steps of the measured loops
_WORDS = {True: 1 << 22, False: 1 << 24}  # words of vectors that are larger than the caches of the CPU (True) or of a GPU (False)
_ADDITIONS = 16  # repetitions of vector additions and launches on a GPU
_FEWEST_TURNS, _MOST_TURNS = 2, 5  # number of turns in which the samples are measured
_SECONDS = 4.4  # seconds; no turn starts that would end later
_CORES = 128
_BLOCKS = 4  # number of blocks of an array that are sent in turn
_SMALL, _REPEATS_OF_SMALL = 2 << 20, 9  # bytes of transfers that are shorter than typical interference
_LEAST_START = 0.3  # seconds; minimum of the time to open a GPU, which this process may have opened before


def calibrate_gpu(number: int, description: str, kinds: Sequence[str], progress: Progress) -> DeviceParameters:
    """Measure the CUDA device `number` with the given workload types; types that it does not support are omitted with a warning.

    Raises
    ------
    DeviceError
        If the device failed.
    Cancelled
        If the user cancelled.
    """
    began = time.perf_counter()

    gpu = TimedGpu(number)
    gpu.wait(gpu.stream())
    start = max(_LEAST_START, time.perf_counter() - began)  # shorter if this process has opened it before
    shape = GpuShape(gpu.multiprocessors(), gpu.maximum_shared_bytes(), gpu.compute_capability())
    progress.stage(f"Measuring transfers and memory of {gpu.name}")
    gpu.is_noting = False
    moved = np.ones(2 * _SIZES_OF_TRANSFERS[-1], np.uint8)
    transfers = _transfers(gpu, moved)
    measured = _measured(gpu, description, shape, gpu.free_bytes(), 0, progress.check).model_copy(update={"start": start})
    measured = _with_kinds(measured, gpu, shape, kinds, began, progress)
    # Again after some seconds: interference lasts for a while and only lengthens transfers.
    gpu.is_noting = False
    return measured.model_copy(update={"transfers": _combine(transfers, _transfers(gpu, moved))})


def calibrate_processor(threads: int, kinds: Sequence[str], progress: Progress) -> DeviceParameters:
    """Measure the CPU with a number of threads and the given workload types.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    cpu, began = processor(), time.perf_counter()
    device = Processor(threads)
    progress.stage("Measuring memory and rates of the CPU")
    shape = GpuShape(threads, 0, 0)
    measured = _measured(device, cpu.description, shape, cpu.memory_bytes, threads, progress.check)
    return _with_kinds(measured, device, None, kinds, began, progress)


def _with_kinds(
    measured: DeviceParameters, device: Device, shape: GpuShape | None, kinds: Sequence[str], began: float, progress: Progress
) -> DeviceParameters:
    """Return the parameters `measured` with the costs of workload types added.

    Samples of all types run in turn, repeatedly, until the time for a calibration is over; the time starts at `began`.
    """
    progress.stage(f"Measuring {device.name}", _FEWEST_TURNS * len(kinds))
    result = {name: KindSamples(name, device, shape) for name in kinds}
    turn, last = 0, 0.0
    while turn < _FEWEST_TURNS or (turn < _MOST_TURNS and time.perf_counter() - began + last < _SECONDS):
        turn_began = time.perf_counter()
        for name, samples in [*result.items()]:
            progress.check()
            try:
                if turn == 0:
                    samples.grow(SECONDS_OF_KIND, progress.check)
                else:
                    samples.again()
            except DeviceError as error:
                del result[name]
                progress.message(f"{device.name} was not measured for '{name}': {str(error).splitlines()[0]}", "warning")
            if turn < _FEWEST_TURNS:
                progress.advance(1)
        turn, last = turn + 1, time.perf_counter() - turn_began
    return measured.model_copy(update={"kinds": {name: samples.costs() for name, samples in result.items()}})


def _measured(
    device: Any, description: str, shape: GpuShape, memory_bytes: int, threads: int, check: Callable[[], None]
) -> DeviceParameters:
    """Measure launches, memory and rates of a device; `check` is called between the measurements."""
    analyses = backend_module(device, "analyses").Analyses(device)
    rates = {}
    for name in OPERATIONS:
        check()
        rates[name] = _rate(analyses, name)
    tiny = np.ones(BLOCK, np.uint32)
    repeats, words = 2 if threads else _ADDITIONS, _WORDS[bool(threads)]
    return DeviceParameters(
        description=description,
        threads=threads,
        multiprocessors=shape.multiprocessors,
        cores=1 if threads else _CORES,
        shared_bytes=shape.shared_bytes,
        memory_bytes=memory_bytes,
        capability=shape.capability,
        transfers=TransferCosts(),
        sigma=_least(lambda: analyses.add(tiny, tiny)[1].kernel, _REPEATS_OF_SMALL),
        launch=_more(lambda n: analyses.stream(BLOCK, n), _ADDITIONS),
        memory_bandwidth=12.0 * words / _more(lambda n: analyses.stream(words, n), repeats),
        rates=rates,
    )


def _more(seconds: Callable[[int], float], repeats: int) -> float:
    """Return the time of one repetition, from the difference between runs with `repeats` and with 2 * `repeats` repetitions."""
    once, twice = (_least(partial(seconds, times)) for times in (repeats, 2 * repeats))
    return max((twice - once) / repeats, 0.05 * twice / (2 * repeats), 1e-9)


def _rate(analyses: Any, name: str) -> float:
    """Return how many basic operations of the kind `name`, such as ``integer``, a device executes per second, excluding launches."""
    count, _ = analyses.rate(name, _STEPS)
    return float(count / (_STEPS * _more(lambda steps: analyses.rate(name, steps)[1], _STEPS)))


def _transfers(gpu: Any, every: NDArray[np.uint8]) -> TransferCosts:
    """Measure transfers from different sections of a large array, since the arrays of a search are rarely in CPU caches.

    `every` is the array, which has twice as many bytes as the largest transfer.
    """
    stream, buffer = gpu.stream(), gpu.buffer(_SIZES_OF_TRANSFERS[-1])

    def upload(n_bytes: int, first: int) -> None:
        gpu.upload(buffer, every[first : first + n_bytes], stream)

    def download(n_bytes: int, first: int) -> None:
        # Results are transferred into new memory; allocating it takes the system as long as the transfer.
        gpu.download(np.empty(n_bytes, np.uint8), buffer, stream)

    result: list[tuple[float, ...]] = []
    for send in (upload, download):
        took = list[float]()
        for n_bytes in _SIZES_OF_TRANSFERS:
            firsts = cycle(range(0, len(every) - n_bytes + 1, n_bytes)[:_BLOCKS])

            def move(send: Any = send, n_bytes: int = n_bytes, firsts: Iterator[int] = firsts) -> float:
                began = time.perf_counter()
                send(n_bytes, next(firsts))
                gpu.wait(stream)
                return time.perf_counter() - began

            repeats = 1 if n_bytes > _NEW_PAGES else 2 if n_bytes > _SMALL else _REPEATS_OF_SMALL
            took.append(max(_least(move, repeats), took[-1] if took else 1e-9))
        result.append(tuple(took))
    return TransferCosts(sizes=_SIZES_OF_TRANSFERS, seconds_in=result[0], seconds_out=result[1])


def _combine(first: TransferCosts, second: TransferCosts) -> TransferCosts:
    """Combine two measurements of all transfers: for each size and direction, the smaller time.

    For large transfers to the host, which need new memory pages, the larger time is used, because busy systems have few free pages.
    """
    out = zip(first.sizes, first.seconds_out, second.seconds_out, strict=True)
    return TransferCosts(
        sizes=first.sizes,
        seconds_in=tuple(map(min, first.seconds_in, second.seconds_in)),
        seconds_out=tuple(max(seconds) if size > _NEW_PAGES else min(seconds) for size, *seconds in out),
    )


def _least(measure: Callable[[], float], repeats: int = _REPEATS) -> float:
    """Return the minimum of several measurements in seconds, after one measurement that is not counted."""
    measure()
    return float(min(measure() for _ in range(repeats)))
