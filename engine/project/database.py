"""Creation, checking and transactions of ``project.sqlite``. Each transaction has its own connection, so any thread may use a project."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.files import open_regular, put_in_place, storage_error, storage_errors, sync_file, temporary_path
from proteoscope.engine.project import schema
from proteoscope.engine.sqlite_inputs import open_sqlite

__all__ = ["Database", "gone_error", "is_network_file_system"]

_BUSY_SECONDS = 20.0

_JOURNAL_OF_SEVERAL = bytes.fromhex("d9d505f920a163d7")
"""Final bytes of the journal of a transaction over several databases, which names another file that SQLite would open and may delete."""

_DAMAGED = ("malformed", "not a database", "no such table", "no such column", "datatype mismatch", "too big", "interrupted")
"""Parts of SQLite's messages about content that the program does not write: damage, out-of-range values, endless computations."""

_SQLITE_TABLES = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")

_NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ncpfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "fuse.glusterfs"}
    | {"fuse.sshfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "virtiofs", "vboxsf", "prl_fs", "fuse.vmhgfs-fuse", "davfs", "fuse.davfs2"}
)
"""Network file systems, on which write-ahead logging (WAL) fails because it needs memory shared by all processes."""


def is_network_file_system(folder: Path, mounts: str | None = None) -> bool:
    """Return True if `folder` is on a network file system.

    Parameters
    ----------
    mounts
        Text of Linux's ``/proc/self/mounts``; None to read this file. The result is False on systems without it.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mounts").read_text(errors="surrogateescape")
        except OSError:
            return False
    resolved = folder.resolve()
    best, answer = -1, False
    for line in mounts.splitlines():
        fields = line.split(" ")
        # Spaces and tabs in mount points are written as octal escapes.
        point = Path(fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        # The longest mount point containing the folder applies; of two equal mount points, the later one.
        if resolved.is_relative_to(point) and len(point.parts) >= best:
            best, answer = len(point.parts), fields[2] in _NETWORK_FILE_SYSTEMS
    return answer


def gone_error(folder: Path) -> StorageError:
    """Return the error for a project in `folder` that no longer exists; the message suggests a remedy."""
    return StorageError(
        f"{folder}: the project is no longer here: its folder was deleted or moved, or its disk is not available. "
        "Restore it, or choose another folder."
    )


class Database:
    """Database of one project.

    If the file system supports it, the database uses a write-ahead log (WAL), so that readers and the writer do not wait for each other;
    otherwise it uses a journal.
    """

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self._path = path
        self._read_only = read_only

    @classmethod
    def create(cls, path: Path) -> None:
        """Create an empty database, which appears under its name only when complete. The caller holds the project's lock."""
        with _sqlite_errors(path), storage_errors(path), temporary_path(path) as temporary:
            with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                # No journal: an incomplete database is deleted as a whole.
                connection.execute("PRAGMA journal_mode = MEMORY")
                schema.create(connection)
            sync_file(temporary)
            put_in_place(temporary, path)

    def check(self) -> None:
        """Check that the file is a project database of the supported version.

        Raises
        ------
        InputError
            If the file is not a project database, or has another version.
        StorageError
            If the file is damaged, or has tables, views or triggers that the program did not create.
        """
        self._check_journal()
        with self.transaction() as connection:
            application = connection.execute("PRAGMA application_id").fetchone()[0]
            version = int(connection.execute("PRAGMA user_version").fetchone()[0])
            result = _schema(connection)
        if application != schema.APPLICATION_ID:
            raise InputError(self._path, "is a database of another program", remedy="Choose another folder for the project")
        if version != schema.VERSION:
            raise InputError(
                self._path,
                f"has project format {version}; this program opens only format {schema.VERSION}",
                remedy="Open it with the version of Proteoscope that created it, or repeat its searches in a new project",
            )
        self._check_schema(result)

    def _check_journal(self) -> None:
        journal = self._path.with_name(self._path.name + "-journal")
        try:
            with open_regular(journal) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - len(_JOURNAL_OF_SEVERAL)))
                end = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(journal, error) from error
        if end == _JOURNAL_OF_SEVERAL:
            raise StorageError(f"{journal}: names a file outside the project, which this program never does. Do not trust the project.")

    def _check_schema(self, columns: dict[str, str]) -> None:
        expected = _expected_schema()
        if lacking := sorted(name for name, sql in expected.items() if columns.get(name) != sql):
            raise StorageError(
                f"{self._path}: the project's database is damaged (not as the program created it: {', '.join(lacking)}). "
                "Restore it from a copy; the tables under results can still be read."
            )
        if strange := sorted(set(columns) - set(expected)):
            shown = ", ".join(ascii(name)[1:-1][:60] for name in strange[:3])
            raise StorageError(f"{self._path}: has content that the program did not write ({shown}). Do not trust the project.")

    def prepare(self) -> None:
        """Select the journal mode that suits the file system. The caller holds the project's lock."""
        with self._connection() as connection:
            wanted = "DELETE" if is_network_file_system(self._path.parent) else "WAL"
            if connection.execute("PRAGMA journal_mode").fetchone()[0].upper() == wanted:
                return
            try:
                connection.execute(f"PRAGMA journal_mode = {wanted}")
                # Some file systems accept WAL, but cannot map its shared memory, so that the first write fails.
                connection.execute(f"PRAGMA user_version = {schema.VERSION}")
            except sqlite3.OperationalError:
                connection.execute("PRAGMA journal_mode = DELETE")

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection; commit its statements together if the `with` block succeeds, and roll them back otherwise.

        Raises
        ------
        StorageError
            If writing fails, or the database is damaged.
        """
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold a connection open during a `with` block.

        When the last connection closes, SQLite copies the write-ahead log into the database; holding a connection avoids this.
        """
        with self._connection() as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            yield

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with _sqlite_errors(self._path), closing(self._open()) as connection:
            connection.row_factory = sqlite3.Row
            # Bytes that are not UTF-8 are replaced.
            connection.text_factory = lambda text: text.decode(errors="replace")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection

    def _open(self) -> sqlite3.Connection:
        if not self._read_only:
            return open_sqlite(self._path, "mode=rw", timeout=_BUSY_SECONDS)
        # WAL needs files next to the database, which cannot be created here. Without these files, no process is writing, so the database is
        # read as immutable.
        has_log = self._path.with_name(self._path.name + "-wal").exists()
        return open_sqlite(self._path, "mode=ro" if has_log else "immutable=1", timeout=_BUSY_SECONDS)


