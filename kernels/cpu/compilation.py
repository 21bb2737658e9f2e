"""Whether the processor's kernels have been compiled on this machine before."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_compiled"]


def is_compiled() -> bool:
    """Whether the largest kernel stands in Numba's cache (an older version of it may, which then is compiled again unannounced)."""
    from kernels.cpu.scoring import search_queries

    folder = search_queries.stats.cache_path
    return folder is not None and any(Path(folder).glob("scoring.search_queries-*.nbi"))
