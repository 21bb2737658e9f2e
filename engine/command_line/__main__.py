"""``python -m proteoscope.engine.command_line``."""

import sys

from proteoscope.engine.command_line.interruption import end_on_interrupt
from proteoscope.engine.command_line.main import main


def run() -> int:
    """The command line, with Ctrl-C told in one line while it is still being imported."""
    end_on_interrupt()

    return main()


sys.exit(run())
