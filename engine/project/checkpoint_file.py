"""Checkpoint of an unfinished run: an SQLite file with its request, its finished partitions and the states of its iterations.

The file is in the user's own cache (`proteoscope.engine.project.checkpoint_store`), never in a project, so its content is trusted. A
CRC-32 of each record detects damage; a damaged record counts as absent. SQLite's rollback journal undoes incomplete writes of a killed
process.
"""

import json
import math
import os
import shutil
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import storage_error

__all__ = ["MAXIMUM_BYTES", "CheckpointFile", "CheckpointHeader", "Partition", "is_in_use", "journal", "read_header", "remove_files"]

MAXIMUM_BYTES = 4 << 30
"""Maximum size of a checkpoint in bytes."""
_FREE_FRACTION = 4  # a checkpoint takes at most a quarter of the free space of its disk
_MAXIMUM_RECORDS = 1 << 18
_MAXIMUM_RECORD_BYTES = 1 << 29  # SQLite stores up to 1e9 bytes in a value
_SPARE_BYTES = 1 << 20  # for pages, journal and description, in addition to the arrays of a record
_PAGE_BYTES = 1 << 14
_NUMBERS = "iufb"
_BUSY_SECONDS = 1.0  # seconds to wait, since another process may be reading the header

_SCHEMA = f"""
PRAGMA page_size = {_PAGE_BYTES};
BEGIN EXCLUSIVE;
CREATE TABLE header (text TEXT NOT NULL, crc32 INTEGER NOT NULL);
CREATE TABLE partitions (
    id INTEGER PRIMARY KEY, round TEXT NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    columns TEXT NOT NULL, crc32 INTEGER NOT NULL, payload BLOB NOT NULL
);
CREATE TABLE states (name TEXT PRIMARY KEY, columns TEXT NOT NULL, crc32 INTEGER NOT NULL, payload BLOB NOT NULL);
"""


class Partition(NamedTuple):
    """Partition stored in a checkpoint: row id in the file, name of its round, and range of its items (end exclusive)."""

    id: int
    round: str
    start: int
    stop: int


@dataclass(frozen=True)
class CheckpointHeader:
    """Header of a checkpoint, which identifies the run to which the checkpoint belongs.

    Attributes
    ----------
    folder : Path
        Path of the project folder without symbolic links when the checkpoint was created.
    run : str
        Id of the run.
    request : mapping
        Request of the run as recorded by `proteoscope.engine.resumption.record_request`.
    """

    folder: Path
    run: str
    request: Mapping[str, Any]


def read_header(path: Path) -> CheckpointHeader | None:
    """Return the header of a checkpoint; None if the file is missing, damaged, or in use by another process."""
    try:
        with closing(_connect(path)) as connection:
            return _header(connection)
    except sqlite3.Error:
        return None


def remove_files(path: Path) -> None:
    """Remove a checkpoint and its journal if they exist; failures are ignored, since the cache is pruned later."""
    # The database is removed first: SQLite discards a journal without a database, but a database needs its journal.
    for file in (path, journal(path)):
        with suppress(OSError):
            file.unlink()


