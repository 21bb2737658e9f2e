"""``proteoscope cache``: the sub-command that lists and clears cached indexes and checkpoints of unfinished runs."""

import argparse
from typing import Any

from proteoscope.engine import project
from proteoscope.engine.cached_files import CHECKPOINTS, clear_cached_files, index_kinds, list_cached_files
from proteoscope.engine.command_line.terminal import show_result
from proteoscope.engine.results.counts import counted

__all__ = ["add_cache"]

_EPILOG = """
Indexes: {kinds}, up to 20 GB; the most recently used stay. A search rebuilds those it needs. Checkpoints: what
unfinished runs have computed, up to 20 GB and 1,000 runs, those used last; without its checkpoint a run cannot be
resumed. Checkpoints of active runs are not removed. PROTEOSCOPE_CACHE names another folder for all.
"""


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
        choices=("all", *kinds, CHECKPOINTS),
        metavar="KIND",
        help=f"clear the cache: one kind ({', '.join((*kinds, CHECKPOINTS))}), or all",
    )
    parser.set_defaults(command=_cache)


def _cache(options: argparse.Namespace) -> None:
    is_list = options.clear is None
    listed = list_cached_files() if is_list else clear_cached_files(options.clear)
    n_checkpoints = sum(file.kind == CHECKPOINTS for file in listed)
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
    counts = [counted(len(listed) - n_checkpoints, "index", "indexes")] if options.clear != CHECKPOINTS else []
    if n_checkpoints or not counts:
        counts.append(counted(n_checkpoints, "checkpoint", "checkpoints"))
    lines.append(f"{', '.join(counts)}, {_size(total)}, {done}: {project.cache.cache_folder()}")
    show_result(options, {"folder": str(project.cache.cache_folder()), "kept" if is_list else "removed": rows}, lines)


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
