"""Ctrl-C from the first moment on: one line and 130, whatever is being imported. It imports next to nothing itself."""

from __future__ import annotations

import os
import signal
from types import FrameType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["INTERRUPTED", "INTERRUPTED_TEXT", "cancel_on_interrupt", "end_on_interrupt", "give_back_interrupt"]

INTERRUPTED = 130
INTERRUPTED_TEXT = "interrupted; finished results are untouched"


def end_on_interrupt() -> None:
    """From now on, Ctrl-C ends the process; a search takes the signal over while it has something to leave in order.

    Python's own way, an exception in whatever runs, leads to a traceback out of an import, or is swallowed by who expects none. A shell
    script starts what is to go on behind it with the signal ignored: whoever sends it all the same means it.
    """
    signal.signal(signal.SIGINT, _end)


def cancel_on_interrupt(cancel: Callable[[], None]) -> Any:
    """From now on, Ctrl-C calls `cancel`; what `give_back_interrupt` takes."""
    return signal.signal(signal.SIGINT, lambda *_: cancel())


def give_back_interrupt(previous: Any) -> None:
    """Do with Ctrl-C what was done before; an exception instead of the end of all, since there may be a temporary file to take away."""
    signal.signal(signal.SIGINT, signal.default_int_handler if previous is _end else previous)


def _end(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, f"proteoscope: {INTERRUPTED_TEXT}\n".encode())
    finally:
        os._exit(INTERRUPTED)
