"""The files of structures that folders and lists of files stand for, whoever asks: a search, a database that is built, the window."""

from __future__ import annotations

import os
import re
from pathlib import Path

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.registry import bare_name, names_of, suffixes_of
from proteoscope.engine.formats.sources import ByteSource

__all__ = ["DATABASE_FILE", "LISTS", "files_in", "listed", "structures_in"]

DATABASE_FILE = "database.json"
"""What the folder of a structure database is known by."""
LISTS = (".txt", ".list", ".lst")
"""Suffixes of lists of files: texts with a path in each line."""
_MAXIMUM_LISTED = 1_000_000
_MAXIMUM_LIST_BYTES = 1 << 27
_REMARK = re.compile(r"(?:^|\s)#.*")


def structures_in(folder: Path) -> list[Path]:
    """The files of a folder and the folders in it that are called as structures are, in order; links to folders are not followed."""
    return _called_as_structures(_all_in(folder))


def files_in(folder: Path) -> list[Path]:
    """The files that a folder stands for: `structures_in`, or, where no file is called as structures are, all of them.

    Raises
    ------
    InputError : there is none.
    """
    files = _all_in(folder)
    found = _called_as_structures(files) or files
    if not found:
        suffixes = ", ".join(suffixes_of("structures"))
        raise InputError(folder, f"holds no files of structures ({suffixes}, also gzipped)", remedy="Name another folder")
    return found


def listed(path: Path) -> list[Path]:
    """What a list of files names, each once: a path in each line that counts from the list's own folder; ``#`` begins a remark.

    Raises
    ------
    InputError : it is no text, or names nothing, or too much.
    """
    with ByteSource(path) as source:
        data = source.read(_MAXIMUM_LIST_BYTES)
    try:
        lines = [_REMARK.sub("", line).strip() for line in data.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        remedy = f"Give a folder, structures as {names_of('structures')}, or a text with a path in each line"
        raise InputError(path, "is neither a structure nor a list of files", place="line 1", remedy=remedy) from None
    names = [line for line in lines if line]
    if not names or len(names) > _MAXIMUM_LISTED:
        raise InputError(
            path, "lists no files" if not names else f"lists more than {_MAXIMUM_LISTED:,} files", remedy="Write a path a line"
        )
    return list(dict.fromkeys(path.parent / name for name in names))


def _called_as_structures(files: list[Path]) -> list[Path]:
    suffixes = suffixes_of("structures")
    return [path for path in files if bare_name(path.name).endswith(suffixes)]


def _all_in(folder: Path) -> list[Path]:
    files = []
    for where, folders, names in os.walk(folder):
        folders.sort()
        files += [Path(where, name) for name in sorted(names) if not name.startswith(".")]
    return files
