"""Contents of the user's cache: indexes for later searches, and checkpoints of unfinished runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proteoscope.engine import project, searches

if TYPE_CHECKING:
    from proteoscope.engine.project.index_store import CachedIndex

__all__ = ["CHECKPOINTS", "clear_cached_files", "index_kinds", "list_cached_files"]

CHECKPOINTS = "checkpoints"
"""Kind of the checkpoints of unfinished runs."""


def index_kinds() -> dict[str, str]:
    """Return the description of each kind of cached index, by the name of the kind; the description names the searches that use it."""
    titles, search_kinds = dict[str, str](), dict[str, list[str]]()
    for search in searches.SEARCHES:
        for kind in search.keeps:
            titles[kind.name] = kind.title
            search_kinds.setdefault(kind.name, []).append(search.kind)
    return {name: f"{title} ({name}; of {' and '.join(search_kinds[name])})" for name, title in titles.items()}


def list_cached_files() -> list[CachedIndex]:
    """Return the indexes in the cache, and the checkpoints of unfinished runs."""
    return [*_store().indexes(), *_checkpoints(is_cleared=False)]


def clear_cached_files(kind: str = "all") -> list[CachedIndex]:
    """Remove files from the cache and return the removed ones; checkpoints of active runs remain.

    Parameters
    ----------
    kind : str
        One of `index_kinds`, ``checkpoints``, or ``all``.
    """
    indexes = [] if kind == CHECKPOINTS else _store().clear(None if kind == "all" else kind)
    return [*indexes, *(_checkpoints(is_cleared=True) if kind in ("all", CHECKPOINTS) else ())]


def _store() -> project.index_store.IndexStore:
    """Return a store of indexes; each store lists the indexes of all kinds."""
    return project.index_store.index_store(next(iter(index_kinds())))


def _checkpoints(*, is_cleared: bool) -> list[CachedIndex]:
    """Return the checkpoints in the cache as `CachedIndex` objects.

    If `is_cleared`, remove the checkpoints and return those that were removed.
    """
    result = []
    for checkpoint in project.checkpoint_store.list_checkpoints():
        if is_cleared and not project.checkpoint_store.clear_checkpoint(checkpoint):
            continue
        used = project.index_store.used_time(checkpoint.used)
        title = "" if is_cleared else checkpoint.title
        result.append(project.index_store.CachedIndex(CHECKPOINTS, checkpoint.path, checkpoint.bytes, used, title))
    return result
