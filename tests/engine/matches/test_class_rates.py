"""Error rates of classes: methods by size, own decoys, group-walk, transferred rates, and counts by distinct peptides."""

import numpy as np
import pytest

from proteoscope.engine.matches.class_rates import class_advantages, class_methods, class_rates
from proteoscope.engine.statistics.group_walk import group_walk
from proteoscope.engine.statistics.target_decoy import DecoyTail, q_values
from proteoscope.engine.statistics.transferred_fdr import minimum_share, transferred_rates

NO_LEADS = np.zeros(4)


def rates(score, is_decoy, peptide, group=None, advantages=NO_LEADS, **more):
    group = np.zeros(len(score), np.int64) if group is None else group
    more = {"plus_one": False, "decoy_ratio": 1.0, **more}
    more |= {"peptide": np.asarray(peptide), "advantages": advantages}
    return class_rates(np.asarray(score, float), np.asarray(is_decoy), group, **more)[0]


def drawn(random, n_true, n_false, copies):
    """Simulate true and false peptides with copies of similar scores; half of the false ones are decoys."""
    n = n_true + n_false
    centre = np.where(np.arange(n) < n_true, random.normal(6.0, 1.0, n), random.exponential(1.0, n))
    is_false = np.repeat(np.arange(n) >= n_true, copies)
    score = np.repeat(centre, copies) + random.normal(0, 0.1, n * copies)
    is_decoy = np.repeat((np.arange(n) >= n_true) & (random.random(n) < 0.5), copies)
    return score, is_decoy, is_false & ~is_decoy, np.repeat(np.arange(n), copies)


@pytest.mark.parametrize("copies", [1, 8])
def test_group_error_rates_are_correct_with_replicates(copies):
    random, false, accepted = np.random.default_rng(4), 0, 0
    for _ in range(100):
        score, is_decoy, is_false, peptide = drawn(random, 150, 150, copies)
        passes = (rates(score, is_decoy, peptide) <= 0.02) & ~is_decoy
        false, accepted = false + int(passes[is_false].sum()), accepted + int(passes.sum())
    assert accepted > 0 and false / accepted <= 0.02
    assert accepted / copies > 100 * 130  # true matches are still accepted


def test_group_error_rates_equal_the_definition():
    random = np.random.default_rng(7)
    n = 400
    score, is_decoy, peptide = random.integers(0, 40, n).astype(float), random.random(n) < 0.4, random.integers(0, 60, n)
    computed = rates(score, is_decoy, peptide, plus_one=True)
    for row in range(n):
        least = []
        for threshold in np.unique(score[score <= score[row]]):
            passing = [(int(peptide[i]), bool(is_decoy[i])) for i in range(n) if score[i] >= threshold]
            for of_level in (set(passing), passing):
                n_decoys = sum(match[1] for match in of_level)
                n_targets = len(of_level) - n_decoys
                least.append((of_level is passing, min(1.0, (n_decoys + 1) / n_targets) if n_targets else 1.0))
        by_level = [min(rate for is_match, rate in least if is_match == wanted) for wanted in (False, True)]
        assert computed[row] == pytest.approx(max(by_level))


def test_group_without_decoys_uses_decoys_of_all_groups():
    random = np.random.default_rng(2)
    decoys, named = random.exponential(1.0, 200), np.full(30, 6.0)
    score, is_decoy = np.concatenate((decoys, named)), np.arange(230) < 200
    group, peptide = np.where(is_decoy, 3, 1), np.arange(230)
    without_lead = rates(score, is_decoy, peptide, group)[200:]
    with_lead = rates(score, is_decoy, peptide, group, np.array([0.0, 4.0, 0.0, 0.0]))[200:]
    # One false peptide is expected at the median of decoys; the mean excess of their upper half is the decay of the tail.
    upper = sorted(decoys.tolist())[100:]
    median = (sorted(decoys.tolist())[99] + upper[0]) / 2
    spread = sum(score - median for score in upper) / 100
    assert without_lead == pytest.approx(np.exp(-(6.0 - median) / spread) / 30)
    assert with_lead[0] > 20 * without_lead[0]
    assert (rates(named, np.zeros(30, bool), np.arange(30)) >= 1 / 30).all()  # one false peptide is expected if the tail is unknown


def test_class_leads_equal_differences_of_decoy_medians():
    random = np.random.default_rng(3)
    group, is_decoy = random.integers(0, 3, 3000), random.random(3000) < 0.5
    score = random.normal(0, 1, 3000) + np.array([0.0, 2.0, -1.0])[group]
    advantages = class_advantages(score, is_decoy, group, 4)
    median = np.median(score[is_decoy])
    assert advantages.tolist() == pytest.approx(
        [max(0.0, np.median(score[is_decoy & (group == number)]) - median) for number in range(3)] + [0.0]
    )
    assert not class_advantages(np.empty(0), np.empty(0, bool), np.empty(0, np.int64), 4).any()


def matches_of_classes(random, *sizes):
    """Draw matches of classes with the given numbers of true and of false matches; return score, is_decoy, match_class and is_false."""
    score, is_false, number = [], [], []
    for match_class, (n_true, n_false) in enumerate(sizes):
        score += [random.normal(6.0, 1.5, n_true), random.exponential(1.0, n_false)]
        is_false += [np.zeros(n_true, bool), np.ones(n_false, bool)]
        number.append(np.full(n_true + n_false, match_class))
    false = np.concatenate(is_false)
    return np.concatenate(score), false & (random.random(len(false)) < 0.5), np.concatenate(number), false