def is_in_use(path: Path) -> bool:
    """Return True if another process has a checkpoint open."""
    try:
        with closing(_connect(path)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        return _is_busy(error)
    return False


def journal(path: Path) -> Path:
    """Return the path of the journal file that SQLite writes next to a checkpoint."""
    return path.with_name(f"{path.name}-journal")


class CheckpointFile:
    """Open checkpoint, locked by this process; threads must not use it concurrently. Created by `create` or `open`.

    Attributes
    ----------
    header : CheckpointHeader
        Run to which the checkpoint belongs.
    partitions : list of Partition
        Partitions that were stored before the file was opened.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, header: CheckpointHeader) -> None:
        self._path, self._connection = path, connection
        self.header = header
        rows = connection.execute("SELECT id, round, start, stop FROM partitions ORDER BY id LIMIT ?", (_MAXIMUM_RECORDS,))
        self.partitions = [Partition(*row) for row in rows if tuple(map(type, row)) == (int, str, int, int)]
        self._n_records = len(self.partitions)
        self._limit = min(MAXIMUM_BYTES, shutil.disk_usage(path.parent).free // _FREE_FRACTION + self._used_bytes())

    @classmethod
    def create(cls, path: Path, header: CheckpointHeader) -> Self:
        """Create an empty checkpoint that only the user can read, in an existing folder; replace a file of the same name.

        Raises
        ------
        StorageError
            If writing fails.
        """
        remove_files(path)
        text = json.dumps([os.fspath(header.folder), header.run, header.request])
        with _errors(path):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # SQLite would use the process's umask
            connection = _connect(path)
            try:
                connection.executescript(_SCHEMA)
                connection.execute("INSERT INTO header VALUES (?, ?)", (text, _checksum(text)))
                connection.execute("COMMIT")
                return cls(path, connection, header)
            except BaseException:
                connection.close()
                remove_files(path)
                raise

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Open an existing checkpoint for continuation; return None if it is missing or damaged.

        Raises
        ------
        StorageError
            If another process has the checkpoint open.
        """
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(closing(_connect(path)))
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")
                header = _header(connection)
                if header is not None:
                    opened = cls(path, connection, header)
                    stack.pop_all()  # the connection stays open
                    return opened
            except sqlite3.Error as error:
                if _is_busy(error):
                    raise StorageError(f"{path}: another process resumes this run. Wait until it has finished.") from error
            except OSError:
                pass
        return None

    def has_space(self, n_bytes: int) -> bool:
        """Return True if a record with arrays of `n_bytes` stays within the maximum size."""
        return self._n_records < _MAXIMUM_RECORDS and self._used_bytes() + n_bytes + _SPARE_BYTES < self._limit

    def append(self, name: str, start: int, stop: int, columns: Mapping[str, NDArray[Any]]) -> None:
        """Store the result rows of the items ``start:stop`` of a round. Call `flush` later, so that they survive a kill of the process.

        Raises
        ------
        TypeError
            If an array does not hold numbers.
        StorageError
            If writing fails.
        """
        record = _packed((name, start, stop), columns)
        if len(record[2]) > _MAXIMUM_RECORD_BYTES:
            return  # these rows are computed again on resumption
        self._write(
            "INSERT INTO partitions (round, start, stop, columns, crc32, payload) VALUES (?, ?, ?, ?, ?, ?)", name, start, stop, *record
        )
        self._n_records += 1

    def store_state(self, name: str, columns: Mapping[str, NDArray[Any]]) -> None:
        """Store the state of an iteration, which replaces the previous state.

        Raises
        ------
        TypeError
            If an array does not hold numbers.
        StorageError
            If writing fails.
        """
        record = _packed((name,), columns)
        if len(record[2]) <= _MAXIMUM_RECORD_BYTES:
            self._write("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)", name, *record)

    def flush(self) -> None:
        """Commit the stored records to the file, so that they survive a kill of the process.

        Raises
        ------
        StorageError
            If writing fails.
        """
        with _errors(self._path):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def rows(self, partition: Partition) -> dict[str, NDArray[Any]] | None:
        """Return the columns of a stored partition by name; None if they are damaged."""
        return self._read("SELECT columns, crc32, payload FROM partitions WHERE id = ?", partition.id, partition[1:])

    def state(self, name: str) -> dict[str, NDArray[Any]] | None:
        """Return the stored state of an iteration as columns by name; None if it is missing or damaged."""
        return self._read("SELECT columns, crc32, payload FROM states WHERE name = ?", name, (name,))

    def close(self) -> None:
        """Close the file; records that were not flushed are lost."""
        self._connection.close()

    def _write(self, statement: str, *values: Any) -> None:
        with _errors(self._path):
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(statement, values)

    def _read(self, statement: str, key: int | str, labels: tuple[Any, ...]) -> dict[str, NDArray[Any]] | None:
        try:
            row = self._connection.execute(statement, (key,)).fetchone()
        except sqlite3.Error:
            return None
        return None if row is None else _unpacked(labels, *row)

    def _used_bytes(self) -> int:
        pages, unused = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        return int(pages - unused) * _PAGE_BYTES


def _connect(path: Path) -> sqlite3.Connection:
    """Return a connection to an existing checkpoint; raise sqlite3.Error if it cannot be opened."""
    address = f"file:{quote(os.fsencode(path))}?mode=rw"
    # Several threads use the connection in turn, under the caller's lock.
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        # Do not wait for the disk: records that a power failure damages are computed again, and a kill of the process cannot damage them.
        connection.executescript("PRAGMA trusted_schema = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _header(connection: sqlite3.Connection) -> CheckpointHeader | None:
    text, crc32 = connection.execute("SELECT text, crc32 FROM header").fetchone() or (None, None)
    if not isinstance(text, str) or _checksum(text) != crc32:
        return None
    folder, run, request = json.loads(text)
    return CheckpointHeader(Path(folder), run, request)


def _checksum(text: str, labels: tuple[Any, ...] = (), payload: bytes = b"") -> int:
    return zlib.crc32(payload, zlib.crc32(f"{labels}{text}".encode()))


def _packed(labels: tuple[Any, ...], columns: Mapping[str, NDArray[Any]]) -> tuple[str, int, bytes]:
    """Return the description, checksum and bytes of arrays for one record; raise TypeError if an array does not hold numbers."""
    arrays = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    if any(array.dtype.kind not in _NUMBERS for array in arrays.values()):
        raise TypeError("only arrays of numbers are stored")
    described = json.dumps([[name, array.dtype.str, array.shape] for name, array in arrays.items()])
    payload = b"".join(array.reshape(-1).view(np.uint8).data for array in arrays.values() if array.nbytes)
    return described, _checksum(described, labels, payload), payload


def _unpacked(labels: tuple[Any, ...], described: object, crc32: object, payload: object) -> dict[str, NDArray[Any]] | None:
    """Return copies of the arrays of a record, or None if the record is damaged."""
    if not isinstance(described, str) or not isinstance(payload, bytes) or _checksum(described, labels, payload) != crc32:
        return None
    columns, start = dict[str, NDArray[Any]](), 0
    for name, dtype_name, shape in json.loads(described):
        dtype = np.dtype(dtype_name)
        columns[name] = np.frombuffer(payload, dtype, math.prod(shape), start).reshape(shape).copy()
        start += columns[name].nbytes
    return columns


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and of the operating system into a StorageError about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageError(f"{path}: {error}") from error
    except OSError as error:
        raise storage_error(path, error) from error
