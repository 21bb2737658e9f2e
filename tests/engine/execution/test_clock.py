"""StageClock measures stages, checked with a simulated clock and allocations of known size."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from proteoscope.engine.execution import clock as clock_module
from proteoscope.engine.execution.clock import StageClock, _cpu_use, _CpuUse


@pytest.fixture
def clock_times(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Times that the simulated clock returns, in order."""
    times: list[float] = []
    monkeypatch.setattr(clock_module, "time", SimpleNamespace(perf_counter=lambda: times.pop(0)))
    return times


def test_stage_clock_sums_seconds_of_repeated_stage(clock_times: list[float]) -> None:
    clock_times += [10.0, 10.05, 20.0, 20.03, 30.0, 30.0]
    clock = StageClock()
    for name in ("read", "read", "score"):
        with clock.stage(name):
            pass
    assert list(clock.stages) == ["read", "score"]
    assert clock.stages["read"]["seconds"] == pytest.approx(0.08)
    assert clock.stages["score"]["seconds"] == 0
    assert clock_times == []


def test_stage_clock_measures_failing_stage(clock_times: list[float]) -> None:
    clock_times += [10.0, 10.02]
    clock = StageClock()
    with pytest.raises(ValueError, match="no"), clock.stage("index"):
        raise ValueError("no")
    assert clock.stages["index"]["seconds"] == pytest.approx(0.02)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can reset the high-water mark of memory")
def test_stage_clock_measures_peak_memory_of_each_stage() -> None:
    clock, size = StageClock(), 200_000_000
    with clock.stage("before"):
        pass
    with clock.stage("large"):
        block = np.ones(size, np.uint8)
    del block
    with clock.stage("after"):
        pass
    before, large, after = (clock.stages[name]["peak_memory_mb"] for name in ("before", "large", "after"))
    assert large - before == pytest.approx(size / 1e6, rel=0.1)
    assert after < large - 0.8 * size / 1e6


@pytest.mark.parametrize(
    ("thread", "waited", "process", "machine", "share"),
    [
        (1.0, 3.0, 1.0, 8.0, 1.0 / (1.0 + 3.0 * 7 / 8)),  # seven eighths of the machine's time were of other programs
        (1.0, 3.0, 4.0, 4.0, 1.0),  # the thread waited for others of this process
        (1.0, 0.0, 1.0, 8.0, 1.0),
        (0.001, 3.0, 1.0, 8.0, 1.0),  # too short
        (1.0, 3.0, 1.0, 0.0, 1.0),  # not reported
    ],
)
def test_stage_clock_measures_cpu_share_of_its_thread(
    monkeypatch: pytest.MonkeyPatch, thread: float, waited: float, process: float, machine: float, share: float
) -> None:
    uses = [_CpuUse(5.0, 2.0, 9.0, 1000.0), _CpuUse(5.0 + thread, 2.0 + waited, 9.0 + process, 1000.0 + machine)]
    monkeypatch.setattr(clock_module, "_cpu_use", lambda: uses.pop(0))
    assert StageClock().cpu_share() == pytest.approx(share)


def test_cpu_use_is_zero_if_the_system_does_not_report_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clock_module, "_SCHEDULING", tmp_path / "missing")
    assert _cpu_use() == _CpuUse()


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="only Linux reports the time for which a thread waited")
def test_cpu_use_grows_with_the_work_of_this_thread() -> None:
    before = _cpu_use()
    sum(range(5_000_000))
    after = _cpu_use()
    assert after.thread > before.thread > 0.0 and after.waited >= before.waited
    assert after.process > before.process and after.machine >= before.machine >= before.process
