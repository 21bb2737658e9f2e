"""What a worker does in its own process: opens works, and computes partitions of them on its device.

The functions are called by name through `distributed`, of which a worker answers calls of `SERVICE` besides its own. They take texts,
numbers and bytes of `proteoscope.engine.execution.cluster.payload`, and return such bytes. A partition is computed by a thread of its own,
which goes on while its rows are fetched; it stops between two pieces when it is told to, or when nobody has asked for a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import platform
import re
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

from proteoscope.engine.execution.addresses import object_at
from proteoscope.engine.execution.cluster.columns import ColumnFile, file_digest, open_column, store_folder, trim_store
from proteoscope.engine.execution.cluster.payload import pack, unpack
from proteoscope.engine.execution.threads import available_threads
from proteoscope.engine.execution.work import Computation, Kind, Work
from proteoscope.engine.files import scratch_folder, temporary_folder, temporary_path
from proteoscope.engine.project.cache import cache_folder
from proteoscope.engine.version import VERSION
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.modules import card
from proteoscope.kernels.device import Device, DeviceError

__all__ = [
    "DEVICE",
    "SERVICE",
    "THREADS",
    "begin",
    "close",
    "dask_setup",
    "described",
    "fetch",
    "greet",
    "look_for",
    "make",
    "open_work",
    "receive",
    "source_digest",
    "start",
    "stop",
]

DEVICE, THREADS = "PROTEOSCOPE_WORKER_DEVICE", "PROTEOSCOPE_WORKER_THREADS"
"""Of the environment of a worker: what it computes with, ``cpu`` or ``cuda:0``, and with how many threads."""
SERVICE = "proteoscope"
"""The name under which a worker answers calls of the functions here."""
_CALLS, _QUICK_CALLS = 6, 2  # at a time, which wait for most of the time: what computes has its own thread
_REMEMBERED = 1000  # sessions that were closed
_CLOSED = {"missing": [], "failure": "it was closed"}
_PROGRAM = Path(__file__).parents[3]
# Of pieces that go together, since an answer costs who asked more than a piece does: a share of the seconds that the round goes on, for at
# its end others wait for what is still on its way.
_GATHER_SHARE, _LEAST_GATHER_SECONDS, _MOST_GATHER_SECONDS = 0.08, 0.12, 0.5
_WAIT_SECONDS = 0.5  # for a first piece, before the asker is told that there is none
_END_SECONDS = 0.05  # between the last piece of a partition and its end
_FORGOTTEN_SECONDS = 60.0  # after which nobody asks any more
_MAXIMUM_WAITING = 64 << 20  # bytes of rows that wait to be fetched
_DIGEST = re.compile("[0-9a-f]{64}")
_SOURCES = "*.py", "*.cu", "*.cuh", "*.h"


@cache
def source_digest() -> str:
    """SHA-256 of the programs that decide what rows are: of all sources of the kernels and of the searches."""
    digest = hashlib.sha256()
    for name in ("kernels", "engine"):
        folder = _PROGRAM / name
        for path in sorted(path for pattern in _SOURCES for path in folder.rglob(pattern)):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}".encode() + b"\0")
            digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def make() -> dict[str, Any]:
    """Of which make the program is in this process, for a comparison before work begins.

    `kernels` is how many sources of kernels it compiles from; `sources` tells apart what kinds of work it has.
    """
    return {
        "version": VERSION,
        "kernels": sum(1 for pattern in _SOURCES for _ in (_PROGRAM / "kernels").rglob(pattern)),
        "sources": source_digest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


class _Worker:
    """What this process has: its device, and the works that are open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions: dict[str, _Session] = {}
        self.closed = deque[str](maxlen=_REMEMBERED)  # sessions
        self.folder: str | None = None  # for files that go with this process
        self._device: Device | None = None
        self.threads = int(os.environ.get(THREADS) or available_threads())

    def device(self, *, with_card: bool) -> Device:
        """The device; the processor for what no card can do.

        Raises
        ------
        DeviceError : its card cannot be opened.
        """
        wish = os.environ.get(DEVICE, "cpu")
        if wish == "cpu" or not with_card:
            return Processor(self.threads)
        if self._device is None:
            self._device = card(int(wish.partition(":")[2]))
        return self._device


