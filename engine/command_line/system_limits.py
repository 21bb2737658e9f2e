"""Sentences about limits of the system and settings of libraries with which the program cannot run."""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder

__all__ = ["describe_failure", "guard_memory", "settings_error"]

_THREADS = "NUMBA_NUM_THREADS"
_MAXIMUM_THREADS = 1024
_OUT_OF_MEMORY = ("failed to map segment", "cannot allocate memory", "shared object", "Unable to allocate")
_LEAST_MEGABYTES = {"numpy": (128, 64), "numba": (640, 256)}
"""Address space (ulimit -v) and data (ulimit -d) with which a library can be loaded and begin: with less, OpenBLAS and LLVM end the
process with words of their own."""


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
    # The stack of a thread is memory too. Python raises SystemError where it had no memory for another error.
    is_memory = is_thread or isinstance(error, MemoryError | SystemError) or any(sign in text for sign in _OUT_OF_MEMORY)
    if is_memory and (limits := _memory_limits()):
        option = min(limits, key=lambda option: limits[option])
        return (
            f"the memory limit of {limits[option]} MB (ulimit {option}) is too small; raise it, or remove it with ulimit {option} unlimited"
        )
    if is_thread:
        return "no further thread can be started; raise the limit of processes (ulimit -u), or use fewer --threads"
    if isinstance(error, ImportError):
        return f"a library cannot be loaded ({text:.300}); install the program again, or try on a machine with more memory"
    return ""


def guard_memory() -> None:
    """Let libraries that would end the process under a small limit of memory raise MemoryError when they are imported."""
    if limits := _memory_limits():
        sys.meta_path.insert(0, _MemoryGuard(limits))


class _MemoryGuard(MetaPathFinder):
    """Finds no module; refuses those for which `limits` are too small."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = limits

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if fullname in _LEAST_MEGABYTES:
            for option, least in zip(("-v", "-d"), _LEAST_MEGABYTES[fullname], strict=True):
                if self._limits.get(option, least) < least:
                    raise MemoryError(f"{fullname} needs {least} MB")


def _memory_limits() -> dict[str, int]:
    """Return the limits of memory that are set, in megabytes, by the options of ulimit."""
    if sys.platform == "win32":
        return {}
    import resource  # only Unix has it

    soft = {"-v": resource.getrlimit(resource.RLIMIT_AS)[0], "-d": resource.getrlimit(resource.RLIMIT_DATA)[0]}
    return {option: limit >> 20 for option, limit in soft.items() if limit != resource.RLIM_INFINITY}
