"""Competition of targets with several decoys, against plain loops, and on simulated lists with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.statistics.multiple_competition import competition_q_values


def plain_q_values(score, is_decoy, hypothesis, n_decoys):
    """Compute q-values by the formula, from the wins at or above each threshold."""
    winners = []
    for true_hypothesis in set(hypothesis.tolist()):
        rows = [i for i in range(len(score)) if hypothesis[i] == true_hypothesis]
        best = max(score[i] for i in rows)
        winners.append((best, any(is_decoy[i] for i in rows if score[i] == best), 1 / n_decoys[rows[0]]))

    def rate(threshold):
        above = [(decoy, weight) for best, decoy, weight in winners if best >= threshold]
        targets = sum(not decoy for decoy, _ in above)
        false = max(weight for _, weight in above) + sum(weight for decoy, weight in above if decoy)
        return min(1.0, false / targets) if targets else 1.0

    return [min(rate(threshold) for threshold in score if threshold <= value) for value in score]


@pytest.mark.parametrize("levels", [6, 1000])
@pytest.mark.parametrize("most_decoys", [1, 9])
def test_competition_q_values_equal_reference_loops(levels, most_decoys):
    random = np.random.default_rng(levels + most_decoys)
    for n in (1, 7, 60):
        score, is_decoy = random.integers(0, levels, n).astype(float), random.random(n) < 0.4
        hypothesis = random.integers(0, 20, n)
        n_decoys = random.integers(1, most_decoys + 1, 20).astype(float)[hypothesis]
        expected = plain_q_values(score, is_decoy, hypothesis, n_decoys)
        assert competition_q_values(score, is_decoy, hypothesis, n_decoys) == pytest.approx(expected)
        order = random.permutation(n)
        shuffled = competition_q_values(score[order], is_decoy[order], hypothesis[order], n_decoys[order])
        assert shuffled == pytest.approx(np.array(expected)[order])


def test_competition_q_values_of_empty_list_are_empty():
    nothing = np.empty(0)
    assert len(competition_q_values(nothing, nothing.astype(bool), nothing.astype(np.int64), nothing)) == 0


def test_acceptance_at_1_percent_needs_a_hundred_decoys():
    for n, n_decoys, passes in ((99, 1, False), (100, 1, True), (9, 10, False), (10, 10, True)):
        q_value = competition_q_values(np.linspace(1, 2, n), np.zeros(n, bool), np.arange(n), np.full(n, float(n_decoys)))
        assert (q_value <= 0.01).all() == passes


def false_shares(random, draw, n_true, n_false, n_decoys, level, trials):
    """Return the share of false hypotheses among accepted ones, in lists whose false targets are drawn like their decoys."""
    shares, accepted = [], 0
    for _ in range(trials):
        decoys = np.broadcast_to(n_decoys, n_true + n_false)
        scores = [draw(random, 1 + int(d)) for d in decoys]
        for row in range(n_true):
            scores[row][0] += 4.0
        hypothesis = np.repeat(np.arange(n_true + n_false), [len(score) for score in scores])
        is_decoy = np.concatenate([np.arange(len(scores_of_match)) > 0 for scores_of_match in scores])
        q_value = competition_q_values(np.concatenate(scores), is_decoy, hypothesis, decoys.astype(float)[hypothesis])
        # A target is accepted if it wins its own competition.
        wins = np.array([scores_of_match[0] > scores_of_match[1:].max() for scores_of_match in scores])
        passes = wins & (q_value[~is_decoy] <= level)
        shares.append(passes[n_true:].sum() / max(1, passes.sum()))
        accepted += passes.sum()
    return np.array(shares), accepted / trials


def independent(random, n):
    return random.exponential(1.0, n)


def dependent(random, n):
    """Return strongly correlated scores of a hypothesis, like those of decoys that share most peaks of their entry."""
    return random.exponential(2.0) + random.exponential(0.1, n)


@pytest.mark.parametrize("draw", [independent, dependent])
@pytest.mark.parametrize("n_decoys", [1, 4, 20])
@pytest.mark.parametrize("counts", [(0, 40), (30, 60), (150, 150)])
def test_competition_q_values_control_the_fdr(draw, n_decoys, counts):
    random = np.random.default_rng(5)
    shares, _ = false_shares(random, draw, *counts, n_decoys, 0.1, 120)
    assert shares.mean() <= 0.1 + 2.5 * shares.std() / np.sqrt(len(shares))


def test_competition_q_values_control_fdr_for_unequal_decoys():
    random = np.random.default_rng(6)
    n_decoys = np.where(np.arange(120) % 3 == 0, 2, 12)
    shares, accepted = false_shares(random, dependent, 40, 80, n_decoys, 0.1, 200)
    assert shares.mean() <= 0.1 + 2.5 * shares.std() / np.sqrt(len(shares))
    assert accepted > 20 and shares.mean() > 0.01  # the test needs some false acceptances


def test_more_decoys_allow_acceptance_in_small_lists():
    random = np.random.default_rng(7)
    power = [false_shares(random, independent, 30, 10, n, 0.01, 100)[1] for n in (1, 20)]
    assert power[0] == 0 and power[1] > 5
