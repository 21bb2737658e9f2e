"""Input from a file, or from standard input for ``-``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.files import scratch_folder, storage_errors

__all__ = ["STANDARD_INPUT", "listed", "read_standard_input"]

STANDARD_INPUT = "-"
_NAME = "stdin"
"""Name of the file in results, as the name of a spectrum file."""


@contextmanager
def read_standard_input(options: argparse.Namespace, *names: str) -> Iterator[argparse.Namespace]:
    """Yield the options with ``-`` replaced by a file with the content of standard input, which is removed after the block.

    Parameters
    ----------
    options
        Options of the command, which remain unchanged.
    names
        Names of the options that are files to read, or lists of them.

    Raises
    ------
    ParameterError
        If standard input is requested twice, or does not exist.
    InputError
        If the block cannot use its content.
    StorageError
        If the copy cannot be written.
    """
    given = [path for name in names for path in listed(getattr(options, name, None))]
    if STANDARD_INPUT not in given:
        yield options
        return
    if given.count(STANDARD_INPUT) > 1:
        raise ParameterError("standard input can be read only once; give - for one file and names for the others")
    with ExitStack() as stack:
        copy = str(_copy(stack.enter_context(scratch_folder())))
        replaced = argparse.Namespace(**vars(options))
        for name in names:
            value = getattr(options, name, None)
            if STANDARD_INPUT in listed(value):
                setattr(replaced, name, [copy if path == STANDARD_INPUT else path for path in value] if isinstance(value, list) else copy)
        try:
            yield replaced
        except InputError as error:
            if error.path != copy:
                raise
            raise InputError("standard input", error.reason, place=error.place, remedy=error.remedy) from error


def listed(value: Any) -> list[Any]:
    """Return the value of an option that may be given several times as a list."""
    return value if isinstance(value, list) else [value]


def _copy(folder: Path) -> Path:
    """Copy standard input to a file, since files are read more than once."""
    if sys.stdin is None:
        raise ParameterError("there is no standard input to read; give the name of a file")
    path = folder / _NAME
    with storage_errors(path), path.open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
