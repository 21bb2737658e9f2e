"""Transferred subgroup FDR, compared with its definition and with the truth in simulations."""

import numpy as np
import pytest

from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.engine.statistics.transferred_fdr import class_share, minimum_share, transferred_rates


def fitted_share(score, of_class, at):
    """Fit the share of the class among decoys with at least each score, by weighted least squares of numpy."""
    x = np.unique(score)
    share = [np.mean(of_class[score >= value]) for value in x]
    weight = [np.sqrt(np.count_nonzero(score >= value)) for value in x]
    slope, base = np.polyfit(x, share, 1, w=weight)
    return np.clip(base + slope * at, 0, 1)


def defined_rates(score, is_decoy, of_class, added, lowest_share, decoy_ratio):
    result = []
    for row in np.flatnonzero(of_class):
        rates = []
        for threshold in np.unique(score[of_class & (score <= score[row])]):
            targets = np.count_nonzero(of_class & ~is_decoy & (score >= threshold))
            share = max(fitted_share(score[is_decoy], of_class[is_decoy], threshold), lowest_share)
            decoys = np.count_nonzero(is_decoy & (score >= threshold)) + added[score == threshold][0]
            rates.append(min(1.0, share * decoys / decoy_ratio / targets) if targets else 1.0)
        result.append(min(rates))
    return result


@pytest.mark.parametrize("rounded", [False, True])
def test_transferred_rates_equal_their_definition(rounded):
    random = np.random.default_rng(3)
    for _ in range(10):
        score = random.normal(size=200)
        score = np.round(score * 4) if rounded else score
        is_decoy, of_class, added = random.random(200) < 0.4, random.random(200) < 0.2, np.exp(-score)
        for lowest in (0.0, minimum_share(of_class[is_decoy])):
            computed = transferred_rates(score, is_decoy, of_class, added=added, lowest_share=lowest, decoy_ratio=0.8)
            assert computed == pytest.approx(defined_rates(score, is_decoy, of_class, added, lowest, 0.8))


def test_false_share_of_a_class_without_decoys_is_not_zero():
    score = np.arange(9.0)
    assert class_share(score, np.zeros(9, bool), np.array([0.0, 50.0])).tolist() == [0.0, 0.0]
    assert minimum_share(np.zeros(9, bool)) == 0.1
    assert class_share(np.empty(0), np.empty(0, bool), np.array([1.0])).tolist() == [1.0]
    assert class_share(np.full(4, 2.0), np.array([True, False, False, False]), np.array([2.0])).tolist() == [0.25]


@pytest.mark.parametrize("draw_false", ["gamma", "normal", "gumbel"])
def test_transferred_rate_of_small_class_is_correct(draw_false):
    random, proportions, accepted, in_list = np.random.default_rng(8), [], 0, [0, 0]
    for _ in range(150):
        n_true, n_false = np.array([400, 25]), np.array([500, 70])
        of_class = np.concatenate((np.repeat([False, True], n_true), np.repeat([False, True], n_false)))
        is_false = np.arange(len(of_class)) >= n_true.sum()
        false = {"gamma": random.gamma(2.0, 0.7, len(of_class)), "normal": random.normal(size=len(of_class))}
        false["gumbel"] = random.gumbel(0.0, 0.8, len(of_class))
        score = np.where(is_false, false[draw_false], random.normal(5.0, 1.5, len(of_class)))
        is_decoy = is_false & (random.random(len(of_class)) < 0.5)
        lowest = minimum_share(of_class[is_decoy])
        passes = (transferred_rates(score, is_decoy, of_class, lowest_share=lowest) <= 0.05) & ~is_decoy[of_class]
        proportions.append(is_false[of_class][passes].sum() / max(passes.sum(), 1))
        accepted += int(passes.sum())
        # The matches of the class among all matches that one list accepts at 5 %.
        listed = (q_values(score, is_decoy) <= 0.05) & of_class & ~is_decoy
        in_list = [in_list[0] + int(is_false[listed].sum()), in_list[1] + int(listed.sum())]
    assert accepted > 150 * 15
    assert np.mean(proportions) <= 0.05 + 2 * np.std(proportions) / np.sqrt(150)
    assert in_list[0] / in_list[1] > 0.06  # the rate of the whole list is not that of the class


def test_transferred_rates_are_one_for_decoys_and_reject_nan():
    assert transferred_rates(np.arange(3.0), np.ones(3, bool), np.ones(3, bool)).tolist() == [1.0] * 3
    assert len(transferred_rates(np.arange(3.0), np.ones(3, bool), np.zeros(3, bool))) == 0
    with pytest.raises(ValueError, match="NaN"):
        transferred_rates(np.array([np.nan]), np.zeros(1, bool), np.ones(1, bool))
