"""Error rates of groups, counted by distinct peptides."""

import numpy as np
import pytest

from proteoscope.engine.matches.group_rates import group_leads, group_rates

NO_LEADS = np.zeros(4)


def rates(score, is_decoy, peptide, group=None, leads=NO_LEADS, **more):
    group = np.zeros(len(score), np.int64) if group is None else group
    more = {"plus_one": False, "decoy_ratio": 1.0, **more}
    return group_rates(np.asarray(score, float), np.asarray(is_decoy), np.asarray(peptide), group, leads, **more)[0]


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


def test_error_rate_of_group_without_decoys_uses_decoys_of_all_groups():
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


def test_score_leads_of_psm_groups_equal_differences_of_decoy_medians():
    random = np.random.default_rng(3)
    group, is_decoy = random.integers(0, 3, 3000), random.random(3000) < 0.5
    score = random.normal(0, 1, 3000) + np.array([0.0, 2.0, -1.0])[group]
    leads = group_leads(score, is_decoy, group, 4)
    median = np.median(score[is_decoy])
    assert leads.tolist() == pytest.approx(
        [max(0.0, np.median(score[is_decoy & (group == number)]) - median) for number in range(3)] + [0.0]
    )
    assert not group_leads(np.empty(0), np.empty(0, bool), np.empty(0, np.int64), 4).any()
