"""What is left to do is done a piece at a time, so that the window never stands still for as long as all of it takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

__all__ = ["Turns"]

_PAUSE_MS = 5
"""Between two pieces. With none, a timer goes off twice before what the user does, and before others that are due."""


class Turns(QObject):
    """Does pieces of work one after the other, each in a turn of the event loop of its own: what the user does comes between them."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._left: deque[Callable[[], object]] = deque()
        self._timer = QTimer(self)
        self._timer.setInterval(_PAUSE_MS)
        self._timer.timeout.connect(self._do_next)

    @property
    def is_busy(self) -> bool:
        """Whether something is left to do."""
        return bool(self._left)

    def add(self, *pieces: Callable[[], object]) -> None:
        """Do these too, after what is left already."""
        self._left.extend(pieces)
        if self._left:
            self._timer.start()

    def finish(self) -> None:
        """Do now what is left."""
        while self._left:
            self._do_next()

    def drop(self) -> None:
        """Do nothing more of what is left."""
        self._left.clear()
        self._timer.stop()

    def _do_next(self) -> None:
        piece = self._left.popleft()
        if not self._left:
            self._timer.stop()
        piece()
