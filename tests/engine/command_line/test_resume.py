"""``proteoscope resume`` and ``runs``: a run goes on under its id with the same results, or the user is told why it cannot."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from proteoscope.engine import resumption
from proteoscope.engine.command_line.main import main
from proteoscope.engine.jobs.progress import Cancelled
from proteoscope.engine.project import Project
from proteoscope.engine.project.kept_file import PARTITIONS
from proteoscope.engine.project.locks import FileLock
from proteoscope.engine.resumption import SEALED_ELSEWHERE
from proteoscope.engine.searches import resume_run, run_search
from tests.stopped_runs import ProgressUntil, inputs_of, keep_at_once, stop_a_search, tables

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    keep_at_once(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def stopped(project: Path, tmp_path: Path) -> str:
    return stop_a_search(project, tmp_path)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    capsys.readouterr()
    assert main(list(map(str, arguments))) == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.count("\n") == 1
    return errors.removeprefix("proteoscope: ").strip()


def test_a_resumed_run_gives_the_tables_of_one_that_was_not_stopped(project: Path, stopped: str, tmp_path: Path) -> None:
    assert [path.name for path in (project / "results" / stopped).iterdir()] == [PARTITIONS]
    assert main(["resume", str(project), "--threads", "1", "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    assert summary.run_id is not None
    assert tables(project, stopped) == tables(tmp_path / "other", summary.run_id)
    opened = Project.open(project)
    assert [(run.id, run.status) for run in opened.runs()] == [(stopped, "done")]
    assert f"{stopped} goes on: 1 finished partition of it are kept" in [line.text for line in opened.log(stopped)]
    assert not (project / "results" / stopped / PARTITIONS).exists()


def test_runs_are_listed_with_how_they_stand(project: Path, stopped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_search("align", inputs_of(tmp_path), project=project, device="cpu", threads=2)
    capsys.readouterr()
    assert main(["runs", str(project)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(stopped) and "can be resumed" in first and "stopped by the user" in first
    assert "done" in second
    assert main(["runs", str(project), "--json"]) == 0
    assert [(run["id"], run["can_be_resumed"]) for run in json.loads(capsys.readouterr().out)] == [(stopped, True), ("align-0002", False)]


def test_a_deleted_run_leaves_nothing(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(project), "--delete", stopped]) == 0
    assert Project.open(project).runs() == [] and not list((project / "results").iterdir())
    assert "holds no run that can be resumed" in refusal(capsys, "resume", project)
    assert "holds no run 'align-0001'" in refusal(capsys, "resume", project, "--run", stopped)
    assert "holds no run align-0001" in refusal(capsys, "runs", project, "--delete", stopped)


def test_a_finished_run_is_not_resumed(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(project), "--quiet"]) == 0
    assert "is finished" in refusal(capsys, "resume", project, "--run", stopped)
    assert tables(project, stopped)


def test_a_file_that_has_changed_is_named(project: Path, stopped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "files" / "database.fasta"
    database.write_text(database.read_text() + ">one more\nMKV\n")
    assert refusal(capsys, "resume", project) == (f"{database}: has changed since {stopped} began. Restore it, or do the search anew.")
    database.unlink()
    assert "does not exist" in refusal(capsys, "resume", project)
    assert Project.open(project).resumable() == {stopped}, "and it can still be restored"


def test_another_version_of_the_program_does_not_go_on(
    project: Path, stopped: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(resumption, "VERSION", "99.0")
    assert "and this is 99.0; do the search anew" in refusal(capsys, "resume", project)


def test_a_run_is_resumed_by_one_process_at_a_time(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    lock = FileLock(project / "project.lock")
    assert lock.acquire(f"run {stopped}")
    try:
        assert "is writing this project" in refusal(capsys, "resume", project)
    finally:
        lock.release()
    assert main(["resume", str(project), "--quiet"]) == 0


def test_a_resumed_run_that_is_stopped_again_goes_on_once_more(project: Path, stopped: str, tmp_path: Path) -> None:
    for title in ("Aligning and writing", "Reading", "Aligning and writing"):
        with pytest.raises(Cancelled):
            resume_run(project, stopped, progress=ProgressUntil(title))
        opened = Project.open(project)
        assert opened.runs()[-1].status == "cancelled"
        assert opened.resumable() == {stopped}
        assert [path.name for path in (project / "results" / stopped).iterdir()] == [PARTITIONS], "nothing half-written is left"
    assert main(["resume", str(project), "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    assert summary.run_id is not None
    assert tables(project, stopped) == tables(tmp_path / "other", summary.run_id)


def test_what_a_stranger_kept_is_neither_used_nor_removed(
    project: Path, stopped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "another user's"))
    assert "not sealed by this user on this machine" in refusal(capsys, "resume", project, "--run", stopped)
    assert main(["runs", str(project)]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"cannot be resumed here: {SEALED_ELSEWHERE}")
    assert main(["runs", str(project), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["can_be_resumed"], told["can_be_resumed_elsewhere"]) == (False, True)
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    assert Project.open(project).resumable_elsewhere() == frozenset()
    assert main(["resume", str(project), "--quiet"]) == 0


@pytest.mark.parametrize("change", ["cut", "damaged", "swapped", "empty"])
def test_spoilt_files_cost_time_and_never_a_result(project: Path, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    stopped, other = stop_a_search(project, tmp_path), stop_a_search(project, tmp_path, gap_open=12)
    path, theirs = (project / "results" / run / PARTITIONS for run in (stopped, other))
    content = path.read_bytes()
    is_lost = change in ("swapped", "empty")
    path.write_bytes({"cut": content[:-50], "damaged": content[:-50] + bytes(50), "swapped": theirs.read_bytes(), "empty": b""}[change])
    if is_lost:
        assert "cannot be resumed" in refusal(capsys, "resume", project, "--run", stopped)
        assert main(["resume", str(project), "--run", other, "--quiet"]) == 0
        return
    assert main(["resume", str(project), "--run", stopped, "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=project, device="cpu", threads=2)
    assert summary.run_id is not None and tables(project, stopped) == tables(project, summary.run_id)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_told(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [project, project / "results", project / "results" / stopped]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert str(project) in refusal(capsys, "resume", project, "--run", stopped)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_results_go_to_the_file_that_was_asked_for_where_its_folder_is_there(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    stop_a_search(project, tmp_path, out=folder / "hits.tsv")
    assert main(["resume", str(project), "--quiet"]) == 0
    assert (folder / "hits.tsv").read_text().count("\n") > 2
    stop_a_search(project, tmp_path, out=folder / "more.tsv")
    shutil.rmtree(folder)
    assert main(["resume", str(project), "--quiet"]) == 0
    assert not folder.exists()


def test_a_moved_project_goes_on_where_it_is(project: Path, stopped: str, tmp_path: Path) -> None:
    project.rename(tmp_path / "moved")
    assert main(["resume", str(tmp_path / "moved"), "--quiet"]) == 0
    assert tables(tmp_path / "moved", stopped) and not project.exists()


def test_a_search_without_a_project_says_that_it_cannot_be_resumed(tmp_path: Path) -> None:
    from proteoscope.engine.jobs.progress import Cancelled

    with pytest.raises(Cancelled) as error:
        run_search("align", inputs_of(tmp_path), out=tmp_path / "hits.tsv", device="cpu", progress=ProgressUntil("Aligning and writing"))
    assert error.value.__notes__ == ["a run without a project cannot be resumed"]


def test_a_stopped_command_says_how_to_go_on(project: Path, tmp_path: Path) -> None:
    """As a process, which is interrupted as by Ctrl-C when it has kept something."""
    files = inputs_of(tmp_path)
    program = (
        "import sys, threading, time, os, signal; from pathlib import Path; from tests.fuzz.keeping_command import keep_at_once, main\n"
        "keep_at_once()\n"
        "def stop():\n"
        "    while not list(Path('project').rglob('partitions.kept')): time.sleep(0.001)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=stop, daemon=True).start()\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    arguments = [
        "align",
        str(files["queries"][0]),
        str(files["database"][0]),
        "--out",
        "hits.tsv",
        "--project",
        "project",
        "--device",
        "cpu",
    ]
    found = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--quiet"], env={**os.environ, "PYTHONPATH": str(REPOSITORY)}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert found.returncode == 130, found
    assert found.stderr.startswith(
        "proteoscope: interrupted; finished results are untouched; to go on with align-0001: proteoscope resume "
    )