_worker = cache(_Worker)


class _Session:
    """A work that is open on the device of this worker."""

    def __init__(self) -> None:
        self.stack, self._folders = ExitStack(), ExitStack()
        self.computation: Computation | None = None
        self.digests: dict[str, str] = {}
        self.parts: dict[int, _Part] = {}
        self.following: tuple[int, int, int] | None = None  # number, first and last item of what begins when a partition is done
        self.lock = threading.Lock()
        self.began = time.monotonic()  # the round
        of_process = _worker().folder
        place = scratch_folder() if of_process is None else temporary_folder(Path(of_process) / "session")
        self.folder = self._folders.enter_context(place)

    def opened(self, packed: bytes) -> Any:
        """Plain data, with the columns that it names; of those of a round that were copied here, too."""
        return unpack(packed, lambda named: open_column(named, store_folder(cache_folder()), self.digests))

    @property
    def gather_seconds(self) -> float:
        """How long pieces are gathered that go together."""
        return min(_MOST_GATHER_SECONDS, max(_LEAST_GATHER_SECONDS, _GATHER_SHARE * (time.monotonic() - self.began)))

    def end_parts(self) -> None:
        """End what is computed, after the piece that it is at, and what was to follow; under the lock."""
        self.following = None
        for part in self.parts.values():
            part.stop()
        for part in self.parts.values():
            part.thread.join()
        self.parts.clear()

    def begin_following(self) -> None:
        """Begin what was to follow, now that what it follows is done."""
        with self.lock:
            if self.following is not None and self.computation is not None:
                number, first, last = self.following
                self.parts, self.following = {number: _Part(self.computation, first, last)}, None

    def close(self) -> None:
        """End what is computed, and close the work."""
        with self.lock:
            self.end_parts()
        self.stack.close()
        self._folders.close()


