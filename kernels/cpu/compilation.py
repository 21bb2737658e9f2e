"""Whether the processor's kernels have been compiled on this machine before."""

from __future__ import annotations

from pathlib import Path

__all__ = ["is_compiled"]


def is_compiled() -> bool:
    """Whether the last kernel that a search needs stands in Numba's cache, and is not older than any kernel's source."""
    from kernels.cpu.scoring import measure_matches

    folder = measure_matches.stats.cache_path
    if folder is None:
        return False
    entries = list(Path(folder).glob("scoring.measure_matches-*.nbi"))
    sources = [path.stat().st_mtime for path in Path(__file__).parent.glob("*.py")]
    return any(entry.stat().st_mtime >= max(sources) for entry in entries)
