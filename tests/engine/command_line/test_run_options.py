"""Pipelines name their runs, and replace or skip existing ones; a failure leaves no incomplete project."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project, is_project
from tests.output_schema import check_output

QUERIES = str(resources.path("samples", "protein_queries.fasta"))
ALIGN = ("align", QUERIES, QUERIES, "--device", "cpu", "--threads", "2")
needs_signals = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def align(*options: str) -> int:
    return main([*ALIGN, "--out", "h.tsv", "--project", "p", *options])


def runs() -> list[tuple[str, str]]:
    return [(run.id, run.status) for run in Project.open("p").runs()]


def error_message(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error message, after checking that it is one line."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_run_name_determines_the_paths_of_results(folder: Path) -> None:
    assert align("--run-name", "sample_1", "--quiet") == 0
    assert runs() == [("sample_1", "done")]
    assert (folder / "p" / "results" / "sample_1" / "hits.parquet").is_file()


def test_existing_run_is_rejected_skipped_or_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert align("--run-name", "a", "--quiet") == 0
    first = (folder / "p" / "results" / "a" / "run.json").read_bytes()
    capsys.readouterr()

    assert align("--run-name", "a", "--quiet") == 2
    assert "holds a finished run 'a'. --overwrite replaces it, --skip-existing keeps it" in error_message(capsys)

    assert align("--run-name", "a", "--skip-existing", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    check_output("align", record)
    assert record == {"skipped": True, "run_id": "a", "folder": str(folder / "p"), "files": ["h.tsv"]}
    assert align("--run-name", "a", "--skip-existing") == 0
    assert capsys.readouterr().out == f"Nothing to do: run 'a' of {folder / 'p'} and h.tsv exist\n"
    assert (folder / "p" / "results" / "a" / "run.json").read_bytes() == first

    assert align("--run-name", "a", "--overwrite", "--quiet") == 0
    assert runs() == [("a", "done")] and (folder / "p" / "results" / "a" / "run.json").read_bytes() != first


def test_skip_existing_rejects_changed_parameters_and_inputs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert align("--run-name", "a", "--quiet") == 0
    capsys.readouterr()
    assert align("--run-name", "a", "--skip-existing", "--matrix", "BLOSUM45", "--quiet") == 2
    assert "finished run 'a', which differs in gap_extend, gap_open, matrix. --overwrite replaces it" in error_message(capsys)
    (folder / "other.fasta").write_text(">P1\nACDEFGHIKLMNPQRSTVWY\n")
    other = ["align", "other.fasta", *ALIGN[2:], "--out", "h.tsv", "--project", "p", "--run-name", "a", "--skip-existing", "--quiet"]
    assert main(other) == 2
    assert "which differs in the content of its input files" in error_message(capsys)


def test_skip_existing_recreates_a_missing_output_file(folder: Path) -> None:
    assert align("--run-name", "a", "--quiet") == 0
    expected = (folder / "h.tsv").read_bytes()
    (folder / "h.tsv").unlink()
    assert align("--run-name", "a", "--skip-existing", "--quiet") == 0
    assert (folder / "h.tsv").read_bytes() == expected and runs() == [("a", "done")]


def test_skip_existing_works_without_a_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "h.tsv").write_text("mine")
    assert main([*ALIGN, "--out", "h.tsv", "--skip-existing"]) == 0
    assert capsys.readouterr().out == "Nothing to do: h.tsv exists\n" and (folder / "h.tsv").read_text() == "mine"
    assert main([*ALIGN, "--out", "other.tsv", "--skip-existing", "--quiet"]) == 0
    assert (folder / "other.tsv").stat().st_size > 0


def test_skip_existing_recreates_output_from_standard_input(folder: Path) -> None:
    command = [sys.executable, "-m", "proteoscope.engine.command_line", "align", "-", QUERIES, "--device", "cpu"]
    command += ["--out", "h.tsv", "--project", "p", "--run-name", "a", "--skip-existing", "--quiet"]
    content = gzip.compress(Path(QUERIES).read_bytes())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run(command, input=content, check=True, env=environment)
    expected = (folder / "h.tsv").read_bytes()
    (folder / "h.tsv").unlink()
    subprocess.run(command, input=content, check=True, env=environment)
    assert (folder / "h.tsv").read_bytes() == expected != b""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--overwrite",), "--overwrite replaces a run by its name; give --run-name, too"),
        (("--skip-existing",), "--skip-existing finds the run of a project by its name; give --run-name, too"),
        (("--run-name", "a/b"), "'a/b' cannot name a run"),
        (("--run-name", "a", "--overwrite", "--skip-existing"), "not allowed with argument"),
        (("--if-busy", "no"), "invalid choice"),
    ],
)
def test_error_for_wrong_run_options_is_one_sentence(
    options: tuple[str, ...], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert align(*options) == 2
    assert sentence in error_message(capsys)
    assert not list(folder.iterdir())


def test_run_name_without_a_project_is_rejected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ALIGN, "--out", "h.tsv", "--run-name", "a", "--quiet"]) == 2
    assert "give the folder of a project, too" in error_message(capsys) and not list(folder.iterdir())


def test_failed_run_leaves_no_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.fasta").write_text(">P1\n123\n")
    assert main(["align", "bad.fasta", QUERIES, "--device", "cpu", "--out", "h.tsv", "--project", "p", "--quiet"]) == 2
    assert "bad.fasta" in error_message(capsys)
    assert [path.name for path in folder.iterdir()] == ["bad.fasta"]


HOLDER = """
    import sys
    from proteoscope.engine.project import Project
    with Project.create_or_open("p").run("align", {}, name="other"):
        print("holds", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def holder(folder: Path) -> subprocess.Popen[str]:
    """Start a process that writes to the project until its standard input is closed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None and process.stdout.readline() == "holds\n"
    return process


def test_search_fails_by_default_while_the_project_is_busy(holder: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert align("--run-name", "a", "--quiet") == 2
        assert "is writing this project" in error_message(capsys)
    finally:
        holder.communicate()
    assert is_project(Path("p")) and [run for run in runs() if run[0] == "a"] == []


@needs_signals
def test_search_waits_on_request_until_the_writer_is_killed(holder: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "proteoscope.engine.command_line", *ALIGN, "--out", "h.tsv", "--project", "p"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    waiting = subprocess.Popen([*command, "--run-name", "a", "--if-busy", "wait"], stderr=subprocess.PIPE, text=True, env=environment)
    assert waiting.stderr is not None
    line = next(line for line in waiting.stderr if line.startswith("Waiting: process"))
    assert f"process {holder.pid} on " in line and "(run other)" in line
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    waiting.communicate()
    assert waiting.returncode == 0
    assert runs() == [("other", "failed"), ("a", "done")]
