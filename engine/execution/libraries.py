"""Suppression of unneeded work of libraries while loading, and of memory retained by the C library."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

__all__ = ["find_linear_algebra", "lighten_libraries", "limit_retained_memory", "one_algebra_thread"]

_ARENA_MAX = -8
"""``M_ARENA_MAX`` of glibc's ``malloc.h``."""


def lighten_libraries() -> None:
    """Set environment variables so that libraries loaded later skip unneeded work, unless the user has set them.

    For programs, not for scripts. NumPy's linear algebra would create a busy-waiting thread per core, which doubles the time to load NumPy;
    the matrices here are small, and large computations are divided among the program's threads. pydantic would search all installed
    packages for plugins.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


@cache
def find_linear_algebra() -> Any:
    """Find NumPy's linear algebra among the loaded libraries, once per process, before threads that import modules start.

    threadpoolctl holds the lock of the library loader while it waits for Python's lock. Another thread that imports an extension module
    holds them in the opposite order: a deadlock.

    Returns
    -------
    threadpoolctl.ThreadpoolController
    """
    import numpy as np  # noqa: F401 - the library to find
    from threadpoolctl import ThreadpoolController  # not needed by programs that only list or export

    return ThreadpoolController()


@contextmanager
def one_algebra_thread() -> Iterator[None]:
    """Limit NumPy's linear algebra to one thread in the block, since more threads are slower for small matrices."""
    with find_linear_algebra().limit(limits=1, user_api="blas"):
        yield


def limit_retained_memory() -> None:
    """Limit the heaps of glibc to the number of CPUs, unless the user has set a limit; call it before any thread starts.

    For programs that run long and start many threads, such as the window. By default glibc has eight heaps per CPU and assigns them to new
    threads in turn. Each heap retains the memory of its largest computation, so that the program grows until every heap was used. Other C
    libraries (musl, Windows, macOS) have no such setting.
    """
    if not sys.platform.startswith("linux") or "MALLOC_ARENA_MAX" in os.environ:
        return
    import ctypes  # only this system call needs it

    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_ARENA_MAX, max(2, len(os.sched_getaffinity(0))))
