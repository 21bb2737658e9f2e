"""Rescoring of matches: comparison with scikit-learn, simulated mixtures with known truth, and noise."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Cancelled, Progress
from proteoscope.engine.matches import rescoring
from proteoscope.engine.matches.rescoring import Rescoring, RescoringSettings, rescore
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.cpu.rescoring import fit_logistic, learn_weights

TWICE, FROM_FEW = RescoringSettings(divisions=2), RescoringSettings(minimum_peptides=0)


def simulated_run(
    n: int, n_true: int, seed: int, n_features: int = 12
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Simulate features, decoy labels, peptides, initial scores and truth of n matches.

    The features add information to the initial score.
    """
    rng = np.random.default_rng(seed)
    is_true = np.arange(n) < n_true
    is_decoy = ~is_true & (rng.random(n) < 0.5)
    shift = np.append([2.0, 1.5, 1.5, 1.0], np.zeros(n_features - 4))
    features = rng.normal(size=(n, n_features)) + np.outer(is_true, shift)
    initial = 1.0 * features[:, 0]
    initial[is_true] += 0.8
    order = rng.permutation(n)
    return features[order], is_decoy[order], np.arange(n)[order], initial[order], is_true[order]


def repeated(run: tuple[np.ndarray, ...], copies: int, noise: float) -> tuple[np.ndarray, ...]:
    """Repeat each match with noise in its features, like replicates of a sample."""
    rng = np.random.default_rng(copies)
    features, is_decoy, peptide, initial, is_true = (np.concatenate([column] * copies) for column in run)
    return features + noise * rng.normal(size=features.shape), is_decoy, peptide, initial, is_true


def columns(features: np.ndarray) -> dict[str, np.ndarray]:
    return {f"feature {number}": column for number, column in enumerate(features.T)}


def weights(result: Rescoring) -> np.ndarray:
    """Return the weights (models, features and initial score) of standardised features; scores of each model have variance 1."""
    assert result.learnt is not None
    scaled = result.learnt.models[..., :-3] / result.learnt.models[..., -1:]
    return scaled.reshape(-1, scaled.shape[-1])


def accepted(score: np.ndarray, is_decoy: np.ndarray) -> np.ndarray:
    return np.flatnonzero((q_values(score, is_decoy) <= 0.01) & ~is_decoy)


def test_informative_features_increase_accepted_matches() -> None:
    features, is_decoy, peptide, initial, is_true = simulated_run(2_000, 800, 1)
    result = rescore(columns(features), is_decoy, peptide, initial)
    rows = accepted(result.score, is_decoy)
    assert result.learnt is not None
    assert len(rows) > 1.1 * len(accepted(initial, is_decoy))
    assert np.mean(~is_true[rows]) < 0.025
    assert weights(result).shape == (50, 13), "ten divisions into five folds"
    assert (weights(result)[:, 1:4].min(axis=1) > np.abs(weights(result)[:, 4:12]).max(axis=1)).all(), "informative features weigh most"


