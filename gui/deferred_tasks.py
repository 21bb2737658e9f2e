"""Deferred work, done in small steps so that the window remains responsive."""

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

from proteoscope.gui.actions import repeated

_PAUSE_MS = 5
"""Pause between two steps, in milliseconds. Without it, the timer would fire before user input is handled and before other timers."""


class DeferredTasks(QObject):
    """Queue of steps of work, which are called from the event loop in order, so that user input is handled between two steps.

    In each turn of the event loop, only one step of all queues is called.
    """

    _is_turn_over = True
    """False after a step of any queue until its events have been handled."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._left: deque[Callable[[], object]] = deque()
        self._timer = repeated(self, self._take_turn, _PAUSE_MS)

    @property
    def is_busy(self) -> bool:
        """True if steps are pending."""
        return bool(self._left)

    def add(self, *steps: Callable[[], object]) -> None:
        """Append steps to those that are pending."""
        self._left.extend(steps)
        # Starting a running timer again would delay the next step.
        if self._left and not self._timer.isActive():
            self._timer.start()

    def finish(self) -> None:
        """Run all pending steps now."""
        while self._left:
            self._do_next()

    def drop(self) -> None:
        """Discard all pending steps."""
        self._left.clear()
        self._timer.stop()

    def _take_turn(self) -> None:
        if DeferredTasks._is_turn_over:
            DeferredTasks._is_turn_over = False
            QTimer.singleShot(0, _end_turn)
            self._do_next()

    def _do_next(self) -> None:
        step = self._left.popleft()
        if not self._left:
            self._timer.stop()
        step()


def _end_turn() -> None:
    DeferredTasks._is_turn_over = True
