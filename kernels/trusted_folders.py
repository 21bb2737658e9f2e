"""The cache of the program: its folder, which no other user may change since it contains executable code, and writing of its files."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

__all__ = ["VARIABLE", "cache_folder", "is_owned_by_this_user", "untrusted_folder", "unused_folder_reason", "write_cached"]

VARIABLE = "PROTEOSCOPE_CACHE"


def cache_folder() -> Path:
    """Return the user's cache folder, which may not exist yet.

    If the environment variable `VARIABLE` names a folder in which no other user can change files, this folder is used. Otherwise it is the
    usual cache folder of the operating system.
    """
    named = os.environ.get(VARIABLE)
    if named and untrusted_folder(Path(named)) is None:
        return Path(named).absolute()
    import platformdirs  # not needed if the environment variable gives the folder

    return Path(platformdirs.user_cache_path("proteoscope", appauthor=False))


def unused_folder_reason() -> str:
    """Return the reason why the folder in the environment variable `VARIABLE` is not used; '' if it is used or not set."""
    named = os.environ.get(VARIABLE)
    folder = untrusted_folder(Path(named)) if named else None
    if folder is None:
        return ""
    return f"{VARIABLE}={named} is not used: other users can change files in {folder}. Give a private folder."


def untrusted_folder(path: Path, *, may_be_sticky: bool = False) -> Path | None:
    """Check a folder and its parents; return the first of them through which another user could replace files in the folder.

    Each parent must belong to this user or the system. Only this user, or a group without other members, may write to it, except for
    folders with the sticky bit, such as ``/tmp``. The folder itself must belong to this user or be closed to others. Folders that do not
    exist are not checked. Nothing is checked on Windows, where temporary and cache folders belong to each user.

    Parameters
    ----------
    path
        Path of the folder.
    may_be_sticky : bool
        True if a folder with the sticky bit is trusted even if others may write to it: they can add files, but not replace this user's
        files.

    Returns
    -------
    Path or None
        Folder that is not trusted; None if there is none.
    """
    if os.name != "posix":
        return None
    written, real = Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 - a link must stay one here
    for part in (*reversed(written.parents), written, *reversed(real.parents), real):
        try:
            status = part.lstat()
        except OSError:
            continue
        if not is_owned_by_this_user(status) or (
            not stat.S_ISLNK(status.st_mode) and _is_writable_by_others(status, is_last=part == real and not may_be_sticky)
        ):
            return part
    return None


def is_owned_by_this_user(status: os.stat_result) -> bool:
    """Return True if a file belongs to this user or to the system."""
    # In some containers, the owner of "/" owns the system's files.
    return status.st_uid in (0, os.geteuid(), Path("/").stat().st_uid)


def _is_writable_by_others(status: os.stat_result, *, is_last: bool) -> bool:
    if status.st_mode & stat.S_ISVTX and not is_last:
        return False
    return bool(status.st_mode & stat.S_IWOTH) or bool(status.st_mode & stat.S_IWGRP and not _is_group_of_this_user(status.st_gid))


def _is_group_of_this_user(group: int) -> bool:
    """Return True if a group is the personal group of this user: their primary group, with the same name as the user."""
    import grp  # not on Windows
    import pwd  # not on Windows

    try:
        return group == os.getegid() and grp.getgrgid(group).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


def write_cached(path: Path, content: bytes) -> None:
    """Write a file of a cache; other processes see the former file or the whole new one.

    Raises
    ------
    OSError
        If it cannot be written; nothing remains.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
