"""A project from a stranger: opening it, and writing into it, touches nothing outside its folder and runs nothing that it brings."""

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
    """A folder outside, with things that somebody needs."""
    folder = tmp_path / "victim"
    (folder / "deep").mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    (folder / "deep" / ".draft.0123456789ab.partial").write_text("named as ours are")
    (folder / ".notes.0123456789ab.partial").write_text("named as ours are")
    return folder


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with a finished and a failed run."""
    project = Project.create_or_open(tmp_path / "shared" / "project")
    with project.run("identify", {}) as run:
        run.write_table("psms", TABLE)
    with pytest.raises(RuntimeError), project.run("identify", {}):
        raise RuntimeError("broke")
    return project.folder


def state(folder: Path) -> dict:
    """All that is in a folder: contents, and where links lead."""
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
def test_an_id_that_leads_elsewhere_is_never_swept(project, victim, run, status):
    before = state(victim), state(project / "results")
    named = run.format(victim=victim).replace("\0", "' || char(0) || '")
    changed(project, f"UPDATE runs SET id = '{named}', status = '{status}' WHERE id = 'identify-0002'")
    opened = Project.open(project)
    assert [one.id for one in opened.runs()] == ["identify-0001"]
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
def test_a_link_in_a_project_is_refused_and_followed_by_nobody(project, victim, name, target):
    path = project / name
    if name == "project.sqlite":
        path.rename(victim / "project.sqlite")
    elif path.exists():
        path.rename(victim / f"moved-{path.name}")
    path.symlink_to(target)
    before = state(victim), state(project)
    for _ in range(2):
        with pytest.raises(StorageError, match="symbolic link") as told:
            Project.open(project)
        assert str(path) in str(told.value)
    with pytest.raises(StorageError, match="symbolic link"):
        Project.create_or_open(project)
    assert (state(victim), state(project)) == before


@needs_links
@pytest.mark.parametrize("name", ["exports", "run.json", "results"])
def test_a_link_that_comes_while_the_project_is_open_is_refused_too(project, victim, name):
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
def test_a_lock_is_not_taken_through_a_link(tmp_path, victim):
    (tmp_path / "lock").symlink_to(victim / "thesis.txt")
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(StorageError, match="symbolic link"):
        lock.acquire("testing")
    assert lock.holder() == "another process"
    assert (victim / "thesis.txt").read_text() == "years of work"


@needs_links
@pytest.mark.parametrize("name", ["project.lock", "project.sqlite", "results/identify-0001/psms.parquet", "run.json"])
def test_a_pipe_in_a_project_keeps_nobody_waiting(project, name):
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    script = "import sys; from proteoscope.engine.project import Project; Project.open(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script, project], env=environment, capture_output=True, text=True, timeout=60)
    expected = "InputError" if name == "project.sqlite" else "StorageError"
    assert expected in done.stderr.splitlines()[-1]


def test_an_index_that_a_project_brings_is_not_looked_at(project, victim):
    (project / "index").symlink_to(victim)
    before = state(victim)
    with Project.open(project).run("identify", {}) as run:
        run.write_table("psms", TABLE)
    assert state(victim) == before


def test_a_journal_that_names_a_file_elsewhere_does_not_remove_it(project, victim):
    """SQLite removes the file that a left journal names as that of a transaction over several databases, when it finds no other in it."""
    pages = (project / "project.sqlite").stat().st_size // 4096
    name, magic = str(victim / "thesis.txt").encode(), bytes.fromhex("d9d505f920a163d7")
    numbers = (0, 0, pages, 512, 4096)  # records, nonce, pages before, sector, page
    header = magic + b"".join(number.to_bytes(4, "big") for number in numbers)
    ending = (1 << 20).to_bytes(4, "big") + name + len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + magic
    (project / "project.sqlite-journal").write_bytes(header.ljust(512, b"\0") + ending)
    copy = shutil.copytree(project, project.parent / "copy")
    with pytest.raises(StorageError, match="names a file outside"):
        Project.open(project)
    assert (victim / "thesis.txt").read_text() == "years of work"
    with closing(sqlite3.connect(copy / "project.sqlite")) as connection:
        connection.execute("SELECT * FROM runs").fetchall()
    assert not (victim / "thesis.txt").exists(), "the journal is one that SQLite obeys"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER surprise AFTER INSERT ON runs BEGIN DELETE FROM results; END",
        "CREATE VIEW surprise AS SELECT * FROM runs",
        "CREATE TABLE surprise (a)",
    ],
)
def test_what_the_program_did_not_put_into_the_database_is_refused(project, statement):
    changed(project, statement)
    with pytest.raises(StorageError, match=r"did not write \(surprise\)"):
        Project.open(project)


def test_tables_that_are_views_are_refused(project):
    changed(project, "ALTER TABLE runs RENAME TO hidden", "CREATE VIEW runs AS SELECT * FROM hidden")
    with pytest.raises(StorageError, match="runs"):
        Project.open(project)


def test_a_lock_that_tells_too_much_is_told_in_short(project):
    (project / "project.lock").write_text('{"pid": 1, "host": "' + "x" * 10_000_000 + '", "since": "", "purpose": ""}')
    assert FileLock(project / "project.lock").holder() == "another process"


def test_a_path_that_is_not_utf8_is_refused_before_anything_is_made(tmp_path):
    folder = tmp_path / os.fsdecode(b"project-\xff")
    with pytest.raises(InputError, match="not valid UTF-8"):
        Project.create_or_open(folder)
    with pytest.raises(InputError, match="not valid UTF-8"):
        Project.open(folder)
    assert list(tmp_path.iterdir()) == []
