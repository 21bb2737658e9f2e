"""The user's cache: indexes that every project shares, and small files; bounded, and safe to delete at any time.

::

    CACHE/indexes/KIND-KEY/...    of the kinds that the entries of searches name

``PROTEOSCOPE_CACHE`` names the folder; without it, it is the program's folder in the user's cache.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.project.index_store import IndexStore

__all__ = ["VARIABLE", "cache_folder", "index_store", "remember"]

VARIABLE = "PROTEOSCOPE_CACHE"


def cache_folder() -> Path:
    """Where the program keeps what it can make again; it may not be there yet."""
    if named := os.environ.get(VARIABLE):
        return Path(named).absolute()
    import platformdirs  # not needed where PROTEOSCOPE_CACHE names the folder

    return Path(platformdirs.user_cache_path("proteoscope", appauthor=False))


def remember(path: Path, content: bytes) -> None:
    """Write a small file of the cache. A disk that refuses is no reason to complain."""
    with contextlib.suppress(StorageError, OSError), atomic_file(path) as file:
        file.write(content)


def index_store(kind: str) -> IndexStore:
    """The kept indexes of a kind, which the entry of a search names. All kinds share one bound."""
    return IndexStore(cache_folder() / "indexes", kind)
