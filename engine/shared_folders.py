"""Safe access to folders in which other users can rename files, through an open file descriptor of the folder instead of its name.

Between the check and the use of a path, another user who may write in one of its parent folders can replace that folder by a link. Where
this is possible, the folder is opened, its real path is compared with the checked path, and its files are accessed as
``/proc/self/fd/NUMBER/NAME``, which leads to the opened folder even if its name has been replaced. This works on Linux only; other systems
use names.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proteoscope.kernels.trusted_folders import is_owned_by_this_user, untrusted_folder

__all__ = ["make_folder", "pinned_folder", "private_folder", "real_path", "sibling_path"]

_OPENED = Path("/proc/self/fd")
_MAXIMUM_LINKS = 40  # the limit of Linux
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)


def real_path(path: Path) -> Path:
    """Return a path in which links are resolved; links of this user and of the system are followed.

    Raises
    ------
    OSError
        If a link in the path belongs to another user, who could redirect it.
    """
    if os.name != "posix":
        return Path(os.path.realpath(path))
    parts, result, n_links = list(path.absolute().parts[:0:-1]), Path("/"), 0
    while parts:
        part = parts.pop()
        if part == "..":
            result = result.parent
            continue
        target = _link_target(result / part)
        if target is None:
            result /= part
            continue
        n_links += 1
        if n_links > _MAXIMUM_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        result = Path("/") if target.is_absolute() else result
        parts += [part for part in reversed(target.parts) if part != "/"]
    return result


def _link_target(path: Path) -> Path | None:
    """Return the target of a link, or None for other paths; raise OSError if the link belongs to another user."""
    if not hasattr(os, "O_PATH"):
        if not path.is_symlink():
            return None
        _refuse_other(path, path.lstat())
        return path.readlink()
    try:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    except OSError:  # a missing or unreadable path is not a link
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISLNK(status.st_mode):
            return None
        _refuse_other(path, status)
        return Path(os.readlink("", dir_fd=descriptor))
    finally:
        os.close(descriptor)


def _refuse_other(path: Path, status: os.stat_result) -> None:
    if not is_owned_by_this_user(status):
        raise OSError(errno.ELOOP, "the path contains a link of another user", str(path))


@contextmanager
def pinned_folder(folder: Path) -> Iterator[Path]:
    """Yield a path to an existing folder; other users cannot redirect this path to another folder during the `with` block.

    The given path is yielded unchanged in two cases: only this user can change the parent folders and replace files in the folder; or the
    system has no paths of open descriptors (``/proc/self/fd``), so that there is no protection.

    Raises
    ------
    OSError
        If the folder cannot be opened, its path contains another user's link, or it was replaced while it was being opened.
    """
    if untrusted_folder(folder, may_be_sticky=True) is None or not _OPENED.is_dir():
        yield folder
        return
    expected = real_path(folder)
    descriptor = os.open(expected, os.O_RDONLY | _NO_LINK)
    try:
        opened = _OPENED / str(descriptor)
        if opened.readlink() != expected:
            raise OSError(errno.ELOOP, "another user replaced a folder of the path", str(folder))
        yield opened
    finally:
        os.close(descriptor)


@contextmanager
def private_folder(folder: Path) -> Iterator[Path]:
    """Create a folder that only this user can read, and yield a path to it that other users cannot redirect (see `pinned_folder`).

    Raises
    ------
    OSError
        If the folder exists, cannot be created, or was replaced during creation.
    """
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | _NO_LINK)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise OSError(errno.ELOOP, "another user replaced a temporary folder", str(folder))
        yield _OPENED / str(descriptor)
    finally:
        os.close(descriptor)


def sibling_path(temporary: Path, name: str) -> Path:
    """Return the path with the file name `name` in the folder of the temporary path `temporary`."""
    return (temporary.parent / ".." if temporary.parent.parent == _OPENED else temporary.parent) / name


def make_folder(folder: Path) -> None:
    """Create a folder and its parent folders unless they exist.

    Raises
    ------
    OSError
        If the folder cannot be created, or its path contains another user's link.
    """
    if not folder.is_dir():
        above = folder.absolute().parent
        make_folder(above)
        with pinned_folder(above) as opened:
            (opened / folder.name).mkdir(exist_ok=True)
