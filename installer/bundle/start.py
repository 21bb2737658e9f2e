"""Entry point of a bundle: the program, or a part of it in a separate process.

A bundle has no ``python``, so `sys.executable` is the program itself. If the program starts a process with ``-P -c PROGRAM`` or with one of
its files, as it does with Python, this module runs it.
"""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path


def main() -> int:
    """Run the program, or the code that the arguments name, and return the exit status."""
    multiprocessing.freeze_support()
    arguments = sys.argv[1:]
    if arguments[:2] == ["-P", "-c"] and len(arguments) > 2:
        sys.argv[:] = ["-c", *arguments[3:]]
        exec(compile(arguments[2], "<program>", "exec"), {"__name__": "__main__"})
        return 0
    bundle = Path(sys._MEIPASS).resolve()  # type: ignore[attr-defined]
    if arguments and arguments[0].endswith(".py") and Path(arguments[0]).resolve().is_relative_to(bundle):
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")
        return 0
    # CuPy and the CUDA libraries are not in the bundle; users may add folders that have them.
    sys.path += [folder for folder in os.environ.get("PROTEOSCOPE_LIBRARIES", "").split(os.pathsep) if folder]
    from proteoscope.__main__ import main as program

    return program()


if __name__ == "__main__":
    sys.exit(main())
