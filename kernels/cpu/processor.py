"""CPU with a number of threads, as a `proteoscope.kernels.device.Device`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import wait

from proteoscope.kernels.device import Partition, StopFlag, stop_flag
from proteoscope.kernels.threads import on_threads

__all__ = ["Processor"]

_CHECK_SECONDS = 0.1  # seconds between two checks for a cancel


class Processor:
    """CPU threads of this machine; kernels release the GIL, so that all threads run in parallel."""

    name = "cpu"
    kernels = "cpu"
    is_processor = True

    def __init__(self, threads: int) -> None:
        self.threads = max(1, threads)

    def run(self, work: Callable[[int, int, StopFlag], None], partitions: Iterable[Partition], first: int) -> Generator[int, None, None]:
        """Compute partitions in parallel; together they contain each item from `first` on exactly once.

        `work(first, last, stop)` should take about a tenth of a second; if it may take longer, it must end when the flag `stop` is set,
        which happens on cancellation and when the generator is closed.

        Yields
        ------
        End of the finished range of items, at least every tenth of a second, even if it has not changed.
        """
        ordered, stop, done = sorted(partitions, key=lambda partition: partition.first), stop_flag(), first
        with on_threads(lambda partition: work(partition.first, partition.last, stop), ordered, self.threads) as futures:
            try:
                for number, (partition, future) in enumerate(zip(ordered, futures, strict=True)):
                    while not wait([future], timeout=_CHECK_SECONDS).done:
                        yield done
                    future.result()
                    done = partition.last
                    if number + 1 == len(futures) or not futures[number + 1].done():
                        yield done
            finally:
                stop[0] = 1
