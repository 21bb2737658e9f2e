"""Partitions on cards: each is done once, and what a card leaves when it fails is done by another or returned."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.execution.devices import Device
from engine.execution.gpu import cards, run_on_cards
from engine.execution.partitions import Partition
from engine.jobs.progress import Cancelled, Progress, ProgressEvent
from kernels.cuda.modules import DeviceError

PARTS = [Partition(first, first + 10, 10.0) for first in range(0, 200, 10)]


class Recorder:
    """Work that counts which items were done, and fails on the cards named."""

    def __init__(self, failing: dict[str, int]) -> None:
        self.done, self.failing, self.lock = np.zeros(200, int), dict(failing), threading.Lock()
        self.closed = 0

    def __call__(self, card: Any, part: Partition) -> Generator[int, None, None]:
        try:
            for i in range(part.first, part.last):
                with self.lock:
                    if card in self.failing:
                        self.failing[card] -= 1
                        if self.failing[card] < 0:
                            raise DeviceError(f"{card} is lost")
                    self.done[i] += 1
                yield i + 1
        finally:
            self.closed += 1


def heard() -> tuple[Progress, list[ProgressEvent]]:
    events: list[ProgressEvent] = []
    return Progress(events.append, interval=0), events


@pytest.mark.parametrize("names", [["cuda:0"], ["cuda:0", "cuda:1", "cuda:2"]])
def test_every_item_is_done_once(names: list[Any]) -> None:
    work, (progress, events) = Recorder({}), heard()
    progress.stage("Scoring", 200)
    assert run_on_cards(names, PARTS, work, progress) == []
    assert (work.done == 1).all()
    assert events[-1].done == 200


def test_another_card_takes_over_from_one_that_fails() -> None:
    work, (progress, events) = Recorder({"cuda:0": 25}), heard()
    progress.stage("Scoring", 200)
    assert run_on_cards(["cuda:0", "cuda:1"], PARTS, work, progress) == []  # type: ignore[list-item]
    assert (work.done == 1).all()
    assert any("cuda:0 is lost" in event.message for event in events)


def test_what_no_card_can_do_is_returned_without_what_was_done() -> None:
    work, (progress, events) = Recorder({"cuda:0": 25}), heard()
    progress.stage("Scoring", 200)
    left = run_on_cards(["cuda:0"], PARTS, work, progress)  # type: ignore[list-item]
    undone = np.concatenate([np.arange(part.first, part.last) for part in left])
    np.testing.assert_array_equal(np.sort(undone), np.nonzero(work.done == 0)[0])
    assert len(undone) == 175
    assert any("cuda:0 is lost" in event.message for event in events)


def test_a_cancel_closes_the_work() -> None:
    work, progress = Recorder({}), Progress()

    def cancel(event: ProgressEvent) -> None:
        if event.done >= 30:
            progress.cancel()

    progress._handlers.append(cancel)
    progress._interval = 0
    progress.stage("Scoring", 200)
    with pytest.raises(Cancelled):
        run_on_cards(["cuda:0"], PARTS, work, progress)  # type: ignore[list-item]
    assert work.done.sum() < 40
    assert work.closed > 0


def test_the_processor_has_no_cards() -> None:
    assert cards(Device("cpu", "a processor", 1, True), Progress()) == []


def test_a_search_whose_card_is_lost_gives_the_hits_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "shim"))
    from search_inputs import random_search
    from shim_card import ShimCard, missing_compiler

    if missing_compiler():
        pytest.skip(missing_compiler())
    from engine.identification import scoring
    from engine.identification.parameters import IdentificationParameters
    from engine.identification.scoring import Search
    from engine.identification.spectrum_index import SpectrumIndex
    from kernels.cuda.scoring import SpectrumSearch

    spectra, queries, peptides, modifications, settings = random_search(7, 2, most=1)
    monkeypatch.setattr(scoring, "scoring_settings", lambda *_: settings)
    small = {"candidates_of_batch": 100}
    monkeypatch.setattr(scoring, "SpectrumSearch", lambda *arguments: SpectrumSearch(*arguments, **small))
    index = SpectrumIndex(spectra, queries, len(queries.mass))
    answers = []
    for used in ([], [ShimCard()], [ShimCard(failing_launch=4)], [ShimCard(failing_launch=0)], [ShimCard(failing_launch=4), ShimCard()]):
        for number, one in enumerate(used):
            one.name = f"shim:{number}"
        progress, events = heard()
        search = Search(index, peptides, modifications, IdentificationParameters(), 2, used)
        search.plan(progress)
        answers.append(search.run(progress))
        failing = any(one.failing_launch >= 0 for one in used)
        assert any("is lost" in event.message for event in events) == failing
    assert len(answers[0]) > 5
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer.peptide, answers[0].peptide)
        np.testing.assert_array_equal(answer.site, answers[0].site)
        np.testing.assert_allclose(answer.expectation, answers[0].expectation, rtol=1e-9)
        np.testing.assert_allclose(answer.score, answers[0].score, rtol=1e-6)
