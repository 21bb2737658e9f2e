"""Handling of signals that end the program, even during imports: one line of output and exit code 128 + signal number.

The signals are SIGINT (Ctrl-C, exit code 130), SIGTERM (143) and SIGHUP (the terminal was closed, 129). This module imports almost
no other module, so that signals are handled as soon as the program starts.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

from proteoscope.engine.end_signals import heeded_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "INTERRUPTED_TEXT",
    "cancel_on_interrupt",
    "end_on_interrupt",
    "give_back_interrupt",
    "interrupted_status",
]

_SIGNAL_STATUS = 128
INTERRUPTED_TEXT = "interrupted; finished results are untouched"

_received: int = signal.SIGINT


def interrupted_status() -> int:
    """Return the exit code after an interruption: 128 + the number of the last signal received."""
    return _SIGNAL_STATUS + _received


def end_on_interrupt() -> None:
    """Make SIGINT, SIGTERM and SIGHUP end the process immediately, until a search installs handlers that clean up.

    By default, Python raises an exception at any point of the program; during imports, this prints tracebacks or is lost.
    """
    for number in heeded_signals():
        signal.signal(number, _end)


def cancel_on_interrupt(cancel: Callable[[], None]) -> Any:
    """Make SIGINT, SIGTERM and SIGHUP call `cancel`; return the previous handlers, for `give_back_interrupt`."""

    def note(number: int, frame: FrameType | None) -> None:
        global _received
        _received = number
        cancel()

    return {number: signal.signal(number, note) for number in heeded_signals()}


def give_back_interrupt(previous: Any) -> None:
    """Restore the previous signal handlers; a handler that `end_on_interrupt` set is replaced by one that raises KeyboardInterrupt."""
    for number, handler in previous.items():
        if handler is not None:  # None: the handler was not installed by Python
            signal.signal(number, _raise if handler is _end else handler)


def _raise(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, f"proteoscope: {INTERRUPTED_TEXT}\n".encode())
    finally:
        os._exit(_SIGNAL_STATUS + number)
