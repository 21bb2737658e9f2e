"""Saving and restoring splitter sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QSplitter

__all__ = ["kept_sizes", "restore_sizes"]


def kept_sizes(splitters: Mapping[str, QSplitter]) -> dict[str, list[int]]:
    """Return the sizes of splitters by name."""
    return {name: splitter.sizes() for name, splitter in splitters.items()}


def restore_sizes(splitters: Mapping[str, QSplitter], sizes: Mapping[str, Any]) -> None:
    """Restore sizes returned by `kept_sizes`; sizes that do not fit a splitter are ignored."""
    for name, splitter in splitters.items():
        kept = sizes.get(name)
        if isinstance(kept, list) and len(kept) == splitter.count() and all(isinstance(size, int) for size in kept) and any(kept):
            splitter.setSizes(kept)