class _Part:
    """A partition while it is computed, by a thread of its own."""

    def __init__(self, computation: Computation, first: int, last: int) -> None:
        self._changed, self._last = threading.Condition(), last
        self._pieces: list[tuple[int, float, Any]] = []
        self._waiting, self._asked = 0, time.monotonic()
        self._is_stopped = self._is_done = self._is_of_device = False
        self._failure = ""
        self.thread = threading.Thread(target=self._run, args=(computation, first, last), name="proteoscope-part", daemon=True)
        self.thread.start()

    def _run(self, computation: Computation, first: int, last: int) -> None:
        try:
            with closing(computation.search(first, last)) as pieces:
                for piece in pieces:
                    rows = None if piece.rows is None else pack(dict(piece.rows))
                    if not self._put(int(piece.end), float(piece.beyond), rows):
                        break
        except DeviceError as error:
            self._failure, self._is_of_device = str(error), True
        except Exception as error:  # it goes to whoever asked for the partition
            self._failure = f"{type(error).__name__}: {error}"
        finally:
            with self._changed:
                self._is_done = True
                self._changed.notify_all()

    def _put(self, end: int, beyond: float, rows: bytes | None) -> bool:
        """Keep a piece until it is fetched; whether to go on."""
        with self._changed:
            if rows is None and self._pieces and self._pieces[-1][2] is None:
                self._pieces.pop()  # which told less
            self._pieces.append((end, beyond, rows))
            self._waiting += len(rows or b"")
            self._changed.notify_all()
            while self._waiting > _MAXIMUM_WAITING and not self._is_stopped and not self._is_forgotten:
                self._changed.wait(_WAIT_SECONDS)
            return not self._is_stopped and not self._is_forgotten

    @property
    def _is_forgotten(self) -> bool:
        return time.monotonic() - self._asked > _FORGOTTEN_SECONDS

    @property
    def is_well_done(self) -> bool:
        """Whether all of it is computed, and fetched."""
        return self._is_done and not self._failure and not self._pieces and not self._is_stopped

    def fetch(self, gather_seconds: float) -> bytes:
        """The pieces since the last time, whether that is all, and what went wrong."""
        with self._changed:
            self._asked = time.monotonic()
            self._changed.wait_for(lambda: self._is_done or 2 * self._waiting > _MAXIMUM_WAITING, gather_seconds)
            self._changed.wait_for(lambda: self._pieces or self._is_done, _WAIT_SECONDS)
            if self._pieces and self._pieces[-1][0] >= self._last:  # so that nobody must ask once more
                self._changed.wait_for(lambda: self._is_done, _END_SECONDS)
            pieces, self._pieces, self._waiting = self._pieces, [], 0
            self._changed.notify_all()
            return pack(
                {
                    "pieces": [list(piece) for piece in pieces],
                    "is_done": self._is_done,
                    "failure": self._failure,
                    "is_of_device": self._is_of_device,
                }
            )

    def stop(self) -> None:
        """Leave off after the next piece."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()


def greet() -> bytes:
    """Who this worker is: the make of its program, its machine, its device, and where copied columns lie."""
    worker, reason, description = _worker(), "", "processor"
    try:
        device = worker.device(with_card=True)
        description = f"processor, {worker.threads} threads" if device.is_processor else device.name
    except DeviceError as error:
        reason = str(error)
    wish = os.environ.get(DEVICE, "cpu")
    return pack(
        {
            "make": make(),
            "host": socket.gethostname(),
            "device": wish,
            "description": description,
            "reason": reason,
            "store": str(store_folder(cache_folder())),
            "process": os.getpid(),
        }
    )


def open_work(session: str, packed: bytes, files: bytes, is_shared: bool, with_card: bool) -> bytes:
    """Open a work, unless it is open: which of its files are not here, by their paths; then it is not.

    `files`: all that are named in it, with the digests of those that were copied here.
    """
    worker = _worker()
    with worker.lock:
        if session in worker.closed:
            return pack(_CLOSED)
        one = worker.sessions[session] = worker.sessions.get(session) or _Session()
    if missing := _missing(one, files):
        return pack({"missing": missing, "failure": ""})
    if one.computation is None:
        name, sources, settings, address = one.opened(packed)
        work = Work(name, sources, settings)
        kind: Kind = object_at(address)()
        try:
            opened = kind.open(work, worker.device(with_card=with_card), is_shared=is_shared)
            one.computation = one.stack.enter_context(opened)
        except DeviceError as error:
            return pack({"missing": [], "failure": str(error)})
        with worker.lock:
            is_wanted = session not in worker.closed
        if not is_wanted:  # who asked has closed it meanwhile, when there was nothing to close
            one.close()
            return pack(_CLOSED)
    return pack({"missing": [], "failure": ""})


def begin(session: str, packed: bytes, files: bytes) -> bytes:
    """Begin a round with its state and its items; as `open_work`."""
    one = _worker().sessions[session]
    if missing := _missing(one, files):
        return pack({"missing": missing, "failure": ""})
    with one.lock:
        one.end_parts()  # a round must not begin under the partitions of the last
        one.began = time.monotonic()
    state, items = one.opened(packed)
    assert one.computation is not None
    try:
        one.computation.begin(state, items)
    except DeviceError as error:
        return pack({"missing": [], "failure": str(error)})
    return pack({"missing": [], "failure": ""})


def _missing(session: _Session, files: bytes) -> list[str]:
    """Which of the files this machine neither sees nor has a copy of."""
    missing = []
    for fields, digest in unpack(files):
        file = ColumnFile(*fields)
        if file.path in session.digests or file.is_here:
            continue
        if digest:
            _require_digest(digest)
        copied = store_folder(cache_folder()) / digest if digest else None
        if copied is not None and copied.is_file() and copied.stat().st_size == file.size:
            with contextlib.suppress(OSError):
                os.utime(copied)
            session.digests[file.path] = digest
        else:
            missing.append(file.path)
    return missing


def _require_digest(text: str) -> None:
    """Require a SHA-256: it becomes the name of a file."""
    if _DIGEST.fullmatch(text) is None:
        raise ValueError("this is no digest")


def look_for(session: str, files: bytes) -> bytes:
    """Which of these files are not here; see `open_work`."""
    return pack({"missing": _missing(_worker().sessions[session], files), "failure": ""})


def receive(session: str, digest: str, size: int, offset: int, block: bytes) -> bytes:
    """A part of a file that is copied here; with the last, it is compared with its digest and kept."""
    _require_digest(digest)
    if not 0 <= offset <= offset + len(block) <= size:
        raise ValueError("a part of a file does not lie within it")
    folder = store_folder(cache_folder())
    if offset == 0:
        trim_store(folder, size)
    part = _worker().sessions[session].folder / digest
    with part.open("wb" if offset == 0 else "r+b") as file:
        file.seek(offset)
        file.write(block)
    if offset + len(block) == size:
        if file_digest(part) != digest:
            part.unlink()
            raise ValueError("a file did not arrive as it was sent")
        with temporary_path(folder / digest) as beside:
            shutil.move(part, beside)  # which may be another disk
            beside.replace(folder / digest)
    return b""


def start(session: str, number: int, first: int, last: int, following: tuple[int, int, int] | None = None) -> bytes:
    """Begin a partition, unless it has begun as what followed another, and fetch what there is of it; see `fetch`.

    `following`: number, first and last item of the one that begins as soon as this is done and fetched, so that the device does not wait
    for the next call. It is computed in vain where the caller asks for another after all.
    """
    one = _worker().sessions[session]
    with one.lock:
        assert one.computation is not None
        if number not in one.parts:
            one.end_parts()  # a device computes one at a time
            one.parts = {number: _Part(one.computation, first, last)}
        one.following = following
    return fetch(session, number)


def fetch(session: str, number: int) -> bytes:
    """What there is of a partition since it was last fetched; waits for half a second where there is nothing."""
    one = _worker().sessions[session]
    part = one.parts[number]
    packed = part.fetch(one.gather_seconds)
    if part.is_well_done:
        one.begin_following()
    return packed


def stop(session: str, number: int) -> bytes:
    """Leave a partition off, whether it has begun or is to follow another."""
    one = _worker().sessions.get(session)
    if one is not None:
        with one.lock:
            if one.following is not None and one.following[0] == number:
                one.following = None
            if number in one.parts:
                one.parts[number].stop()
    return b""


def close(session: str) -> bytes:
    """Close a work."""
    worker = _worker()
    with worker.lock:
        worker.closed.append(session)
        one = worker.sessions.pop(session, None)
    if one is not None:
        one.close()
    return b""


def described(found: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """What is different between the makes of two programs, in words; empty where nothing is."""
    names = {
        "version": "version {}",
        "python": "Python {}",
        "kernels": "{} sources of kernels",
        "sources": "sources {:.12}",
    }
    for name, text in names.items():
        if found.get(name) != other.get(name):
            return f"{text.format(found.get(name))} there, {text.format(other.get(name))} here"
    return ""


_FUNCTIONS: dict[str, Callable[..., bytes]] = {
    one.__name__: one for one in (greet, open_work, begin, look_for, receive, start, fetch, stop, close)
}


_QUICK = frozenset({greet.__name__, stop.__name__, close.__name__})  # which must not wait until others have opened their works


def dask_setup(worker: Any) -> None:
    """Called by `distributed` in a worker that begins, before the scheduler knows of it: it answers our calls from now on."""
    _worker().folder = worker.local_directory
    pool, quick = (ThreadPoolExecutor(n, thread_name_prefix="proteoscope-call") for n in (_CALLS, _QUICK_CALLS))

    async def answered(name: str, arguments: Sequence[Any]) -> dict[str, Any]:
        try:
            call = asyncio.get_running_loop().run_in_executor(quick if name in _QUICK else pool, _FUNCTIONS[name], *arguments)
            return {"failure": "", "answer": await call}
        except Exception as error:  # it goes to whoever called
            return {"failure": f"{type(error).__name__}: {error}"}

    worker.handlers[SERVICE] = answered
