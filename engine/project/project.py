"""Project folder: runs with their parameters and inputs, and the register of their results.

::

    PROJECT/project.sqlite           runs, parameters, inputs with digests, log, register of results
    PROJECT/project.lock             held by the process that is writing a run
    PROJECT/results/RUN/NAME.parquet immutable tables
    PROJECT/exports/NAME.tsv         exported tables of the last run that has exports
    PROJECT/run.json                 record of the run in `exports`
    PROJECT/experiment.tsv           runs of an experiment with their samples, if the project has an experiment
    PROJECT/experiment/NAME.parquet  summaries of the runs of the experiment, which can be computed again

The files of a run are first written and flushed. Then one transaction registers them and marks the run as done. If the process is killed at
any moment, either all results of the run exist or none; leftovers are removed when the project is next opened or written.
Intermediate results of unfinished runs are in the user's cache (`proteoscope.engine.project.checkpoint_store`).

A project may be untrusted: `proteoscope.engine.project.paths` prevents access to anything outside its folder.
"""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from proteoscope.engine.errors import InputError, ParameterError, RunExistsError, StorageError
from proteoscope.engine.files import atomic_file, is_temporary, remove_leftovers, storage_errors, sync_folder
from proteoscope.engine.jobs.progress import PASSING, Cancelled, Progress
from proteoscope.engine.project.checkpoint_file import remove_files
from proteoscope.engine.project.checkpoint_store import Checkpoint, CheckpointKey, read_project_id, remove_finished
from proteoscope.engine.project.database import Database, gone_error
from proteoscope.engine.project.digests import canonical_json, content_bytes, file_digest
from proteoscope.engine.project.locks import FileLock, ProcessIdentity
from proteoscope.engine.project.outputs import check_new_project
from proteoscope.engine.project.paths import (
    DATABASE,
    EXPORTS,
    LOCK,
    OWN_NAMES,
    RESULTS,
    check_folder_name,
    check_run_name,
    entries,
    folders,
    inside,
    is_run_id,
    refuse_links,
)
from proteoscope.engine.project.publishing import has_unpublished, publish, read_record, show_record, unpublish
from proteoscope.engine.project.records import (
    DamagedRowError,
    InputRecord,
    LogEntry,
    ResultRecord,
    RunInput,
    RunRecord,
    input_record,
    log_entry,
    result_record,
    run_record,
)
from proteoscope.engine.project.replacement import (
    interrupted_replacements,
    remove_old,
    rename_run,
    replacement_title,
    restore,
    swap_folders,
    unfinished_replacements,
)
from proteoscope.engine.project.row_marks import RowMark, row_corrections, row_marks, set_row_correction, set_row_mark
from proteoscope.engine.project.run import Run
from proteoscope.engine.project.run_notes import LISTED, RunNote, deleted_for_good, forget_run, run_note, set_note
from proteoscope.engine.shared_folders import make_folder, pinned_folder
from proteoscope.engine.shared_names import without_folders

__all__ = ["INTERRUPTED", "Project", "is_project", "removed_if_unused"]

_OPENING_SECONDS = 1.0
_MESSAGE_SECONDS = 60.0  # maximum wait for another process before warnings are added
_MAXIMUM_LINES, _MAXIMUM_CHARACTERS = 20_000, 10_000
"""Maximum number of log lines read, and of characters per line, since an untrusted log may be huge."""
INTERRUPTED = "interrupted: the program ended before the run was finished"
"""Message recorded for a run whose process was killed."""

Record = TypeVar("Record")
_OPEN_PROJECTS: "dict[Path, Project]" = {}
"""Projects that `Project.held_open` holds, by folder."""


def is_project(folder: Path) -> bool:
    """Return True if `folder` is a project; also False if the disk cannot be read."""
    try:
        return (folder / DATABASE).is_file()
    except OSError:
        return False


