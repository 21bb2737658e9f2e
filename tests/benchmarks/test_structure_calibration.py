"""Calculations of the benchmark of E-values and probabilities, on data with known results."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.structure_calibration import calibration_error, fitted_chance, fitted_logistic, reversed_chains
from proteoscope.engine.structures.reading import read_structure


def test_gumbel_fit_recovers_constants_despite_related_chains():
    rng = np.random.default_rng(1)
    features = np.stack([np.ones(60_000), rng.normal(0, 1, 60_000), rng.random(60_000)], axis=1)
    location, log_scale = np.array([12.0, 3.0, 9.0]), np.array([1.5, 0.3, 1.0])
    scores = rng.gumbel(features @ location, np.exp(features @ log_scale))
    scores[:5] += 500
    actual = fitted_chance(scores, features)
    # The upper scores, at typical features.
    for at in ([1.0, 0.0, 0.5], [1.0, -1.0, 0.2], [1.0, 1.0, 0.8]):
        for chance in (1e-2, 1e-3):
            above = -np.log(-np.log1p(-chance))
            expected, reported = (a @ np.array(at) + np.exp(b @ np.array(at)) * above for a, b in ((location, log_scale), actual))
            assert reported == pytest.approx(expected, rel=0.08)


def test_logistic_fit_recovers_the_constants():
    rng = np.random.default_rng(2)
    features = np.stack([np.ones(50_000), rng.normal(0, 1, 50_000)], axis=1)
    truth = rng.random(50_000) < 1 / (1 + np.exp(-(features @ np.array([-1.0, 2.0]))))
    np.testing.assert_allclose(fitted_logistic(features, truth), [-1.0, 2.0], atol=0.1)


def test_calibration_error_is_the_mean_difference_of_bins():
    probabilities = np.array([0.05, 0.05, 0.95, 0.95, 1.0, 0.55])
    truth = np.array([False, True, True, True, False, True])
    expected = (abs(0.1 - 1) + abs(0.95 + 0.95 + 1.0 - 2) + abs(0.55 - 1)) / 6
    assert calibration_error(probabilities, truth) == pytest.approx(expected)
    rng = np.random.default_rng(3)
    many = rng.random(200_000)
    assert calibration_error(many, rng.random(200_000) < many) < 0.005


def test_reversed_chain_has_the_residues_in_reverse_order(shared_data):
    chains = read_structure(shared_data / "structures" / "sample" / "2BEG.pdb").chains
    reversed = reversed_chains(chains)
    for i in range(len(chains)):
        assert reversed.sequence(i) == chains.sequence(i)[::-1] and reversed.states(i) == chains.states(i)[::-1]
        assert (reversed.position[reversed.rows(i)] == chains.position[chains.rows(i)][::-1]).all()
