"""Notes and titles of runs, and runs that are deleted and restored."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.escaped_names import escape_unprintable
from proteoscope.engine.project import Project, RunNote


def _run(project: Project, content: object = 1) -> str:
    """Write a run with a record, and an export shown by the project."""
    with project.run("identify", {}) as run:
        exports = run.folder / "exports"
        exports.mkdir()
        (exports / "psms.tsv").write_text(str(content))
        run.write_json("run", {"run": run.id, "exports": ["psms.tsv"]})
    return run.id


def _assign_to_ended_process(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "project.sqlite")) as connection:
        connection.execute("UPDATE deleted_runs SET pid = 1, process_started = 'long ago'")
        connection.commit()


def test_run_note_and_title_are_stored_in_the_project(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    run = _run(project)
    assert project.note(run) == RunNote()
    project.set_note(run, RunNote("  the good\none ", "gradient too short"))
    assert Project.open(tmp_path / "p").note(run) == RunNote("the good one", "gradient too short")


def test_run_title_is_limited_in_length(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    with pytest.raises(ParameterError, match="at most 200 characters"):
        project.set_note(_run(project), RunNote("x" * 201))


def test_deleted_run_is_hidden_and_restored_completely(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    first, second = _run(project), _run(project)
    project.delete_run(second)
    reopened = Project.open(tmp_path / "p")
    assert [run.id for run in reopened.runs()] == [first]
    assert reopened.latest() == first
    assert reopened.table("run").parent.name == first
    project.restore_run(second)
    assert [run.id for run in project.runs()] == [first, second]
    assert project.verify() == [] and project.record(second)["run"] == second


def test_files_of_deleted_run_are_removed_when_the_process_ends(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    project = Project.create_or_open(folder)
    first, second = _run(project), _run(project, "of the second")
    assert (folder / "exports" / "psms.tsv").read_text() == "of the second"
    (folder / "exports" / "mine.txt").write_text("mine")
    project.set_note(second, RunNote("t", "n"))
    project.delete_run(second)
    _assign_to_ended_process(folder)
    reopened = Project.open(folder)
    assert sorted(path.name for path in (folder / "results").iterdir()) == [first]
    # The project showed the exports of the deleted run, and shows no other exports instead.
    assert sorted(path.name for path in (folder / "exports").iterdir()) == ["mine.txt"]
    assert not (folder / "run.json").exists()
    with pytest.raises(InputError, match="no longer holds the deleted run"):
        reopened.restore_run(second)
    assert reopened.note(second) == RunNote() and reopened.log(second) == []


def test_deleted_runs_are_removed_immediately_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    project = Project.create_or_open(folder)
    first, second = _run(project), _run(project)
    project.delete_run(first)
    # Only deleted runs are removed.
    project.remove_deleted([first, second])
    assert sorted(path.name for path in (folder / "results").iterdir()) == [second]
    assert (folder / "exports" / "psms.tsv").is_file()


def test_failed_run_can_be_deleted_but_running_run_cannot(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    with pytest.raises(RuntimeError), project.run("identify", {}) as run:
        with pytest.raises(InputError, match="that has ended"):
            project.delete_run(run.id)
        raise RuntimeError("no")
    project.delete_run(run.id)
    assert project.runs() == []


def test_untrusted_run_log_is_read_up_to_a_limit(tmp_path: Path) -> None:
    project = Project.create_or_open(tmp_path / "p")
    run = _run(project)
    with closing(sqlite3.connect(tmp_path / "p" / "project.sqlite")) as connection:
        rows = [(run, "2026-01-01T00:00:00+00:00", "info", f"{i} " + "x" * 50) for i in range(100)]
        connection.executemany("INSERT INTO log (run, time, level, text) VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    lines = project.log(run, most=3, characters=5)
    assert [line.text for line in lines] == ["97 xx", "98 xx", "99 xx"]


@pytest.mark.parametrize("text", ["a\ud800b", "a\0b", "a\x1b[31mb"])
def test_run_note_escapes_unprintable_characters(tmp_path: Path, text: str) -> None:
    project = Project.create_or_open(tmp_path / "p")
    run = _run(project)
    project.set_note(run, RunNote(text, f"one\t{text}\n\ntwo"))
    escaped = escape_unprintable(text)
    assert escaped.isprintable()
    assert project.note(run) == RunNote(escaped, f"one\t{escaped}\n\ntwo")
