"""Signals that end the program, from the first moment on: one line and 128 + the signal's number, whatever is being imported.

These are Ctrl-C (SIGINT, 130), SIGTERM (143) and, when the terminal is closed, SIGHUP (129). It imports next to nothing itself.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

from proteoscope.engine.end_signals import END_SIGNALS, heeded_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = [
    "INTERRUPTED",
    "INTERRUPTED_TEXT",
    "cancel_on_interrupt",
    "end_on_interrupt",
    "give_back_interrupt",
    "interrupted_status",
    "is_interrupted_status",
]

_OF_A_SIGNAL = 128
INTERRUPTED = _OF_A_SIGNAL + signal.SIGINT
INTERRUPTED_TEXT = "interrupted; finished results are untouched"

_received: int = signal.SIGINT


def interrupted_status() -> int:
    """Return the exit code of a program that a signal interrupted: 128 + the number of the last one."""
    return _OF_A_SIGNAL + _received


def is_interrupted_status(status: int) -> bool:
    """Return True if `status` is the exit code of an interrupted program."""
    return status - _OF_A_SIGNAL in END_SIGNALS


def end_on_interrupt() -> None:
    """Let these signals end the process until a search handles them to clean up.

    Python's default, an exception anywhere, gives tracebacks from imports or is swallowed.
    """
    for number in heeded_signals():
        signal.signal(number, _end)


def cancel_on_interrupt(cancel: Callable[[], None]) -> Any:
    """Let these signals call `cancel`; return the argument of `give_back_interrupt`."""

    def note(number: int, frame: FrameType | None) -> None:
        global _received
        _received = number
        cancel()

    return {number: signal.signal(number, note) for number in heeded_signals()}


def give_back_interrupt(previous: Any) -> None:
    """Restore the signal handlers, with an exception instead of ending the process, since temporary files may need removal."""
    for number, handler in previous.items():
        if handler is not None:  # set by something else than Python
            signal.signal(number, _raise if handler is _end else handler)


def _raise(number: int, frame: FrameType | None) -> None:
    global _received
    _received = number
    raise KeyboardInterrupt


def _end(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, f"proteoscope: {INTERRUPTED_TEXT}\n".encode())
    finally:
        os._exit(_OF_A_SIGNAL + number)
