"""Times of the phases of one command, measured inside its process.

    python -m benchmarks.phases REPORT.json COMMAND...

Runs ``proteoscope COMMAND...`` and writes a report, for `whole_command.py --phases`. Functions that begin and end a phase are wrapped when
their module is imported, so that the program imports and computes the same as without measurement. Of nested phases, the time belongs to
the innermost. Phases of the main thread and its waiting add up to the time of the process; phases of other threads run at the same time.
"""

from __future__ import annotations

import functools
import importlib._bootstrap as bootstrap  # type: ignore[import-not-found, unused-ignore] # it has no stubs; all imports pass it
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BEGAN = time.monotonic()
"""When the interpreter had started."""
STARTED = "PROTEOSCOPE_BENCHMARK_STARTED"
"""Environment variable with the time at which the process was started, on the clock that all processes of a machine share."""
PHASES = (
    *("interpreter", "imports", "CUDA context", "CUDA modules", "CPU kernels", "reading", "index", "plan", "score"),
    *("statistics", "tables", "exports", "advice", "rest"),
)
"""Phases in the order of the table; ``rest`` is the main thread's remaining time, such as parsing, waiting and the end of the process."""
STAGES = {"read": "reading", "index": "index", "plan": "plan", "score": "score", "report": "statistics", "advice": "advice"}
"""Phases of the stages that every search measures; statistics is the report without tables and exports."""
FUNCTIONS = {
    "proteoscope.kernels.cuda.driver": {"begin_context": "CUDA context"},
    "proteoscope.kernels.cuda.modules": {"open_gpu": "CUDA context", "CudaGpu._compiled": "CUDA modules"},
    "numba.core.dispatcher": {"Dispatcher.compile": "CPU kernels"},
    "proteoscope.engine.results.separated": {"write_lines": "exports"},
}
"""Functions that are a phase, by module."""
CONTEXTS = {"proteoscope.engine.project.run": {"Run.table_writer": "tables"}}
"""Context managers whose block is a phase, by module."""


class Recorder:
    """Seconds of each phase, in the main thread and in all others."""

    def __init__(self) -> None:
        self.main: dict[str, float] = {}
        self.others: dict[str, float] = {}
        self._local, self._lock = threading.local(), threading.Lock()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the ``with`` block to a phase, without the time of the phases within it."""
        stack = self._local.__dict__.setdefault("stack", [])
        stack.append(0.0)
        began = time.monotonic()
        try:
            yield
        finally:
            seconds, within = time.monotonic() - began, stack.pop()
            if stack:
                stack[-1] += seconds
            thread = self.main if threading.current_thread() is threading.main_thread() else self.others
            with self._lock:
                thread[name] = thread.get(name, 0.0) + seconds - within


def _replace(module: Any, path: str, wrap: Callable[[Any], Any]) -> None:
    """Replace a function of a module, or of a class in it."""
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, module)
    setattr(owner, name, wrap(getattr(owner, name)))


def observe(recorder: Recorder) -> None:
    """Measure imports from now on, and wrap functions of the modules that are imported."""

    def of_function(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def measured(*arguments: Any, **options: Any) -> Any:
            with recorder.phase(phase):
                return function(*arguments, **options)

        return measured

    def of_context(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        @contextmanager
        def measured(*arguments: Any, **options: Any) -> Iterator[Any]:
            with recorder.phase(phase), function(*arguments, **options) as value:
                yield value

        return measured

    def of_stage(function: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def measured(clock: Any, name: str) -> Iterator[None]:
            with recorder.phase(STAGES.get(name, "rest")), function(clock, name):
                yield

        return measured

    find, waiting = bootstrap._find_and_load, {*FUNCTIONS, *CONTEXTS, "proteoscope.engine.execution.clock"}

    def find_and_load(name: str, import_: Any) -> Any:
        with recorder.phase("imports"):
            module = find(name, import_)
        if name in waiting:
            waiting.discard(name)
            for wrap, phases in ((of_function, FUNCTIONS), (of_context, CONTEXTS)):
                for path, phase in phases.get(name, {}).items():
                    _replace(module, path, functools.partial(wrap, phase=phase))
            if name.endswith(".clock"):
                _replace(module, "StageClock.stage", of_stage)
        return module

    bootstrap._find_and_load = find_and_load


def main() -> None:
    report, *command = sys.argv[1:]
    recorder = Recorder()
    observe(recorder)
    sys.argv[1:] = command
    import proteoscope.__main__  # after `observe`, which measures it

    status = proteoscope.__main__.main()
    sys.stdout.flush()
    ended = time.monotonic()
    started = float(os.environ[STARTED])
    recorder.main["interpreter"] = BEGAN - started
    recorder.main["rest"] = ended - started - sum(seconds for name, seconds in recorder.main.items() if name != "rest")
    Path(report).write_text(json.dumps({"main": recorder.main, "others": recorder.others, "seconds": ended - started}))
    os._exit(status)


if __name__ == "__main__":
    main()