class Project:
    """Open project folder, writable if the disk allows writing. Any thread may use it.

    Any number of processes may read a project while one process writes a run. Created by `create_or_open` or `open`.
    """

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder = folder
        """Absolute path of the project folder."""
        self.read_only = read_only
        """True if the disk does not allow writing."""
        self.problems: tuple[str, ...] = ()
        """Sentences about damaged database rows found on opening; these rows are left out everywhere."""
        self._database = Database(folder / DATABASE, read_only=read_only)
        self._verified: dict[Path, tuple[int, int]] = {}
        self._is_shared = False  # True in a child process whose parent process holds the lock
        self._parsed: dict[str, tuple[tuple[object, ...], RunRecord]] = {}
        """Row and record of each run that was read, since an experiment may have thousands."""

    @classmethod
    def create_or_open(cls, path: str | Path) -> Self:
        """Open the project in folder `path`, creating it if needed.

        Raises
        ------
        InputError
            If `path` is a file, a folder with other files, a project of another version, or not valid UTF-8.
        ParameterError
            If `path` is among the files of another project.
        StorageError
            If the folder is not writable, or the project is damaged or contains links.
        """
        check_folder_name(path)
        folder = Path(path).absolute()
        if not (folder / DATABASE).exists():
            if folder.exists() and not folder.is_dir():
                raise InputError(path, "is a file, not a folder", remedy="Choose another folder for the project")
            check_new_project(folder)
            with storage_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
                others = sorted(
                    entry.name for entry in folder.iterdir() if entry.name != LOCK and not is_temporary(entry) and not _is_prepared(entry)
                )
            if others and not (folder / DATABASE).exists():
                raise InputError(
                    path,
                    f"is a folder with other things in it ({', '.join(others[:3])}{', ...' if len(others) > 3 else ''})",
                    remedy="Choose an empty or new folder for the project",
                )
            lock = FileLock(folder / LOCK)
            if not lock.acquire("creating the project", wait=10.0):
                raise _busy(folder, lock)
            try:
                if not (folder / DATABASE).exists():
                    Database.create(folder / DATABASE)
            finally:
                lock.release()
        project = cls.open(folder)
        if project.read_only:
            raise StorageError(f"{path}: you may not write here. Choose a folder that you may write to.")
        return project

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the project in folder `path`; read-only if it cannot be written.

        Leftovers of killed processes are removed unless a process is writing a run. Damaged database rows are skipped everywhere and
        reported by `problems`.

        Raises
        ------
        InputError
            If the folder contains no project or a project of another version, or the path is not valid UTF-8.
        StorageError
            If the project is damaged, or contains links, which could lead out of the project folder.
        """
        check_folder_name(path)
        folder = Path(path).absolute()
        held = _OPEN_PROJECTS.get(folder)
        if isinstance(held, cls) and is_project(folder):
            return held
        if not folder.exists():
            raise InputError(path, "does not exist", remedy="Give the folder of a project")
        if not (folder / DATABASE).is_file():
            raise InputError(path, "is not a Proteoscope project", remedy=f"Give the folder that contains {DATABASE}")
        refuse_links(folder)
        lock = FileLock(folder / LOCK)
        try:
            is_free, read_only = lock.acquire("opening the project"), False
        except StorageError:
            is_free, read_only = False, True
        try:
            project = cls(folder, read_only=read_only)
            project._database.check()
            if is_free:
                project._database.prepare()
                project._sweep()
            project.problems = project._find_problems()
        finally:
            lock.release()
        return project

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """During a `with` block, make `open` return this project in all threads, and hold the connection to its database open.

        This saves time if many runs follow each other, since the checks of `open` take time in proportion to the number of runs.
        """
        _OPEN_PROJECTS[self.folder] = self
        try:
            with self._database.held_open():
                yield
        finally:
            del _OPEN_PROJECTS[self.folder]

    @contextmanager
    def run(
        self,
        kind: str,
        parameters: Mapping[str, Any],
        inputs: Iterable[RunInput] = (),
        *,
        version: str = "",
        device: str = "",
        wait: float = 0.0,
        progress: Progress | None = None,
        resume: str = "",
        name: str = "",
        overwrite: bool = False,
    ) -> Iterator[Run]:
        """Record a run during a `with` block: files that the block writes become results of the run if the block succeeds.

        If the block raises an error, the files of the run are removed, and the error propagates. The run is recorded with the error as its
        message: as cancelled after `Cancelled` and KeyboardInterrupt, otherwise as failed. If the run was stopped or writing failed, its
        checkpoint is retained, and the error has a note with the command that resumes the run. A run that cannot start because another
        process holds the lock is not recorded. If the project folder has disappeared, this is reported instead of the original error.

        Parameters
        ----------
        kind
            Type of run, such as ``identify``; ASCII characters and dashes.
        parameters
            Parameters by name, as JSON values.
        inputs
            Input files; missing digests are computed first.
        version, device
            Version of the program and device to record.
        wait
            Maximum seconds to wait, as a queued run, while another process writes a run.
        progress
            Progress, which is checked for cancellation while waiting and while computing digests.
        resume
            Id of an unfinished run to restart under the same id, with the other arguments as its record; '' for a new run.
        name
            Id of the run; '' for the next id of its kind. An unfinished run of this name is removed.
        overwrite
            True to replace a finished run of this name when the new run is done. Until then, the new run has a number as its id, and the
            title "Replacement of NAME"; a stopped or failed run with this title is removed first.

        Raises
        ------
        InputError
            If an input cannot be read, the run to resume does not exist, or a finished run of this name exists.
        ParameterError
            If the kind or name is invalid.
        StorageError
            If writing fails, or another process, named by the message, did not finish writing within `wait` seconds.
        """
        if not kind or not all(part.isalnum() and part.isascii() for part in kind.split("-")):
            raise ParameterError(f"{kind!r} is not a type of run; use a to z, digits and dashes")
        if name:
            check_run_name(name)
        self._refuse_reading_only()
        described = canonical_json(parameters)
        run_id = resume or self._queue(kind, described, version, device)
        lock = FileLock(self.folder / LOCK)
        run = self._new_run(run_id, name, device)
        try:
            if not self._is_shared:
                # A process that opens the project holds the lock only for a moment, so wait for it in any case.
                if not lock.acquire(f"run {name or run_id}", _OPENING_SECONDS, progress):
                    if wait > 0 and progress is not None:
                        progress.message(f"Waiting: {lock.holder()} is writing this project", PASSING)
                    if not lock.acquire(f"run {name or run_id}", wait, progress):
                        self._forget(run_id)
                        raise _busy(self.folder, lock)
                self._sweep(exclude="" if resume else run_id)
            if name and not resume and not self._replaces(run_id, name, overwrite=overwrite):
                run_id, run = name, self._new_run(name, name, device)
            folder = run.folder
            if resume:
                self._begin_again(run_id, kind, described, version, device)
            else:
                self._start(run_id)
            self._record_inputs(run_id, list(inputs), progress)
            self.inside(RESULTS, *([run_id] if resume else []))
            with storage_errors(folder):
                make_folder(folder.parent)
                with pinned_folder(folder.parent) as results:
                    if run_id == name and not resume:
                        with contextlib.suppress(FileNotFoundError):
                            (results / run_id).rmdir()
                    (results / run_id).mkdir(exist_ok=bool(resume))
            yield run
            self._register(run, run_id)
        except BaseException as error:
            wanted = isinstance(error, Cancelled | KeyboardInterrupt | GeneratorExit)
            message = "stopped by the user" if wanted else _sentence(error)
            if run.id != run_id:
                message = f"run '{run.id}' is not replaced: {message}"
                error.add_note(f"run '{run.id}' is as before")
            self._abandon(run_id, "cancelled" if wanted else "failed", message, is_resumable=wanted or isinstance(error, StorageError))
            if self._is_resumable(run_id):
                error.add_note(f"to resume run '{run_id}': proteoscope resume {shlex.quote(str(self.folder))} --run {run_id}")
            if not wanted and not is_project(self.folder):
                raise gone_error(self.folder) from error
            raise
        else:
            # The run is already registered. If this fails, it is done when the project is next opened.
            self._remove_checkpoint(run_id)
            if run.id != run_id:
                self._end_replacement(run.id, run_id)
            if not self._is_shared:
                publish(self.folder, run.id)
        finally:
            lock.release()

    def runs(self, kind: str | None = None) -> list[RunRecord]:
        """Return all runs that are not deleted (of one kind, if given), in the order in which they were requested."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                f"SELECT * FROM runs WHERE (kind = ? OR ? IS NULL) AND {LISTED} ORDER BY number", (kind, kind)
            ).fetchall()
        return _whole(rows, self._run_record)

    def _run_record(self, row: sqlite3.Row) -> RunRecord:
        """Return the record of a row, which is parsed only if it has changed."""
        values = tuple(row)
        before = self._parsed.get(str(row["id"]))
        if before is None or before[0] != values:
            before = self._parsed[str(row["id"])] = values, run_record(row)
        return before[1]

    def find_run(self, run: str) -> RunRecord | None:
        """Return a run by its id; None if there is none, or it is deleted."""
        with self._database.transaction() as connection:
            rows = connection.execute(f"SELECT * FROM runs WHERE id = ? AND {LISTED}", (run,)).fetchall()
        return next(iter(_whole(rows, run_record)), None)

    @property
    def id(self) -> str:
        """Random id of the project since its creation; '' if damaged."""
        with self._database.transaction() as connection:
            return read_project_id(connection)

    def checkpoint_key(self, run: str) -> CheckpointKey:
        """Return the key by which the checkpoint of a run is found in the user's cache."""
        return CheckpointKey(self.id, self.folder, run)

    def checkpoint(self, run: str) -> Checkpoint | None:
        """Return the checkpoint of a run in this user's cache, or None.

        If this project is a copy, the checkpoint may belong to the original project (`Checkpoint.origin` is ``copied``).
        """
        return self.checkpoint_key(run).find() if is_run_id(run) else None

    def resumable(self) -> frozenset[str]:
        """Return the ids of the runs that can be resumed."""
        return frozenset(run.id for run in self._stopped() if self._is_resumable(run.id))

    def _is_resumable(self, run: str) -> bool:
        if self.read_only or not is_project(self.folder):
            return False
        try:
            checkpoint = self.checkpoint(run)
        except StorageError:
            return False
        return checkpoint is not None and checkpoint.origin != "copied"

    def _remove_checkpoint(self, run: str) -> None:
        """Remove the checkpoint of a run of this project; the checkpoint of the same run in a copy of the project remains."""
        with contextlib.suppress(StorageError):
            key = self.checkpoint_key(run)
            checkpoint = key.find()
            if checkpoint is not None and checkpoint.origin == "moved":
                remove_files(checkpoint.path)
            key.remove()

    def _stopped(self) -> list[RunRecord]:
        with self._database.transaction() as connection:
            rows = connection.execute(f"SELECT * FROM runs WHERE status IN ('cancelled', 'failed') AND {LISTED} ORDER BY number").fetchall()
        return _whole(rows, self._run_record)

    def _unfinished(self, run: str) -> RunRecord:
        """Return the record of an unfinished run, or raise an error if it cannot be resumed; the caller holds the lock."""
        record = self.find_run(run)
        if record is None:
            raise InputError(self.folder, f"holds no run {run[:60]!r}", remedy="proteoscope runs lists them")
        if record.status == "done":
            raise InputError(self.folder, f"run '{run}' is finished", remedy="Name a stopped run")
        return record

    def latest(self, kind: str | None = None) -> str | None:
        """Return the id of the last finished run (of one kind, if given), or None if there is no such run."""
        return next((run.id for run in reversed(self.runs(kind)) if run.status == "done"), None)

    def inputs(self, run: str) -> list[InputRecord]:
        """Return the inputs of a run in the order in which they were given."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT inputs.* FROM run_inputs JOIN inputs ON inputs.id = run_inputs.input WHERE run = ? ORDER BY position", (run,)
            ).fetchall()
        return _whole(rows, input_record)

    def inputs_of_runs(self) -> dict[str, list[InputRecord]]:
        """Return the inputs of all runs by the id of the run; see `inputs`."""
        result: dict[str, list[InputRecord]] = {}
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT run, inputs.* FROM run_inputs JOIN inputs ON inputs.id = run_inputs.input ORDER BY run, position"
            )
            for row in rows:
                result.setdefault(str(row["run"]), []).extend(_whole([row], input_record))
        return result

    def log(self, run: str, most: int = _MAXIMUM_LINES, characters: int = _MAXIMUM_CHARACTERS) -> list[LogEntry]:
        """Return the last `most` lines of a run's log, oldest first, each truncated to `characters` characters."""
        with self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT time, level, CASE typeof(text) WHEN 'text' THEN substr(text, 1, ?) ELSE text END AS text "
                "FROM log WHERE run = ? ORDER BY id DESC LIMIT ?",
                (characters, run, most),
            ).fetchall()
        return _whole(reversed(rows), log_entry)

    def note(self, run: str) -> RunNote:
        """Return the user's note on a run."""
        with self._database.transaction() as connection:
            return run_note(connection, run)

    def set_note(self, run: str, note: RunNote) -> None:
        """Replace the note of a run.

        Raises
        ------
        ParameterError
            If a text is too long.
        StorageError
            If writing fails.
        """
        self._refuse_reading_only()
        with self._database.transaction(write=True) as connection:
            set_note(connection, run, note)

    def row_marks(self, run: str, table: str) -> dict[int, RowMark]:
        """Return the stars and comments of the rows of a run's table, by row index in the file; empty if the run has no such table."""
        n_rows = self._row_count(run, table)
        with self._database.transaction() as connection:
            return row_marks(connection, run, table, n_rows)

    def set_row_mark(self, run: str, table: str, row: int, mark: RowMark) -> None:
        """Set the star and comment of the row with index `row` in a table's file; an empty mark removes them.

        Raises
        ------
        InputError
            If the run has no such row.
        ParameterError
            If the comment is too long.
        StorageError
            If writing fails.
        """
        self._check_row(run, table, row)
        with self._database.transaction(write=True) as connection:
            set_row_mark(connection, run, table, row, mark)

    def row_corrections(self, run: str, table: str) -> dict[int, dict[str, float]]:
        """Return the manually corrected values in a run's table, as ``{row index in the file: {column: value}}``."""
        n_rows = self._row_count(run, table)
        with self._database.transaction() as connection:
            return row_corrections(connection, run, table, n_rows)

    def set_row_correction(self, run: str, table: str, row: int, numbers: Mapping[str, float]) -> None:
        """Store corrected values of the row with index `row` in a table's file.

        `numbers` contains the corrected values by column. If it is empty, the original values are restored.

        Raises
        ------
        InputError
            If the run has no such row.
        ParameterError
            If a value is not a finite number.
        StorageError
            If writing fails.
        """
        self._check_row(run, table, row)
        with self._database.transaction(write=True) as connection:
            set_row_correction(connection, run, table, row, numbers)

    def _row_count(self, run: str, table: str) -> int:
        """Return the number of rows of a run's table; 0 if the run has no such table."""
        return next((result.rows or 0 for result in self.results(run) if result.name == table), 0)

    def _check_row(self, run: str, table: str, row: int) -> None:
        """Raise an error if a row cannot be marked or corrected, since the project is read-only or has no such row."""
        self._refuse_reading_only()
        if not 0 <= row < self._row_count(run, table):
            raise InputError(self.folder, f"holds no row {row} of table '{table:.60}' of run '{run:.60}'", remedy="Open the run again")

    def delete_run(self, run: str) -> None:
        """Delete a run that has ended. Until this process ends, `restore_run` can undo the deletion.

        The files are removed by `remove_deleted`, or when the project is next opened after this process has ended.

        Raises
        ------
        InputError
            If the run does not exist or has not ended.
        StorageError
            If writing fails.
        """
        self._refuse_reading_only()
        process = ProcessIdentity.current()
        with self._database.transaction(write=True) as connection:
            row = connection.execute("SELECT status FROM runs WHERE id = ?", (run,)).fetchone()
            if row is None or row["status"] in ("queued", "running"):
                raise InputError(self.folder, f"holds no run '{run:.60}' that has ended", remedy="Cancel it first, if it still runs")
            connection.execute(
                "INSERT OR REPLACE INTO deleted_runs (run, deleted, host, pid, process_started) VALUES (?, ?, ?, ?, ?)",
                (run, _now(), process.host, process.pid, process.started),
            )

    def restore_run(self, run: str) -> None:
        """Restore a deleted run.

        Raises
        ------
        InputError
            If the run cannot be restored.
        StorageError
            If writing fails.
        """
        with self._database.transaction(write=True) as connection:
            if not connection.execute("DELETE FROM deleted_runs WHERE run = ?", (run,)).rowcount:
                raise InputError(self.folder, f"no longer holds the deleted run '{run:.60}'", remedy="Do the search again")

    def remove_deleted(self, runs: Iterable[str]) -> None:
        """Remove deleted runs and their files permanently. If another process is writing the project, they are removed at a later opening.

        Raises
        ------
        StorageError
            If writing fails, or there are links.
        """
        lock = FileLock(self.folder / LOCK)
        if not lock.acquire("removing deleted runs"):
            return
        try:
            with self._database.transaction() as connection:
                deleted = {row["run"] for row in connection.execute("SELECT run FROM deleted_runs")}
            self._remove(sorted(deleted.intersection(runs)))
        finally:
            lock.release()

    def results(self, run: str | None = None) -> list[ResultRecord]:
        """Return the registered files of a run, or of all runs if `run` is omitted."""
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT * FROM results WHERE run = ? OR ? IS NULL ORDER BY run, name", (run, run)).fetchall()
        return _whole(rows, self._result_record)

    def table(self, name: str, run: str | None = None, *, verify: bool = True) -> Path:
        """Return the path of the registered result `name` of `run`; without `run`, of the last run that has a result of this name.

        Parameters
        ----------
        verify
            True to compare the file's digest with the registered one, unless this was done since the file last changed; False to compare
            only the size.

        Raises
        ------
        InputError
            If no such result is registered.
        StorageError
            If the file is missing, or differs from the file that was registered.
        """
        with self._database.transaction() as connection:
            row = connection.execute(
                "SELECT results.* FROM results JOIN runs ON runs.id = results.run "
                f"WHERE name = ? AND (results.run = ? OR (? IS NULL AND {LISTED})) ORDER BY runs.number DESC LIMIT 1",
                (name, run, run),
            ).fetchone()
        if row is None:
            of_run = f" of run '{run}'" if run else ""
            raise InputError(self.folder, f"holds no finished result {name!r}{of_run}", remedy="Run the search first")
        try:
            record = self._result_record(row)
        except DamagedRowError as error:
            raise StorageError(f"{self.folder / DATABASE}: a registered result is invalid: {error}. Do not trust the project.") from error
        self._check(record, verify=verify)
        return record.path

    def record(self, run: str) -> dict[str, Any]:
        """Return the record of a finished run (``run.json``); empty if unreadable."""
        try:
            return read_record(self.table("run", run))
        except (InputError, StorageError):
            return {}

    def append_messages(
        self, run: str, messages: Sequence[str], steps: Mapping[str, Mapping[str, float]], progress: Progress | None = None
    ) -> None:
        """Add warnings about a finished run to its log and to its record (``run.json``).

        Parameters
        ----------
        run : str
            Id of the run.
        messages : sequence of str
            The warnings.
        steps : mapping
            Measurements of the steps that computed the warnings, as in ``run.json``; they replace measurements of steps with the same
            names.
        progress : Progress, optional
            Progress, which is checked for cancellation while waiting for other processes.

        Raises
        ------
        InputError
            If the run has no record.
        StorageError
            If writing fails, or another process is writing.
        Cancelled
            If the user cancels.
        """
        with self.writing(f"advice on {run}", progress):
            path, record = self.table("run", run), self.record(run)
            before, done = record.get("messages"), record.get("steps")
            record["messages"] = [*(before if isinstance(before, list) else ()), *map(without_folders, messages)]
            record["steps"] = {**(done if isinstance(done, dict) else {}), **steps}
            content = json.dumps(record, indent=2, ensure_ascii=False).encode() + b"\n"
            with self._database.transaction(write=True) as connection:
                connection.executemany(
                    "INSERT INTO log (run, time, level, text) VALUES (?, ?, 'warning', ?)", [(run, _now(), text) for text in messages]
                )
                connection.execute(
                    "UPDATE results SET bytes = ?, sha256 = ? WHERE run = ? AND name = 'run'",
                    (len(content), hashlib.sha256(content).hexdigest(), run),
                )
                with atomic_file(path) as file:
                    file.write(content)
            show_record(self.folder, run)

    @contextmanager
    def writing(self, purpose: str, progress: Progress | None = None) -> Iterator[None]:
        """Hold the lock of the project during a `with` block that writes for a short time.

        Parameters
        ----------
        purpose : str
            Purpose, shown to processes that wait.
        progress : Progress, optional
            Progress, which is checked for cancellation while waiting for other processes.

        Raises
        ------
        StorageError
            If the project is read-only, or another process is writing for longer than a minute.
        """
        self._refuse_reading_only()
        lock = FileLock(self.folder / LOCK)
        try:
            if not lock.acquire(purpose, _MESSAGE_SECONDS, progress):
                raise _busy(self.folder, lock)
            yield
        finally:
            lock.release()

    @contextmanager
    def shared_with_children(self, purpose: str, wait: float = 0.0, progress: Progress | None = None) -> Iterator[int]:
        """Hold the lock during a `with` block in which child processes write runs (see `let_parent_lock`).

        The end of the block publishes the exports of the runs, and records runs of children that were killed as failed.

        Parameters
        ----------
        purpose : str
            Purpose, shown to processes that wait.
        wait : float
            Seconds to wait while another process writes the project.
        progress : Progress, optional
            Progress, which is checked for cancellation while waiting.

        Yields
        ------
        int
            Descriptor of the lock file. The lock is held as long as any process has this descriptor open, even if this process has ended.

        Raises
        ------
        StorageError
            If the project is read-only, or another process is writing.
        """
        self._refuse_reading_only()
        lock = FileLock(self.folder / LOCK)
        try:
            if not lock.acquire(purpose, max(wait, _OPENING_SECONDS), progress):
                raise _busy(self.folder, lock)
            self._sweep()
            yield lock.descriptor
        finally:
            if lock.is_held:
                with contextlib.suppress(StorageError):  # the next opening does it
                    self._sweep()
            lock.release()

    def let_parent_lock(self) -> None:
        """Allow this process to write runs without acquiring the lock, because its parent process holds it with `shared_with_children`.

        The exports of these runs are published by the parent process.
        """
        self._is_shared = True

    def verify(self) -> list[str]:
        """Compare every registered file with its digest and return one sentence per problem."""
        problems = []
        for record in self.results():
            try:
                self._check(record, verify=True)
            except StorageError as error:
                problems.append(str(error))
        return problems

    def inside(self, *parts: str) -> Path:
        """Return the path of a file or folder in the project, given its components `parts`, after checking it for links.

        Call this immediately before writing to the path.

        Raises
        ------
        StorageError
            If a component of the path is a link, a pipe or a device.
        """
        return inside(self.folder, *parts)

    def _find_problems(self) -> tuple[str, ...]:
        """Read every row of the database and return a sentence for each damaged row."""
        kinds: tuple[tuple[str, str, Callable[[sqlite3.Row], object]], ...] = (
            ("runs", "id", run_record),
            ("inputs", "path", input_record),
            ("results", "path", self._result_record),
            ("log", "run", log_entry),
        )
        problems = []
        with self._database.transaction() as connection:
            if not read_project_id(connection):
                problems.append(f"{self.folder / DATABASE}: the project's id is damaged; none of its stopped runs can be resumed")
            for table, name, read in kinds:
                for row in connection.execute(f"SELECT * FROM {table}"):
                    try:
                        read(row)
                    except DamagedRowError as error:
                        which = ascii(row[name])[:60]
                        problems.append(f"{self.folder / DATABASE}: row {which} of {table} is damaged and left out: {error}")
        return tuple(problems)

    def _check(self, record: ResultRecord, *, verify: bool) -> None:
        remedy = f"Restore it from a copy, or repeat run '{record.run}'"
        self.inside(*record.path.relative_to(self.folder).parts)
        try:
            status = record.path.stat()
        except OSError as error:
            raise StorageError(f"{record.path}: a registered result is missing. {remedy}.") from error
        if status.st_size != record.bytes:
            raise StorageError(f"{record.path}: a registered result has {status.st_size} bytes instead of {record.bytes}. {remedy}.")
        state = (status.st_mtime_ns, status.st_ino)
        if verify and self._verified.get(record.path) != state:
            if file_digest(record.path) != record.sha256:
                raise StorageError(f"{record.path}: a registered result was changed or is damaged. {remedy}.")
            self._verified[record.path] = state

    def _result_record(self, row: sqlite3.Row) -> ResultRecord:
        return result_record(row, self.folder)

    def _queue(self, kind: str, parameters: str, version: str, device: str) -> str:
        process = ProcessIdentity.current()
        with self._database.transaction(write=True) as connection:
            number = connection.execute(
                "INSERT INTO runs (kind, parameters, version, device, status, started, host, pid, process_started) "
                "VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, ?)",
                (kind, parameters, version, device, _now(), process.host, process.pid, process.started),
            ).lastrowid
            assert number is not None
            run_id = _free_id(connection, kind, number)
            connection.execute("UPDATE runs SET id = ? WHERE number = ?", (run_id, number))
        return run_id

    def _new_run(self, run_id: str, name: str, device: str) -> Run:
        """Return a run with the id `run_id` while it is computed. When it is done, its id is `name`, unless `name` is ''."""
        folder = self.folder / RESULTS / run_id
        return Run(run_id, folder, device, lambda level, text: self._log(run_id, level, text), name or run_id)

    def _replaces(self, run_id: str, name: str, *, overwrite: bool) -> bool:
        """Return True if the queued run `run_id` will replace a finished run `name` when it is done.

        If there is no finished run of this name, give the queued run the name now, and remove an unfinished run of this name. The caller
        holds the lock.

        Raises
        ------
        ParameterError, RunExistsError, InputError
            If the name is not available. The queued run is then removed.
        """
        with self._database.transaction() as connection:
            # Folder names on Windows and macOS ignore case.
            earlier = connection.execute(
                f"SELECT id, status, {LISTED} AS is_listed FROM runs WHERE id = ? COLLATE NOCASE", (name,)
            ).fetchone()
        if earlier is not None:
            if earlier["id"] != name:
                self._forget(run_id)
                raise ParameterError(
                    f"the project has a run '{earlier['id']}'; the name '{name}' must differ in more than upper and lower case"
                )
            if earlier["status"] == "done" and earlier["is_listed"] and not overwrite:
                self._forget(run_id)
                raise RunExistsError(self.folder, name)
            if earlier["status"] == "done" and earlier["is_listed"]:
                self._begin_replacement(run_id, name)
                return True
            self._remove([name])
        elif entries(self.inside(RESULTS, name)):
            self._forget(run_id)
            raise InputError(
                self.folder, f"{RESULTS}/{name} contains files that belong to no run", remedy="Move them, or choose another name"
            )
        with self._database.transaction(write=True) as connection:
            connection.execute("UPDATE runs SET id = ? WHERE id = ? AND status = 'queued'", (name, run_id))
        return False

    def _begin_replacement(self, run_id: str, name: str) -> None:
        """Remove stopped and failed runs that were to replace the run `name`, and give the run `run_id` the title "Replacement of NAME"."""
        with self._database.transaction() as connection:
            earlier = unfinished_replacements(connection, name)
        self._remove(earlier)
        with self._database.transaction(write=True) as connection:
            set_note(connection, run_id, RunNote(replacement_title(name)))

    def _start(self, run_id: str) -> None:
        with self._database.transaction(write=True) as connection:
            connection.execute("UPDATE runs SET status = 'running', started = ? WHERE id = ?", (_now(), run_id))

    def _record_inputs(self, run_id: str, inputs: list[RunInput], progress: Progress | None) -> None:
        """Record the inputs of a run; they replace inputs recorded earlier."""
        rows = []
        for file in inputs:
            path = Path(file.path).absolute()
            digest = file.sha256 or file_digest(path, progress)
            try:
                size = content_bytes(path)
            except OSError as error:
                raise InputError(path, f"cannot be read ({error.strerror})") from error
            rows.append((os.fsdecode(path), size, digest, file.kind))
        with self._database.transaction(write=True) as connection:
            connection.execute("DELETE FROM run_inputs WHERE run = ?", (run_id,))
            for position, row in enumerate(rows):
                connection.execute("INSERT OR IGNORE INTO inputs (path, size, sha256, kind) VALUES (?, ?, ?, ?)", row)
                connection.execute(
                    "INSERT INTO run_inputs SELECT ?, ?, id FROM inputs WHERE path = ? AND sha256 = ? AND kind = ?",
                    (run_id, position, row[0], row[2], row[3]),
                )
            connection.execute("DELETE FROM inputs WHERE id NOT IN (SELECT input FROM run_inputs)")

    def _begin_again(self, run_id: str, kind: str, parameters: str, version: str, device: str) -> None:
        if self._unfinished(run_id).kind != kind:
            raise InputError(self.folder, f"run '{run_id}' is not a run of {kind}", remedy="Name a stopped run")
        process = ProcessIdentity.current()
        with self._database.transaction(write=True) as connection:
            connection.execute(
                "UPDATE runs SET status = 'running', parameters = ?, version = ?, started = ?, finished = NULL, message = '', device = ?, "
                "host = ?, pid = ?, process_started = ? WHERE id = ? AND status != 'done'",
                (parameters, version, _now(), device, process.host, process.pid, process.started, run_id),
            )

    def _register(self, run: Run, run_id: str) -> None:
        """Register the results of `run`; if it was computed under another id, `run_id`, replace the finished run of its final name."""
        with storage_errors(run.folder):
            sync_folder(run.folder)
            sync_folder(run.folder.parent)
            sync_folder(self.folder)
        if run.id == run_id:
            self._register_results(run, run_id)
            return
        self.inside(RESULTS, run.id)
        try:
            with storage_errors(run.folder), pinned_folder(self.folder / RESULTS) as results:
                swap_folders(results, run.id, run_id)
            self._register_results(run, run_id)
        except BaseException:
            self._end_replacements()
            raise

    def _register_results(self, run: Run, run_id: str) -> None:
        with self._database.transaction(write=True) as connection:
            if run.id != run_id:
                rename_run(connection, run_id, run.id)
            connection.executemany(
                "INSERT INTO results (run, name, path, rows, bytes, sha256) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (run.id, result.name, f"{RESULTS}/{run.id}/{result.path.name}", result.rows, result.bytes, result.sha256)
                    for result in run.written
                ],
            )
            connection.execute(
                "UPDATE runs SET status = 'done', finished = ?, message = ?, device = ? WHERE id = ?",
                (_now(), run.message, run.device, run.id),
            )

    def _end_replacement(self, name: str, number: str) -> None:
        """Remove the folder of the old run `name`, which the run `number` replaced, and its exports if the new run has no exports."""
        with contextlib.suppress(StorageError, OSError):  # the next opening of the project does it
            if not has_unpublished(self.folder, name):
                unpublish(self.folder, name)
            with pinned_folder(self.folder / RESULTS) as results:
                remove_old(results, name, number)

    def _end_replacements(self) -> None:
        """Complete or undo replacements of runs that were interrupted by a kill."""
        for name, number in interrupted_replacements(self.inside(RESULTS)):
            with self._database.transaction() as connection:
                is_undone = connection.execute("SELECT 1 FROM runs WHERE id = ?", (number,)).fetchone() is not None
            if not is_undone:
                self._end_replacement(name, number)
                continue
            with contextlib.suppress(OSError), pinned_folder(self.folder / RESULTS) as results:
                restore(results, name, number)

    def _refuse_reading_only(self) -> None:
        if self.read_only:
            raise StorageError(f"{self.folder}: you may not write here. Copy the project to a folder that you may write to.")

    def _forget(self, run_id: str) -> None:
        """Delete the record of a run that never started."""
        with self._database.transaction(write=True) as connection:
            connection.execute("DELETE FROM runs WHERE id = ? AND status = 'queued'", (run_id,))

    def _abandon(self, run_id: str, status: str, message: str, *, is_resumable: bool) -> None:
        # Remove files first; on a full disk, this frees space for recording the outcome.
        self._remove_results(run_id)
        if not is_resumable:
            self._remove_checkpoint(run_id)
        if not is_project(self.folder):
            # Writers may have recreated the folder of a project that was moved: remove it, so that the project can be moved back.
            for folder in (self.folder / RESULTS, self.folder):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            return
        with contextlib.suppress(StorageError), self._database.transaction(write=True) as connection:
            connection.execute(
                "UPDATE runs SET status = ?, finished = ?, message = ? WHERE id = ? AND status IN ('queued', 'running')",
                (status, _now(), message, run_id),
            )

    def _log(self, run_id: str, level: str, text: str) -> None:
        with self._database.transaction(write=True) as connection:
            connection.execute("INSERT INTO log (run, time, level, text) VALUES (?, ?, ?, ?)", (run_id, _now(), level, text))

    def _sweep(self, exclude: str = "") -> None:
        """Remove the files of killed processes, and record their runs as failed, except the run `exclude`.

        The caller holds the lock, so no other run is being written.
        """
        self._end_replacements()
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT * FROM runs WHERE status != 'done' AND id != ?", (exclude,)).fetchall()
            gone = deleted_for_good(connection)
        for row in rows:
            ended = row["status"] == "running" or (row["status"] == "queued" and _has_ended(row))
            if ended:
                with self._database.transaction(write=True) as connection:
                    connection.execute(
                        "UPDATE runs SET status = 'failed', finished = ?, message = ? WHERE id = ?", (_now(), INTERRUPTED, row["id"])
                    )
            if row["status"] != "queued" and is_run_id(row["id"]):
                self.inside(RESULTS, row["id"])
                self._remove_results(row["id"])
        self._remove(gone)
        remove_finished(self.id, self.folder, frozenset(str(row["id"]) for row in rows if row["id"] not in gone) | {exclude})
        results = folders(self.inside(RESULTS))
        self._publish_pending(results)
        for folder in (self.folder, *results):
            remove_leftovers(folder)

    def _remove(self, runs: Iterable[str]) -> None:
        """Remove runs permanently. The caller holds the lock.

        The record of a run is removed last, so that `_sweep` can complete an interrupted removal.
        """
        for run_id in filter(is_run_id, runs):
            self.inside(RESULTS, run_id)
            unpublish(self.folder, run_id)
            self._remove_results(run_id)
            self.checkpoint_key(run_id).remove()
            with self._database.transaction(write=True) as connection:
                forget_run(connection, run_id)

    def _remove_results(self, run_id: str) -> None:
        """Remove the folder of a run without following links; ignore files that cannot be removed."""
        with contextlib.suppress(OSError), pinned_folder(self.folder / RESULTS) as results:
            shutil.rmtree(results / run_id, ignore_errors=True)

    def _publish_pending(self, results: Sequence[Path]) -> None:
        """Complete the publishing of exports that a kill interrupted; `results` are the folders of runs.

        Exports are published in the order of the runs, so that the exports of the last run remain.
        """
        waiting = {folder.name for folder in results if (folder / EXPORTS).is_dir()}
        if not waiting:
            return
        with self._database.transaction() as connection:
            rows = connection.execute("SELECT id FROM runs WHERE status = 'done' ORDER BY number").fetchall()
        pending = [row["id"] for row in rows if row["id"] in waiting and is_run_id(row["id"]) and has_unpublished(self.folder, row["id"])]
        with contextlib.suppress(StorageError):  # full disk: try again at the next opening
            for run_id in pending:
                publish(self.folder, run_id)


