"""The files of structures that a run read, by the names that its tables have for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from proteoscope.engine.errors import InputError
from proteoscope.engine.structures.database import open_database
from proteoscope.engine.structures.sources import DATABASE_FILE

__all__ = ["find_structure", "structure_files"]


def structure_files(inputs: Sequence[Path]) -> list[Path]:
    """Return the files of structures among the inputs of a run, with those that its structure databases were made from."""
    files = []
    for path in inputs:
        if path.name != DATABASE_FILE:
            files.append(path)
            continue
        try:
            files += [Path(source.path) for source in open_database(path.parent).content.sources]
        except InputError:  # the database was moved
            continue
    return list(dict.fromkeys(files))


def find_structure(name: str, files: Sequence[Path]) -> Path | None:
    """Return the only file whose path ends with `name`; None if there is none, or several.

    >>> find_structure("b/1abc.pdb", [Path("/data/a/1abc.pdb"), Path("/data/b/1abc.pdb")]).as_posix()
    '/data/b/1abc.pdb'
    """
    parts = PurePosixPath(name).parts
    found = [path for path in files if parts and path.parts[-len(parts) :] == parts]
    return found[0] if len(found) == 1 else None
