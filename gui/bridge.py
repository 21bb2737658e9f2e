"""Bridge from job events in the engine's threads to Qt signals."""

import threading

from PySide6.QtCore import QObject, Qt, Signal

from proteoscope.engine.jobs import Job, JobEvent, ProgressEvent
from proteoscope.gui.actions import delayed

_INTERVAL_MS = 70
_MAXIMUM_MESSAGES = 200


class JobBridge(QObject):
    """Bridge whose `handle` receives job events in any thread, and which emits them as Qt signals in the window's thread.

    Events are delivered in batches, at most 14 times a second. A batch contains only the latest progress of each job and the last 200
    messages; all other events are delivered in order.
    """

    added = Signal(Job)
    started = Signal(Job)
    progressed = Signal(Job, ProgressEvent)
    message = Signal(Job, str)
    finished = Signal(Job)
    _arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = threading.Lock()
        self._pending: list[JobEvent] = []
        self._is_awake = False
        self._is_open = True
        self._timer = delayed(self, self.deliver, _INTERVAL_MS)
        self._arrived.connect(self._timer.start, Qt.ConnectionType.QueuedConnection)

    def handle(self, event: JobEvent) -> None:
        """Queue an event and return immediately. May be called in any thread."""
        with self._lock:
            if not self._is_open:
                return
            if event.kind == "progress":
                self._pending = [pending for pending in self._pending if pending.kind != "progress" or pending.job is not event.job]
            elif event.kind == "message":
                messages = [i for i, pending in enumerate(self._pending) if pending.kind == "message"]
                if len(messages) >= _MAXIMUM_MESSAGES:
                    del self._pending[messages[0]]
            self._pending.append(event)
            if not self._is_awake:
                self._is_awake = True
                self._arrived.emit()

    def deliver(self) -> None:
        """Emit the pending events. Must be called in the window's thread."""
        with self._lock:
            events, self._pending = self._pending, []
            self._is_awake = False
        for event in events:
            if event.kind == "progress":
                self.progressed.emit(event.job, event.progress)
            elif event.kind == "message" and event.progress is not None:
                self.message.emit(event.job, event.progress.message)
            elif event.kind == "added":
                self.added.emit(event.job)
            elif event.kind == "started":
                self.started.emit(event.job)
            else:
                self.finished.emit(event.job)

    def close(self) -> None:
        """Ignore further events because the window is closing."""
        with self._lock:
            self._is_open = False
            self._pending.clear()
        self._timer.stop()
