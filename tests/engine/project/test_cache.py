"""Small files of the cache."""

from __future__ import annotations

from pathlib import Path

from proteoscope.engine.project.cache import remember
from tests.leftovers import leave_file


def test_small_file_is_written_and_leftovers_go(tmp_path: Path) -> None:
    path = tmp_path / "steps.json"
    leave_file(path)
    remember(path, b"2")
    assert path.read_bytes() == b"2"
    assert [one.name for one in tmp_path.iterdir()] == ["steps.json"]


def test_a_disk_that_refuses_is_no_reason_to_complain(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    remember(tmp_path / "file" / "steps.json", b"1")
    (tmp_path / "steps.json").mkdir()
    remember(tmp_path / "steps.json", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "steps.json"]
