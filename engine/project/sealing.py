"""The key by which the program knows again what it wrote itself: a secret of the user's, in the user's cache.

What a stopped run has computed goes into the results when it goes on. A checksum would tell damage, but anybody can make one, and a project
may come from a stranger: so each record is sealed with this key, and what was not sealed with it is not used.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from proteoscope.engine.files import temporary_path
from proteoscope.engine.project.cache import cache_folder

__all__ = ["KEY_BYTES", "sealing_key"]

KEY_BYTES = 32
_NAME = "resume.key"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def sealing_key(*, make: bool = False) -> bytes | None:
    """The user's key (32 bytes); None where there is none, or where the disk refuses to keep one.

    Parameters
    ----------
    make : make one where there is none.
    """
    path = cache_folder() / _NAME
    key = _read(path)
    if key is None and make:
        with contextlib.suppress(OSError):
            _make(path)
        key = _read(path)
    return key


def _read(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_LINK)
    except OSError:
        return None
    try:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        key = os.read(descriptor, KEY_BYTES + 1) if is_file else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return key if len(key) == KEY_BYTES else None


def _make(path: Path) -> None:
    """Make a key, whole or not at all; of two processes that do, the first one's stays."""
    with temporary_path(path) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
        _settle(temporary, path)


def _settle(temporary: Path, path: Path) -> None:
    try:
        if path.is_file() and path.stat().st_size == KEY_BYTES:
            return
        path.unlink(missing_ok=True)  # what is of another size is no key
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    except OSError:  # a disk without links
        temporary.replace(path)
