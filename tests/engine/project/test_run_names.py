"""Runs are named by the user: names are paths, and a finished run of a name is replaced only on request."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from proteoscope.engine.errors import InputError, ParameterError, RunExistsError, StorageError
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.project import Project, is_project
from proteoscope.engine.project.project import removed_if_unused
from proteoscope.engine.project.run_notes import RunNote


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.create_or_open(tmp_path / "project")


def do_run(project: Project, name: str = "", value: int = 1, **options: bool) -> str:
    with project.run("identify", {"fdr": 0.01}, name=name, **options) as run:
        run.write_table("psms", pa.table({"value": [value]}))
    return run.id


def value_of(project: Project, run: str) -> int:
    return int(pq.read_table(project.folder / "results" / run / "psms.parquet")["value"][0].as_py())


def test_run_name_becomes_run_id_and_folder_name(project: Project) -> None:
    assert do_run(project, "sample_7.replicate-2") == "sample_7.replicate-2"
    assert [(run.id, run.kind, run.label) for run in project.runs()] == [("sample_7.replicate-2", "identify", "sample_7.replicate-2")]
    assert value_of(project, "sample_7.replicate-2") == 1


@pytest.mark.parametrize("name", ["CON", "nul", "Com1", "LPT9", "prn.project", "aux.a.b"])
def test_names_reserved_by_windows_are_rejected(project: Project, name: str) -> None:
    with pytest.raises(ParameterError, match="since Windows reserves this name"):
        do_run(project, name)
    folder = project.folder.parent / name
    for use in (Project.create_or_open, Project.open):
        with pytest.raises(InputError, match="since Windows reserves this name"):
            use(folder)
    assert not folder.exists()
    folder.mkdir()  # other systems may have such a folder already
    assert do_run(Project.create_or_open(folder), "a") == "a"


def test_automatic_run_number_skips_number_in_a_given_name(project: Project) -> None:
    do_run(project, "identify-0002")
    assert do_run(project) == "identify-0003"
    assert [run.label for run in project.runs()] == ["2", "3"]


def test_finished_run_is_replaced_only_with_overwrite(project: Project) -> None:
    do_run(project, "a")
    with pytest.raises(RunExistsError, match=r"holds a finished run 'a'\. --overwrite replaces it, --skip-existing keeps it"):
        do_run(project, "a", 2)
    assert value_of(project, "a") == 1 and len(project.runs()) == 1
    do_run(project, "a", 2, overwrite=True)
    assert value_of(project, "a") == 2 and len(project.runs()) == 1


def test_failed_replacement_leaves_run_and_records_failure(project: Project) -> None:
    do_run(project, "a")
    project.set_note("a", RunNote("Monday"))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as failure, project.run("identify", {}, name="a", overwrite=True):
            _ = 1 / 0
        assert failure.value.__notes__ == ["run 'a' is as before"]
    finished, failed = project.runs()
    assert (finished.id, finished.status, value_of(project, "a"), project.note("a").title) == ("a", "done", 1, "Monday")
    assert (failed.status, project.note(failed.id).title) == ("failed", "Replacement of a")
    assert failed.message.startswith("run 'a' is not replaced: ")

    do_run(project, "a", 2, overwrite=True)
    assert [(run.id, run.status) for run in project.runs()] == [("a", "done")]
    assert (value_of(project, "a"), project.note("a").title) == (2, "")


def test_titled_record_of_failed_replacement_is_retained(project: Project) -> None:
    do_run(project, "a")
    do_run(project, "b")
    for name in ("a", "b"):
        with pytest.raises(ZeroDivisionError), project.run("identify", {}, name=name, overwrite=True):
            _ = 1 / 0
    *_, of_a, of_b = (run.id for run in project.runs())
    project.set_note(of_a, RunNote("full disk"))
    do_run(project, "a", 2, overwrite=True)
    assert {run.id for run in project.runs()} == {"a", "b", of_a, of_b}


def test_failed_run_is_replaced_without_request(project: Project) -> None:
    with pytest.raises(ZeroDivisionError), project.run("identify", {}, name="a"):
        _ = 1 / 0
    assert [run.status for run in project.runs()] == ["failed"]
    do_run(project, "a", 3)
    assert [(run.id, run.status) for run in project.runs()] == [("a", "done")] and value_of(project, "a") == 3


def test_run_name_differing_only_in_case_is_rejected(project: Project) -> None:
    do_run(project, "Sample")
    with pytest.raises(ParameterError, match="must differ in more than upper and lower case"):
        do_run(project, "sample", overwrite=True)
    assert [(run.id, run.status) for run in project.runs()] == [("Sample", "done")]


@pytest.mark.parametrize("name", ["a/b", "..", ".a", "-a", "a.", "a b", "é", "a\n", "con", "LPT1.x", "a" * 101, "a\\b", "a:b", "a*"])
def test_run_name_invalid_as_folder_name_is_rejected(project: Project, name: str) -> None:
    with pytest.raises(ParameterError, match="cannot name a run"):
        do_run(project, name)
    assert not project.runs()


def test_second_writer_is_rejected_or_waits_as_requested(project: Project) -> None:
    started, ended, messages = threading.Event(), threading.Event(), list[str]()

    def write() -> None:
        with project.run("identify", {}, name="first") as run:
            run.write_table("psms", pa.table({"value": [1]}))
            started.set()
            ended.wait(30)

    def end(text: str) -> None:
        messages.append(text)
        ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    assert started.wait(30)
    try:
        with pytest.raises(StorageError, match="is writing this project"):
            do_run(project, "second")
        progress = Progress(lambda event: end(event.message) if event.message else None)
        with project.run("identify", {}, name="second", wait=60.0, progress=progress) as run:
            run.write_table("psms", pa.table({"value": [2]}))
    finally:
        ended.set()
        writer.join()
    assert len(messages) == 1 and "run first" in messages[0]
    assert [(run.id, run.status) for run in project.runs()] == [("first", "done"), ("second", "done")]


def test_run_stops_waiting_for_another_writer_at_cancel(project: Project) -> None:
    started, ended = threading.Event(), threading.Event()

    def write() -> None:
        with project.run("identify", {}, name="first"):
            started.set()
            ended.wait(30)

    writer = threading.Thread(target=write)
    writer.start()
    assert started.wait(30)
    progress = Progress(lambda event: progress.cancel())
    try:
        with pytest.raises(Cancelled), project.run("identify", {}, name="second", wait=float("inf"), progress=progress):
            pass
    finally:
        ended.set()
        writer.join()
    assert [run.id for run in project.runs() if run.status == "done"] == ["first"]


def test_project_created_for_a_failed_run_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    with pytest.raises(ZeroDivisionError), removed_if_unused(folder), Project.create_or_open(folder).run("identify", {}):
        _ = 1 / 0
    assert not folder.exists()


def test_failed_run_leaves_user_files_and_finished_runs(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    with pytest.raises(ZeroDivisionError), removed_if_unused(folder), Project.create_or_open(folder).run("identify", {}):
        (folder / "notes.txt").write_text("mine")
        _ = 1 / 0
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    with pytest.raises(ZeroDivisionError), removed_if_unused(folder):
        do_run(Project.create_or_open(folder), "a")
        _ = 1 / 0
    assert is_project(folder) and value_of(Project.open(folder), "a") == 1
    with pytest.raises(ZeroDivisionError), removed_if_unused(folder), Project.create_or_open(folder).run("identify", {}):
        _ = 1 / 0
    assert value_of(Project.open(folder), "a") == 1


def test_project_creation_accepts_empty_results_folders(tmp_path: Path) -> None:
    for name in ("exports", "results/a"):
        (tmp_path / "project" / name).mkdir(parents=True)
    project = Project.create_or_open(tmp_path / "project")
    do_run(project, "a")
    assert value_of(project, "a") == 1


@pytest.mark.parametrize("name", ["results/a/mine.txt", "exports/mine.txt", "other/"])
def test_project_is_not_created_in_a_folder_with_other_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / "project" / name
    path.parent.mkdir(parents=True)
    path.mkdir() if name.endswith("/") else path.write_text("mine")
    with pytest.raises(InputError, match="with other things in it"):
        Project.create_or_open(tmp_path / "project")
    assert path.exists()


def test_project_creation_rejects_links_in_results_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / "results").mkdir(parents=True)
    (tmp_path / "project" / "results" / "a").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(InputError, match="with other things in it"):
        Project.create_or_open(tmp_path / "project")


def test_run_name_of_a_folder_with_user_files_is_rejected(project: Project) -> None:
    (project.folder / "results" / "a").mkdir(parents=True)
    (project.folder / "results" / "a" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="results/a contains files that belong to no run"):
        do_run(project, "a", overwrite=True)
    assert (project.folder / "results" / "a" / "mine.txt").read_text() == "mine" and not project.runs()
