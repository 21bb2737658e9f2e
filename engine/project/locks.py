"""Locks for writers, which the operating system releases when the holding process ends, and identities of processes."""

import errno
import json
import os
import platform
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import storage_error
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.locked_files import NO_LINK, open_locked, release_locked

__all__ = ["FileLock", "ProcessIdentity"]

_POLL_SECONDS = 0.05
_MAXIMUM_DESCRIPTION = 4096


@dataclass(frozen=True)
class ProcessIdentity:
    """Unique identity of a process: another process may have the same number later, but not with the same start time.

    Attributes
    ----------
    host
        Name of the machine.
    pid
        Process number on this machine.
    started
        Boot id and clock tick at which the process started; '' if the system does not report them.
    """

    host: str
    pid: int
    started: str

    @classmethod
    def current(cls) -> Self:
        """Return this process."""
        return cls(platform.node(), os.getpid(), _process_start(os.getpid()))

    def has_ended(self) -> bool:
        """Return True if the process has certainly ended; always False for a process on another machine, which cannot be checked."""
        if self.host != platform.node() or os.name != "posix":
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return bool(self.started) and _process_start(self.pid) != self.started


def _process_start(pid: int) -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Field 22 of proc(5)'s stat; the name in brackets may itself hold spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return f"{boot}:{fields[19]}"


class FileLock:
    """Exclusive lock on a file, between processes and between threads of one process.

    The operating system releases the lock when the process that holds it ends in any way. The file remains; its text names the last holder.
    A forked child process does not inherit the lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """True if this object holds the lock."""
        return self._descriptor is not None

    @property
    def descriptor(self) -> int:
        """Descriptor of the lock file while this object holds the lock."""
        assert self._descriptor is not None
        return self._descriptor

    def acquire(self, purpose: str, wait: float = 0.0, progress: Progress | None = None) -> bool:
        """Try to acquire the lock for `wait` seconds; return True on success.

        Parameters
        ----------
        purpose
            Purpose of the lock, shown to processes that wait for it.
        progress
            Progress, which is checked for cancellation while waiting.

        Raises
        ------
        StorageError
            If the lock file cannot be written.
        """
        deadline = time.monotonic() + wait
        while not self._try():
            if time.monotonic() >= deadline:
                return False
            if progress is not None:
                progress.check()
            time.sleep(_POLL_SECONDS)
        self._describe(purpose)
        return True

    def release(self) -> None:
        """Release the lock if this object holds it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # Remove the text: it names the machine, which a published project should not.
            release_locked(descriptor, empty=True)

    def holder(self) -> str:
        """Return a text about the process that holds the lock: ``process 4711 on lab3 since 2025-01-31 10:04:05 (run identify-0002)``."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | NO_LINK)
            try:
                text = json.loads(os.read(descriptor, _MAXIMUM_DESCRIPTION))
            finally:
                os.close(descriptor)
            return f"process {text['pid']} on {text['host']} since {text['since']} ({text['purpose']})"
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return "another process"

    def _try(self) -> bool:
        try:
            self._descriptor = open_locked(self._path)
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise StorageError(f"{self._path}: this is a pipe or a device, not a file. Remove it.") from error
            raise storage_error(self._path, error) from error
        return self._descriptor is not None

    def _describe(self, purpose: str) -> None:
        since = datetime.now(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        text = json.dumps({**asdict(ProcessIdentity.current()), "since": since, "purpose": purpose}).encode()
        assert self._descriptor is not None
        try:
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, text)
        except OSError:
            # On a full disk, the lock is still held; only its description is missing, which `holder` handles.
            return
