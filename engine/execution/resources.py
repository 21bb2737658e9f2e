"""Resources and progress of a search step, which are passed as one object; and calls of a function in several CPU threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TypeVar

from proteoscope.engine.execution.checkpoints import RunCheckpoint
from proteoscope.engine.execution.clock import StageClock
from proteoscope.engine.execution.workload import RemoteWorkers
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.cuda.modules import Gpu
from proteoscope.kernels.device import StopFlag, available_threads
from proteoscope.kernels.threads import on_threads

__all__ = ["Resources", "available_threads", "run_on_threads"]

_CHECK_SECONDS = 0.1  # seconds between two checks for cancellation

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
    with on_threads(work, items, max(1, threads)) as futures:
        of_future = dict(zip(futures, items, strict=True))
        finished = SimpleQueue[Future[Result]]()  # waiting for any of the futures would take time in proportion to their number
        for future in futures:
            future.add_done_callback(finished.put)
        try:
            for _ in futures:
                future = _next_finished(finished, progress)
                future.result()
                progress.advance(steps(of_future[future]))
        except BaseException:
            if stop is not None:
                stop[0] = 1
            raise
        return [future.result() for future in futures]


def _next_finished(finished: SimpleQueue[Future[Result]], progress: Progress) -> Future[Result]:
    """Wait for the next finished call and return it; check for cancellation at least every tenth of a second."""
    while True:
        progress.check()
        with suppress(Empty):
            return finished.get(timeout=_CHECK_SECONDS)


@dataclass(frozen=True)
class Resources:
    """Threads, GPUs, progress, clock, checkpoint and remote workers of a run.

    Attributes
    ----------
    threads
        Number of CPU threads.
    gpus
        Opened GPUs. A GPU that fails is removed from the list, so that later steps do not use it.
    with_processor
        True if the CPU computes together with the GPUs.
    progress
        Progress, which receives stages and messages, and reports cancellation.
    clock
        Clock that measures the seconds of the stages.
    checkpoint
        Checkpoint with stored results of the run; None if the run cannot be resumed.
    remote_workers
        Workers in other processes that compute instead of the GPUs and threads; None if there are none.
    """

    threads: int = field(default_factory=available_threads)
    gpus: list[Gpu] = field(default_factory=list)
    with_processor: bool = False
    progress: Progress = field(default_factory=Progress)
    clock: StageClock = field(default_factory=StageClock)
    checkpoint: RunCheckpoint | None = None
    remote_workers: RemoteWorkers | None = None

    def reporting_to(self, progress: Progress) -> Resources:
        """Return a copy of the resources with another progress, for computations in the background."""
        return replace(self, progress=progress)

    @property
    def has_gpus(self) -> bool:
        """True if GPUs compute, in this process or in remote workers."""
        return bool(self.gpus) if self.remote_workers is None else self.remote_workers.has_gpus

    @property
    def used(self) -> str:
        """Names of the devices that have computed so far, such as ``cuda:0+cpu``."""
        if self.remote_workers is not None:
            return self.remote_workers.name
        gpus = [gpu.name for gpu in self.gpus]
        return "+".join([*gpus, *(["cpu"] if self.with_processor or not gpus else [])])
