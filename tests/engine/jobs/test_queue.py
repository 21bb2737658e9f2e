"""Job queue without a window: order, cancelling, errors and shutdown."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.jobs import Job, JobEvent, JobQueue, Progress


@pytest.fixture
def events() -> list[tuple[str, int]]:
    return []


@pytest.fixture
def queue(events: list[tuple[str, int]]) -> Iterator[JobQueue]:
    queue = JobQueue(lambda event: events.append((event.kind, event.job.id)))
    yield queue
    assert queue.shutdown(60)


class Gate:
    """Work that waits until its gate is opened or it is cancelled."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.n_late = 0  # steps after the cancel

    def __call__(self, progress: Progress) -> str:
        progress.stage("Waiting")
        self.entered.set()
        while not self.opened.wait(0.01):
            self.n_late += progress.is_cancelled
            progress.advance()
        return "through"


def test_queue_runs_jobs_in_order_and_never_two_at_once(queue: JobQueue) -> None:
    running, most, order = [0], [0], []

    def work(number: int, progress: Progress) -> int:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.005)
        order.append(number)
        running[0] -= 1
        return number * number

    jobs = [queue.add(f"job {i}", lambda progress, i=i: work(i, progress)) for i in range(8)]
    assert queue.wait(60)
    assert order == list(range(8)) and most == [1]
    assert [job.result for job in jobs] == [i * i for i in range(8)]
    assert {job.state for job in jobs} == {"done"}


def test_job_seconds_count_only_while_the_job_runs(queue: JobQueue) -> None:
    gate, next_gate = Gate(), Gate()
    job, next_job = queue.add("first", gate), queue.add("second", next_gate)
    assert gate.entered.wait(60)
    assert job.seconds > 0 and next_job.seconds == 0 and not (job.is_over or job.is_cancelling)
    gate.opened.set()
    assert next_gate.entered.wait(60)
    assert job.is_over and not job.is_cancelling and not next_job.is_over
    queue.cancel(next_job)
    assert queue.wait(60)
    assert next_job.is_over and not next_job.is_cancelling, "cancelled jobs are over"
    taken = job.seconds
    time.sleep(0.002)
    assert job.seconds == taken


def test_queue_runs_jobs_in_the_background_thread(queue: JobQueue) -> None:
    job = queue.add("who", lambda progress: threading.current_thread())
    assert queue.wait(60)
    assert job.result is not threading.current_thread()
    assert job.result.name == "proteoscope-engine"


def test_handler_receives_all_events_of_a_job(queue: JobQueue, events: list[tuple[str, int]]) -> None:
    def work(progress: Progress) -> None:
        progress.stage("Counting", 2)
        progress.message("by hand")
        progress.advance(2)

    job = queue.add("counted", work)
    assert queue.wait(60)
    assert [kind for kind, _ in events] == ["added", "started", "progress", "message", "progress", "finished"]
    assert job.progress is not None and (job.progress.stage, job.progress.done, job.progress.total) == ("Counting", 2, 2)


def test_running_job_is_cancelled_at_its_next_step(queue: JobQueue) -> None:
    gate = Gate()
    job = queue.add("gate", gate)
    assert gate.entered.wait(60)
    queue.cancel(job)
    assert queue.wait(60)
    assert gate.n_late <= 1
    assert job.state == "cancelled" and job.result is None


def test_job_cancelled_while_queued_never_starts(queue: JobQueue, events: list[tuple[str, int]]) -> None:
    gate, called = Gate(), []
    first = queue.add("gate", gate)
    second = queue.add("never", called.append)
    third = queue.add("after", lambda progress: "done")
    assert gate.entered.wait(60)
    queue.cancel(second)
    assert second.state == "cancelled" and queue.waiting == [third]
    gate.opened.set()
    assert queue.wait(60)
    assert not called
    assert (first.state, third.state) == ("done", "done")
    assert [kind for kind, number in events if number == second.id] == ["added", "finished"]


def test_job_cancelled_with_an_error_has_status_failed(queue: JobQueue) -> None:
    first, second, third = Gate(), Gate(), Gate()
    running, waiting, wanted = (queue.add(str(i), work) for i, work in enumerate((first, second, third)))
    reason, later = StorageError("the disk is gone"), StorageError("too late")
    assert first.entered.wait(60)
    queue.cancel(waiting, reason)
    assert waiting.state == "failed" and waiting.error is reason
    queue.cancel(running, reason)
    queue.cancel(running, later)
    queue.cancel(wanted)
    queue.cancel(wanted, reason)
    assert queue.wait(60)
    assert (running.state, running.error, running.error_report) == ("failed", reason, "")
    assert (wanted.state, wanted.error) == ("cancelled", None), "a job cancelled by the user stays cancelled"


def test_cancel_of_a_finished_job_changes_nothing(queue: JobQueue, events: list[tuple[str, int]]) -> None:
    job = queue.add("quick", lambda progress: 1)
    assert queue.wait(60)
    before = list(events)
    queue.cancel(job)
    assert job.state == "done" and events == before


