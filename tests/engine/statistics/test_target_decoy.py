"""q-values against their definition, written out threshold by threshold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.statistics.target_decoy import best_by_group, false_share_interval, q_values

MATCHES = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=40)


def q_values_by_definition(score: list[int], is_decoy: list[bool], plus_one: bool) -> list[float]:
    def rate(threshold: int) -> float:
        targets = sum(1 for s, d in zip(score, is_decoy, strict=True) if s >= threshold and not d)
        decoys = sum(1 for s, d in zip(score, is_decoy, strict=True) if s >= threshold and d)
        return min((decoys + plus_one) / targets, 1.0) if targets else 1.0

    return [min(rate(threshold) for threshold in score if threshold <= s) for s in score]


@given(MATCHES, st.booleans())
def test_q_values_are_the_least_rate_of_the_thresholds_that_accept(matches: list[tuple[int, bool]], plus_one: bool) -> None:
    score, is_decoy = [m[0] for m in matches], [m[1] for m in matches]
    found = q_values(np.array(score, float), np.array(is_decoy, bool), plus_one=plus_one)
    np.testing.assert_allclose(found, q_values_by_definition(score, is_decoy, plus_one))


@given(MATCHES, st.integers(0, 1000))
def test_q_values_do_not_depend_on_the_order_of_rows(matches: list[tuple[int, bool]], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(matches))
    score, is_decoy = np.array([m[0] for m in matches], float), np.array([m[1] for m in matches], bool)
    np.testing.assert_array_equal(q_values(score, is_decoy)[order], q_values(score[order], is_decoy[order]))


def test_with_plus_one_fewer_than_a_hundred_targets_never_reach_one_per_cent() -> None:
    assert q_values(np.arange(99.0), np.zeros(99, bool), plus_one=True).min() > 0.01
    assert q_values(np.arange(100.0), np.zeros(100, bool), plus_one=True).max() == 0.01
    assert q_values(np.arange(99.0), np.zeros(99, bool)).max() == 0.0


def test_only_decoys_are_never_accepted_and_nothing_gives_nothing() -> None:
    assert (q_values(np.arange(5.0), np.ones(5, bool)) == 1).all()
    assert len(q_values(np.empty(0), np.empty(0, bool))) == 0


def test_infinite_scores_are_ranked_and_nan_is_refused() -> None:
    np.testing.assert_array_equal(q_values(np.array([-np.inf, np.inf]), np.array([True, False])), [1.0, 0.0])
    with pytest.raises(ValueError, match="NaN"):
        q_values(np.array([1.0, np.nan]), np.array([False, True]))
    with pytest.raises(ValueError, match="same length"):
        q_values(np.array([1.0]), np.array([False, True]))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), max_size=30))
def test_the_best_row_of_a_group_is_its_first_with_the_highest_score(rows: list[tuple[int, int]]) -> None:
    expected = {}
    for number, (group, score) in enumerate(rows):
        if group not in expected or score > rows[expected[group]][1]:
            expected[group] = number
    found = best_by_group(np.array([r[0] for r in rows], np.int64), np.array([r[1] for r in rows], float))
    assert found.tolist() == [expected[group] for group in sorted(expected)]


def at_most(k: int, n: int) -> Fraction:
    """Chance of at most k heads in n tosses, by the definition, in exact arithmetic."""
    return Fraction(sum(math.comb(n, i) for i in range(k + 1)), 2**n)


@given(st.integers(1, 60), st.integers(0, 40))
def test_the_interval_holds_the_numbers_of_false_ones_that_leave_a_fortieth_on_either_side(targets: int, decoys: int) -> None:
    low, high = false_share_interval(targets, decoys)
    likely = [
        n - decoys
        for n in range(decoys, 6 * decoys + 40)
        if at_most(decoys, n) > Fraction(1, 40) and 1 - (at_most(decoys - 1, n) if decoys else 0) > Fraction(1, 40)
    ]
    assert (low, high) == (min(1.0, likely[0] / targets), min(1.0, likely[-1] / targets))


@pytest.mark.parametrize("expected", [0.5, 3, 30, 300])
def test_the_interval_holds_the_true_share_in_95_of_100_runs(expected: float) -> None:
    """False targets and decoys are as many on average; the true ones do not matter."""
    rng = np.random.default_rng(1)
    held = []
    for false, decoys in rng.poisson(expected, (2_000, 2)).tolist():
        low, high = false_share_interval(1_000, decoys)
        held.append(low <= false / 1_000 <= high)
    assert np.mean(held) >= 0.945


def test_of_nothing_accepted_nothing_is_known() -> None:
    assert false_share_interval(0, 0) == (0.0, 1.0)
    assert false_share_interval(0, 7)[1] == 1.0
    with pytest.raises(ValueError, match="negative"):
        false_share_interval(-1, 0)
