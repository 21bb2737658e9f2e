"""A listed search entry has a sub-command, parameters, record, tables and exports without further code for any of them."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from proteoscope.engine import searches
from proteoscope.engine.command_line.main import main
from proteoscope.engine.project import Project
from tests.toy_search import COMPOSITION


@pytest.fixture(autouse=True)
def listed(monkeypatch):
    monkeypatch.setattr(searches, "SEARCHES", (*searches.SEARCHES, COMPOSITION))


@pytest.fixture
def proteins(tmp_path):
    path = tmp_path / "proteins.fasta"
    path.write_text(">one\nAAAAK\n>two\nAR\n>three\nKKK\n")
    return path


def test_toy_search_subcommand_writes_table_record_and_summary(proteins, tmp_path, capsys):
    folder = tmp_path / "project"
    arguments = ["composition", str(proteins), "--out", str(folder), "--set", "order=count", "--set", "minimum_length=3", "--is-thorough"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[:2] == ["8 residues", "2 proteins"]
    project = Project.open(folder)
    run = project.runs("composition")[0]
    rows = pq.read_table(project.table("composition")).to_pylist()
    assert [(row["residue"], row["count"]) for row in rows] == [("A", 4), ("K", 4)]
    record = json.loads((folder / "results" / run.id / "run.json").read_text())
    assert (record["kind"], record["run"], record["counts"]) == ("composition", run.id, {"proteins": 2, "residues": 8})
    assert record["parameters"] == {"minimum_length": 3, "order": "count"}
    assert record["messages"][-2:] == ["Too short: 1", "Looked at everything twice"]
    assert run.message == "8 residues" and run.device == "cpu"


def test_toy_search_accepts_json_quiet_and_preset_options(proteins, tmp_path, capsys):
    preset = tmp_path / "mine.toml"
    preset.write_text("minimum_length = 5\n")
    assert main(["composition", str(proteins), "--out", str(tmp_path / "p"), "--preset", str(preset), "--json", "--threads", "1"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["n_residues"], summary["n_proteins"], summary["run_id"]) == (5, 1, "composition-0001")
    assert main(["composition", str(proteins), "--out", str(tmp_path / "p"), "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


def test_parameters_presets_and_export_support_the_toy_search(proteins, tmp_path, capsys):
    assert main(["parameters", "composition"]) == 0
    assert "minimum_length = 1 residues [1 to 1000]" in capsys.readouterr().out
    assert main(["presets", "composition"]) == 0
    assert main(["composition", str(proteins), "--out", str(tmp_path / "p"), "--quiet"]) == 0
    out = tmp_path / "composition.json"
    assert main(["export", str(tmp_path / "p"), "--format", "json", "--out", str(out)]) == 0
    assert {row["residue"]: row["count"] for row in json.loads(out.read_text())} == {"A": 5, "K": 4, "R": 1}
    assert main(["export", str(tmp_path / "p"), "--format", "folder", "--out", str(tmp_path / "parts")]) == 0
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["A.json", "K.json", "R.json"]
    capsys.readouterr()
    assert main(["export", str(tmp_path / "p"), "--format", "mzid", "--out", str(tmp_path / "x")]) == 2
    assert "is a composition, which has no format 'mzid'; expected one of json, folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["missing.fasta"], "does not exist"),
        (["."], "is a folder"),
        (["proteins.fasta", "proteins.fasta"], "is given twice"),
        (["proteins.fasta", "--set", "minimum_length=0"], "minimum_length = '0'"),
        (["proteins.fasta", "--set", "length=1"], "did you mean minimum_length?"),
        (["proteins.fasta", "--device", "gpu"], "device = 'gpu'"),
    ],
)
def test_invalid_options_of_toy_search_are_reported_in_one_line(arguments, reason, proteins, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["composition", *arguments, "--out", "project", "--quiet"]) == 2
    error = capsys.readouterr().err
    assert reason in error and error.count("\n") == 1
    assert not (tmp_path / "project").exists()


def test_search_entry_adds_a_further_command(proteins, capsys):
    assert main(["residues", str(proteins)]) == 0
    assert capsys.readouterr().out == "AKR\n"
    assert main(["residues", "missing.fasta"]) == 2
    assert "missing.fasta" in capsys.readouterr().err
