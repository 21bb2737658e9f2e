"""Tasks of the window in the job queue, with their progress and outcomes."""

import time
from pathlib import Path

from PySide6.QtCore import QLocale, QObject, Signal

from proteoscope.engine.jobs import Job, JobQueue, ProgressEvent
from proteoscope.engine.project import gone_error, is_project
from proteoscope.gui.bridge import JobBridge
from proteoscope.gui.job_dock import duration_text
from proteoscope.gui.log_dock import LogDock
from proteoscope.gui.stage_times import StageTimes
from proteoscope.gui.tasks import ExperimentTask, SearchTask, WritingTask


class TaskQueue(QObject):
    """Owner of the job queue and of the bridge that delivers its events; it logs the events and emits signals about tasks.

    Parameters
    ----------
    log : LogDock
        Log to which messages about queued, started and finished tasks are added.
    parent : QObject
        Owner of this object.

    Signals
    -------
    queued
        A task was queued.
    progressed
        Short progress text of the running job; empty if none is running.
    stage_begun
        A job has reached another stage.
    ended
        A finished, failed or cancelled job and its task.
    """

    queued = Signal()
    progressed = Signal(str)
    stage_begun = Signal()
    ended = Signal(Job, object)

    def __init__(self, log: LogDock, parent: QObject) -> None:
        super().__init__(parent)
        self.bridge = JobBridge(self)
        self.jobs = JobQueue(self.bridge.handle)
        self._log = log
        self._tasks: dict[int, SearchTask | WritingTask] = {}
        self.stages: dict[int, str] = {}
        """Stage of each running job, by job number."""
        self.stage_seconds: dict[str, dict[str, float]] = {}
        """Durations in seconds of the stages of the last finished search, by search kind and stage name."""
        self._times: dict[int, StageTimes] = {}
        self.bridge.started.connect(self._on_started)
        self.bridge.progressed.connect(self._on_progress)
        self.bridge.message.connect(lambda job, text: self._log.add(f"{job.title}: {text}"))
        self.bridge.finished.connect(self._on_finished)

    def add(self, task: SearchTask | WritingTask) -> Job:
        """Queue a task and return its job."""
        self.queued.emit()
        # The queue emits the "added" event before it returns the job.
        work = task.run if isinstance(task, WritingTask) else task.run_in_project
        job = self.jobs.add(task.title, work, task.lane)
        self._tasks[job.id] = task
        self._log.add(f"{task.title}: queued")
        return job

    def outcome(self, job: Job) -> str:
        """Return the outcome of a finished job as one line."""
        took = f" after {duration_text(job.seconds)}" if job.started is not None else ""
        if job.state == "cancelled":
            return f"Cancelled{took}"
        if job.state == "failed":
            return f"Failed{took}: {job.error}"
        return f"{self._tasks[job.id].outcome(job.result, QLocale())} in {duration_text(job.seconds)}"

    def is_resuming(self, folder: Path, run_id: str) -> bool:
        """Return True if a queued or running job resumes this run of the project in `folder`."""
        tasks = (self._tasks.get(job.id) for job in (*self.jobs.waiting, *self.jobs.all_running))
        return any(isinstance(task, SearchTask) and task.request.resume == run_id and task.project_folder == folder for task in tasks)

    def job_of_experiment(self, folder: Path) -> Job | None:
        """Return the running or queued job that searches the experiment of the project in `folder`, or None."""
        jobs = ((job, self._tasks.get(job.id)) for job in (*self.jobs.all_running, *self.jobs.waiting))
        return next((job for job, task in jobs if isinstance(task, ExperimentTask) and task.project_folder == folder), None)

    def running(self) -> list[tuple[Job, SearchTask | WritingTask]]:
        """Return the running jobs with their tasks."""
        return [(job, self._tasks[job.id]) for job in self.jobs.all_running if job.id in self._tasks]

    def cancel_running(self) -> None:
        """Cancel the running job."""
        job = self.jobs.running
        if job is not None:
            self.jobs.cancel(job)

    def close(self) -> None:
        """Shut down the queue without further signals."""
        self.jobs.shutdown(0.5)
        self.bridge.close()

    def seconds_left(self, job: Job) -> float | None:
        """Return the remaining seconds of a running job, estimated from the last job of its kind, or None without an estimate."""
        times = self._times.get(job.id)
        return None if times is None else times.left(job.progress, time.monotonic())

    def _on_started(self, job: Job) -> None:
        self._log.add(f"{job.title}: started")
        task = self._tasks.get(job.id)
        if isinstance(task, SearchTask):
            self._times[job.id] = StageTimes(self.stage_seconds.get(task.search.kind, {}))

    def _on_progress(self, job: Job, event: ProgressEvent) -> None:
        fraction = f" {100 * event.done // event.total} %" if event.total > 0 else ""
        waiting = len(self.jobs.waiting)
        if job is self.jobs.running:
            self.progressed.emit(f"{event.stage}{fraction}" + (f", {waiting} queued" if waiting else ""))
        if event.stage != self.stages.get(job.id):
            self.stages[job.id] = event.stage
            if job.id in self._times:
                self._times[job.id].begin(event.stage, time.monotonic())
            self._stop_if_project_is_missing(job)
            self.stage_begun.emit()

    def _stop_if_project_is_missing(self, job: Job) -> None:
        """Stop a search whose project folder is missing, since its results cannot be saved."""
        task = self._tasks.get(job.id)
        if isinstance(task, SearchTask) and not is_project(task.project_folder):
            self.jobs.cancel(job, gone_error(task.project_folder))

    def _on_finished(self, job: Job) -> None:
        self.stages.pop(job.id, None)
        task, times = self._tasks.get(job.id), self._times.pop(job.id, None)
        if job.state == "done" and times is not None and isinstance(task, SearchTask):
            self.stage_seconds[task.search.kind] = times.end(time.monotonic())
        self._log.add(f"{job.title}: {self.outcome(job)}", "error" if job.state == "failed" else "info")
        if self.jobs.is_idle:
            self.progressed.emit("")
        self.ended.emit(job, task)
