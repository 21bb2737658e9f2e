"""Devices (CPU and GPU), access to their kernel packages, and division of work among them.

`proteoscope.kernels.cpu` and `proteoscope.kernels.cuda` have the same classes and functions. The first argument of a class is the
device. Methods are generators that yield their progress every tenth of a second or two, so that the caller can check for cancellation and
measure speeds. Closing a generator stops the computation.

Items are divided into partitions of nearly equal cost before they are computed, by their cumulative costs: the pre-calculation of Li (BMC
Bioinformatics 2014, 15:121). More partitions than workers, largest first, compensate for errors of the estimate.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels

__all__ = [
    "Device",
    "DeviceError",
    "DeviceMemoryError",
    "Partition",
    "StopFlag",
    "UnsupportedSearchError",
    "available_threads",
    "backend_module",
    "equal_partitions",
    "even_partitions",
    "falling_partitions",
    "stop_flag",
]

StopFlag: TypeAlias = NDArray[np.uint8]
"""Flag, (1,) uint8, that kernels read while they run: 0 to continue, 1 to stop immediately."""


def available_threads() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class DeviceError(RuntimeError):
    """The device failed, or a kernel does not compile; the computation must be repeated on another device."""


class DeviceMemoryError(DeviceError):
    """The device does not have enough free memory; a smaller batch may fit."""


class UnsupportedSearchError(DeviceError):
    """The search exceeds a fixed limit of the device's kernels, which the message names; the CPU has no such limits."""


class Device(Protocol):
    """CPU with a number of threads, or GPU.

    Attributes
    ----------
    name
        Display name, such as "cpu" or "cuda:0".
    kernels
        Name of the device's subpackage of `proteoscope.kernels`, "cpu" or "cuda"; '' for a device of another machine.
    is_processor
        True for the CPU, whose memory and threads the caller needs too.
    """

    name: str
    kernels: str
    is_processor: bool


def backend_module(device: Device, module: str) -> ModuleType:
    """Import and return the kernel module with a name for a device."""
    result: ModuleType = getattr(kernels.cuda if device.kernels == "cuda" else kernels.cpu, module)
    return result


def stop_flag() -> StopFlag:
    """Return a stop flag that is not set."""
    return np.zeros(1, np.uint8)


_ROUNDS = 0.75, 0.1875, 0.046875  # each round has three quarters of the remaining work


@dataclass(frozen=True)
class Partition:
    """Items `first:last` and their estimated cost, in the unit of the items' costs."""

    first: int
    last: int
    cost: float


def equal_partitions(cost: NDArray[np.number], workers: int, *, maximum_cost: float = float("inf"), per_worker: int = 8) -> list[Partition]:
    """Divide n items into partitions of nearly equal cost, largest first.

    Parameters
    ----------
    cost
        (n,), non-negative cost of each item, in order.
    workers
        Number of workers.
    maximum_cost
        Maximum cost of a partition with several items, which limits the time between checks for cancellation.
    per_worker
        Number of partitions per worker.

    Returns
    -------
    list of Partition
        Partitions that contain each item once; empty without items.
    """
    n = len(cost)
    if n == 0:
        return []
    before = np.zeros(n + 1)
    total = before[1:]
    np.maximum(cost, 1e-9, out=total)  # one array, since there may be millions of items
    np.cumsum(total, out=total)
    chunks = max(workers * per_worker, int(np.ceil(total[-1] / maximum_cost)) if np.isfinite(maximum_cost) else 1)
    marks = total[-1] * np.arange(1, chunks) / chunks
    cuts = np.unique(np.concatenate(([0], np.searchsorted(total, marks, side="right"), [n])))
    partitions = [
        Partition(a, b, float(before[b] - before[a]))
        for first, last in pairwise(cuts.tolist())
        for a, b in pairwise(_cuts_within(total, before, first, last, maximum_cost))
    ]
    return sorted(partitions, key=lambda partition: -partition.cost)


def even_partitions(n: int, workers: int, *, per_worker: int = 8) -> list[Partition]:
    """Divide n items of equal cost into at most ``workers * per_worker`` partitions, in order; see `equal_partitions`."""
    chunks = max(1, min(n, workers * per_worker))
    cuts = [n * chunk // chunks for chunk in range(chunks + 1)]
    return [Partition(first, last, last - first) for first, last in pairwise(cuts) if last > first]


def falling_partitions(cost: NDArray[np.number], workers: int, rounds: Sequence[float] = _ROUNDS) -> list[Partition]:
    """Divide n items into partitions of decreasing size.

    Large partitions keep the overhead low; small ones at the end let all workers end at about the same time.

    In each round, every worker gets an equal fraction of the larger part of the remaining items (factoring: Hummel, Schonberg & Flynn
    1992). A single worker gets one partition. See `equal_partitions` for the other parameters and the result.

    Parameters
    ----------
    rounds
        Relative cost of each round, non-increasing, with any sum.
    """
    n = len(cost)
    if n == 0:
        return []
    marks = np.cumsum(np.repeat(rounds if workers > 1 else (1.0,), workers))
    total = np.cumsum(np.maximum(np.asarray(cost, np.float64), 1e-9))
    cuts = np.unique(np.concatenate(([0], np.searchsorted(total, marks[:-1] / marks[-1] * total[-1], side="right"), [n])))
    before = np.concatenate(([0.0], total))
    partitions = [Partition(first, last, float(before[last] - before[first])) for first, last in pairwise(cuts.tolist())]
    return sorted(partitions, key=lambda partition: -partition.cost)


def _cuts_within(total: NDArray[np.float64], before: NDArray[np.float64], first: int, last: int, maximum_cost: float) -> list[int]:
    """Return positions that divide `first:last` into partitions of at most about `maximum_cost`; single items may exceed it."""
    cuts = [first]
    while cuts[-1] < last:
        reached = int(np.searchsorted(total, before[cuts[-1]] + maximum_cost, side="right"))
        cuts.append(min(last, max(cuts[-1] + 1, reached)))
    return cuts
