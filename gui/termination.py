"""The end of the program from outside: what is remembered is written before a signal ends it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

from PySide6.QtCore import QObject, QSocketNotifier

from proteoscope.engine.end_signals import END_SIGNALS, heeded_signals

__all__ = ["Termination"]


class Termination(QObject):
    """Does what is left to do when a signal is to end the program, then lets it be ended by that signal, as its parent expects.

    Python obeys a signal between two of its own instructions, of which there are none while Qt waits for events: so the signal is an event.

    Parameters
    ----------
    before : called in the window's thread, in a turn of the event loop of its own.
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
        """Leave signals to Python, where the window has ended by itself and `before` is done."""
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
        # Who asks twice does not want to wait.
        for number in END_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        try:
            self._before()
        finally:
            os.kill(os.getpid(), self._number)
