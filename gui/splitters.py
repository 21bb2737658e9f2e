"""Saving and restoring splitter sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QSplitter

__all__ = ["restore_sizes", "splitter_sizes"]


def splitter_sizes(splitters: Mapping[str, QSplitter]) -> dict[str, list[int]]:
    """Return the sizes of splitters by name."""
    return {name: splitter.sizes() for name, splitter in splitters.items()}


def restore_sizes(splitters: Mapping[str, QSplitter], sizes: Mapping[str, Any]) -> None:
    """Restore sizes returned by `splitter_sizes`; sizes that do not fit a splitter are ignored."""
    for name, splitter in splitters.items():
        stored = sizes.get(name)
        if isinstance(stored, list) and len(stored) == splitter.count() and all(isinstance(size, int) for size in stored) and any(stored):
            splitter.setSizes(stored)
