"""Writing of files that appear only when complete, and temporary files and folders that are removed even if the process is killed.

A file is written under a temporary name next to its target, flushed to the disk, and renamed over it. Each temporary file or folder has a
lock file, whose lock the operating system releases when the process ends::

    FOLDER/.NAME.RANDOM-CHECK.partial         the temporary file or folder
    FOLDER/.NAME.RANDOM-CHECK.partial.lock    its lock, created before it and removed after it

The next process that writes into FOLDER removes the temporary files whose lock is free. CHECK is computed from NAME and RANDOM, so that
similarly named files of other programs are never removed.
"""

import contextlib
import errno
import gzip
import io
import os
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from proteoscope.engine.errors import StorageError
from proteoscope.engine.locked_files import open_locked, release_locked
from proteoscope.engine.shared_folders import make_folder, pinned_folder, private_folder, real_path, sibling_path
from proteoscope.kernels.trusted_folders import untrusted_folder

__all__ = [
    "atomic_file",
    "atomic_path",
    "is_packed_name",
    "is_temporary",
    "is_there",
    "nearest_folder",
    "open_regular",
    "put_in_place",
    "read_beginning",
    "remove_leftovers",
    "scratch_folder",
    "storage_error",
    "storage_errors",
    "sync_file",
    "sync_folder",
    "temporary_folder",
    "temporary_path",
    "temporary_sibling",
]

_GZIP_MAGIC = b"\x1f\x8b"
_PACKING_LEVEL = 6  # gzip's usual level
_BUFFER_BYTES = 1 << 20
_SUFFIX, _LOCK = ".partial", ".lock"
_NAME_BYTES = 80  # maximum bytes of the target's name in the temporary name, since some file systems limit names to 143 bytes
_RANDOM_BYTES, _CHECK_DIGITS = 6, 8
_TEMPORARY = re.compile(rf"\..+\.[0-9a-f]{{{2 * _RANDOM_BYTES}}}(-[0-9a-f]{{{_CHECK_DIGITS}}})?\.partial(\.lock)?", re.DOTALL)
_LEFTOVER = re.compile(rf"\.(.+)\.([0-9a-f]{{{2 * _RANDOM_BYTES}}})-([0-9a-f]{{{_CHECK_DIGITS}}})\.partial\.lock", re.DOTALL)
_SECONDS_BETWEEN_SWEEPS = 0.2

_REASONS = {
    errno.ENOSPC: ("the disk is full", "Free some space and try again"),
    errno.EDQUOT: ("your disk quota is used up", "Free some space and try again"),
    errno.EFBIG: ("the file grew beyond the limit for files here", "Raise the limit (ulimit -f) or choose another disk"),
    errno.EROFS: ("the disk is read-only", "Choose a folder that you may write to"),
    errno.EACCES: ("you may not write here", "Choose a folder that you may write to"),
    errno.EPERM: ("you may not write here", "Choose a folder that you may write to"),
    errno.EIO: ("the disk reports an error", "Copy its content to another disk"),
    errno.ENOTDIR: ("a part of this path is a file, not a folder", "Choose another path"),
    errno.EEXIST: ("a file with this name already exists", "Choose another path"),
    errno.EISDIR: ("this is a folder, not a file", "Choose another path"),
    errno.ENAMETOOLONG: ("the name is too long", "Choose a shorter one"),
    errno.EMFILE: ("too many files are open", "Raise the limit of open files (ulimit -n)"),
    errno.ENFILE: ("too many files are open on this machine", "Try again when other programs have ended"),
    errno.ELOOP: ("this is a symbolic link where none is allowed, or its path contains one of another user", "Remove it"),
}

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
"""Error numbers that only failed writes cause."""


def storage_error(path: Path, error: OSError) -> StorageError:
    """Return a `StorageError` for an OSError about `path`, with a remedy."""
    reason, remedy = _REASONS.get(error.errno or 0, (error.strerror or str(error), ""))
    return StorageError(f"{path}: {reason}" + (f". {remedy}." if remedy else "."))


