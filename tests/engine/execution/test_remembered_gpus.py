"""Remembered GPUs are valid while nothing relevant changed, and are stored only if all were usable."""

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


def probed(**changes: Any) -> dict[str, Any]:
    device = {"number": 0, "name": "a GPU", "memory_bytes": 1 << 30, "compute_capability": "9.0", "usable": True, "reason": ""}
    return {"driver": "580.1", "cuda": "13.0", "reason": "", "step": "done", "devices": [device | changes]}


@pytest.fixture
def state(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """State of the machine on which the remembered answer depends."""
    now = {"driver": "580.1", "start": "today"}
    monkeypatch.setattr(module, "_state", lambda: json.dumps(now))
    return now


def test_usable_gpus_are_remembered(state: dict[str, Any]) -> None:
    assert remembered_gpus() is None
    remember_gpus(probed())
    assert remembered_gpus() == probed()
    forget_gpus()
    assert remembered_gpus() is None


@pytest.mark.parametrize("name", ["driver", "start"])
def test_changed_machine_forgets_the_gpus(state: dict[str, Any], name: str) -> None:
    remember_gpus(probed())
    state[name] = "another"
    assert remembered_gpus() is None


@pytest.mark.parametrize("seconds", [-60.0, 3601.0])
def test_remembered_gpus_ignores_old_and_future_tests(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9)
    remember_gpus(probed())
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9 + seconds)
    assert remembered_gpus() is None


@pytest.mark.parametrize("changes", [{"usable": False}, {"reason": "a test kernel does not run"}, {"number": 1}])
def test_unusable_gpus_are_not_stored(state: dict[str, Any], own_cache: Path, changes: dict[str, Any]) -> None:
    remember_gpus(probed(**changes))
    assert not (own_cache / "devices.json").exists()


@pytest.mark.parametrize(
    "devices",
    [[], {}, "GPU", [1], [{}], [{"number": 0}], [probed()["devices"][0] | {"memory_bytes": "9"}], [probed()["devices"][0] | {"x": 1}]],
)
def test_damaged_gpu_store_is_ignored(state: dict[str, Any], own_cache: Path, devices: Any) -> None:
    remember_gpus(probed())
    path = own_cache / "devices.json"
    content = json.loads(path.read_text())
    content["gpus"][json.dumps(state)][1]["devices"] = devices
    path.write_text(json.dumps(content))
    assert remembered_gpus() is None


def test_gpus_are_not_stored_without_machine_state(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRIVER", (own_cache / "no driver",))
    remember_gpus(probed())
    assert remembered_gpus() is None
    assert not (own_cache / "devices.json").exists()


def test_unopenable_gpu_is_forgotten(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Any:
        raise DeviceError("cuda:0 failed")

    monkeypatch.setattr("proteoscope.engine.execution.cards.card", refuse)
    remember_gpus(probed())
    assert open_cards(Device("cuda:0", "a GPU", 1 << 30, True, numbers=(0,)), Progress()) == []
    assert remembered_gpus() is None
