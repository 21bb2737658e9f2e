"""Threads that libraries would make while they are loaded, whether anybody uses them or not."""

from __future__ import annotations

import os

__all__ = ["limit_pools"]


def limit_pools() -> None:
    """Let NumPy's linear algebra, which is loaded after this, do without threads of its own; a program decides this, not a script's part.

    It would make one for each core, and each looks for work in a loop at first: loading NumPy takes twice as long. The matrices here are
    small, and threads of ours divide what is large. Who has set the variable has decided.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
