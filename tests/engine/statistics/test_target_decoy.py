"""q-values against their definition, written out threshold by threshold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proteoscope.engine.statistics.target_decoy import ScoreScale, best_by_group, expected_decoys, false_share_interval, q_values

MATCHES = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=40)


def q_values_by_definition(score: list[int], is_decoy: list[bool], plus_one: bool) -> list[float]:
    def rate(threshold: int) -> float:
        targets = sum(1 for s, d in zip(score, is_decoy, strict=True) if s >= threshold and not d)
        decoys = sum(1 for s, d in zip(score, is_decoy, strict=True) if s >= threshold and d)
        return min((decoys + plus_one) / targets, 1.0) if targets else 1.0

    return [min(rate(threshold) for threshold in score if threshold <= s) for s in score]


@given(MATCHES, st.booleans())
def test_q_value_is_the_lowest_fdr_that_accepts_the_match(matches: list[tuple[int, bool]], plus_one: bool) -> None:
    score, is_decoy = [m[0] for m in matches], [m[1] for m in matches]
    q = q_values(np.array(score, float), np.array(is_decoy, bool), plus_one=plus_one)
    np.testing.assert_allclose(q, q_values_by_definition(score, is_decoy, plus_one))


@given(MATCHES, st.integers(0, 1000))
def test_q_values_do_not_depend_on_the_order_of_rows(matches: list[tuple[int, bool]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(matches))
    score, is_decoy = np.array([m[0] for m in matches], float), np.array([m[1] for m in matches], bool)
    np.testing.assert_array_equal(q_values(score, is_decoy)[order], q_values(score[order], is_decoy[order]))


@given(MATCHES, st.booleans())
def test_q_values_scale_counts_of_incomplete_decoys(matches: list[tuple[int, bool]], plus_one: bool) -> None:
    score, is_decoy = [m[0] for m in matches], [m[1] for m in matches]
    rates = q_values(np.array(score, float), np.array(is_decoy, bool), plus_one=plus_one, decoy_ratio=0.25)

    def rate(threshold: int) -> float:
        targets = sum(1 for s, d in zip(score, is_decoy, strict=True) if s >= threshold and not d)
        decoys = sum(1 for s, d in zip(score, is_decoy, strict=True) if s >= threshold and d)
        return min(4 * (decoys + plus_one) / targets, 1.0) if targets else 1.0

    np.testing.assert_allclose(rates, [min(rate(threshold) for threshold in score if threshold <= s) for s in score])


@pytest.mark.parametrize("ratio", [0.25, 0.5, 1.0, 2.0])
def test_false_share_interval_covers_truth_at_any_decoy_ratio(ratio: float) -> None:
    generator, n_false, held = np.random.default_rng(5), 40, 0
    for _ in range(600):
        decoys = int(generator.binomial(n_false, ratio / (1 + ratio)))
        low, high = false_share_interval(1000, decoys, ratio)
        held += low <= (n_false - decoys) / 1000 <= high
    assert held >= 0.95 * 600 - 3 * math.sqrt(600 * 0.95 * 0.05)


def test_q_values_add_at_most_one_expected_decoy() -> None:
    score, is_decoy = np.array([9.0, 8.0, 7.0, 6.0, 5.0]), np.array([False, False, False, True, False])
    q = q_values(score, is_decoy, expected=np.array([0.1, 0.2, 0.6, 0.9, 1.6]))
    np.testing.assert_allclose(q, [0.1, 0.1, 0.2, 0.5, 0.5])  # rates 0.1, 0.2 / 2, 0.6 / 3, 1.9 / 3 and 2 / 4
    q = q_values(score, is_decoy, expected=np.array([0.1, 1.2, 3.6, 3.9, 4.0]))
    np.testing.assert_allclose(q, [0.1, 1 / 3, 1 / 3, 0.5, 0.5])  # rates 0.1, 1 / 2, 1 / 3, 2 / 3 and 2 / 4
    np.testing.assert_allclose(q_values(score, is_decoy, expected=np.zeros(5)), q_values(score, is_decoy))


@given(MATCHES, st.floats(0, 20), st.floats(1, 5))
def test_q_values_with_expected_decoys_equal_the_definition(matches: list[tuple[int, bool]], level: float, at_once: float) -> None:
    def rate(threshold: int) -> float:
        targets = sum(1 for s, d in matches if s >= threshold and not d)
        decoys = sum(1 for s, d in matches if s >= threshold and d) + min(at_once, level * math.exp(-threshold))
        return min(decoys / targets, 1.0) if targets else 1.0

    score, is_decoy = np.array([m[0] for m in matches], float), np.array([m[1] for m in matches], bool)
    q = q_values(score, is_decoy, expected=level * np.exp(-score), at_once=at_once)
    np.testing.assert_allclose(q, [min(rate(t) for t, _ in matches if t <= s) for s, _ in matches])


@given(MATCHES, st.floats(0, 20))
def test_expected_decoy_q_values_are_between_plain_and_plus_one(matches: list[tuple[int, bool]], level: float) -> None:
    score, is_decoy = np.array([m[0] for m in matches], float), np.array([m[1] for m in matches], bool)
    expected = level * np.exp(-score)
    measured, cautious = q_values(score, is_decoy, expected=expected), q_values(score, is_decoy, plus_one=True)
    assert (measured >= q_values(score, is_decoy)).all() and (measured <= cautious).all()
    np.testing.assert_array_equal(q_values(score, is_decoy, plus_one=True, expected=expected), cautious)


@given(MATCHES, st.integers(1, 6), st.floats(0, 20))
def test_q_values_do_not_depend_on_copies_of_a_run(matches: list[tuple[int, bool]], copies: int, level: float) -> None:
    score, is_decoy = np.array([m[0] for m in matches], float), np.array([m[1] for m in matches], bool)
    alone = q_values(score, is_decoy, expected=level * np.exp(-score))
    score, is_decoy = np.repeat(score, copies), np.repeat(is_decoy, copies)
    copied = q_values(score, is_decoy, expected=copies * level * np.exp(-score), at_once=copies)
    np.testing.assert_allclose(copied, np.repeat(alone, copies), atol=1e-300)


@pytest.mark.parametrize("n_right", [150, 400])
def test_q_values_control_1_percent_fdr_in_long_lists(n_right: int) -> None:
    """Check long lists. The plain ratio uses the most favourable threshold: at a nominal 1 %, more matches are false."""
    generator, measured, plain, cautious = np.random.default_rng(4), np.zeros(2), np.zeros(2), np.zeros(2)
    for _ in range(150_000 // n_right):
        is_right = np.arange(3 * n_right) < n_right
        score = np.where(is_right, generator.normal(8.0, 2.0, len(is_right)), generator.gumbel(0.0, 0.8, len(is_right)))
        is_decoy = ~is_right & (generator.random(len(is_right)) < 0.5)
        tail = expected_decoys(score, is_decoy, score)
        for rates, counts in (
            (q_values(score, is_decoy, expected=tail), measured),
            (q_values(score, is_decoy), plain),
            (q_values(score, is_decoy, plus_one=True), cautious),
        ):
            accepted = (rates <= 0.01) & ~is_decoy
            counts += np.count_nonzero(accepted & ~is_right), np.count_nonzero(accepted)
    assert measured[0] / measured[1] < 0.0105
    assert plain[0] / plain[1] > 0.011
    assert plain[1] > measured[1] > cautious[1]


@pytest.mark.parametrize("n", [30, 100, 1000])
def test_expected_decoys_agree_with_simulated_samples(n: int) -> None:
    """Compare the mean estimate at a high score with the truth, for exponential tails like those of best scores."""
    generator, at = np.random.default_rng(11), np.array([np.log(2.0) + 3.0])
    results = [expected_decoys(generator.exponential(size=n), np.ones(n, bool), at)[0] for _ in range(3000)]
    assert np.mean(results) == pytest.approx(n * np.exp(-at[0]), rel=0.35 if n == 30 else 0.15)


def test_expected_decoys_use_prior_score_scale_for_few_decoys() -> None:
    at, scale = np.array([0.0, 1.0, 5.0]), ScoreScale(1.0, 1.0, 3.0)
    np.testing.assert_allclose(expected_decoys(np.empty(0), np.empty(0, bool), at, scale), [0.5, 0.5, 0.5 * np.exp(-4.0)])
    np.testing.assert_array_equal(expected_decoys(np.zeros(3), np.ones(3, bool), at), np.ones(3))
    far, near = (expected_decoys(np.array([value]), np.ones(1, bool), at, scale) for value in (9.0, 1.5))
    assert far[2] > 10 * near[2], "a distant decoy widens the tail"


def test_q_values_control_1_percent_fdr_in_short_lists() -> None:
    """Check that at most 1.5 % are false on average at a reported 1 %, but more than 2 % with a cut at the first decoy.

    Each of many runs has thirty correct answers among many spectra, and false scores drawn as the best of several.
    """
    generator, measured, plain, nulls = np.random.default_rng(3), np.zeros(2), np.zeros(2), 0
    for _ in range(1500):
        is_right = np.arange(120) < 30
        false = generator.gumbel(0.0, 0.8, 120)
        score, is_decoy = np.where(is_right, generator.normal(8.0, 2.0, 120), false), ~is_right & (generator.random(120) < 0.5)
        for of, counts in ((expected_decoys(score, is_decoy, score), measured), (None, plain)):
            accepted = (q_values(score, is_decoy, expected=of) <= 0.01) & ~is_decoy
            counts += np.count_nonzero(accepted & ~is_right), np.count_nonzero(accepted)
        label = generator.random(120) < 0.5
        nulls += np.count_nonzero((q_values(false, label, expected=expected_decoys(false, label, false)) <= 0.01) & ~label)
    assert measured[0] / measured[1] < 0.015 and measured[1] > 0.85 * plain[1]
    assert plain[0] / plain[1] > 0.02
    assert nulls / 1500 < 0.05


def test_q_values_with_plus_one_need_100_targets_for_1_percent() -> None:
    assert q_values(np.arange(99.0), np.zeros(99, bool), plus_one=True).min() > 0.01
    assert q_values(np.arange(100.0), np.zeros(100, bool), plus_one=True).max() == 0.01
    assert q_values(np.arange(99.0), np.zeros(99, bool)).max() == 0.0


def test_q_values_are_one_if_all_matches_are_decoys() -> None:
    assert (q_values(np.arange(5.0), np.ones(5, bool)) == 1).all()
    assert len(q_values(np.empty(0), np.empty(0, bool))) == 0


def test_q_values_accept_infinite_scores_and_reject_nan() -> None:
    np.testing.assert_array_equal(q_values(np.array([-np.inf, np.inf]), np.array([True, False])), [1.0, 0.0])
    with pytest.raises(ValueError, match="NaN"):
        q_values(np.array([1.0, np.nan]), np.array([False, True]))
    with pytest.raises(ValueError, match="same length"):
        q_values(np.array([1.0]), np.array([False, True]))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), max_size=30))
def test_best_row_of_a_group_is_the_first_maximum(rows: list[tuple[int, int]]) -> None:
    expected = {}
    for number, (group, score) in enumerate(rows):
        if group not in expected or score > rows[expected[group]][1]:
            expected[group] = number
    result = best_by_group(np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], float))
    assert result.tolist() == [expected[group] for group in sorted(expected)]


def at_most(k: int, n: int) -> Fraction:
    """Return the probability of at most k heads in n tosses, by definition, in exact arithmetic."""
    return Fraction(sum(math.comb(n, i) for i in range(k + 1)), 2**n)


@given(st.integers(1, 60), st.integers(0, 40))
def test_false_share_interval_excludes_2_5_percent_on_each_side(targets: int, decoys: int) -> None:
    low, high = false_share_interval(targets, decoys)
    likely = [
        n - decoys
        for n in range(decoys, 6 * decoys + 40)
        if at_most(decoys, n) > Fraction(1, 40) and 1 - (at_most(decoys - 1, n) if decoys else 0) > Fraction(1, 40)
    ]
    assert (low, high) == (min(1.0, likely[0] / targets), min(1.0, likely[-1] / targets))


@pytest.mark.parametrize("expected", [0.5, 3, 30, 300])
def test_false_share_interval_covers_the_truth_in_95_of_100_runs(expected: float) -> None:
    """Check false targets and decoys, which are equally many on average; the true ones do not matter."""
    rng = np.random.default_rng(1)
    held = []
    for false, decoys in rng.poisson(expected, (2_000, 2)).tolist():
        low, high = false_share_interval(1_000, decoys)
        held.append(low <= false / 1_000 <= high)
    assert np.mean(held) >= 0.945


def test_false_share_interval_is_0_to_1_without_accepted_targets() -> None:
    assert false_share_interval(0, 0) == (0.0, 1.0)
    assert false_share_interval(0, 7)[1] == 1.0
    with pytest.raises(ValueError, match="negative"):
        false_share_interval(-1, 0)
