"""Worker whose background thread exists only while functions are to be run."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Signal
from shiboken6 import isValid

from proteoscope.gui.deferred_tasks import DeferredTasks


@dataclass(eq=False)
class _Job:
    kind: str
    function: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[Exception], None]
    is_dropped: bool = field(default=False)


@cache
def _deliveries() -> DeferredTasks:
    """Return the queue of the results of all workers. Delivering and painting several results in one step would block the window."""
    return DeferredTasks(QCoreApplication.instance())


class TableWorker(QObject):
    """Worker that runs functions one by one in a background thread, newest first, and passes the results to the window's thread.

    A new request replaces an earlier one of the same kind: the earlier request is dropped or, if it is running, interrupted. The thread
    ends when no requests are left, so that idle views have no threads.

    Parameters
    ----------
    interrupt : callable, optional
        Function that makes the running function raise an error soon; called in the window's thread.
    parent : QObject or None
        Owner of the worker.
    """

    busyChanged = Signal(bool)  # noqa: N815 - Qt's way of naming signals
    _finished = Signal(object, object, object)

    def __init__(self, interrupt: Callable[[], None] | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._pending: OrderedDict[str, _Job] = OrderedDict()
        self._running: _Job | None = None
        self._thread: threading.Thread | None = None
        self._waited_for: set[_Job] = set()
        self._finished.connect(self._take)

    @property
    def is_busy(self) -> bool:
        """True while a result is expected."""
        return bool(self._waited_for)

    def submit(
        self,
        kind: str,
        function: Callable[[], Any],
        done: Callable[[Any], None],
        failed: Callable[[Exception], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        """Run `function` in the thread, and then call `done` or `failed` in the window's thread.

        Neither is called if the request is dropped, for example because of a newer request of its kind.

        Parameters
        ----------
        kind : str
            Kind of the request.
        function : callable
            Function that is called in the thread without arguments.
        done, failed : callable
            Functions that are called with the result, or with the exception that was raised.
        is_urgent : bool
            False to run the request after all others.
        """
        job = _Job(kind, function, done, failed)
        was_busy = self.is_busy
        self._drop(lambda other: other.kind == kind)
        self._waited_for.add(job)
        with self._lock:
            self._pending[kind] = job
            self._pending.move_to_end(kind, last=is_urgent)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="results", daemon=True)
                self._thread.start()
        if not was_busy:
            self.busyChanged.emit(True)

    def cancel(self, prefix: str = "") -> None:
        """Drop every request whose kind starts with `prefix` (by default all), and interrupt it if it is running."""
        was_busy = self.is_busy
        self._drop(lambda other: other.kind.startswith(prefix))
        if was_busy and not self.is_busy:
            self.busyChanged.emit(False)

    def close(self) -> None:
        """Drop all requests and wait until the thread has ended."""
        self.cancel()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _drop(self, is_meant: Callable[[_Job], bool]) -> None:
        # Includes requests that have finished but whose results have not been delivered yet.
        dropped = {job for job in self._waited_for if is_meant(job)}
        with self._lock:
            for job in dropped:
                job.is_dropped = True
                if self._pending.get(job.kind) is job:
                    del self._pending[job.kind]
            if self._running in dropped and self._interrupt is not None:
                self._interrupt()
        self._waited_for -= dropped

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._pending:
                    self._running = self._thread = None
                    return
                # The newest request comes first, since it is for what the user sees now.
                _, job = self._pending.popitem()
                self._running = job
            self._run(job)

    def _run(self, job: _Job) -> None:
        while not job.is_dropped:
            try:
                result, error = job.function(), None
            except Exception as raised:
                # An interrupt that was meant for the previous request may hit this one, which is then run again.
                if type(raised).__name__ == "InterruptException" and not job.is_dropped:
                    continue
                result, error = None, raised
            try:
                self._finished.emit(job, result, error)
            except RuntimeError:
                # The receiving widget was deleted meanwhile.
                job.is_dropped = True
            return

    def _take(self, job: _Job, result: Any, error: Exception | None) -> None:
        _deliveries().add(partial(self._deliver, job, result, error))

    def _deliver(self, job: _Job, result: Any, error: Exception | None) -> None:
        if job.is_dropped or not isValid(self):
            return
        self._waited_for.discard(job)
        if error is None:
            job.done(result)
        else:
            job.failed(error)
        if not self._waited_for:
            self.busyChanged.emit(False)
