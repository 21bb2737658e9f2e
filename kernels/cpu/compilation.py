"""Whether the processor's kernels have been compiled on this machine before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["is_compiled", "mark_compiled"]


def is_compiled(kernel: Any) -> bool:
    """Whether a compiled function stands in Numba's cache, and is not older than any kernel's source."""
    sources = [path.stat().st_mtime for path in Path(__file__).parent.glob("*.py")]
    return any(entry.stat().st_mtime >= max(sources) for entry in _entries(kernel))


def mark_compiled(kernel: Any) -> None:
    """Let a function count as compiled after all sources: Numba leaves it as it is where only other files have changed."""
    for entry in _entries(kernel):
        entry.touch()


def _entries(kernel: Any) -> list[Path]:
    """Files of Numba's cache that tell of a function."""
    name = f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__qualname__}"
    folder = kernel.stats.cache_path
    return [] if folder is None else list(Path(folder).glob(f"{name}-*.nbi"))
