"""Stored facts about devices: concurrent processes lose none, their number is bounded, and damaged files are replaced."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from proteoscope.engine.execution import device_store
from proteoscope.engine.execution.device_store import Facts

REPOSITORY = Path(__file__).resolve().parents[3]
WRITER = """
import sys
from proteoscope.engine.execution.device_store import Facts
facts, counts = Facts("speeds", float, 1000), Facts("runs", int, 10)
for number in range(30):
    facts.store({f"{sys.argv[1]} {number}": float(number)})
    counts.update("count", lambda count: (count or 0) + 1)
"""


def speeds(maximum: int = 100) -> Facts[float]:
    return Facts("speeds", Annotated[float, Field(gt=0)], maximum)


def test_device_store_retains_entries_written_by_two_processes(own_cache: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, name], env=environment, cwd=REPOSITORY) for name in ("a", "b")]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert Facts("speeds", float, 1000).all() == {f"{name} {number}": float(number) for name in ("a", "b") for number in range(30)}
    assert Facts("runs", int, 10).get("count") == 60


def test_device_store_retains_entries_of_other_types(own_cache: Path) -> None:
    speeds().store({"a": 1.0})
    Facts("runs", list[int], 5).store({"a": [1, 2]})
    speeds().clear()
    assert speeds().all() == {}
    assert Facts("runs", list[int], 5).get("a") == [1, 2]


def test_device_store_removes_the_oldest_entries(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for now in range(20):
        monkeypatch.setattr(device_store.time, "time", lambda now=now: 1e9 + now)
        speeds(3).store({f"key {now}": 1.0})
    assert list(speeds().all()) == ["key 17", "key 18", "key 19"]
    speeds(3).store({"x" * 501: 1.0})
    assert "x" * 501 not in speeds().all(), "keys are bounded"


def test_device_store_ignores_old_and_future_entries(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_store.time, "time", lambda: 1e9)
    speeds().store({"a": 1.0})
    stored_at = speeds().stored_at("a")
    assert stored_at is not None and stored_at.timestamp() == 1e9
    for now, expected in ((1e9 + 10, 1.0), (1e9 + 11, None), (1e9 - 1, None)):
        monkeypatch.setattr(device_store.time, "time", lambda now=now: now)
        assert speeds().get("a", maximum_age=10) == expected
        assert speeds().get("a") == 1.0


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[1]",
        b'{"speeds": [1]}',
        b"\xff" * 100,
        b"[" * 100_000,
        b'{"speeds": {"a": [0, 1.5]}}' + b" " * (4 << 20),
        b'{"speeds": {"a": [' + b"9" * 10_000 + b", 1]}}",
    ],
    ids=lambda text: text[:12].decode("latin-1"),
)
def test_device_store_reports_and_replaces_a_damaged_file(own_cache: Path, text: bytes, caplog: pytest.LogCaptureFixture) -> None:
    path = own_cache / "devices.json"
    path.write_bytes(text)
    with caplog.at_level(logging.WARNING):
        assert speeds().get("a") is None
        assert speeds().get("b") is None
    (record,) = caplog.records
    assert str(path) in record.getMessage() and "\n" not in record.getMessage()
    speeds().store({"b": 2.0})
    assert speeds().all() == {"b": 2.0}
    assert set(json.loads(path.read_text())) >= {"speeds"}


@pytest.mark.parametrize("entry", [1, [], [1], [1, 2, 3], ["1", 2.0], [-1, 2.0], [1e300, 2.0], [1, "fast"], [1, -2.0], [1, [1]], None])
def test_device_store_ignores_only_invalid_entries(own_cache: Path, entry: object) -> None:
    (own_cache / "devices.json").write_text(json.dumps({"speeds": {"a": entry, "b": [1, 2.0]}, "other": {"x": 1}}))
    assert speeds().all() == {"b": 2.0}
    speeds().store({"c": 3.0})
    content = json.loads((own_cache / "devices.json").read_text())
    assert set(content["speeds"]) == {"b", "c"} and "other" not in content


def test_device_store_ignores_an_unwritable_disk(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_cache / "devices.json").mkdir()
    speeds().store({"a": 1.0})
    assert speeds().get("a") is None
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(own_cache / "a file" / "cache"))
    (own_cache / "a file").write_bytes(b"")
    speeds().store({"a": 1.0})
    assert speeds().all() == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_device_store_does_not_block_on_a_pipe(own_cache: Path) -> None:
    os.mkfifo(own_cache / "devices.json")
    assert speeds().get("a") is None
    speeds().store({"a": 2.0})
    assert speeds().get("a") is None