@pytest.mark.parametrize(("n", "n_true", "n_runs"), [(140, 80, 40), pytest.param(600, 90, 20, marks=pytest.mark.long), (2_000, 300, 6)])
def test_rescoring_adds_no_false_targets(n: int, n_true: int, n_runs: int) -> None:
    """Without the added decoy (+ 1), small sets exceed 1 %. Rescoring increases the excess by no more than the standard error."""
    before, after, gain = [], [], []
    for seed in range(n_runs):
        features, is_decoy, peptide, initial, is_true = simulated_run(n, n_true, seed)
        result = rescore(columns(features), is_decoy, peptide, initial, settings=RescoringSettings(minimum_peptides=0, divisions=2))
        for proportions, score in ((before, initial), (after, result.score)):
            rows = accepted(score, is_decoy)
            proportions.append(np.mean(~is_true[rows]) if len(rows) else 0.0)
        gain.append(len(accepted(result.score, is_decoy)) - len(accepted(initial, is_decoy)))
    error = np.hypot(np.std(before), np.std(after)) / np.sqrt(len(before))
    assert np.mean(after) <= np.mean(before) + 3 * error
    assert np.mean(after) < 0.025
    assert np.mean(gain) > 0


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_rescoring_of_replicates_adds_no_false_targets(noise: float) -> None:
    """If folds were divided by match, models would learn from copies of the matches that they score, and accept many false targets."""
    shares = {"by peptide": [], "by match": []}
    for seed in range(3):
        features, is_decoy, peptide, initial, is_true = repeated(simulated_run(400, 200, seed, 40), 5, noise)
        for grouping, numbers in (("by peptide", peptide), ("by match", np.arange(len(peptide)))):
            rows = accepted(rescore(columns(features), is_decoy, numbers, initial, settings=TWICE).score, is_decoy)
            shares[grouping].append(np.mean(~is_true[rows]) if len(rows) else 0.0)
    assert np.mean(shares["by peptide"]) < 0.02
    assert np.mean(shares["by match"]) > 2 * np.mean(shares["by peptide"]), "otherwise the test is not sensitive"


def test_rescoring_ignores_matches_that_do_not_compete() -> None:
    run = simulated_run(600, 300, 4)
    features, is_decoy, peptide, initial, _ = run
    separate = rescore(columns(features), is_decoy, peptide, initial)
    rng = np.random.default_rng(1)
    more = [np.concatenate((column, column[:200])) for column in run]
    more[0][700:] += rng.normal(size=12)
    competes = np.arange(800) < 600
    together = rescore(columns(more[0]), more[1], more[2], more[3], competes)
    np.testing.assert_array_equal(separate.score, together.score[:600])
    np.testing.assert_array_equal(together.score[600:700], separate.score[:100])


def test_rescoring_accepts_nothing_from_noise() -> None:
    """Without true matches, about one target precedes the first decoy on average."""
    n_accepted = []
    for seed in range(12):
        features, is_decoy, peptide, initial, _ = simulated_run(300, 0, seed, 20)
        result = rescore(columns(features), is_decoy, peptide, initial, settings=RescoringSettings(minimum_peptides=0, divisions=2))
        n_accepted.append(len(accepted(result.score, is_decoy)))
        assert rescore(columns(features), is_decoy, peptide, initial).learnt is None
    assert np.mean(n_accepted) < 2


def test_rescoring_accepts_nothing_with_shuffled_labels() -> None:
    features, is_decoy, peptide, initial, _ = simulated_run(1_000, 400, 5)
    shuffled = np.random.default_rng(5).permutation(is_decoy)
    result = rescore(columns(features), shuffled, peptide, initial, settings=FROM_FEW)
    assert len(accepted(result.score, shuffled)) < 20


def test_rescoring_models_exclude_the_peptides_they_score() -> None:
    """Swapping the labels of a peptide's matches changes the models of other folds only."""
    features, is_decoy, peptide, initial, _ = repeated(simulated_run(800, 400, 7), 3, 0.1)
    first = rescore(columns(features), is_decoy, peptide, initial, settings=RescoringSettings(folds=3, divisions=4))
    changed = is_decoy.copy()
    changed[peptide == 3] ^= True
    second = rescore(columns(features), changed, peptide, initial, settings=RescoringSettings(folds=3, divisions=4))
    direction = [w / np.linalg.norm(w, axis=1, keepdims=True) for w in (weights(first), weights(second))]
    same = np.isclose(direction[0], direction[1], rtol=1e-9, atol=1e-12).all(axis=1)
    assert same.reshape(4, 3).sum(axis=1).tolist() == [1, 1, 1, 1], "the peptide's fold in each division"


