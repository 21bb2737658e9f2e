"""Projects hold only complete results, whatever happens to the process, the disk or the folder."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.errors import InputError, ParameterError, StorageError
from proteoscope.engine.jobs.progress import Cancelled
from proteoscope.engine.project import Project, RunInput, is_project
from proteoscope.engine.project.database import is_network_file_system
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.project.locks import ProcessIdentity
from proteoscope.engine.sqlite_inputs import LONGEST_VALUE
from tests.effort import CancelCheckProgress
from tests.forked_scripts import fork_server
from tests.leftovers import leave_file

TABLE = pa.table({"peptide": ["PEPTIDE", "ELVISK"], "score": [1.5, 2.5]})


@pytest.fixture
def project(tmp_path) -> Project:
    return Project.create_or_open(tmp_path / "project")


def python(script: str, *arguments: object, **options: object) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options
    )


def do_run(project: Project, kind: str = "identify") -> str:
    with project.run(kind, {"fdr": 0.01}) as run:
        run.write_table("psms", TABLE)
    return run.id


def result_folders(project: Project) -> list[str]:
    return sorted(path.name for path in (project.folder / "results").iterdir())


# Contents of a run


def test_opened_project_returns_all_records_of_a_run(project, tmp_path):
    spectra = tmp_path / "Läufe & more.mzML"
    spectra.write_text("spectra")
    parameters = {"enzyme": "Trypsin", "fdr": 0.01, "modifications": ["Oxidation (M)"]}
    with project.run(
        "identify", parameters, [RunInput(spectra, "spectra"), RunInput(spectra, "database", "ab" * 32)], version="1.2.3", device="cpu"
    ) as run:
        run.write_table("psms", TABLE)
        run.write_json("summary", {"n": 2, "name": "β"})
        run.log("info", "two PSMs")
        run.message = "2 PSMs at 1 %"
    reopened = Project.open(project.folder)
    (record,) = reopened.runs()
    assert (record.id, record.kind, record.status, record.parameters) == ("identify-0001", "identify", "done", parameters)
    assert (record.version, record.device, record.message) == ("1.2.3", "cpu", "2 PSMs at 1 %")
    assert record.finished >= record.started
    assert [(source.path, source.kind, source.size, source.sha256) for source in reopened.inputs(record.id)] == [
        (spectra, "spectra", 7, file_digest(spectra)),
        (spectra, "database", 7, "ab" * 32),
    ]
    assert [(entry.level, entry.text) for entry in reopened.log(record.id)] == [("info", "two PSMs")]
    assert reopened.latest("identify") == record.id
    assert {result.name: result.rows for result in reopened.results()} == {"psms": 2, "summary": None}
    assert json.loads(reopened.table("summary").read_text()) == {"n": 2, "name": "β"}


def test_duckdb_and_sqlite_can_read_the_project_files(project):
    run = do_run(project)
    path = project.table("psms")
    assert path == project.folder / "results" / run / "psms.parquet"
    assert duckdb.sql(f"SELECT sum(score) FROM '{path}'").fetchall() == [(4.0,)]
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        assert connection.execute("SELECT id, status FROM runs").fetchall() == [(run, "done")]
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


def test_table_writer_accepts_several_batches(project):
    with project.run("identify", {}) as run:
        run.write_table("reader", pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches() * 3))
        with run.table_writer("batches", TABLE.schema) as writer:
            for batch in TABLE.to_batches() * 5:
                writer.write(batch)
        run.write_table("empty", TABLE.slice(0, 0))
    assert pq.read_table(project.table("reader")).num_rows == 6
    assert pq.read_table(project.table("batches"))["score"].to_pylist() == [1.5, 2.5] * 5
    assert pq.read_table(project.table("empty")).num_rows == 0
    assert {result.name: result.rows for result in project.results()} == {"empty": 0, "batches": 10, "reader": 6}


def test_write_table_uses_dictionary_encoding_only_for_strings(project):
    table = pa.table({"name": ["a", "a"], "names": [["a"], ["a", "b"]], "number": [1.5, 2.5], "numbers": [[1], [2, 3]]})
    with project.run("identify", {}) as run:
        path = run.write_table("psms", table)
        assert pq.read_table(path).equals(table)
        group = pq.ParquetFile(path).metadata.row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
        assert [column.has_dictionary_page for column in columns] == [True, True, False, False]


def test_project_table_returns_latest_finished_run(project):
    first = do_run(project)
    second = do_run(project)
    cluster = do_run(project, "cluster")
    with pytest.raises(RuntimeError), project.run("identify", {}) as run:
        run.write_table("psms", TABLE)
        raise RuntimeError("no")
    assert [record.id for record in project.runs()] == [first, second, cluster, "identify-0004"]
    assert project.latest("identify") == second
    assert project.latest() == cluster
    assert project.latest("align") is None
    assert project.table("psms", first).parent.name == first
    assert project.table("psms").parent.name == cluster
    with pytest.raises(InputError, match="holds no finished result 'peptides'"):
        project.table("peptides")
    with pytest.raises(InputError, match="of run 'identify-0004'"):
        project.table("psms", "identify-0004")


@pytest.mark.parametrize("name", ["", "../psms", "/etc/passwd", "a/b", "a\\b", ".hidden", "..", "x" * 200, "a\0b", "ä"])
def test_write_table_rejects_names_outside_the_run_folder(project, name):
    with pytest.raises(ParameterError, match="cannot name a result"), project.run("identify", {}) as run:
        run.write_table(name, TABLE)
    assert result_folders(project) == []


@pytest.mark.parametrize("kind", ["", "..", "a/b", "a b", "-a"])
def test_project_run_rejects_invalid_types_of_run(project, kind):
    with pytest.raises(ParameterError, match="is not a type of run"), project.run(kind, {}):
        pass


def test_write_table_rejects_a_second_result_of_equal_name(project):
    with pytest.raises(ParameterError, match="do not change"), project.run("identify", {}) as run:
        run.write_table("psms", TABLE)
        run.write_json("psms", {})


# Files left by failed and killed runs


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RuntimeError("it broke"), "failed", "it broke"),
        (MemoryError(), "failed", "MemoryError"),
        (Cancelled(), "cancelled", "stopped by the user"),
        (KeyboardInterrupt(), "cancelled", "stopped by the user"),
    ],
)
def test_failed_run_has_a_message_and_no_files(project, error, status, message):
    with pytest.raises(type(error)), project.run("identify", {}) as run:
        run.write_table("psms", TABLE)
        raise error
    (record,) = project.runs()
    assert (record.status, record.message) == (status, message)
    assert record.finished is not None
    assert project.results() == []
    assert result_folders(project) == []


def test_project_run_rejects_missing_input_before_the_start(project, tmp_path):
    with pytest.raises(InputError, match=r"gone\.mzML"), project.run("identify", {}, [RunInput(tmp_path / "gone.mzML", "spectra")]):
        pytest.fail("the run must not begin")
    assert project.runs()[0].status == "failed"


def test_project_open_removes_files_of_killed_run(project):
    script = """
        import sys
        import pyarrow as pa
        from proteoscope.engine.project import Project
        with Project.open(sys.argv[1]).run("identify", {}) as run:
            run.write_table("psms", pa.table({"a": [1]}))
            (run.folder / ".peptides.parquet.123456.partial").write_bytes(b"half")
            print("written", flush=True)
            sys.stdin.readline()
    """
    before = do_run(project)
    process = python(script, project.folder)
    assert process.stdout.readline() == "written\n"

    # While the process runs, its files remain, and other processes can read.
    other = Project.open(project.folder)
    assert [record.status for record in other.runs()] == ["done", "running"]
    assert other.table("psms").parent.name == before
    assert len(list((project.folder / "results" / "identify-0002").iterdir())) == 2

    process.kill()
    process.communicate()
    other = Project.open(project.folder)
    assert [record.status for record in other.runs()] == ["done", "failed"]
    assert "interrupted" in other.runs()[1].message
    assert result_folders(other) == [before]


KILLED = """
    import sys, time
    import numpy as np
    import pyarrow as pa
    from proteoscope.engine.project import Project
    project = Project.open(sys.argv[1])
    table = pa.table({"x": np.random.default_rng(1).random(20_000)})
    while True:
        started = time.monotonic()
        with project.run("identify", {}) as run:
            for name in ("psms", "peptides", "proteins"):
                run.write_table(name, table)
            run.log("info", "written")
        print(time.monotonic() - started, flush=True)
