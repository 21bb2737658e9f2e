"""Naming, lookup, pruning and removal of the checkpoints of unfinished runs in the user's cache.

::

    CACHE/checkpoints/PROJECT-RUN-FOLDER.sqlite    a folder with mode 0700, files with mode 0600

PROJECT is the random id of the project; RUN and FOLDER are digests of the run's id and of the project's path without links. A project that
was moved still finds its checkpoints by PROJECT and RUN. A copy of a project cannot use them: as long as a project with the same id exists
in the folder in which the checkpoint was created, the checkpoint belongs to that project.
"""

import hashlib
import os
import re
import sqlite3
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.files import storage_errors
from proteoscope.engine.project.checkpoint_file import CheckpointHeader, is_in_use, journal, read_header, remove_files
from proteoscope.engine.project.database import Database
from proteoscope.engine.project.index_store import cache_folder
from proteoscope.engine.project.paths import DATABASE
from proteoscope.engine.project.schema import ID_BYTES

__all__ = [
    "Checkpoint",
    "CheckpointKey",
    "ListedCheckpoint",
    "checkpoint_folder",
    "clear_checkpoint",
    "is_project_id",
    "list_checkpoints",
    "project_id_at",
    "prune_checkpoints",
    "read_project_id",
    "remove_finished",
]

_ID = re.compile(f"[0-9a-f]{{{2 * ID_BYTES}}}")


def is_project_id(text: object) -> bool:
    """Return True if `text` has the form of a project id: 32 hexadecimal digits."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def read_project_id(connection: sqlite3.Connection) -> str:
    """Return the id in a project's database; '' if the id is damaged."""
    rows = connection.execute("SELECT id FROM identity LIMIT 2").fetchall()
    return rows[0][0] if len(rows) == 1 and is_project_id(rows[0][0]) else ""


def project_id_at(folder: Path) -> str | None:
    """Return the id of the project in `folder`; None if the folder contains no project, '' if the id cannot be read."""
    try:
        if not (folder / DATABASE).is_file():
            return None
        database = Database(folder / DATABASE, read_only=True)
        database.check()
        with database.transaction() as connection:
            return read_project_id(connection)
    except (InputError, StorageError):
        return ""
    except OSError:
        return None


TOTAL_BYTES = 20 << 30
"""Maximum total size of all checkpoints in bytes; beyond it, the least recently used ones are removed."""
MAXIMUM_CHECKPOINTS = 1000
"""Maximum number of checkpoints; beyond it, the least recently used ones are removed."""
_PREFIX = 66  # number of characters of a file name before FOLDER
_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}-[0-9a-f]{32}\.sqlite")


def checkpoint_folder() -> Path:
    """Return the path of the folder of checkpoints in the user's cache, which may not exist yet."""
    return cache_folder() / "checkpoints"


def _digest(text: str) -> str:
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:32]


