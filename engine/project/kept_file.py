"""What an unfinished run keeps in its folder: what was asked of it, the partitions that are finished, and how far it has come.

::

    results/RUN/partitions.kept     what was asked, then each finished partition
    results/RUN/state-NAME.kept     where an iteration stands: the last alone

Both are files of sealed records (`proteoscope.engine.project.kept_records`). They go when the run ends well or is deleted.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from numpy.typing import NDArray

from proteoscope.engine.files import temporary_sibling
from proteoscope.engine.project.kept_records import (
    MAXIMUM_BYTES,
    MAXIMUM_RECORDS,
    SALT_BYTES,
    KeptRecord,
    looks_kept,
    open_kept,
    read_columns,
    scan,
    start,
    write_record,
)
from proteoscope.engine.project.paths import entries
from proteoscope.engine.project.sealing import sealing_key

__all__ = ["PARTITIONS", "KeptFile", "is_kept_name", "kept_request", "remove_all_but_kept", "remove_kept"]

PARTITIONS = "partitions.kept"
_STATE = re.compile(r"state-[0-9a-f]{64}\.kept")
_BYTES_BESIDE = 1 << 14  # of the arrays of a record: its header and seal, at most
_SHARE_OF_FREE = 4  # a quarter of what is free on the disk is kept at the most


def is_kept_name(name: str) -> bool:
    """Whether a file of a run's folder is one of what it keeps, by its name."""
    return name == PARTITIONS or _STATE.fullmatch(name) is not None


def kept_request(folder: Path) -> dict[str, Any] | None:
    """What was asked of the run whose folder this is; None where nothing is kept that this user's program has sealed for this run."""
    key = sealing_key()
    if key is None:
        return None
    try:
        with open_kept(folder / PARTITIONS) as file:
            salt, records = scan(file)
            first = next(records, None)
            return None if first is None else _request(file, first, salt, key, folder.name)
    except (OSError, ValueError):
        return None


def _request(file: BinaryIO, record: KeptRecord, salt: bytes, key: bytes, run_id: str) -> dict[str, Any] | None:
    if record.payload_bytes or read_columns(file, record, salt, key) is None:
        return None
    request = record.header.get("request")
    return request if isinstance(request, dict) and record.header.get("run") == run_id else None


def remove_kept(folder: Path) -> None:
    """Remove what a run keeps."""
    for entry in entries(folder):
        if is_kept_name(entry.name):
            with contextlib.suppress(OSError):
                entry.unlink()


def remove_all_but_kept(folder: Path) -> bool:
    """Remove what is in the folder of an unfinished run, but for what it keeps; all, and the folder, where it keeps nothing.

    What another user's program has sealed, or that of another machine, stays too. Whether something is kept.
    """
    if not looks_kept(folder / PARTITIONS):
        shutil.rmtree(folder, ignore_errors=True)
        return False
    for entry in entries(folder):
        if is_kept_name(entry.name) and looks_kept(entry):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()
    return True