"""


def test_project_is_complete_after_a_kill_at_any_moment(project, tmp_path):
    (tmp_path / "scripts").mkdir()
    with fork_server(tmp_path / "scripts", "numpy", "pyarrow.parquet", "proteoscope.engine.project") as server:
        for i in range(12):
            with server.start(textwrap.dedent(KILLED), project.folder) as script:
                script.stdout.readline()
                seconds = float(script.stdout.readline())
                # Moments spread over the length of a run, whatever that is on this machine today.
                time.sleep(seconds * (i * 5 % 12) / 8)
            reopened = Project.open(project.folder)
            done = [record.id for record in reopened.runs() if record.status == "done"]
            assert {record.status for record in reopened.runs()} <= {"done", "failed"}
            assert reopened.verify() == []
            assert sorted(result.run for result in reopened.results()) == sorted(done * 3), "a run has all of its results or none"
            assert result_folders(reopened) == sorted(done)
            assert [path.name for path in reopened.folder.rglob(".*")] == []
    assert len(reopened.runs()) > len(done), "some runs must have been interrupted, or nothing was tested"
    do_run(project)


def test_project_open_does_not_remove_files_of_the_user(project):
    run = do_run(project)
    (project.folder / "results" / "my notes").mkdir()
    (project.folder / "results" / run / "notes.txt").write_text("mine")
    (project.folder / "exports").mkdir()
    (project.folder / "exports" / ".psms.tsv.123456.partial").write_text("another process is writing this")
    Project.open(project.folder)
    assert (project.folder / "results" / "my notes").exists()
    assert (project.folder / "results" / run / "notes.txt").exists()
    assert (project.folder / "exports" / ".psms.tsv.123456.partial").exists()


# Two processes at once


def test_second_process_can_read_but_not_write_the_project(project):
    other = Project.open(project.folder)
    progress = CancelCheckProgress()
    with project.run("identify", {}):
        with (
            pytest.raises(StorageError, match=rf"process {os.getpid()} on .* \(run identify-0001\) is writing this project"),
            other.run("x", {}, progress=progress),
        ):
            pytest.fail("two must not write at once")
        assert progress.n_checks <= 25, "it waits a second, twenty polls, for a run that is about to end"
        assert [record.status for record in other.runs()] == ["running"], "a run that did not start is not listed"
    do_run(other)


def test_run_has_status_queued_while_it_waits_for_another_writer(project):
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with Project.open(project.folder).run("first", {}):
            inside.set()
            done.wait(10)

    def start_second_run() -> None:
        with project.run("second", {}, wait=20) as run:
            run.write_table("psms", TABLE)

    holder, waiter = threading.Thread(target=hold), threading.Thread(target=start_second_run)
    holder.start()
    assert inside.wait(60)
    waiter.start()
    deadline = time.monotonic() + 60
    while len(project.runs()) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [record.status for record in project.runs()] == ["running", "queued"]
    assert [record.status for record in Project.open(project.folder).runs()] == ["running", "queued"]
    done.set()
    holder.join()
    waiter.join()
    assert [record.status for record in project.runs()] == ["done", "done"]


def test_run_that_waits_for_another_writer_can_be_cancelled(project):
    other, progress = Project.open(project.folder), CancelCheckProgress(5)
    with project.run("identify", {}):
        with pytest.raises(Cancelled), other.run("second", {}, wait=60, progress=progress):
            pass
        assert progress.n_checks_after_cancel == 0
    assert [record.status for record in project.runs()] == ["done", "cancelled"]


def test_forked_child_does_not_hold_project_lock_of_dead_parent(project):
    script = """
        import os, sys, time
        from proteoscope.engine.project import Project
        with Project.open(sys.argv[1]).run("identify", {}):
            child = os.fork()
            if child == 0:
                print("child", os.getpid(), flush=True)
                time.sleep(60)
                os._exit(0)
            time.sleep(60)
    """
    process = python(script, project.folder)
    child = int(process.stdout.readline().split()[1])
    process.kill()
    process.wait()
    try:
        do_run(project)
    finally:
        os.kill(child, signal.SIGKILL)
        process.communicate()
    assert [record.status for record in project.runs()] == ["failed", "done"]


def test_project_open_marks_queued_run_of_dead_process_failed(project):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    here = ProcessIdentity.current()
    owners = [here, ProcessIdentity(here.host, dead.pid, "boot:1"), ProcessIdentity(here.host, here.pid, "boot:1")]
    owners.append(ProcessIdentity("elsewhere", dead.pid, "boot:1"))
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        for i, owner in enumerate(owners):
            connection.execute(
                "INSERT INTO runs (id, kind, parameters, version, device, status, started, host, pid, process_started) "
                "VALUES (?, 'x', '{}', '', '', 'queued', '2025-01-01T00:00:00+00:00', ?, ?, ?)",
                (f"x-{i:04d}", owner.host, owner.pid, owner.started),
            )
    assert [record.status for record in Project.open(project.folder).runs()] == ["queued", "failed", "failed", "queued"]


def test_project_create_or_open_works_in_two_processes_at_once(tmp_path):
    script = """
        import sys
        from proteoscope.engine.project import Project
        sys.stdin.readline()
        Project.create_or_open(sys.argv[1])
    """
    processes = [python(script, tmp_path / "new") for _ in range(3)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        assert process.communicate()[1] == ""
    assert Project.open(tmp_path / "new").runs() == []
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["project.lock", "project.sqlite"]


# Folders that are not projects, and damaged projects


def test_project_create_rejects_folder_with_other_content(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"other things in it \(thesis.tex\)"):
        Project.create_or_open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="is not a Proteoscope project"):
        Project.open(tmp_path)


def test_project_create_rejects_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        Project.create_or_open(tmp_path / "file")
    with pytest.raises(StorageError, match="a part of this path is a file"):
        Project.create_or_open(tmp_path / "file" / "project")
    with pytest.raises(InputError, match="is not a Proteoscope project"):
        Project.open(tmp_path / "file")
    with pytest.raises(InputError, match="does not exist"):
        Project.open(tmp_path / "absent")


def test_project_create_completes_an_interrupted_creation(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    leave_file(folder / "project.sqlite")
    (folder / "project.lock").touch()
    Project.create_or_open(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["project.lock", "project.sqlite"]


@pytest.mark.parametrize("version", [0, 1, 5])
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_project_open_rejects_other_version_and_changes_no_file(project, capsys, version, journal):
    do_run(project)
    database = project.folder / "project.sqlite"
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA journal_mode = {journal}")
    files = {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file() and path.name != "project.lock"}
    sentence = (
        f"{database}: has project format {version}; this program opens only format 3. "
        "Open it with the version of Proteoscope that created it, or repeat its searches in a new project."
    )
    for opening in (Project.open, Project.create_or_open):
        with pytest.raises(InputError) as refused:
            opening(project.folder)
        assert str(refused.value) == sentence
    protein, out = project.folder.with_name("a.fasta"), project.folder.with_name("out.tsv")
    protein.write_text(">a\nMKVLAAGIVGLCAKAYEWTRE\n")
    for command in (
        ["runs", project.folder],
        ["resume", project.folder],
        ["export", project.folder, "--format", "tsv", "--out", out],
        ["align", protein, protein, "--project", project.folder, "--out", out],
    ):
        assert main([str(part) for part in command]) == 2
        assert sentence in capsys.readouterr().err
    assert not out.exists()
    assert {path: path.read_bytes() for path in project.folder.rglob("*") if path.is_file() and path.name != "project.lock"} == files


def test_project_create_rejects_database_of_another_program(tmp_path):
    with closing(sqlite3.connect(tmp_path / "project.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE theirs (a)")
    with pytest.raises(InputError, match="a database of another program"):
        Project.create_or_open(tmp_path)


@pytest.mark.parametrize("content", [b"binary garbage" * 1000, b""])
def test_project_open_rejects_damaged_database(project, content):
    (project.folder / "project.sqlite").write_bytes(content)
    with pytest.raises((StorageError, InputError), match=r"project\.sqlite.*(damaged|another program)"):
        Project.open(project.folder)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "bytes instead of"),
        (lambda path: path.write_bytes(path.read_bytes()[:-8] + b"\x01\x01\x01\x01PAR1"), "was changed or is damaged"),
    ],
)
def test_project_table_rejects_changed_result_file(project, harm, message):
    run = do_run(project)
    path = project.table("psms")
    harm(path)
    with pytest.raises(StorageError, match=rf"{message}.*repeat run '{run}'"):
        project.table("psms")
    assert len(project.verify()) == 1


def test_project_table_rejects_paths_outside_the_project(project, tmp_path):
    do_run(project)
    pq.write_table(TABLE, tmp_path / "outside.parquet")
    for path in ("../outside.parquet", str(tmp_path / "outside.parquet"), "results/link/outside.parquet"):
        (project.folder / "results" / "link").unlink(missing_ok=True)
        (project.folder / "results" / "link").symlink_to(tmp_path)
        with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
            connection.execute("UPDATE results SET path = ?", (path,))
        with pytest.raises(StorageError, match="is not the path of a result"):
            project.table("psms")


def test_project_opens_after_move_to_another_folder(project, tmp_path):
    do_run(project)
    moved = tmp_path / "moved #1 ?&%"
    shutil.move(project.folder, moved)
    assert Project.open(moved).table("psms").is_relative_to(moved)


# Missing folders, full disks and read-only disks


@pytest.mark.parametrize("way", ["deleted", "moved"])
def test_run_fails_and_writes_no_file_when_project_disappears(project, tmp_path, way):
    """The error names the missing project, not a missing file or log in it."""
    away = tmp_path / "away"
    with (
        pytest.raises(StorageError, match=r"the project is no longer here") as error,
        project.run("identify", {}) as run,
        run.table_writer("psms", pa.schema([("a", pa.int64())])) as writer,
    ):
        writer.write(pa.table({"a": [1]}))
        if way == "deleted":
            shutil.rmtree(project.folder)
        else:
            project.folder.rename(away)
        # Other writers create the parent folders of their files.
        (run.folder / "exports").mkdir(parents=True)
    assert "partial: cannot be read" in str(error.value.__cause__)
    assert not project.folder.exists() and not is_project(project.folder)
    with pytest.raises(StorageError, match="no longer here"):
        project.runs()
    if way == "moved":
        assert [(record.status, "interrupted" in record.message) for record in Project.open(away).runs()] == [("failed", True)]


def test_read_only_project_can_be_read_but_rejects_runs(project):
    """Run the test in a process without root privileges, since file permissions do not restrict root."""
    do_run(project)
    for folder in (project.folder.parent, project.folder, project.folder / "results"):
        folder.chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rX,a-w", project.folder], check=True)
    script = """
        import os, sys
        from proteoscope.engine.errors import ProteoscopeError
        from proteoscope.engine.project import Project
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        project = Project.open(sys.argv[1])
        print(project.read_only, len(project.runs()), project.table("psms").name)
        def run():
            with project.run("identify", {}):
                pass
        for refused in (run, lambda: Project.create_or_open(sys.argv[1]), lambda: Project.create_or_open(sys.argv[1] + "/inner")):
            try:
                refused()
            except ProteoscopeError as error:
                print(type(error).__name__, error)
    """
    places = [project.folder, *project.folder.parents]
    of_all_users = next((n for n, folder in enumerate(places) if folder.stat().st_mode & stat.S_ISVTX), 0)  # such as /tmp or /dev/shm
    for folder in places[:of_all_users] if os.getuid() == 0 else ():
        folder.chmod(folder.stat().st_mode | 0o055)
    out, err = python(script, project.folder).communicate()
    project.folder.chmod(0o755)
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "True 1 psms.parquet"
    assert [line.split()[0] for line in lines[1:]] == ["StorageError"] * 3
    assert all("you may not write here" in line or "other things" in line for line in lines[1:])


def test_full_disk_makes_run_fail_but_keeps_finished_results(project):
    """A file size limit replaces the full disk, since the system rejects writes in the same way."""
    script = """
        import resource, sys
        import numpy as np
        import pyarrow as pa
        from proteoscope.engine.errors import StorageError
        from proteoscope.engine.project import Project
        project = Project.open(sys.argv[1])
        table = pa.table({"x": np.random.default_rng(1).random(200_000)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        for write in (lambda run: run.write_table("psms", table), lambda run: run.write_json("psms", "x" * 400_000)):
            try:
                with project.run("identify", {}) as run:
                    run.write_table("small", table.slice(0, 10))
                    write(run)
            except StorageError as error:
                print(error)
    """
    run = do_run(project)
    out, err = python(script, project.folder).communicate()
    assert err == ""
    assert [("psms." in line, "limit for files" in line) for line in out.splitlines()] == [(True, True)] * 2
    reopened = Project.open(project.folder)
    assert [record.status for record in reopened.runs()] == ["done", "failed", "failed"]
    assert reopened.verify() == []
    assert result_folders(reopened) == [run]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can mount a small disk")
def test_small_disk_that_fills_up_keeps_finished_results(tmp_path):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        project = Project.create_or_open(tmp_path / "project")
        run = do_run(project)
        with pytest.raises(StorageError, match=r"psms\.parquet: the disk is full"), project.run("identify", {}) as second:
            second.write_table("psms", pa.table({"x": [os.urandom(3 << 20)]}))
        reopened = Project.open(tmp_path / "project")
        assert [record.status for record in reopened.runs()] == ["done", "failed"]
        assert reopened.verify() == []
        (tmp_path / "filler").write_bytes(bytes(1))
        with pytest.raises(OSError), (tmp_path / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(StorageError, match="the disk is full"):
            do_run(reopened)
        (tmp_path / "filler").unlink()
        reopened = Project.open(tmp_path / "project")
        assert reopened.table("psms").parent.name == run
        do_run(reopened)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_is_network_file_system_reads_mounts():
    mounts = (
        "/dev/sda1 / ext4 rw 0 0\nserver:/home /home nfs4 rw 0 0\n/dev/sdb1 /home/local ext4 rw 0 0\n"
        "//lab/share /mnt/lab\\040share cifs rw 0 0\n"
    )
    assert not is_network_file_system(Path("/opt/project"), mounts)
    assert is_network_file_system(Path("/home/ada/project"), mounts)
    assert not is_network_file_system(Path("/home/local/project"), mounts)
    assert is_network_file_system(Path("/mnt/lab share/project"), mounts)


def test_network_file_systems_use_a_rollback_journal(tmp_path, monkeypatch):
    monkeypatch.setattr("proteoscope.engine.project.database.is_network_file_system", lambda folder: True)
    project = Project.create_or_open(tmp_path / "project")
    do_run(project)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]


# Damaged databases


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE runs SET started = 'yesterday' WHERE number = 2", "the started 'yesterday' is not a time"),
        ("UPDATE runs SET started = '2025-01-01T00:00:00' WHERE number = 2", "is not a time"),
        ("UPDATE runs SET finished = 7 WHERE number = 2", "the finished '7' is not a time"),
        ("UPDATE runs SET parameters = '{' WHERE number = 2", "the parameters are not a JSON object"),
        ("UPDATE runs SET parameters = '[]' WHERE number = 2", "the parameters are not a JSON object"),
        ("UPDATE runs SET message = x'00ff' WHERE number = 2", "the message b'\\x00\\xff' is not text"),
        ("UPDATE runs SET id = '../x' WHERE number = 2", "'../x' is not an id"),
    ],
)
def test_project_reports_damaged_run_row_and_lists_other_runs(project, change, message):
    first = do_run(project)
    do_run(project)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(change)
    opened = Project.open(project.folder)
    assert len(opened.problems) == 1 and message in opened.problems[0] and "project.sqlite" in opened.problems[0]
    assert [run.id for run in opened.runs()] == [first] and opened.latest() == first
    assert pq.read_table(opened.table("psms", first)).equals(TABLE)
    do_run(opened)


def test_project_open_rejects_run_message_of_many_megabytes(project):
    do_run(project)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET message = ?", ("x" * (LONGEST_VALUE + 1),))
    with pytest.raises(StorageError, match="database is damaged") as refused:
        Project.open(project.folder).runs()
    assert "\n" not in str(refused.value)


def test_project_runs_replace_invalid_utf8(project):
    run = do_run(project)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE runs SET message = CAST(x'6f6bff' AS TEXT)")
    (record,) = Project.open(project.folder).runs()
    assert (record.id, record.message) == (run, "ok\ufffd")


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE runs DROP COLUMN device", "DROP TABLE log", "ALTER TABLE results RENAME COLUMN path TO p", "DROP INDEX log_of_run"],
)
def test_project_open_rejects_incomplete_database(project, change):
    do_run(project)
    with closing(sqlite3.connect(project.folder / "project.sqlite")) as connection, connection:
        connection.execute(change)
    with pytest.raises(StorageError, match=r"damaged \(not as the program created it: .*the tables under results can still be read"):
        Project.open(project.folder)
