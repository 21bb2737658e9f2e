"""What work costs, counted and not timed: a machine that has other things to do changes nothing of it.

How many seconds the same takes is measured by `benchmarks/moments.py`.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from proteoscope.engine.jobs.progress import Progress

__all__ = ["LookingProgress", "lines_run"]


class LookingProgress(Progress):
    """Counts how often it is asked whether the user wants to stop; at the look `cancel_at`, from 1, the user does.

    Who is told then asks no more. Work that several threads do is asked once more by each at most.
    """

    def __init__(self, cancel_at: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.n_looks, self._cancel_at, self._one_by_one = 0, cancel_at, threading.Lock()

    @property
    def n_looks_after(self) -> int:
        """Looks after the one at which the user wanted to stop."""
        return self.n_looks - self._cancel_at

    def check(self) -> None:
        """See `Progress.check`; `stage` and `advance` come by here too."""
        with self._one_by_one:
            self.n_looks += 1
            if self.n_looks == self._cancel_at:
                self.cancel()
        super().check()


def lines_run(work: Callable[[], object]) -> int:
    """Lines of Python that some work goes through in this thread: each time that a loop comes by counts."""
    n = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal n
        n += event == "line"
        return trace

    before, was_collecting = sys.gettrace(), gc.isenabled()
    gc.collect()
    gc.disable()  # what is told of a collection, by whichever library, is not of this work
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if was_collecting:
            gc.enable()
    return n
