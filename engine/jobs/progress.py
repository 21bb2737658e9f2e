"""Progress and cancellation of long computations, thread-safe and without Qt."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["PASSING", "Cancelled", "LimitedProgress", "Progress", "ProgressEvent", "RecordingProgress", "TimeOverError"]

PASSING = "passing"
"""Level of messages that are shown but not recorded, since they soon lose their meaning."""


class Cancelled(Exception):  # noqa: N818 - a request of the user, not an error
    """The user cancelled. Code that catches this exception removes incomplete output and raises it again."""


class TimeOverError(Cancelled):
    """The time limit of a `LimitedProgress` is exceeded."""


@dataclass(frozen=True)
class ProgressEvent:
    """Report of a progress: title of the stage, `done` of `total` steps, seconds since the stage began, and a message, or ''.

    `total` is 0 if the number of steps is unknown.
    """

    stage: str
    done: int
    total: int
    seconds: float
    message: str = ""

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds to the end of the stage, or None if unknown."""
        if self.done <= 0 or self.total <= 0:
            return None
        return self.seconds * (self.total - self.done) / self.done


class Progress:
    """Progress reports and cancellation of an engine function.

    `stage` and `advance` raise `Cancelled` after `cancel`. Event handlers run in the reporting thread. They receive the first and last
    events of a stage, at most one event per `interval` seconds between these, and every message.
    """

    def __init__(self, *handlers: Callable[[ProgressEvent], None], interval: float = 0.08) -> None:
        self._handlers = list(handlers)
        self._interval = interval
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._stage, self._done, self._total = "", 0, 0
        self._began = self._reported = time.monotonic()

    @property
    def is_cancelled(self) -> bool:
        """True if the user cancelled."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Cancel the computation at its next `stage`, `advance` or `check`."""
        self._cancelled.set()

    def check(self) -> None:
        """Raise `Cancelled` if the user cancelled."""
        if self._cancelled.is_set():
            raise Cancelled

    def stage(self, title: str, total: int = 0) -> None:
        """Begin a stage of `total` steps, 0 if the number is unknown."""
        self.check()
        with self._lock:
            self._stage, self._done, self._total = title, 0, total
            self._began = self._reported = time.monotonic()
            event = self._event()
        self._emit(event)

    def advance(self, n: int = 1) -> None:
        """Report `n` more steps as done."""
        self.check()
        with self._lock:
            self._done += n
            now = time.monotonic()
            finished = self._total > 0 and self._done >= self._total
            if not finished and now - self._reported < self._interval:
                return
            self._reported = now
            event = self._event()
        self._emit(event)

    def message(self, text: str, level: str = "info") -> None:
        """Report an event other than steps, such as a fallback, skipped spectra or a first compilation.

        Parameters
        ----------
        level
            ``info`` or ``warning`` for messages that a run records; ``passing`` for messages that are only shown.
        """
        with self._lock:
            event = self._event(text)
        self._emit(event)

    def _event(self, message: str = "") -> ProgressEvent:
        return ProgressEvent(self._stage, self._done, self._total, time.monotonic() - self._began, message)

    def _emit(self, event: ProgressEvent) -> None:
        for handler in self._handlers:
            handler(event)


class RecordingProgress(Progress):
    """Progress that forwards all reports to another progress and records the messages for a run.

    Messages are recorded from any thread, including those reported before the run was created.
    """

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._recorded: list[tuple[str, str]] = []
        self._log: Callable[[str, str], None] | None = None

    @property
    def messages(self) -> tuple[str, ...]:
        """All messages so far."""
        return tuple(text for _, text in self._recorded)

    def log_to(self, log: Callable[[str, str], None]) -> None:
        """Pass each message and its level to `log`, beginning with the messages recorded so far."""
        for level, text in self._recorded:
            log(level, text)
        self._log = log

    @property
    def is_cancelled(self) -> bool:
        """True if the user cancelled."""
        return self._progress.is_cancelled

    def cancel(self) -> None:
        """Cancel the wrapped computation at its next `stage`, `advance` or `check`."""
        self._progress.cancel()

    def check(self) -> None:
        """Raise `Cancelled` if the user cancelled."""
        self._progress.check()

    def stage(self, title: str, total: int = 0) -> None:
        """Begin a stage of `total` steps, 0 if the number is unknown."""
        self._progress.stage(title, total)

    def advance(self, n: int = 1) -> None:
        """Report `n` more steps as done."""
        self._progress.advance(n)

    def message(self, text: str, level: str = "info") -> None:
        """Record a message, unless it matters only while the run lasts, and forward it; see `Progress.message`."""
        if level != PASSING:
            self._recorded.append((level, text))
            if self._log is not None:
                self._log(level, text)
        self._progress.message(text, level)


class LimitedProgress(Progress):
    """Progress of optional work, which stops after a time limit or when the wrapped progress is cancelled.

    Stages are forwarded to the wrapped progress, messages are dropped.

    Parameters
    ----------
    progress : Progress
        Progress of the whole computation.
    seconds : float or None
        Time limit in seconds; None for no limit.
    now : callable
        Clock that returns seconds.
    """

    def __init__(self, progress: Progress, seconds: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._progress, self._now = progress, now
        self._deadline = math.inf if seconds is None else now() + seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; infinite without a limit."""
        return self._deadline - self._now()

    @property
    def is_cancelled(self) -> bool:
        """True if the user cancelled, or if the time is over."""
        return super().is_cancelled or self._progress.is_cancelled or self.seconds_left <= 0.0

    def check(self) -> None:
        """Raise `Cancelled` if the user cancelled, or `TimeOverError` if the time is over."""
        self._progress.check()
        super().check()
        if self.seconds_left <= 0.0:
            raise TimeOverError

    def stage(self, title: str, total: int = 0) -> None:
        """Begin a stage of `total` steps, 0 if the number is unknown."""
        self.check()
        self._progress.stage(title, total)

    def advance(self, n: int = 1) -> None:
        """Report `n` more steps as done."""
        self.check()
        self._progress.advance(n)

    def message(self, text: str, level: str = "info") -> None:
        """Drop the message."""
