"""Exclusive file locks of the operating system, which are released when the process that holds them ends in any way."""

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

__all__ = ["NO_LINK", "open_locked", "release_locked"]

NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags of `os.open` that reject symbolic links and do not wait for pipes."""

_held: set[int] = set()


def open_locked(path: Path, *, create: bool = True) -> int | None:
    """Open a file and lock it without waiting.

    The lock also excludes other threads of this process. A forked child process does not inherit it.

    Parameters
    ----------
    path : Path
        File to lock.
    create : bool
        True to create the file if it does not exist.

    Returns
    -------
    int or None
        File descriptor for `release_locked`; None if another thread or process holds the lock.

    Raises
    ------
    OSError
        If the file cannot be opened, is not a regular file, or its file system has no locks.
    """
    # Refuse links: with a link of another user, the target of the link would be written.
    descriptor = os.open(path, os.O_RDWR | NO_LINK | (os.O_CREAT if create else 0), 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "this is a pipe or a device, not a file", str(path))
        _lock_descriptor(descriptor)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    _held.add(descriptor)
    return descriptor


def release_locked(descriptor: int, *, empty: bool = False) -> None:
    """Release a lock; do nothing in a forked child process, which does not hold it.

    Parameters
    ----------
    descriptor : int
        Descriptor returned by `open_locked`.
    empty : bool
        True to empty the file first.
    """
    if descriptor not in _held:
        return
    _held.discard(descriptor)
    try:
        if empty:
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _lock_descriptor(descriptor: int) -> None:
        """Lock one byte far beyond the text of the file, since other processes cannot read locked bytes on Windows."""
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(str(error)) from error
else:
    import fcntl

    def _lock_descriptor(descriptor: int) -> None:
        """Lock the whole file. Each opening of a file has a separate lock, so that two threads also exclude each other."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _forget_after_fork() -> None:
    """Close inherited descriptors in a forked child process, which would otherwise hold the locks after the parent process has ended."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
