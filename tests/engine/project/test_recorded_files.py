"""Recorded files are accepted only with the recorded bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proteoscope.engine.errors import InputError
from proteoscope.engine.project.digests import RecordedFiles, file_digest
from proteoscope.engine.project.records import InputRecord


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.mzML"
    path.write_bytes(b"spectra")
    return path


def recorded(path: Path) -> RecordedFiles:
    return RecordedFiles([InputRecord(path, "spectra", path.stat().st_size, file_digest(path))])


def test_recorded_file_check_accepts_equal_bytes_and_reads_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = recorded(path)
    files.check(path)
    monkeypatch.setattr("proteoscope.engine.project.digests.file_digest", lambda *_: pytest.fail("read again"))
    files.check(path)


def test_recorded_file_check_rejects_changed_and_missing_files(path: Path) -> None:
    files = recorded(path)
    files.check(path)
    path.write_bytes(b"secrets")  # It has the same length.
    os.utime(path, ns=(0, 0))
    with pytest.raises(InputError, match="has changed since the run read it"):
        files.check(path)
    path.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        files.check(path)
    with pytest.raises(InputError, match="is not one of the files that the run read"):
        files.check(path.with_name("b.mzML"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_file_digest_rejects_pipes_and_devices(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(InputError, match="this is a pipe or a device, not a file"):
            file_digest(path)
