"""A scheduler and workers as processes with their own certificates, as users start them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from proteoscope.engine.command_line.main import main

REPOSITORY = Path(__file__).resolve().parents[4]
_SECONDS = 60.0


class Workers(NamedTuple):
    """The address and process of a scheduler, the folder of its certificates, and the processes that run workers."""

    address: str
    scheduler: subprocess.Popen[str]
    certificates: Path
    started: list[subprocess.Popen[str]]

    @property
    def options(self) -> list[str]:
        """Command line options of a search that computes on these workers."""
        return ["--workers", self.address, "--certificates", str(self.certificates)]

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start a further process with workers."""
        process = program("workers", "start", self.address, "--certificates", str(self.certificates), "--device", "cpu", *options)
        self.started.append(process)
        return process


def program(*arguments: str) -> subprocess.Popen[str]:
    """Start the program in a process that leads a process group."""
    command = [sys.executable, "-m", "proteoscope.engine.command_line", *arguments]
    return subprocess.Popen(
        command,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextmanager
def scheduler_with_workers(folder: Path, *counts: int, threads: int = 1) -> Iterator[Workers]:
    """Run a scheduler and for each count a process with that many workers; end them after the block."""
    certificates = folder / "certificates"
    assert main(["workers", "certificates", "--out", str(certificates)]) == 0
    scheduler = program("workers", "scheduler", "tls://127.0.0.1:0", "--certificates", str(certificates))
    assert scheduler.stdout is not None
    workers = Workers(scheduler.stdout.readline().split()[-1], scheduler, certificates, [])
    try:
        for count in counts:
            workers.start("--count", str(count), "--threads", str(threads))
        yield workers
    finally:
        for process in [*workers.started, scheduler]:
            end(process)


def wait_for(condition: Callable[[], object], seconds: float = _SECONDS) -> None:
    """Wait until a condition holds, at most for the given time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def end(process: subprocess.Popen[str]) -> None:
    """End a process and all processes that it started."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10.0)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    close(process)


def close(process: subprocess.Popen[str]) -> None:
    """Close the pipes of a process."""
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