def test_unexpected_exception_fails_only_the_job_and_adds_report(queue: JobQueue) -> None:
    broken = queue.add("broken", lambda progress: 1 // 0)
    after = queue.add("after", lambda progress: "fine")
    assert queue.wait(60)
    assert broken.state == "failed" and isinstance(broken.error, ZeroDivisionError)
    assert "ZeroDivisionError" in broken.error_report
    assert broken.error.__traceback__ is None
    assert after.result == "fine"


def test_input_error_of_a_job_has_no_error_report(queue: JobQueue) -> None:
    def work(progress: Progress) -> None:
        raise InputError("run.mzML", "is not there")

    job = queue.add("missing", work)
    assert queue.wait(60)
    assert job.state == "failed" and str(job.error) == "run.mzML: is not there." and not job.error_report


def test_queue_shutdown_cancels_running_and_queued_jobs(events: list[tuple[str, int]]) -> None:
    queue = JobQueue(lambda event: events.append((event.kind, event.job.id)))
    gate = Gate()
    jobs = [queue.add("gate", gate), queue.add("next", gate)]
    assert gate.entered.wait(60)
    assert queue.shutdown(60)
    assert [job.state for job in jobs] == ["cancelled", "cancelled"]
    assert queue.is_idle and queue.shutdown(60)
    with pytest.raises(RuntimeError):
        queue.add("late", gate)


def test_queue_shutdown_returns_false_for_an_uncancellable_job() -> None:
    queue, opened = JobQueue(), threading.Event()
    queue.add("deaf", lambda progress: opened.wait(10))
    time.sleep(0.02)
    assert not queue.shutdown(0.05)
    opened.set()
    assert queue.shutdown(60)


def test_queue_handles_a_thousand_jobs_from_four_threads(queue: JobQueue, events: list[tuple[str, int]]) -> None:
    jobs: list[Job] = []

    def add() -> None:
        for i in range(250):
            jobs.append(queue.add(str(i), lambda progress, i=i: i))  # noqa: PERF401 - others add meanwhile

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.wait(20)
    assert sorted(job.id for job in jobs) == list(range(1, 1001))
    assert all(job.state == "done" and job.result == int(job.title) for job in jobs)
    assert [number for kind, number in events if kind == "started"] == list(range(1, 1001))
    for kinds in ("added", "started", "finished"):
        assert sum(kind == kinds for kind, _ in events) == 1000


def test_jobs_cancelled_at_any_time_have_one_final_state(queue: JobQueue, events: list[tuple[str, int]]) -> None:
    jobs = [queue.add(str(i), lambda progress: progress.stage("One", 1)) for i in range(300)]
    for job in jobs[::2]:
        queue.cancel(job)
    assert queue.wait(20)
    assert all(job.state in ("done", "cancelled") for job in jobs)
    assert all(job.state == "done" for job in jobs[1::2])
    finished = [number for kind, number in events if kind == "finished"]
    assert sorted(finished) == [job.id for job in jobs]


def test_queue_logs_failing_event_handler_and_continues_the_job(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: JobEvent) -> None:
        raise OSError("the handler is broken")

    queue = JobQueue(fail)
    with caplog.at_level(logging.ERROR):
        job = queue.add("still done", lambda progress: "yes")
        assert queue.wait(60)
    assert queue.shutdown(60)
    assert job.result == "yes"
    assert "the handler is broken" in caplog.text


def test_writing_jobs_run_in_order_during_a_search(queue: JobQueue) -> None:
    search, order, written = Gate(), [], threading.Event()
    running = queue.add("a long search", search)
    later = queue.add("another search", lambda progress: order.append("search"))
    assert search.entered.wait(60)
    for k in range(5):
        queue.add(f"export {k}", lambda progress, k=k: order.append(k), "writing")
    queue.add("the last export", lambda progress: written.set(), "writing")
    assert written.wait(30)
    assert order == list(range(5)) and running.state == "running" and later.state == "queued" and not queue.is_idle
    assert queue.waiting == [later] and queue.running is running
    search.opened.set()
    assert queue.wait(60)
    assert order == [*range(5), "search"]


def test_queued_job_can_be_moved_among_jobs_of_its_type(queue: JobQueue) -> None:
    gate = Gate()
    running = queue.add("running", gate)
    assert gate.entered.wait(60)
    first, second, third = (queue.add(name, lambda progress: None) for name in ("one", "two", "three"))
    queue.move(third, first)
    assert queue.waiting == [third, first, second]
    queue.move(third, None)
    assert queue.waiting == [first, second, third]
    for job, before in ((running, first), (first, running), (first, first)):
        queue.move(job, before)
    assert queue.waiting == [first, second, third], "a running job, or one moved before itself, stays"
    gate.opened.set()
    assert queue.wait(60)
