"""Work that goes on behind the step that the user sees, on a thread of its own.

Reading spectra and making the peptide index need nothing of each other, nor do scoring and writing down the spectra that were read. All
the same, the user is told of one step after the other: of what goes on behind, and of its errors, when the step in front of it is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

from proteoscope.engine.jobs.progress import Progress

__all__ = ["Background"]

_LOOK_SECONDS = 0.05  # between two looks at a cancel by who waits

Result = TypeVar("Result")


class Background:
    """Does what is given to `begin` behind the block; with one thread only, not before it is asked for.

    The block ends when all of it has ended. When the block raises, what is still under way is told to stop, and its own error is not told:
    it would be of a later step.
    """

    def __init__(self, progress: Progress, threads: int) -> None:
        self._progress, self._is_deferred = progress, threads <= 1
        self._pool = ThreadPoolExecutor(thread_name_prefix="proteoscope-behind")
        self._hidden: list[_HiddenProgress] = []

    def begin(self, work: Callable[[Progress], Result]) -> Callable[[], Result]:
        """Begin `work`, which looks several times a second whether the progress that it is given was cancelled.

        Returns
        -------
        What waits for the outcome and returns it, or raises what the work raised. The user is told then what it reported.
        """
        if self._is_deferred:
            return lambda: work(self._progress)
        hidden = _HiddenProgress(self._progress)
        self._hidden.append(hidden)
        future = self._pool.submit(work, hidden)

        def outcome() -> Result:
            hidden.show()
            while not wait([future], timeout=_LOOK_SECONDS).done:
                self._progress.check()
            return future.result()

        return outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            for hidden in self._hidden:
                hidden.cancel()
        self._pool.shutdown()


class _HiddenProgress(Progress):
    """Keeps what it is told until it is shown on another progress. It is cancelled with the other, or alone."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._shown_on, self._is_shown, self._turn = progress, False, threading.Lock()
        self._kept: list[Callable[[Progress], None]] = []

    @property
    def is_cancelled(self) -> bool:
        """See `Progress.is_cancelled`."""
        return super().is_cancelled or self._shown_on.is_cancelled

    def check(self) -> None:
        """See `Progress.check`."""
        self._shown_on.check()
        super().check()

    def show(self) -> None:
        """Tell the other progress all that was kept, and from now on all at once."""
        with self._turn:
            self._is_shown = True
            for tell in self._kept:
                tell(self._shown_on)
            self._kept.clear()

    def _tell(self, tell: Callable[[Progress], None]) -> None:
        with self._turn:
            if self._is_shown:
                tell(self._shown_on)
            else:
                self._kept.append(tell)

    def stage(self, title: str, total: int = 0) -> None:
        """See `Progress.stage`."""
        self.check()
        self._tell(lambda progress: progress.stage(title, total))

    def advance(self, n: int = 1) -> None:
        """See `Progress.advance`."""
        self.check()
        self._tell(lambda progress: progress.advance(n))

    def message(self, text: str, level: str = "info") -> None:
        """See `Progress.message`."""
        self._tell(lambda progress: progress.message(text, level))