@contextmanager
def storage_errors(path: Path, *, only_disk: bool = False) -> Iterator[None]:
    """Convert an OSError in the `with` block into a `StorageError` about `path`.

    With `only_disk`, only errors of the disk (full, read-only, defective) are converted. Use it for blocks that also run code of the
    caller, since other errors of this code are not about `path`.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None and " requested and " in str(error):
            # NumPy's message about an incomplete write.
            raise storage_error(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))) from error
        if only_disk and error.errno not in _DISK_ERRORS:
            raise
        raise storage_error(path, error) from error


def is_there(path: Path) -> bool:
    """Return True if a path exists; False also for invalid names, for which `Path.exists` raises an error."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def nearest_folder(path: Path) -> Path:
    """Return `path` if it is a folder, otherwise its nearest existing parent."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path.cwd())


def is_temporary(path: Path) -> bool:
    """Return True if a path has a name that the program gives to temporary files, temporary folders or their locks."""
    return _TEMPORARY.fullmatch(path.name) is not None


def open_regular(path: Path, *, follows_link: bool = True) -> BufferedReader:
    """Open a regular file for reading; reject pipes (which would block), devices, folders and, unless `follows_link`, links.

    Raises
    ------
    OSError
        If the file cannot be opened, or is not a regular file.
    """
    no_link = 0 if follows_link else getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | no_link)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "this is a pipe or a device, not a file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_beginning(path: Path, n: int) -> bytes:
    """Return the first `n` bytes of a regular file, or fewer if it is shorter; the bytes are unpacked if the content of the file is gzip.

    Raises
    ------
    OSError
        If the file cannot be opened or read, is not a regular file, or has damaged gzip data.
    """
    with open_regular(path) as file:
        if file.peek(2)[:2] != _GZIP_MAGIC:
            return file.read(n)
        try:
            return gzip.GzipFile(fileobj=file).read(n)
        except (EOFError, zlib.error) as error:
            raise OSError(errno.EIO, "the gzip data are damaged", str(path)) from error


def sync_file(path: Path) -> None:
    """Write the contents of a file that the system still buffers to the disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Write the entries of a folder that the system still buffers to the disk (Windows does this itself)."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_sibling(path: Path) -> Path:
    """Return a new temporary path in the folder of `path`, without a lock file.

    If the process is killed, the file remains: `remove_leftovers` removes only files with a lock file.
    """
    return path.with_name(f".{_shortened(path.name)}.{os.urandom(_RANDOM_BYTES).hex()}{_SUFFIX}")


