"""Ions at another time in one file: planted retention time outliers, and a peptide masked by a more intense ion in one run."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.quantification import retention_times
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project


def has_deviating_time(times: np.ndarray, widths: np.ndarray, near: np.ndarray) -> np.ndarray:
    ion, file = np.nonzero(~np.isnan(times))
    alignments = retention_times.aligned(ion, file, times[ion, file], *times.shape).of_file
    return retention_times.has_deviating_time(times, widths, near, alignments)


def times_of(n_files: int, seed: int, n: int = 300):
    """Return times of ions in smoothly shifted runs that scatter by half a second."""
    rng = np.random.default_rng(seed)
    reference = np.sort(rng.uniform(100, 3000, n))
    times = np.stack(
        [reference + 20 * file + 8 * np.sin(reference / 400 + file) + rng.normal(0, 0.5, n) for file in range(n_files)], axis=1
    )
    times[rng.random(times.shape) < 0.1] = np.nan
    return rng, times


@pytest.mark.parametrize("n_files", [2, 3, 5])
def test_retention_time_outliers_equal_the_planted_outliers(n_files):
    rng, times = times_of(n_files, n_files)
    near, widths = np.full(times.shape, 1.0), np.full(times.shape, 6.0)
    wrong = np.zeros(times.shape, np.bool_)
    for row in rng.choice(np.flatnonzero((~np.isnan(times)).sum(axis=1) > 1), 20, replace=False).tolist():
        file = int(rng.choice(np.flatnonzero(~np.isnan(times[row]))))
        times[row, file] += rng.choice([-1, 1]) * rng.uniform(12, 60)
        wrong[row, file], near[row, file] = True, 10.0
    assert np.array_equal(has_deviating_time(times, widths, near), wrong)
    assert not has_deviating_time(times, widths * 50, near).any(), "within a quarter of its width a summit is the same"
    wide = np.where(wrong, 50, 1) * widths
    assert np.array_equal(has_deviating_time(times, wide, near), wrong), "however wide the wrong one is"


def test_retention_time_outlier_is_the_minority_or_farther_value():
    _, times = times_of(3, 1)
    times[7] = times[7, 0] + np.array([0.0, 20.0, 40.0]) + 8 * (np.sin(times[7, 0] / 400 + np.arange(3)) - np.sin(times[7, 0] / 400))
    times[7, 2] += 30
    near, widths = np.full(times.shape, 5.0), np.full(times.shape, 6.0)
    near[7, 2] = 0.0
    assert np.argwhere(has_deviating_time(times, widths, near)).tolist() == [[7, 2]]
    times[7, 1] = np.nan
    assert np.argwhere(has_deviating_time(times, widths, near)).tolist() == [[7, 0]]


def test_few_shared_ions_have_no_retention_time_outliers():
    few = np.stack([np.arange(49.0) * 20, np.arange(49.0) * 20], axis=1)
    few[20, 1] += 300
    for times in (np.zeros((0, 3)), np.full((4, 2), np.nan), np.array([[1.0, 900.0]]), np.arange(30.0)[:, None], few):
        assert not has_deviating_time(times, np.ones(times.shape), np.ones(times.shape)).any()


def test_peptide_masked_in_one_run_has_no_quantity_in_that_run(tmp_path):
    peptides = random_peptides(60, 3, (9, 12))
    runs = {name: SyntheticRun(seconds=720, noise_peaks=20, seed=seed) for seed, name in enumerate(("one", "two"))}
    for name, run in runs.items():
        for k, sequence in enumerate(peptides):
            peptide = Planted(sequence, 2, 4e6, 40.0 + 11 * k + 5 * (name == "two"))
            run.planted.append(peptide)
            run.identified.append(peptide)
    interfering = Planted(peptides[11], 2, 8e7, runs["two"].identified[11].apex + 14.0)
    runs["two"].planted.append(interfering)
    project = write_project(tmp_path / "p", runs, {"P": peptides})
    run_search("quantify", {"project": [project]}, device="cpu", threads=1, normalisation="none")
    refused = {(row["peptide"], row["file"]): row["refused"] for row in table_of(project, "ion_traces")}
    assert refused.pop((peptides[11], "two.mzML")) == "at another time than in other files"
    assert set(refused.values()) == {None}
    states = {row["sample"]: row["state"] for row in table_of(project, "peptide_quantities") if row["sequence"] == peptides[11]}
    assert states == {"one": "measured", "two": "refused"}
