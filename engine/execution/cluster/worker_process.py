"""Functions that run in a worker: opening of a workload, and computation of partitions on the worker's device.

A `RemoteWorkload` is an actor of `distributed`: it exists in a worker as long as the run refers to it. Its functions, and the functions of
other actors in the worker, run one after another on the same thread. Arguments and results are plain data
(`proteoscope.engine.execution.cluster.payload`).
"""

import contextlib
import hashlib
import os
import platform
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from proteoscope.engine.execution.cluster.columns import ColumnFile, file_digest, open_column, store_folder, trim_store
from proteoscope.engine.execution.cluster.payload import pack, unpack
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.execution.workload import Computation, PartialResult, Workload, WorkloadType
from proteoscope.engine.files import temporary_path
from proteoscope.engine.version import VERSION
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.modules import open_gpu
from proteoscope.kernels.device import Device, DeviceError

__all__ = ["DEVICE", "THREADS", "RemoteWorkload", "greet", "program_version", "source_digest", "version_difference"]

DEVICE, THREADS = "PROTEOSCOPE_WORKER_DEVICE", "PROTEOSCOPE_WORKER_THREADS"
"""Environment variables of a worker: device (``cpu`` or ``cuda:0``), and number of threads."""
_PROGRAM = Path(__file__).parents[3]
_SOURCES = "*.py", "*.cu", "*.cuh", "*.h"
_DIGEST = re.compile("[0-9a-f]{64}")
# An answer costs the run more than computing a partial result, so that an answer contains several partial results. It covers a fraction of
# the seconds since the round began, because at the end of the round the other workers wait for outstanding answers.
_GATHER_SHARE, _MINIMUM_GATHER_SECONDS, _MAXIMUM_GATHER_SECONDS = 0.08, 0.12, 0.5
_MAXIMUM_ROW_BYTES = 32 << 20
"""Number of bytes of rows after which an answer is sent, to limit the memory of both sides."""


@cache
def source_digest() -> str:
    """Return the SHA-256 of all source files of the kernels and searches, which determine the result rows."""
    digest = hashlib.sha256()
    for name in ("kernels", "engine"):
        folder = _PROGRAM / name
        for path in sorted(path for pattern in _SOURCES for path in folder.rglob(pattern)):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}".encode() + b"\0")
            digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()


