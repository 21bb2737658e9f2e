"""The user's cache: indexes that every project shares, bounded, and safe to delete at any time.

::

    CACHE/indexes/KIND-KEY/...    of the kinds that the entries of searches name

``PROTEOSCOPE_CACHE`` names the folder; without it, it is the program's folder in the user's cache.
"""

from __future__ import annotations

import os
from pathlib import Path

from engine.project.index_store import IndexStore

__all__ = ["VARIABLE", "cache_folder", "index_store"]

VARIABLE = "PROTEOSCOPE_CACHE"


def cache_folder() -> Path:
    """Where the program keeps what it can make again; it may not be there yet."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    import platformdirs

    return Path(platformdirs.user_cache_path("proteoscope", appauthor=False))


def index_store(kind: str) -> IndexStore:
    """The kept indexes of a kind, which the entry of a search names. All kinds share one bound."""
    return IndexStore(cache_folder() / "indexes", kind)
