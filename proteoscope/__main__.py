"""``proteoscope`` and ``python -m proteoscope``: the window, or the command line."""

import sys

from proteoscope.engine.command_line.interruption import end_on_interrupt

__all__ = ["main"]


def main() -> int:
    """The program, with Ctrl-C told in one line while it is still being imported; the exit status."""
    end_on_interrupt()
    from proteoscope.gui.launch import main

    return main()


if __name__ == "__main__":
    sys.exit(main())