@contextmanager
def removed_if_unused(folder: Path | None) -> Iterator[None]:
    """Remove the project in `folder` if the `with` block creates it and fails; keep it if it has a finished, active or resumable run.

    Without a folder, do nothing. Files of the user in the folder, and a folder that existed before, remain.
    """
    is_new = folder is not None and not is_project(folder)
    was_folder = folder is not None and folder.is_dir()
    try:
        yield
    except BaseException:
        if is_new and folder is not None and is_project(folder):
            with contextlib.suppress(InputError, StorageError, OSError):
                _remove_unused(folder)
                if not was_folder:
                    folder.rmdir()
        raise


def _remove_unused(folder: Path) -> None:
    """Remove the program's files in a project, unless the project has finished, active or resumable runs."""
    project, lock = Project.open(folder), FileLock(folder / LOCK)
    if project.read_only or not lock.acquire("removing the project"):
        return
    try:
        if any(run.status in ("done", "queued", "running") for run in project.runs()) or project.resumable():
            return
        with pinned_folder(folder) as pinned:
            for name in OWN_NAMES:
                path = inside(pinned, name)
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
    finally:
        lock.release()


def _is_prepared(entry: Path) -> bool:
    """Return True if `entry` is a folder ``results`` or ``exports`` that contains only empty folders.

    Workflow managers create such folders for outputs before the program starts.
    """
    if entry.name not in (RESULTS, EXPORTS) or entry.is_symlink() or not entry.is_dir():
        return False
    return not any(files or any(Path(parent, name).is_symlink() for name in folders) for parent, folders, files in os.walk(entry))


def _free_id(connection: sqlite3.Connection, kind: str, number: int) -> str:
    """Return the id of run `number` of a kind, or of the next number if a run already has this id."""
    while connection.execute("SELECT 1 FROM runs WHERE id = ?", (f"{kind}-{number:04d}",)).fetchone():
        number += 1
    return f"{kind}-{number:04d}"


def _busy(folder: Path, lock: FileLock) -> StorageError:
    return StorageError(f"{folder}: {lock.holder()} is writing this project. Wait until it has finished, or choose another project.")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _sentence(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _has_ended(run: sqlite3.Row) -> bool:
    """Return True if the process that computes a run has ended; False if a damaged row names no process."""
    pid = run["pid"]
    is_process = isinstance(pid, int) and 0 < pid < 1 << 31
    return is_process and ProcessIdentity(str(run["host"]), pid, str(run["process_started"])).has_ended()


def _whole(rows: Iterable[sqlite3.Row], read: Callable[[sqlite3.Row], Record]) -> list[Record]:
    """Return the records of those rows that are not damaged."""
    records = []
    for row in rows:
        with contextlib.suppress(DamagedRowError):
            records.append(read(row))
    return records