@cache
def _expected_schema() -> dict[str, str]:
    """Return the `_schema` of a new project database; cached, since it is needed whenever a project is opened."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.create(connection)
        return _schema(connection)


def _schema(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the SQL of each table, index, view and trigger, by name."""
    rows = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return {str(row[0]): str(row[1]) for row in rows if row[0] not in _SQLITE_TABLES}


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "unable to open" in text and not path.exists():
            raise gone_error(path.parent) from error
        if "full" in text:
            reason, remedy = "the disk is full", "Free some space and try again"
        elif "disk I/O error" in text:
            # A full disk also causes this error if the write-ahead log's shared memory cannot grow.
            reason = "the disk is full or damaged, or the file may not grow further (ulimit -f)"
            remedy = "Free some space or raise the limit, and try again"
        elif "readonly" in text or "read-only" in text:
            reason, remedy = "the disk is read-only", "Choose a folder that you may write to"
        elif "locked" in text:
            reason, remedy = "another process has used the project's database for too long", "Try again when it has finished"
        elif any(sign in text for sign in _DAMAGED):
            reason, remedy = "the project's database is damaged", "Restore it from a copy; the tables under results can still be read"
        elif "unable to open" in text:
            reason, remedy = (
                "the project's database cannot be opened",
                "Check that you may read it, or raise the limit of open files (ulimit -n)",
            )
        else:
            reason, remedy = f"the project's database cannot be used ({text})", ""
        raise StorageError(f"{path}: {reason}" + (f". {remedy}." if remedy else ".")) from error
    except UnicodeDecodeError as error:
        # SQLite's error message quotes the damaged schema, which Python cannot decode.
        raise StorageError(f"{path}: the project's database is damaged. Restore it from a copy.") from error
