"""Run partitions on the threads of this machine. The kernels release the interpreter's lock, so threads are workers in full.

A cancel is heard between two partitions; kernels that may take long for a single item read a flag besides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import StopFlag

__all__ = ["available_threads", "run_on_threads"]

_LOOK_SECONDS = 0.1  # between two looks at a cancel

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_on_threads(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    progress: Progress,
    *,
    steps: Callable[[Item], int] = lambda item: 1,
    stop: StopFlag | None = None,
) -> list[Result]:
    """Call `work` on each item, on `threads` threads, in the order given; return the results in that order.

    `progress` advances by `steps(item)` after each. A cancel or an error stops the items that have not begun and waits for those that have;
    it sets `stop`, for work that reads it to leave off. Without that flag, one thread is the caller's own.
    """
    if (threads <= 1 or len(items) <= 1) and stop is None:
        results = []
        for item in items:
            progress.check()
            results.append(work(item))
            progress.advance(steps(item))
        return results
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="proteoscope") as pool:
        futures = [pool.submit(work, item) for item in items]
        place = {future: i for i, future in enumerate(futures)}
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
                progress.check()
                for future in done:
                    future.result()
                    progress.advance(steps(items[place[future]]))
        except BaseException:
            if stop is not None:
                stop[0] = 1
            _cancel_all(pending)
            raise
        return [future.result() for future in futures]


def _cancel_all(futures: Iterable) -> None:
    for future in futures:
        future.cancel()
