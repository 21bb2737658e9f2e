"""Columns of a workload as files that workers memory-map, so that the scheduler does not send them.

A reference to a memory-mapped array consists of its file, offset, type and shape. A large array in memory is written once to a folder of
the session. A worker that finds the same file under the same path (on this machine, or in a shared folder) opens it there. Otherwise the
file is copied, once to each machine, and stored under its digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import mmap
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import is_temporary, storage_errors
from proteoscope.engine.project.index_store import cache_folder

__all__ = ["MAXIMUM_STORED_BYTES", "ColumnFile", "NamedColumns", "file_digest", "open_column", "store_folder", "trim_store"]

_LEAST_BYTES = 1 << 18  # minimum bytes of an array that becomes a file
MAXIMUM_STORED_BYTES = 64 << 30
"""Maximum total size of the files that were copied to a machine, bytes; the least recently used files are removed first."""


class ColumnFile(NamedTuple):
    """File with columns, with the properties by which a worker recognises it.

    Attributes
    ----------
    path : str
        Absolute path.
    number : int
        Number of the inode.
    size : int
        Size in bytes.
    changed : int
        Time of the last change, ns.
    """

    path: str
    number: int
    size: int
    changed: int

    @classmethod
    def at(cls, path: Path) -> ColumnFile:
        """Return the file at a path in its current state."""
        result = path.stat()
        return cls(str(path), result.st_ino, result.st_size, result.st_mtime_ns)

    @property
    def is_unchanged(self) -> bool:
        """True if this machine has the file, unchanged, under this path."""
        with contextlib.suppress(OSError):
            return ColumnFile.at(Path(self.path)) == self
        return False


class NamedColumns:
    """References to the large arrays of a workload or round.

    Parameters
    ----------
    folder : Path
        Folder of the session, to which arrays in memory are written.

    Attributes
    ----------
    files : dict of str to ColumnFile
        Files with the arrays, by path.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: dict[str, ColumnFile] = {}

    def name(self, array: NDArray[Any]) -> Mapping[str, Any] | None:
        """Return a reference to an array, or None for a small array, which is sent as a value."""
        if array.nbytes < _LEAST_BYTES or array.dtype.hasobject:
            return None
        path, offset = _mapped_file(array) or (self._write(array), 0)
        if str(path) not in self.files:
            self.files[str(path)] = ColumnFile.at(path)
        kind = array.dtype.str if array.dtype.names is None else array.dtype.descr
        return {
            "file": list(self.files[str(path)]),
            "offset": offset,
            "dtype": kind,
            "shape": list(array.shape),
            "is_writable": bool(array.flags.writeable),
        }

    def _write(self, array: NDArray[Any]) -> Path:
        path = self._folder / f"{uuid4().hex}.column"
        with storage_errors(path), path.open("wb") as file:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return path

    def remove(self) -> None:
        """Remove the files that were written for these arrays; files that workers have opened stay readable."""
        for path in map(Path, self.files):
            if path.parent == self._folder:
                path.unlink(missing_ok=True)


def _mapped_file(array: NDArray[Any]) -> tuple[Path, int] | None:
    """Return the file that an array maps and the array's offset in it; None for an array in memory."""
    if not array.flags.c_contiguous:
        return None
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    # A private map that was written to differs from its file.
    if not (isinstance(root, np.memmap) and isinstance(root.base, mmap.mmap) and root.mode == "r" and root.filename):
        return None
    return Path(root.filename), root.offset + array.ctypes.data - root.ctypes.data


def open_column(named: Mapping[str, Any], folder: Path, digests: Mapping[str, str]) -> NDArray[Any]:
    """Memory-map an array, given its reference.

    Parameters
    ----------
    named : mapping
        Reference returned by `NamedColumns.name`.
    folder : Path
        Folder with the files that were copied to this machine.
    digests : mapping of str to str
        SHA-256 of the copied files, by their paths on the machine of the run.

    Raises
    ------
    ValueError
        If the array is not within its file.
    OSError
        If the file no longer exists.
    """
    file = ColumnFile(*named["file"])
    path = folder / digests[file.path] if file.path in digests else Path(file.path)
    descr = named["dtype"]
    kind = np.dtype(descr if isinstance(descr, str) else [tuple(field) for field in descr])
    shape, offset = tuple(int(n) for n in named["shape"]), int(named["offset"])
    n_bytes = kind.itemsize * math.prod(shape)
    if kind.hasobject or offset < 0 or min(shape, default=1) < 1 or offset + n_bytes > file.size or path.stat().st_size != file.size:
        raise ValueError(f"{path.name} does not contain the requested column")
    return np.asarray(np.memmap(path, kind, mode="c" if named["is_writable"] else "r", offset=offset, shape=shape))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def store_folder() -> Path:
    """Return the cache folder of this machine for copied files; create it if necessary.

    Raises
    ------
    StorageError
        If the folder cannot be created.
    """
    folder = cache_folder() / "workers"
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def trim_store(folder: Path, needed: int, most: int = MAXIMUM_STORED_BYTES) -> None:
    """Remove the least recently used files from the folder until there is space for another file.

    Parameters
    ----------
    folder : Path
        Folder with the copied files.
    needed : int
        Size of the file to add, bytes.
    most : int
        Maximum total size of the folder, bytes.

    Raises
    ------
    StorageError
        If the file does not fit even into the empty folder.
    """
    if needed > min(most, shutil.disk_usage(folder).free):
        raise StorageError(f"{folder}: {needed / 1e9:.1f} GB of columns do not fit. Free some space, or share a folder.")
    stored = [entry for entry in os.scandir(folder) if entry.is_file() and not is_temporary(Path(entry))]
    result = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in stored)
    total = sum(size for _, size, _ in result)
    for _, size, path in result:
        if total + needed <= most:
            break
        Path(path).unlink(missing_ok=True)  # processes that have it open can still read it
        total -= size
