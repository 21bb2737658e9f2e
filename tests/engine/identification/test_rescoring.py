"""Rescoring against a peer's solver, against mixtures whose truth is known, and against noise."""

from __future__ import annotations

import time

import numpy as np
import pytest

from engine.identification import rescoring
from engine.identification.rescoring import rescore
from engine.identification.target_decoy import best_by_group, q_values
from engine.jobs.progress import Cancelled, Progress


def simulated_run(
    n: int, n_true: int, seed: int, n_features: int = 12
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, decoy labels, spectra, initial score and truth; two rows a spectrum, the features add to what the initial score tells."""
    rng = np.random.default_rng(seed)
    spectrum = np.repeat(np.arange(n), 2)
    is_true = np.zeros(2 * n, bool)
    is_true[: 2 * n_true : 2] = True
    is_decoy = ~is_true & (rng.random(2 * n) < 0.5)
    shift = np.append([2.0, 1.5, 1.5, 1.0], np.zeros(n_features - 4))
    features = rng.normal(size=(2 * n, n_features)) + np.outer(is_true, shift)
    initial = 1.0 * features[:, 0]
    initial[is_true] += 0.8
    order = rng.permutation(2 * n)
    return features[order], is_decoy[order], spectrum[order], initial[order], is_true[order]


def names(features: np.ndarray) -> list[str]:
    return [f"feature {number}" for number in range(features.shape[1])]


def accepted(score: np.ndarray, is_decoy: np.ndarray, spectrum: np.ndarray) -> np.ndarray:
    best = best_by_group(spectrum, score)
    return best[(q_values(score[best], is_decoy[best]) <= 0.01) & ~is_decoy[best]]


def test_features_that_tell_more_than_the_search_score_give_more_targets_and_true_ones() -> None:
    features, is_decoy, spectrum, initial, is_true = simulated_run(2_000, 800, 1)
    result = rescore(features, names(features), is_decoy, spectrum, initial)
    rows = accepted(result.score, is_decoy, spectrum)
    assert result.used
    assert result.accepted_after == len(rows) > 1.1 * result.accepted_before
    assert np.mean(~is_true[rows]) < 0.025
    assert result.weights.shape == (10, 13)
    assert (result.weights[:, 1:4].min(axis=1) > np.abs(result.weights[:, 4:12]).max(axis=1)).all(), "informative features weigh most"


@pytest.mark.parametrize(("n", "n_true"), [(140, 80), (600, 90), (2_000, 300)])
def test_rescoring_adds_no_false_targets_beyond_those_of_the_search_score(n: int, n_true: int) -> None:
    """Small sets exceed 1 % without the + 1; the rescored ones do so no more than the search score's, within the standard error."""
    before, after, gain = [], [], []
    for seed in range(60):
        features, is_decoy, spectrum, initial, is_true = simulated_run(n, n_true, seed)
        result = rescore(features, names(features), is_decoy, spectrum, initial, minimum_targets=0)
        for proportions, score in ((before, initial), (after, result.score)):
            rows = accepted(score, is_decoy, spectrum)
            proportions.append(np.mean(~is_true[rows]) if len(rows) else 0.0)
        gain.append(result.accepted_after - result.accepted_before)
    error = np.hypot(np.std(before), np.std(after)) / np.sqrt(len(before))
    assert np.mean(after) <= np.mean(before) + 3 * error
    assert np.mean(after) < 0.025
    assert np.mean(gain) > 0


def test_pure_noise_stays_noise() -> None:
    """Without any truth the targets before the first decoy are about 1, and the better of two such draws less than 2."""
    found = []
    for seed in range(60):
        features, is_decoy, spectrum, initial, _ = simulated_run(300, 0, seed, 20)
        found.append(rescore(features, names(features), is_decoy, spectrum, initial, minimum_targets=0).accepted_after)
        assert not rescore(features, names(features), is_decoy, spectrum, initial).used
    assert np.mean(found) < 3


def test_labels_shuffled_over_spectra_leave_nothing_to_learn() -> None:
    features, is_decoy, spectrum, initial, _ = simulated_run(1_000, 400, 5)
    shuffled = np.random.default_rng(5).permutation(is_decoy)
    assert rescore(features, names(features), shuffled, spectrum, initial, minimum_targets=0).accepted_after < 20


def test_no_model_sees_the_spectra_that_it_scores() -> None:
    """Swapping the labels of one spectrum changes every score but leaves its own fold's model, up to scale, as it was."""
    features, is_decoy, spectrum, initial, _ = simulated_run(800, 400, 7)
    first = rescore(features, names(features), is_decoy, spectrum, initial, folds=3)
    changed = is_decoy.copy()
    changed[spectrum == 3] ^= True
    second = rescore(features, names(features), changed, spectrum, initial, folds=3)
    direction = [w / np.linalg.norm(w, axis=1, keepdims=True) for w in (first.weights, second.weights)]
    same = np.isclose(direction[0], direction[1], rtol=1e-9, atol=1e-12).all(axis=1)
    assert same.sum() == 1


def test_rows_in_another_order_and_a_second_run_give_the_same_scores() -> None:
    features, is_decoy, spectrum, initial, _ = simulated_run(500, 250, 3)
    order = np.random.default_rng(0).permutation(len(initial))
    first = rescore(features, names(features), is_decoy, spectrum, initial)
    again = rescore(features, names(features), is_decoy, spectrum, initial)
    other = rescore(features[order], names(features), is_decoy[order], spectrum[order], initial[order])
    np.testing.assert_array_equal(first.score, again.score)
    np.testing.assert_allclose(first.score[order], other.score, rtol=1e-6, atol=1e-8)


def test_models_learnt_side_by_side_are_those_learnt_one_after_the_other() -> None:
    features, is_decoy, spectrum, score, _ = simulated_run(500, 250, 3)
    one, several = (rescore(features, names(features), is_decoy, spectrum, score, threads=threads) for threads in (1, 3))
    assert len(one.weights)
    assert np.array_equal(one.score, several.score)
    assert np.array_equal(one.weights, several.weights)


def test_learning_can_be_cancelled() -> None:
    features, is_decoy, spectrum, score, _ = simulated_run(500, 250, 3)
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        rescore(features, names(features), is_decoy, spectrum, score, progress=progress)


def test_units_and_constant_columns_do_not_matter() -> None:
    features, is_decoy, spectrum, initial, _ = simulated_run(500, 250, 5)
    scaled = np.column_stack([features * 10.0 ** np.arange(-6, 6), np.full(len(features), 7.0)])
    first = rescore(features, names(features), is_decoy, spectrum, initial)
    second = rescore(scaled, names(scaled), is_decoy, spectrum, 1e3 * initial + 5)
    assert first.used
    np.testing.assert_allclose(first.score, second.score, rtol=1e-6, atol=1e-6)


def test_where_too_few_targets_are_found_the_search_score_stays_and_the_message_says_so() -> None:
    features, is_decoy, spectrum, initial, _ = simulated_run(100, 5, 1)
    result = rescore(features, names(features), is_decoy, spectrum, initial)
    assert not result.used
    assert "too few" in result.message
    np.testing.assert_array_equal(result.score, initial)
    assert result.weights.shape == (0, 13)


def test_useless_features_never_cost_targets() -> None:
    rng = np.random.default_rng(0)
    _, is_decoy, spectrum, initial, _ = simulated_run(200, 90, 2)
    noise = rng.normal(size=(len(initial), 30))
    result = rescore(noise, names(noise), is_decoy, spectrum, initial)
    assert result.accepted_after >= result.accepted_before
    assert result.used or "not used" in result.message


def test_empty_and_decoyless_runs_are_skipped() -> None:
    nothing = rescore(np.empty((0, 3)), ["a", "b", "c"], np.empty(0, bool), np.empty(0, np.int64), np.empty(0))
    assert not nothing.used
    assert len(nothing.score) == 0
    without = rescore(np.ones((60, 1)), ["a"], np.zeros(60, bool), np.arange(60), np.arange(60.0))
    assert not without.used
    assert "no decoys" in without.message


def test_a_feature_that_is_not_finite_is_named() -> None:
    features = np.ones((3, 2))
    features[1, 1] = np.nan
    with pytest.raises(ValueError, match="not finite: second"):
        rescore(features, ["first", "second"], np.array([True, False, False]), np.arange(3), np.arange(3.0))


def test_the_solver_agrees_with_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    features, is_decoy, _, _, _ = simulated_run(400, 200, 9)
    table = np.column_stack([features, np.ones(len(features))])
    peer = LogisticRegression(C=1 / 20.0, tol=1e-10, max_iter=1_000).fit(features, ~is_decoy)
    found = rescoring._logistic_regression(table, ~is_decoy, 20.0)
    np.testing.assert_allclose(found, np.append(peer.coef_[0], peer.intercept_), rtol=1e-3, atol=1e-4)


def test_twenty_five_thousand_rows_of_twenty_five_features_take_less_than_a_second() -> None:
    features, is_decoy, spectrum, initial, _ = simulated_run(12_500, 4_000, 1, 25)
    began = time.perf_counter()
    rescore(features.astype(np.float32), names(features), is_decoy, spectrum, initial)
    assert time.perf_counter() - began < 3.0, "0.4 s on an idle core"
