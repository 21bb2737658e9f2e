"""Kernels are compiled ahead in separate processes, each after those that it calls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

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


class FakeCompiler:
    """A compiler that compiles nothing and answers when a kernel begins; for kernel 5, it answers that it ended."""

    begun: list[int]
    entered = 0

    def __init__(self, answers: SimpleQueue) -> None:
        self.answers, self.number = answers, -1

    def __enter__(self) -> FakeCompiler:
        FakeCompiler.entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, number: int) -> None:
        self.number = number
        FakeCompiler.begun.append(number)
        self.answers.put((self, b"" if number == 5 else json.dumps("no memory" if number == 4 else "").encode()))

    def complaint(self) -> str:
        return "killed"


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the kernels of a small list, in the order in which fake processes begin them."""
    listed = tuple(ListedKernel(f"kernel{number}", [], calls) for number, calls in CALLS.items())
    monkeypatch.setattr(signatures, "listed_kernels", lambda: listed)
    monkeypatch.setattr(signatures, "kernel_groups", lambda: {"diamond": [3], "failing": [5]})
    monkeypatch.setattr(signatures, "_mark", lambda group: tmp_path / group)
    monkeypatch.setattr(precompile, "_Compiler", FakeCompiler)
    FakeCompiler.begun, FakeCompiler.entered = [], 0
    return FakeCompiler.begun


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_compile_kernels_begins_each_after_its_callees(begun: list[int], processes: int) -> None:
    seen: list[ProgressEvent] = []
    assert compile_kernels(["diamond"], Progress(seen.append), processes) == []
    assert sorted(begun) == [0, 1, 2, 3] and begun[0] == 0 and begun[-1] == 3
    assert FakeCompiler.entered == min(processes, 2), "two kernels at most can be compiled together"
    assert (seen[-1].done, seen[-1].total) == (4, 4)
    assert compile_kernels(["diamond"], Progress(), processes) == [] and len(begun) == 4, "the group is marked"


def test_compile_kernels_reports_failures_and_continues(begun: list[int]) -> None:
    seen: list[ProgressEvent] = []
    failures = compile_kernels(["failing", "diamond"], Progress(seen.append), 1)
    assert failures == ["kernel4 could not be compiled ahead: no memory", "kernel5 could not be compiled ahead: killed"]
    assert set(failures) <= {event.message for event in seen}
    assert sorted(begun) == [0, 1, 2, 3, 4, 5]
    assert not signatures.is_compiled("failing")


def test_compile_kernels_is_cancelled(begun: list[int]) -> None:
    progress = Progress(lambda event: progress.cancel() if event.done else None, interval=0.0)
    with pytest.raises(Cancelled):
        compile_kernels(["diamond"], progress, 1)
    assert begun == [0] and not signatures.is_compiled("diamond")


def test_compiler_answers_why_a_kernel_fails() -> None:
    answers: SimpleQueue = SimpleQueue()
    with precompile._Compiler(answers) as compiler:
        compiler.begin(10**6)
        assert json.loads(answers.get(timeout=60)[1]).startswith("IndexError")
        compiler._process.kill()
        assert answers.get(timeout=60) == (compiler, b"")
        assert compiler.complaint() == "the process was ended"
        compiler.begin(0)  # raises nothing: the answer contains the error


def environment(folder: Path) -> dict[str, str]:
    caches = {"NUMBA_CACHE_DIR": str(folder / "kernels"), "PROTEOSCOPE_CACHE": str(folder / "cache")}
    return os.environ | caches | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])}


def record(group: str, folder: Path, variables: dict[str, str]) -> list[str]:
    """Return the roots of the kernels that the commands of a group call in a separate process."""
    command = [sys.executable, "-m", "installer.kernel_signatures", group, str(folder / f"{group}.json")]
    subprocess.run(command, cwd=folder, env=variables, check=True, capture_output=True)
    return json.loads((folder / f"{group}.json").read_text())["roots"]


def listed(group: str) -> set[str]:
    kernels = signatures.listed_kernels()
    return {json.dumps([*kernels[number][:2]]) for number in signatures.needed_kernels([group])}


def test_compiled_kernels_are_the_called_ones(tmp_path: Path) -> None:
    """The cache is empty; the smallest group is tested here, all groups in the long test."""
    subprocess.run([sys.executable, "-c", CHILDREN, "drawing"], env=environment(tmp_path), check=True)
    compiled = {path.name for path in tmp_path.rglob("*.nbc")}
    assert compiled and set(record("drawing", tmp_path, environment(tmp_path))) <= listed("drawing")
    assert {path.name for path in tmp_path.rglob("*.nbc")} == compiled


def test_identification_calls_only_listed_kernels(tmp_path: Path) -> None:
    roots = record("identify", tmp_path, os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])})
    assert len(roots) > 10
    assert set(roots) <= listed("identify"), "run python -m installer.kernel_signatures"


@pytest.mark.long
def test_no_search_compiles_after_compile(tmp_path: Path) -> None:
    """The cache is empty; all kernels are compiled first, then the commands of all groups run."""
    variables = environment(tmp_path)
    subprocess.run([sys.executable, "-m", "proteoscope.engine.command_line", "compile"], env=variables, check=True, capture_output=True)
    compiled = {path.name for path in tmp_path.rglob("*.nbc")}
    assert len(compiled) >= len(signatures.listed_kernels())
    for group in signatures.kernel_groups():
        assert set(record(group, tmp_path, variables)) <= listed(group), f"{group}: run python -m installer.kernel_signatures"
        assert {path.name for path in tmp_path.rglob("*.nbc")} == compiled, group
