"""Match between runs: estimated error rates, random times, and traces that belong to other identified ions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proteoscope.engine.quantification.retention_times import aligned, has_deviating_time
from proteoscope.engine.quantification.transfers import random_times, transfer_q_values
from proteoscope.engine.searches import run_search
from tests.engine.quantification.synthetic_runs import Planted, SyntheticRun, random_peptides, table_of, write_project


def test_transfer_q_values_equal_their_definition():
    rng = np.random.default_rng(2)
    score = rng.integers(0, 40, 300).astype(float)
    is_random, is_decoy = rng.random(300) < 0.1, rng.random(300) < 0.1

    def rate(limit: float) -> float:
        there = score >= limit
        n = [int((there & (is_random == random) & (is_decoy == decoy)).sum()) for random in (False, True) for decoy in (False, True)]
        return (1 + n[2] + max(0, n[1] - n[3])) / max(1, n[0])

    expected = [min(1.0, *(rate(limit) for limit in set(score.tolist()) if limit <= value)) for value in score.tolist()]
    np.testing.assert_allclose(transfer_q_values(score, is_random, is_decoy), expected)


def test_random_times_are_of_distant_ions_of_similar_mass():
    rng = np.random.default_rng(3)
    times, mass = rng.uniform(0, 1000, 400), rng.uniform(800, 2000, 400)
    result = random_times(rng, (times, mass, np.full(400, 50.0)), times, mass)
    assert (np.abs(result - times) >= 50).all()
    source = np.array([np.flatnonzero(times == value)[0] for value in result])
    step = np.abs(mass[source] - mass)
    assert np.mean((step >= 5) & (step <= 11)) > 0.95
    assert len(set(source.tolist())) > 150
    assert np.isnan(random_times(rng, (times, mass, np.full(400, 2000.0)), times, mass)).all()


def test_files_without_shared_ions_are_aligned_through_another():
    rng = np.random.default_rng(4)
    reference = np.sort(rng.uniform(0, 2000, 300))
    times = np.stack([reference, reference * 1.2 + 30, 0.8 * reference + 20 * np.sin(reference / 300)], axis=1) + rng.normal(
        0, 0.5, (300, 3)
    )
    times[250:, 0], times[:250, 2] = np.nan, np.nan  # the first and the last have no ion in common
    ion, file = np.nonzero(~np.isnan(times))
    result = aligned(ion, file, times[ion, file], 300, 3)
    assert None not in result.of_file
    last = result.of_file[2].to_reference(times[260:290, 2])
    assert np.median(np.abs(last - result.of_file[1].to_reference(times[260:290, 1]))) < 3
    assert not np.isnan(result.time).any()


def test_retention_time_outliers_are_found_among_many_files():
    rng = np.random.default_rng(5)
    times = np.sort(rng.uniform(100, 2000, 120))[:, None] + rng.normal(0, 0.5, (120, 60)) + 10 * rng.normal(size=60)
    wrong = np.zeros(times.shape, np.bool_)
    wrong[rng.integers(0, 120, 30), rng.integers(0, 60, 30)] = True
    times[wrong] += 40
    ion, file = np.nonzero(~np.isnan(times))
    alignments = aligned(ion, file, times[ion, file], *times.shape).of_file
    assert np.array_equal(has_deviating_time(times, np.full(times.shape, 6.0), np.ones(times.shape), alignments), wrong)


def test_match_between_runs_ignores_traces_of_identified_ions(tmp_path):
    peptides = random_peptides(90, 51)
    runs = {stem: SyntheticRun(seed=i, noise_peaks=50) for i, stem in enumerate(("one", "two"), 5)}
    rng = np.random.default_rng(6)
    isomers = [f"{sequence[-2::-1]}{sequence[-1]}" for sequence in peptides[:9]]
    for k, sequence in enumerate(peptides):
        planted = Planted(sequence, 2, float(4e6 * rng.lognormal(0, 0.3)), float(rng.uniform(60, 540)))
        # The second run has isomers of the first tenth at their times, and does not identify the others of the first half.
        second = replace(planted, sequence=isomers[k]) if k < 9 else planted
        for run, peptide in zip(runs.values(), (planted, second), strict=True):
            run.planted.append(peptide)
            if run is runs["one"] or k < 9 or k >= 45:
                run.identified.append(peptide)
    proteins = {f"P{i}": [*peptides[3 * i : 3 * i + 3], *isomers[3 * i : 3 * i + 3]] for i in range(30)}
    project = write_project(tmp_path, runs, proteins)
    summary = run_search("quantify", {"project": [project]}, device="cpu", threads=2, match_between_runs=True, transfer_fdr=0.05)
    moved = {row["peptide"] for row in table_of(project, "ion_traces") if row["source"] == "transferred"}
    assert len(moved & set(peptides[9:45])) >= 32 and moved <= set(peptides[9:45])
    assert any("The estimated rate of false transfers is" in message for message in summary.messages)
