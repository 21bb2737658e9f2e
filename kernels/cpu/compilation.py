"""Detection of CPU kernels compiled on this machine for its processor."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite.binding

__all__ = ["is_compiled", "mark_compiled"]

_MARK = ".processor"


def is_compiled(kernel: Any) -> bool:
    """Return True if a compiled function in Numba's cache is newer than all kernel sources and for this processor.

    An unmarked cache, as of other users, is assumed to fit: Numba recompiles what does not.
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
    """Mark a function as compiled for this processor after all sources, since Numba ignores changes of other files.

    Raises
    ------
    OSError
        Writing failed.
    """
    name, folder = _name(kernel), kernel.stats.cache_path
    for entry in _entries(name, folder):
        entry.touch()
    if folder is not None:
        mark = Path(folder, f"{name}{_MARK}")
        known = mark.read_text(encoding="utf-8").split() if mark.exists() else []
        if _processor() not in known:
            mark.write_text("\n".join([*known, _processor()]), encoding="utf-8")


def _processor() -> str:
    """Return a digest of the processor name and instruction sets that Numba distinguishes."""
    described = llvmlite.binding.get_host_cpu_name() + llvmlite.binding.get_host_cpu_features().flatten()
    return sha256(described.encode()).hexdigest()[:16]


def _name(kernel: Any) -> str:
    return f"{kernel.py_func.__module__.rpartition('.')[2]}.{kernel.py_func.__qualname__}"


def _entries(name: str, folder: str | None) -> list[Path]:
    """Return the index files of a function in Numba's cache."""
    if folder is None or not Path(folder).is_dir():
        return []
    return [Path(entry) for entry in os.scandir(folder) if entry.name.startswith(f"{name}-") and entry.name.endswith(".nbi")]
