"""Whether the processor's kernels have been compiled on this machine, for its processor, before."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite.binding

__all__ = ["is_compiled", "mark_compiled"]

_MARK = ".processor"


def is_compiled(kernel: Any) -> bool:
    """Whether a compiled function stands in Numba's cache, is not older than any kernel's source, and is of this processor.

    A cache that was never marked, as one that others keep, is believed to be of this processor: Numba compiles anew what is not.
    """
    name, folder = _name(kernel), kernel.stats.cache_path
    entries = _entries(name, folder)
    if not entries:
        return False
    sources = max(entry.stat().st_mtime for entry in os.scandir(Path(__file__).parent) if entry.name.endswith(".py"))
    if all(entry.stat().st_mtime < sources for entry in entries):
        return False
    mark = Path(folder, f"{name}{_MARK}")
    return not mark.exists() or _processor() in mark.read_text(encoding="utf-8").split()


def mark_compiled(kernel: Any) -> None:
    """Let a function count as compiled for this processor, and after all sources: Numba leaves it as it is where only other files have
    changed. Raises OSError."""
    name, folder = _name(kernel), kernel.stats.cache_path
    for entry in _entries(name, folder):
        entry.touch()
    if folder is not None:
        mark = Path(folder, f"{name}{_MARK}")
        known = mark.read_text(encoding="utf-8").split() if mark.exists() else []
        if _processor() not in known:
            mark.write_text("\n".join([*known, _processor()]), encoding="utf-8")


def _processor() -> str:
    """What Numba tells processors apart by, as a digest: their name, and the instructions that they know."""
    described = llvmlite.binding.get_host_cpu_name() + llvmlite.binding.get_host_cpu_features().flatten()
    return sha256(described.encode()).hexdigest()[:16]


def _name(kernel: Any) -> str:
    return f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__qualname__}"


def _entries(name: str, folder: str | None) -> list[Path]:
    """Files of Numba's cache that tell of a function."""
    if folder is None or not Path(folder).is_dir():
        return []
    return [Path(entry) for entry in os.scandir(folder) if entry.name.startswith(f"{name}-") and entry.name.endswith(".nbi")]
