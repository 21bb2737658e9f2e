"""Digests that show changes of files and parameters, detection of copied files, and opening of input files outside the project.

A project may be untrusted, and its record of inputs may name any file of this user. The record has the SHA-256 of each file, which only
somebody who has the file can know. Opening a file with this digest therefore reveals nothing new to the author of the record.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any

from proteoscope.engine.errors import InputError
from proteoscope.engine.files import open_regular
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.records import InputRecord

__all__ = [
    "RecordedFiles",
    "canonical_json",
    "content_bytes",
    "copied_files",
    "copy_text",
    "digests_remembered",
    "file_digest",
    "parts_digest",
]

_BLOCK = 4 << 20
_REMEMBERED: "dict[str, tuple[_State | None, str]]" = {}
"""State and digest of the files of `digests_remembered` by path."""


def file_digest(path: str | Path, progress: Progress | None = None) -> str:
    """Return the SHA-256 of a file in hexadecimal (64 digits); for a folder, the SHA-256 of the names and digests of its files.

    Parameters
    ----------
    progress
        Progress, which is checked for cancellation between blocks.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    name = os.fspath(path)
    if name not in _REMEMBERED or not Path(path).is_file():
        return _digest(path, progress)
    state = _state(Path(path))
    if _REMEMBERED[name][0] != state:
        _REMEMBERED[name] = state, _digest(path, progress)
    return _REMEMBERED[name][1]


@contextmanager
def digests_remembered(paths: Iterable[str | Path]) -> Iterator[None]:
    """Remember the digests of the given files during a `with` block: `file_digest` reads a file again only if its size or time changes."""
    names = {os.fspath(path) for path in paths}
    _REMEMBERED.update(dict.fromkeys(names, (None, "")))
    try:
        yield
    finally:
        for name in names:
            _REMEMBERED.pop(name, None)


def _digest(path: str | Path, progress: Progress | None) -> str:
    if Path(path).is_dir():
        return parts_digest({file.relative_to(path).as_posix(): file_digest(file, progress) for file in _files_in(Path(path))})
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK))
    try:
        with open_regular(Path(path)) as file:
            while n_bytes := file.readinto(block):
                digest.update(block[:n_bytes])
                if progress is not None:
                    progress.check()
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})") from error
    return digest.hexdigest()


def content_bytes(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in _files_in(path)) if path.is_dir() else path.stat().st_size


def _files_in(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def canonical_json(parts: Mapping[str, Any]) -> str:
    """Return JSON text that is the same for equal contents: keys sorted, no spaces, no NaN.

    Raises
    ------
    TypeError, ValueError
        If a value cannot be represented in JSON.
    """
    return json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def parts_digest(parts: Mapping[str, Any]) -> str:
    """Return the SHA-256 in hexadecimal of the canonical JSON text of `parts`."""
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def copied_files(files: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the files with the same content as an earlier file in the list.

    Parameters
    ----------
    files : iterable of (str, str)
        Path and SHA-256 of each file; a file with an empty digest does not count as a copy.

    Returns
    -------
    dict of str to str
        Path of the first file with the same content, by the path of the copy.

    Examples
    --------
    >>> copied_files([("a", "12"), ("b", "34"), ("c", "12"), ("a", "12")])
    {'c': 'a'}
    """
    first: dict[str, str] = {}
    copies = {}
    for path, digest in files:
        original = first.setdefault(digest, path) if digest else path
        if original != path:
            copies[path] = original
    return copies


def copy_text(copy: str, original: str) -> str:
    """Return the beginning of a sentence, ``COPY is byte for byte the same as ORIGINAL``, with the file name of `original`."""
    return f"{copy} is byte for byte the same as {PurePath(original).name}"


_State = tuple[int, int, int]


class RecordedFiles:
    """Input files that a run recorded.

    Parameters
    ----------
    records : sequence of InputRecord
        Inputs of the run.
    """

    def __init__(self, records: Sequence[InputRecord]) -> None:
        self._records = {record.path: record for record in records}
        self._checked: dict[Path, _State] = {}

    def check(self, path: Path, progress: Progress | None = None) -> None:
        """Check that a file has the same content as when the run read it.

        Parameters
        ----------
        path : Path
            Path as recorded by the run.
        progress : Progress, optional
            Progress, which is checked for cancellation while the file is read.

        Raises
        ------
        InputError
            If the run recorded no such file, or the file is missing, not a regular file, or has changed.
        """
        record = self._records.get(path)
        if record is None:
            raise InputError(path, "is not one of the files that the run read", remedy="Search again")
        try:
            state = _state(path)
            if self._checked.get(path) == state:
                return
            is_same = content_bytes(path) == record.size and file_digest(path, progress) == record.sha256
        except OSError as error:
            raise InputError(path, f"cannot be read ({error.strerror or error})", remedy="Restore the file, or search again") from error
        if not is_same:
            raise InputError(path, "has changed since the run read it", remedy="Restore the original file, or search again")
        self._checked[path] = state


def _state(path: Path) -> _State:
    """Return the attributes that change when a file is written: inode number, size and modification time in nanoseconds."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
