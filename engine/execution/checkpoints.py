"""Checkpoint of a run, from which the run can be resumed: rows of finished partitions, and states of iterations.

The rows of a partition depend only on the workload, the state of the round and the items. They are stored under a digest of these three
data. A resumed run computes the same digests on all devices, reads the stored rows, and computes the other rows.

::

    checkpoint.read_rows(name, n), checkpoint.add(name, first, end, rows)    rows of a round
    IterationCheckpoint(checkpoint, name)                                    state of an iteration

A background thread writes all records, beginning a few seconds after the start of the run. It uses at most 1 % of the CPU time of the run;
rows that exceed this budget are not stored and are computed again when the run is resumed.
"""

import contextlib
import hashlib
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution.workload import Rows, count_bytes
from proteoscope.engine.project.checkpoint_file import CheckpointFile, Partition

__all__ = ["CheckpointName", "IterationCheckpoint", "RunCheckpoint", "plain_digest"]

BEGIN_SECONDS = 5.0
"""Seconds from the start of a run until it begins to store results."""
SHARE = 0.01
"""Maximum fraction of CPU time for storing."""
FLUSH_SECONDS = 0.5
STATE_SECONDS = 5.0  # seconds between two stored states of an iteration
_MAXIMUM_WAITING = 64 << 20  # maximum bytes of rows that wait to be written
_DIGEST_SPEED = 1e9  # approximate bytes hashed per second


def plain_digest(value: Any) -> str:
    """Return the SHA-256 of plain data in hexadecimal. Plain data are numbers, strings, arrays, and sequences and mappings of these.

    Raises
    ------
    TypeError
        If the value is not plain data.
    """
    digest = hashlib.sha256()
    _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    match value:
        case np.ndarray():
            if value.dtype.hasobject:
                raise TypeError("an array of objects is not plain data")
            digest.update(f"a{value.dtype.str}{value.shape}".encode())
            array = np.ascontiguousarray(value)
            digest.update(array.reshape(-1).view(np.uint8).data if array.nbytes else b"")
        case np.generic():
            _feed(digest, value.item())
        case None | bool() | int() | float() | str():
            text = f"{type(value).__name__} {value!r}".encode()
            digest.update(b"v%d " % len(text) + text)
        case bytes():
            digest.update(b"b%d " % len(value) + value)
        case Mapping():
            digest.update(b"m%d " % len(value))
            for name in sorted(value):
                _feed(digest, name)
                _feed(digest, value[name])
        case list() | tuple():
            digest.update(b"s%d " % len(value))
            for element in value:
                _feed(digest, element)
        case _:
            raise TypeError(f"{type(value).__name__} is not plain data")


class CheckpointName:
    """Name of stored rows or of a stored state: a digest of the data on which they depend, computed on first use.

    Parameters
    ----------
    *parts : object
        Numbers, strings, arrays, sequences and mappings of these, or other `CheckpointName` objects.
    """

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    @cached_property
    def _digest(self) -> str:
        return plain_digest([str(part) if isinstance(part, CheckpointName) else part for part in self._parts])

    @property
    def n_bytes(self) -> int:
        """Number of bytes to hash before the digest is known; 0 if it is already known."""
        if "_digest" in vars(self):
            return 0
        return sum(part.n_bytes if isinstance(part, CheckpointName) else count_bytes(part) for part in self._parts)

    def __str__(self) -> str:
        return self._digest


class _Waiting(NamedTuple):
    """Result rows of the items `first:end`, or the state of an iteration (`end` is -1), waiting to be written."""

    name: CheckpointName
    first: int
    end: int
    columns: dict[str, NDArray[Any]]
    n_bytes: int


