"""Python scripts that run in forked processes. The parent process imports their modules once, since this takes longer than most scripts."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]


class ForkedScript:
    """A running script; ends with its `with` block.

    Attributes
    ----------
    pid : int
    stdout : text file
        Lines of the standard output, as they are printed.
    """

    def __init__(self, server: ForkServer, pid: int, output: Path) -> None:
        self.pid, self._server, self._status = pid, server, None
        self.stdout = output.open(encoding="utf-8")

    def kill(self) -> None:
        """Kill the process, unless its end was awaited already."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the end and return the exit status, negative after a signal."""
        if self._status is None:
            self._status = self._server.request({"wait": self.pid})
        return self._status

    def __enter__(self) -> ForkedScript:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()
        self.wait()
        self.stdout.close()


class ForkServer:
    """The process that forks others.

    Parameters
    ----------
    folder : Path
        Empty folder for pipes.
    modules : sequence of str
        Modules to import once.
    """

    def __init__(self, folder: Path, modules: tuple[str, ...]) -> None:
        self._folder, self._n_scripts = folder, 0
        command = [sys.executable, "-m", "tests.forked_scripts", *modules]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def start(self, script: str, *arguments: object, environment: Mapping[str, str] | None = None) -> ForkedScript:
        """Run a script with arguments and further environment variables; what it writes to both streams is its output."""
        self._n_scripts += 1
        output = self._folder / f"output-{self._n_scripts}"
        os.mkfifo(output)
        request = {"script": script, "arguments": list(map(str, arguments)), "environment": dict(environment or {}), "output": str(output)}
        return ForkedScript(self, self.request(request), output)

    def run(self, script: str, *arguments: object, environment: Mapping[str, str] | None = None) -> str:
        """Run a script to its end and return its output."""
        with self.start(script, *arguments, environment=environment) as running:
            output = running.stdout.read()
            assert running.wait() == 0, output
        return output

    def request(self, values: dict[str, Any]) -> int:
        """Send a request and return its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(values), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def fork_server(folder: Path, *modules: str) -> Iterator[ForkServer]:
    """Start and end a process that forks others."""
    server = ForkServer(folder, modules)
    try:
        yield server
    finally:
        server.close()


def _run(script: str, arguments: list[str], environment: dict[str, str], output: str) -> None:
    file = os.open(output, os.O_WRONLY)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(environment)
    sys.argv = ["script", *arguments]
    exec(script, {"__name__": "__main__"})


def _serve() -> None:
    """Answer requests: the number of a new process, or the status of one that has ended."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        elif not (answer := os.fork()):
            status = 1
            try:
                _run(**request)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        print(answer, flush=True)


if __name__ == "__main__":
    _serve()
