"""Folders in which only this user can create, rename or replace files: what lies in the cache is run, and links elsewhere are followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["VARIABLE", "cache_folder", "is_of_this_user", "untrusted_folder", "why_not_used"]

VARIABLE = "PROTEOSCOPE_CACHE"


def cache_folder() -> Path:
    """Return the user's cache, which may not exist yet: the folder that `VARIABLE` names, unless other users can change files there."""
    named = os.environ.get(VARIABLE)
    if named and untrusted_folder(Path(named)) is None:
        return Path(named).absolute()
    import platformdirs  # not needed where the variable names the folder

    return Path(platformdirs.user_cache_path("proteoscope", appauthor=False))


def why_not_used() -> str:
    """Return why the folder named by `VARIABLE` is not used, or ''."""
    named = os.environ.get(VARIABLE)
    folder = untrusted_folder(Path(named)) if named else None
    if folder is None:
        return ""
    return f"{VARIABLE}={named} is not used: other users can change files in {folder}. Name a folder of your own."


def untrusted_folder(path: Path, *, may_be_sticky: bool = False) -> Path | None:
    """Return the first part of a path through which another user could replace files in the folder, or None.

    A part must belong to this user or the system. Only this user, or a group that has no other member, may write in it; in a folder with
    the sticky bit, as ``/tmp``, others may. The last part must be this user's, or closed to others. Parts that do not exist are not
    checked. Windows, whose temporary and cache folders are each user's own, is not checked.

    Parameters
    ----------
    path
        Path.
    may_be_sticky : bool
        Whether others may write in the last part too if it has the sticky bit: they can add files, but not replace those of this user.

    Returns
    -------
    Path or None
    """
    if os.name != "posix":
        return None
    written, real = Path(os.path.abspath(path)), Path(os.path.realpath(path))  # noqa: PTH100 - a link must stay one here
    for part in (*reversed(written.parents), written, *reversed(real.parents), real):
        try:
            status = part.lstat()
        except OSError:
            continue
        if not is_of_this_user(status) or (
            not stat.S_ISLNK(status.st_mode) and _is_writable_by_others(status, is_last=part == real and not may_be_sticky)
        ):
            return part
    return None


def is_of_this_user(status: os.stat_result) -> bool:
    """Return True if a file belongs to this user or to the system."""
    # In some containers the system's files belong to the user to whom "/" does.
    return status.st_uid in (0, os.geteuid(), Path("/").stat().st_uid)


def _is_writable_by_others(status: os.stat_result, *, is_last: bool) -> bool:
    if status.st_mode & stat.S_ISVTX and not is_last:
        return False
    return bool(status.st_mode & stat.S_IWOTH) or bool(status.st_mode & stat.S_IWGRP and not _is_group_of_this_user(status.st_gid))


def _is_group_of_this_user(group: int) -> bool:
    """Return True for a group that the system makes for one user: it has the user's name and is the user's first."""
    import grp  # not on Windows
    import pwd  # not on Windows

    try:
        return group == os.getegid() and grp.getgrgid(group).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
