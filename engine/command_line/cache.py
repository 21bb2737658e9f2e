"""``proteoscope cache``: the sub-command that lists and clears the indexes that are kept for other searches."""

from __future__ import annotations

import argparse
import json
from typing import Any

from proteoscope.engine import project, searches
from proteoscope.engine.command_line.terminal import say
from proteoscope.engine.results.counts import counted

__all__ = ["add_cache"]

_EPILOG = """
Kept are {kinds}, up to 20 GB; those used last stay. All may be removed at any time: a search makes again what it
needs. PROTEOSCOPE_CACHE names another folder for them.
"""


def kept_kinds() -> dict[str, str]:
    """Names of the kinds of indexes that searches keep, and for each what it is, and of which searches, in words."""
    titles, keepers = dict[str, str](), dict[str, list[str]]()
    for search in searches.SEARCHES:
        for kind in search.keeps:
            titles[kind.name] = kind.title
            keepers.setdefault(kind.name, []).append(search.kind)
    return {name: f"{title} ({name}; of {' and '.join(keepers[name])})" for name, title in titles.items()}


def add_cache(commands: Any) -> None:
    """Add ``cache`` to the sub-commands, which are argparse's sub-parsers."""
    kinds = kept_kinds()
    parser = commands.add_parser(
        "cache", help="list or clear the indexes that are kept for other searches", epilog=_EPILOG.format(kinds=", ".join(kinds.values()))
    )
    parser.add_argument(
        "--clear", nargs="?", const="all", choices=("all", *kinds), metavar="KIND",
        help=f"remove what is kept: of one kind ({', '.join(kinds)}), or all",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.set_defaults(command=_cache)


def _cache(options: argparse.Namespace) -> None:

    store = project.cache.index_store(next(iter(kept_kinds())))
    is_list = options.clear is None
    indexes = store.kept() if is_list else store.clear(None if options.clear == "all" else options.clear)
    if options.json:
        rows = [
            {"kind": index.kind, "bytes": index.bytes, "used": index.used.isoformat(), "made_from": index.title, "path": str(index.folder)}
            for index in indexes
        ]
        print(json.dumps({"folder": str(project.cache.cache_folder()), "kept" if is_list else "removed": rows}, indent=2))
        return
    total = sum(index.bytes for index in indexes)
    if is_list:
        for index in indexes:
            # What made it holds names of files, which may hold anything.
            say(f"{index.kind:<10} {_size(index.bytes):>9}  {index.used.astimezone():%Y-%m-%d %H:%M}  {index.title}")
    done = "kept" if is_list else "removed"
    say(f"{counted(len(indexes), 'index', 'indexes')}, {_size(total)}, {done}: {project.cache.cache_folder()}")


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
