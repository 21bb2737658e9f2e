"""Each kind of work on a device, by samples of a few sizes.

Of a kind no micro-benchmark tells how fast its inner loop is and how well it fills a card: its own kernels are run, on samples that grow
until they take long enough to tell. What disturbs a run only lengthens it, and lasts for some runs: samples are run again after those of
other kinds, and the least counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.execution.cost.parameters import KindCosts, WorkSize, fitted
from engine.execution.work import CardShape, PredictableKind, Sample, Work, kind_of, sample_of
from kernels.device import Device

__all__ = ["SECONDS_OF_KIND", "KindSamples", "Run", "awaken", "calibrate_kind", "run_sample", "size_of", "timed_sample"]

_FIRST_SIZE, _LARGEST_SIZE, _GROWTH = 2.0**-11, 0.5, 4.0
SECONDS_OF_KIND = 0.1
"""Of the first runs of a kind, on a card or the processor, besides the samples that it takes at the least."""
_LONGEST_RUN = {True: 0.04, False: 0.012}  # on the processor and on a card: the samples that follow would only be as fast
_LONG = 0.1  # seconds: no larger sample is asked for
_AWAKE = 0.008  # seconds
_AS_LONG = 1.3  # times
_GROWN = 2.5  # times the seconds of a sample a quarter as large: it is full
_PATIENCE = 4.0  # times the seconds of a kind, where samples do not yet fill the device
_FEWEST_SIZES, _MOST_SIZES = 3, 8
_SEED = 20181


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


def run_sample(sample: Sample, device: Device, *, is_noted: bool = True) -> Run:
    """Open the work on a device, do its rounds, and close it; kernels and transfers are told apart where the card notes them.

    `is_noted`: let it. What it notes by takes time of its own; without it the seconds are those of a search.
    """
    kind = kind_of(sample.work)
    timed = getattr(device, "busy_seconds", None)
    if timed is not None:
        timed()
        device.is_noting = is_noted  # type: ignore[attr-defined] # what notes has it, other devices need not know of it
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


def awaken(sample: Sample, device: Device, seconds: float = 0.0) -> None:
    """Keep a card busy with a sample, which has done so for some seconds: one that rests lowers its clock."""
    while not device.is_processor and seconds < _AWAKE:
        seconds += run_sample(sample, device, is_noted=False).seconds


def timed_sample(sample: Sample, device: Device, repeats: int, chosen: Callable[[Iterable[float]], float]) -> Run:
    """A sample that was run before, so many times again: the `chosen` seconds of runs without notes, of runs with notes what they tell of
    kernels and transfers. On the processor all runs are alike."""
    noted = [run_sample(sample, device) for _ in range(1 if device.is_processor else repeats)]
    plain = [run_sample(sample, device, is_noted=False) for _ in range(repeats)]
    if device.is_processor:
        noted = plain
    seconds = chosen(run.seconds for run in plain)
    kernel = min(chosen(run.kernel for run in noted), seconds)
    return Run(seconds, kernel, min(chosen(run.transfer for run in noted), seconds - kernel))


class KindSamples:
    """Samples of a kind of work, and the least that each took on a device so far.

    Parameters
    ----------
    name : of the kind. card : its shape; None for the processor.

    Raises
    ------
    ValueError : the kind is not predicted.
    """

    def __init__(self, name: str, device: Device, card: CardShape | None) -> None:
        kind = kind_of(Work(name, {}, {}))
        if not isinstance(kind, PredictableKind):
            raise ValueError(f"the kind of work '{name:.60}' is not predicted")
        self._kind, self._device, self._card = kind, device, card
        self._samples: list[Sample] = []
        self._runs: list[Run] = []

    def grow(self, seconds: float, check: Callable[[], None]) -> None:
        """Run samples, four times as large each time, until they take long or the seconds are over.

        Raises
        ------
        DeviceError : the device failed, or cannot do this. Cancelled : `check`, which is called before each sample, raised it.
        """
        spent, size, runs = 0.0, _FIRST_SIZE, self._runs
        while len(runs) < _MOST_SIZES:
            check()
            self._samples.append(sample_of(self._kind, size, _SEED + len(runs)))
            first = run_sample(self._samples[-1], self._device).seconds  # may compile what this size wants
            awaken(self._samples[-1], self._device, first)
            runs.append(timed_sample(self._samples[-1], self._device, 1, min))
            spent += 2 * runs[-1].seconds
            grown = runs[-1].seconds / runs[-2].seconds if len(runs) > 1 else 1.0
            is_full = grown > _GROWN and runs[-1].seconds > _LONGEST_RUN[self._device.is_processor]
            is_enough = is_full or spent > seconds * (1.0 if grown > _GROWN else _PATIENCE) or runs[-1].seconds > _LONG
            if (len(runs) >= _FEWEST_SIZES and is_enough) or size >= _LARGEST_SIZE:
                break
            # Where a sample takes no longer than one of a fourth, what is fixed decides: the next may be larger still.
            size = min(_LARGEST_SIZE, size * (_GROWTH if grown > _AS_LONG or len(runs) < 2 else _GROWTH**2))

    def again(self) -> None:
        """Run each once more.

        Raises
        ------
        DeviceError : the device failed.
        """
        for number, sample in enumerate(self._samples):
            if number == 0:
                awaken(sample, self._device)
            found = timed_sample(sample, self._device, 1, min)
            if found.seconds < self._runs[number].seconds:
                self._runs[number] = found

    def costs(self) -> KindCosts:
        """What the samples tell."""
        sizes, runs = [size_of(one.work, one.states, self._card) for one in self._samples], self._runs
        operations, kernel = _curve([one.operations for one in sizes], [run.kernel for run in runs])
        if self._card is None:
            return KindCosts(operations=operations, kernel=kernel)
        moved = [one.bytes_in + one.bytes_out for one in sizes]
        rows = [(1.0, float(one.items), each) for one, each in zip(sizes, moved, strict=True)]
        host = fitted(rows, [max(run.host, 1e-6) for run in runs])
        moved_curve, transfer = _curve(moved, [run.transfer for run in runs])
        return KindCosts(
            operations=operations, kernel=kernel, moved=moved_curve, transfer=transfer,
            host_fixed=host[0], host_item=host[1], host_byte=host[2],
        )  # fmt: skip


def calibrate_kind(
    name: str, device: Device, card: CardShape | None, *, seconds: float = SECONDS_OF_KIND, check: Callable[[], None] = lambda: None
) -> KindCosts:
    """A kind of work on a device, by samples of several sizes, each run twice.

    Raises
    ------
    DeviceError, Cancelled : see `KindSamples`. ValueError : the kind is not predicted.
    """
    samples = KindSamples(name, device, card)
    samples.grow(seconds, check)
    samples.again()
    return samples.costs()


def _curve(x: Sequence[float], y: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Where x grows; of points with the same x the least y."""
    found: dict[float, float] = {}
    for one, value in zip(x, y, strict=True):
        if one >= max(found, default=0.0):
            found[one] = max(min(value, found.get(one, value)), 1e-7)
    return tuple(found), tuple(found.values())
