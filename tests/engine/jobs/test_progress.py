"""A progress that records passes everything on, and keeps what the user was told."""

import pytest

from proteoscope.engine.jobs.progress import PASSING, Cancelled, Progress, ProgressEvent, RecordingProgress


def test_messages_are_kept_and_logged_also_those_from_before_the_log() -> None:
    shown: list[str] = []
    logged: list[tuple[str, str]] = []
    recording = RecordingProgress(Progress(lambda event: shown.append(event.message)))
    recording.message("a card cannot be opened", "warning")
    recording.log_to(lambda level, text: logged.append((level, text)))
    recording.message("a card is lost")
    assert recording.messages == ("a card cannot be opened", "a card is lost")
    assert logged == [("warning", "a card cannot be opened"), ("info", "a card is lost")]
    assert shown == list(recording.messages)


def test_stages_steps_and_cancels_are_those_of_the_other_progress() -> None:
    events: list[ProgressEvent] = []
    other = Progress(events.append, interval=0)
    recording = RecordingProgress(other)
    recording.stage("Scoring", 3)
    recording.advance(3)
    assert [(event.stage, event.done, event.total) for event in events] == [("Scoring", 0, 3), ("Scoring", 3, 3)]
    recording.check()
    other.cancel()
    assert recording.is_cancelled
    for ask in (recording.check, recording.advance, lambda: recording.stage("Writing")):
        with pytest.raises(Cancelled):
            ask()
    one = Progress()
    RecordingProgress(one).cancel()
    assert one.is_cancelled


def test_a_passing_message_is_shown_and_kept_by_no_record():
    """That kernels are being compiled is no fact of the run that waited for them."""
    shown, logged = list[str](), list[str]()
    recording = RecordingProgress(Progress(lambda event: shown.append(event.message)))
    recording.log_to(lambda level, text: logged.append(text))
    recording.message("compiling", PASSING)
    recording.message("compiled without a cache", "warning")
    assert shown == ["compiling", "compiled without a cache"]
    assert recording.messages == ("compiled without a cache",) and logged == ["compiled without a cache"]
