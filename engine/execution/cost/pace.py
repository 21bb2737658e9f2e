"""How fast the host is at the moment: what shares a machine slows it down by a third or more, for seconds at a time."""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["LAUNCH_BOUND", "host_pace", "times_slower"]

LAUNCH_BOUND = 0.001
"""Seconds of kernels: those of a work that take less wait for the host, which launches them."""

_NUMBERS, _REPEATS = 20_000, 2
_POWER = 0.87  # by the means of some seconds; single runs, with the noise of a short loop, would say less
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


def times_slower(pace: float, other: float) -> float:
    """How many times as long what a host does takes at a pace than at another one; 1 where either is unknown, which is 0.

    A search does not only what the loop does, and follows it by a power below 1.
    """
    return min(_SLOWEST, max(1.0 / _SLOWEST, (pace / other) ** _POWER)) if pace > 0 and other > 0 else 1.0


@lru_cache
def _numbers() -> NDArray[np.float64]:
    return np.random.default_rng(1).random(_NUMBERS)
