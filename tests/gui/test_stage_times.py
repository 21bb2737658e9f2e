"""Tests of the remaining time of a job against stages of given duration."""

from __future__ import annotations

import pytest

from proteoscope.engine.jobs import ProgressEvent
from proteoscope.gui.stage_times import StageTimes

EARLIER = {"Reading": 10.0, "Scoring": 60.0, "Writing": 5.0}


def test_remaining_time_is_unknown_without_an_earlier_job() -> None:
    times = StageTimes({})
    times.begin("Reading", 0.0)
    assert times.left(ProgressEvent("Reading", 1, 2, 5.0), 5.0) is None


def test_remaining_time_includes_earlier_times_of_later_stages() -> None:
    times = StageTimes(EARLIER)
    times.begin("Reading", 100.0)
    assert times.left(None, 104.0) == pytest.approx(6 + 60 + 5)
    times.begin("Scoring", 110.0)
    assert times.left(ProgressEvent("Scoring", 1, 4, 30.0), 140.0) == pytest.approx(90 + 5), "the stage's own steps know better"


def test_remaining_time_is_scaled_by_speed_of_finished_stages() -> None:
    times = StageTimes(EARLIER)
    times.begin("Reading", 0.0)
    times.begin("Scoring", 20.0)
    assert times.left(None, 20.0) == pytest.approx(2 * (60 + 5))
    assert times.left(None, 500.0) == pytest.approx(2 * 5), "no stage has less than nothing left"


def test_remaining_time_is_unknown_in_a_new_stage() -> None:
    times = StageTimes(EARLIER)
    times.begin("Compiling", 0.0)
    assert times.left(None, 1.0) is None
    times.begin("Writing", 2.0)
    assert times.left(None, 2.0) == pytest.approx(5.0)


def test_stage_times_of_finished_job_have_seconds_of_each_stage() -> None:
    times = StageTimes({})
    for stage, now in (("Reading", 0.0), ("Scoring", 2.0), ("Reading", 5.0)):
        times.begin(stage, now)
    assert times.end(6.0) == {"Reading": 3.0, "Scoring": 3.0}
