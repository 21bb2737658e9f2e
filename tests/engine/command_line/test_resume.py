"""``proteoscope resume`` and ``runs``: a run continues under its id with the same results, or an error gives the reason."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from proteoscope.engine import resumption
from proteoscope.engine.command_line.main import main
from proteoscope.engine.jobs.progress import Cancelled
from proteoscope.engine.project import Project
from proteoscope.engine.project.checkpoint_store import list_checkpoints
from proteoscope.engine.project.locks import FileLock
from proteoscope.engine.resumption import NO_CHECKPOINT
from proteoscope.engine.searches import SEARCHES, resume_run, run_search
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


def test_resumed_run_has_the_same_tables_as_an_uninterrupted_run(project: Path, stopped: str, tmp_path: Path) -> None:
    assert not list((project / "results").iterdir()) and len(list_checkpoints()) == 1
    assert main(["resume", str(project), "--threads", "1", "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    assert summary.run_id is not None
    assert tables(project, stopped) == tables(tmp_path / "other", summary.run_id)
    opened = Project.open(project)
    assert [(run.id, run.status) for run in opened.runs()] == [(stopped, "done")]
    assert f"{stopped} is resumed: its checkpoint contains 1 finished partition" in [line.text for line in opened.log(stopped)]
    assert not list_checkpoints()


def test_resumed_run_replaces_the_finished_run_of_its_name(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_search("align", inputs_of(tmp_path), project=project, device="cpu", threads=2, run_name="a")
    before = tables(project, "a")
    stopped = stop_a_search(project, tmp_path, run_name="a", overwrite=True)
    assert [(run.id, run.status) for run in Project.open(project).runs()] == [("a", "done"), (stopped, "cancelled")]
    assert tables(project, "a") == before
    capsys.readouterr()
    assert main(["runs", str(project)]) == 0
    assert "can be resumed  Replacement of a; run 'a' is not replaced: stopped by the user" in capsys.readouterr().out
    assert main(["resume", str(project), "--quiet"]) == 0
    opened = Project.open(project)
    assert [(run.id, run.status) for run in opened.runs()] == [("a", "done")] and opened.verify() == []
    assert tables(project, "a") == before and not list_checkpoints()


def test_runs_command_lists_runs_with_status(project: Path, stopped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_search("align", inputs_of(tmp_path), project=project, device="cpu", threads=2)
    capsys.readouterr()
    assert main(["runs", str(project)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(stopped) and "can be resumed" in first and "stopped by the user" in first
    assert "done" in second
    assert main(["runs", str(project), "--json"]) == 0
    assert [(run["id"], run["can_be_resumed"]) for run in json.loads(capsys.readouterr().out)] == [(stopped, True), ("align-0002", False)]


def test_runs_delete_removes_results_and_checkpoint(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(project), "--delete", stopped]) == 0
    assert Project.open(project).runs() == [] and not list((project / "results").iterdir()) and not list_checkpoints()
    assert "has no run that can be resumed" in refusal(capsys, "resume", project)
    assert "has no run 'align-0001'" in refusal(capsys, "resume", project, "--run", stopped)
    assert "holds no run 'align-0001'" in refusal(capsys, "runs", project, "--delete", stopped)


def test_resume_rejects_a_finished_run(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(project), "--quiet"]) == 0
    assert "is finished" in refusal(capsys, "resume", project, "--run", stopped)
    assert tables(project, stopped)


def test_resume_error_names_changed_input_file(project: Path, stopped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = tmp_path / "files" / "database.fasta"
    database.write_text(database.read_text() + ">one more\nMKV\n")
    assert refusal(capsys, "resume", project) == (
        f"{database}: has changed since {stopped} was started. Restore the file, or run the search again."
    )
    database.unlink()
    assert "does not exist" in refusal(capsys, "resume", project)
    assert Project.open(project).resumable() == {stopped}, "and it can still be restored"


def test_resume_rejects_a_run_of_another_version(
    project: Path, stopped: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(resumption, "VERSION", "99.0")
    assert "but this is 99.0; run the search again" in refusal(capsys, "resume", project)


def test_resume_is_rejected_while_the_project_is_locked(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    lock = FileLock(project / "project.lock")
    assert lock.acquire(f"run {stopped}")
    try:
        assert "is writing this project" in refusal(capsys, "resume", project)
    finally:
        lock.release()
    assert main(["resume", str(project), "--quiet"]) == 0


def test_resumed_run_can_be_stopped_and_resumed_again(project: Path, stopped: str, tmp_path: Path) -> None:
    for title in ("Aligning and writing", "Reading", "Aligning and writing"):
        with pytest.raises(Cancelled):
            resume_run(project, stopped, progress=ProgressUntil(title))
        opened = Project.open(project)
        assert opened.runs()[-1].status == "cancelled"
        assert opened.resumable() == {stopped}
        assert not list((project / "results").iterdir()), "nothing half-written is left"
    assert main(["resume", str(project), "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    assert summary.run_id is not None
    assert tables(project, stopped) == tables(tmp_path / "other", summary.run_id)


def test_resume_rejects_a_run_without_checkpoint(
    project: Path, stopped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "another user's"))
    expected = f"{project}: run '{stopped}' cannot be resumed: {NO_CHECKPOINT}. Run it again."
    assert refusal(capsys, "resume", project, "--run", stopped) == expected
    assert main(["runs", str(project)]) == 0
    assert capsys.readouterr().out.rstrip().endswith(f"stopped by the user; it cannot be resumed, since {NO_CHECKPOINT}: run it again")
    assert main(["runs", str(project), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["can_be_resumed"] is False
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    assert main(["resume", str(project), "--quiet"]) == 0


def test_cache_command_lists_and_clears_checkpoints(
    project: Path, stopped: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["cache", "--json"]) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out)["kept"] if row["kind"] == "checkpoints"]
    assert row["made_from"] == f"{stopped} of {os.path.realpath(project)}" and row["bytes"] == Path(row["path"]).stat().st_size
    assert main(["cache", "--clear", "sequences"]) == 0 and list_checkpoints()
    capsys.readouterr()
    assert main(["cache", "--clear", "checkpoints"]) == 0 and not list_checkpoints()
    assert capsys.readouterr().out.startswith("1 checkpoint, 0.")
    stop_a_search(project, tmp_path)
    assert main(["cache", "--clear"]) == 0 and not list_checkpoints()


def forge(project: Path, run: str) -> None:
    """Change the record of a run in its project."""
    with closing(sqlite3.connect(project / "project.sqlite")) as connection:
        parameters = json.loads(connection.execute("SELECT parameters FROM runs WHERE id = ?", (run,)).fetchone()[0])
        forged = json.dumps({**parameters, "gap_open": 78})
        connection.execute("UPDATE runs SET parameters = ?, version = '66.6', device = 'forged' WHERE id = ?", (forged, run))
        connection.execute("UPDATE inputs SET path = '/forged', sha256 = ?, size = 1", ("00" * 32,))
        connection.execute("INSERT INTO inputs (path, size, sha256, kind) VALUES ('/more', 1, 'ff', 'queries')")
        connection.execute("INSERT INTO run_inputs SELECT ?, 7, id FROM inputs WHERE path = '/more'", (run,))
        connection.commit()


def test_resume_records_actual_inputs_despite_forged_project(project: Path, stopped: str, tmp_path: Path) -> None:
    forge(project, stopped)
    assert main(["resume", str(project), "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    assert summary.run_id is not None
    resumed, other = Project.open(project), Project.open(tmp_path / "other")
    assert [(run.parameters, run.version, run.kind) for run in resumed.runs()] == [
        (run.parameters, run.version, run.kind) for run in other.runs()
    ]
    assert resumed.inputs(stopped) == other.inputs(summary.run_id)
    assert tables(project, stopped) == tables(tmp_path / "other", summary.run_id)
    with closing(sqlite3.connect(project / "project.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM inputs").fetchone() == (2,), "what no run has read is not recorded"


def claim(project: Path, theirs: Path) -> None:
    """Make an untrusted project of a stopped run claim the id of another project."""
    with closing(sqlite3.connect(project / "project.sqlite")) as connection:
        identity = connection.execute("SELECT id FROM identity").fetchone()
    with closing(sqlite3.connect(theirs / "project.sqlite")) as connection:
        connection.execute("UPDATE identity SET id = ?", identity)
        connection.commit()


def test_untrusted_project_cannot_resume_run_of_another_project(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out" / "hits.tsv"
    out.parent.mkdir()
    stopped = stop_a_search(project, tmp_path, out=out)
    theirs = tmp_path / "theirs"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "their cache"))
        assert stop_a_search(theirs, tmp_path) == stopped
    assert "cannot be resumed" in refusal(capsys, "resume", theirs, "--run", stopped)
    claim(project, theirs)
    assert f"its checkpoint belongs to the project {os.path.realpath(project)}" in refusal(capsys, "resume", theirs, "--run", stopped)
    assert "has no run that can be resumed" in refusal(capsys, "resume", theirs)
    assert main(["runs", str(theirs), "--delete", stopped]) == 0, "which deletes nothing of the other project"
    assert main(["resume", str(project), "--quiet"]) == 0 and out.exists()


def test_resume_of_moved_project_writes_no_file_outside_it(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out" / "hits.tsv"
    scores = out.with_name("scores.npy")
    out.parent.mkdir()
    stop_a_search(project, tmp_path, out=out, options={"all_scores": scores})
    out.write_text("precious")
    scores.write_text("precious")
    theirs = tmp_path / "theirs"
    shutil.copytree(project, theirs)
    shutil.rmtree(project)
    assert main(["resume", str(theirs)]) == 0
    assert out.read_text() == scores.read_text() == "precious"
    expected = f"{out}, {scores} are not written, since the project has been moved; proteoscope export writes the results"
    assert expected in capsys.readouterr().err


def test_search_options_that_name_outputs_have_is_output_set() -> None:
    marked = {(search.kind, option.name) for search in SEARCHES for option in search.options if option.is_output}
    assert marked == {
        ("align", "all_scores"),
        ("cluster", "consensus"),
        ("structures", "superpose"),
        ("structures", "complexes"),
        ("structures", "clusters"),
        ("evidence", "report"),
        ("quantify", "report"),
    }


def test_checkpoint_left_by_a_finished_run_is_removed(project: Path, stopped: str, tmp_path: Path) -> None:
    (checkpoint,) = list_checkpoints()
    content = checkpoint.path.read_bytes()
    assert main(["resume", str(project), "--quiet"]) == 0
    checkpoint.path.write_bytes(content)  # as after a kill between the end of the run and the removal of the checkpoint
    shutil.copytree(project, tmp_path / "copy")
    Project.open(tmp_path / "copy")
    assert list_checkpoints()
    Project.open(project)
    assert not list_checkpoints()


def test_resume_rejects_a_run_that_is_still_running(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    lock = FileLock(project / "project.lock")
    assert lock.acquire(f"run {stopped}")
    try:
        with closing(sqlite3.connect(project / "project.sqlite")) as connection:
            connection.execute("UPDATE runs SET status = 'running'")
            connection.commit()
        for arguments in ((), ("--run", stopped)):
            refused = refusal(capsys, "resume", project, *arguments)
            assert f"run '{stopped}' is running in another process. Wait until it has ended." in refused
    finally:
        lock.release()


def test_search_warns_once_when_cache_is_not_writable(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "file"))
    summary = run_search("align", inputs_of(tmp_path), project=project, device="cpu", threads=2)
    assert summary.run_id is not None
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))
    other = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    assert other.run_id is not None and tables(project, summary.run_id) == tables(tmp_path / "other", other.run_id)
    warnings = [line.text for line in Project.open(project).log(summary.run_id) if "checkpoint" in line.text]
    assert len(warnings) == 1 and str(tmp_path / "file") in warnings[0]


@pytest.mark.parametrize("change", ["cut", "damaged", "swapped", "empty"])
def test_resume_recovers_from_or_rejects_damaged_checkpoint(
    project: Path, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped, other = stop_a_search(project, tmp_path), stop_a_search(project, tmp_path, gap_open=12)
    path, theirs = (Project.open(project).checkpoint_key(run).path for run in (stopped, other))
    content = path.read_bytes()
    if change == "damaged":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE partitions SET payload = zeroblob(length(payload))")
            connection.commit()
    else:
        path.write_bytes({"cut": content[:-50], "swapped": theirs.read_bytes(), "empty": b""}[change])
    if change in ("swapped", "empty"):
        assert "cannot be resumed" in refusal(capsys, "resume", project, "--run", stopped)
        assert main(["resume", str(project), "--run", other, "--quiet"]) == 0
        return
    assert main(["resume", str(project), "--run", stopped, "--quiet"]) == 0
    summary = run_search("align", inputs_of(tmp_path), project=project, device="cpu", threads=2)
    assert summary.run_id is not None and tables(project, stopped) == tables(project, summary.run_id)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_resume_reports_read_only_folder(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [project, project / "results"]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert str(project) in refusal(capsys, "resume", project, "--run", stopped)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_resume_writes_output_file_only_if_its_folder_exists(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    stop_a_search(project, tmp_path, out=folder / "hits.tsv")
    assert main(["resume", str(project), "--quiet"]) == 0
    assert (folder / "hits.tsv").read_text().count("\n") > 2
    stop_a_search(project, tmp_path, out=folder / "more.tsv")
    shutil.rmtree(folder)
    assert main(["resume", str(project), "--quiet"]) == 0
    assert not folder.exists()


def test_resume_continues_a_run_of_a_moved_project(project: Path, stopped: str, tmp_path: Path) -> None:
    project.rename(tmp_path / "moved")
    assert main(["resume", str(tmp_path / "moved"), "--quiet"]) == 0
    assert tables(tmp_path / "moved", stopped) and not project.exists()


def test_search_without_project_cannot_be_resumed(tmp_path: Path) -> None:
    from proteoscope.engine.jobs.progress import Cancelled

    with pytest.raises(Cancelled) as error:
        run_search("align", inputs_of(tmp_path), out=tmp_path / "hits.tsv", device="cpu", progress=ProgressUntil("Aligning and writing"))
    assert error.value.__notes__ == ["a run without a project cannot be resumed"]


def test_stopped_search_prints_the_resume_command(project: Path, tmp_path: Path) -> None:
    """Run the search in a separate process, and interrupt it as with Ctrl-C once it has a checkpoint."""
    files = inputs_of(tmp_path)
    program = (
        "import sys, threading, time, os, signal; from pathlib import Path; from tests.fuzz.keeping_command import keep_at_once, main\n"
        "keep_at_once()\n"
        "def stop():\n"
        "    from proteoscope.engine.project.checkpoint_store import list_checkpoints\n"
        "    while not any(checkpoint.path.stat().st_size for checkpoint in list_checkpoints()): time.sleep(0.001)\n"
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
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--quiet"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130, done
    assert done.stderr.startswith(
        "proteoscope: interrupted; finished results are untouched; to resume run 'align-0001': proteoscope resume "
    )


def started(program: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start a process that runs Python statements, which may patch the program, and then a command."""
    text = f"import os, signal, sys, time; from pathlib import Path; from tests.fuzz.keeping_command import main\n{program}\n"
    command = [sys.executable, "-c", f"{text}sys.exit(main(sys.argv[1:]))", *map(str, arguments)]
    return subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.name != "posix", reason="processes are killed differently there")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_run_killed_while_removing_checkpoint_is_complete(project: Path, stopped: str, tmp_path: Path, moment: str) -> None:
    remove = {"before": "kill(); unlink(path, **options)", "after": "unlink(path, **options); kill()"}[moment]
    program = (
        "def kill(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "unlink = Path.unlink\n"
        "def patched(path, **options):\n"
        "    if path.parent.name != 'checkpoints': return unlink(path, **options)\n"
        f"    {remove}\n"
        "Path.unlink = patched"
    )
    with started(program, "resume", project, "--quiet") as process:
        process.communicate()
    assert process.returncode == -9 and len(list_checkpoints()) == (moment == "before")
    summary = run_search("align", inputs_of(tmp_path), project=tmp_path / "other", device="cpu", threads=2)
    opened = Project.open(project)
    assert [run.status for run in opened.runs()] == ["done"] and opened.verify() == []
    assert summary.run_id is not None and tables(project, stopped) == tables(tmp_path / "other", summary.run_id)
    assert not list((tmp_path / "cache" / "checkpoints").iterdir()), "what was left is swept"


@pytest.mark.skipif(os.name != "posix", reason="signals differ there")
def test_resume_rejects_a_run_that_another_process_resumed(project: Path, stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = (
        "from proteoscope.engine.project.checkpoint_file import CheckpointFile\n"
        "rows = CheckpointFile.rows\n"
        "def slow(*arguments):\n"
        "    print('reads', flush=True); sys.stdin.readline()\n"
        "    return rows(*arguments)\n"
        "CheckpointFile.rows = slow"
    )
    with started(program, "resume", project) as first:
        assert first.stdout is not None and first.stdout.readline() == "reads\n"
        for arguments in ((), ("--run", stopped)):
            assert f"run '{stopped}' is running in another process" in refusal(capsys, "resume", project, *arguments)
        first.communicate("go\n")
    assert first.returncode == 0 and tables(project, stopped)
