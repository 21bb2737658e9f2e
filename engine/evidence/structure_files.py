"""Structure files of a run, found by their names in its tables."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

__all__ = ["find_structure"]


def find_structure(name: str, files: Sequence[Path]) -> Path | None:
    """Return the single file whose path ends with `name`, or None.

    Examples
    --------
    >>> find_structure("b/1abc.pdb", [Path("/data/a/1abc.pdb"), Path("/data/b/1abc.pdb")]).as_posix()
    '/data/b/1abc.pdb'
    """
    parts = PurePosixPath(name).parts
    result = [path for path in files if parts and path.parts[-len(parts) :] == parts]
    return result[0] if len(result) == 1 else None
