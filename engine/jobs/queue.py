"""Queue of jobs that background threads run. It does not use Qt; windows and scripts register handlers of its events."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from proteoscope.engine.errors import ProteoscopeError
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent

__all__ = ["Job", "JobEvent", "JobQueue", "JobState", "Lane"]

JobState = Literal["queued", "running", "done", "failed", "cancelled"]

Lane = Literal["searches", "writing"]
"""Lane of a job: searches, which use all cores and memory, or tasks that only write results."""
_LANES: dict[Lane, str] = {"searches": "proteoscope-engine", "writing": "proteoscope-writing"}
"""Thread name of each lane."""

_logger = logging.getLogger(__name__)


class Job:
    """A job and its outcome, created by `JobQueue.add`. Any thread may read it.

    Attributes
    ----------
    id
        Number of the job in its `JobQueue`, from 1.
    lane
        Lane in which the job waits and runs.
    title
        Display name.
    state
        Current state; ``done``, ``failed`` and ``cancelled`` are final.
    result
        Return value of the work when done.
    error
        Exception of the work when failed.
    error_report
        Traceback of unexpected errors (other than `ProteoscopeError`), or ''.
    progress
        Latest progress report, or None.
    started, finished
        Start and end in seconds of `time.monotonic`, or None.
    """

    def __init__(
        self, number: int, title: str, work: Callable[[Progress], Any], report: Callable[[Job, ProgressEvent], None], lane: Lane
    ) -> None:
        self.id = number
        self.lane = lane
        self.title = title
        self.state: JobState = "queued"
        self.result: Any = None
        self.error: Exception | None = None
        self.error_report = ""
        self.progress: ProgressEvent | None = None
        self.started: float | None = None
        self.finished: float | None = None
        self._work: Callable[[Progress], Any] | None = work
        self._ended_by: ProteoscopeError | None = None
        self._watched = Progress(lambda event: report(self, event))

    @property
    def is_over(self) -> bool:
        """True if the job is done, failed or cancelled."""
        return self.state in ("done", "failed", "cancelled")

    @property
    def is_cancelling(self) -> bool:
        """True if cancelled but still running."""
        return self._watched.is_cancelled and not self.is_over

    @property
    def seconds(self) -> float:
        """Run time so far in seconds; 0 before the start."""
        if self.started is None:
            return 0.0
        return (self.finished if self.finished is not None else time.monotonic()) - self.started


@dataclass(frozen=True)
class JobEvent:
    """Event of a job. Only events of kind ``progress`` or ``message`` have a `progress`; the text of a message is `progress.message`."""

    kind: Literal["added", "started", "progress", "message", "finished"]
    job: Job
    progress: ProgressEvent | None = None


class JobQueue:
    """Queue of jobs in lanes; one background thread per lane runs the jobs of the lane in order.

    Because of the lanes, an export need not wait for an hour-long search. Event handlers run in the caller's thread for `add` and for
    cancelling a queued job, and in the lane's thread for all other events. The events of a job are, in this order, added, started, progress
    and messages, and finished; a job that is cancelled while queued is never started. An exception in a handler is logged and ignored; a
    handler that waits for another thread blocks the lane.
    """

    def __init__(self, *handlers: Callable[[JobEvent], None]) -> None:
        self._handlers = list(handlers)
        self._changed = threading.Condition()
        self._waiting: dict[Lane, deque[Job]] = {lane: deque() for lane in _LANES}
        self._running: dict[Lane, Job] = {}
        self._n_added = 0
        self._closed = False
        # Daemon threads, so that a native call that ignores cancellation cannot keep a closed program alive.
        self._threads = [threading.Thread(target=self._process_jobs, args=(lane,), name=name, daemon=True) for lane, name in _LANES.items()]
        for thread in self._threads:
            thread.start()

    @property
    def running(self) -> Job | None:
        """Running job, or None; if both lanes run a job, the job of the lane ``searches``."""
        return next(iter(self.all_running), None)

    @property
    def all_running(self) -> list[Job]:
        """The running jobs, at most one per lane, the search first."""
        with self._changed:
            return [self._running[lane] for lane in _LANES if lane in self._running]

    @property
    def waiting(self) -> list[Job]:
        """The queued jobs, lane by lane, in the order in which they will run."""
        with self._changed:
            return [job for waiting in self._waiting.values() for job in waiting]

    @property
    def is_idle(self) -> bool:
        """True if no job runs or waits."""
        with self._changed:
            return self._is_idle()

    def _is_idle(self) -> bool:
        return not self._running and not any(self._waiting.values())

    def add(self, title: str, work: Callable[[Progress], Any], lane: Lane = "searches") -> Job:
        """Add a job at the end of a lane and return it.

        Parameters
        ----------
        work
            Function that is called with the job's `Progress` in the background thread; its return value is the job's result.

        Raises
        ------
        RuntimeError
            If the queue was shut down.
        """
        with self._changed:
            if self._closed:
                raise RuntimeError("the queue of jobs is shut down")
            self._n_added += 1
            job = Job(self._n_added, title, work, self._report, lane)
            # Under the lock, so that the event "added" always precedes "started".
            self._emit(JobEvent("added", job))
            self._waiting[lane].append(job)
            self._changed.notify_all()
        return job

    def move(self, job: Job, before: Job | None) -> None:
        """Move a queued job before another queued job of its lane, or to the end without `before`.

        Nothing is moved if one of the jobs is no longer queued.
        """
        with self._changed:
            waiting = self._waiting[job.lane]
            if job in waiting and job is not before and (before is None or before in waiting):
                waiting.remove(job)
                waiting.insert(len(waiting) if before is None else waiting.index(before), job)

    def cancel(self, job: Job, because: ProteoscopeError | None = None) -> None:
        """Cancel a job. A queued job is cancelled immediately, a running job at its next report; a finished job is not changed.

        Parameters
        ----------
        because
            Error that is the reason for cancelling, if the user did not request it; the job then counts as failed with this error.
        """
        with self._changed:
            if not job._watched.is_cancelled:
                job._ended_by = because
            job._watched.cancel()
            if job not in self._waiting[job.lane]:
                return
            self._waiting[job.lane].remove(job)
            self._finish(job, _stopped(job))
            self._changed.notify_all()

    def cancel_all(self) -> None:
        """Cancel all running and queued jobs."""
        with self._changed:
            for job in [*self.waiting, *self.all_running]:
                self.cancel(job)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no job is running or queued; return False if this takes longer than `seconds`."""
        with self._changed:
            return self._changed.wait_for(self._is_idle, seconds)

    def shutdown(self, seconds: float | None = 10.0) -> bool:
        """Cancel all jobs, accept no more, and wait up to `seconds` (None: without limit); return True if all threads have ended."""
        with self._changed:
            self._closed = True
            self.cancel_all()
            self._changed.notify_all()
        deadline = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            if threading.current_thread() is not thread:
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _process_jobs(self, lane: Lane) -> None:
        waiting = self._waiting[lane]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: waiting or self._closed)
                if not waiting:
                    return
                job = self._running[lane] = waiting.popleft()
                job.started = time.monotonic()
                job.state = "running"
            self._emit(JobEvent("started", job))
            state = self._run_work(job)
            with self._changed:
                # The lane is idle before the event "finished", so that handlers see the right state.
                del self._running[lane]
                self._finish(job, state)
                self._changed.notify_all()

    def _run_work(self, job: Job) -> JobState:
        try:
            job._watched.check()
            # Release the work and its data, since the job itself may be displayed as long as the program runs.
            work, job._work = job._work, None
            assert work is not None
            job.result = work(job._watched)
        except Cancelled:
            return _stopped(job)
        except Exception as error:
            if not isinstance(error, ProteoscopeError):
                job.error_report = traceback.format_exc()
            # The frames of the traceback would keep the local data of the work in memory.
            job.error = error.with_traceback(None)
            return "failed"
        return "done"

    def _finish(self, job: Job, state: JobState) -> None:
        job.finished = time.monotonic()
        job._work = None
        job.state = state
        self._emit(JobEvent("finished", job))

    def _report(self, job: Job, event: ProgressEvent) -> None:
        job.progress = event
        self._emit(JobEvent("message" if event.message else "progress", job, event))

    def _emit(self, event: JobEvent) -> None:
        for handler in self._handlers:
            try:
                handler(event)
            except Exception:
                _logger.exception("a handler of job events failed")


def _stopped(job: Job) -> JobState:
    """Return the final state of a job that stopped when cancelled."""
    if job._ended_by is None:
        return "cancelled"
    job.error = job._ended_by
    return "failed"
