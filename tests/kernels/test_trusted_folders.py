"""The program runs and writes nothing in folders that other users can change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import scratch_folder
from proteoscope.kernels.trusted_folders import VARIABLE, cache_folder, untrusted_folder, unused_folder_reason
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file modes and owners differ there")
OTHER_USER = 65534
PROGRAM = "import os, proteoscope.kernels.cpu; print(os.environ.get('NUMBA_CACHE_DIR', ''))"


def test_untrusted_folder_returns_none_for_own_or_missing_folder(tmp_path: Path) -> None:
    assert untrusted_folder(tmp_path) is None
    assert untrusted_folder(tmp_path / "missing" / "deeper") is None


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o757])
def test_untrusted_folder_returns_folders_writable_by_others(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    if mode == 0o775:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder to any group")
        os.chown(folder, -1, OTHER_USER)
    folder.chmod(mode)
    assert untrusted_folder(folder) == folder
    is_safe_inside = mode == 0o1777  # the sticky bit protects its contents
    assert untrusted_folder(folder / "inner") == (None if is_safe_inside else folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_untrusted_folder_returns_folder_or_link_of_others(tmp_path: Path) -> None:
    folder, link = tmp_path / "theirs", tmp_path / "link"
    folder.mkdir()
    os.chown(folder, OTHER_USER, OTHER_USER)
    assert untrusted_folder(folder / "cache") == folder
    private = tmp_path / "own"
    private.mkdir()
    link.symlink_to(private)
    assert untrusted_folder(link) is None
    os.lchown(link, OTHER_USER, OTHER_USER)
    assert untrusted_folder(link / "cache") == link


def test_cache_folder_is_never_a_folder_that_others_can_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    assert (cache_folder(), unused_folder_reason()) == (folder, "")
    folder.chmod(0o777)
    assert cache_folder() != folder
    assert str(folder) in unused_folder_reason() and len(unused_folder_reason().splitlines()) == 1


@pytest.mark.parametrize("variable", [VARIABLE, "NUMBA_CACHE_DIR"])
def test_kernels_are_not_loaded_from_folders_writable_by_others(tmp_path: Path, variable: str) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    environment = {name: value for name, value in os.environ.items() if name not in (VARIABLE, "NUMBA_CACHE_DIR")}
    environment[variable] = str(folder)
    command = [sys.executable, "-c", PROGRAM]
    process = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True)
    assert not process.stdout.strip().startswith(str(folder))
    assert list(folder.iterdir()) == []


def test_scratch_folder_rejects_a_parent_others_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tmp_path.chmod(0o1777)
    with scratch_folder() as folder:
        assert folder.parent == tmp_path
    tmp_path.chmod(0o777)
    with pytest.raises(StorageError, match="other users can replace temporary files"), scratch_folder():
        pass
    assert list(tmp_path.iterdir()) == []
