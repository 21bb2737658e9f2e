"""The CPU as a device: concurrent partitions, progress, and threads that end when a run is closed."""

from __future__ import annotations

import threading
import time

import pytest

from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Partition, StopFlag, backend_module


def test_processor_run_does_each_item_once_and_reports_progress():
    done: list[int] = []
    lock = threading.Lock()

    def work(first: int, last: int, stop: StopFlag) -> None:
        with lock:
            done.extend(range(first, last))

    parts = [Partition(8, 10, 1.0), Partition(3, 8, 1.0), Partition(10, 11, 1.0)]
    ends = list(Processor(3).run(work, parts, 3))
    assert sorted(done) == list(range(3, 11))
    assert ends == sorted(ends)
    assert ends[-1] == 11


def test_processor_run_reports_progress_during_a_long_partition():
    finish = threading.Event()
    ends = Processor(1).run(lambda first, last, stop: finish.wait(10) and None, [Partition(0, 5, 1.0)], 0)
    assert next(ends) == 0
    finish.set()
    assert list(ends)[-1] == 5


def test_processor_run_stops_when_closed():
    begun = []

    def work(first: int, last: int, stop: StopFlag) -> None:
        begun.append(first)
        while not stop[0]:
            time.sleep(0.001)

    ends = Processor(1).run(work, [Partition(i, i + 1, 1.0) for i in range(50)], 0)
    next(ends)
    ends.close()
    assert len(begun) < 50


def test_processor_run_raises_errors_of_partitions():
    def work(first: int, last: int, stop: StopFlag) -> None:
        raise ValueError("of a partition")

    with pytest.raises(ValueError, match="of a partition"):
        list(Processor(2).run(work, [Partition(0, 1, 1.0), Partition(1, 2, 1.0)], 0))


def test_backend_module_of_the_processor_is_the_cpu_module():
    assert backend_module(Processor(1), "digestion").__name__ == "proteoscope.kernels.cpu.digestion"
