"""RecordingProgress passes everything on and stores the messages shown to the user; LimitedProgress ends work after a time."""

import math

import pytest

from proteoscope.engine.jobs.progress import PASSING, Cancelled, LimitedProgress, Progress, ProgressEvent, RecordingProgress, TimeOverError


def test_recording_progress_stores_and_logs_all_messages() -> None:
    shown: list[str] = []
    logged: list[tuple[str, str]] = []
    recording = RecordingProgress(Progress(lambda event: shown.append(event.message)))
    recording.message("a GPU cannot be opened", "warning")
    recording.log_to(lambda level, text: logged.append((level, text)))
    recording.message("a GPU is lost")
    assert recording.messages == ("a GPU cannot be opened", "a GPU is lost")
    assert logged == [("warning", "a GPU cannot be opened"), ("info", "a GPU is lost")]
    assert shown == list(recording.messages)


def test_recording_progress_forwards_stages_steps_and_cancels() -> None:
    events: list[ProgressEvent] = []
    other = Progress(events.append, interval=0)
    recording = RecordingProgress(other)
    recording.stage("Scoring", 3)
    recording.advance(3)
    assert [(event.stage, event.done, event.total) for event in events] == [("Scoring", 0, 3), ("Scoring", 3, 3)]
    recording.check()
    other.cancel()
    assert recording.is_cancelled
    for call in (recording.check, recording.advance, lambda: recording.stage("Writing")):
        with pytest.raises(Cancelled):
            call()
    wrapped = Progress()
    RecordingProgress(wrapped).cancel()
    assert wrapped.is_cancelled


def test_recording_progress_does_not_store_passing_messages():
    """Waiting for the compilation of kernels is not a property of the run."""
    shown, logged = list[str](), list[str]()
    recording = RecordingProgress(Progress(lambda event: shown.append(event.message)))
    recording.log_to(lambda level, text: logged.append(text))
    recording.message("compiling", PASSING)
    recording.message("compiled without a cache", "warning")
    assert shown == ["compiling", "compiled without a cache"]
    assert recording.messages == ("compiled without a cache",) and logged == ["compiled without a cache"]


def test_limited_progress_ends_work_at_its_deadline() -> None:
    time = 100.0
    limited = LimitedProgress(Progress(), 5.0, lambda: time)
    time = 104.0
    limited.check()
    assert limited.seconds_left == 1.0 and not limited.is_cancelled
    time = 105.0
    assert limited.is_cancelled
    for call in (limited.check, limited.advance, lambda: limited.stage("Advising")):
        with pytest.raises(TimeOverError):
            call()


def test_limited_progress_without_a_limit_never_ends() -> None:
    limited = LimitedProgress(Progress(), None, lambda: 1e9)
    limited.check()
    assert limited.seconds_left == math.inf and not limited.is_cancelled
