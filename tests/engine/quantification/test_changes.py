"""The moderated t-test equals its published formulas, written out protein by protein."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats

from proteoscope.engine.quantification.amounts import RawQuantities, State
from proteoscope.engine.quantification.changes import moderated_variances, protein_changes
from proteoscope.engine.quantification.design import Design, DesignRow, Sample
from proteoscope.engine.quantification.models import comparison_model
from proteoscope.engine.quantification.parameters import QuantificationParameters


def design(**conditions: int) -> Design:
    samples = [Sample(f"{name}{i}", name, i + 1) for name, n in conditions.items() for i in range(n)]
    return Design(tuple(samples), tuple(DesignRow(i, i) for i in range(len(samples))))


def compared(amounts: RawQuantities, plan: Design, **parameters):
    """Compare all conditions of a design."""
    return protein_changes(amounts, comparison_model(plan, plan.conditions), QuantificationParameters(**parameters))


def simulated(seed: int, n: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    deviation = np.sqrt(0.05 * 6 / rng.chisquare(6, n))
    return rng.normal(20, 3, n)[:, None] + rng.normal(size=(n, columns)) * deviation[:, None]


def test_moderated_variances_equal_the_published_formulas():
    rng = np.random.default_rng(1)
    degrees = rng.integers(1, 6, 500).astype(float)
    variance = 0.04 * rng.chisquare(degrees) / degrees * 5 / rng.chisquare(5, 500)
    moderated, prior = moderated_variances(variance, degrees)
    z = [np.log(s) - special.digamma(d / 2) + np.log(d / 2) for s, d in zip(variance, degrees, strict=True)]
    spread = np.var(z, ddof=1) - np.mean([special.polygamma(1, d / 2) for d in degrees])
    half = optimize.brentq(lambda x: special.polygamma(1, x) - spread, 1e-3, 1e6)
    s0 = np.exp(np.mean(z) + special.digamma(half) - np.log(half))
    assert prior == pytest.approx((2 * half, s0), rel=1e-6)
    np.testing.assert_allclose(moderated, (2 * half * s0 + degrees * variance) / (2 * half + degrees), rtol=1e-6)


def test_equal_variances_have_infinite_prior_degrees_of_freedom():
    moderated, prior = moderated_variances(np.full(50, 0.3), np.full(50, 4.0))
    assert np.isinf(prior.degrees)
    assert np.ptp(moderated) == 0


def test_moderated_t_p_interval_and_q_equal_the_formulas():
    logs = simulated(2, 300, 7)
    logs[:40, 3:] += 2.0
    plan = design(control=3, treated=4)
    (changes,) = compared(RawQuantities.from_values(2.0**logs), plan)
    variances = np.array([(3 - 1) * row[:3].var(ddof=1) + (4 - 1) * row[3:].var(ddof=1) for row in logs]) / 5
    drawn, prior = moderated_variances(variances, np.full(300, 5.0))
    difference = logs[:, 3:].mean(axis=1) - logs[:, :3].mean(axis=1)
    t = difference / np.sqrt(drawn * (1 / 3 + 1 / 4))
    p = 2 * stats.t.sf(np.abs(t), 5 + prior.degrees)
    np.testing.assert_allclose(changes.t, t, rtol=1e-6)
    np.testing.assert_allclose(changes.p_value, p, rtol=1e-6)
    order = np.argsort(p)
    q = np.minimum.accumulate((p[order] * 300 / np.arange(1, 301))[::-1])[::-1]
    np.testing.assert_allclose(changes.q_value[order], np.minimum(q, 1), rtol=1e-6)
    reach = stats.t.ppf(0.975, 5 + prior.degrees) * np.sqrt(drawn * (1 / 3 + 1 / 4))
    np.testing.assert_allclose(changes.high - changes.low, 2 * reach, rtol=1e-6)
    assert (changes.outcome[:40] == "changed").mean() > 0.8


def test_few_unchanged_proteins_are_significant():
    n_significant = tested = 0
    for seed in range(20):
        (changes,) = compared(RawQuantities.from_values(2.0 ** simulated(100 + seed, 200, 6)), design(a=3, b=3))
        n_significant, tested = n_significant + int((changes.p_value < 0.05).sum()), tested + changes.n_tested
    low, high = stats.binom.ppf((1e-4, 1 - 1e-4), tested, 0.05)
    assert low <= n_significant <= high


def test_values_are_imputed_only_against_two_or_more_values():
    logs = simulated(3, 50, 6)
    logs[0, :3], logs[1, 3:], logs[2] = np.nan, np.nan, np.nan
    logs[3, [0, 1, 2, 4, 5]] = np.nan  # one value
    logs[4, [0, 1, 2, 3]] = np.nan  # two values against none
    amounts = RawQuantities.from_values(2.0**logs)
    amounts.state[0, 0] = State.TOO_LOW
    plan = design(a=3, b=3)
    (changes,) = compared(amounts, plan)
    assert changes.outcome[:5].tolist() == ["only here", "only there", "absent", "only here", "only here"]
    assert np.isnan(changes.p_value[:5]).all()
    assert (changes.n_too_low[0], changes.n_not_seen[0], changes.n_imputed.sum()) == (1, 2, 0)
    (imputed,) = compared(amounts, plan, imputation="low")
    assert imputed.n_imputed[:6].tolist() == [3, 3, 0, 0, 3, 0]
    assert imputed.n_tested == 48 and imputed.outcome[3] == "only here"
    assert (imputed.n_first[0], imputed.n_second[0]) == (3, 0)


def test_imputed_values_do_not_change_the_variance():
    logs = simulated(4, 400, 6)
    logs[0, :3] = np.nan
    (changes,) = compared(RawQuantities.from_values(2.0**logs), design(a=3, b=3), imputation="low")
    degrees = np.where(np.arange(400) == 0, 2.0, 4.0)
    variances = np.array([np.nansum((row.reshape(2, 3) - [[np.nanmean(x)] for x in row.reshape(2, 3)]) ** 2) for row in logs[1:]]) / 4
    drawn, prior = moderated_variances(np.r_[logs[0, 3:].var(ddof=1), variances], degrees)
    low = np.mean([np.nanpercentile(logs[:, i], 1) for i in range(3)])
    spread = max(np.nanpercentile(logs[:, i], 2) - np.nanpercentile(logs[:, i], 1) for i in range(3))
    t = (logs[0, 3:].mean() - low) / np.sqrt(drawn[0] * (1 / 3 + 1 / 3) + spread**2)
    assert changes.t[0] == pytest.approx(t, rel=1e-6)
    assert changes.p_value[0] == pytest.approx(2 * stats.t.sf(abs(t), 2 + prior.degrees), rel=1e-6)


def test_values_are_imputed_separately_for_each_comparison():
    logs = simulated(5, 60, 9)
    logs[0, :6] = np.nan  # neither a nor b
    logs[1, :3] = np.nan  # only a
    comparisons = compared(RawQuantities.from_values(2.0**logs), design(a=3, b=3, c=3), imputation="low")
    assert [changes.n_imputed[:3].tolist() for changes in comparisons] == [[0, 3, 0], [3, 3, 0]]
    assert comparisons[0].outcome[0] == "absent"


def test_protein_with_one_value_in_a_condition_is_not_tested():
    logs = simulated(6, 200, 6)
    logs[0, [1, 2, 5]] = np.nan  # one against two
    logs[1, [1, 2]] = np.nan  # one against three
    logs[0, :3] += 5
    (changes,) = compared(RawQuantities.from_values(2.0**logs), design(a=3, b=3))
    assert changes.outcome[:2].tolist() == ["not tested"] * 2
    assert np.isnan(changes.p_value[:2]).all() and changes.n_tested == 198


def test_comparison_names_conditions_without_a_shared_ion():
    logs = simulated(7, 40, 4)
    logs[0, :2] = np.nan
    amounts = RawQuantities.from_values(2.0**logs)
    amounts.state[0, :2] = State.NO_SHARED_ION
    (changes,) = compared(amounts, design(a=2, b=2), imputation="low")
    assert changes.outcome[0] == "no shared ion" and changes.n_imputed[0] == 0
