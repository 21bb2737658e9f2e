"""Tests of the phases of whole commands."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.phases import BEGAN, PHASES, STARTED, Recorder
from benchmarks.whole_command import phase_table


def test_phase_recorder_counts_time_only_in_the_innermost_phase(monkeypatch):
    clock = iter([0.0, 2.0, 7.0, 8.0])
    monkeypatch.setattr("benchmarks.phases.time", SimpleNamespace(monotonic=lambda: next(clock)))
    recorder = Recorder()
    with recorder.phase("statistics"), recorder.phase("tables"):
        pass
    assert recorder.main == {"statistics": 3.0, "tables": 5.0}
    assert not recorder.others


def test_phases_of_a_command_add_up_to_its_time(tmp_path):
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks.phases", str(report), "parameters", "identify"]
    root = Path(__file__).resolve().parents[2]
    printed = subprocess.run(command, check=True, capture_output=True, env=os.environ | {STARTED: repr(BEGAN)}, cwd=root).stdout
    measured = json.loads(report.read_text())
    assert b"fdr" in printed
    assert set(measured["main"]) <= set(PHASES)
    assert sum(measured["main"].values()) == pytest.approx(measured["seconds"])
    assert all(seconds >= 0 for seconds in measured["main"].values()) and "imports" in measured["main"]


def test_phase_table_has_a_column_for_each_command():
    line = {"least_seconds": 2.0, "processor_seconds": 3.0, "device": "cpu"}
    lines = [line | {"kind": "align", "phases": {"score": [1.0, 0.5]}}, line | {"kind": "identify", "index": "built", "phases": {}}]
    header, score, *_ = phase_table(lines)
    assert header.split() == ["seconds", "align", "cpu", "identify", "cpu", "built"]
    assert score.split() == ["score", "1.000", "+0.500"]
