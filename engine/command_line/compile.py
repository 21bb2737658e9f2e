"""``proteoscope compile``: the sub-command that compiles the kernels of all searches before one is run."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from proteoscope.engine import execution, searches
from proteoscope.engine.command_line.terminal import TerminalProgress, interruptible, say
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress

__all__ = ["add_compile"]

_EPILOG = """
What searches compute with is compiled for this machine's processor and GPUs when it is first used, up to a minute for each kind of search.
This does it at once, several at a time, and keeps it for all searches to come; what is compiled already is left as it is.
"""


def add_compile(commands: Any) -> None:
    """Add ``compile`` to the sub-commands, which are argparse's sub-parsers."""
    parser = commands.add_parser("compile", help="compile what searches compute with, ahead of the first search", epilog=_EPILOG)
    parser.add_argument("--processes", type=int, metavar="N", help="compile so many at a time (default: one for each core)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_compile)


def _compile(options: argparse.Namespace) -> None:
    if options.processes is not None and options.processes < 1:
        raise ParameterError(f"--processes {options.processes}: there must be at least 1")
    kernels = list(dict.fromkeys(load() for search in searches.SEARCHES for load in search.kernels))
    with TerminalProgress(None if options.quiet else sys.stderr) as terminal:
        progress = Progress(terminal.handle)
        with interruptible(progress):
            failures = execution.compilation.compile_ahead(kernels, progress, options.processes)
            failures += execution.compilation.compile_for_cards(progress, options.processes)
    for failure in failures:
        say(failure)
    if not options.quiet and not failures:
        say("What searches compute with is compiled.")
