"""``proteoscope compile``: the sub-command that compiles the kernels of all searches before one is run."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from proteoscope import kernels
from proteoscope.engine import execution
from proteoscope.engine.command_line.terminal import TerminalProgress, interruptible, say
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.jobs.progress import Progress

__all__ = ["add_compile"]

_EPILOG = """
The first search of each kind compiles what it computes with for this machine's processor and GPUs, which takes up to a minute.
This compiles for all searches, in several processes. What is compiled already is left as it is.
"""


def add_compile(commands: Any) -> None:
    """Add ``compile`` to the sub-commands, which are argparse's sub-parsers."""
    parser = commands.add_parser("compile", help="compile what searches compute with, ahead of the first search", epilog=_EPILOG)
    parser.add_argument("--processes", type=int, metavar="N", help="processes that compile, at most eight (default: one for each core)")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(command=_compile)


def _compile(options: argparse.Namespace) -> None:
    if options.processes is not None and options.processes < 1:
        raise ParameterError(f"--processes {options.processes}: there must be at least 1")
    groups = kernels.cpu.signatures.kernel_groups()
    with TerminalProgress(None if options.quiet else sys.stderr) as terminal:
        progress = Progress(terminal.handle)
        with interruptible(progress):
            failures = execution.precompile.compile_kernels(groups, progress, options.processes)
            failures += execution.precompile.compile_for_gpus(progress, options.processes)
    for failure in failures:
        say(failure)
    if not options.quiet and not failures:
        say("What searches compute with is compiled.")
