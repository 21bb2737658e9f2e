"""Measure a device: transfers, launches, memory, rates of inner operations, and each kind of work on samples of a few sizes.

All together takes a few seconds of computing; what must be compiled first, where it was not, comes on top. Of a kind of work no
micro-benchmark tells how fast its inner loop is and how well it fills a card: its own kernels are run, on samples that grow until they
take long enough to tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from engine.execution.cost.parameters import DeviceParameters, KindCosts, TransferCosts, WorkSize, fitted
from engine.execution.devices import processor
from engine.execution.work import CardShape, PredictableKind, Sample, Work, kind_of, sample_of
from engine.jobs.progress import Progress
from kernels.analyses_layouts import BLOCK, OPERATIONS
from kernels.cpu.processor import Processor
from kernels.device import Device, DeviceError, twin

__all__ = ["Run", "calibrate_card", "calibrate_kind", "calibrate_processor", "run_sample", "size_of"]

_SIZES_OF_TRANSFERS = 1 << 10, 1 << 15, 1 << 19, 1 << 22, 24 << 20, 128 << 20  # bytes
_REPEATS = 3  # of which the least counts: what disturbs a run only lengthens it
_STEPS = 1 << 12  # of the loops whose rate is measured
_WORDS, _ADDITIONS = (
    {True: 1 << 22, False: 1 << 24},
    16,
)  # of vectors beyond the caches of the processor and a card; how often they are added
_FIRST_SIZE, _GROWTH = 2.0**-11, 4.0
_SECONDS_OF_KIND = 0.25  # of all runs, on a card or the processor
_LONGEST_RUN = {True: 0.04, False: 0.02}  # on the processor and on a card: the samples that follow would only be as fast
_SHORT, _LONG = 0.01, 0.1  # seconds of runs that are repeated twice more, and not
_GROWN = 2.5  # times the seconds of a sample a quarter as large: it is full
_FEWEST_SIZES, _MOST_SIZES = 3, 8
_SEED = 20181
_CORES = 128
_LARGEST_PINNED = 24 << 20
_LEAST_START = 0.3  # seconds


@dataclass(frozen=True)
class Run:
    """What a sample took: all seconds, those in kernels, and those of transfers beside which no kernel ran."""

    seconds: float
    kernel: float
    transfer: float

    @property
    def host(self) -> float:
        """What is left."""
        return max(0.0, self.seconds - self.kernel - self.transfer)


def size_of(work: Work, states: Sequence[Any], card: CardShape | None) -> WorkSize:
    """A work as the model counts it.

    Raises
    ------
    ValueError : nobody knows its kind, or what its kind takes.
    """
    kind = kind_of(work)
    if not isinstance(kind, PredictableKind):
        raise ValueError(f"the work '{work.kind:.60}' is of a kind that is not predicted")
    rounds = [kind.costs(work, state) for state in states]
    outs = sum(_bytes_of(kind.empty(work, state, len(costs))) for state, costs in zip(states, rounds, strict=True))
    return WorkSize(
        sum(kind.operations(work, state, card) for state in states), sum(len(costs) for costs in rounds),
        float(sum(_bytes_of(columns) for columns in work.sources.values()) + sum(_bytes_of(state) for state in states)), float(outs),
        len(states),
    )  # fmt: skip


def _bytes_of(values: Any) -> int:
    """Of all arrays in it."""
    if isinstance(values, np.ndarray):
        return int(values.nbytes)
    return sum(_bytes_of(one) for one in values.values()) if hasattr(values, "values") else 0


def run_sample(sample: Sample, device: Device) -> Run:
    """Open the work on a device, do its rounds, and close it; kernels and transfers are told apart where the card notes them."""
    kind = kind_of(sample.work)
    timed = getattr(device, "busy_seconds", None)
    if timed is not None:
        timed()
    began = time.perf_counter()
    with kind.open(sample.work, device, is_shared=False) as opened:
        for state in sample.states:
            n = len(kind.costs(sample.work, state))
            rows, first = kind.empty(sample.work, state, n), 0
            opened.begin(state, None)
            with closing(opened.search(0, n)) as pieces:
                for piece in pieces:
                    if piece.rows is not None and piece.end > first:
                        kind.merge(rows, first, piece.end, piece.rows)
                        first = piece.end
    seconds = time.perf_counter() - began
    kernel, transfer = timed() if timed is not None else (seconds, 0.0)
    return Run(seconds, min(kernel, seconds), max(0.0, min(transfer, seconds - kernel)))


def calibrate_kind(
    name: str, device: Device, card: CardShape | None, *, seconds: float = _SECONDS_OF_KIND, check: Callable[[], None] = lambda: None
) -> KindCosts:
    """Run samples of a kind of work, four times as large each time, until they take long or the seconds are over.

    Raises
    ------
    DeviceError : the device failed, or cannot do this. Cancelled : `check`, which is called before each sample, raised it.
    """
    kind = kind_of(Work(name, {}, {}))
    if not isinstance(kind, PredictableKind):
        raise ValueError(f"the kind of work '{name:.60}' is not predicted")
    sizes: list[WorkSize] = []
    runs: list[Run] = []
    spent, size = 0.0, _FIRST_SIZE
    while len(sizes) < _MOST_SIZES:
        check()
        sample = sample_of(kind, size, _SEED + len(sizes))
        found = [run_sample(sample, device) for _ in range(2)]  # the first may compile what this size wants
        again = found[1].seconds
        found += [run_sample(sample, device) for _ in range(2 if again < _SHORT else 0)]
        spent += sum(min(run.seconds, 2 * again) for run in found)
        counted = size_of(sample.work, sample.states, card)
        if not sizes or counted.operations > sizes[-1].operations:
            sizes.append(counted)
            runs.append(min(found, key=lambda run: run.seconds))
        longest = runs[-1].seconds
        grown = runs[-1].seconds / runs[-2].seconds if len(runs) > 1 else 1.0
        is_full = len(sizes) >= _FEWEST_SIZES and grown > _GROWN and longest > _LONGEST_RUN[device.is_processor]
        if is_full or spent > seconds or (len(sizes) >= _FEWEST_SIZES and longest > _LONG):
            break
        size *= _GROWTH
    moved = [one.bytes_in + one.bytes_out for one in sizes]
    if card is None:
        return KindCosts(operations=tuple(one.operations for one in sizes), kernel=tuple(max(run.kernel, 1e-7) for run in runs))
    host = fitted([(1.0, float(one.items), each) for one, each in zip(sizes, moved, strict=True)], [max(run.host, 1e-6) for run in runs])
    is_more = [number for number, each in enumerate(moved) if each > max(moved[:number], default=0.0)]
    return KindCosts(
        operations=tuple(one.operations for one in sizes), kernel=tuple(max(run.kernel, 1e-7) for run in runs),
        moved=tuple(moved[number] for number in is_more), transfer=tuple(max(runs[number].transfer, 1e-7) for number in is_more),
        host_fixed=host[0], host_item=host[1], host_byte=host[2],
    )  # fmt: skip


def calibrate_card(number: int, key: str, description: str, kinds: Sequence[str], progress: Progress) -> DeviceParameters:
    """Measure CUDA device `number` and these kinds of work on it. Kinds that it cannot do are left out.

    Raises
    ------
    DeviceError : the device failed. Cancelled : the user asked to stop.
    """
    began = time.perf_counter()
    from kernels.cuda.timing import TimedCard

    card = TimedCard(number)
    card.wait(card.stream())
    start = max(_LEAST_START, time.perf_counter() - began)  # less where this process had opened it before
    shape = CardShape(card.multiprocessors(), card.maximum_shared_bytes(), card.compute_capability())
    progress.stage(f"Measuring transfers and memory of {card.name}")
    measured = _measured(card, key, description, shape, card.free_bytes(), 0, progress.check)
    measured = measured.model_copy(update={"start": start})
    return _with_kinds(measured, card, shape, kinds, progress)


def calibrate_processor(threads: int, key: str, kinds: Sequence[str], progress: Progress) -> DeviceParameters:
    """Measure the processor with so many threads, and these kinds of work on it.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    own = processor()
    device = Processor(threads)
    progress.stage("Measuring memory and rates of the processor")
    measured = _measured(device, key, own.description, CardShape(threads, 0, 0), own.memory_bytes, threads, progress.check)
    return _with_kinds(measured, device, None, kinds, progress)


