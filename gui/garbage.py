"""Python's cyclic garbage is collected in the window's thread, at moments of our choosing.

Left to itself, Python collects in whichever thread allocates, the background thread included. There it may destroy Qt's objects, which only
their own thread may do, and a full collection stops all threads for as long as it takes to look at every object: 60-140 ms while the
libraries of a search are imported, during which the window stands still. So may a collection of the young: while modules are imported,
hundreds of thousands of objects have outlived one when the next generation is due.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

__all__ = ["GarbageCollector"]

_INTERVAL_MS = 250
_MOST_YOUNG = 60_000
"""Objects that the second generation may hold: to look at them takes some 15 ms."""


class GarbageCollector(QObject):
    """Collects young garbage a few times a second, and all of it when it is due and `may_pause` says that nothing is under way."""

    def __init__(self, may_pause: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._may_pause = may_pause
        self._n_young = 0
        """How many objects the second generation holds at most."""
        self._n_early = 0
        """How often the second generation was collected early since the last full collection, by which none comes nearer."""
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
        self._n_young += counts[0]
        is_due, is_large = counts[1] > limits[1], self._n_young > _MOST_YOUNG
        generation = 1 if is_due or is_large else 0
        if counts[2] - self._n_early > limits[2] and self._may_pause():
            generation = 2
        if generation:
            self._n_young = 0
            self._n_early = 0 if generation == 2 else self._n_early + (not is_due)
        gc.collect(generation)

    def stop(self) -> None:
        """Leave it to Python again."""
        self._timer.stop()
        gc.enable()
