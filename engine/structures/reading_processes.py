"""Reading of structure files in separate processes.

gemmi holds the GIL while reading, and a malicious file must not crash the program. If a process dies or exceeds its time, only the
file that it was reading is skipped.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

from proteoscope.engine.end_signals import END_SIGNALS
from proteoscope.engine.errors import InputError
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.structures.reading import Models, StructureFile, read_structure

__all__ = ["read_structures"]

_MAXIMUM_SECONDS = 120.0
"""Maximum time per file, s; the largest assemblies take ten seconds."""
_MAXIMUM_MEMORY = 8 << 30
_UNDER_WAY = 4  # files queued for each process, so that it never waits for the next file
_FILES_OF_A_PROCESS = 16  # minimum number of files per process, since starting a process takes a second
_CHECK_SECONDS = 0.1


def read_structures(
    paths: Sequence[Path], processes: int, progress: Progress, *, minimum_plddt: float = 0.0, models: Models = "first"
) -> Iterator[tuple[int, StructureFile | str]]:
    """Read files in several processes; yield their contents in the order of completion.

    Parameters
    ----------
    paths : sequence of Path
        Files to read.
    processes : int
        Maximum number of processes.
    progress : Progress
        Progress, which is checked for cancellation several times a second.
    minimum_plddt : float
        Minimum pLDDT (see `read_structure`).
    models : Models
        Models to read (see `read_structure`).

    Yields
    ------
    int
        Index of the file in `paths`.
    StructureFile or str
        Content of the file, or the reason why it is omitted.
    """
    waiting = deque(range(len(paths)))
    context = multiprocessing.get_context("spawn")
    n_readers = max(1, min(processes, -(-len(paths) // _FILES_OF_A_PROCESS)))
    readers = [_Reader(context, minimum_plddt, models) for _ in range(n_readers if paths else 0)]
    try:
        n_left = len(paths)
        while n_left:
            progress.check()
            for reader in readers:
                while waiting and len(reader.under_way) < _UNDER_WAY:
                    reader.give(waiting.popleft(), paths)
            ready = set(wait([reader.connection for reader in readers], timeout=_CHECK_SECONDS))
            for position, reader in enumerate(readers):
                reason = ""
                if reader.connection in ready:
                    try:
                        result = reader.connection.recv()
                        n_left -= 1
                        yield reader.finished(), result
                        continue
                    except (EOFError, OSError):
                        reason = "crashed the process that read it"
                elif reader.is_late:
                    reason = f"took more than {_MAXIMUM_SECONDS:.0f} s to read"
                if reason:
                    reader.end()
                    readers[position] = _Reader(context, minimum_plddt, models)
                    if reader.under_way:
                        n_left -= 1
                        failed = reader.finished()
                        waiting.extendleft(reversed(reader.under_way))
                        yield failed, f"{paths[failed]}: {reason}. Omit it, or write it again with another program."
    finally:
        for reader in readers:
            reader.end()


class _Reader:
    """Process that reads files one after another; `under_way` contains the indices of its unfinished files, in this order."""

    def __init__(self, context: Any, minimum_plddt: float, models: Models) -> None:
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, minimum_plddt, models), daemon=True)
        with _without_main_module():
            self._process.start()
        theirs.close()
        self.under_way: deque[int] = deque()
        self._began = time.monotonic()

    @property
    def is_late(self) -> bool:
        """True if the process has exceeded the maximum time for the file that it is reading."""
        return bool(self.under_way) and time.monotonic() - self._began > _MAXIMUM_SECONDS

    def give(self, number: int, paths: Sequence[Path]) -> None:
        """Send the path of a further file to the process."""
        if not self.under_way:
            self._began = time.monotonic()
        self.under_way.append(number)
        with suppress(OSError):  # `recv` detects a process that has died
            self.connection.send(os.fspath(paths[number]))

    def finished(self) -> int:
        """Remove the file that the process has just finished from `under_way`, and return its index."""
        self._began = time.monotonic()
        return self.under_way.popleft()

    def end(self) -> None:
        """Kill the process."""
        self.connection.close()
        self._process.kill()
        self._process.join()


_starting = threading.Lock()


@contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide the main module during the block; otherwise, a process that is started there would run an unprotected user's script again."""
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


def _serve(connection: Connection, minimum_plddt: float, models: Models) -> None:
    """Read files in a reading process until the connection is closed."""
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # the parent process receives the signal too, and ends this process
    _limit_memory()
    with suppress(EOFError, OSError):
        while True:
            path = Path(connection.recv())
            try:
                result = read_structure(path, minimum_plddt=minimum_plddt, models=models)
                connection.send(result if len(result.chains) else str(result.empty_error()))
            except InputError as error:
                connection.send(str(error))
            except MemoryError:
                connection.send(f"{path}: needs more memory than is available. Divide it into files of a few chains each.")


def _limit_memory() -> None:
    if sys.platform == "linux":
        import resource  # not on Windows

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + _MAXIMUM_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