def _with_kinds(
    measured: DeviceParameters, device: Device, shape: CardShape | None, kinds: Sequence[str], progress: Progress
) -> DeviceParameters:
    progress.stage(f"Measuring {device.name}", len(kinds))
    found: dict[str, KindCosts] = {}
    for name in kinds:
        progress.check()
        try:
            found[name] = calibrate_kind(name, device, shape, check=progress.check)
        except DeviceError as error:
            progress.message(f"{device.name} was not measured for '{name}': {str(error).splitlines()[0]}", "warning")
        progress.advance(1)
    return measured.model_copy(update={"kinds": found})


def _measured(
    device: Any, key: str, description: str, shape: CardShape, memory_bytes: int, threads: int, check: Callable[[], None]
) -> DeviceParameters:
    """Transfers, launches, memory and rates; `check` is called between them."""
    analyses = twin(device, "analyses").Analyses(device)
    rates = {}
    for name in OPERATIONS:
        check()
        rates[name] = _rate(analyses, name)
    tiny = np.ones(BLOCK, np.uint32)
    repeats, words = 2 if threads else _ADDITIONS, _WORDS[bool(threads)]
    return DeviceParameters(
        key=key, description=description, threads=threads, multiprocessors=shape.multiprocessors, cores=1 if threads else _CORES,
        shared_bytes=shape.shared_bytes, memory_bytes=memory_bytes, capability=shape.capability,
        pinned=TransferCosts() if threads else _transfers(device, is_pinned=True),
        pageable=TransferCosts() if threads else _transfers(device, is_pinned=False),
        sigma=_least(lambda: analyses.add(tiny, tiny)[1].kernel), launch=_more(lambda n: analyses.stream(BLOCK, n), _ADDITIONS),
        memory_bandwidth=12.0 * words / _more(lambda n: analyses.stream(words, n), repeats), rates=rates,
    )  # fmt: skip


