"""The user's cache: indexes that every project shares, and small files; bounded, and safe to delete at any time.

::

    CACHE/indexes/KIND-KEY/...    of the kinds that the entries of searches name

``PROTEOSCOPE_CACHE`` names the folder; without it, or where other users can change files there, it is the program's folder in the user's
cache.
"""

from __future__ import annotations

from proteoscope.engine.project.index_store import IndexStore
from proteoscope.kernels.trusted_folders import VARIABLE, cache_folder

__all__ = ["VARIABLE", "cache_folder", "index_store"]


def index_store(kind: str) -> IndexStore:
    """Return the cached indexes of a kind named by a search's entry; all kinds share one size limit."""
    return IndexStore(cache_folder() / "indexes", kind)
