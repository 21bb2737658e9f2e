"""Sentences about limits of the system and settings of libraries with which the program cannot run."""

from __future__ import annotations

import os
import sys

__all__ = ["describe_failure", "settings_error"]

_THREADS = "NUMBA_NUM_THREADS"
_MAXIMUM_THREADS = 1024
_OUT_OF_MEMORY = ("failed to map segment", "cannot allocate memory", "shared object", "Unable to allocate")


def settings_error() -> str:
    """Return what is wrong with the environment variables of libraries, or ''."""
    value = os.environ.get(_THREADS, "")
    if value and not (value.isdecimal() and len(value) < 10 and 1 <= int(value) <= _MAXIMUM_THREADS):
        return f"the environment variable {_THREADS} is '{value:.40}'; expected a number from 1 to {_MAXIMUM_THREADS}. Change or unset it"
    return ""


def describe_failure(error: Exception) -> str:
    """Return a sentence about an error of the system or of a library that cannot be loaded; '' for any other error."""
    text = " ".join(str(error).split())
    is_thread = isinstance(error, RuntimeError) and "can't start new thread" in text
    # The stack of a thread is memory too.
    is_memory = is_thread or isinstance(error, MemoryError) or any(sign in text for sign in _OUT_OF_MEMORY)
    if is_memory and (limit := _memory_limit()):
        return f"the memory limit of {limit >> 20} MB (ulimit -v) is too small; raise it, or remove it with ulimit -v unlimited"
    if is_thread:
        return "no further thread can be started; raise the limit of processes (ulimit -u), or use fewer --threads"
    if isinstance(error, ImportError):
        return f"a library cannot be loaded ({text:.300}); install the program again, or try on a machine with more memory"
    return ""


def _memory_limit() -> int:
    """Return the limit of address space in bytes; 0 if there is none."""
    if sys.platform == "win32":
        return 0
    import resource  # only Unix has it

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 0 if soft == resource.RLIM_INFINITY else soft