def program_version() -> dict[str, Any]:
    """Return the versions that must be equal in a worker and in the run that uses it.

    Returns
    -------
    dict
        ``version`` of the program, digest of all ``sources``, and version of ``python``.
    """
    return {
        "version": VERSION,
        "sources": source_digest(),
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


def version_difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return a description of the first difference between the `program_version` of a worker and of this process; '' if equal."""
    names = {"version": "version {}", "python": "Python {}", "sources": "sources {:.12}"}
    for name, text in names.items():
        if there.get(name) != here.get(name):
            return f"{text.format(there.get(name))} there, {text.format(here.get(name))} here"
    return ""


def _thread_count() -> int:
    return int(os.environ.get(THREADS) or available_threads())


def _device(*, with_gpu: bool) -> Device:
    """Return the device of this worker; without `with_gpu`, its CPU.

    Raises
    ------
    DeviceError
        If the GPU cannot be opened.
    """
    name = os.environ.get(DEVICE, "cpu")
    return open_gpu(int(name.partition(":")[2])) if with_gpu and name != "cpu" else Processor(_thread_count())


def greet() -> bytes:
    """Return a description of this worker: program version, machine, device, and folder for copied files."""
    reason, description = "", f"processor, {_thread_count()} threads"
    try:
        device = _device(with_gpu=True)
        description = description if device.is_processor else device.name
    except DeviceError as error:
        reason = str(error)
    return pack(
        {
            "make": program_version(),
            "host": socket.gethostname(),
            "device": os.environ.get(DEVICE, "cpu"),
            "description": description,
            "reason": reason,
            "store": str(store_folder()),
            "process": os.getpid(),
        }
    )


class RemoteWorkload:
    """Workload on the device of this worker; deleting the object closes the workload."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._computation: Computation  # set by `open`
        self._results: Iterator[PartialResult] = iter(())
        self._digests: dict[str, str] = {}  # digests of the files that were copied to this machine, by their path in the run
        self._arrival, self._arriving = ExitStack(), Path()
        self._begun = 0.0

    def __del__(self) -> None:
        """Close the workload, because the run has ended or does not need it any more."""
        self._results = iter(())  # a search must end before the objects that it uses are closed
        self._stack.close()
        self._arrival.close()

    def call(self, name: str, *arguments: Any) -> bytes:
        """Call a function of the workload by name.

        Parameters
        ----------
        name : str
            Name of a function in `FUNCTIONS`.
        *arguments : object
            Arguments of the function.

        Returns
        -------
        bytes
            Packed result, or the text of an error, with `is_of_device` for errors of the device.
        """
        try:
            return pack({"answer": FUNCTIONS[name](self, *arguments)})
        except Exception as error:
            is_of_device = isinstance(error, DeviceError)
            return pack({"error": str(error) if is_of_device else f"{type(error).__name__}: {error}", "is_of_device": is_of_device})

    def open(self, packed: bytes, files: Sequence[Any], with_gpu: bool) -> list[str]:
        """Open the workload unless files are missing.

        Parameters
        ----------
        packed : bytes
            Packed name, sources and settings of the workload, and module and name of its type.
        files : sequence of (ColumnFile as a list, digest)
            Files to which `packed` refers; the digest is empty for a file that was not copied to this machine.
        with_gpu : bool
            True if GPUs support the workload.

        Returns
        -------
        list of str
            Paths of the files that this machine does not have.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        if missing := self.missing(files):
            return missing
        name, sources, settings, address = self._unpacked(packed)
        kind: WorkloadType = resolve_name(address)()
        opening = kind.open(Workload(name, sources, settings), _device(with_gpu=with_gpu), is_shared=True)
        self._computation = self._stack.enter_context(opening)
        return []

    def begin(self, packed: bytes, files: Sequence[Any]) -> list[str]:
        """Begin a round with its packed state and items (see `open` for the parameters and result)."""
        if missing := self.missing(files):
            return missing
        self._results, self._begun = iter(()), time.monotonic()
        state, items = self._unpacked(packed)
        self._computation.begin(state, items)
        return []

    def _unpacked(self, packed: bytes) -> Any:
        return unpack(packed, lambda named: open_column(named, store_folder(), self._digests))

    def compute(self, first: int, last: int, is_new: bool) -> dict[str, Any]:
        """Compute items of a partition for some time, or until there are many results, and return the results.

        Parameters
        ----------
        first, last : int
            Range of the round's items to compute (`last` exclusive).
        is_new : bool
            True to begin the partition `first:last`, and abandon an unfinished partition; False to continue the partition begun before.

        Returns
        -------
        dict
            ``results``: a list ``[end, beyond, rows]`` for each partial result (see `PartialResult`). ``is_done``: True if the partition
            is complete.

        Raises
        ------
        DeviceError
            If the device failed.
        """
        if is_new:
            self._results = self._computation.search(first, last)
        gathering = _GATHER_SHARE * (time.monotonic() - self._begun)
        until = time.monotonic() + min(_MAXIMUM_GATHER_SECONDS, max(_MINIMUM_GATHER_SECONDS, gathering))
        results, n_bytes = list[list[Any]](), 0
        for result in self._results:
            if result.rows is None and results and results[-1][2] is None:
                results.pop()  # the previous result only reports progress, which this result includes
            results.append([int(result.end), float(result.beyond), None if result.rows is None else dict(result.rows)])
            n_bytes += sum(column.nbytes for column in (result.rows or {}).values())
            if result.end < last and (time.monotonic() > until or n_bytes > _MAXIMUM_ROW_BYTES):
                return {"results": results, "is_done": False}
        return {"results": results, "is_done": True}

    def missing(self, files: Sequence[Any]) -> list[str]:
        """Return the paths of the files that this machine has neither under the original path nor as a copy (see `open`)."""
        missing = []
        for fields, digest in files:
            file = ColumnFile(*fields)
            if file.path in self._digests or file.is_unchanged:
                continue
            copy = _stored(digest) if digest else None
            if copy is not None and copy.is_file() and copy.stat().st_size == file.size:
                with contextlib.suppress(OSError):
                    os.utime(copy)
                self._digests[file.path] = digest
            else:
                missing.append(file.path)
        return missing

    def receive(self, digest: str, size: int, offset: int, block: bytes) -> None:
        """Write a block of a file that is copied to this machine; the last block completes the file.

        Raises
        ------
        ValueError
            If the block is outside the file, or the complete file does not have the digest.
        """
        stored = _stored(digest)
        if not 0 <= offset <= offset + len(block) <= size:
            raise ValueError("a block lies outside its file")
        if offset == 0:
            trim_store(stored.parent, size)
            self._arriving = self._arrival.enter_context(temporary_path(stored))
        with self._arriving.open("wb" if offset == 0 else "r+b") as file:
            file.seek(offset)
            file.write(block)
        if offset + len(block) == size:
            with self._arrival:
                if file_digest(self._arriving) != digest:
                    raise ValueError("a file did not arrive as it was sent")
                self._arriving.replace(stored)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        RemoteWorkload.open,
        RemoteWorkload.begin,
        RemoteWorkload.compute,
        RemoteWorkload.missing,
        RemoteWorkload.receive,
    )
}
"""Functions of a `RemoteWorkload` that a run may call, by name."""


def _stored(digest: str) -> Path:
    """Return the path of a copied file with a digest.

    Raises
    ------
    ValueError
        If `digest`, which becomes the name of a file, is not a SHA-256.
    """
    if _DIGEST.fullmatch(digest) is None:
        raise ValueError("this is not a digest")
    return store_folder() / digest
