"""Searches and pages that use a run with a forged record reject it in one sentence, and read no other file."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from tests.fuzz import source_runs

FOLLOWING = {
    "modified": ["modified", "--from-project", "{project}", "--out", "{folder}/modified"],
    "explain": ["explain", "{project}"],
    "quantify": ["quantify", "{project}"],
    "evidence": ["evidence", "{project}", "--structures", "{folder}/model.pdb"],
    "library": ["export", "{project}", "--format", "msp", "--out", "{folder}/library.msp"],
    "compare": ["compare", "{project}", "{project}", "--out", "{folder}/compared"],
    "report": ["report", "{project}", "--out", "{folder}/pages"],
    "convert": ["convert", "{spectra}", "--identified", "{project}", "--out", "{folder}/identified.mgf", "--quiet"],
}
"""Commands that use a run as their source."""


@pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.long)])
def test_searches_reject_source_runs_with_forged_records(identified_once: Path, every: int) -> None:
    assert source_runs.attack(identified_once, every) == []


@pytest.mark.parametrize("command", FOLLOWING)
@pytest.mark.parametrize("value", ["x", float("nan"), [["a"]]], ids=["text", "nan", "list"])
def test_command_that_uses_a_run_rejects_forged_parameters(
    identified_sample: Path, sample_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, value: object
) -> None:
    parameters = Project.open(identified_sample).runs()[0].parameters
    source_runs.forge(identified_sample, "parameters", json.dumps({**parameters, "fdr": value}))
    spectra = next(sample_data.glob("BSA1.mzML.gz"))
    arguments = [part.format(project=identified_sample, folder=tmp_path, spectra=spectra) for part in FOLLOWING[command]]
    (tmp_path / "model.pdb").write_text("ATOM\n")
    assert main([*arguments]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "the recorded parameters of identify-0001 are damaged: fdr" in message


def rename_input(project: Path, path: Path, sha256: str, size: int) -> None:
    with closing(sqlite3.connect(project / "project.sqlite")) as connection, connection:
        connection.execute("UPDATE inputs SET path = ?, sha256 = ?, size = ? WHERE kind = 'spectra'", (str(path), sha256, size))


def test_quantify_reads_no_file_listed_by_a_forged_run(identified_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = tmp_path / "secret.mgf"
    secret.write_text("BEGIN IONS\nPEPMASS=500\nRTINSECONDS=5\nCHARGE=2+\n100 1\nEND IONS\n")
    for sha256, size in (("", secret.stat().st_size), ("", 0), ("0" * 64, secret.stat().st_size)):
        shutil.copytree(identified_sample, tmp_path / "copy")
        rename_input(tmp_path / "copy", secret, sha256, size)
        assert main(["quantify", str(tmp_path / "copy"), "--device", "cpu", "--quiet"]) == 2
        shutil.rmtree(tmp_path / "copy")
        message = capsys.readouterr().err
        assert message.count("\n") == 1 and "secret.mgf: has changed since it was identified" in message


def test_quantify_opens_no_pipe_listed_by_a_forged_run(identified_sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "spectra.mzML"
    os.mkfifo(pipe)
    rename_input(identified_sample, pipe, "0" * 64, 0)
    assert main(["quantify", str(identified_sample), "--device", "cpu", "--quiet"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_files_of_run_stops_if_a_run_is_its_own_source(identified_sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check a project with two thousand runs; one is recorded as its own source."""
    from proteoscope.engine.quantification.identified import files_of_run

    record = Project.open(identified_sample).record("identify-0001")
    source_runs.forge_record(identified_sample, "identify-0001", json.dumps({**record, "source_run": "identify-0001"}))
    with closing(sqlite3.connect(identified_sample / "project.sqlite")) as connection, connection:
        connection.execute("DELETE FROM run_inputs")
        columns = [row[1] for row in connection.execute("PRAGMA table_info(runs)") if row[1] not in ("number", "id", "status")]
        names = ", ".join(columns)
        connection.execute(
            f"WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO runs (id, status, {names}) "
            f"SELECT printf('identify-%04d', i), 'done', {names} FROM runs, n WHERE number = 1"
        )
    project = Project.open(identified_sample)
    looked_at, read = list[str](), project.record
    monkeypatch.setattr(project, "record", lambda run: looked_at.append(run) or read(run))
    assert files_of_run(project, "identify-0001") == ()
    assert looked_at == ["identify-0001"]
