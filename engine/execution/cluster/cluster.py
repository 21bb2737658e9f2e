"""Works on the workers of a cluster, as `proteoscope.engine.execution.elsewhere.Elsewhere`."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.execution.addresses import address_of_class
from proteoscope.engine.execution.cluster import remote
from proteoscope.engine.execution.cluster.columns import NamedColumns, Spool, blocks, file_digest
from proteoscope.engine.execution.cluster.connection import Connection, RemoteDevice
from proteoscope.engine.execution.cluster.payload import pack, unpack
from proteoscope.engine.execution.elsewhere import WorkerLostBeforeError, WorkerLostError
from proteoscope.engine.execution.kinds import KINDS
from proteoscope.engine.execution.work import Computation, Piece, Work
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import Device, DeviceError

__all__ = ["Cluster"]

_WAIT_SECONDS = 20.0  # for a worker that comes again, when all are gone
_KEPT_ROUNDS = 2  # whose packed states are there: some workers may still be at the one before


class Cluster:
    """Workers, and the works that are open on them.

    Parameters
    ----------
    spool : the folder where the columns of works are written that lie in memory; that for temporary files when None. A folder that workers
        on other machines share spares copying.
    """

    def __init__(self, name: str, connection: Connection, spool: Path | None = None) -> None:
        self.name, self._connection, self._folder = name, connection, spool
        self._spool: Spool | None = None
        self._lock = threading.Lock()
        self._sent: dict[int, _SentWork] = {}
        self._copying: dict[tuple[str, str], threading.Lock] = {}
        self._digests: dict[tuple[object, ...], str] = {}

    @property
    def has_cards(self) -> bool:
        """Whether some workers are GPUs."""
        return any(device.is_card for device in self._connection.devices())

    def devices(self) -> list[Device]:
        """See `Elsewhere`."""
        return [*self._connection.devices()]

    def wait(self, progress: Progress, but: Collection[str] = ()) -> bool:
        """See `Elsewhere`."""
        return self._connection.wait(1, _WAIT_SECONDS, progress, but=but)

    def close(self) -> None:
        """Remove what was written for the works."""
        if self._spool is not None:
            self._spool.close()

    @contextmanager
    def open(self, work: Work, device: Device, progress: Progress, *, with_card: bool) -> Iterator[Computation]:
        """See `Elsewhere`."""
        assert isinstance(device, RemoteDevice)
        with self._lock:
            if self._spool is None:
                self._spool = Spool(self._folder)
            sent = self._sent.setdefault(id(work), _SentWork(work, self._spool))
            sent.users += 1
        try:
            opened = _RemoteComputation(self, sent, device, progress)
            opened.ask(remote.open_work, sent.packed(), sent.named.files, True, with_card)
            yield opened
        finally:
            self._connection.tell(device, remote.close, sent.session)
            with self._lock:
                sent.users -= 1
                if not sent.users:
                    self._sent.pop(id(work), None)
                    sent.close()

    def ask(
        self,
        device: RemoteDevice,
        sent: _SentWork,
        function: Callable[..., bytes],
        packed: bytes,
        named: dict[str, Any],
        check: Callable[[], None],
        *more: Any,
    ) -> None:
        """Let a worker open something that names files; those that its machine does not have are copied there.

        Raises
        ------
        DeviceError : its device failed.
        """
        digests: dict[str, str] = {}
        while True:
            files = pack([(list(file), digests.get(path, "")) for path, file in named.items()])
            answer = unpack(self._connection.call(device, function, sent.session, packed, files, *more, check=check))
            if answer["failure"]:
                raise DeviceError(f"{device.name} ({device.description}): {answer['failure']}")
            if not answer["missing"]:
                return
            for path in answer["missing"]:
                if path in digests:  # it was there already, or is there now
                    self._copy(device, sent, path, digests[path], check)
                else:
                    digests[path] = self._digest(path, named[path])

    def _digest(self, path: str, file: Any) -> str:
        with self._lock:
            if file not in self._digests:
                self._digests[file] = file_digest(Path(path))
            return self._digests[file]

    def _copy(self, device: RemoteDevice, sent: _SentWork, path: str, digest: str, check: Callable[[], None]) -> None:
        """Copy a file to the machine of a worker, once however many workers there wait for it."""
        with self._lock:
            one_at_a_time = self._copying.setdefault((device.host, device.store), threading.Lock())
        with one_at_a_time:
            fields = pack([(list(sent.file_at(path)), digest)])
            if not unpack(self._connection.call(device, remote.look_for, sent.session, fields, check=check))["missing"]:
                return
            size = Path(path).stat().st_size
            for offset, block in blocks(Path(path)):
                self._connection.call(device, remote.receive, sent.session, digest, size, offset, block, check=check)

    @property
    def connection(self) -> Connection:
        """To its workers."""
        return self._connection


class _SentWork:
    """A work as bytes, made once for all workers, and the states of its rounds."""

    def __init__(self, work: Work, spool: Spool) -> None:
        self.work, self.session, self.users = work, secrets.token_hex(8), 0
        self._spool, self.named = spool, NamedColumns(spool)
        self._packed: bytes | None = None
        self._lock = threading.Lock()
        self._rounds: list[tuple[Any, Any, bytes, NamedColumns]] = []

    def packed(self) -> bytes:
        with self._lock:
            if self._packed is None:
                address = address_of_class(KINDS[self.work.kind]())
                self._packed = pack([self.work.kind, self.work.sources, self.work.settings, address], self.named.name)
            return self._packed

    def round(self, state: Any, items: NDArray[np.int64] | None) -> tuple[bytes, NamedColumns]:
        """The state and the items of a round; what is large goes through the spool."""
        with self._lock:
            for known, chosen, packed, named in self._rounds:
                if known is state and chosen is items:
                    return packed, named
            named = NamedColumns(self._spool)
            packed = pack([state, items], named.name)
            self._rounds.append((state, items, packed, named))
            for old in self._rounds[:-_KEPT_ROUNDS]:
                old[3].remove()
            del self._rounds[:-_KEPT_ROUNDS]
            return packed, named

    def file_at(self, path: str) -> Any:
        with self._lock:
            for named in (self.named, *(one[3] for one in self._rounds)):
                if path in named.files:
                    return named.files[path]
        raise KeyError(path)

    def close(self) -> None:
        for named in (self.named, *(one[3] for one in self._rounds)):
            named.remove()


class _RemoteComputation:
    """A work that is open on a worker, as `proteoscope.engine.execution.work.Computation`."""

    def __init__(self, cluster: Cluster, sent: _SentWork, device: RemoteDevice, progress: Progress) -> None:
        self._cluster, self._sent, self._device, self._check = cluster, sent, device, progress.check
        self._numbers = itertools.count()
        self._next: tuple[int, int] | None = None
        self._promised: tuple[int, int, int] | None = None  # number, first and last item of what the worker begins by itself

    def ask(self, function: Callable[..., bytes], packed: bytes, named: dict[str, Any], *more: Any) -> None:
        try:
            self._cluster.ask(self._device, self._sent, function, packed, named, self._check, *more)
        except WorkerLostError as error:
            raise WorkerLostBeforeError(str(error)) from None

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """A round begins there."""
        packed, named = self._sent.round(state, items)
        self._next = self._promised = None
        self.ask(remote.begin, packed, named.files)

    def expect(self, first: int, last: int) -> None:
        """See `proteoscope.engine.execution.elsewhere.Foreseeing`."""
        self._next = first, last

    def search(self, first: int, last: int) -> Generator[Piece, None, None]:
        """Compute a partition there: it goes on while pieces are on their way."""
        connection, session = self._cluster.connection, self._sent.session
        is_promised = self._promised is not None and self._promised[1:] == (first, last)
        number = self._promised[0] if self._promised is not None and is_promised else next(self._numbers)
        self._promised = None if self._next is None else (next(self._numbers), *self._next)
        self._next, is_done = None, False
        try:
            packed = connection.call(self._device, remote.start, session, number, first, last, self._promised, check=self._check)
            while True:
                found = unpack(packed)
                for end, beyond, rows in found["pieces"]:
                    yield Piece(end, None if rows is None else unpack(rows), beyond)
                is_done = found["is_done"]
                if found["failure"]:
                    text = f"{self._device.name} ({self._device.description}): {found['failure']}"
                    raise DeviceError(text) if found["is_of_device"] else RuntimeError(text)
                if is_done:
                    return
                packed = connection.call(self._device, remote.fetch, session, number, check=self._check)
        finally:
            if not is_done:
                for one in (number, *(self._promised or ())[:1]):
                    connection.tell(self._device, remote.stop, session, one)
                self._promised = None
