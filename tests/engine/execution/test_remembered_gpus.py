"""What is remembered of GPUs holds as long as nothing changed on which it depends, and only if all was well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.execution import device_store
from proteoscope.engine.execution import remembered_gpus as module
from proteoscope.engine.execution.cards import open_cards
from proteoscope.engine.execution.devices import Device
from proteoscope.engine.execution.remembered_gpus import forget_gpus, remember_gpus, remembered_gpus
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import DeviceError


def found(**changes: Any) -> dict[str, Any]:
    device = {"number": 0, "name": "a card", "memory_bytes": 1 << 30, "compute_capability": "9.0", "usable": True, "reason": ""}
    return {"driver": "580.1", "cuda": "13.0", "reason": "", "step": "done", "devices": [device | changes]}


@pytest.fixture
def state(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A machine that tells what the answer depends on."""
    now = {"driver": "580.1", "start": "today"}
    monkeypatch.setattr(module, "_state", lambda: json.dumps(now))
    return now


def test_what_was_usable_is_believed(state: dict[str, Any]) -> None:
    assert remembered_gpus() is None
    remember_gpus(found())
    assert remembered_gpus() == found()
    forget_gpus()
    assert remembered_gpus() is None


@pytest.mark.parametrize("name", ["driver", "start"])
def test_a_change_makes_it_look_again(state: dict[str, Any], name: str) -> None:
    remember_gpus(found())
    state[name] = "another"
    assert remembered_gpus() is None


@pytest.mark.parametrize("seconds", [-60.0, 3601.0])
def test_remembered_gpus_ignores_old_and_future_tests(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9)
    remember_gpus(found())
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9 + seconds)
    assert remembered_gpus() is None


@pytest.mark.parametrize("changes", [{"usable": False}, {"reason": "a test kernel does not run"}, {"number": 1}])
def test_what_was_not_well_is_not_kept(state: dict[str, Any], own_cache: Path, changes: dict[str, Any]) -> None:
    remember_gpus(found(**changes))
    assert not (own_cache / "devices.json").exists()


@pytest.mark.parametrize(
    "devices",
    [[], {}, "GPU", [1], [{}], [{"number": 0}], [found()["devices"][0] | {"memory_bytes": "9"}], [found()["devices"][0] | {"x": 1}]],
)
def test_a_damaged_file_is_as_good_as_none(state: dict[str, Any], own_cache: Path, devices: Any) -> None:
    remember_gpus(found())
    path = own_cache / "devices.json"
    content = json.loads(path.read_text())
    content["gpus"][json.dumps(state)][1]["devices"] = devices
    path.write_text(json.dumps(content))
    assert remembered_gpus() is None


def test_where_the_system_does_not_tell_nothing_is_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRIVER", (own_cache / "no driver",))
    remember_gpus(found())
    assert remembered_gpus() is None
    assert not (own_cache / "devices.json").exists()


def test_a_card_that_cannot_be_opened_after_all_is_tried_anew(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Any:
        raise DeviceError("cuda:0 failed")

    monkeypatch.setattr("proteoscope.engine.execution.cards.card", refuse)
    remember_gpus(found())
    assert open_cards(Device("cuda:0", "a card", 1 << 30, True, numbers=(0,)), Progress()) == []
    assert remembered_gpus() is None
