"""Background work: stages are reported in order, it stops with the foreground, and no later error precedes an earlier one."""

import threading
import time

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.background import Background
from proteoscope.engine.jobs.progress import Cancelled, Progress
from tests.effort import CancelCheckProgress
from tests.searching import identify


def reported_stages(threads):
    events = []
    progress = Progress(lambda event: events.append((event.stage, event.done, event.message)), interval=0.0)

    def work(progress):
        progress.stage("background", 2)
        progress.message("a message")
        progress.advance(2)
        progress.stage("further background")
        return 7

    with Background(progress, threads) as background:
        outcome = background.begin(work)
        progress.stage("foreground", 1)
        time.sleep(0.05)
        progress.advance(1)
        assert outcome() == 7
    return [event[:2] for event in events if not event[2]], [event[2] for event in events if event[2]]


@pytest.mark.parametrize("threads", [1, 2])
def test_background_tasks_report_stages_and_messages_once(threads):
    stages, messages = reported_stages(threads)
    changes = [stage for stage, before in zip(stages, [("", 0), *stages], strict=False) if stage != before]
    assert changes == [("foreground", 0), ("foreground", 1), ("background", 0), ("background", 2), ("further background", 0)]
    assert messages == ["a message"]


def test_background_tasks_are_parallel_only_with_two_threads():
    both = threading.Barrier(2, timeout=20.0)
    with Background(Progress(), 2) as background:
        outcome = background.begin(lambda _: both.wait())
        both.wait()
        outcome()
    order = []
    with Background(Progress(), 1) as background:
        outcome = background.begin(lambda _: order.append("background"))
        order.append("foreground")
        outcome()
    assert order == ["foreground", "background"]


def test_awaited_background_task_reports_progress():
    events, seen = [], threading.Event()

    def handle(event):
        events.append((event.stage, event.done))
        if event.stage == "background":
            seen.set()

    def work(progress):
        progress.stage("background", 3)
        assert seen.wait(20.0)
        progress.advance(3)

    with Background(Progress(handle, interval=0.0), 2) as background:
        background.begin(work)()
    assert events[-1] == ("background", 3)


def endless(progress):
    while True:
        progress.check()
        time.sleep(0.01)


def test_cancel_stops_background_and_foreground_tasks():
    progress = CancelCheckProgress(8)
    with pytest.raises(Cancelled), Background(progress, 2) as background:
        background.begin(endless)()
    assert progress.n_checks_after_cancel <= 1, "one of the two checks once more"


def test_foreground_error_is_raised_and_stops_background_tasks():
    progress = Progress()
    with pytest.raises(ValueError, match="foreground"), Background(progress, 2) as background:
        background.begin(endless)
        raise ValueError("foreground")
    assert not progress.is_cancelled


def test_background_error_is_raised_when_task_is_awaited():
    def fail(progress):
        raise ValueError("background")

    reached = []
    with pytest.raises(ValueError, match="background"), Background(Progress(), 2) as background:
        outcome = background.begin(fail)
        time.sleep(0.02)
        reached.append("foreground")
        outcome()
    assert reached == ["foreground"]


@pytest.mark.parametrize("threads", [1, 2])
def test_spectrum_file_error_precedes_database_error(tmp_path, threads):
    spectra, database = tmp_path / "spectra.mgf", tmp_path / "proteins.fasta"
    spectra.write_text("BEGIN IONS\nPEPMASS=500.2\nCHARGE=2+\n100.0 broken\nEND IONS\n")
    database.write_text(">one\nMKWVT!SLLK\n")
    with pytest.raises(InputError, match=r"spectra\.mgf"):
        identify([spectra], [database], tmp_path / "project", IdentificationParameters(), device="cpu", threads=threads)
    spectra.write_text("BEGIN IONS\nPEPMASS=500.2\nCHARGE=2+\n100.0 1.0\nEND IONS\n")
    with pytest.raises(InputError, match=r"proteins\.fasta.*not a residue"):
        identify([spectra], [database], tmp_path / "project", IdentificationParameters(), device="cpu", threads=threads)
