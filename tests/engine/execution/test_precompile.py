"""Kernels are compiled ahead in separate processes, each after those that it calls."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from proteoscope.engine.execution import precompile
from proteoscope.engine.execution.precompile import compile_kernels
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.kernels.cpu import signatures
from proteoscope.kernels.cpu.signatures import ListedKernel
from tests.conftest import REPOSITORY

CALLS = {0: [], 1: [0], 2: [0], 3: [1, 2], 4: [], 5: [4]}
CHILDREN = (
    "import sys; from proteoscope.engine.execution.precompile import compile_kernels; from proteoscope.engine.jobs.progress import "
    "Progress; assert compile_kernels(sys.argv[1:], Progress(), processes=2) == []"
)


class FakeCompilers:
    """Fake compiler processes, which record the kernels; kernel 4 returns an error, and kernel 5 ends its process."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.entered = 0

    @contextmanager
    def __call__(self) -> Iterator[Callable[[int], str]]:
        self.entered += 1
        has_ended = False

        def compile_kernel(number: int) -> str:
            nonlocal has_ended
            assert not has_ended, "a process that has ended is replaced"
            self.begun.append(number)
            if number == 5:
                has_ended = True
                raise EOFError("killed")
            return "no memory" if number == 4 else ""

        yield compile_kernel


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCompilers:
    """Fake processes that compile the kernels of a small list."""
    listed = tuple(ListedKernel(f"kernel{number}", [], calls) for number, calls in CALLS.items())
    monkeypatch.setattr(signatures, "listed_kernels", lambda: listed)
    monkeypatch.setattr(signatures, "kernel_groups", lambda: {"diamond": [3], "failing": [5]})
    monkeypatch.setattr(signatures, "_mark", lambda group: tmp_path / group)
    fakes = FakeCompilers()
    monkeypatch.setattr(precompile, "_compiler", fakes)
    return fakes


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_compile_kernels_compiles_callees_before_callers(compilers: FakeCompilers, processes: int) -> None:
    seen: list[ProgressEvent] = []
    assert compile_kernels(["diamond"], Progress(seen.append), processes) == []
    begun = compilers.begun
    assert sorted(begun) == [0, 1, 2, 3] and begun[0] == 0 and begun[-1] == 3
    assert compilers.entered == min(processes, 2), "two kernels at most can be compiled together"
    assert (seen[-1].done, seen[-1].total) == (4, 4)
    assert compile_kernels(["diamond"], Progress(), processes) == [] and len(begun) == 4, "the group is marked"


def test_compile_kernels_reports_failures_and_continues(compilers: FakeCompilers) -> None:
    seen: list[ProgressEvent] = []
    failures = compile_kernels(["failing", "diamond"], Progress(seen.append), 1)
    assert failures == ["kernel4 could not be compiled ahead: no memory", "kernel5 could not be compiled ahead: killed"]
    assert set(failures) <= {event.message for event in seen}
    assert sorted(compilers.begun) == [0, 1, 2, 3, 4, 5]
    assert not signatures.is_compiled("failing")


def test_compile_kernels_stops_at_cancel(compilers: FakeCompilers) -> None:
    progress = Progress(lambda event: progress.cancel() if event.done else None, interval=0.0)
    with pytest.raises(Cancelled):
        compile_kernels(["diamond"], progress, 1)
    assert compilers.begun == [0] and not signatures.is_compiled("diamond")


def test_compiler_process_returns_the_error_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *arguments, **options: started.append(start(*arguments, **options)) or started[-1])
    with precompile._compiler() as compile_kernel:
        assert compile_kernel(10**6).startswith("IndexError")
        started[0].kill()
        for _ in range(2):
            with pytest.raises(EOFError, match="the process was ended"):
                compile_kernel(0)
    assert started[0].returncode == -signal.SIGKILL


def test_busy_compiler_process_ends_with_its_context_manager() -> None:
    with ThreadPoolExecutor(1) as pool, precompile._compiler() as compile_kernel:
        answer = pool.submit(compile_kernel, 0)
    with pytest.raises(EOFError):
        answer.result()


def environment(folder: Path) -> dict[str, str]:
    caches = {"NUMBA_CACHE_DIR": str(folder / "kernels"), "PROTEOSCOPE_CACHE": str(folder / "cache")}
    return os.environ | caches | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}


def record(group: str, folder: Path, variables: dict[str, str]) -> list[str]:
    """Run the commands of a group in a separate process, and return the kernels that Python code calls there."""
    command = [sys.executable, "-m", "installer.kernel_signatures", group, str(folder / f"{group}.json")]
    subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True)
    return json.loads((folder / f"{group}.json").read_text())["roots"]


def listed(group: str) -> set[str]:
    kernels = signatures.listed_kernels()
    return {json.dumps([*kernels[number][:2]]) for number in signatures.needed_kernels([group])}


def test_renderer_calls_only_kernels_compiled_in_advance(tmp_path: Path) -> None:
    """The cache is empty; the smallest group is tested here, all groups in the long test."""
    subprocess.run([sys.executable, "-c", CHILDREN, "drawing"], env=environment(tmp_path), check=True)
    compiled = {path.name for path in tmp_path.rglob("*.nbc")}
    assert compiled and set(record("drawing", tmp_path, environment(tmp_path))) <= listed("drawing")
    assert {path.name for path in tmp_path.rglob("*.nbc")} == compiled


def test_identify_calls_only_kernels_in_the_list(tmp_path: Path) -> None:
    roots = record("identify", tmp_path, os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])})
    assert len(roots) > 10
    assert set(roots) <= listed("identify"), "run python -m installer.kernel_signatures"


@pytest.mark.long
def test_searches_compile_nothing_after_the_compile_command(tmp_path: Path) -> None:
    """The cache is empty; all kernels are compiled first, then the commands of all groups run."""
    variables = environment(tmp_path)
    subprocess.run([sys.executable, "-m", "proteoscope.engine.command_line", "compile"], env=variables, check=True, capture_output=True)
    compiled = {path.name for path in tmp_path.rglob("*.nbc")}
    assert len(compiled) >= len(signatures.listed_kernels())
    for group in signatures.kernel_groups():
        assert set(record(group, tmp_path, variables)) <= listed(group), f"{group}: run python -m installer.kernel_signatures"
        assert {path.name for path in tmp_path.rglob("*.nbc")} == compiled, group
