"""Columns of a workload as files that workers memory-map: the scheduler never sends them.

A memory-mapped array is named by its file, offset, type and shape. A large one in memory is written once to a folder of the session.
A worker that sees the same file under the same path opens it there: on this machine, or in a shared folder. Otherwise it is copied, once to
each machine, under its digest.
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
from proteoscope.engine.project.cache import cache_folder

__all__ = [
    "MAXIMUM_STORED_BYTES",
    "ColumnFile",
    "NamedColumns",
    "file_digest",
    "open_column",
    "store_folder",
    "trim_store",
]

_LEAST_BYTES = 1 << 18  # of an array that becomes a file
MAXIMUM_STORED_BYTES = 64 << 30
"""Size of all files that were copied to a machine; those used longest ago are removed first."""


class ColumnFile(NamedTuple):
    """A file with columns, by which a worker recognises it.

    Attributes
    ----------
    path : str
        Absolute.
    number : int
        Of its inode.
    size : int
        Bytes.
    changed : int
        Time of its last change (ns).
    """

    path: str
    number: int
    size: int
    changed: int

    @classmethod
    def at(cls, path: Path) -> ColumnFile:
        """Return the file as it is now."""
        result = path.stat()
        return cls(str(path), result.st_ino, result.st_size, result.st_mtime_ns)

    @property
    def is_here(self) -> bool:
        """True if this machine sees it."""
        with contextlib.suppress(OSError):
            return ColumnFile.at(Path(self.path)) == self
        return False


class NamedColumns:
    """Names of the large arrays of a workload or round.

    Parameters
    ----------
    folder : Path
        Folder of the session, to which arrays that are in memory are written.

    Attributes
    ----------
    files : dict of str to ColumnFile
        Their files by path.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files: dict[str, ColumnFile] = {}

    def name(self, array: NDArray) -> Mapping[str, Any] | None:
        """Return what names an array, or None for a small one, which is sent itself."""
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

    def _write(self, array: NDArray) -> Path:
        path = self._folder / f"{uuid4().hex}.column"
        with storage_errors(path), path.open("wb") as file:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return path

    def remove(self) -> None:
        """Remove what was written for them; files that workers have open stay readable to them."""
        for path in map(Path, self.files):
            if path.parent == self._folder:
                path.unlink(missing_ok=True)


def _mapped_file(array: NDArray) -> tuple[Path, int] | None:
    """Return the file that an array maps and its offset there, or None for an array in memory."""
    if not array.flags.c_contiguous:
        return None
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    # A map that was written to privately is not what the file holds.
    if not (isinstance(root, np.memmap) and isinstance(root.base, mmap.mmap) and root.mode == "r" and root.filename):
        return None
    return Path(root.filename), root.offset + array.ctypes.data - root.ctypes.data


def open_column(named: Mapping[str, Any], folder: Path, digests: Mapping[str, str]) -> NDArray:
    """Memory-map a named array.

    Parameters
    ----------
    named : mapping
        Result of `NamedColumns.name`.
    folder : Path
        Store of the files that were copied to this machine.
    digests : mapping of str to str
        Their digests, by path in the run.

    Raises
    ------
    ValueError
        The array does not lie within its file.
    OSError
        The file no longer exists.
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
    """Make the folder of this machine's cache for columns that are copied to it.

    Raises
    ------
    StorageError
        The disk refuses.
    """
    folder = cache_folder() / "workers"
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def trim_store(folder: Path, needed: int, most: int = MAXIMUM_STORED_BYTES) -> None:
    """Remove the files that were used longest ago until another fits.

    Parameters
    ----------
    folder : Path
        The store.
    needed : int
        Bytes of the file to come.
    most : int
        Bytes of the whole store.

    Raises
    ------
    StorageError
        It does not fit even into the empty store.
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
