"""Execution of workloads on the workers of a cluster; implements `proteoscope.engine.execution.workload.RemoteWorkers`."""

from __future__ import annotations

import operator
import threading
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.cluster.columns import ColumnFile, NamedColumns, file_digest
from proteoscope.engine.execution.cluster.connection import Connection, RemoteDevice
from proteoscope.engine.execution.cluster.payload import pack
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.workload import Computation, PartialResult, WorkerLostBeforeError, WorkerLostError, Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import Device

__all__ = ["Cluster"]

_WAIT_SECONDS = 20.0  # seconds to wait for a worker when all are lost
_BLOCK = 1 << 22  # bytes of a file that are sent in one call
_STORED_ROUNDS = 2  # number of packed states; some workers may still be in the previous round


class Cluster:
    """Workers of a run, and the workloads that are open on them.

    Parameters
    ----------
    name : str
        Request of the user, for example ``local:4``.
    connection : Connection
        Connection to the workers.
    folder : Path
        Folder to which columns in memory are written. Workers on other machines that share the folder need no copies.
    """

    def __init__(self, name: str, connection: Connection, folder: Path) -> None:
        self.name, self.connection, self._folder = name, connection, folder
        self._lock = threading.Lock()
        self._sent: dict[int, _SentWork] = {}
        self._copying: dict[tuple[str, str], threading.Lock] = {}
        self._digests: dict[ColumnFile, str] = {}

    @property
    def has_gpus(self) -> bool:
        """True if any worker computes with a GPU."""
        return any(device.is_gpu for device in self.connection.devices())

    def devices(self) -> list[Device]:
        """Return the workers that are usable now."""
        return [*self.connection.devices()]

    def wait(self, progress: Progress, exclude: Collection[str] = ()) -> bool:
        """Wait until a worker that is not named in `exclude` is available; return True, or False if this takes too long."""
        return self.connection.wait(1, _WAIT_SECONDS, progress, exclude=exclude)

    @contextmanager
    def open(self, workload: Workload, device: Device, progress: Progress, *, with_gpu: bool) -> Iterator[Computation]:
        """Open a workload on a worker for the duration of the `with` block, and yield the computation."""
        assert isinstance(device, RemoteDevice)
        with self._lock:
            sent = self._sent.setdefault(id(workload), _SentWork(workload, self._folder))
            sent.users += 1
        opened = _RemoteComputation(self, sent, device, progress)
        try:
            opened.open(with_gpu=with_gpu)
            yield opened
        finally:
            opened.actor = None  # the worker closes the workload
            with self._lock:
                sent.users -= 1
                if not sent.users:
                    self._sent.pop(id(workload), None)
                    sent.close()

    def copy(self, opened: _RemoteComputation, file: ColumnFile) -> str:
        """Copy a file to the machine of a worker, once for all workers on that machine.

        Returns
        -------
        str
            SHA-256 of the file, which is the name of the copy on the machine.
        """
        with self._lock:
            if file not in self._digests:
                self._digests[file] = file_digest(Path(file.path))
            digest = self._digests[file]
            copying = self._copying.setdefault((opened.device.host, opened.device.store), threading.Lock())
        with copying:
            if opened.call("missing", [(list(file), digest)]):
                with Path(file.path).open("rb") as content:
                    for offset in range(0, file.size, _BLOCK):
                        opened.call("receive", digest, file.size, offset, content.read(_BLOCK))
        return digest


class _SentWork:
    """Workload and the states of its rounds, converted to bytes once for all workers."""

    def __init__(self, workload: Workload, folder: Path) -> None:
        kind = KINDS[workload.kind]()
        self.opening = workload.kind, workload.sources, workload.settings, f"{kind.__module__}:{kind.__qualname__}"
        self._folder, self.users = folder, 0
        self._lock = threading.Lock()
        self._packed: list[tuple[tuple[Any, ...], bytes, NamedColumns]] = []

    def packed(self, *values: Any) -> tuple[bytes, Mapping[str, ColumnFile]]:
        """Return `values` as bytes, and the files of their large arrays.

        The values are the tuple `opening`, or the state and items of a round.
        """
        with self._lock:
            for packed_values, packed, named in self._packed:
                if all(map(operator.is_, packed_values, values)):
                    return packed, named.files
            named = NamedColumns(self._folder)
            packed = pack(list(values), named.name)
            self._packed.append((values, packed, named))
            if len(self._packed) > 1 + _STORED_ROUNDS:
                self._packed.pop(1)[2].remove()
            return packed, named.files

    def close(self) -> None:
        for _, _, named in self._packed:
            named.remove()


class _RemoteComputation:
    """Workload that is open on a worker; implements `proteoscope.engine.execution.workload.Computation`."""

    def __init__(self, cluster: Cluster, sent: _SentWork, device: RemoteDevice, progress: Progress) -> None:
        self._cluster, self._sent, self.device, self._progress = cluster, sent, device, progress
        self.actor: Any = None

    def open(self, *, with_gpu: bool) -> None:
        self._send("open", self._sent.opening, with_gpu)

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Send the state and items of a round to the worker, packed once for all workers."""
        self._send("begin", (state, items))

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Compute a partition on the worker, step by step: each further step is computed only when its results are requested here."""
        is_new, is_done = True, False
        while not is_done:
            answer = self.call("compute", first, last, is_new)
            for end, beyond, rows in answer["results"]:
                yield PartialResult(end, rows, beyond)
            is_new, is_done = False, answer["is_done"]

    def call(self, name: str, *arguments: Any) -> Any:
        return self._cluster.connection.call(self.device, self.actor, name, *arguments, check=self._progress.check)

    def _send(self, name: str, values: tuple[Any, ...], *more: Any) -> None:
        """Call a function of the worker with packed values, after copying files that the worker's machine does not have.

        Raises
        ------
        WorkerLostBeforeError
            If the worker was lost.
        """
        (packed, files), digests = self._sent.packed(*values), dict[str, str]()
        try:
            if self.actor is None:
                self.actor = self._cluster.connection.actor(self.device, self._progress.check)
            while missing := self.call(name, packed, [(list(file), digests.get(path, "")) for path, file in files.items()], *more):
                digests |= {path: self._cluster.copy(self, files[path]) for path in missing}
        except WorkerLostError as error:
            raise WorkerLostBeforeError(str(error)) from None
