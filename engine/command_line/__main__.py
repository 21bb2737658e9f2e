"""Entry point of ``python -m proteoscope.engine.command_line``."""

import sys

from proteoscope.engine import command_line
from proteoscope.engine.command_line.interruption import end_on_interrupt


def run() -> int:
    """Run the command line and return the exit code; report Ctrl-C or a failing library during imports in one line."""
    end_on_interrupt()
    try:
        run_command = command_line.main.main
    except (ImportError, OSError, MemoryError) as error:
        if not (sentence := command_line.system_limits.describe_failure(error)):
            raise
        sys.stderr.write(f"proteoscope: {sentence}\n")
        return 2
    return run_command()


sys.exit(run())
