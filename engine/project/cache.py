"""The user's cache: indexes shared by all projects, and small files. Its size is limited, and the user may delete it.

::

    CACHE/indexes/KIND-KEY/...    an index; KIND is named by the entry of a search

CACHE is the folder in the environment variable ``PROTEOSCOPE_CACHE``. If the variable is not set, or other users can change files in that
folder, it is the program's folder in the user's cache directory.
"""

from proteoscope.engine.project.index_store import IndexStore
from proteoscope.kernels.trusted_folders import VARIABLE, cache_folder

__all__ = ["VARIABLE", "cache_folder", "index_store"]


def index_store(kind: str) -> IndexStore:
    """Return the store of cached indexes of a kind, which the entry of a search names; all kinds share one size limit."""
    return IndexStore(cache_folder() / "indexes", kind)
