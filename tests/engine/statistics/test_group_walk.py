"""Group-walk, compared with a step-by-step walk of its definition, and on simulated groups."""

import numpy as np
import pytest

from proteoscope.engine.statistics.group_walk import group_walk, waiting_times
from proteoscope.engine.statistics.target_decoy import q_values


def plain_group_walk(score, is_decoy, group, window, expected, at_once, decoy_ratio):
    """Walk as in the paper; equal scores of a group are passed together, and of equally poor groups the shortest waiting time decides."""
    groups = sorted(set(group))
    first = {g: sum(other < g for other in group) for g in groups}
    times, level, waited = waiting_times(len(score)), window + 1, dict.fromkeys(groups, 0.0)
    rows = {g: sorted((i for i in range(len(score)) if group[i] == g), key=lambda i: (score[i], i)) for g in groups}
    passed, q_value, lowest = dict.fromkeys(groups, 0), np.ones(len(score)), 1.0
    while active := [g for g in groups if passed[g] < len(rows[g])]:
        above = [i for g in groups for i in rows[g][passed[g] :]]
        decoys = sum(is_decoy[i] for i in above)
        added = 1.0 if expected is None else min(sum(expected[rows[g][passed[g]]] for g in active), at_once)
        if len(above) > decoys:
            lowest = min(lowest, (decoys + added) / decoy_ratio / (len(above) - decoys))
        if any(passed[g] < window for g in active):
            chosen = min(active, key=lambda g: (passed[g], g))
        else:
            recent = {g: sum(is_decoy[i] for i in rows[g][passed[g] - window : passed[g]]) for g in active}
            if max(recent.values()) < level:
                level, waited = max(recent.values()), dict.fromkeys(groups, 0.0)
            poorest = [g for g in active if recent[g] > level]
            if not poorest:
                ends = {g: waited[g] + times[first[g] + passed[g]] / (len(rows[g]) - passed[g]) for g in active if recent[g] == level}
                poorest = [min(ends, key=ends.get)]
                waited[poorest[0]] = ends[poorest[0]]
            chosen = poorest[0]
        at = score[rows[chosen][passed[chosen]]]
        while passed[chosen] < len(rows[chosen]) and score[rows[chosen][passed[chosen]]] == at:
            q_value[rows[chosen][passed[chosen]]] = lowest
            passed[chosen] += 1
    return q_value


@pytest.mark.parametrize("window", [1, 3, 10, 40])
@pytest.mark.parametrize("rounded", [False, True])
def test_group_walk_equals_its_definition(window, rounded):
    random = np.random.default_rng(window)
    for case in range(30):
        n = int(random.integers(1, 160))
        group = random.integers(0, random.integers(1, 5), n)
        score = random.normal(size=n) + group
        score = np.round(score * random.choice([1, 3])) if rounded else score
        is_decoy = random.random(n) < random.uniform(0, 0.8)
        expected = None if case % 2 else np.exp(-score) * (1 + group)
        settings = {"expected": expected, "at_once": 2.0, "decoy_ratio": 0.5, "window": window}
        computed = group_walk(score, is_decoy, group, **settings)
        assert computed == pytest.approx(plain_group_walk(score, is_decoy, group, window, expected, 2.0, 0.5), rel=1e-9)


def test_group_walk_of_a_single_group_equals_plain_q_values():
    random = np.random.default_rng(1)
    score, is_decoy = random.integers(0, 90, 300).astype(float), random.random(300) < 0.3
    expected = np.exp(-score / 20) * 3
    for number in (0, 7):
        group = np.full(300, number)
        assert group_walk(score, is_decoy, group) == pytest.approx(q_values(score, is_decoy, plus_one=True))
        walked = group_walk(score, is_decoy, group, expected=expected, at_once=1.5)
        assert walked == pytest.approx(q_values(score, is_decoy, expected=expected, at_once=1.5))


def test_group_walk_controls_fdr_when_group_scores_differ():
    random, proportions, powers = np.random.default_rng(5), [], {"walk": 0, "list": 0}
    for _ in range(300):
        n_true, n_false, shift = np.array([600, 40, 10]), np.array([200, 400, 1200]), np.array([0.0, 0.5, 1.0])
        group = np.concatenate((np.repeat(np.arange(3), n_true), np.repeat(np.arange(3), n_false)))
        is_false = np.arange(len(group)) >= n_true.sum()
        score = np.where(is_false, random.exponential(1.0, len(group)) + shift[group], random.normal(6.0, 1.5, len(group)))
        is_decoy = is_false & (random.random(len(group)) < 0.5)
        accepted = (group_walk(score, is_decoy, group) <= 0.05) & ~is_decoy
        proportions.append(is_false[accepted].sum() / max(accepted.sum(), 1))
        powers["walk"] += accepted.sum()
        powers["list"] += ((q_values(score, is_decoy, plus_one=True) <= 0.05) & ~is_decoy).sum()
    assert np.mean(proportions) <= 0.05 + 2 * np.std(proportions) / np.sqrt(len(proportions))
    assert powers["walk"] > 1.02 * powers["list"]


def test_group_walk_accepts_empty_input_and_rejects_nan():
    assert len(group_walk(np.empty(0), np.empty(0, bool), np.empty(0, np.int64))) == 0
    with pytest.raises(ValueError, match="NaN"):
        group_walk(np.array([1.0, np.nan]), np.zeros(2, bool), np.zeros(2, np.int64))
    assert group_walk(np.arange(5.0), np.ones(5, bool), np.zeros(5, np.int64)).tolist() == [1.0] * 5
