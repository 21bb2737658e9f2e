"""The clock of the stages, against sleeps and allocations of known size."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from engine.execution.clock import StageClock


def test_seconds_of_a_stage_add_up() -> None:
    clock = StageClock()
    for pause in (0.05, 0.03):
        with clock.stage("read"):
            time.sleep(pause)
    with clock.stage("score"):
        pass
    assert list(clock.stages) == ["read", "score"]
    assert 0.08 <= clock.stages["read"]["seconds"] < 5
    assert clock.stages["score"]["seconds"] < 0.08


def test_a_stage_that_fails_is_measured_too() -> None:
    clock = StageClock()
    with pytest.raises(ValueError, match="no"), clock.stage("index"):
        time.sleep(0.02)
        raise ValueError("no")
    assert clock.stages["index"]["seconds"] >= 0.02


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux can reset the high-water mark of memory")
def test_memory_is_that_of_the_stage_and_not_of_those_before() -> None:
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
