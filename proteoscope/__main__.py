"""``proteoscope`` and ``python -m proteoscope``: the window, or the command line."""

import sys

from proteoscope import gui
from proteoscope.engine.command_line.interruption import end_on_interrupt

__all__ = ["main"]


def main() -> int:
    """Run the program and return its exit status; Ctrl-C while it is still being imported is reported in one line."""
    end_on_interrupt()
    return gui.launch.main()


if __name__ == "__main__":
    sys.exit(main())
