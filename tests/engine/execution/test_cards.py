"""The cards that a user chose are opened, or left out with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from engine.execution import opening
from engine.execution.cards import open_cards
from engine.execution.devices import Device
from engine.jobs.progress import Progress, RecordingProgress
from kernels.device import DeviceError


def test_the_processor_has_no_cards() -> None:
    assert open_cards(Device("cpu", "a processor", 1, True), Progress()) == []


def test_a_card_that_cannot_be_opened_is_told_in_one_line_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Computation:
        name, limit = "cuda:1", -1

        def limit_memory(self, n_bytes: int) -> None:
            self.limit = n_bytes

    def card(number: int) -> Any:
        if number == 0:
            raise DeviceError("cuda:0 failed: the driver\n  is too old")
        return Computation()

    monkeypatch.setattr(opening, "card", card)
    progress = RecordingProgress(Progress())
    opened = open_cards(Device("cuda:0+cuda:1", "two", 1, True, numbers=(0, 1)), progress, memory_bytes=2_000_000_000)
    assert [one.name for one in opened] == ["cuda:1"]
    assert opened[0].limit == 2_000_000_000  # type: ignore[attr-defined]
    assert progress.messages[-1] == "cuda:0 failed: the driver is too old; it is not used"
