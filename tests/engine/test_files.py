"""Temporary files and folders: only those of killed processes are removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proteoscope.engine import files
from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file, is_temporary, remove_leftovers, scratch_folder, temporary_folder, temporary_path
from tests.leftovers import hidden, leave_file, leave_folder

REPOSITORY = Path(__file__).resolve().parents[2]
HOLDER = """
import sys
from pathlib import Path
from proteoscope.engine.files import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "content").write_bytes(b"written")
    print(folder, flush=True)
    sys.stdin.read()
"""


def start_holder(target: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that holds a temporary folder until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(target)], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().rstrip("\n"))


@pytest.fixture(autouse=True)
def _sweep_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SECONDS_BETWEEN_SWEEPS", -1.0)


def test_atomic_writer_removes_files_of_killed_writers(tmp_path: Path) -> None:
    target = tmp_path / "library.msp"
    left = [leave_file(target), leave_folder(target), leave_file(tmp_path / "other.tsv")]
    lone_lock = leave_file(target)
    lone_lock.unlink()
    assert all(is_temporary(path) for path in left)
    with atomic_file(target) as file:
        file.write(b"whole")
        assert len(hidden(tmp_path)) == 2, "the file being written, and its lock"
    assert [path.name for path in tmp_path.iterdir()] == ["library.msp"]
    assert target.read_bytes() == b"whole"


def test_temporary_folder_of_running_process_is_not_removed(tmp_path: Path) -> None:
    process, folder = start_holder(tmp_path / "library.msp")
    try:
        remove_leftovers(tmp_path)
        assert (folder / "content").read_bytes() == b"written"
    finally:
        process.kill()
        process.communicate()
    assert folder.exists()
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_of_other_threads_are_not_removed(tmp_path: Path) -> None:
    with temporary_folder(tmp_path / "one") as first, temporary_path(tmp_path / "two") as second:
        second.write_bytes(b"")
        remove_leftovers(tmp_path)
        assert first.is_dir() and second.is_file()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name",
    [
        ".library.msp.partial",
        ".library.msp.0123456789ab.partial",
        ".library.msp.0123456789ab-00000000.partial",
        ".proteoscope-notes",
        "library.msp.partial",
        ".library.msp.lock",
    ],
)
def test_files_named_like_temporary_files_are_not_removed(name: str, tmp_path: Path) -> None:
    for end in ("", ".lock"):
        (tmp_path / (name + end)).write_bytes(b"the user's")
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, f"{name}.lock"]


def test_renamed_temporary_file_is_not_removed(tmp_path: Path) -> None:
    left = leave_file(tmp_path / "library.msp")
    copy = left.with_name(left.name.replace("library", "rescued"))
    left.rename(copy)
    left.with_name(left.name + ".lock").rename(copy.with_name(copy.name + ".lock"))
    remove_leftovers(tmp_path)
    assert copy.read_bytes() == b"half"


def test_temporary_file_without_lock_is_not_removed(tmp_path: Path) -> None:
    left = leave_file(tmp_path / "library.msp")
    left.with_name(left.name + ".lock").unlink()
    remove_leftovers(tmp_path)
    assert left.exists()


def test_links_in_temporary_files_are_removed_not_followed(tmp_path: Path) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "file").write_bytes(b"precious")
    to_folder, to_file = leave_file(tmp_path / "a"), leave_file(tmp_path / "b")
    inside = leave_folder(tmp_path / "c")
    for link, target in ((to_folder, "users"), (to_file, "users/file")):
        link.unlink()
        link.symlink_to(tmp_path / target)
    (inside / "link").symlink_to(tmp_path / "users")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["users"]
    assert (tmp_path / "users" / "file").read_bytes() == b"precious"


def test_symbolic_link_as_temporary_lock_is_not_followed(tmp_path: Path) -> None:
    left = leave_file(tmp_path / "library.msp")
    lock = left.with_name(left.name + ".lock")
    lock.unlink()
    (tmp_path / "elsewhere").write_bytes(b"text")
    lock.symlink_to(tmp_path / "elsewhere")
    remove_leftovers(tmp_path)
    assert left.exists() and (tmp_path / "elsewhere").read_bytes() == b"text"


def test_temporary_files_of_other_users_are_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = leave_file(tmp_path / "library.msp")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    remove_leftovers(tmp_path)
    assert left.exists()


@pytest.mark.parametrize("name", ["a" * 255, "蛋" * 85, "x" * 79 + "é" * 88, ".", "..tsv", "\udcff" * 255])
def test_atomic_writer_accepts_any_valid_file_name(name: str, tmp_path: Path) -> None:
    target = tmp_path / (name if name != "." else ".hidden")
    with atomic_file(target) as file:
        file.write(b"whole")
        left = {path: path.read_bytes() if path.is_file() else b"" for path in tmp_path.iterdir()}
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]
    for path, content in left.items():
        path.write_bytes(content)
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_atomic_file_is_written_on_a_disk_without_file_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *, create: bool = True) -> None:
        raise OSError(files.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files, "open_locked", refuse)
    with atomic_file(tmp_path / "hits.tsv") as file:
        file.write(b"whole")
        file.flush()
        monkeypatch.undo()
        remove_leftovers(tmp_path)
    assert (tmp_path / "hits.tsv").read_bytes() == b"whole"
    assert hidden(tmp_path) == []


def test_forked_child_does_not_hold_lock_of_killed_parent(tmp_path: Path) -> None:
    # The child prints the folder, so the parent is killed after it has forked.
    script = HOLDER.replace("    print(", "    import os\n    os.fork() or print(") + "    os._exit(0)\n"
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "x")], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    folder = Path(parent.stdout.readline().rstrip("\n"))
    parent.kill()
    parent.wait()
    try:
        assert folder.is_dir()
        # The child closes its copy of the lock as soon as it runs, and lives until its input ends.
        for _ in range(200):
            remove_leftovers(tmp_path)
            if not list(tmp_path.iterdir()):
                break
            time.sleep(0.05)
        assert list(tmp_path.iterdir()) == []
    finally:
        parent.communicate()


def test_scratch_folder_error_names_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setattr(files.tempfile, "tempdir", str(tmp_path / "file"))
    with pytest.raises(StorageError, match=r"file: a"), scratch_folder():
        pass


def test_concurrent_writers_leave_one_complete_file(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom proteoscope.engine import files\nfiles._SECONDS_BETWEEN_SWEEPS = -1.0\n"
        "for _ in range(200):\n    with files.atomic_file(Path(sys.argv[1])) as file:\n        file.write(sys.argv[2].encode() * 1000)\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "hits.tsv"), name], cwd=REPOSITORY, stderr=subprocess.PIPE)
        for name in "abc"
    ]
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [(b"", 0)] * 3
    assert (tmp_path / "hits.tsv").read_bytes() in (b"a" * 1000, b"b" * 1000, b"c" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["hits.tsv"]
