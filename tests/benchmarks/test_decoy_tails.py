"""The benchmark of decoy tails accepts the same numbers of matches as the program."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.decoy_tails import LEVELS, NOMINAL, RULES, SHAPES, accepted, draw_lists, figures, measure, outcome, summaries
from proteoscope.engine.identification.parameters import IdentificationParameters
from proteoscope.engine.matches.class_rates import class_rates
from proteoscope.engine.matches.tables import error_rates
from proteoscope.engine.statistics.target_decoy import expected_decoys, q_values


@pytest.mark.parametrize("number", range(0, len(SHAPES), 3))
@pytest.mark.parametrize("n_true", [8, 150])
def test_benchmark_accepts_as_many_matches_as_the_program(number: int, n_true: int) -> None:
    lists = draw_lists(np.random.default_rng(number), SHAPES[number], 20, n_true, 2 * n_true)
    for nominal in NOMINAL:
        by_rule = {rule: accepted(lists, rule, "added", nominal) for rule in ("plain", "plus_one", "median")}
        for row, (score, is_decoy) in enumerate(zip(lists.score, lists.is_decoy, strict=True)):
            expected = expected_decoys(score, is_decoy, score)
            assert by_rule["plain"][row] == (q_values(score, is_decoy) <= nominal).sum()
            assert by_rule["plus_one"][row] == (q_values(score, is_decoy, plus_one=True) <= nominal).sum()
            assert by_rule["median"][row] == (q_values(score, is_decoy, expected=expected) <= nominal).sum()


@pytest.mark.parametrize("n_true", [8, 60])
def test_benchmark_accepts_as_many_replicates_as_the_program(n_true: int) -> None:
    shape, settings = SHAPES[0], IdentificationParameters()
    lists = draw_lists(np.random.default_rng(3), shape, 20, n_true, 2 * n_true, copies=4)
    in_groups = accepted(lists, "median", "replicates_groups", 0.05)
    in_list = accepted(lists, "median", "replicates_added", 0.05)
    for row in range(20):
        used = np.isfinite(lists.score[row])
        score, is_decoy, peptide = lists.score[row][used], lists.is_decoy[row][used], lists.peptide[row][used]
        group = np.zeros(len(score), np.int64)
        actual, _ = class_rates(score, is_decoy, group, plus_one=False, decoy_ratio=1.0, peptide=peptide, advantages=np.zeros(1))
        assert (actual <= 0.05).sum() == in_groups[row]
        actual, _ = error_rates(score, is_decoy, settings, peptide=peptide)
        assert (actual <= 0.05).sum() == in_list[row]


def test_outcome_counts_true_and_false_targets() -> None:
    lists = draw_lists(np.random.default_rng(1), SHAPES[0], 3, 5, 5)
    actual = outcome(lists, np.array([0, 4, 10]))
    for row, n in enumerate((0, 4, 10)):
        targets = [bool(true) for true, decoy in zip(lists.is_true[row, :n], lists.is_decoy[row, :n], strict=True) if not decoy]
        assert actual.power[row] == sum(targets)
        assert actual.proportion[row] == pytest.approx(1 - sum(targets) / len(targets) if targets else 0.0)


def test_simulated_score_distributions_have_the_stated_tails() -> None:
    assert [sum(shape.part == part for shape in SHAPES) for part in ("choose", "confirm")] == [len(SHAPES) // 2] * 2
    for shape in SHAPES:
        depth = np.array([0.5, 1.0, 2.0, 4.0])
        actual = shape.survival(shape.scores(depth) + shape.step)
        assert (actual <= 10.0**-depth * 1.02).all()
        if not shape.step:
            assert actual == pytest.approx(10.0**-depth, rel=0.02)


def test_plain_rule_exceeds_the_nominal_rate_unlike_median_rule() -> None:
    actual = measure(np.random.default_rng(2), SHAPES[0], "added", 20, 600, ("plain", "median"))
    assert actual["plain", 0.01].proportion.mean() > 0.025
    assert actual["median", 0.01].proportion.mean() < 0.012


def test_decoy_tail_summaries_cover_every_rule() -> None:
    lines = list(figures(1, quick=True, levels=("added",), shapes=SHAPES[:2], sizes=(20,)))
    actual = list(summaries(lines))
    assert {line["rule"] for line in actual} == set(RULES) and {line["part"] for line in actual} == {"choose", "confirm"}
    assert LEVELS[1] == "added" and len(lines) == 4
