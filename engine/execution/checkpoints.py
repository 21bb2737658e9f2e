"""Keep what a run has computed, so that it goes on where it was stopped: finished partitions of rounds, and states of iterations.

A partition is pure: its rows depend on the work, the state of the round and its items alone. So they are kept under a digest of these, and
a run that goes on, on whatever devices, asks for the same digests and computes what is not there.

::

    kept.of(work).round(state, items)     which items of a round are done, with their rows; takes new ones
    kept.of(work).checkpoint(asked)       where an iteration stands; takes how far it has come

All is written by a thread behind the devices, after some seconds, and with no more than a hundredth of the processor's time: what is beyond
that is not kept, and is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution.workload import Rows, Workload
from proteoscope.engine.project.checkpoint_file import CheckpointFile, Partition

__all__ = ["IterationCheckpoint", "RoundCheckpoint", "RunCheckpoint", "WorkloadCheckpoint", "plain_digest"]

BEGIN_SECONDS = 5.0
"""A shorter run keeps nothing."""
SHARE = 0.01
"""Maximum fraction of CPU time for storing."""
FLUSH_SECONDS = 0.5
STATE_SECONDS = 5.0  # between two states of an iteration
_MAXIMUM_WAITING = 64 << 20  # bytes of rows that wait to be written
_DIGEST_SPEED = 1e9  # bytes that are digested in a second, about


def plain_digest(value: Any) -> str:
    """SHA-256 of plain data, in hexadecimal: numbers, texts, arrays, and sequences and mappings of them.

    Raises
    ------
    TypeError
        It is something else.
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
            for one in value:
                _feed(digest, one)
        case _:
            raise TypeError(f"{type(value).__name__} is not plain data")


def _bytes_of(value: Any) -> int:
    """Return the bytes of arrays in plain data."""
    match value:
        case np.ndarray():
            return value.nbytes
        case _Name():
            return value.n_bytes
        case Mapping():
            return sum(map(_bytes_of, value.values()))
        case list() | tuple():
            return sum(map(_bytes_of, value))
    return 0


class _Name:
    """Digest of the inputs of rows, computed on first use."""

    def __init__(self, *parts: Any) -> None:
        self._parts: tuple[Any, ...] | None = parts
        self._digest = ""

    @property
    def n_bytes(self) -> int:
        """Bytes that are not hashed yet."""
        return 0 if self._parts is None else _bytes_of(self._parts)

    def __str__(self) -> str:
        parts = self._parts
        if parts is not None:
            self._digest = plain_digest([str(part) if isinstance(part, _Name) else part for part in parts])
            self._parts = None
        return self._digest


class _Waiting(NamedTuple):
    """Rows that wait to be written; `end` -1: a state of an iteration."""

    name: _Name
    first: int
    end: int
    columns: dict[str, NDArray]
    n_bytes: int