def _is_private(folder: Path) -> bool:
    """Return True if a folder exists, is not a link, and is writable by this user only."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_private = os.name != "posix" or (status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    return is_private and stat.S_ISDIR(status.st_mode)


@dataclass(frozen=True)
class Checkpoint:
    """Checkpoint found for a run.

    Attributes
    ----------
    path : Path
        File of the checkpoint.
    header : CheckpointHeader
        Run to which the checkpoint belongs.
    origin : str
        ``here`` if the checkpoint was created while the project was in its present folder; ``moved`` if the project has been moved since
        then; ``copied`` if this project is a copy, and the checkpoint belongs to the original project, which still exists.
    """

    path: Path
    header: CheckpointHeader
    origin: Literal["here", "moved", "copied"]


@dataclass(frozen=True)
class CheckpointKey:
    """Key by which the checkpoint of a run is found.

    Attributes
    ----------
    project : str
        Random id of the project; a project with an invalid id has no checkpoints.
    folder : Path
        Folder of the project.
    run : str
        Id of the run.
    """

    project: str
    folder: Path
    run: str

    @property
    def real_folder(self) -> Path:
        """Folder of the project without symbolic links."""
        return Path(os.path.realpath(self.folder))

    @property
    def path(self) -> Path:
        """Path of the checkpoint file that the run writes while the project is in `folder`."""
        return checkpoint_folder() / f"{self.project}-{_digest(self.run)}-{_digest(os.fspath(self.real_folder))}.sqlite"

    def find(self) -> Checkpoint | None:
        """Return the checkpoint of the run, or None.

        The checkpoint that was created in `folder` is preferred. Otherwise, the checkpoint that was created before the project was moved or
        copied is returned.
        """
        if not is_project_id(self.project) or not _is_private(checkpoint_folder()):
            return None
        uncopied, copied = self.path, None
        if (header := self._header(uncopied)) is not None:
            return Checkpoint(uncopied, header, "here")
        for path in _files(lambda name: name.startswith(uncopied.name[:_PREFIX])):
            if (header := self._header(path)) is not None:
                # With None or another id, the project was moved. An unreadable id may be that of the original project.
                if project_id_at(header.folder) not in (self.project, ""):
                    return Checkpoint(path, header, "moved")
                copied = copied or Checkpoint(path, header, "copied")
        return copied

    def _header(self, path: Path) -> CheckpointHeader | None:
        header = read_header(path) if path.exists() else None
        return header if header is not None and header.run == self.run else None

    def prepare(self) -> Path:
        """Create and prune the checkpoint folder, and return the path for a new checkpoint.

        Raises
        ------
        StorageError
            If the cache cannot be written, other users may write in the folder, or the project has no valid id.
        """
        if not is_project_id(self.project):
            raise StorageError(f"{self.folder}: the project's id is damaged.")
        folder = checkpoint_folder()
        with storage_errors(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(folder):
            raise StorageError(f"{folder}: other users may write here. Remove it.")
        prune_checkpoints()
        return self.path

    def remove(self) -> None:
        """Remove the checkpoint that the run wrote while the project was in `folder`, if it exists."""
        if is_project_id(self.project):
            remove_files(self.path)


def remove_finished(project: str, folder: Path, unfinished: frozenset[str]) -> None:
    """Remove remaining checkpoints of finished or deleted runs of the project in `folder`.

    Parameters
    ----------
    project : str
        Random id of the project.
    folder : Path
        Folder of the project.
    unfinished : frozenset of str
        Ids of the runs that can still be resumed.
    """
    if not is_project_id(project):
        return
    expected = {CheckpointKey(project, folder, run).path.name for run in unfinished}
    ending = f"-{_digest(os.path.realpath(folder))}.sqlite"
    for path in _files(lambda name: name.startswith(project) and name.endswith(ending)):
        if path.name not in expected:
            remove_files(path)


@dataclass(frozen=True)
class ListedCheckpoint:
    """Checkpoint in a list of the cache.

    Attributes
    ----------
    path : Path
        File of the checkpoint.
    bytes : int
        Size of the file and its journal.
    used : float
        Time of the last use, seconds since 1970.
    """

    path: Path
    bytes: int
    used: float

    @property
    def title(self) -> str:
        """Description of the run to which the checkpoint belongs; '' if the file is damaged or in use."""
        header = read_header(self.path)
        return "" if header is None else f"{header.run} of {header.folder}"


def list_checkpoints() -> list[ListedCheckpoint]:
    """Return all checkpoints, most recently used first."""
    result = []
    for path in _files(lambda _: True):
        with suppress(OSError):
            status = path.lstat()
            journal_file = journal(path)
            size = status.st_size + (journal_file.lstat().st_size if journal_file.exists() else 0)
            result.append(ListedCheckpoint(path, size, status.st_mtime))
    return sorted(result, key=lambda checkpoint: (-checkpoint.used, checkpoint.path))


def clear_checkpoint(checkpoint: ListedCheckpoint) -> bool:
    """Remove a checkpoint unless another process is computing its run; return True if it was removed.

    Raises
    ------
    StorageError
        If the file cannot be removed.
    """
    if is_in_use(checkpoint.path):
        return False
    remove_files(checkpoint.path)
    if checkpoint.path.exists():
        raise StorageError(f"{checkpoint.path}: cannot be removed. You may not write here.")
    return True


def prune_checkpoints() -> None:
    """Remove the least recently used checkpoints if the total size or the number exceeds its maximum; ignore failures.

    The age of a checkpoint is not a criterion, since a clock set forward would make every checkpoint old. Checkpoints of active runs
    remain.
    """
    total = 0
    for number, checkpoint in enumerate(list_checkpoints(), 1):
        total += checkpoint.bytes
        if (total > TOTAL_BYTES or number > MAXIMUM_CHECKPOINTS) and not is_in_use(checkpoint.path):
            remove_files(checkpoint.path)


def _files(is_chosen: Callable[[str], bool]) -> list[Path]:
    try:
        return [path for path in sorted(checkpoint_folder().iterdir()) if _NAME.fullmatch(path.name) and is_chosen(path.name)]
    except OSError:
        return []
