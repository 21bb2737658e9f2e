"""StageClock measures stages, checked with a simulated clock, a sleep, and allocations of known size."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from proteoscope.engine.execution import clock as clock_module
from proteoscope.engine.execution.clock import StageClock


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


def test_stage_clock_measures_wall_time() -> None:
    clock = StageClock()
    with clock.stage("read"):
        time.sleep(0.05)
    assert clock.stages["read"]["seconds"] >= 0.05


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
