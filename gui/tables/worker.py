"""Work beside the window: a thread that lives while there is something to do."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, Signal

__all__ = ["TableWorker"]


@dataclass(eq=False)
class _Job:
    kind: str
    function: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[Exception], None]
    is_dropped: bool = field(default=False)


class TableWorker(QObject):
    """Runs functions one at a time in a thread, the newest first, and hands their results to the window's thread.

    Of one kind only the newest request counts: those before it are dropped, and one that is running is interrupted. There is no thread
    while there is no work, so that a view that is only shown holds none.

    Parameters
    ----------
    interrupt : makes the function that is running raise an error soon; called from the window's thread.
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
        self._finished.connect(self._deliver)

    @property
    def is_busy(self) -> bool:
        """Whether a result is still to come."""
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
        """Have `function` run in the thread; `done` or `failed` is called in the window's thread, unless something newer came.

        What is not urgent waits for all else.
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
        """Drop every request whose kind begins with `prefix`."""
        was_busy = self.is_busy
        self._drop(lambda other: other.kind.startswith(prefix))
        if was_busy and not self.is_busy:
            self.busyChanged.emit(False)

    def close(self) -> None:
        """Drop everything and wait until the thread has ended."""
        self.cancel()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _drop(self, is_meant: Callable[[_Job], bool]) -> None:
        # Also those that have run and whose results are on their way here.
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
                # What was asked for last is what the user looks at now.
                _, job = self._pending.popitem()
                self._running = job
            self._run(job)

    def _run(self, job: _Job) -> None:
        while not job.is_dropped:
            try:
                result, error = job.function(), None
            except Exception as raised:
                # An interrupt meant for the job before may hit this one.
                if type(raised).__name__ == "InterruptException" and not job.is_dropped:
                    continue
                result, error = None, raised
            try:
                self._finished.emit(job, result, error)
            except RuntimeError:
                # The window was taken down meanwhile: nobody waits any more.
                job.is_dropped = True
            return

    def _deliver(self, job: _Job, result: Any, error: Exception | None) -> None:
        if job.is_dropped:
            return
        self._waited_for.discard(job)
        if error is None:
            job.done(result)
        else:
            job.failed(error)
        if not self._waited_for:
            self.busyChanged.emit(False)
