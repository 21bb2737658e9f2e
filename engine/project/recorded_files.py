"""Input files of runs outside the project, which are opened only if they are unchanged since the run.

A project may be untrusted, and its record of inputs may name any file of this user. The record has the SHA-256 of each file, which only
somebody who has the file can know: opening a file with this digest reveals nothing to the author of the record.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.project.digests import content_bytes, file_digest
from proteoscope.engine.project.records import InputRecord

__all__ = ["RecordedFiles"]

_State = tuple[int, int, int]


class RecordedFiles:
    """Input files that a run recorded.

    Parameters
    ----------
    records : sequence of InputRecord
        Inputs of the run.
    """

    def __init__(self, records: Sequence[InputRecord]) -> None:
        self._records = {record.path: record for record in records}
        self._checked: dict[Path, _State] = {}

    def check(self, path: Path, progress: Progress | None = None) -> None:
        """Check that a file has the same content as when the run read it.

        Parameters
        ----------
        path : Path
            Path as recorded by the run.
        progress : Progress, optional
            Progress, which is checked for cancellation while the file is read.

        Raises
        ------
        InputError
            If the run recorded no such file, or the file is missing, not a regular file, or has changed.
        """
        record = self._records.get(path)
        if record is None:
            raise InputError(path, "is not one of the files that the run read", remedy="Search again")
        try:
            state = _state(path)
            if self._checked.get(path) == state:
                return
            is_same = content_bytes(path) == record.size and file_digest(path, progress) == record.sha256
        except OSError as error:
            raise InputError(path, f"cannot be read ({error.strerror or error})", remedy="Put it back, or search again") from error
        if not is_same:
            raise InputError(path, "has changed since the run read it", remedy="Put it back as it was, or search again")
        self._checked[path] = state


def _state(path: Path) -> _State:
    """Return the attributes that change when a file is written: inode number, size and modification time in nanoseconds."""
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
