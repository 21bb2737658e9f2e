"""A finished run is replaced only when the new run of its name is done: a failure or a kill at any moment leaves the old or the new one."""

from __future__ import annotations

import json
import signal
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import StorageError
from proteoscope.engine.files import atomic_file
from proteoscope.engine.jobs.progress import Cancelled
from proteoscope.engine.project import Project, RunNote
from proteoscope.engine.project.row_marks import RowMark
from tests.forked_scripts import fork_server


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.create_or_open(tmp_path / "project")
    do_run(project, 1, exports=("psms", "old"))
    return project


def do_run(project: Project, value: int, *, exports: tuple[str, ...] = ("psms",), kind: str = "identify") -> None:
    with project.run(kind, {}, name="a", overwrite=True) as run:
        run.write_table("psms", pa.table({"value": [value]}))
        for name in exports:
            with atomic_file(run.folder / "exports" / f"{name}.tsv", as_is=True) as file:
                file.write(f"{value}\n".encode())
        run.write_json("run", {"run": run.id, "value": value, "exports": [f"{name}.tsv" for name in exports]})
        run.log("info", f"run {value}")


def check_whole(project: Project, value: int, exports: tuple[str, ...] = ("psms",)) -> None:
    """Check that run `a` is that of `value`, with all of its files and no others."""
    assert project.verify() == []
    assert int(pq.read_table(project.table("psms", "a"))["value"][0].as_py()) == value
    assert project.record("a")["value"] == value and [entry.text for entry in project.log("a")] == [f"run {value}"]
    assert [path.name for path in (project.folder / "results").iterdir()] == ["a"]
    shown = {path.name: path.read_text() for path in (project.folder / "exports").iterdir()}
    assert shown == {f"{name}.tsv": f"{value}\n" for name in exports}
    assert not exports or json.loads((project.folder / "run.json").read_bytes())["value"] == value


def test_finished_replacement_removes_the_old_run_with_its_notes(project: Project) -> None:
    project.set_note("a", RunNote("my title"))
    project.set_row_mark("a", "psms", 0, RowMark(is_starred=True))
    do_run(project, 2)
    check_whole(Project.open(project.folder), 2)
    assert [(run.id, run.status) for run in project.runs()] == [("a", "done")]
    assert project.note("a") == RunNote() and not project.row_marks("a", "psms"), "notes were about the old run"


def test_replacement_removes_exports_of_the_old_run(project: Project) -> None:
    do_run(project, 2, exports=(), kind="align")
    check_whole(Project.open(project.folder), 2, ())
    assert [run.kind for run in project.runs()] == ["align"] and not (project.folder / "run.json").exists()


@pytest.mark.parametrize("error", [ZeroDivisionError(), Cancelled(), StorageError("full")])
def test_failed_replacement_leaves_the_old_run_complete(project: Project, error: Exception) -> None:
    with pytest.raises(type(error)), project.run("identify", {}, name="a", overwrite=True) as run:
        run.write_table("psms", pa.table({"value": [2]}))
        check_whole_while_running(project)
        raise error
    check_whole(Project.open(project.folder), 1, ("psms", "old"))
    assert [run.id for run in project.runs() if run.status == "done"] == ["a"]


def check_whole_while_running(project: Project) -> None:
    """Check that another process reads the old run while the new one is computed."""
    assert int(pq.read_table(Project.open(project.folder).table("psms", "a"))["value"][0].as_py()) == 1


def test_registration_error_leaves_the_old_run_complete(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(Project, "_register_results", fail)
    with pytest.raises(StorageError, match="the disk is full"):
        do_run(project, 2)
    check_whole(Project.open(project.folder), 1, ("psms", "old"))


KILLED = """
    import os, signal, sys
    import pyarrow as pa
    from proteoscope.engine.project import Project
    from tests.engine.project.test_replacement import do_run

    # The n-th line that changes files or the database, from registering the run until its exports are published, is not reached.
    left, watched = int(sys.argv[2]), {"_register", "_register_results", "swap_folders", "rename_run", "_end_replacement", "remove_old",
        "_remove_checkpoint", "publish", "_publish", "_copy_record", "_remove"}

    def trace(frame, event, value):
        global left
        if frame.f_code.co_name not in watched or "/project/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    project = Project.open(sys.argv[1])
    sys.settrace(trace)
    do_run(project, int(sys.argv[3]))
"""


def test_killed_replacement_leaves_old_or_new_run_complete(project: Project, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    old, outcomes, line = 1, set[str](), 0
    with fork_server(tmp_path / "scripts", "pyarrow.parquet", "tests.engine.project.test_replacement") as server:
        while True:
            with server.start(textwrap.dedent(KILLED), project.folder, line, old + 1) as script:
                script.stdout.read()
                status = script.wait()
            assert status in (0, -signal.SIGKILL)
            reopened = Project.open(project.folder)
            value = reopened.record("a")["value"]
            assert value in (old, old + 1)
            outcomes.add("new" if value == old + 1 else "old")
            check_whole(reopened, value, ("psms", "old") if value == 1 else ("psms",))
            assert [run.id for run in reopened.runs() if run.status == "done"] == ["a"]
            old, line = value, line + 1
            if status == 0:
                break
    assert outcomes == {"old", "new"} and line > 30
