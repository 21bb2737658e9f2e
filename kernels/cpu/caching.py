"""Location of Numba's cache of compiled kernels."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from platformdirs import user_cache_path

from proteoscope.kernels.trusted_folders import cache_folder, untrusted_folder, unused_folder_reason

__all__ = ["note_uncached", "settle_cache", "uncached_reason"]

_PREFIX = "proteoscope-kernels-"  # prefix of the cache folder in the folder for temporary files
_reasons: list[str] = []


def uncached_reason() -> str:
    """Return the reason why compiled kernels are not cached in the intended folder; '' if they are cached there."""
    return _reasons[0] if _reasons else ""


def note_uncached(reason: str) -> None:
    """Note why a compiled kernel could not be cached, for `uncached_reason`."""
    _reasons.append(reason)


def settle_cache() -> None:
    """Choose another cache folder if Numba can use neither the configured folder, nor the folder of these files, nor the user's cache.

    Without this, Numba would fail, or run code that another user put into the folder. If nothing else is possible, the cache is a private
    folder of the user in the system's temporary folder. Nothing is cached next to installed files, since uninstalling would not remove it.
    """
    named, folder = os.environ.get("NUMBA_CACHE_DIR"), Path(__file__).resolve().parent
    if named and (part := untrusted_folder(Path(named))) is not None:
        _reasons.append(f"NUMBA_CACHE_DIR={named} is not used, since other users can change files in {part}")
        del os.environ["NUMBA_CACHE_DIR"]
        named = None
    folders = [Path(named)] if named else []
    if (folder.parents[1] / "pyproject.toml").is_file():  # a checkout
        folders += [folder / "__pycache__", user_cache_path("numba", appauthor=False)]
    first = next(filter(_is_writable, folders), None)  # Numba uses the first writable folder
    if first is not None and untrusted_folder(first) is None:
        return
    if reason := unused_folder_reason():
        _reasons.append(reason)
    retained = cache_folder() / "kernels"
    if not _is_writable(retained) or untrusted_folder(retained) is not None:
        retained = _temporary_folder()
        _reasons.append(f"no folder for compiled kernels is writable; they are stored in {retained}")
    os.environ["NUMBA_CACHE_DIR"] = str(retained)


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _temporary_folder() -> Path:
    """Return a folder to which no other user can write, since files in it are executed."""
    position = Path(tempfile.gettempdir())
    if untrusted_folder(position / _PREFIX) is not None:  # another user could change the folder
        position = Path("/tmp")
    if hasattr(os, "getuid"):
        folder = position / f"{_PREFIX}{os.getuid()}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            result = folder.lstat()
            if stat.S_ISDIR(result.st_mode) and result.st_uid == os.getuid() and not result.st_mode & 0o022 and _is_writable(folder):
                return folder
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=position))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
