"""Work behind another step: told in order, stopped with it, and no later error before an earlier one."""

import threading
import time

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.jobs.background import Background
from proteoscope.engine.jobs.progress import Cancelled, Progress
from tests.effort import LookingProgress
from tests.searching import identify


def told_stages(threads):
    told = []
    progress = Progress(lambda event: told.append((event.stage, event.done, event.message)), interval=0.0)

    def work(progress):
        progress.stage("behind", 2)
        progress.message("a message")
        progress.advance(2)
        progress.stage("further behind")
        return 7

    with Background(progress, threads) as behind:
        outcome = behind.begin(work)
        progress.stage("in front", 1)
        time.sleep(0.05)
        progress.advance(1)
        assert outcome() == 7
    return [event[:2] for event in told if not event[2]], [event[2] for event in told if event[2]]


@pytest.mark.parametrize("threads", [1, 2])
def test_stages_are_told_one_after_the_other_and_messages_once(threads):
    stages, messages = told_stages(threads)
    changes = [stage for stage, before in zip(stages, [("", 0), *stages], strict=False) if stage != before]
    assert changes == [("in front", 0), ("in front", 1), ("behind", 0), ("behind", 2), ("further behind", 0)]
    assert messages == ["a message"]


def test_two_steps_go_on_side_by_side_with_several_threads_and_one_after_the_other_with_one():
    both = threading.Barrier(2, timeout=20.0)
    with Background(Progress(), 2) as behind:
        outcome = behind.begin(lambda _: both.wait())
        both.wait()
        outcome()
    order = []
    with Background(Progress(), 1) as behind:
        outcome = behind.begin(lambda _: order.append("behind"))
        order.append("in front")
        outcome()
    assert order == ["in front", "behind"]


def test_a_step_that_is_shown_tells_of_its_progress_while_it_goes_on():
    told, seen = [], threading.Event()

    def handle(event):
        told.append((event.stage, event.done))
        if event.stage == "behind":
            seen.set()

    def work(progress):
        progress.stage("behind", 3)
        assert seen.wait(20.0)
        progress.advance(3)

    with Background(Progress(handle, interval=0.0), 2) as behind:
        behind.begin(work)()
    assert told[-1] == ("behind", 3)


def endless(progress):
    while True:
        progress.check()
        time.sleep(0.01)


def test_a_cancel_stops_what_goes_on_behind_and_who_waits_for_it():
    progress = LookingProgress(8)
    with pytest.raises(Cancelled), Background(progress, 2) as behind:
        behind.begin(endless)()
    assert progress.n_looks_after <= 1, "one of the two asks once more"


def test_the_error_of_the_step_in_front_is_told_and_stops_the_other():
    progress = Progress()
    with pytest.raises(ValueError, match="in front"), Background(progress, 2) as behind:
        behind.begin(endless)
        raise ValueError("in front")
    assert not progress.is_cancelled


def test_an_error_behind_is_told_when_its_turn_comes():
    def fail(progress):
        raise ValueError("behind")

    reached = []
    with pytest.raises(ValueError, match="behind"), Background(Progress(), 2) as behind:
        outcome = behind.begin(fail)
        time.sleep(0.02)
        reached.append("in front")
        outcome()
    assert reached == ["in front"]


@pytest.mark.parametrize("threads", [1, 2])
def test_of_a_bad_spectrum_file_and_a_bad_database_the_spectra_are_told(tmp_path, threads):
    spectra, database = tmp_path / "spectra.mgf", tmp_path / "proteins.fasta"
    spectra.write_text("BEGIN IONS\nPEPMASS=500.2\nCHARGE=2+\n100.0 broken\nEND IONS\n")
    database.write_text(">one\nMKWVT!SLLK\n")
    with pytest.raises(InputError, match=r"spectra\.mgf"):
        identify([spectra], [database], tmp_path / "project", IdentificationParameters(), device="cpu", threads=threads)
    spectra.write_text("BEGIN IONS\nPEPMASS=500.2\nCHARGE=2+\n100.0 1.0\nEND IONS\n")
    with pytest.raises(InputError, match=r"proteins\.fasta.*not a residue"):
        identify([spectra], [database], tmp_path / "project", IdentificationParameters(), device="cpu", threads=threads)
