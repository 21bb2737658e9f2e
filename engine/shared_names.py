"""Removal of folder paths, user names and machine names from file names and texts that are passed on to other people."""

import getpass
import os
import re
import socket
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["distinct_names", "relative_name", "without_folders", "without_private"]

_LEAST_NAME = 3  # shorter names of users and machines are not removed, since they often occur within words
# A path begins after a space or bracket, and is removed up to its last separator: the file name remains, since it is informative.
_PATH = re.compile(r"(?<![\w.:/\\<])(?:[A-Za-z]:[\\/]|\\\\|~?/)(?:[^\s\\/:*?\"'<>|]+(?: [^\s\\/:*?\"'<>|]+)*[\\/])+")


def distinct_names(paths: Sequence[str | Path]) -> tuple[str, ...]:
    """Return a name for each path: the file name, preceded by its parent folders as far as needed to distinguish it from the other names.

    >>> distinct_names(["/data/a/run.mzML", "/data/b/run.mzML", "/data/a/other.mzML"])
    ('a/run.mzML', 'b/run.mzML', 'other.mzML')
    """
    parts = {str(path): Path(os.path.normpath(Path(path).absolute())).parts for path in paths}
    every = set(parts.values())
    lengths = dict.fromkeys(every, 1)
    while True:
        counts = Counter(path_parts[-lengths[path_parts] :] for path_parts in every)
        longer = [
            path_parts
            for path_parts in every
            if counts[path_parts[-lengths[path_parts] :]] > 1 and lengths[path_parts] < len(path_parts) - 1
        ]
        if not longer:
            break
        lengths.update({path_parts: lengths[path_parts] + 1 for path_parts in longer})
    return tuple("/".join(path_parts[-lengths[path_parts] :]) for path_parts in (parts[str(path)] for path in paths))


def relative_name(path: str | Path, folder: Path, name: str) -> str:
    """Return a path relative to a folder, with slashes; return `name` if that path passes through the root folder or has the user's name.

    Parameters
    ----------
    path : str or Path
        Path of a file.
    folder : Path
        Folder of the file that will contain the relative path.
    name : str
        Name of the path from `distinct_names`.
    """
    if not Path(path).is_absolute():
        return name
    try:
        common = Path(os.path.commonpath([os.path.normpath(path), os.path.normpath(folder.absolute())]))
        relative = Path(os.path.relpath(path, folder))
    except ValueError:  # on another drive of Windows
        return name
    private = {name for name in (_user(), Path(_home()).name) if name}
    if common == Path(common.anchor) or private.intersection(relative.parts):
        return name
    return relative.as_posix()


def without_folders(text: str) -> str:
    """Return a text in which the folders of paths are replaced by ``…/``; file names remain."""
    if home := _home():
        text = re.sub(rf"(?<![\w./\\-]){re.escape(home)}(?![\w.-])", "~", text)
    return _PATH.sub(lambda match: "…\\" if "\\" in match[0] else "…/", text)


def without_private(text: str) -> str:
    """Return a text without the names of the user, the home folder and the machine, and with folders replaced by ``…/``."""
    text = without_folders(text)
    for name, replacement in ((_user(), "(user)"), (Path(_home()).name, "(user)"), (socket.gethostname(), "(machine)")):
        if len(name) >= _LEAST_NAME:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", replacement, text)
    return text


def _home() -> str:
    """Return the user's home folder; '' if there is none, or if it is the root folder, as for service accounts."""
    try:
        home = Path.home()
    except (RuntimeError, OSError):  # HOME is '~', or is not set for a user without a name
        return ""
    return str(home) if home.is_absolute() and home.name else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # the system has no name for the user
        return ""
