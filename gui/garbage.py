"""Python's cyclic garbage is collected in the window's thread, at moments of our choosing.

Left to itself, Python collects in whichever thread allocates, the background thread included. There it may destroy Qt's objects, which only
their own thread may do, and a full collection stops all threads for as long as it takes to look at every object: 60-140 ms while the
libraries of a search are imported, during which the window stands still.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

__all__ = ["GarbageCollector"]

_INTERVAL_MS = 250


class GarbageCollector(QObject):
    """Collects young garbage a few times a second, and all of it when it is due and `may_pause` says that nothing is under way."""

    def __init__(self, may_pause: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._may_pause = may_pause
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.collect_if_due)
        self._timer.start()
        gc.disable()

    def collect_if_due(self) -> None:
        """Collect what Python itself would have collected by now, except a full collection while something is under way."""
        counts, limits = gc.get_count(), gc.get_threshold()
        if counts[0] <= limits[0]:
            return
        generation = 1 if counts[1] > limits[1] else 0
        if counts[2] > limits[2] and self._may_pause():
            generation = 2
        gc.collect(generation)

    def stop(self) -> None:
        """Leave it to Python again."""
        self._timer.stop()
        gc.enable()
