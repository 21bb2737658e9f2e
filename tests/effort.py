"""Measures of work as counts, not times, which do not depend on the load of the machine.

`benchmarks/moments.py` measures seconds.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from proteoscope.engine.jobs.progress import Progress

__all__ = ["CallCount", "CancelCheckProgress", "lines_run"]


class CallCount:
    """Counts function calls of this thread in its `with` block, including calls from C++ into Python and from Python into C++."""

    def __init__(self) -> None:
        self.n = 0

    def _count(self, frame: FrameType, event: str, _: object) -> None:
        self.n += event in ("call", "c_call")

    def __enter__(self) -> CallCount:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


class CancelCheckProgress(Progress):
    """Progress that counts checks for a cancel request, and is cancelled at check number `cancel_at` (from 1).

    After the cancel, the work must not check again; work in several threads may check once more in each thread.
    """

    def __init__(self, cancel_at: int = 0, **options: Any) -> None:
        super().__init__(**options)
        self.n_checks, self._cancel_at, self._one_by_one = 0, cancel_at, threading.Lock()

    @property
    def n_checks_after_cancel(self) -> int:
        """Number of checks after the cancel."""
        return self.n_checks - self._cancel_at

    def check(self) -> None:
        """Check for a cancel as `Progress.check` does; `stage` and `advance` call this too."""
        with self._one_by_one:
            self.n_checks += 1
            if self.n_checks == self._cancel_at:
                self.cancel()
        super().check()


def lines_run(work: Callable[[], object]) -> int:
    """Count the lines of Python that run in this thread, in each iteration of a loop."""
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
