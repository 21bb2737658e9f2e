"""Tests of the synthetic experiment: truth of spectra, ions and fold changes, and independence of runs."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.experiment_runs import Experiment
from proteoscope.engine.formats.ms1_spectra import read_ms1_spectra
from tests.engine.quantification.synthetic_runs import Planted

N_RUNS, N_SPECTRA = 6, 60
RESIDUES = list("ADEFGHILNPQSTVWYK")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    rng = np.random.default_rng(5)
    proteins = {
        name: {f"{name}_{i}": "M" + "".join(rng.choice(RESIDUES, 400)) + "K" for i in range(n)} for name, n in (("one", 20), ("two", 5))
    }
    return Experiment(proteins, {"one": 20, "two": 5}, N_RUNS, N_SPECTRA, 3)


@pytest.fixture(scope="module")
def written(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiment")
    experiment.write(folder)
    for number in range(N_RUNS):
        experiment.write_run(number, folder)
    return folder


def truth(folder: Path, number: int) -> list[dict]:
    return pq.read_table(folder / "truth" / f"run_{number:05d}.parquet").to_pylist()


def test_simulated_run_has_the_same_bytes_if_written_alone(experiment, written, tmp_path):
    Experiment(experiment.proteins, experiment.n_planted, N_RUNS, N_SPECTRA, 3).write_run(4, tmp_path)
    for name in ("runs/run_00004.mzML", "truth/run_00004.parquet"):
        assert (tmp_path / name).read_bytes() == (written / name).read_bytes()
    Experiment(experiment.proteins, experiment.n_planted, N_RUNS, N_SPECTRA, 4).write_run(4, tmp_path)
    assert (tmp_path / name).read_bytes() != (written / name).read_bytes()


def test_spectra_of_random_peptides_differ_between_runs(written):
    random = [{row["peptide"] for row in truth(written, number) if not row["protein"]} for number in range(N_RUNS)]
    assert all(len(some) >= 20 for some in random)
    assert not any(some & other for i, some in enumerate(random) for other in random[:i])
    text = (written / "proteins.fasta").read_text()
    assert not any(peptide in text for some in random for peptide in some)


def test_half_of_the_simulated_spectra_are_of_database_peptides(written):
    with_spectrum = [row for number in range(N_RUNS) for row in truth(written, number) if row["scan"]]
    assert len(with_spectrum) == pytest.approx(N_RUNS * N_SPECTRA, rel=0.2)
    assert np.mean([bool(row["protein"]) for row in with_spectrum]) == pytest.approx(0.5, abs=0.02)


def test_ions_of_the_second_proteome_are_in_mixed_runs_only(experiment, written):
    shares = {}
    for number, run in enumerate(experiment.runs):
        areas = [row["area"] for row in truth(written, number) if row["proteome"] == "two"]
        shares.setdefault(run.condition, []).append(np.mean(np.array(areas) > 0))
    assert all(share == 0 for name in ("control", "treated") for share in shares[name])
    assert all(share > 0.7 for share in shares["mixed"])


def test_measured_area_changes_equal_the_simulated_changes(experiment, written):
    logs: dict[tuple[str, str], list[float]] = {}
    for number, run in enumerate(experiment.runs):
        rows = [row for row in truth(written, number) if row["area"] > 0 and row["proteome"] == "one"]
        unchanged = np.median([np.log2(row["area"]) for row in rows if experiment.fold_changes[row["protein"]] == 0])
        for row in rows:
            logs.setdefault((row["protein"], run.condition), []).append(np.log2(row["area"]) - unchanged)
    changes = experiment.fold_changes
    both = [name for name in changes if (name, "control") in logs and (name, "treated") in logs]
    measured = np.array([np.mean(logs[name, "treated"]) - np.mean(logs[name, "control"]) for name in both])
    planted = np.array([changes[name] for name in both])
    assert len(set(planted.tolist())) >= 3
    assert np.corrcoef(measured, planted)[0, 1] > 0.8


def test_ms1_spectra_show_the_ions_at_their_times(written):
    spectra = read_ms1_spectra(written / "runs" / "run_00000.mzML")
    rows = sorted((row for row in truth(written, 0) if row["area"] > 0), key=lambda row: -row["area"])[:30]
    missing = [row for row in truth(written, 0) if row["area"] == 0]
    assert missing

    def signal(row: dict) -> float:
        at = int(np.abs(spectra.retention_time - row["apex"]).argmin())
        some = slice(spectra.offsets[at], spectra.offsets[at + 1])
        near = np.abs(spectra.mz[some] / Planted(row["peptide"], row["charge"], 0.0, 0.0).mz - 1) < 10e-6
        return float(spectra.intensity[some][near].sum())

    assert min(signal(row) for row in rows) > 10_000
    assert all(spectra.retention_time[i] < spectra.retention_time[i + 1] for i, _ in pairwise(range(len(spectra.retention_time))))
