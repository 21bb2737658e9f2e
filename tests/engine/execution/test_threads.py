"""Work on threads: results are in order; cancels and errors stop items that have not begun."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from proteoscope.engine.execution.resources import available_threads, run_on_threads
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.kernels.device import stop_flag
from proteoscope.kernels.threads import PREFIX
from tests.effort import CancelCheckProgress

_FORKED = """
import os
from proteoscope.engine.execution.resources import run_on_threads
from proteoscope.engine.jobs.progress import Progress

def compute():
    print(run_on_threads(lambda item: item * item, range(3), 3, Progress()), flush=True)

compute()
if child := os.fork():
    os.waitpid(child, 0)
else:
    compute()
    os._exit(0)
"""


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_run_on_threads_returns_results_in_item_order(threads: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * ((item * 7) % 5))
        return item * item

    assert run_on_threads(work, list(range(30)), threads, Progress()) == [item * item for item in range(30)]


@pytest.mark.parametrize("threads", [1, 3])
def test_run_on_threads_advances_progress_by_steps_of_each_item(threads: int) -> None:
    events: list[ProgressEvent] = []
    progress = Progress(events.append, interval=0.0)
    progress.stage("Working", 15)
    run_on_threads(lambda item: item, [1, 2, 3, 4, 5], threads, progress, steps=lambda item: item)
    assert events[-1].done == 15
    assert [event.done for event in events] == sorted(event.done for event in events)


def test_run_on_threads_uses_exactly_the_requested_threads() -> None:
    running, most, lock, barrier = [0], [0], threading.Lock(), threading.Barrier(3, timeout=60)

    def work(_: int) -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        barrier.wait()
        with lock:
            running[0] -= 1

    run_on_threads(work, range(9), 3, Progress())
    assert most[0] == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_run_on_threads_starts_no_item_after_cancel(threads: int) -> None:
    progress, begun = CancelCheckProgress(9), []

    def work(item: int) -> None:
        begun.append(item)
        time.sleep(0.02)

    with pytest.raises(Cancelled):
        run_on_threads(work, range(1000), threads, progress)
    assert progress.n_checks_after_cancel == 0
    count = len(begun)
    time.sleep(0.1)
    assert len(begun) == count < 30, "nothing begins after a cancel"


def test_run_on_threads_notices_cancel_during_long_items() -> None:
    """Items that are running continue, but no other starts; the cancel is raised when they end."""
    noticed = threading.Event()

    class CancelNoticed(Progress):
        def check(self) -> None:
            try:
                super().check()
            except Cancelled:
                noticed.set()
                raise

    progress, begun = CancelNoticed(), list[int]()

    def work(item: int) -> None:
        begun.append(item)
        if len(begun) == 2:
            progress.cancel()
        assert noticed.wait(60)
        time.sleep(0.3)  # until items that have not begun are removed

    with pytest.raises(Cancelled):
        run_on_threads(work, range(50), 2, progress)
    assert len(begun) == 2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fails", [False, True])
def test_stop_flag_stops_running_items_at_cancel_or_error(threads: int, fails: bool) -> None:
    progress, stop, stopped = Progress(), stop_flag(), []

    def work(item: int) -> None:
        if fails and item == threads - 1:
            raise ZeroDivisionError
        if not fails:
            progress.cancel()
        while not stop[0]:
            time.sleep(1e-3)
        stopped.append(item)

    with pytest.raises(ZeroDivisionError if fails else Cancelled):
        run_on_threads(work, range(threads), threads, progress, stop=stop)
    assert len(stopped) == threads - fails


def test_stop_flag_stays_unset_without_errors() -> None:
    stop = stop_flag()
    assert run_on_threads(lambda item: int(stop[0]), range(5), 2, Progress(), stop=stop) == [0] * 5
    assert stop[0] == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_run_on_threads_raises_error_and_starts_no_further_item(threads: int) -> None:
    begun = []

    def work(item: int) -> int:
        begun.append(item)
        time.sleep(0.01)
        if item == 4:
            raise ZeroDivisionError("item four")
        return item

    with pytest.raises(ZeroDivisionError, match="item four"):
        run_on_threads(work, range(500), threads, Progress())
    assert len(begun) < 40


@pytest.mark.parametrize("threads", [1, 4])
def test_run_on_threads_accepts_no_items(threads: int) -> None:
    assert run_on_threads(lambda item: item, [], threads, Progress()) == []


def test_nested_calls_find_threads_which_are_reused() -> None:
    barrier, within = threading.Barrier(3, timeout=60), threading.Barrier(6, timeout=60)

    def inner(_: int) -> str:
        within.wait()
        return threading.current_thread().name

    def outer(_: int) -> list[str]:
        barrier.wait()
        return run_on_threads(inner, range(2), 2, Progress())

    first = {name for names in run_on_threads(outer, range(3), 3, Progress()) for name in names}
    assert len(first) == 6 and all(name.startswith(PREFIX) for name in first)
    before = {thread.name for thread in threading.enumerate()}
    run_on_threads(outer, range(3), 3, Progress())
    assert {thread.name for thread in threading.enumerate()} <= before, "no thread was started again"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_forked_process_starts_its_own_threads() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[0, 1, 4]\n" * 2


def test_available_threads_is_at_least_one() -> None:
    assert available_threads() >= 1
