"""The first start announces what it compiles and for how long, and the time of a run does not include it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proteoscope import resources
from proteoscope.engine import search_run
from proteoscope.engine.command_line.main import main
from proteoscope.engine.execution import clock, precompile
from proteoscope.engine.jobs.progress import Progress, ProgressEvent
from proteoscope.kernels.cpu import signatures

QUERIES = str(resources.path("samples", "protein_queries.fasta"))
ALIGN = ["align", QUERIES, QUERIES, "--device", "cpu", "--threads", "2", "--out"]
COMPILING = 1000.0  # s


class FakeTime:
    """Replacement for the module `time`: the clock advances by a millisecond at each reading, and by each compilation."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 0.001
        return self.now

    def compile_kernels(self, *_: object) -> None:
        self.now += COMPILING


@pytest.fixture
def first_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make searches compile for a long time, as on a new machine."""
    fake = FakeTime()
    monkeypatch.setattr(signatures, "compiled_groups", set)
    monkeypatch.setattr(search_run, "compile_kernels", fake.compile_kernels)
    for module in (search_run, clock):
        monkeypatch.setattr(module, "time", fake)


@pytest.mark.usefixtures("first_start")
def test_time_of_a_run_excludes_compilation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ALIGN, str(tmp_path / "hits.tsv"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["stages"]["compile"]["seconds"] >= COMPILING
    assert 0 < record["seconds"] < COMPILING


@pytest.mark.usefixtures("first_start")
def test_output_shows_compilation_separately_from_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ALIGN, str(tmp_path / "hits.tsv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    (seconds,) = (line for line in lines if " s on cpu (" in line)
    assert "compile" not in seconds and "score" in seconds
    assert "Before the search, kernels were compiled once for this CPU: 1000 s" in lines


def test_compilation_message_has_number_of_kernels_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    events = list[ProgressEvent]()
    monkeypatch.setattr(signatures, "is_compiled", lambda group: False)
    monkeypatch.setattr(signatures, "mark_compiled", lambda groups: None)
    monkeypatch.setattr(precompile, "_compile", lambda numbers, progress, processes: [])
    precompile.compile_kernels(["identify"], Progress(events.append), 2)
    n_kernels = len(signatures.needed_kernels(["identify"]))
    announced = [event for event in events if event.message]
    assert [event.total for event in announced] == [n_kernels]
    assert announced[0].message.startswith(f"Compiling {n_kernels} kernels for this CPU, once: about ")
