"""Commands of the program in processes forked from one that has already loaded the program and run the same command.

The tests kill the work, or let it meet a full disk; starting Python and loading the program would take longer than a small search. Each
process ends like the program, and has its own environment, temporary folder and random numbers.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def prepare(like: str) -> None:
    """Run the command once before, so that imports do not count in the measured times."""
    _parent().ask({"prepare": like})


class ForkedCommand:
    """A command in a process of its own, with the interface of `subprocess.Popen` with text.

    `like` names the command that its parent has run, by default the same; for `keeps_at_once` see `tests.fuzz.keeping_command`.
    """

    def __init__(self, arguments: list[str], environment: Mapping[str, str], *, like: str = "", keeps_at_once: bool = False) -> None:
        self._parent, self.returncode = _parent(), None
        self._folder = tempfile.TemporaryDirectory(prefix="fork-")
        self._output, self._errors = Path(self._folder.name, "output"), Path(self._folder.name, "errors")
        for path in (self._output, self._errors):
            path.touch()  # it may be killed before it opens them
        self.pid = self._parent.ask(
            {
                "arguments": arguments,
                "environment": dict(environment),
                "output": str(self._output),
                "errors": str(self._errors),
                "like": like or arguments[0],
                "keeps_at_once": keeps_at_once,
            }
        )[0]

    def poll(self) -> int | None:
        """Exit code, negative of the signal that ended it; None while it runs."""
        return self._wait(os.WNOHANG)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send the process a signal, unless it has ended."""
        if self.returncode is None:  # a process that has not been waited for retains its number
            os.kill(self.pid, number)

    def communicate(self) -> tuple[str, str]:
        """Wait for the end of the process and return its output on both streams."""
        if self._folder is not None:
            self._wait(0)
            self._result = self._output.read_text(encoding="utf-8"), self._errors.read_text(encoding="utf-8")
            self._folder.cleanup()
            self._folder = None
        return self._result

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = self._parent.ask({"pid": self.pid, "how": how})
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def run_forked(arguments: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command from its beginning to its end."""
    process = ForkedCommand(arguments, environment)
    output, errors = process.communicate()
    assert process.returncode is not None
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


class _Parent:
    """The process that has loaded what commands need, and forks others."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PROTEOSCOPE_CACHE": self._folder.name, "TMPDIR": self._folder.name}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.forks", self._folder.name],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)

    def ask(self, request: dict[str, object]) -> list[int]:
        """Request a process, or the state of one."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        answer: list[int] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._folder.cleanup()


@cache
def _parent() -> _Parent:
    return _Parent()


@cache
def _do_once(command: str, folder: Path) -> None:
    """Run a command of this kind once, if the kind is frequent."""
    from proteoscope.engine.command_line.main import main
    from tests.engine.structures.examples import as_pdb, atoms_of, helix
    from tests.fuzz import kills
    from tests.searching import few_proteins

    spectra, database, project = str(kills.SPECTRA), str(few_proteins(folder)), ["--project", str(folder / "project")]
    (folder / "query.fasta").write_text(kills.QUERY)
    (folder / "structure.pdb").write_bytes(as_pdb(atoms_of(helix(12))))
    search = ["--device", "cpu", "--threads", "2", "--quiet"]
    arguments = {
        "identify": ["identify", spectra, "--database", database, "--preset", "low-resolution", *search],
        "align": ["align", str(folder / "query.fasta"), database, *project, *search],
        "cluster": ["cluster", spectra, "--method", "k-means", "--clusters", "60", *search],
        "structure-database": ["structure-database", "build", str(folder / "structure.pdb")],
    }
    if command in arguments:
        with redirect_stdout(io.StringIO()) as reported, redirect_stderr(reported):
            status = main([*arguments[command], "--out", str(folder / f"{command}-out")])
        assert status == 0, reported.getvalue()
    gc.collect()
    gc.freeze()


def _run_program(request: dict[str, object]) -> None:
    """Run the requested program to its end."""
    from proteoscope.engine.command_line.main import main
    from tests.fuzz.keeping_command import keep_at_once

    for stream, name in ((1, "output"), (2, "errors")):
        file = os.open(str(request[name]), os.O_WRONLY | os.O_CREAT)
        os.dup2(file, stream)
        os.close(file)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.environ.clear()
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    if request["keeps_at_once"]:
        keep_at_once()
    sys.argv[1:] = request["arguments"]
    sys.exit(main())


def serve(folder: Path) -> None:
    """Fork processes and report their states until the requests end."""
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "pid" in request:
            answer = os.waitpid(request["pid"], request["how"])
        elif "prepare" in request:
            _do_once(request["prepare"], folder)
            answer = (0, 0)
        else:
            _do_once(request["like"], folder)
            child = os.fork()
            if child == 0:
                _run_program(request)
            answer = (child, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
