"""Background tasks in threads, while the user sees the progress of the main step.

For example, reading spectra and building the peptide index are independent, and so are scoring and storing spectra. The user still sees one
step after the other: reports and errors of a background task appear when its result is requested.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self, TypeVar

from proteoscope.engine.jobs.progress import Progress

__all__ = ["Background"]

_CHECK_SECONDS = 0.05  # seconds between two checks for cancellation while waiting

Result = TypeVar("Result")


class Background:
    """Background tasks. The end of the `with` block waits for all tasks.

    With only one thread, a task runs when its result is requested. If the block raises, running tasks are cancelled and the errors of
    tasks are dropped, since these tasks belong to later steps.
    """

    def __init__(self, progress: Progress, threads: int) -> None:
        self._progress, self._is_deferred = progress, threads <= 1
        self._pool = ThreadPoolExecutor(thread_name_prefix="proteoscope-background")
        self._hidden: list[_HiddenProgress] = []

    def begin(self, work: Callable[[Progress], Result]) -> Callable[[], Result]:
        """Start `work`, a function that checks its progress for cancellation several times a second.

        Returns
        -------
        callable
            Function that waits for the task, shows its reports, and returns its result or raises its error.
        """
        if self._is_deferred:
            return lambda: work(self._progress)
        hidden = _HiddenProgress(self._progress)
        self._hidden.append(hidden)
        future = self._pool.submit(work, hidden)

        def outcome() -> Result:
            hidden.show()
            while not wait([future], timeout=_CHECK_SECONDS).done:
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
    """Progress that stores its reports until `show` is called, which shows them on the main progress.

    It is cancelled if it is cancelled itself or if the main progress is cancelled.
    """

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._shown_on, self._is_shown, self._turn = progress, False, threading.Lock()
        self._reports: list[Callable[[Progress], None]] = []

    @property
    def is_cancelled(self) -> bool:
        """True if this progress or the main progress was cancelled."""
        return super().is_cancelled or self._shown_on.is_cancelled

    def check(self) -> None:
        """Raise `Cancelled` if this progress or the main progress was cancelled."""
        self._shown_on.check()
        super().check()

    def show(self) -> None:
        """Show all stored reports on the main progress; later reports are then shown there immediately."""
        with self._turn:
            self._is_shown = True
            for report in self._reports:
                report(self._shown_on)
            self._reports.clear()

    def _report(self, report: Callable[[Progress], None]) -> None:
        with self._turn:
            if self._is_shown:
                report(self._shown_on)
            else:
                self._reports.append(report)

    def stage(self, title: str, total: int = 0) -> None:
        """Begin a stage of `total` steps, 0 if the number is unknown; store or show the report."""
        self.check()
        self._report(lambda progress: progress.stage(title, total))

    def advance(self, n: int = 1) -> None:
        """Report `n` more steps as done; store or show the report."""
        self.check()
        self._report(lambda progress: progress.advance(n))

    def message(self, text: str, level: str = "info") -> None:
        """Report a message; store or show it."""
        self._report(lambda progress: progress.message(text, level))
