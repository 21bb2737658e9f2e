"""Calibration of error rates in simulated mixtures with known truth, over many repeats."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.matches.protein_groups import infer_protein_groups
from proteoscope.engine.statistics.posterior_error import posterior_error_probabilities
from proteoscope.engine.statistics.target_decoy import q_values

REPEATS = 150


def mixture(rng: np.random.Generator, n: int, share_true: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate scores, decoy labels and truth; false matches are targets or decoys with equal probability."""
    is_true = rng.random(n) < share_true
    is_decoy = ~is_true & (rng.random(n) < 0.5)
    return np.where(is_true, rng.normal(6.0, 1.5, n), rng.gumbel(0.0, 1.0, n)), is_decoy, is_true


def false_and_accepted(score: np.ndarray, is_decoy: np.ndarray, is_true: np.ndarray, level: float, plus_one: bool) -> tuple[int, int]:
    accepted = ~is_decoy & (q_values(score, is_decoy, plus_one=plus_one) <= level)
    return int((accepted & ~is_true).sum()), int(accepted.sum())


@pytest.mark.parametrize("share_true", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("level", [0.01, 0.05])
def test_false_match_fraction_equals_the_q_value_level(share_true: float, level: float) -> None:
    """The count over all repeats is within 4 standard deviations of a count with twice the binomial variance, since decoys vary too."""
    rng = np.random.default_rng(17)
    counts = np.array([false_and_accepted(*mixture(rng, 4_000, share_true), level, False) for _ in range(REPEATS)])
    false, accepted = counts.sum(axis=0)
    deviation = np.sqrt(2 * level * accepted)
    # Each repeat may exceed its level by one match at most: the ratio counts decoys only down to the next one.
    assert abs(false - level * accepted) < 4 * deviation + REPEATS


def test_plus_one_limits_false_match_fraction_to_the_level() -> None:
    rng = np.random.default_rng(5)
    shares = []
    for _ in range(400):
        false, accepted = false_and_accepted(*mixture(rng, 400, 0.5), 0.02, True)
        shares.append(false / max(accepted, 1))
    assert np.mean(shares) < 0.02 + 2 * np.std(shares) / np.sqrt(len(shares))


def test_few_matches_are_accepted_when_all_are_false() -> None:
    rng = np.random.default_rng(9)
    accepted = [false_and_accepted(*mixture(rng, 2_000, 0.0), 0.01, False)[1] for _ in range(REPEATS)]
    assert np.mean(accepted) < 1.6, "a run of targets before the first decoy has a mean length of 1"


def test_posterior_error_probabilities_are_calibrated() -> None:
    """The share of false targets matches their mean probability in each range."""
    rng = np.random.default_rng(23)
    probability, false = [], []
    for _ in range(20):
        score, is_decoy, is_true = mixture(rng, 10_000, 0.5)
        probability.append(posterior_error_probabilities(score, is_decoy)[~is_decoy])
        false.append(~is_true[~is_decoy])
    probability, false = np.concatenate(probability), np.concatenate(false)
    for low, high in ((0.0, 0.02), (0.02, 0.1), (0.1, 0.3), (0.3, 0.6), (0.6, 0.9)):
        inside = (probability >= low) & (probability < high)
        assert false[inside].mean() == pytest.approx(probability[inside].mean(), abs=0.003 + 0.1 * high)


def test_fraction_of_false_protein_groups_is_near_1_percent() -> None:
    """True peptides belong to 600 proteins, and false ones to any of 6,000 targets or 6,000 decoys."""
    rng = np.random.default_rng(31)
    n_proteins, n_present, false, accepted = 6_000, 600, 0, 0
    for _ in range(40):
        score, is_decoy, is_true = mixture(rng, 5_000, 0.6)
        anywhere = rng.integers(0, n_proteins, len(score))
        protein = np.where(is_true, rng.integers(0, n_present, len(score)), np.where(is_decoy, n_proteins + anywhere, anywhere))
        passed = q_values(score, is_decoy) <= 0.05
        groups = infer_protein_groups(
            np.arange(passed.sum() + 1),
            protein[passed],
            score[passed],
            is_decoy[passed],
            np.ones(passed.sum(), np.int64),
            np.arange(2 * n_proteins) >= n_proteins,
        )
        passing = ~groups.is_decoy & (groups.q_value <= 0.01)
        first = groups.members[groups.member_offsets[:-1]]
        false += int((first[passing] >= n_present).sum())
        accepted += int(passing.sum())
    assert accepted > 40 * 0.9 * n_present
    assert false / accepted < 0.013