@contextmanager
def temporary_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path` for a file or folder, which is removed after the `with` block unless it was renamed.

    Use `put_in_place` to rename it to `path`. The folder of `path` is created if it does not exist, and leftovers of killed processes in it
    are removed first. If other users can change this folder, the temporary path is in a private folder, which they cannot read or replace.

    Raises
    ------
    OSError
        If the folder is not writable, or the path contains a link of another user.
    """
    make_folder(path.parent)
    with pinned_folder(path.parent) as folder:
        _sweep_if_due(folder)
        temporary, lock = _reserve(folder / path.name)
        try:
            if folder == path.parent:
                yield temporary
            else:
                with private_folder(temporary) as private:
                    yield private / temporary.name
        finally:
            _remove(temporary)
            if lock is not None:
                release_locked(lock)
                _remove(_lock_path(temporary))


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a file or folder from `temporary_path` to `path`; an existing file is replaced, a folder is not.

    Raises
    ------
    OSError
        If the disk is full or cannot be written.
    """
    target = sibling_path(temporary, path.name)
    temporary.replace(target)
    sync_folder(target.parent)


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Yield a new folder next to `path` that only this user can read, with a temporary name; it is removed after the `with` block.

    Raises
    ------
    OSError
        If the folder cannot be created.
    """
    with temporary_path(path) as folder:
        folder.mkdir(mode=0o700)
        yield folder


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a new folder in the temporary folder of the system; it is removed after the `with` block.

    Raises
    ------
    StorageError
        If the folder cannot be created, or other users can replace its content.
    """
    with contextlib.ExitStack() as stack:
        with storage_errors(Path(os.environ.get("TMPDIR") or os.curdir)):
            position = Path(tempfile.gettempdir())
        if (part := untrusted_folder(position / "proteoscope")) is not None:
            raise StorageError(f"{part}: other users can replace temporary files here. Set TMPDIR to a private folder.")
        with storage_errors(position):
            folder = stack.enter_context(temporary_folder(position / "proteoscope"))
        yield folder


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files and folders that killed processes of this user left in `folder`.

    Only temporary files of this program whose lock is free are removed, since running processes hold their locks. Links are not followed.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if _is_lock_name(entry.name))
    except OSError:
        return
    for name in names:
        with contextlib.suppress(OSError):
            _remove_leftover(folder / name)


def _remove_leftover(lock_path: Path) -> None:
    """Remove a temporary file or folder and its lock file, unless it belongs to a running process or to another user."""
    lock = open_locked(lock_path, create=False)
    if lock is None:
        return
    temporary = lock_path.with_name(lock_path.name.removesuffix(_LOCK))
    is_gone = False
    try:
        if not hasattr(os, "geteuid") or os.fstat(lock).st_uid == os.geteuid():
            _remove(temporary)
            is_gone = not os.path.lexists(temporary)
    finally:
        release_locked(lock)
    if is_gone:
        _remove(lock_path)


_last_sweep: tuple[Path | None, float] = (None, 0.0)


def _sweep_if_due(folder: Path) -> None:
    """Call `remove_leftovers`, unless this was done recently for the same folder.

    Listing a large folder for each of many files would be slow.
    """
    global _last_sweep
    swept, swept_at = _last_sweep
    if swept != folder or time.monotonic() - swept_at > _SECONDS_BETWEEN_SWEEPS:
        remove_leftovers(folder)
        _last_sweep = folder, time.monotonic()


def _reserve(path: Path) -> tuple[Path, int | None]:
    """Return a new temporary path next to `path`, and the file descriptor of its lock.

    On file systems without locks, None is returned instead of the descriptor; other processes then never remove the temporary file.
    """
    while True:
        name, random = _shortened(path.name), os.urandom(_RANDOM_BYTES).hex()
        temporary = path.with_name(f".{name}.{random}-{_check(name, random)}{_SUFFIX}")
        lock_path = _lock_path(temporary)
        try:
            lock = open_locked(lock_path)
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            _remove(lock_path)
            return temporary_sibling(path), None
        if lock is None:  # another process is just removing it as a leftover
            continue
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), lock_path.lstat()):
                return temporary, lock
        release_locked(lock)


def _remove(path: Path) -> None:
    """Remove a file, link or folder, but not the targets of links; ignore errors."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _lock_path(temporary: Path) -> Path:
    return temporary.with_name(temporary.name + _LOCK)


def _shortened(name: str) -> str:
    """Return the beginning of a name, cut between characters."""
    return os.fsencode(name)[:_NAME_BYTES].decode("utf-8", "ignore").strip(".") or "_"


def _check(name: str, random: str) -> str:
    return f"{zlib.crc32(f'proteoscope {name} {random}'.encode()):0{_CHECK_DIGITS}x}"


def _is_lock_name(name: str) -> bool:
    match = _LEFTOVER.fullmatch(name)
    if match is None:
        return False
    try:
        return _check(match[1], match[2]) == match[3]
    except UnicodeEncodeError:  # the name is not valid UTF-8
        return False


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write; the file is renamed to `path` if the `with` block succeeds, and removed otherwise.

    Use it for code that takes a path and opens the file itself. The folder of `path` is created if missing. If `path` is a link, its
    target is written, unless it belongs to another user. An existing file at `path` is unchanged until the new one is complete.

    Raises
    ------
    StorageError
        If the disk is full or not writable, `path` cannot be a file, or it contains a link of another user.
    """
    with storage_errors(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        # Renaming would replace the special file by a regular one.
        raise StorageError(f"{path}: this is a device or a pipe, not a file. Choose another path.")
    with storage_errors(path):
        # Keep a link and replace its target.
        target = real_path(path) if path.is_symlink() else path
    with contextlib.ExitStack() as stack:
        with storage_errors(path):
            temporary = stack.enter_context(temporary_path(target))
        with storage_errors(path, only_disk=True):
            yield temporary
        with storage_errors(path):
            sync_file(temporary)
            put_in_place(temporary, target)


def is_packed_name(path: str | Path) -> bool:
    """Return True if a file with this name is written gzipped: it ends with ``.gz``.

    >>> is_packed_name("hits.tsv.gz"), is_packed_name("HITS.TSV.GZ"), is_packed_name("hits.tsv")
    (True, True, False)
    """
    return str(path).lower().endswith(".gz")


@contextmanager
def atomic_file(path: Path, *, as_is: bool = False) -> Iterator[BinaryIO]:
    """Yield a buffered binary file to write, which becomes `path` if the block succeeds. See `atomic_path`.

    If the name of the file ends with ``.gz``, the content is compressed, unless `as_is`. Equal content gives equal bytes: the gzip header
    has neither name nor time.

    Raises
    ------
    StorageError
        If the disk is full or cannot be written.
    """
    with atomic_path(path) as temporary:
        with storage_errors(path):
            opened: BinaryIO = temporary.open("xb", buffering=_BUFFER_BYTES)
        file = opened if as_is or not is_packed_name(path) else _packing(opened)
        try:
            yield file
            file.close()
            opened.close()
        except BaseException:
            # Closing flushes the buffer again, which fails on a full disk; the descriptor is released in any case.
            for unfinished in (file, opened):
                with contextlib.suppress(OSError):
                    unfinished.close()
            raise


def _packing(file: BinaryIO) -> BinaryIO:
    """Return a file that writes gzipped data to `file`, which the caller closes after it."""
    return io.BufferedWriter(gzip.GzipFile("", "wb", _PACKING_LEVEL, file, mtime=0), _BUFFER_BYTES)
