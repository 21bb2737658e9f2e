"""Command lines of child processes that run this program, and their output."""

import sys
from typing import IO

__all__ = ["own_program", "printed_lines"]


def own_program(statements: str) -> list[str]:
    """Return the command line that runs Python statements with the interpreter and module path of this process.

    Parameters
    ----------
    statements : str
        Python statements separated by ``;``. They import the modules of this process whatever the working directory contains.
    """
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {statements}"]


def printed_lines(file: IO[bytes]) -> list[str]:
    """Return the lines that a process has written to a file so far, without blank lines at the start and the end."""
    file.seek(0)
    return file.read().decode(errors="replace").strip().splitlines()
