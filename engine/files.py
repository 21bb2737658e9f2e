"""Files that appear whole or not at all: written under a temporary name beside the target, flushed to the disk, renamed over it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from proteoscope.engine.errors import StorageError

__all__ = [
    "atomic_file",
    "atomic_path",
    "is_temporary",
    "is_there",
    "nearest_folder",
    "storage_error",
    "storage_errors",
    "sync_file",
    "sync_folder",
    "temporary_sibling",
]

_SUFFIX = ".partial"

_REASONS = {
    errno.ENOSPC: ("the disk is full", "Free some space and try again"),
    errno.EDQUOT: ("your disk quota is used up", "Free some space and try again"),
    errno.EFBIG: ("the file grew beyond the limit for files here", "Raise the limit (ulimit -f) or choose another disk"),
    errno.EROFS: ("the disk is read-only", "Choose a folder that you may write to"),
    errno.EACCES: ("you may not write here", "Choose a folder that you may write to"),
    errno.EPERM: ("you may not write here", "Choose a folder that you may write to"),
    errno.EIO: ("the disk reports a fault", "Copy what is on it to another disk"),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "Choose another path"),
    errno.EEXIST: ("a file of this name is in the way", "Choose another path"),
    errno.EISDIR: ("this is a folder, not a file", "Choose another path"),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter one"),
    errno.ELOOP: ("this is a symbolic link, where none may be", "Remove it"),
}

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
"""What only a write that the disk refused can raise, whoever called it."""


def storage_error(path: Path, error: OSError) -> StorageError:
    """The operating system's answer about `path`, as an error that tells the user what to do."""
    reason, remedy = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
    return StorageError(f"{path}: {reason}" + (f". {remedy}." if remedy else "."))


@contextmanager
def storage_errors(path: Path, *, only_disk: bool = False) -> Iterator[None]:
    """Turn an OSError of the block into a `StorageError` about `path`.

    With `only_disk` just those that say that the disk refused (full, read-only, faulty): for blocks that also run a caller's code, whose
    other errors are not about `path`.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None and " requested and " in str(error):
            # What NumPy says when the disk cuts a write short.
            raise storage_error(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
        if only_disk and error.errno not in _DISK_ERRORS:
            raise
        raise storage_error(path, error) from error


def is_there(path: Path) -> bool:
    """Whether something lies at a path; also of names that no file can have, about which `Path.exists` raises."""
    try:
        return path.exists()
    except OSError:
        return False


def nearest_folder(path: Path) -> Path:
    """The folder at `path`, or that in which it will be made: the nearest that is there."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path.cwd())


def is_temporary(path: Path) -> bool:
    """Whether `path` has the name of a file (or folder) that was being written."""
    return path.name.startswith(".") and path.name.endswith(_SUFFIX)


def sync_file(path: Path) -> None:
    """Wait until the contents of a file are on the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk (where the system can: Windows does it by itself)."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_sibling(path: Path) -> Path:
    """A new name in the folder of `path` that `is_temporary` knows."""
    return path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}{_SUFFIX}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path to write; it becomes `path` when the block ends well, and is removed when it does not.

    For writers that open files by themselves. The folder of `path` is made where it is missing. Of a link, what it leads to is written. A
    file that stood at `path` stays as it was until the new one is whole.

    Raises
    ------
    StorageError : the disk refused, or `path` is no place for a file.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        # Renaming would put a file in its place.
        raise StorageError(f"{path}: this is a device or a pipe, not a file. Choose another path.")
    # A link stays one: what it leads to is replaced.
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    temporary = temporary_sibling(target)
    try:
        with storage_errors(path, only_disk=True):
            yield temporary
        with storage_errors(path):
            sync_file(temporary)
            temporary.replace(target)
            sync_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A buffered binary file to write, which becomes `path` when the block ends well. See `atomic_path`.

    Raises
    ------
    StorageError : the disk refused.
    """
    with atomic_path(path) as temporary:
        with storage_errors(path):
            file = temporary.open("xb", buffering=1 << 20)
        try:
            yield file
            file.close()
        except BaseException:
            # A close flushes, and on a full disk fails again; the descriptor is let go all the same.
            with contextlib.suppress(OSError):
                file.close()
            raise
