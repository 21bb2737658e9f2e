"""``python -m proteoscope.engine.command_line``."""

import sys

from proteoscope.engine import command_line
from proteoscope.engine.command_line.interruption import end_on_interrupt


def run() -> int:
    """Run the command line; Ctrl-C while it is still being imported is reported in one line."""
    end_on_interrupt()
    return command_line.main.main()


sys.exit(run())
