"""Untrusted projects: opening and writing them changes nothing outside their folder and runs none of their content."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from proteoscope.engine.errors import InputError, StorageError
from proteoscope.engine.project import Project
from proteoscope.engine.project.locks import FileLock

TABLE = pa.table({"peptide": ["PEPTIDE"], "score": [1.5]})

needs_links = pytest.mark.skipif(os.name != "posix", reason="links need rights there")


@pytest.fixture
def victim(tmp_path) -> Path:
    """Return a folder outside the project, with files that must not change."""
    folder = tmp_path / "victim"
    (folder / "deep").mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    (folder / "deep" / ".draft.0123456789ab.partial").write_text("named as ours are")
    (folder / ".notes.0123456789ab.partial").write_text("named as ours are")
    return folder


@pytest.fixture
def project(tmp_path) -> Path:
    """Return a project with a finished and a failed run."""
    project = Project.create_or_open(tmp_path / "shared" / "project")
    with project.run("identify", {}) as run:
        run.write_table("psms", TABLE)
    with pytest.raises(RuntimeError), project.run("identify", {}):
        raise RuntimeError("broke")
    return project.folder


def state(folder: Path) -> dict:
    """Return the contents of a folder, and the targets of its links."""
    return {
        path.relative_to(folder).as_posix(): path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def changed(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "project.sqlite")) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("status", ["failed", "cancelled", "running"])
@pytest.mark.parametrize("run", ["../../../victim", "{victim}", "..", ".", "", "../results", "identify-0001/../../../../victim", "a\0b"])
def test_clean_up_ignores_run_id_outside_project(project, victim, run, status):
    before = state(victim), state(project / "results")
    named = run.format(victim=victim).replace("\0", "' || char(0) || '")
    changed(project, f"UPDATE runs SET id = '{named}', status = '{status}' WHERE id = 'identify-0002'")
    opened = Project.open(project)
    assert [run.id for run in opened.runs()] == ["identify-0001"]
    assert any("is not an id" in problem for problem in opened.problems)
    with opened.run("identify", {}) as run:
        run.write_table("psms", TABLE)
    assert state(victim) == before[0]
    assert {path: content for path, content in state(project / "results").items() if "0001" in path} == before[1]


@needs_links
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("results", "../../victim"),
        ("results/identify-0001", "../../../victim"),
        ("results/identify-0002", "../../../victim"),
        ("results/identify-0001/psms.parquet", "../../../../victim/thesis.txt"),
        ("results/identify-0001/more.json", "/nowhere"),
        ("project.lock", "../../victim/thesis.txt"),
        ("project.lock", "../../victim/new"),
        ("project.sqlite", "../../victim/project.sqlite"),
        ("project.sqlite-wal", "../../victim/thesis.txt"),
        ("project.sqlite-shm", "../../victim/thesis.txt"),
        ("project.sqlite-journal", "../../victim/thesis.txt"),
        ("run.json", "../../victim/thesis.txt"),
        ("exports", "../../victim"),
    ],
)
def test_project_rejects_symbolic_links(project, victim, name, target):
    path = project / name
    if name == "project.sqlite":
        path.rename(victim / "project.sqlite")
    elif path.exists():
        path.rename(victim / f"moved-{path.name}")
    path.symlink_to(target)
    before = state(victim), state(project)
    for _ in range(2):
        with pytest.raises(StorageError, match="symbolic link") as error:
            Project.open(project)
        assert str(path) in str(error.value)
    with pytest.raises(StorageError, match="symbolic link"):
        Project.create_or_open(project)
    assert (state(victim), state(project)) == before


@needs_links
@pytest.mark.parametrize("name", ["exports", "run.json", "results"])
def test_open_project_rejects_new_symbolic_link(project, victim, name):
    opened = Project.open(project)
    if name == "results":
        (project / name).rename(victim / "results")
    (project / name).symlink_to(victim / "results" if name == "results" else victim)
    before = state(victim)
    with pytest.raises(StorageError, match="symbolic link"):
        opened.inside(name)
    if name == "results":
        with pytest.raises(StorageError, match="symbolic link"), opened.run("identify", {}):
            pass
        with pytest.raises(StorageError, match="symbolic link"):
            opened.table("psms")
    assert state(victim) == before


@needs_links
def test_project_lock_rejects_a_symbolic_link(tmp_path, victim):
    (tmp_path / "lock").symlink_to(victim / "thesis.txt")
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(StorageError, match="symbolic link"):
        lock.acquire("testing")
    assert lock.holder() == "another process"
    assert (victim / "thesis.txt").read_text() == "years of work"


@needs_links
@pytest.mark.parametrize("name", ["project.lock", "project.sqlite", "results/identify-0001/psms.parquet", "run.json"])
def test_project_open_does_not_block_on_a_pipe(project, name):
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    script = "import sys; from proteoscope.engine.project import Project; Project.open(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script, project], env=environment, capture_output=True, text=True, timeout=60)
    expected = "InputError" if name == "project.sqlite" else "StorageError"
    assert expected in done.stderr.splitlines()[-1]


def test_database_index_inside_project_is_not_opened(project, victim):
    (project / "index").symlink_to(victim)
    before = state(victim)
    with Project.open(project).run("identify", {}) as run:
        run.write_table("psms", TABLE)
    assert state(victim) == before


def test_sqlite_journal_of_project_removes_no_file_outside(project, victim):
    """Check a journal that names a file as part of a transaction over several databases, which makes SQLite remove that file."""
    pages = (project / "project.sqlite").stat().st_size // 4096
    name, magic = str(victim / "thesis.txt").encode(), bytes.fromhex("d9d505f920a163d7")
    numbers = (0, 0, pages, 512, 4096)  # These are records, nonce, pages before, sector and page.
    header = magic + b"".join(number.to_bytes(4, "big") for number in numbers)
    ending = (1 << 20).to_bytes(4, "big") + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    (project / "project.sqlite-journal").write_bytes(header.ljust(512, b"\0") + ending)
    copy = shutil.copytree(project, project.parent / "copy")
    with pytest.raises(StorageError, match="names a file outside"):
        Project.open(project)
    assert (victim / "thesis.txt").read_text() == "years of work"
    with closing(sqlite3.connect(copy / "project.sqlite")) as connection:
        connection.execute("SELECT * FROM runs").fetchall()
    assert not (victim / "thesis.txt").exists(), "SQLite obeys the journal"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER surprise AFTER INSERT ON runs BEGIN DELETE FROM results; END",
        "CREATE VIEW surprise AS SELECT * FROM runs",
        "CREATE TABLE surprise (a)",
    ],
)
def test_project_open_rejects_unexpected_database_objects(project, statement):
    changed(project, statement)
    with pytest.raises(StorageError, match=r"did not write \(surprise\)"):
        Project.open(project)


def test_project_rejects_views_as_tables(project):
    changed(project, "ALTER TABLE runs RENAME TO hidden", "CREATE VIEW runs AS SELECT * FROM hidden")
    with pytest.raises(StorageError, match="runs"):
        Project.open(project)


def test_oversized_project_lock_text_is_not_shown(project):
    (project / "project.lock").write_text('{"pid": 1, "host": "' + "x" * 10_000_000 + '", "since": "", "purpose": ""}')
    assert FileLock(project / "project.lock").holder() == "another process"


def test_project_rejects_non_utf8_path_before_creation(tmp_path):
    folder = tmp_path / os.fsdecode(b"project-\xff")
    with pytest.raises(InputError, match="not valid UTF-8"):
        Project.create_or_open(folder)
    with pytest.raises(InputError, match="not valid UTF-8"):
        Project.open(folder)
    assert list(tmp_path.iterdir()) == []