def _more(seconds: Callable[[int], float], repeats: int) -> float:
    """What one more takes, of what is done so many times and twice as many."""
    one, two = (_least(partial(seconds, times)) for times in (repeats, 2 * repeats))
    return max((two - one) / repeats, 0.05 * two / (2 * repeats), 1e-9)


def _rate(analyses: Any, name: str) -> float:
    """Operations of a kind in a second, without the launch: what twice as many take longer."""
    analyses.rate(name, 1)
    one, two = (_least(partial(_seconds_of_rate, analyses, name, steps)) for steps in (_STEPS, 2 * _STEPS))
    count, _ = analyses.rate(name, _STEPS)
    return float(count / max(two - one, 0.1 * two, 1e-9))


def _seconds_of_rate(analyses: Any, name: str, steps: int) -> float:
    return float(analyses.rate(name, steps)[1])


def _transfers(card: Any, *, is_pinned: bool) -> TransferCosts:
    sizes = [size for size in _SIZES_OF_TRANSFERS if not is_pinned or size <= _LARGEST_PINNED]
    stream, buffer, every = card.stream(), card.buffer(sizes[-1]), np.ones(sizes[-1], np.uint8)
    found: list[list[float]] = []
    for send in (card.upload, card.download):
        took = list[float]()
        for n_bytes in sizes:
            kept = card.pinned(n_bytes)[:n_bytes] if is_pinned else every[:n_bytes]

            def move(send: Any = send, kept: Any = kept, n_bytes: int = n_bytes) -> None:
                # Results come into memory that nobody has touched, which takes the system as long as the transfer.
                values = kept if is_pinned or send == card.upload else np.empty(n_bytes, np.uint8)
                send(*((buffer, values) if send == card.upload else (values, buffer)), stream)
                card.wait(stream)

            took.append(max(_least_wall(move, 2 if n_bytes > _LARGEST_PINNED else _REPEATS), took[-1] if took else 1e-9))
        found.append(took)
    return TransferCosts(sizes=tuple(sizes), seconds_in=tuple(found[0]), seconds_out=tuple(found[1]))


def _least(work: Callable[[], float], repeats: int = _REPEATS) -> float:
    """Seconds that it tells itself: the least of several, after one that is not counted."""
    work()
    return float(min(work() for _ in range(repeats)))


def _least_wall(work: Callable[[], None], repeats: int) -> float:
    def timed() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return _least(timed, repeats)
