"""The record of a run names its command, date, source, libraries and machine, and the digests of its results."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.creation_time import EPOCH, creation_time
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.provenance import file_digests, machine, program_commit, source_commit
from tests.conftest import REPOSITORY

QUERIES = resources.path("samples", "protein_queries.fasta")
SECONDS = 1_234_567_890  # 2009-02-13T23:31:30Z


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Project with a sequence search of a fixed date."""
    folder = tmp_path_factory.mktemp("provenance")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(EPOCH, str(SECONDS))
        arguments = ["align", str(QUERIES), str(QUERIES), "--out", str(folder / "hits.tsv"), "--project", str(folder / "project")]
        assert main([*arguments, "--device", "cpu", "--quiet"]) == 0
    return folder


def test_run_record_has_its_provenance(project: Path) -> None:
    record = json.loads((project / "project" / "results" / "align-0001" / "run.json").read_text())
    name = f"…/{QUERIES.name}"
    expected = ["proteoscope", "align", name, name, "--out", "…/hits.tsv", "--project", "…/project", "--device", "cpu", "--quiet"]
    assert record["command"] == expected
    assert record["date"] == "2009-02-13T23:31:30+00:00"
    assert record["packages"]["numpy"] == np.__version__ and {"numba", "llvmlite", "pyarrow"} <= record["packages"].keys()
    assert record["machine"].keys() == {"system", "processor", "memory_bytes"}
    assert record["commit"] == source_commit(REPOSITORY)


def test_run_record_has_the_digests_of_all_results(project: Path) -> None:
    run = project / "project" / "results" / "align-0001"
    written = {path.name: path for path in run.iterdir() if path.name != "run.json"} | {"hits.tsv": project / "hits.tsv"}
    record = json.loads((project / "project" / "results" / "align-0001" / "run.json").read_text())
    assert record["digests"] == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in written.items()}


def test_machine_record_lists_gpus_only_if_they_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "gpus" not in machine(with_gpus=False)
    assert isinstance(machine(with_gpus=True)["gpus"], list)


def test_file_digests_skips_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    assert file_digests(tmp_path, ["a", "b"]) == {"a": file_digest(tmp_path / "a")}


def test_source_commit_equals_git_and_marks_changed_files(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.run(["git", *identity, "-C", str(tmp_path), *arguments], capture_output=True, text=True, check=True).stdout

    git("init", "--quiet")
    assert source_commit(tmp_path) == "", "no commit yet"
    (tmp_path / "a.py").write_text("1\n")
    git("add", ".")
    git("commit", "--quiet", "-m", "a")
    commit = git("rev-parse", "HEAD").strip()
    (tmp_path / "untracked").write_text("")
    assert source_commit(tmp_path) == commit
    (tmp_path / "a.py").write_text("2\n")
    assert source_commit(tmp_path) == f"{commit}-modified"


def test_source_commit_is_unknown_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    assert source_commit(tmp_path) == "", "damaged"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_commit(tmp_path) == ""


def test_program_commit_is_read_from_git_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = program_commit()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("Git was started again"))
    assert program_commit() == commit


def test_creation_time_is_now_unless_source_date_epoch_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EPOCH, raising=False)
    before = datetime.now(UTC)
    assert before <= creation_time() <= datetime.now(UTC)
    monkeypatch.setenv(EPOCH, str(SECONDS))
    assert creation_time() == datetime(2009, 2, 13, 23, 31, 30, tzinfo=UTC)


@pytest.mark.parametrize("value", ["-1", "1.5", "now", "٣", "9" * 13, str(253_402_300_800), " 1"])
def test_invalid_source_date_epoch_is_rejected_before_a_search(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(EPOCH, value)
    with pytest.raises(ParameterError, match="expected seconds since 1970"):
        creation_time()
    assert main(["align", str(QUERIES), str(QUERIES), "--out", str(tmp_path / "hits.tsv")]) == 2
    error = capsys.readouterr().err
    assert EPOCH in error and error.count("\n") == 1 and not list(tmp_path.iterdir())


def test_run_record_has_the_digests_of_the_published_tables(identified_once: Path) -> None:
    record = json.loads((identified_once / "run.json").read_text())
    tables = {f"exports/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in (identified_once / "exports").iterdir()}
    assert len(tables) == 3 and tables.items() <= record["digests"].items()


def test_dates_of_exports_follow_source_date_epoch(identified_once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EPOCH, str(SECONDS))
    for name in ("a.mzid", "a.pep.xml", "a.blib"):
        kind = {"a.pep.xml": "pepxml"}.get(name, name[2:])
        assert main(["export", str(identified_once), "--format", kind, "--out", str(tmp_path / name), "--quiet"]) == 0
    assert ElementTree.parse(tmp_path / "a.mzid").getroot().get("creationDate") == "2009-02-13T23:31:30Z"
    assert ElementTree.parse(tmp_path / "a.pep.xml").getroot().get("date") == "2009-02-13T23:31:30"
    with closing(sqlite3.connect(tmp_path / "a.blib")) as connection:
        assert connection.execute("SELECT createTime FROM LibInfo").fetchone() == ("Fri Feb 13 23:31:30 2009",)
