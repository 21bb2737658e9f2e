"""Estimates of experiments: the sum over the runs that are not finished, with the memory of one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import proteoscope
from proteoscope import resources
from proteoscope.engine.command_line.main import main
from proteoscope.engine.estimates import Estimate

PROTEINS = resources.path("samples", "albumin_proteins.fasta.gz")
SEARCH: dict[str, Any] = {"preset": "low-resolution", "device": "cpu", "threads": 2}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three runs of the same size, and a smaller one."""
    run = resources.path("samples", "BSA1.mzML.gz")
    for number in range(3):
        shutil.copy(run, tmp_path / f"run_{number}.mzML.gz")
        with (tmp_path / f"run_{number}.mzML.gz").open("ab") as file:
            file.write(b"\0" * number)  # so that no file is a copy of another
    shutil.copy(resources.path("samples", "BSA2.mzML.gz"), tmp_path / "other.mzML.gz")
    return sorted(tmp_path.glob("*.mzML.gz"))


def without_start(estimate: Estimate) -> float:
    return estimate.seconds - estimate.steps["start"]


def test_experiment_estimate_is_the_sum_over_its_runs(files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTEOSCOPE_CACHE", str(tmp_path / "cache"))  # no earlier runs that correct estimates
    experiment = proteoscope.experiment(tmp_path / "x", files)
    whole = proteoscope.estimate(experiment.run, database=PROTEINS, **SEARCH)
    alone = [proteoscope.estimate(proteoscope.identify, file, PROTEINS, **SEARCH) for file in files]
    assert whole.counts["runs"] == 4
    # Only the first run may have to build the index.
    at_most = sum(without_start(estimate) for estimate in alone)
    at_least = at_most - sum(estimate.steps["index"] for estimate in alone[1:])
    assert at_least * 0.99 <= without_start(whole) <= at_most * 1.01
    assert whole.steps["start"] == pytest.approx(alone[0].steps["start"], rel=0.01)
    assert whole.counts["spectra"] == pytest.approx(sum(estimate.counts["spectra"] for estimate in alone), rel=0.05)
    assert whole.counts["residues"] == alone[0].counts["residues"]
    assert whole.memory_bytes == pytest.approx(max(estimate.memory_bytes for estimate in alone))
    assert whole.disk_bytes is not None and whole.disk_bytes > 0


def test_experiment_estimate_excludes_finished_runs(files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = proteoscope.experiment(tmp_path / "x", files[:1])
    outcomes = experiment.run(database=PROTEINS, advice="none", **SEARCH)
    assert [(outcome.run, outcome.status) for outcome in outcomes] == [("other", "done")]
    with pytest.raises(proteoscope.ParameterError, match="no run of the experiment is left"):
        proteoscope.estimate(experiment.run, database=PROTEINS, **SEARCH)
    assert experiment.add(files[1:]) == 3
    files[3].unlink()
    command = ["estimate", "experiment", "run", str(tmp_path / "x"), "--database", str(PROTEINS), "--preset", "low-resolution"]
    capsys.readouterr()
    assert main([*command, "--device", "cpu", "--json"]) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert estimate["counts"]["runs"] == 2
    assert "1 missing file left out, such as run_2.mzML.gz" in estimate["notes"]
    results = sum(path.stat().st_size for path in (tmp_path / "x" / "results" / "other").iterdir())
    share = results / files[0].stat().st_size
    assert estimate["disk_bytes"] == pytest.approx(share * sum(file.stat().st_size for file in files[1:3]), rel=0.06)
    assert main(command) == 0
    assert "disk     0.00 GB for the results" in capsys.readouterr().out


def test_experiment_created_in_python_equals_command_line(files: list[Path], tmp_path: Path) -> None:
    table = tmp_path / "runs.tsv"
    table.write_text("file\tcondition\n" + "".join(f"{file.name}\tc{number}\n" for number, file in enumerate(files[:2])))
    experiment = proteoscope.experiment(tmp_path / "x", table)
    assert [(row.file, row.condition) for row in experiment.rows] == [(str(files[0]), "c0"), (str(files[1]), "c1")]
    assert main(["experiment", "create", str(tmp_path / "y"), "--runs", str(table), "--quiet"]) == 0
    assert (tmp_path / "x" / "experiment.tsv").read_bytes() == (tmp_path / "y" / "experiment.tsv").read_bytes()
    experiment.add(files[2])
    experiment.remove("run_1")
    assert len(experiment) == 2 and experiment.status == {"other": "not searched", "run_0": "not searched"}
    assert experiment.results == {}
    for wrong in ({"search": "cluster"}, {"preset": "low-resolution", "parameters": proteoscope.IdentificationParameters()}):
        with pytest.raises(proteoscope.ParameterError):
            experiment.run(database=PROTEINS, **wrong)
    with pytest.raises(proteoscope.ParameterError):
        experiment.run("library", database=PROTEINS)
    with pytest.raises(proteoscope.InputError, match="already has an experiment"):
        proteoscope.experiment(tmp_path / "x", files[:1])
    with pytest.raises(proteoscope.InputError):
        proteoscope.experiment(tmp_path / "none")
    with pytest.raises(proteoscope.InputError, match="does not exist"):
        proteoscope.experiment(tmp_path / "new", [tmp_path / "missing.mzML"])
    assert not (tmp_path / "new").exists()