class RunCheckpoint:
    """Stored results of a running search; a block during which it runs.

    Parameters
    ----------
    create_file : callable
        Creates the checkpoint after some seconds of the run; raises StorageError if writing fails.
    warn : callable
        Receives the reason, once, if nothing more is stored.
    resumed : CheckpointFile, optional
        Checkpoint of the resumed run.
    """

    def __init__(
        self, create_file: Callable[[], CheckpointFile], warn: Callable[[str], None], resumed: CheckpointFile | None = None
    ) -> None:
        self._create_file, self._warn, self._file = create_file, warn, resumed
        self._changed = threading.Condition()
        self._reading = threading.Lock()  # readers start at the beginning of the file; new records are appended
        self._waiting: deque[_Waiting] = deque()
        self._n_waiting, self._is_closed, self._is_over = 0, False, False
        # What goes on keeps at once: one that is stopped again and again comes to its end too.
        ahead = 0.0 if resumed is None else BEGIN_SECONDS
        self._began, self._began_using, self._spent = time.monotonic() - ahead, time.process_time() - ahead, 0.0
        self._found: dict[str, list[Partition]] = defaultdict(list)
        for partition in [] if resumed is None else resumed.partitions:
            self._found[partition.round].append(partition)
        self.is_resumed = resumed is not None
        """True if the run resumes from stored rows."""
        self.n_found = sum(map(len, self._found.values()))
        """Number of stored partitions that are not used yet."""
        self._thread = threading.Thread(target=self._write_all, name="proteoscope-keeping", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write what waits, unless the run is at its end, and close the file."""
        with self._changed:
            self._is_closed = True
            if kind is None:
                self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()
        if self._file is not None:
            self._file.close()

    @property
    def is_keeping(self) -> bool:
        """True if current results are stored."""
        return not self._is_over and not self._is_closed and time.monotonic() - self._began >= BEGIN_SECONDS

    def of(self, workload: Workload) -> WorkloadCheckpoint:
        """Return the stored results of a workload."""
        return WorkloadCheckpoint(self, workload)

    def rows_of(self, name: _Name, n: int) -> list[tuple[int, int, Rows]]:
        """Return the stored partitions of a round of `n` items by position, without overlaps."""
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

    def state_of(self, name: _Name) -> dict[str, NDArray] | None:
        """Return the stored state of an iteration."""
        if not self.is_resumed or self._file is None:
            return None
        with self._reading:
            return self._file.state(str(name))

    def add(self, name: _Name, first: int, end: int, rows: Rows) -> None:
        """Store rows if time and space allow; they may be changed afterwards. `end` -1: the state of an iteration."""
        if not self.is_keeping:
            return
        n_bytes = sum(column.nbytes for column in rows.values())
        with self._changed:
            if self._n_waiting + n_bytes > _MAXIMUM_WAITING and self._n_waiting:
                return
            self._n_waiting += n_bytes
        one = _Waiting(name, first, end, {column: np.array(values) for column, values in rows.items()}, n_bytes)
        with self._changed:
            self._waiting.append(one)

    def _write_all(self) -> None:
        """Write in a thread."""
        if not self.is_resumed and not self._wait(BEGIN_SECONDS):
            return
        try:
            if self._file is None:
                self._file = self._create_file()
            is_open = True
            while is_open:
                is_open = self._wait(FLUSH_SECONDS)
                self._write_waiting()
        except StorageError as error:
            self._stop(str(error))

    def _wait(self, seconds: float) -> bool:
        """Wait and return True if the run continues."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)
            return not self._is_closed

    def _write_waiting(self) -> None:
        assert self._file is not None
        has_written = False
        while True:
            with self._changed:
                if not self._waiting:
                    break
                one = self._waiting.popleft()
                self._n_waiting -= one.n_bytes
            # In processor time, since the run's threads and this one have the same processors.
            if self._spent + one.name.n_bytes / _DIGEST_SPEED > SHARE * (time.process_time() - self._began_using):
                continue
            if not self._file.has_space(one.n_bytes):
                self._stop("it has reached its maximum size")
                break
            began = time.thread_time()
            with self._reading, contextlib.suppress(TypeError):  # values that are not plain data are not stored
                if one.end < 0:
                    self._file.store_state(str(one.name), one.columns)
                else:
                    self._file.append(str(one.name), one.first, one.end, one.columns)
            self._spent += time.thread_time() - began
            has_written = True
        if has_written:
            with self._reading:
                self._file.flush()

    def _stop(self, reason: str) -> None:
        """Keep nothing more."""
        with self._changed:
            self._is_over = True
            self._waiting.clear()
        self._warn(f"What this run computes from now on is not in its checkpoint, and is computed again if the run is resumed: {reason}")


class WorkloadCheckpoint:
    """Stored results of a workload; made by `RunCheckpoint.of`."""

    def __init__(self, kept: RunCheckpoint, workload: Workload) -> None:
        self._kept, self._name = kept, _Name("work", workload.kind, workload.sources, workload.settings)

    def round(self, state: Any, items: NDArray[np.int64] | None) -> RoundCheckpoint:
        """Return the stored results of a round with this state and these items (all when None)."""
        return RoundCheckpoint(self._kept, _Name("round", self._name, state, items))

    def checkpoint(self, asked: Any) -> IterationCheckpoint:
        """Return the state of an iteration identified by plain data equal on every device."""
        return IterationCheckpoint(self._kept, _Name("checkpoint", self._name, asked))


class RoundCheckpoint:
    """Stored results of a round; made by `WorkloadCheckpoint.round`."""

    def __init__(self, kept: RunCheckpoint, name: _Name) -> None:
        self._kept, self._name = kept, name

    def done(self, n: int) -> list[tuple[int, int, Rows]]:
        """Return the stored results of the `n` items: ``(first, end, rows)``, ascending, without overlaps."""
        return self._kept.rows_of(self._name, n)

    def add(self, first: int, end: int, rows: Rows) -> None:
        """Rows of the items `first:end` came."""
        self._kept.add(self._name, first, end, rows)


class IterationCheckpoint:
    """State of an iteration; made by `WorkloadCheckpoint.checkpoint`."""

    def __init__(self, kept: RunCheckpoint, name: _Name) -> None:
        self._kept, self._name, self._told = kept, name, 0.0

    def state(self) -> dict[str, NDArray] | None:
        """Return the stored state, or None at the start."""
        return self._kept.state_of(self._name)

    @property
    def is_due(self) -> bool:
        """True if the iteration should store its state."""
        return self._kept.is_keeping and time.monotonic() - self._told >= STATE_SECONDS

    def keep(self, columns: Mapping[str, NDArray]) -> None:
        """Store the state."""
        self._told = time.monotonic()
        self._kept.add(self._name, 0, -1, columns)
