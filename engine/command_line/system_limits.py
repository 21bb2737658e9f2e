"""Error messages for system limits and library settings under which the program cannot run."""

import os
import sys

from proteoscope.engine.creation_time import creation_time
from proteoscope.engine.errors import ParameterError, ProteoscopeError

__all__ = ["describe_failure", "guard_limits", "settings_error"]

_THREADS = "NUMBA_NUM_THREADS"
_NO_COMPILER = "NUMBA_DISABLE_JIT"
_MAXIMUM_THREADS = 1024
_MEMORY = ("-v", "-d")
_OUT_OF_MEMORY = ("failed to map segment", "cannot allocate memory", "shared object", "Unable to allocate")
_LEAST = {"numpy": {"-v": 128, "-d": 64, "-n": 16}, "numba": {"-v": 640, "-d": 256, "-n": 48}}
"""Minimum limits for loading a library, by option of the shell command ``ulimit``.

The options are -v and -d, address space and data in megabytes, and -n, open files. With less memory, OpenBLAS and LLVM end the process with
their own messages.
"""


def settings_error() -> str:
    """Return a sentence about an invalid environment variable of a library, or ''."""
    value = os.environ.get(_THREADS, "")
    if value and not (value.isdecimal() and len(value) < 10 and 1 <= int(value) <= _MAXIMUM_THREADS):
        return f"the environment variable {_THREADS} is '{value:.40}'; expected a number from 1 to {_MAXIMUM_THREADS}. Change or unset it"
    if os.environ.get(_NO_COMPILER, "") not in ("", "0"):
        return f"the environment variable {_NO_COMPILER} is set, and searches compute with compiled code. Unset it"
    try:
        creation_time()
    except ParameterError as error:
        return str(error)
    return ""


def describe_failure(error: Exception) -> str:
    """Return a sentence about a system error or a library that cannot be loaded; '' for other errors."""
    text = " ".join(str(error).split())
    is_thread = isinstance(error, RuntimeError) and "can't start new thread" in text
    # Threads need memory for their stacks. Python raises SystemError if there is not enough memory to create another error.
    is_memory = is_thread or isinstance(error, MemoryError | SystemError) or any(sign in text for sign in _OUT_OF_MEMORY)
    if is_memory and (limits := _limits(*_MEMORY)):
        return _too_small(min(limits, key=lambda option: limits[option]), limits)
    if is_thread:
        return "no further thread can be started; raise the limit of processes (ulimit -u), or use fewer --threads"
    if isinstance(error, RuntimeWarning) and str(error).startswith("Environment variable"):
        return f"{str(error).splitlines()[0][:300].rstrip('.')}. Change or unset it"
    if isinstance(error, ImportError):
        return f"a library cannot be loaded ({text:.300}); install the program again, or try on a machine with more memory"
    return ""


def guard_limits() -> None:
    """Make the import of a library raise `ProteoscopeError` if the limits of the process are too small for the library."""
    if limits := _limits(*_MEMORY, "-n"):
        sys.meta_path.insert(0, _Guard(limits))


class _Guard:
    """Import finder that raises an error for modules for which the system limits are too small. See `importlib.abc.MetaPathFinder`."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = limits

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        for option, least in _LEAST.get(fullname, {}).items():
            if self._limits.get(option, least) < least:
                raise ProteoscopeError(_too_small(option, self._limits))


def _too_small(option: str, limits: dict[str, int]) -> str:
    if option == "-n":
        return f"the limit of {limits[option]} open files (ulimit -n) is too small; raise it to {_LEAST['numba'][option]} or more"
    return f"the memory limit of {limits[option]} MB (ulimit {option}) is too small; raise it, or remove it with ulimit {option} unlimited"


def _limits(*options: str) -> dict[str, int]:
    """Return the limits that are set for this process, by option of ``ulimit``; memory limits in megabytes."""
    if sys.platform == "win32":
        return {}
    import resource  # exists only on Unix

    kinds = {"-v": (resource.RLIMIT_AS, 20), "-d": (resource.RLIMIT_DATA, 20), "-n": (resource.RLIMIT_NOFILE, 0)}
    soft = {option: resource.getrlimit(kinds[option][0])[0] for option in options}
    return {option: limit >> kinds[option][1] for option, limit in soft.items() if limit != resource.RLIM_INFINITY}
