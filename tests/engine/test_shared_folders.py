"""Another user who renames and links as fast as possible cannot make this program write outside a shared folder.

The attacks run in a process of the user 65534; they need root's rights and Linux.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import ProteoscopeError, StorageError
from proteoscope.engine.execution.cluster.certificates import Certificates, write_certificates
from proteoscope.engine.files import atomic_file, atomic_path, remove_leftovers, scratch_folder, temporary_path
from proteoscope.engine.project import Project
from proteoscope.engine.shared_folders import make_folder, pinned_folder, real_path

OTHER = 65534
AS_OTHER = ("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups")
SECONDS = 0.7
"""Length of an attack: without its protection, a folder is left within 0.3 seconds, also on a busy machine."""
TABLE = pa.table({"peptide": ["PEPTIDE"] * 3})

is_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="folders are opened as on Linux")
two_users = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can act as another user"
)

PLANT = """
import os, sys
folder, victim, trash = sys.argv[1:]
n = 0
while True:
    try:
        names = os.listdir(folder)
    except OSError:
        continue
    for name in names:
        if ".partial" in name or name.startswith("x."):
            n += 1
            try:
                os.rename(f"{folder}/{name}", f"{trash}/{n}")
                os.symlink(victim, f"{folder}/{name}")
            except OSError:
                pass
"""
"""Replace each new name in a folder by a link."""

SWAP = """
import os, sys
folder, victim, trash = sys.argv[1:]
while True:
    try:
        os.rename(folder, f"{trash}/aside")
        os.symlink(victim, folder)
        os.unlink(folder)
    except OSError:
        pass
    try:
        os.rename(f"{trash}/aside", folder)
    except OSError:
        pass
