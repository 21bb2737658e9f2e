"""Posterior error probabilities against mixtures whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.engine.statistics import posterior_error
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import q_values
from tests.effort import lines_run


def normal_mixture(n: int, share_true: float, seed: int, shift: float = 3.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, decoy labels and true posterior error probabilities: false scores N(0, 1), true ones N(shift, 1)."""
    rng = np.random.default_rng(seed)
    is_true = rng.random(n) < share_true
    is_decoy = ~is_true & (rng.random(n) < 0.5)
    score = rng.normal(size=n) + shift * is_true
    false_density = (1 - share_true) / 2 * np.exp(-(score**2) / 2)
    true_density = share_true * np.exp(-((score - shift) ** 2) / 2)
    return score, is_decoy, false_density / (false_density + true_density)


@pytest.mark.parametrize(("n", "bound"), [(1_000, 0.06), (10_000, 0.025), (100_000, 0.015)])
def test_posterior_error_agrees_with_truth_of_normal_mixture(n: int, bound: float) -> None:
    for seed in range(5):
        score, is_decoy, truth = normal_mixture(n, 0.5, seed)
        result = posterior_error_probabilities(score, is_decoy)
        targets = ~is_decoy
        assert np.abs(result - truth)[targets].mean() < bound


@pytest.mark.parametrize("share_true", [0.1, 0.5, 0.9])
def test_mean_posterior_error_equals_the_false_discovery_rate(share_true: float) -> None:
    score, is_decoy, _ = normal_mixture(50_000, share_true, 11)
    result, q = posterior_error_probabilities(score, is_decoy), q_values(score, is_decoy)
    for level in (0.01, 0.05):
        accepted = ~is_decoy & (q <= level)
        assert result[accepted].mean() == pytest.approx(level, rel=0.25)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans()), max_size=60), st.sampled_from([1e-6, 1.0, 1e6]))
def test_posterior_error_decreases_with_score_for_any_input(matches: list[tuple[int, bool]], unit: float) -> None:
    score, is_decoy = np.array([m[0] for m in matches], float) * unit, np.array([m[1] for m in matches], bool)
    result = posterior_error_probabilities(score, is_decoy)
    assert result.shape == score.shape
    assert np.isfinite(result).all()
    assert ((result >= 0) & (result <= 1)).all()
    ranked = result[np.argsort(score)]
    assert (np.diff(ranked) <= 1e-12).all()
    for value in np.unique(score):
        assert len(np.unique(result[score == value])) == 1


def test_posterior_error_separates_distinct_score_classes() -> None:
    score = np.append(np.linspace(0, 1, 200), np.linspace(10, 11, 200))
    result = posterior_error_probabilities(score, np.arange(400) < 200)
    assert result[:200].min() > 0.9
    assert result[200:].max() < 0.05


def test_posterior_error_is_one_without_targets() -> None:
    assert (posterior_error_probabilities(np.arange(4.0), np.ones(4, bool)) == 1).all()


def test_posterior_error_is_high_for_random_scores() -> None:
    rng = np.random.default_rng(3)
    assert posterior_error_probabilities(rng.normal(size=5_000), rng.random(5_000) < 0.5).mean() > 0.9


def test_posterior_error_rejects_non_finite_scores() -> None:
    with pytest.raises(ValueError, match="finite"):
        posterior_error_probabilities(np.array([1.0, np.inf]), np.array([True, False]))


@pytest.mark.parametrize(("score", "is_decoy"), [([1.0, 2.0], [True]), ([[1.0], [2.0]], [[True], [False]])])
def test_posterior_error_rejects_unequal_lengths(score, is_decoy) -> None:
    with pytest.raises(ValueError, match="must be one-dimensional and of the same length"):
        posterior_error_probabilities(np.array(score), np.array(is_decoy))


def test_posterior_error_runs_no_python_code_per_match() -> None:
    """The fit uses groups of scores, and the number of groups is limited."""
    few, many = (lines_run(lambda n=n: posterior_error_probabilities(*normal_mixture(n, 0.5, 2)[:2])) for n in (10_000, 300_000))
    assert many < 1.5 * few


@pytest.mark.parametrize("seed", range(5))
def test_posterior_error_does_not_depend_on_rounding_errors(seed: int) -> None:
    """The distances of nearly equal scores, such as 1e-6, appear in the third power in the roughness of a spline."""
    random = np.random.default_rng(seed)
    score = np.repeat(random.normal(size=35), 2) + np.tile([0.0, 1e-6], 35)
    is_decoy = random.random(70) < 0.5
    expected = posterior_error_probabilities(score, is_decoy)
    for _ in range(5):
        changed = score * (1 + 1e-15 * random.integers(-4, 5, len(score)))
        np.testing.assert_allclose(posterior_error_probabilities(changed, is_decoy), expected, rtol=1e-6)


def spline_roughness(x: np.ndarray) -> np.ndarray:
    """Return K such that g'Kg is the integral of g''^2 of the natural cubic spline through (x, g), by its second derivatives."""
    h, n = np.diff(x), len(x)
    second = np.zeros((n, n - 2))
    inner = np.arange(n - 2)
    second[inner, inner] = 1 / h[:-1]
    second[inner + 1, inner] = -1 / h[:-1] - 1 / h[1:]
    second[inner + 2, inner] = 1 / h[1:]
    gram = np.diag((h[:-1] + h[1:]) / 3) + np.diag(h[1:-1] / 6, 1) + np.diag(h[1:-1] / 6, -1)
    return second @ np.linalg.solve(gram, second.T)


@pytest.mark.parametrize("n", [3, 4, 20, 60])
def test_smoothest_modes_have_the_roughness_of_splines(n: int) -> None:
    x = np.cumsum(np.append(0.0, 0.5 + np.random.default_rng(n).random(n - 1)))
    x /= x[-1]
    roughness, modes = posterior_error._smoothest_modes(x)
    m = min(n, 24)
    assert modes.shape == (n, m)
    np.testing.assert_allclose(modes.T @ modes, np.eye(m), atol=1e-9)
    np.testing.assert_allclose(np.diag(modes.T @ spline_roughness(x) @ modes), roughness, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.linalg.eigvalsh(spline_roughness(x))[2:m], roughness[2:], rtol=1e-5)
