"""What the bundle starts: the program, or a piece of it in a process of its own.

A bundle has no ``python`` beside it, so that `sys.executable` is the program itself. Where the program starts a process of its own with
``-P -c PROGRAM`` or with one of its files, as it does with Python, this runs that.
"""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path


def main() -> int:
    """Start what the arguments say; the exit status."""
    multiprocessing.freeze_support()
    arguments = sys.argv[1:]
    if arguments[:2] == ["-P", "-c"] and len(arguments) > 2:
        sys.argv[:] = ["-c", *arguments[3:]]
        exec(compile(arguments[2], "<program>", "exec"), {"__name__": "__main__"})
        return 0
    own = Path(sys._MEIPASS).resolve()  # type: ignore[attr-defined]
    if arguments and arguments[0].endswith(".py") and Path(arguments[0]).resolve().is_relative_to(own):
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        return 0
    # What it lacks is looked for where the user has put it: CuPy and the libraries of CUDA are not in the bundle.
    sys.path += [folder for folder in os.environ.get("PROTEOSCOPE_LIBRARIES", "").split(os.pathsep) if folder]
    from proteoscope.__main__ import main as program

    return program()


if __name__ == "__main__":
    sys.exit(main())