"""
"""Replace a folder by a link and put it back, repeatedly."""


@pytest.fixture
def shared() -> Iterator[Path]:
    """Folder where all users may write, below folders that the other user can enter."""
    folder = Path(tempfile.mkdtemp(prefix="shared-"))
    folder.chmod(0o755)
    if subprocess.run([*AS_OTHER, "ls", str(folder)], capture_output=True).returncode:
        pytest.skip(f"the user {OTHER} cannot reach {folder}")
    for name in ("public", "trash"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def victim(shared: Path) -> Path:
    """Folder of this user with valuable files under every name that is written or removed."""
    folder = shared / "victim"
    for name in ("x.tsv", "x.json", "run.json", "thesis.txt", "results/identify-0001/psms.parquet", "identify-0001/psms.parquet"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("years of work")
    return folder


def state(folder: Path) -> dict[str, bytes | None]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


@contextmanager
def attacked(script: str, folder: Path, victim: Path, trash: Path) -> Iterator[None]:
    """Let another user run a script over a folder during the block, and check that the victim did not change."""
    before = state(victim)
    process = subprocess.Popen([*AS_OTHER, sys.executable, "-S", "-c", script, str(folder), str(victim), str(trash)])
    try:
        yield
        assert process.poll() is None, "the attack lasted to the end"
    finally:
        process.kill()
        process.wait()
    assert state(victim) == before


def repeated(action: Callable[[], object], seconds: float = SECONDS) -> int:
    """Repeat an action, which may be refused with an error, and return the number of successes."""
    end, n_done = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        with contextlib.suppress(ProteoscopeError, OSError):
            action()
            n_done += 1
    return n_done


def write_text(path: Path) -> None:
    with atomic_file(path) as file:
        file.write(b"new")


def write_parquet(path: Path) -> None:
    with atomic_path(path) as temporary:
        pq.write_table(TABLE, temporary)


@two_users
@pytest.mark.parametrize("write", [write_text, write_parquet])
def test_atomic_path_does_not_follow_planted_links(shared: Path, victim: Path, write: Callable[[Path], None]) -> None:
    with attacked(PLANT, shared / "public", victim / "thesis.txt", shared / "trash"):
        repeated(lambda: write(shared / "public" / "x.tsv"))


@two_users
@pytest.mark.parametrize("write", [write_text, write_parquet])
def test_atomic_path_stays_in_a_folder_replaced_by_a_link(shared: Path, victim: Path, write: Callable[[Path], None]) -> None:
    folder = shared / "public" / "out"
    folder.mkdir(mode=0o777)
    os.chown(folder, OTHER, OTHER)
    with attacked(SWAP, folder, victim, shared / "trash"):
        assert repeated(lambda: write(folder / "x.tsv")) + repeated(lambda: make_folder(folder / f"new{time.monotonic_ns()}"))


@two_users
def test_project_changes_no_files_through_replaced_folders(shared: Path, victim: Path) -> None:
    project = shared / "public" / "project"
    Project.create_or_open(project)
    for name in ("results", "exports"):
        (project / name).mkdir(exist_ok=True)
        os.chown(project / name, OTHER, OTHER)
    os.chown(project, OTHER, OTHER)

    def search() -> None:
        opened = Project.create_or_open(project)
        with opened.run("identify", {}) as run:
            run.write_table("psms", TABLE)
            make_folder(run.folder / "exports")
            write_text(run.folder / "exports" / "x.tsv")
            run.write_json("run", {"run": run.id, "exports": ["x.tsv", "thesis.txt"]})
        opened.delete_run(run.id)
        opened.remove_deleted([run.id])

    for name in ("results", "exports"):
        with attacked(SWAP, project / name, victim, shared / "trash"):
            repeated(search)


@two_users
def test_remove_leftovers_does_not_follow_planted_links(shared: Path, victim: Path) -> None:
    def leave() -> None:
        with temporary_path(shared / "public" / "x.tsv") as temporary:
            temporary.mkdir()
        remove_leftovers(shared / "public")

    with attacked(PLANT, shared / "public", victim, shared / "trash"):
        repeated(leave)


@two_users
def test_scratch_folder_rejects_folder_others_can_change(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(shared / "public"))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(StorageError, match="other users can replace temporary files"), scratch_folder():
        pass


@two_users
def test_write_certificates_rejects_folder_others_can_change(shared: Path, victim: Path) -> None:
    certificates = Certificates("certificate", "key")
    foreign = shared / "public" / "foreign"
    foreign.mkdir()
    os.chown(foreign, OTHER, OTHER)
    (shared / "public" / "link").symlink_to(victim)
    os.lchown(shared / "public" / "link", OTHER, OTHER)
    before = state(victim)
    for folder in (shared / "public", foreign, shared / "public" / "link", shared / "public" / "link" / "new"):
        with pytest.raises(StorageError, match=r"other users can replace certificates|another user"):
            write_certificates(certificates, folder)
    assert state(victim) == before
    assert write_certificates(certificates, shared / "mine" / "certificates")


@two_users
def test_atomic_file_rejects_a_link_of_another_user(shared: Path, victim: Path) -> None:
    link = shared / "public" / "x.tsv"
    link.symlink_to(victim / "thesis.txt")
    write_text(link)  # a link of this user
    assert (victim / "thesis.txt").read_bytes() == b"new"
    os.lchown(link, OTHER, OTHER)
    before = state(victim)
    with pytest.raises(StorageError, match="another user"):
        write_text(link)
    assert state(victim) == before and link.is_symlink()


@two_users
def test_real_path_rejects_a_folder_link_of_another_user(shared: Path, victim: Path) -> None:
    link = shared / "public" / "out"
    link.symlink_to(victim)
    assert real_path(link / "x.tsv") == victim / "x.tsv"
    os.lchown(link, OTHER, OTHER)
    with pytest.raises(OSError, match="another user"):
        real_path(link / "x.tsv")
    with pytest.raises(StorageError, match="another user"):
        write_text(link / "x.tsv")


@is_linux
def test_real_path_equals_path_resolved_by_the_system(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "relative").symlink_to("a/../a/b/..")
    (tmp_path / "absolute").symlink_to(tmp_path / "relative" / "b")
    (tmp_path / "loop").symlink_to("loop")
    for path in ("relative", "absolute/x", "a/b/../..", "absolute/../b"):
        assert real_path(tmp_path / path) == Path(os.path.realpath(tmp_path / path))
    with pytest.raises(OSError, match="symbolic links"):
        real_path(tmp_path / "loop")


@is_linux
def test_pinned_folder_returns_trusted_path(tmp_path: Path) -> None:
    with pinned_folder(tmp_path) as folder:
        assert folder is tmp_path


@is_linux
def test_temporary_files_are_removed_in_folder_others_can_change(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    write_text(folder / "x.tsv")
    write_parquet(folder / "y.parquet")
    with pytest.raises(ZeroDivisionError), atomic_file(folder / "x.tsv") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert sorted(path.name for path in folder.iterdir()) == ["x.tsv", "y.parquet"]
    assert (folder / "x.tsv").read_bytes() == b"new" and pq.read_table(folder / "y.parquet") == TABLE
