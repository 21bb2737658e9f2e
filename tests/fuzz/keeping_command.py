"""The command line of a program that stores every checkpoint from the start, so that short runs can be resumed.

python -m tests.fuzz.keeping_command identify ...
"""

from __future__ import annotations

import sys

from proteoscope.engine.clustering import k_means
from proteoscope.engine.command_line.main import main
from proteoscope.engine.execution import checkpoints
from proteoscope.engine.sequence_search import scoring

__all__ = ["keep_at_once", "main"]


def keep_at_once() -> None:
    """Store checkpoints from the start, regardless of their cost, and in small parts."""
    checkpoints.BEGIN_SECONDS, checkpoints.SHARE = 0.0, 1e9
    checkpoints.FLUSH_SECONDS = checkpoints.STATE_SECONDS = 0.02
    scoring.SECONDS_ON_THREADS, scoring.FIRST_SECONDS_ON_THREADS = 0.1, 0.02
    k_means.SECONDS_AT_ONCE = 0.02


if __name__ == "__main__":
    keep_at_once()
    sys.exit(main())
