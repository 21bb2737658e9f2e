"""Processes that run this program, and what they print."""

from __future__ import annotations

import sys
from typing import IO

__all__ = ["own_program", "printed_lines"]


def own_program(statements: str) -> list[str]:
    """Return the command that runs statements in a process with the interpreter and the modules of this one.

    Parameters
    ----------
    statements : str
        Python, separated by ``;``. The path of this process applies, so that the same program runs, whatever the working directory holds.
    """
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {statements}"]


def printed_lines(file: IO[bytes]) -> list[str]:
    """Return the lines that a process has written to a file so far, without blank ones at both ends."""
    file.seek(0)
    return file.read().decode(errors="replace").strip().splitlines()
