"""Expansion of folders and lists to structure files, for searches, databases and the window."""

import os
import re
from pathlib import Path
from typing import NamedTuple

from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.registry import format_names, has_suffix
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.results.counts import counted
from proteoscope.engine.structures.reading import structure_format

__all__ = ["DATABASE_FILE", "LISTS", "FolderFiles", "files_in", "listed", "structures_in"]

DATABASE_FILE = "database.json"
"""Name of the file by which the folder of a structure database is recognised."""
LISTS = (".txt", ".list", ".lst")
"""Suffixes of lists of files: texts with one path per line."""
_NAMES_SHOWN = 3
_MAXIMUM_LISTED = 1_000_000
_MAXIMUM_LIST_BYTES = 1 << 27
_REMARK = re.compile(r"(?:^|\s)#.*")


class FolderFiles(NamedTuple):
    """Structure files of a folder and its subfolders.

    Attributes
    ----------
    files : list of Path
        Structure files, sorted.
    note : str
        Message about files of the folder that are not structures, or ''.
    """

    files: list[Path]
    note: str


def structures_in(folder: Path) -> FolderFiles:
    """Find the structure files of a folder by suffix or content; links to folders are not followed."""
    result, others = list[Path](), list[Path]()
    for path in _files_below(folder):
        (result if has_suffix(path.name, "structures") or _is_structure_file(path) else others).append(path)
    note = f"{folder}: left out {_listed_names(folder, others)}" if others else ""
    return FolderFiles(result, note)


def files_in(folder: Path) -> FolderFiles:
    """Return the structure files of a folder (see `structures_in`).

    Raises
    ------
    InputError
        If the folder has no structure file.
    """
    result = structures_in(folder)
    if not result.files:
        reason = f"contains no structure files ({format_names('structures')}, also gzipped)"
        others = _files_below(folder)
        raise InputError(folder, reason + (f", but {_listed_names(folder, others)}" if others else ""), remedy="Name another folder")
    return result


def _is_structure_file(path: Path) -> bool:
    try:
        return bool(structure_format(path))
    except InputError:
        return False


def _listed_names(folder: Path, others: list[Path]) -> str:
    names = ", ".join(os.fspath(path.relative_to(folder)) for path in others[:_NAMES_SHOWN])
    more = f" and {len(others) - _NAMES_SHOWN:,} more" if len(others) > _NAMES_SHOWN else ""
    return f"{counted(len(others), 'file')} of other content ({names}{more})"


def listed(path: Path) -> list[Path]:
    """Return the files that a list contains, each once.

    A list has one path per line, relative to the folder of the list; ``#`` starts a comment.

    Raises
    ------
    InputError
        If the file is not text, or if it contains no path or too many paths.
    """
    with ByteSource(path) as source:
        data = source.read(_MAXIMUM_LIST_BYTES)
    try:
        lines = [_REMARK.sub("", line).strip() for line in data.decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        remedy = f"Give a folder, structures as {format_names('structures')}, or a text with a path in each line"
        raise InputError(path, "is neither a structure nor a list of files", place="line 1", remedy=remedy) from None
    names = [line for line in lines if line]
    if not names or len(names) > _MAXIMUM_LISTED:
        raise InputError(
            path, "lists no files" if not names else f"lists more than {_MAXIMUM_LISTED:,} files", remedy="Write one path per line"
        )
    return list(dict.fromkeys(path.parent / name for name in names))


def _files_below(folder: Path) -> list[Path]:
    files = []
    for where, folders, names in os.walk(folder):
        folders.sort()
        files += [Path(where, name) for name in sorted(names) if not name.startswith(".")]
    return files
