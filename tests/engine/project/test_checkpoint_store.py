"""Checkpoints are found by project, folder and run, are pruned, and are never used for a copy of their project."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import closing
from pathlib import Path

import pytest

from proteoscope.engine.errors import StorageError
from proteoscope.engine.project import Project, checkpoint_store
from proteoscope.engine.project.checkpoint_file import CheckpointFile, CheckpointHeader, journal
from proteoscope.engine.project.checkpoint_store import (
    CheckpointKey,
    checkpoint_folder,
    clear_checkpoint,
    list_checkpoints,
    prune_checkpoints,
    remove_finished,
)

RUN = "toy-0001"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create_or_open(tmp_path / "project")


def store(project: Project, run: str = RUN) -> Path:
    key = project.checkpoint_key(run)
    CheckpointFile.create(key.prepare(), CheckpointHeader(key.real_folder, run, {"of": str(project.folder)})).close()
    return key.path


def opened(path: Path) -> CheckpointFile:
    file = CheckpointFile.open(path)
    assert file is not None
    return file


def place(project: Project, run: str = RUN) -> str:
    checkpoint = project.checkpoint_key(run).find()
    return "" if checkpoint is None else checkpoint.origin


def test_checkpoint_is_found_by_project_and_run(project: Project, tmp_path: Path) -> None:
    store(project)
    other = Project.create_or_open(tmp_path / "other")
    assert place(project) == "here"
    assert place(project, "toy-0002") == "" and place(other) == ""


def test_checkpoint_is_found_through_a_link_to_the_project(project: Project, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    linked = Project.open(tmp_path / "link" / "project")
    store(linked)
    assert place(project) == place(linked) == "here"


def test_checkpoint_origin_distinguishes_moved_from_copied(project: Project, tmp_path: Path) -> None:
    store(project)
    shutil.copytree(project.folder, tmp_path / "copy")
    assert place(Project.open(tmp_path / "copy")) == "copied"
    project.folder.rename(tmp_path / "moved")
    moved = Project.open(tmp_path / "moved")
    assert place(moved) == "moved"
    assert moved.checkpoint(RUN).header.request == {"of": str(project.folder)}  # type: ignore[union-attr]
    Project.create_or_open(project.folder)
    assert place(moved) == "moved", "another project in the former folder has another id"


def test_copied_project_has_no_checkpoint_if_original_is_damaged(project: Project, tmp_path: Path) -> None:
    store(project)
    shutil.copytree(project.folder, tmp_path / "copy")
    (project.folder / "project.sqlite").write_bytes(b"damaged")
    assert place(Project.open(tmp_path / "copy")) == "copied"


def test_copied_projects_have_separate_checkpoints(project: Project, tmp_path: Path) -> None:
    store(project)
    shutil.copytree(project.folder, tmp_path / "copy")
    copy = Project.open(tmp_path / "copy")
    store(copy)
    for each in (project, copy):
        checkpoint = each.checkpoint(RUN)
        assert checkpoint is not None and checkpoint.origin == "here" and checkpoint.header.request == {"of": str(each.folder)}


def test_remove_finished_removes_nothing_for_a_project_copy(project: Project, tmp_path: Path) -> None:
    first, second = store(project), store(project, "toy-0002")
    shutil.copytree(project.folder, tmp_path / "copy")
    remove_finished(project.id, tmp_path / "copy", frozenset())
    assert first.exists() and second.exists(), "a copy removes nothing of the other project"
    journal(first).write_bytes(b"")
    remove_finished(project.id, project.folder, frozenset({"toy-0002"}))
    assert [path.name for path in checkpoint_folder().iterdir()] == [second.name]


@pytest.mark.parametrize("damaged", ["", "*", "../../etc", "AB" * 16, "ab" * 15])
def test_invalid_project_id_has_no_checkpoints(project: Project, damaged: str) -> None:
    path = store(project)
    key = CheckpointKey(damaged, project.folder, RUN)
    key.remove()
    remove_finished(damaged, project.folder, frozenset())
    assert key.find() is None and path.exists()
    with pytest.raises(StorageError, match="id is damaged"):
        key.prepare()


@pytest.mark.skipif(os.name != "posix", reason="file modes differ there")
def test_checkpoint_folder_is_private(project: Project) -> None:
    store(project)
    folder = checkpoint_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert place(project) == "", "others may have written it"
    with pytest.raises(StorageError, match="other users may write here"):
        store(project, "toy-0002")
    shutil.rmtree(folder)
    (folder.parent / "elsewhere").mkdir()
    folder.symlink_to(folder.parent / "elsewhere", target_is_directory=True)
    with pytest.raises(StorageError, match="other users may write here"):
        store(project)


def store_of_ages(project: Project, *days: float) -> list[Path]:
    """Store a checkpoint for each of these ages (negative: in the future) and return the paths in the same order."""
    paths = [store(project, f"toy-000{number}") for number in range(1, len(days) + 1)]
    for age, path in zip(days, paths, strict=True):
        used = path.stat().st_mtime - age * 86400
        os.utime(path, (used, used))
    return paths


@pytest.mark.parametrize("name", ["TOTAL_BYTES", "MAXIMUM_CHECKPOINTS"])
def test_prune_removes_least_recently_used_checkpoints(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    paths = store_of_ages(project, 2, -400, 0.1, 3)
    monkeypatch.setattr(checkpoint_store, name, 2 * paths[0].stat().st_size if name == "TOTAL_BYTES" else 2)
    prune_checkpoints()
    assert [file.path for file in list_checkpoints()] == [paths[1], paths[2]]


def test_prune_keeps_checkpoints_in_use(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = store_of_ages(project, 500, 1)
    with closing(opened(paths[0])):
        monkeypatch.setattr(checkpoint_store, "TOTAL_BYTES", 0)
        prune_checkpoints()
        assert [file.path for file in list_checkpoints()] == [paths[0]]
    prune_checkpoints()
    assert list_checkpoints() == []


@pytest.mark.parametrize("days", [-40_000, -91, -1, 1, 91, 40_000])
def test_prune_keeps_checkpoints_when_the_clock_jumps(project: Project, days: float) -> None:
    (path,) = store_of_ages(project, days)  # The clock has jumped by these days.
    store(project, "toy-0002")  # This one prunes, and is dated after the jump.
    prune_checkpoints()
    assert path.exists() and place(project, "toy-0002") == "here"


def test_clear_removes_all_unused_checkpoints(project: Project) -> None:
    store(project)
    used = opened(store(project, "toy-0002"))
    assert [file.title for file in list_checkpoints() if file.title] == [f"{RUN} of {os.path.realpath(project.folder)}"]
    assert sorted(clear_checkpoint(file) for file in list_checkpoints()) == [False, True]
    used.close()
    assert place(project) == "" and place(project, "toy-0002") == "here"