def test_class_error_rate_method_depends_only_on_target_count():
    counts = {0: 5, 1: 100, 2: 99, 3: 20, 4: 19, 5: 0, 6: 130}
    match_class = np.concatenate([np.repeat(number, count + 8) for number, count in counts.items()])
    is_decoy = np.concatenate([np.arange(count + 8) >= count for count in counts.values()])
    methods = {0: "own decoys", 1: "group-walk", 2: "transferred", 3: "transferred", 4: "none", 5: "none", 6: "group-walk"}
    assert class_methods(is_decoy, match_class) == methods
    others = match_class < 6
    assert class_methods(is_decoy[others], match_class[others]) == {**{k: v for k, v in methods.items() if k < 6}, 1: "own decoys"}
    assert class_methods(np.zeros(3, bool), np.full(3, 4)) == {4: "own decoys"}  # the class is the whole list
    assert class_methods(np.empty(0, bool), np.empty(0, np.int64)) == {}


def test_class_rates_equal_q_values_of_each_class_and_method():
    random = np.random.default_rng(6)
    score, is_decoy, match_class, _ = matches_of_classes(random, (400, 300), (150, 200), (30, 40), (6, 12))
    for plus_one in (False, True):
        q_value, error = class_rates(score, is_decoy, match_class, plus_one=plus_one, decoy_ratio=1.0)
        tails = {k: DecoyTail.fit(score[is_decoy & (match_class == k)]) for k in range(3)}
        expected = np.concatenate([tails[k].at(score[match_class == k]) for k in range(3)])
        by_class = []
        for k in range(3):
            rows = np.flatnonzero(match_class == k)  # in the order of the classes
            by_class.append(q_values(score[rows], is_decoy[rows], plus_one=plus_one, expected=expected[rows]))
        walks = match_class < 2
        walked = group_walk(
            score[walks], is_decoy[walks], match_class[walks], expected=None if plus_one else expected[: np.count_nonzero(walks)]
        )
        assert q_value[walks] == pytest.approx(np.maximum(np.concatenate(by_class[:2]), walked))
        small = match_class == 2
        added = np.ones(len(score)) if plus_one else np.minimum(DecoyTail.fit(score[is_decoy]).at(score), 1.0)
        lowest = minimum_share(small[is_decoy])
        transferred = transferred_rates(score, is_decoy, small, added=added, lowest_share=lowest)
        assert q_value[small] == pytest.approx(np.maximum(by_class[2], transferred))
        assert np.isnan(q_value[match_class == 3]).all() and np.isnan(error[match_class == 3]).all()
        assert np.isfinite(error[match_class < 3]).all()


def test_single_class_rates_equal_rates_of_the_whole_list():
    random = np.random.default_rng(9)
    score, is_decoy, match_class, _ = matches_of_classes(random, (40, 60))
    peptide = np.arange(100) // 2
    best = np.array([max((i for i in range(100) if peptide[i] == k), key=lambda i: score[i]) for k in np.unique(peptide[is_decoy])])
    decoys = np.array([max(score[i] for i in range(100) if peptide[i] == k and is_decoy[i]) for k in np.unique(peptide[is_decoy])])
    at_once = np.count_nonzero(is_decoy) / len(best)
    expected = at_once * DecoyTail.fit(decoys).at(score)
    for number in (0, 5):
        computed, _ = class_rates(score, is_decoy, match_class + number, plus_one=False, decoy_ratio=1.0, peptide=peptide)
        assert computed == pytest.approx(q_values(score, is_decoy, expected=expected, at_once=at_once))


def test_class_rates_are_correct_unlike_whole_list_rates():
    random, accepted, proportions, listed = np.random.default_rng(12), np.zeros(3), [], np.zeros(2)
    for _ in range(120):
        score, is_decoy, match_class, is_false = matches_of_classes(random, (1500, 400), (60, 300), (20, 50))
        passes = (class_rates(score, is_decoy, match_class, plus_one=False, decoy_ratio=1.0)[0] <= 0.01) & ~is_decoy
        counts, false = (np.bincount(match_class[rows], minlength=3) for rows in (passes, passes & is_false))
        accepted += counts
        proportions.append(false / np.maximum(counts, 1))
        in_list = (q_values(score, is_decoy) <= 0.01) & ~is_decoy & (match_class > 0)
        listed += np.count_nonzero(in_list & is_false), np.count_nonzero(in_list)
    assert (accepted > 120 * np.array([1200, 15, 5])).all()
    mean, error = np.mean(proportions, axis=0), np.std(proportions, axis=0) / np.sqrt(120)
    assert (mean <= 0.01 + 2 * error).all() and (error < 0.005).all()
    assert listed[0] > 0.03 * listed[1]


@pytest.mark.parametrize("is_decoy", [True, False])
def test_class_rates_accept_all_decoy_and_all_target_classes(is_decoy):
    random = np.random.default_rng(2)
    score, decoys, match_class, _ = matches_of_classes(random, (300, 200), (0, 150), (0, 40))
    decoys[match_class > 0] = is_decoy
    q_value, error = class_rates(score, decoys, match_class, plus_one=False, decoy_ratio=1.0)
    if is_decoy:
        assert np.isnan(q_value[match_class > 0]).all()  # no target: no rate
    else:
        assert np.isfinite(q_value).all() and np.isfinite(error).all() and (q_value > 0).all()


def test_class_rates_of_no_matches_are_empty():
    rates = class_rates(
        np.empty(0), np.empty(0, bool), np.empty(0, np.int64), plus_one=False, decoy_ratio=1.0, peptide=np.empty(0, np.int64)
    )
    assert [len(column) for column in rates] == [0, 0]
