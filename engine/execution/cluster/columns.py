"""Columns of a work that workers open by memory map: they are never sent around by the scheduler.

An array that is a memory map of a file is named by that file, its offset, type and shape. A large one that lies in memory is written once
into a spool of the session, and is a file from then on. A worker that sees the same file under the same path opens it there: on this
machine, or in a folder that both share. To one that does not it is copied, once to each machine, under its digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import is_temporary, scratch_folder, storage_error, storage_errors, temporary_folder

__all__ = [
    "MAXIMUM_STORED_BYTES",
    "ColumnFile",
    "NamedColumns",
    "Spool",
    "blocks",
    "file_digest",
    "open_column",
    "store_folder",
    "trim_store",
]

_LEAST_BYTES = 1 << 18  # of an array that becomes a file
_BLOCK = 1 << 22
MAXIMUM_STORED_BYTES = 64 << 30
"""Of what was copied to a machine; the oldest files go first."""


class ColumnFile(NamedTuple):
    """A file with columns, as a worker recognises it: the same path, number, size and time of change are the same file.

    Attributes
    ----------
    path : absolute. number : of its inode. size : in bytes. changed : nanoseconds.
    """

    path: str
    number: int
    size: int
    changed: int

    @classmethod
    def at(cls, path: Path) -> ColumnFile:
        """The file as it is now."""
        found = path.stat()
        return cls(str(path), found.st_ino, found.st_size, found.st_mtime_ns)

    @property
    def is_here(self) -> bool:
        """Whether this machine sees it."""
        with contextlib.suppress(OSError):
            return ColumnFile.at(Path(self.path)) == self
        return False


class Spool:
    """A folder for arrays that lie in memory, which goes with the session. `folder`: where it is made; that for temporary files when None.

    Raises
    ------
    StorageError : the disk refuses.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._stack = ExitStack()
        if folder is None:
            self._path = self._stack.enter_context(scratch_folder())
        else:
            with storage_errors(folder):
                self._path = self._stack.enter_context(temporary_folder(folder / "workers"))
        self._n, self._lock = 0, threading.Lock()

    def write(self, array: NDArray) -> Path:
        """A file that holds the array, and nothing else."""
        with self._lock:
            self._n += 1
            path = self._path / f"{self._n}.column"
        try:
            with path.open("wb") as file:
                file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise storage_error(path, error) from error
        return path

    def remove(self, path: str) -> None:
        """A file of it is not needed any more."""
        if Path(path).parent == self._path:
            Path(path).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder; workers of this machine that have its files open keep what they have."""
        self._stack.close()


class NamedColumns:
    """Which arrays of a work are named, and by which files.

    Attributes
    ----------
    files : those that were named.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.files: dict[str, ColumnFile] = {}

    def name(self, array: NDArray) -> Mapping[str, Any] | None:
        """What stands for an array; None where it is small and is sent itself."""
        if array.nbytes < _LEAST_BYTES or array.dtype.hasobject:
            return None
        source = _mapped_file(array)
        if source is None:
            source = self._spool.write(array), 0
        path, offset = source
        file = self.files.get(str(path))
        if file is None:
            file = self.files[str(path)] = ColumnFile.at(path)
        kind = array.dtype.str if array.dtype.names is None else array.dtype.descr
        return {
            "file": list(file),
            "offset": offset,
            "dtype": kind,
            "shape": list(array.shape),
            "is_writable": bool(array.flags.writeable),
        }

    def remove(self) -> None:
        """Drop what was written for them."""
        for path in self.files:
            self._spool.remove(path)


def _mapped_file(array: NDArray) -> tuple[Path, int] | None:
    """The file that an array is a memory map of, and where in it the array begins; None of one that lies in memory."""
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
    """An array by what stands for it, opened by memory map.

    Parameters
    ----------
    folder : of files that were copied here. digests : of those, by their paths where they came from.

    Raises
    ------
    ValueError : it does not lie within its file. OSError : the file is gone.
    """
    file = ColumnFile(*named["file"])
    path = folder / digests[file.path] if file.path in digests else Path(file.path)
    descr = named["dtype"]
    kind = np.dtype(descr if isinstance(descr, str) else [tuple(one) for one in descr])
    shape, offset = tuple(int(n) for n in named["shape"]), int(named["offset"])
    n_bytes = kind.itemsize
    for n in shape:
        n_bytes *= n
    if kind.hasobject or offset < 0 or min(shape, default=1) < 1 or offset + n_bytes > file.size or path.stat().st_size != file.size:
        raise ValueError(f"{path.name} does not hold the column that is asked for")
    mapped: NDArray = np.memmap(path, kind, mode="c" if named["is_writable"] else "r", offset=offset, shape=shape)
    return np.asarray(mapped)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """A file, a few megabytes at a time, each with its offset."""
    with path.open("rb") as file:
        offset = 0
        while block := file.read(_BLOCK):
            yield offset, block
            offset += len(block)


def store_folder(cache: Path) -> Path:
    """Where a machine keeps the columns that were copied to it, within its cache.

    Raises
    ------
    StorageError : the disk refuses.
    """
    folder = cache / "workers"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise storage_error(folder, error) from error
    return folder


def trim_store(folder: Path, needed: int, most: int = MAXIMUM_STORED_BYTES) -> None:
    """Make room for so many bytes: what was used longest ago goes first.

    Raises
    ------
    StorageError : even the empty store has not so much room.
    """
    if needed > min(most, shutil.disk_usage(folder).free):
        raise StorageError(f"{folder}: there is no room for {needed / 1e9:.1f} GB of columns. Free some space, or share a folder.")
    stored = [entry for entry in os.scandir(folder) if entry.is_file() and not is_temporary(Path(entry))]
    found = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in stored)
    total = sum(size for _, size, _ in found)
    for _, size, path in found:
        if total + needed <= most:
            break
        Path(path).unlink(missing_ok=True)  # whoever has it open keeps it
        total -= size
