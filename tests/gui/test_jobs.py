"""Tests of job events sent to the window, and of the rows that show them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs import Job, JobQueue, Progress
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.job_dock import JobDock, duration_text
from proteoscope.gui.theme import Theme


@pytest.fixture
def bridge(theme: Theme) -> Iterator[JobBridge]:
    bridge = JobBridge()
    yield bridge
    bridge.close()


@pytest.fixture
def queue(bridge: JobBridge) -> Iterator[JobQueue]:
    queue = JobQueue(bridge.handle)
    yield queue
    assert queue.shutdown(60)


class Facts:
    """Job facts supplied to a dock."""

    left: float | None = None

    def outcome(self, job: Job) -> str:
        return f"{job.state}: {job.result or job.error}"

    def seconds_left(self, job: Job) -> float | None:
        return self.left


@pytest.fixture
def dock(bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> JobDock:
    dock = JobDock(bridge, Facts())
    dock.cancel_requested.connect(queue.cancel)
    dock.moved.connect(queue.move)
    qtbot.addWidget(dock)
    dock.resize(900, 200)
    dock.show()
    return dock


class UntilCancelled:
    """Work that ends at its first step after a cancel."""

    def __init__(self) -> None:
        self.n_late = 0  # Steps started after a cancel.

    def __call__(self, progress: Progress) -> None:
        progress.stage("Counting", 10**12)
        while True:
            self.n_late += progress.is_cancelled
            progress.advance(10**9)
            time.sleep(0.001)


def test_job_events_arrive_in_order_in_the_thread_of_the_window(bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    seen: list[tuple[str, bool]] = []
    here = threading.get_ident()
    bridge.added.connect(lambda job: seen.append(("added", threading.get_ident() == here)))
    bridge.started.connect(lambda job: seen.append(("started", threading.get_ident() == here)))
    bridge.message.connect(lambda job, text: seen.append((text, threading.get_ident() == here)))
    bridge.finished.connect(lambda job: seen.append(("finished", threading.get_ident() == here)))

    def work(progress: Progress) -> None:
        progress.message("one")
        progress.message("two")

    with qtbot.waitSignal(bridge.finished):
        queue.add("talks", work)
    assert seen == [(what, True) for what in ("added", "started", "one", "two", "finished")]


def test_job_progress_arrives_at_most_twenty_times_a_second(bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    received, ticks = [], []
    assert 50 <= bridge._timer.interval() <= 100
    bridge.progressed.connect(lambda job, event: received.append(event.done))
    bridge._timer.timeout.connect(lambda: ticks.append(len(received)))

    def work(progress: Progress) -> None:
        # Each stage is reported whatever the interval: the worst case of an engine.
        i = 0
        while len(ticks) < 10:
            i += 1
            progress.stage(f"stage {i}", 1)
            time.sleep(0.0005)

    with qtbot.waitSignal(bridge.finished):
        queue.add("hurries", work)
    assert 5 <= len(received) <= len(ticks), "at most one at each tick"


def test_last_progress_event_of_a_job_is_never_lost(bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    received: list[tuple[int, int]] = []
    bridge.progressed.connect(lambda job, event: received.append((event.done, event.total)))

    def work(progress: Progress) -> None:
        progress.stage("All", 5000)
        for _ in range(5000):
            progress.advance()

    with qtbot.waitSignal(bridge.finished):
        queue.add("counts", work)
    assert received[-1] == (5000, 5000)


def test_job_with_many_messages_does_not_stall_the_window(bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    received: list[str] = []
    bridge.message.connect(lambda job, text: received.append(text))

    def work(progress: Progress) -> None:
        for i in range(20_000):
            progress.message(str(i))

    with qtbot.waitSignal(bridge.finished):
        queue.add("talks", work)
    assert received[-1] == "19999"
    assert len(received) < 20_000


def test_job_row_shows_progress_and_result_of_the_job(dock: JobDock, bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    opened = threading.Event()

    def work(progress: Progress) -> str:
        # This is more than the 32 bits of a progress bar.
        progress.stage("Scoring", 2_000_000_000_000)
        time.sleep(0.1)
        progress.advance(1_000_000_000_000)
        opened.wait(10)
        return "7 PSMs"

    job = queue.add("Identify a.mzML", work)
    qtbot.waitUntil(lambda: job.id in dock.rows and dock.rows[job.id].bar.isVisible() and dock.rows[job.id].bar.value() == 500)
    row = dock.rows[job.id]
    assert row.title.toolTip() == "Identify a.mzML" and row.stage.toolTip() == "Scoring"
    assert row.bar.maximum() == 1000 and row.cancel_button.isVisible()
    opened.set()
    qtbot.waitUntil(lambda: row.stage.toolTip() == "done: 7 PSMs")
    assert not row.bar.isVisible() and not row.cancel_button.isVisible()
    QTest.mouseClick(dock.clear_button, Qt.MouseButton.LeftButton)
    assert dock.rows == {} and dock.empty.isVisible()


def test_cancel_button_cancels_running_and_queued_jobs(dock: JobDock, bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    work = UntilCancelled()
    first, second = queue.add("first", work), queue.add("second", UntilCancelled())
    qtbot.waitUntil(lambda: len(dock.rows) == 2 and first.progress is not None)
    qtbot.waitUntil(lambda: dock.rows[first.id].bar.isVisible())
    assert dock.rows[second.id].stage.toolTip() == "Queued"
    QTest.mouseClick(dock.rows[second.id].cancel_button, Qt.MouseButton.LeftButton)
    assert second.state == "cancelled"
    QTest.mouseClick(dock.rows[first.id].cancel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: first.state == "cancelled" and dock.rows[first.id].stage.toolTip().startswith("cancelled"))
    assert work.n_late <= 1


def test_running_job_is_scrolled_into_view_among_many_jobs(dock: JobDock, queue: JobQueue, qtbot: QtBot) -> None:
    jobs = [queue.add(f"job {i}", lambda progress: "done") for i in range(12)]
    jobs.append(queue.add("the running one", UntilCancelled()))
    queue_end = jobs[-1]
    qtbot.waitUntil(lambda: queue_end.state == "running" and queue_end.id in dock.rows)

    row = dock.rows[queue_end.id]

    def is_whole_and_last() -> bool:
        return row.visibleRegion().boundingRect() == row.rect()

    qtbot.waitUntil(is_whole_and_last)
    queue.cancel(queue_end)
    qtbot.waitUntil(lambda: queue_end.is_over)


def test_job_row_shows_the_error_of_a_failed_job(dock: JobDock, bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    def work(progress: Progress) -> None:
        raise InputError("a.mzML", "is cut off", place="byte 12")

    job = queue.add("fails", work)
    qtbot.waitUntil(lambda: job.id in dock.rows and "is cut off" in dock.rows[job.id].stage.toolTip())


def test_closed_job_bridge_sends_no_events(bridge: JobBridge, queue: JobQueue, qtbot: QtBot) -> None:
    received: list[Job] = []
    bridge.finished.connect(received.append)
    bridge.close()
    queue.add("unheard", lambda progress: None)
    assert queue.wait(60)
    qtbot.wait(150)
    assert received == []


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (59.4, "59 s"), (60, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_duration_text_uses_seconds_minutes_or_hours(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_job_row_shows_elapsed_and_remaining_time(dock: JobDock, queue: JobQueue, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    job = queue.add("one", UntilCancelled())
    qtbot.waitUntil(lambda: job.id in dock.rows and "in this stage" in dock.rows[job.id].time_left.text())
    assert dock.rows[job.id].time_left.text().startswith("1 s")
    monkeypatch.setattr(Facts, "left", 200.0)
    qtbot.waitUntil(lambda: dock.rows[job.id].time_left.text().endswith(", 3 min 20 s left"))
    queue.cancel(job)
    qtbot.waitUntil(lambda: job.is_over)


def test_queued_job_can_be_dragged_before_another_job(dock: JobDock, queue: JobQueue, qtbot: QtBot) -> None:
    dock.resize(900, 500)
    order: list[str] = []
    running = queue.add("running", UntilCancelled())
    jobs = [queue.add(name, lambda progress, name=name: order.append(name)) for name in ("one", "two", "three")]
    qtbot.waitUntil(lambda: len(dock.rows) == 4 and dock.rows[jobs[2].id].y() > dock.rows[jobs[0].id].y() > 0)
    row, first = dock.rows[jobs[2].id], dock.rows[jobs[0].id]
    begin = QPoint(30, 10)
    QTest.mousePress(row, Qt.MouseButton.LeftButton, pos=begin)
    while row.y() > first.y() or row.pos().y() == first.pos().y():
        QTest.mouseMove(row, QPoint(30, -40))
        qtbot.wait(20)
    QTest.mouseRelease(row, Qt.MouseButton.LeftButton, pos=begin)
    assert [job.title for job in queue.waiting] == ["three", "one", "two"]
    QTest.mousePress(dock.rows[running.id], Qt.MouseButton.LeftButton, pos=begin)
    assert dock.rows[running.id]._pressed is None, "a running job is not moved"
    queue.cancel(running)
    qtbot.waitUntil(lambda: len(order) == 3)
    assert order == ["three", "one", "two"]
