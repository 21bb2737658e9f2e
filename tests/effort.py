"""The cost of work as counts, not times, so that other load on the machine changes nothing.

`benchmarks/moments.py` measures the seconds.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from proteoscope.engine.jobs.progress import Progress

__all__ = ["CallCount", "LookingProgress", "lines_run"]


class CallCount:
    """Counts the calls of functions in this thread in its `with` block, also those from C++ into Python and from Python into C++."""

    def __init__(self) -> None:
        self.n = 0

    def _count(self, frame: FrameType, event: str, _: object) -> None:
        self.n += event in ("call", "c_call")

    def __enter__(self) -> CallCount:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


class LookingProgress(Progress):
    """Counts the checks for a cancel request; at check number `cancel_at`, from 1, the user cancels.

    The work then checks no more; work in several threads checks once more in each at most.
    """

    def __init__(self, cancel_at: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.n_looks, self._cancel_at, self._one_by_one = 0, cancel_at, threading.Lock()

    @property
    def n_looks_after(self) -> int:
        """Number of checks after the user cancelled."""
        return self.n_looks - self._cancel_at

    def check(self) -> None:
        """Check for a cancel as `Progress.check` does; `stage` and `advance` call this too."""
        with self._one_by_one:
            self.n_looks += 1
            if self.n_looks == self._cancel_at:
                self.cancel()
        super().check()


def lines_run(work: Callable[[], object]) -> int:
    """Count the lines of Python that run in this thread, each pass of a loop included."""
    n = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal n
        n += event == "line"
        return trace

    before, was_collecting = sys.gettrace(), gc.isenabled()
    gc.collect()
    gc.disable()  # garbage collection callbacks of any library do not belong to this work
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
        if was_collecting:
            gc.enable()
    return n
