"""Handling of termination signals such as SIGTERM: the window state is saved before the process ends."""

import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier

from proteoscope.engine.end_signals import END_SIGNALS, heeded_signals


class Termination(QObject):
    """Handler that calls a function when the process receives a termination signal, then ends the process by this signal.

    The parent process thus sees the signal as the exit reason. Python runs signal handlers only between two Python instructions, and
    executes none while Qt waits for events. Python's wake-up socket (`signal.set_wakeup_fd`) therefore turns the signal into a Qt event.

    Parameters
    ----------
    before : callable
        Function that is called before the process ends, in the window's thread, from the event loop.
    parent : QObject
        Owner of this object.
    """

    def __init__(self, before: Callable[[], None], parent: QObject) -> None:
        super().__init__(parent)
        self._before = before
        self._number: int | None = None
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.setblocking(False)
        signal.set_wakeup_fd(self._writing.fileno(), warn_on_full_buffer=False)
        self._notifier = QSocketNotifier(self._reading.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._end)
        for number in heeded_signals():
            signal.signal(number, self._note)

    def close(self) -> None:
        """Restore the default signal handlers; called after the window has closed normally."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(-1)
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        self._reading.close()
        self._writing.close()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._number = number

    def _end(self) -> None:
        self._reading.recv(4096)
        if self._number is None:
            return
        # A second signal ends the process immediately.
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        try:
            self._before()
        finally:
            os.kill(os.getpid(), self._number)
