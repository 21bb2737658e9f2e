"""Progress at a terminal: one line that is drawn over, with a bar and the time left; plain lines where the output is no terminal."""

from __future__ import annotations

import shutil
import threading
from typing import TextIO

from engine.jobs.progress import ProgressEvent

__all__ = ["TerminalProgress"]

_BAR = 24


class TerminalProgress:
    """Shows the events of a `Progress` on a stream; with None for a stream it shows nothing."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._is_terminal = stream is not None and stream.isatty()
        self._stage = ""
        self._drawn = False
        self._lock = threading.Lock()

    def __enter__(self) -> TerminalProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def handle(self, event: ProgressEvent) -> None:
        """Show one event."""
        if self._stream is None:
            return
        with self._lock:
            if event.message:
                self._clear()
                print(event.message, file=self._stream, flush=True)
            elif self._is_terminal:
                self._draw(event)
            elif event.stage != self._stage:
                print(event.stage, file=self._stream, flush=True)
            self._stage = event.stage

    def _draw(self, event: ProgressEvent) -> None:
        assert self._stream is not None
        text = event.stage
        if event.total:
            share = min(1.0, event.done / event.total)
            text = f"{event.stage:<28} [{'#' * round(share * _BAR):<{_BAR}}] {share * 100:3.0f} %"
            left = event.seconds_left
            if left is not None and left >= 1 and share < 1:
                text += f"  {left:.0f} s left"
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{text[:width]:<{width}}", end="", file=self._stream, flush=True)
        self._drawn = True

    def _clear(self) -> None:
        if self._stream is not None and self._drawn:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{'':<{width}}\r", end="", file=self._stream, flush=True)
            self._drawn = False