class KeptFile:
    """What a run keeps, open for reading and appending; for one thread at a time. Made by `create` or `open`.

    Attributes
    ----------
    request : what was asked of the run. partitions : records of what was kept before it was opened.
    """

    def __init__(self, folder: Path, file: BinaryIO, salt: bytes, key: bytes, request: Mapping[str, Any], limit: int) -> None:
        self._folder, self._file, self._salt, self._key = folder, file, salt, key
        self.request: Mapping[str, Any] = request
        self.partitions: list[KeptRecord] = []
        self._end, self._n_records, self._limit = 0, 1, limit
        self._states: dict[str, int] = {}

    @classmethod
    def create(cls, folder: Path, request: Mapping[str, Any]) -> Self | None:
        """Begin to keep what a run computes in its folder; None where there is no key to seal it with.

        Raises
        ------
        OSError : the disk refuses.
        """
        key = sealing_key(make=True)
        if key is None:
            return None
        remove_kept(folder)
        salt, limit = secrets.token_bytes(SALT_BYTES), min(MAXIMUM_BYTES, shutil.disk_usage(folder).free // _SHARE_OF_FREE)
        file = _new(folder / PARTITIONS)
        kept = cls(folder, file, salt, key, request, limit)
        try:
            start(file, salt)
            write_record(file, salt, key, {"run": folder.name, "request": request}, {})
            file.flush()
        except BaseException:
            kept.close()
            remove_kept(folder)
            raise
        kept._end = file.tell()
        return kept

    @classmethod
    def open(cls, folder: Path) -> Self | None:
        """Go on with what a run keeps; None where that is nothing, or not sealed by this user's program for this run, or cannot be written.

        What a kill has cut off at the end is removed.
        """
        key = sealing_key()
        if key is None:
            return None
        try:
            file = open_kept(folder / PARTITIONS, write=True)
        except OSError:
            return None
        try:
            salt, records = scan(file)
            first = next(records, None)
            request = None if first is None else _request(file, first, salt, key, folder.name)
            if first is None or request is None:
                file.close()
                return None
            free = shutil.disk_usage(folder).free // _SHARE_OF_FREE
            kept = cls(folder, file, salt, key, request, min(MAXIMUM_BYTES, free + os.fstat(file.fileno()).st_size))
            kept.partitions = list(records)
            kept._n_records += len(kept.partitions)
            kept._end = kept.partitions[-1].end if kept.partitions else first.end
            file.truncate(kept._end)
        except (OSError, ValueError):
            file.close()
            return None
        return kept

    def has_room(self, n_bytes: int) -> bool:
        """Whether so much more may be kept."""
        return self._n_records < MAXIMUM_RECORDS and self._end + sum(self._states.values()) + n_bytes + _BYTES_BESIDE < self._limit

    def append(self, name: str, first: int, end: int, columns: Mapping[str, NDArray]) -> None:
        """Keep the rows of the items `first:end` of the round of this name. Where the disk refuses, what was kept before stays whole.

        Raises
        ------
        TypeError : there are others than numbers. OSError : the disk refuses.
        """
        try:
            self._file.seek(self._end)
            n_bytes = write_record(self._file, self._salt, self._key, {"round": name, "first": first, "end": end}, columns)
            self._end, self._n_records = self._end + n_bytes, self._n_records + 1
        except BaseException:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise

    def flush(self) -> None:
        """Give what was appended to the system, where a kill does not reach it.

        Raises
        ------
        OSError : the disk refuses.
        """
        self._file.flush()

    def rows(self, record: KeptRecord) -> dict[str, NDArray] | None:
        """What was kept of a partition; None where it is damaged."""
        self._file.flush()
        return read_columns(self._file, record, self._salt, self._key)

    def keep_state(self, name: str, columns: Mapping[str, NDArray]) -> None:
        """Keep where the iteration of this name (64 hexadecimal digits) stands, instead of where it stood before.

        Raises
        ------
        TypeError : there are others than numbers. OSError : the disk refuses.
        """
        path = self._folder / f"state-{name}.kept"
        temporary = temporary_sibling(path)
        try:
            with _new(temporary) as file:
                start(file, self._salt)
                self._states[name] = write_record(file, self._salt, self._key, {"state": name}, columns)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def state(self, name: str) -> dict[str, NDArray] | None:
        """Where the iteration of this name stood; None where that is not known."""
        try:
            with open_kept(self._folder / f"state-{name}.kept") as file:
                salt, records = scan(file)
                record = next(records, None)
                if salt != self._salt or record is None or record.header.get("state") != name:
                    return None
                return read_columns(file, record, salt, self._key)
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the files."""
        with contextlib.suppress(OSError):
            self._file.close()


def _new(path: Path) -> BinaryIO:
    """A new file of records.

    Raises
    ------
    OSError : the disk refuses, or something is there already.
    """
    return open_kept(path, write=True, is_new=True)