def test_rescoring_does_not_depend_on_row_order() -> None:
    features, is_decoy, peptide, initial, _ = simulated_run(500, 250, 3)
    order = np.random.default_rng(0).permutation(len(initial))
    first = rescore(columns(features), is_decoy, peptide, initial)
    again = rescore(columns(features), is_decoy, peptide, initial)
    other = rescore(columns(features[order]), is_decoy[order], peptide[order], initial[order])
    np.testing.assert_array_equal(first.score, again.score)
    np.testing.assert_allclose(first.score[order], other.score, rtol=1e-6, atol=1e-8)


def test_rescoring_is_identical_on_any_threads() -> None:
    features, is_decoy, peptide, score, _ = simulated_run(500, 250, 3)
    single, parallel = (rescore(columns(features), is_decoy, peptide, score, resources=Resources(threads)) for threads in (1, 3))
    assert np.array_equal(single.score, parallel.score)
    assert np.array_equal(weights(single), weights(parallel))


def test_later_matches_get_the_scores_of_a_joint_rescoring() -> None:
    features, is_decoy, peptide, initial, _ = simulated_run(900, 400, 5)
    competes = np.arange(900) < 600
    together = rescore(columns(features), is_decoy, peptide, initial, competes)
    alone = rescore(columns(features[:600]), is_decoy[:600], peptide[:600], initial[:600])
    assert alone.learnt is not None
    later = alone.learnt.score(columns(features[600:]), initial[600:], peptide[600:])
    assert np.array_equal(np.concatenate((alone.score, later)), together.score)
    assert rescore(columns(features[:0]), is_decoy[:0], peptide[:0], initial[:0]).learnt is None


def test_rescoring_stops_at_cancel() -> None:
    features, is_decoy, peptide, score, _ = simulated_run(500, 250, 3)
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        rescore(columns(features), is_decoy, peptide, score, resources=Resources(progress=progress))


def test_rescoring_ignores_feature_units_and_constants() -> None:
    features, is_decoy, peptide, initial, _ = simulated_run(500, 250, 5)
    scaled = np.column_stack([features * 10.0 ** np.arange(-6, 6), np.full(len(features), 7.0)])
    first = rescore(columns(features), is_decoy, peptide, initial)
    second = rescore(columns(scaled), is_decoy, peptide, 1e3 * initial + 5)
    assert first.learnt is not None
    np.testing.assert_allclose(first.score, second.score, rtol=1e-6, atol=1e-6)


def test_rescoring_is_skipped_with_too_few_targets() -> None:
    features, is_decoy, peptide, initial, _ = simulated_run(100, 5, 1)
    result = rescore(columns(features), is_decoy, peptide, initial)
    assert result.learnt is None
    assert "too few" in result.message
    np.testing.assert_array_equal(result.score, initial)


def test_noise_features_cost_few_and_add_no_false_matches() -> None:
    """The better of the two scores is not selected, since that would favour chance; therefore noise may cost some targets."""
    before, after, false = 0, 0, 0
    for seed in range(5):
        _, is_decoy, peptide, initial, is_true = simulated_run(2_000, 900, seed)
        noise = np.random.default_rng(seed).normal(size=(len(initial), 30))
        result = rescore(columns(noise), is_decoy, peptide, initial, settings=TWICE)
        assert result.learnt is not None
        before, after = before + len(accepted(initial, is_decoy)), after + len(accepted(result.score, is_decoy))
        false += np.count_nonzero(~is_true[accepted(result.score, is_decoy)])
    assert after > 0.8 * before
    assert false < 0.015 * after


def test_rescoring_is_skipped_without_matches_or_decoys() -> None:
    empty = rescore(dict.fromkeys("abc", np.empty(0)), np.empty(0, bool), np.empty(0, np.int64), np.empty(0))
    assert empty.learnt is None
    assert len(empty.score) == 0
    without = rescore({"a": np.ones(60)}, np.zeros(60, bool), np.arange(60), np.arange(60.0))
    assert without.learnt is None
    assert "0 peptides of decoys are too few" in without.message


