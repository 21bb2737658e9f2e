"""Paths of a project's files: always inside its folder, with names chosen by the program, and never through links.

A project may be untrusted. Regardless of the content of its database and folder, opening it, writing to it and cleaning it up must not
touch anything outside. Therefore ids have a fixed form, paths are derived from them, and symbolic links are rejected wherever the program
writes, reads or removes files.
"""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.files import storage_error

__all__ = [
    "DATABASE",
    "EXPERIMENT",
    "EXPERIMENT_SUMMARIES",
    "EXPORTS",
    "LOCK",
    "OWN_NAMES",
    "RESULTS",
    "RUN_JSON",
    "check_folder_name",
    "check_run_name",
    "entries",
    "folders",
    "inside",
    "is_result_path",
    "is_run_id",
    "refuse_links",
]

DATABASE, LOCK, RESULTS = "project.sqlite", "project.lock", "results"
EXPORTS, RUN_JSON, EXPERIMENT, EXPERIMENT_SUMMARIES = "exports", "run.json", "experiment.tsv", "experiment"
OWN_NAMES = (
    DATABASE,
    f"{DATABASE}-wal",
    f"{DATABASE}-shm",
    f"{DATABASE}-journal",
    LOCK,
    RESULTS,
    EXPORTS,
    RUN_JSON,
    EXPERIMENT,
    EXPERIMENT_SUMMARIES,
)
"""Names of the files and folders that the program reads or writes in a project's folder."""

_RUN_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
_RESULT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.(?:parquet|json)")
_MAXIMUM_ID = 200
_MAXIMUM_NAME = 100
_RESERVED = re.compile(r"(?:con(?:in\$|out\$)?|prn|aux|nul|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.IGNORECASE)
"""Names that Windows does not allow for folders."""


def is_run_id(text: object) -> bool:
    """Return True if `text` has the form of a run id, such as ``identify-0001`` or ``sample_7.replicate_2``."""
    return isinstance(text, str) and len(text) <= _MAXIMUM_ID and _RUN_ID.fullmatch(text) is not None


def check_run_name(name: str) -> None:
    """Check that a name can be the id of a run: the run's folder has this name, which every system must allow.

    Raises
    ------
    ParameterError
        If the name is rejected.
    """
    if _RESERVED.fullmatch(name):
        raise ParameterError(f"'{name:.60}' cannot name a run, since Windows reserves this name; choose another one")
    if not is_run_id(name) or len(name) > _MAXIMUM_NAME:
        raise ParameterError(
            f"'{name:.60}' cannot name a run; use up to {_MAXIMUM_NAME} characters a to z, A to Z, digits, _, - and dots; "
            "the first must be one of a to z, A to Z or a digit, and the last must not be a dot"
        )


def is_result_path(run: str, path: object) -> bool:
    """Return True if `path` has the form of a result of `run`: ``results/RUN/NAME.parquet`` or ``.json``."""
    if not is_run_id(run) or not isinstance(path, str):
        return False
    folder, _, name = path.rpartition("/")
    return folder == f"{RESULTS}/{run}" and _RESULT.fullmatch(name) is not None


def check_folder_name(path: str | Path) -> None:
    """Check the path of a project.

    Raises
    ------
    InputError
        If the path is not valid UTF-8, since the database and the tables store Unicode; or if Windows reserves the name of the folder, and
        the folder does not exist yet.
    """
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise InputError(ascii(os.fspath(path)), "the path is not valid UTF-8", remedy="Choose or rename the project's folder") from None
    if _RESERVED.fullmatch(Path(path).name) and not Path(path).is_dir():
        raise InputError(path, "cannot be the folder of a project, since Windows reserves this name", remedy="Choose another name")


def inside(folder: Path, *parts: str) -> Path:
    """Return the path in the project `folder` with the components `parts`, after checking that no component is a link.

    Raises
    ------
    StorageError
        If a component is a link, or neither a file nor a folder.
    """
    path = folder
    for part in parts:
        path = path / part
        _refuse_link(folder, path)
    return path


def refuse_links(folder: Path) -> None:
    """Check that none of the program's files and folders in a project, including results, is a link.

    Raises
    ------
    StorageError
        If a file or folder is a symbolic link, a pipe or a device.
    """
    for name in OWN_NAMES:
        _refuse_link(folder, folder / name)
    for parent in (folder / RESULTS, *folders(folder / RESULTS)):
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(parent) as listing:
            for entry in listing:
                if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                    _refuse_link(folder, Path(entry.path))


def entries(folder: Path) -> list[Path]:
    """Return the paths in a folder; an empty list if it is a link, missing or unreadable."""
    if folder.is_symlink():
        return []
    try:
        return [folder / name for name in sorted(os.listdir(folder))]  # noqa: PTH208 - names are sorted faster than paths
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def folders(folder: Path) -> list[Path]:
    """Return the folders in a folder, without links to folders; an empty list if it is missing or unreadable."""
    try:
        with os.scandir(folder) as listing:
            return [folder / entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _refuse_link(folder: Path, path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise storage_error(path, error) from error
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    what = "a symbolic link, which may lead out of the project" if stat.S_ISLNK(mode) else "a pipe or a device"
    raise StorageError(f"{path}: {what}; nothing in {folder} was changed. If you trust the project, replace it by a normal file or folder.")
