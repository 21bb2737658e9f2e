"""Remembered GPUs are valid while nothing relevant changed, and are stored only if all were usable."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from proteoscope.engine.execution import device_store
from proteoscope.engine.execution import devices as module
from proteoscope.engine.execution.device_lookup import open_gpus
from proteoscope.engine.execution.devices import Device, _remember_gpus, _remembered_gpus, forget_gpus
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.device import DeviceError


def usable_gpus(**changes: Any) -> tuple[Device, ...]:
    gpu = Device("cuda:0", "a GPU", 1 << 30, usable=True, driver="580.1", compute_capability="9.0", numbers=(0,))
    return (replace(gpu, **changes),)


@pytest.fixture
def state(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """State of the machine on which the remembered answer depends."""
    now = {"driver": "580.1", "start": "today"}
    monkeypatch.setattr(module, "_machine_state", lambda: json.dumps(now))
    return now


def test_usable_gpus_are_remembered(state: dict[str, Any]) -> None:
    assert _remembered_gpus() == ()
    _remember_gpus(usable_gpus())
    assert _remembered_gpus() == usable_gpus()
    forget_gpus()
    assert _remembered_gpus() == ()


@pytest.mark.parametrize("name", ["driver", "start"])
def test_remembered_gpus_expire_after_driver_change_or_reboot(state: dict[str, Any], name: str) -> None:
    _remember_gpus(usable_gpus())
    state[name] = "another"
    assert _remembered_gpus() == ()


@pytest.mark.parametrize("seconds", [-60.0, 3601.0])
def test_remembered_gpus_ignore_old_and_future_tests(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9)
    _remember_gpus(usable_gpus())
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9 + seconds)
    assert _remembered_gpus() == ()


@pytest.mark.parametrize("changes", [{"usable": False}, {"reason": "a test kernel does not run"}, {"numbers": (1,)}])
def test_unusable_gpus_are_not_remembered(state: dict[str, Any], own_cache: Path, changes: dict[str, Any]) -> None:
    _remember_gpus(usable_gpus(**changes))
    assert not (own_cache / "devices.json").exists()


@pytest.mark.parametrize(
    "devices",
    [
        [],
        {},
        "GPU",
        [1],
        [{}],
        [{"name": "cuda:0"}],
        [asdict(usable_gpus()[0]) | {"memory_bytes": "many"}],
        [asdict(usable_gpus()[0]) | {"x": 1}],
    ],
)
def test_remembered_gpus_ignore_a_damaged_file(state: dict[str, Any], own_cache: Path, devices: Any) -> None:
    _remember_gpus(usable_gpus())
    path = own_cache / "devices.json"
    content = json.loads(path.read_text())
    content["gpus"][json.dumps(state)][1] = devices
    path.write_text(json.dumps(content))
    assert _remembered_gpus() == ()


def test_gpus_are_not_remembered_without_machine_state(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DRIVER", (own_cache / "no driver",))
    _remember_gpus(usable_gpus())
    assert _remembered_gpus() == ()
    assert not (own_cache / "devices.json").exists()


def test_remembered_gpus_are_removed_when_one_cannot_be_opened(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int) -> Any:
        raise DeviceError("cuda:0 failed")

    monkeypatch.setattr("proteoscope.engine.execution.device_lookup.open_gpu", refuse)
    _remember_gpus(usable_gpus())
    assert open_gpus(Device("cuda:0", "a GPU", 1 << 30, True, numbers=(0,)), Progress()) == []
    assert _remembered_gpus() == ()
