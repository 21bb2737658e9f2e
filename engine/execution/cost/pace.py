"""How fast the host is at the moment: what shares a machine slows it down by a third or more, for seconds at a time."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["LAUNCH_BOUND", "calm_pace", "host_pace", "times_slower"]

LAUNCH_BOUND = 0.001
"""Seconds of kernels: those of a work that take less wait for the host, which launches them."""

_NUMBERS, _REPEATS = 20_000, 2
_POWER = 0.87  # by the means of some seconds; single runs, with the noise of a short loop, would say less
_CALM, _MOST_CORES = 1.2, 8  # times the least that was seen; that are tried at a time
_SLOWEST = 2.0  # times: beyond, the host is not what makes the difference


def host_pace() -> float:
    """Seconds of a loop that is always the same, a sort on one thread: the least of two.

    What the host does of a search, and transfers, take longer as it does (correlation 0.8 on the shared host of an H200, 0.99 of the means
    of a few seconds); kernels do not, but for those that are `LAUNCH_BOUND`.
    """
    numbers, least = _numbers(), float("inf")
    for _ in range(_REPEATS):
        began = time.perf_counter()
        np.sort(numbers)
        least = min(least, time.perf_counter() - began)
    return least


def calm_pace() -> float:
    """The pace of a core that is left alone at the moment, to which this thread goes; of the fastest where none is.

    What shares a machine slows each core at other times, for some tenths of a second (16 of the host of an H100: a half of the time each,
    and never all of them). The thread is free to go elsewhere afterwards, and where the system does not let it choose it stays.
    """
    pace, cores = host_pace(), _cores()
    cores.least = min(cores.least, pace)
    if pace <= _CALM * cores.least or not hasattr(os, "sched_setaffinity"):
        return pace
    allowed = os.sched_getaffinity(0)
    found = dict[int, float]()
    with contextlib.suppress(OSError):  # of a system that refuses
        try:
            for core in cores.next(allowed):
                os.sched_setaffinity(0, {core})
                found[core] = host_pace()
                cores.least = min(cores.least, found[core])
                if found[core] <= _CALM * cores.least:
                    return found[core]
            os.sched_setaffinity(0, {min(found, key=lambda one: found[one])})
        finally:
            _free(allowed)
    return min(found.values(), default=pace)


def _free(allowed: set[int]) -> None:
    """Let this thread go to these cores, or to any where they are not all its own any more."""
    try:
        os.sched_setaffinity(0, allowed)
    except OSError:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def times_slower(pace: float, other: float) -> float:
    """How many times as long what a host does takes at a pace than at another one; 1 where either is unknown, which is 0.

    A search does not only what the loop does, and follows it by a power below 1.
    """
    return min(_SLOWEST, max(1.0 / _SLOWEST, (pace / other) ** _POWER)) if pace > 0 and other > 0 else 1.0


class _Cores:
    """The least pace that this process has seen, and which core is tried next."""

    def __init__(self) -> None:
        self.least, self._after = float("inf"), -1

    def next(self, allowed: set[int]) -> Iterator[int]:
        """Some of these, each time others."""
        every = sorted(allowed, key=lambda core: (core <= self._after, core))
        for core in every[:_MOST_CORES]:
            self._after = core
            yield core


@lru_cache
def _cores() -> _Cores:
    return _Cores()


@lru_cache
def _numbers() -> NDArray[np.float64]:
    return np.random.default_rng(1).random(_NUMBERS)
