"""Whether the processor's kernels have been compiled on this machine before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["is_compiled"]


def is_compiled(kernel: Any) -> bool:
    """Whether a compiled function stands in Numba's cache, and is not older than any kernel's source."""
    folder = kernel.stats.cache_path
    if folder is None:
        return False
    name = f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__qualname__}"
    entries = list(Path(folder).glob(f"{name}-*.nbi"))
    sources = [path.stat().st_mtime for path in Path(__file__).parent.glob("*.py")]
    return any(entry.stat().st_mtime >= max(sources) for entry in entries)
