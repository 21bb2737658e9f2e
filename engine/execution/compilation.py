"""The first use of the processor's kernels on a machine compiles them: a step of its own, announced, that a user may leave at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from engine.jobs.progress import Progress

__all__ = ["Kernels", "is_compiling"]

_THREAD = "proteoscope-compiler"


@dataclass(frozen=True)
class Kernels:
    """Kernels that a search uses together, and that are compiled together: only what is compiled together is inlined.

    Attributes
    ----------
    what : they are, for the user. last : loads the one of them that is compiled last.
    use : calls all of them, with the types of a real search. takes : how long, in words.
    """

    what: str
    last: Callable[[], Any]
    use: Callable[[], None]
    takes: str = "10 to 20 seconds"

    @property
    def are_compiled(self) -> bool:
        """Whether `compile` has nothing to do."""
        from kernels.cpu.compilation import is_compiled

        return is_compiled(self.last())

    def compile(self, progress: Progress) -> None:
        """Compile them, unless this machine did it before: some seconds, kept on disk.

        Raises
        ------
        Cancelled : the user asked to stop; the compiler ends with the program, for it cannot be interrupted.
        """
        from kernels.cpu.caching import why_not_kept
        from kernels.cpu.compilation import mark_compiled

        if self.are_compiled:
            return
        progress.stage("Compiling for this processor")
        progress.message(f"Compiling the {self.what} for this processor; this happens once and takes {self.takes}")
        failures: list[Exception] = []

        def work() -> None:
            try:
                self.use()
                with suppress(OSError):  # a cache that others keep is not ours to mark
                    mark_compiled(self.last())
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=work, name=_THREAD, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.05)
            progress.check()
        if failures:
            raise failures[0]
        if reason := why_not_kept():
            progress.message(f"What was compiled may have to be compiled again: {reason}", "warning")


def is_compiling() -> bool:
    """Whether a compiler is still at work, whoever waited for it."""
    return any(thread.name == _THREAD for thread in threading.enumerate())
