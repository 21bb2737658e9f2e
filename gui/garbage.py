"""Collection of Python's cyclic garbage in the window's thread, at times when it does not disturb the user.

By default, Python collects in whichever thread allocates memory, including background threads. Such a thread may then destroy Qt objects,
which only their own thread may do. A full collection also stops all threads while it inspects every object: it blocks the window for
60-140 ms while the libraries of a search are imported. A collection of the middle generation (1 of 0, 1, 2) can take as long,
because imports move hundreds of thousands of objects into it before its collection is due; this generation is therefore collected earlier.
"""

import gc
from collections.abc import Callable

from PySide6.QtCore import QObject

from proteoscope.gui.actions import repeated

_INTERVAL_MS = 250
_MOST_YOUNG = 60_000
"""Number of objects in the second generation at which it is collected early; inspecting that many takes about 15 ms."""


class GarbageCollector(QObject):
    """Collector of garbage: a few times a second, it collects new objects; a full collection waits until `may_pause` returns True."""

    def __init__(self, may_pause: Callable[[], bool], parent: QObject) -> None:
        super().__init__(parent)
        self._may_pause = may_pause
        self._n_young = 0
        """Upper bound on the number of objects in the second generation."""
        self._n_early = 0
        """Number of early collections of the second generation since the last full collection; they do not count towards the next one."""
        self._timer = repeated(self, self.collect_if_due, _INTERVAL_MS)
        self._timer.start()
        gc.disable()

    def collect_if_due(self) -> None:
        """Collect the generations that Python would have collected by now; a full collection waits until `may_pause` returns True."""
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
        """Stop collecting, and enable Python's automatic garbage collection again."""
        self._timer.stop()
        gc.enable()
