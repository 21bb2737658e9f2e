"""Suppression of unneeded work of libraries while loading, and of memory retained by the C library."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

__all__ = ["bound_kept_memory", "find_linear_algebra", "lighten_libraries", "one_algebra_thread"]

_ARENA_MAX = -8
"""``M_ARENA_MAX`` of glibc's ``malloc.h``."""


def lighten_libraries() -> None:
    """Let libraries that are loaded after this leave out what is not needed, unless the user has set it otherwise.

    For programs, not for scripts. NumPy's linear algebra would make a thread for each core, which look for work in a loop at first: loading
    NumPy takes twice as long. The matrices here are small, and threads of ours divide what is large. pydantic would read what each package
    offers that is installed, to find plugins.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


@cache
def find_linear_algebra() -> Any:
    """Find NumPy's linear algebra among the loaded libraries, once in a process; call it before threads begin that import modules.

    threadpoolctl holds the lock of the loader of libraries while it waits for Python's lock. An import of an extension module in another
    thread holds them the other way round, and both wait forever.

    Returns
    -------
    threadpoolctl.ThreadpoolController
    """
    import numpy as np  # noqa: F401 - the library that is looked for
    from threadpoolctl import ThreadpoolController  # not needed by programs that only list or export

    return ThreadpoolController()


@contextmanager
def one_algebra_thread() -> Iterator[None]:
    """Let NumPy's linear algebra work on one thread: of small matrices, several only wait for each other."""
    with find_linear_algebra().limit(limits=1, user_api="blas"):
        yield


def bound_kept_memory() -> None:
    """Let threads share as many heaps as there are processors, unless the user has set it otherwise; before any thread is begun.

    For a program that stays, and begins a thread for each thing that is read. glibc gives new threads heaps in turn, of which it has eight
    for each processor, and each keeps free what the largest work took that any of its threads has done: the window grew until all had had
    their turn. Elsewhere (musl, Windows, macOS) there is no such bound to set.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return
    import ctypes  # only this system call needs it

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, max(2, len(os.sched_getaffinity(0))))
