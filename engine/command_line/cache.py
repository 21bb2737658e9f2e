"""``proteoscope cache``: the sub-command that lists and clears cached indexes and checkpoints of unfinished runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from proteoscope.engine import project, searches
from proteoscope.engine.command_line.terminal import show_result
from proteoscope.engine.results.counts import counted

if TYPE_CHECKING:
    from proteoscope.engine.project.index_store import CachedIndex

__all__ = ["add_cache"]

_CHECKPOINTS = "checkpoints"

_EPILOG = """
Indexes: {kinds}, up to 20 GB; the most recently used stay. A search rebuilds those it needs. Checkpoints: what
unfinished runs have computed, up to 20 GB and 1,000 runs, those used last; without its checkpoint a run cannot be
resumed. Checkpoints of active runs are not removed. PROTEOSCOPE_CACHE names another folder for all.
"""


def index_kinds() -> dict[str, str]:
    """Return the kinds of cached indexes by name, each with a description that names the searches which use such indexes."""
    titles, keepers = dict[str, str](), dict[str, list[str]]()
    for search in searches.SEARCHES:
        for kind in search.keeps:
            titles[kind.name] = kind.title
            keepers.setdefault(kind.name, []).append(search.kind)
    return {name: f"{title} ({name}; of {' and '.join(keepers[name])})" for name, title in titles.items()}


def add_cache(commands: Any) -> None:
    """Add the sub-command ``cache`` to argparse's sub-parsers `commands`."""
    kinds = index_kinds()
    parser = commands.add_parser(
        "cache", help="list or clear indexes for later searches, and checkpoints", epilog=_EPILOG.format(kinds=", ".join(kinds.values()))
    )
    parser.add_argument(
        "--clear",
        nargs="?",
        const="all",
        choices=("all", *kinds, _CHECKPOINTS),
        metavar="KIND",
        help=f"clear the cache: one kind ({', '.join((*kinds, _CHECKPOINTS))}), or all",
    )
    parser.set_defaults(command=_cache)


def _cache(options: argparse.Namespace) -> None:
    store = project.cache.index_store(next(iter(index_kinds())))
    is_list = options.clear is None
    indexes: list[CachedIndex] = []
    checkpoints: list[CachedIndex] = []
    if options.clear != _CHECKPOINTS:
        indexes = store.indexes() if is_list else store.clear(None if options.clear == "all" else options.clear)
    if options.clear in (None, "all", _CHECKPOINTS):
        checkpoints = _checkpoints(is_cleared=not is_list)
    listed = [*indexes, *checkpoints]
    rows = [
        {"kind": index.kind, "bytes": index.bytes, "used": index.used.isoformat(), "made_from": index.title, "path": str(index.folder)}
        for index in listed
    ]
    total = sum(index.bytes for index in listed)
    lines = [
        f"{index.kind:<11} {_size(index.bytes):>9}  {index.used.astimezone():%Y-%m-%d %H:%M}  {index.title}"
        for index in (listed if is_list else ())
    ]
    done = "stored" if is_list else "removed"
    counts = [counted(len(indexes), "index", "indexes")] if options.clear != _CHECKPOINTS else []
    if checkpoints or not counts:
        counts.append(counted(len(checkpoints), "checkpoint", "checkpoints"))
    lines.append(f"{', '.join(counts)}, {_size(total)}, {done}: {project.cache.cache_folder()}")
    show_result(options, {"folder": str(project.cache.cache_folder()), "kept" if is_list else "removed": rows}, lines)


def _checkpoints(*, is_cleared: bool) -> list[CachedIndex]:
    """Return the checkpoints in the cache as entries of the same type as cached indexes.

    If `is_cleared`, remove them and return the removed ones.
    """
    lines = []
    for checkpoint in project.checkpoint_store.list_checkpoints():
        if is_cleared and not project.checkpoint_store.clear_checkpoint(checkpoint):
            continue
        used = project.index_store.used_time(checkpoint.used)
        lines.append(
            project.index_store.CachedIndex(_CHECKPOINTS, checkpoint.path, checkpoint.bytes, used, "" if is_cleared else checkpoint.title)
        )
    return lines


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