def test_rescoring_rejects_feature_that_is_not_finite() -> None:
    features = np.ones((3, 2))
    features[1, 1] = np.nan
    with pytest.raises(ValueError, match="not finite: second"):
        rescore(dict(zip(("first", "second"), features.T, strict=True)), np.array([True, False, False]), np.arange(3), np.arange(3.0))


def test_logistic_regression_matches_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    features, is_decoy, _, _, _ = simulated_run(400, 200, 9)
    rows = np.argsort(is_decoy, kind="stable")
    table, weights_found = np.vstack([features[rows].T, np.ones(len(features))]), np.zeros(features.shape[1] + 1)
    peer = LogisticRegression(C=1 / 20.0, tol=1e-10, max_iter=1_000).fit(features, ~is_decoy)
    fit_logistic(table, np.count_nonzero(~is_decoy), 20.0, weights_found)
    np.testing.assert_allclose(weights_found, np.append(peer.coef_[0], peer.intercept_), rtol=1e-3, atol=1e-4)


def test_large_runs_have_fewer_cross_validation_divisions() -> None:
    """At most about 40,000 rows of each fold are used for training, in at least two divisions."""
    divisions = {}
    for n in (500, 10_000, 40_000):
        features, is_decoy, peptide, initial, _ = simulated_run(n, n // 3, 1, 5)
        result = rescore(columns(features), is_decoy, peptide, initial, settings=RescoringSettings(iterations=1))
        divisions[n] = len(weights(result)) // 5
    assert divisions == {500: 10, 10_000: 4, 40_000: 2}


def test_rescoring_of_large_runs_trains_on_a_sample_of_peptides(monkeypatch: pytest.MonkeyPatch) -> None:
    features, is_decoy, peptide, initial, is_true = simulated_run(6000, 3000, 3)
    monkeypatch.setattr(rescoring, "_MAXIMUM_ROWS_LEARNT", 1500)
    learnt_from: list[set[int]] = []
    learn = rescoring._learn

    def recording(table: np.ndarray, decoy: np.ndarray, is_seen: np.ndarray, settings: RescoringSettings, model: np.ndarray) -> None:
        learnt_from.append({row.tobytes() for row in table.T[is_seen]})
        learn(table, decoy, is_seen, settings, model)

    monkeypatch.setattr(rescoring, "_learn", recording)
    result = rescore(columns(features), is_decoy, peptide, initial)
    assert result.learnt is not None and len(result.score) == 6000
    assert max(map(len, learnt_from)) < 0.4 * 6000
    rescored = accepted(result.score, is_decoy)
    monkeypatch.undo()
    reference = accepted(rescore(columns(features), is_decoy, peptide, initial).score, is_decoy)
    assert is_true[rescored].sum() > 0.97 * is_true[reference].sum()


def test_rescoring_does_not_depend_on_batch_size(monkeypatch: pytest.MonkeyPatch) -> None:
    features, is_decoy, peptide, initial, _ = simulated_run(900, 400, 5)
    unbatched = rescore(columns(features), is_decoy, peptide, initial)
    monkeypatch.setattr(rescoring, "_ROWS_SCORED", 7)
    assert np.array_equal(rescore(columns(features), is_decoy, peptide, initial).score, unbatched.score)


def test_models_do_not_depend_on_addresses_of_arrays() -> None:
    """Sums by vector instructions in loops that LLVM compiles in several orders would differ in the last digits."""
    features, is_decoy, _, initial, _ = simulated_run(400, 150, 2)
    table = np.vstack([features.T, initial, np.ones(len(initial))])
    models, held = set(), []
    for number in range(40):
        model, values = np.empty(len(table) + 2), np.empty(table.size + number)[number:].reshape(table.shape)
        values[:] = table
        learn_weights(values, is_decoy, np.arange(400) % 5 > 0, np.array([0.01, 0.05]), 20, 1.0, 6, 10.0, model)
        models.add(model.tobytes())
        held.append(np.empty(number * 37))  # moves the arrays that the kernel allocates
    assert len(models) == 1
