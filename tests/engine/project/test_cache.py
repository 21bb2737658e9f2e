"""Small files of the cache."""

from __future__ import annotations

import os
from pathlib import Path

from proteoscope.engine.files import temporary_sibling
from proteoscope.engine.project.cache import remember


def test_a_small_file_is_written_and_what_was_left_of_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "steps.json"
    remember(path, b"1")
    left, others, being_written = temporary_sibling(path), temporary_sibling(path.with_name("speeds.json")), temporary_sibling(path)
    for one in (left, others, being_written):
        one.write_bytes(b"half")
    for one in (left, others):
        os.utime(one, (path.stat().st_mtime - 5.0,) * 2)
    remember(path, b"2")
    assert path.read_bytes() == b"2"
    assert (left.exists(), others.exists(), being_written.exists()) == (False, True, True)


def test_a_disk_that_refuses_is_no_reason_to_complain(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    remember(tmp_path / "file" / "steps.json", b"1")
    (tmp_path / "steps.json").mkdir()
    remember(tmp_path / "steps.json", b"1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "steps.json"]
