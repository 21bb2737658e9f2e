"""Where a command writes its result: a file, or standard output for ``-``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import ParameterError

__all__ = ["STANDARD_OUTPUT", "output_file"]

STANDARD_OUTPUT = "-"


@contextmanager
def output_file(wish: str) -> Iterator[Path]:
    """The file to write; for ``-`` a temporary one, which goes to standard output when the block ends well.

    Raises
    ------
    ParameterError : there is no standard output.
    """
    if wish != STANDARD_OUTPUT:
        yield Path(wish)
        return
    if sys.stdout is None:
        raise ParameterError("there is no standard output to write to; give --out a file")
    with tempfile.TemporaryDirectory(prefix="proteoscope-") as folder:
        path = Path(folder, "output")
        yield path
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
