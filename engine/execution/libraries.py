"""What libraries would do while they are loaded that no command needs."""

from __future__ import annotations

import os

__all__ = ["lighten_libraries"]


def lighten_libraries() -> None:
    """Let libraries that are loaded after this leave out what is not needed, unless the user has set it otherwise.

    For programs, not for scripts. NumPy's linear algebra would make a thread for each core, which look for work in a loop at first: loading
    NumPy takes twice as long. The matrices here are small, and threads of ours divide what is large. pydantic would read what each package
    offers that is installed, to find plugins.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
