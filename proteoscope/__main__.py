"""Entry point of ``proteoscope`` and ``python -m proteoscope``, which starts the window or the command line."""

import sys

from proteoscope import gui
from proteoscope.engine import command_line
from proteoscope.engine.command_line.interruption import end_on_interrupt

__all__ = ["main"]


def main() -> int:
    """Run the program and return its exit status.

    Ctrl-C during imports, and a library that cannot be loaded, are reported in one line.
    """
    end_on_interrupt()
    try:
        run = gui.launch.main
    except (ImportError, OSError, MemoryError) as error:
        if not (sentence := command_line.system_limits.describe_failure(error)):
            raise
        sys.stderr.write(f"proteoscope: {sentence}\n")
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
