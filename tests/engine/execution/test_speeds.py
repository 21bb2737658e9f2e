"""Stored speeds of devices in earlier searches."""

from __future__ import annotations

import json
from pathlib import Path

from proteoscope.engine.execution.cost.calibration_store import measured_speed, speeds_by_kind, store_speeds


def test_stored_speeds_are_separate_by_search_device_and_threads(own_cache: Path) -> None:
    store_speeds("sequences", {"cpu": 2.5e9, "a GPU": 1e12}, 3)
    store_speeds("spectra", {"cpu": 7.0}, 3)
    assert [measured_speed("sequences", name, 3) for name in ("cpu", "a GPU", "another")] == [2.5e9, 1e12, None]
    assert (measured_speed("spectra", "cpu", 3), measured_speed("spectra", "cpu", 4)) == (7.0, None)
    assert speeds_by_kind("cpu", 3) == {"sequences": 2.5e9, "spectra": 7.0}
    assert speeds_by_kind("a GPU", 1) == {"sequences": 1e12}


def test_store_speeds_writes_nothing_without_speeds(own_cache: Path) -> None:
    store_speeds("sequences", {}, 1)
    assert list(own_cache.iterdir()) == []


def test_measured_speed_ignores_invalid_values(own_cache: Path) -> None:
    store_speeds("sequences", {"x": 1.0}, 1)
    path = own_cache / "devices.json"
    for speed in (-1.0, 0.0, float("inf"), float("nan"), "fast", None):
        content = json.loads(path.read_text())
        content["speeds"]["sequences: x"][1] = speed
        path.write_text(json.dumps(content) + " " * len(str(speed)))
        assert measured_speed("sequences", "x", 1) is None
