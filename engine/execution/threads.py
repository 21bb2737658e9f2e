"""Execution of partitions on the threads of this machine; kernels release the GIL, so that threads run in parallel.

Cancellation takes effect between two partitions; kernels that may take long for a single item also read a stop flag.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import StopFlag, available_threads

__all__ = ["available_threads", "run_on_threads"]

_CHECK_SECONDS = 0.1  # between two checks for cancellation

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_on_threads(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    threads: int,
    progress: Progress,
    *,
    steps: Callable[[Item], int] = lambda item: 1,
    stop: StopFlag | None = None,
) -> list[Result]:
    """Call a function on each item, in several threads, and return the results in the order of the items.

    After cancellation or an error, items that have not started are omitted, `stop` is set, and running calls are awaited.

    Parameters
    ----------
    work : callable
        Function to call with each item.
    items : sequence
        Arguments of the calls.
    threads : int
        Maximum number of threads; with one thread and no `stop`, the calling thread is used.
    progress : Progress
        Progress, which advances by ``steps(item)`` after each item.
    steps : callable
        Function that returns the number of progress steps of an item.
    stop : ndarray, optional
        Stop flag that running calls read in order to end early.
    """
    if (threads <= 1 or len(items) <= 1) and stop is None:
        results = []
        for item in items:
            progress.check()
            results.append(work(item))
            progress.advance(steps(item))
        return results
    with ThreadPoolExecutor(max(1, threads), thread_name_prefix="proteoscope") as pool:
        futures = {pool.submit(work, item): item for item in items}
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=_CHECK_SECONDS, return_when=FIRST_COMPLETED)
                progress.check()
                for future in done:
                    future.result()
                    progress.advance(steps(futures[future]))
        except BaseException:
            if stop is not None:
                stop[0] = 1
            pool.shutdown(wait=False, cancel_futures=True)  # the end of the `with` block waits
            raise
        return [future.result() for future in futures]
