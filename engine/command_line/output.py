"""Output of results to a file, or to standard output if the name is ``-``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.files import open_regular, scratch_folder

__all__ = ["STANDARD_OUTPUT", "check_printed", "output_file", "output_files", "output_name"]

STANDARD_OUTPUT = "-"
_ITS_OTHER_NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def output_name(text: str) -> str:
    """Return an output name of the command line; ``-`` for any path of standard output, since a new file must not replace that path."""
    return STANDARD_OUTPUT if text in _ITS_OTHER_NAMES else text


def check_printed(options: argparse.Namespace) -> None:
    """Check the options of a command whose results go to standard output.

    Raises
    ------
    ParameterError
        If the format is missing, or other output is requested there.
    """
    if getattr(options, "format", True) in ("", None):
        raise ParameterError("standard output has no ending that names a format; give --format too")
    if options.json:
        raise ParameterError("standard output takes only the results; leave out --json with --out -")


@contextmanager
def output_files(options: argparse.Namespace, written: Mapping[str, str]) -> Iterator[argparse.Namespace]:
    """Yield the options with the files to write, `written` by option, replaced by their paths; see `output_file`."""
    with ExitStack() as stack:
        yield argparse.Namespace(**{**vars(options), **{name: stack.enter_context(output_file(path)) for name, path in written.items()}})


@contextmanager
def output_file(requested: str) -> Iterator[Path]:
    """Yield the path to write; for ``-``, a temporary file that is copied to standard output if the `with` block succeeds.

    Raises
    ------
    ParameterError
        If there is no standard output.
    """
    if requested != STANDARD_OUTPUT:
        yield Path(requested)
        return
    if sys.stdout is None:
        raise ParameterError("there is no standard output to write to; give --out a file")
    with scratch_folder() as folder:
        path = folder / "output"
        yield path
        if not path.exists():  # nothing was written, which the command has reported
            return
        with open_regular(path) as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
