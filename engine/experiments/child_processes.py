"""Child processes that work on tasks of this process, one after the other; they exchange lines of JSON through their standard streams.

::

    parent -> child    first line: the settings; then a task, or {"stop": true} to cancel the task
    child -> parent    {"message": TEXT, "level": LEVEL} while it works, then {"answer": ...} or {"error": TEXT, "type": NAME}

A child ends when its standard input is closed, also by the death of the parent.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

from proteoscope.engine.errors import StorageError
from proteoscope.engine.execution.devices import own_program, printed_lines
from proteoscope.engine.jobs.progress import Cancelled, Progress

__all__ = ["ChildProcess", "serve_tasks"]

_PREPARATION = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # Ctrl-C reaches the parent, which stops its children
    "; from proteoscope.engine.execution.libraries import lighten_libraries; lighten_libraries()"
)
_ENDING_SECONDS = 5.0
_ERRORS: dict[str, type[Exception]] = {error.__name__: error for error in (StorageError, Cancelled)}


class ChildProcess:
    """Child process that works on tasks.

    Parameters
    ----------
    statements : str
        Python statements that call `serve_tasks`.
    settings : object
        Settings for all tasks, values for JSON.
    descriptor : int
        File descriptor that the child inherits; it is not used on Windows.
    """

    def __init__(self, statements: str, settings: Any, descriptor: int) -> None:
        self._errors, self._writing = tempfile.TemporaryFile(), threading.Lock()  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            own_program(f"{_PREPARATION}; {statements}"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=(descriptor,) if os.name == "posix" else (),
        )
        self._send(settings)

    def work(self, task: Any, report: Callable[[str, str], None]) -> Any:
        """Return the answer to a task.

        Parameters
        ----------
        task : object
            Task, values for JSON.
        report : callable
            Function that receives the text and level of each message.

        Raises
        ------
        StorageError, Cancelled
            If the task raised it.
        EOFError
            If the child ended before it answered; the message gives the reason.
        """
        self._send({"task": task})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            result = json.loads(line)
            if "message" in result:
                report(result["message"], result["level"])
            elif "error" in result:
                raise _ERRORS[result["type"]](result["error"])
            else:
                return result["answer"]
        code = self._process.wait()
        raise EOFError("".join(printed_lines(self._errors)[-1:]) or f"exit code {code}")

    def stop(self) -> None:
        """Cancel the task."""
        self._send({"stop": True})

    def close(self) -> None:
        """End the child."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError), self._writing:
            self._process.stdin.close()
        try:
            self._process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _send(self, value: Any) -> None:
        assert self._process.stdin is not None
        # A missing answer shows that the child has ended.
        with contextlib.suppress(OSError, ValueError), self._writing:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()


class _Reporting(Progress):
    """Progress that sends messages to the parent process."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        super().__init__()
        self._send = send

    def message(self, text: str, level: str = "info") -> None:
        """Send a message."""
        self._send({"message": text, "level": level})


def serve_tasks(prepare: Callable[[Any], contextlib.AbstractContextManager[Callable[[Any, Progress], Any]]]) -> None:
    """Work on the tasks of the parent process until it closes standard input, which ends this process.

    Parameters
    ----------
    prepare : callable
        Function that takes the settings, and returns a context manager. The context manager yields the function that works on a task and
        returns the answer (values for JSON). Errors in this function, except `StorageError` and `Cancelled`, end the process.
    """
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries may print
    settings, tasks, writing = json.loads(sys.stdin.readline()), queue.SimpleQueue[Any](), threading.Lock()

    def send(value: Any) -> None:
        with writing:
            answers.write(json.dumps(value) + "\n")
            answers.flush()

    progress = _Reporting(send)

    def read() -> None:
        for line in sys.stdin:
            value = json.loads(line)
            if "stop" in value:
                progress.cancel()
            else:
                tasks.put(value["task"])
        os._exit(0)  # without waiting for a running task

    threading.Thread(target=read, name="proteoscope-tasks", daemon=True).start()
    with prepare(settings) as work:
        while True:
            task = tasks.get()
            try:
                send({"answer": work(task, progress)})
            except tuple(_ERRORS.values()) as error:
                send({"error": str(error), "type": type(error).__name__})