class RunCheckpoint:
    """Context manager around a running search that stores the results of the run and provides the results of an earlier attempt.

    Parameters
    ----------
    create_file : callable
        Function that creates the checkpoint file, called a few seconds after the start of the run; raises StorageError if writing fails.
    warn : callable
        Function that receives a warning with the reason, at most once, when the checkpoint stops storing results.
    resumed : CheckpointFile, optional
        Checkpoint file of the run that is resumed.
    """

    def __init__(
        self, create_file: Callable[[], CheckpointFile], warn: Callable[[str], None], resumed: CheckpointFile | None = None
    ) -> None:
        self._create_file, self._warn, self._file = create_file, warn, resumed
        self._changed = threading.Condition()
        self._reading = threading.Lock()  # readers start at the beginning of the file; new records are appended
        self._waiting: deque[_Waiting] = deque()
        self._n_waiting, self._is_closed = 0, False
        # A resumed run stores results from the start, so that it makes progress even if it is stopped repeatedly.
        ahead = 0.0 if resumed is None else BEGIN_SECONDS
        self._began, self._began_using, self._spent = time.monotonic() - ahead, time.process_time() - ahead, 0.0
        self._found: dict[str, list[Partition]] = defaultdict(list)
        for partition in [] if resumed is None else resumed.partitions:
            self._found[partition.round].append(partition)
        self.is_resumed = resumed is not None
        """True if the run was resumed from a checkpoint."""
        self.n_found = sum(map(len, self._found.values()))
        """Number of partitions in the resumed checkpoint that have not been read yet."""
        self._thread = threading.Thread(target=self._write_all, name="proteoscope-keeping", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the file; if the run was interrupted, first write the waiting rows, which a complete run does not need."""
        with self._changed:
            self._is_closed = True
            if kind is None:
                self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()
        if self._file is not None:
            self._file.close()

    @property
    def stores_results(self) -> bool:
        """True if results that are added now are stored."""
        return not self._is_closed and time.monotonic() - self._began >= BEGIN_SECONDS

    def read_rows(self, name: CheckpointName, n: int) -> list[tuple[int, int, Rows]]:
        """Return ``(first, end, rows)`` of the stored partitions of a round of `n` items, in ascending order and without overlaps."""
        if not self._found:
            return []
        with self._reading:
            partitions = self._found.pop(str(name), [])
            result, done = list[tuple[int, int, Rows]](), 0
            for partition in sorted(partitions, key=lambda partition: (partition.start, partition.stop)):
                if not done <= partition.start < partition.stop <= n or self._file is None:
                    continue
                rows = self._file.rows(partition)
                if rows is not None:
                    result.append((partition.start, partition.stop, rows))
                    done = partition.stop
        self.n_found -= len(partitions)
        return result

    def read_state(self, name: CheckpointName) -> dict[str, NDArray[Any]] | None:
        """Return the stored state of an iteration, or None if no state is stored."""
        if not self.is_resumed or self._file is None:
            return None
        with self._reading:
            return self._file.state(str(name))

    def add(self, name: CheckpointName, first: int, end: int, rows: Rows) -> None:
        """Store a copy of result rows if time and space allow.

        Parameters
        ----------
        name : CheckpointName
            Name under which the rows are stored.
        first, end : int
            Range of items (`end` exclusive); `end` is -1 for the state of an iteration.
        rows : mapping of str to ndarray
            Columns of results, one row per item.
        """
        if not self.stores_results:
            return
        n_bytes = sum(column.nbytes for column in rows.values())
        with self._changed:
            if self._n_waiting + n_bytes > _MAXIMUM_WAITING and self._n_waiting:
                return
            self._n_waiting += n_bytes
        self._waiting.append(_Waiting(name, first, end, {column: np.array(values) for column, values in rows.items()}, n_bytes))

    def _write_all(self) -> None:
        """Write waiting rows and states, on a separate thread, until the run ends or writing fails."""
        if not self.is_resumed and not self._wait(BEGIN_SECONDS):
            return
        try:
            file = self._file = self._file or self._create_file()
            is_open = True
            while is_open:
                is_open = self._wait(FLUSH_SECONDS)
                self._write_waiting(file)
        except StorageError as error:
            self._stop(str(error))

    def _wait(self, seconds: float) -> bool:
        """Wait up to `seconds`; return True if the run has not ended by then."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)
            return not self._is_closed

    def _write_waiting(self, file: CheckpointFile) -> None:
        has_written = False
        while True:
            with self._changed:
                if not self._waiting:
                    break
                waiting = self._waiting.popleft()
                self._n_waiting -= waiting.n_bytes
            # CPU time rather than wall time, since this thread shares the CPUs with the threads of the run.
            if self._spent + waiting.name.n_bytes / _DIGEST_SPEED > SHARE * (time.process_time() - self._began_using):
                continue
            if not file.has_space(waiting.n_bytes):
                self._stop("it has reached its maximum size")
                break
            began = time.thread_time()
            with self._reading, contextlib.suppress(TypeError):  # values that are not plain data are not stored
                if waiting.end < 0:
                    file.store_state(str(waiting.name), waiting.columns)
                else:
                    file.append(str(waiting.name), waiting.first, waiting.end, waiting.columns)
            self._spent += time.thread_time() - began
            has_written = True
        if has_written:
            with self._reading:
                file.flush()

    def _stop(self, reason: str) -> None:
        """Stop storing results, and give the reason in a warning."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
        self._warn(f"Further results of this run are not stored in its checkpoint, and are computed again if the run is resumed: {reason}")


class IterationCheckpoint:
    """Stored state of an iterative computation, identified by a name that is the same on every device."""

    def __init__(self, run: RunCheckpoint, name: CheckpointName) -> None:
        self._run, self._name, self._stored_at = run, name, 0.0

    def state(self) -> dict[str, NDArray[Any]] | None:
        """Return the stored state, or None at the start."""
        return self._run.read_state(self._name)

    @property
    def is_due(self) -> bool:
        """True if the iteration should store its state now, because some seconds have passed since it was last stored."""
        return self._run.stores_results and time.monotonic() - self._stored_at >= STATE_SECONDS

    def store(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Store the state, replacing the previous state."""
        self._stored_at = time.monotonic()
        self._run.add(self._name, 0, -1, columns)
