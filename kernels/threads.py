"""CPU threads of this process, which all computations share.

Starting a thread takes a tenth of a millisecond, and longer if other threads need the GIL. A search divides its work among
all threads dozens of times; therefore the threads remain and wait for the next computation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

__all__ = ["PREFIX", "on_threads"]

PREFIX = "proteoscope-shared"
"""Beginning of the names of the threads."""
_MAXIMUM_THREADS = 1 << 16  # a computation within another one must always find a thread

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_MAXIMUM_THREADS, thread_name_prefix=PREFIX)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has none of the threads


@contextmanager
def on_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> Iterator[list[Future[Result]]]:
    """Call a function on each item in a number of threads.

    At the end of the ``with`` block, items that have not begun are cancelled, and running calls are awaited. After an error, end the block:
    the thread of the error calls the function no more.

    Parameters
    ----------
    work : callable
        Function to call with each item.
    items : sequence
        Arguments of the calls, which begin in this order.
    threads : int
        Number of calls that run at the same time.

    Yields
    ------
    list of concurrent.futures.Future
        One for each item, in the same order.
    """
    futures = [Future[Result]() for _ in items]
    waiting = iter(list(zip(items, futures, strict=True)))  # an iterator over a list can be used by several threads

    def serve() -> None:
        for item, future in waiting:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work(item))
                except BaseException as error:
                    future.set_exception(error)
                    raise

    serving = list[Future[None]]()
    try:
        for _ in range(min(threads, len(futures))):
            serving.append(_pool().submit(serve))
        yield futures
    finally:
        for future in futures:
            future.cancel()
        wait(serving)
