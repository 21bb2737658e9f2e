"""Protein quantities from peptide quantities, checked against the written-out definitions."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import least_squares

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.isotopes import element_counts, isotope_patterns, sequence_elements
from proteoscope.engine.chemistry.modifications import unimod
from proteoscope.engine.quantification import amounts
from proteoscope.engine.quantification.amounts import (
    Grouping,
    RawQuantities,
    State,
    group_medians,
    level_amounts,
    normalisation_factors,
    pairwise_amounts,
    protein_amounts,
    ratio_amounts,
)
from proteoscope.engine.quantification.spectral_counts import abundance_factors
from proteoscope.engine.spectra import spooling
from tests.engine.quantification.synthetic_runs import averaged_pattern, random_peptides


def random_amounts(seed: int, n: int, s: int, missing: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    value = rng.lognormal(10, 2, (n, 1)) * rng.lognormal(0, 1, (1, s)) * rng.lognormal(0, 0.2, (n, s))
    value[rng.random((n, s)) < missing] = np.nan
    return value


def minimised(value: np.ndarray) -> np.ndarray:
    """Return MaxLFQ quantities by minimising their sum of squares with a general solver, for samples that are all connected."""
    pairs = []
    for i, j in combinations(range(value.shape[1]), 2):
        ratios = [np.log(a / b) for a, b in zip(value[:, i], value[:, j], strict=True) if not np.isnan(a + b)]
        if ratios:
            pairs.append((i, j, float(np.median(ratios))))
    logs = least_squares(lambda x: [x[i] - x[j] - r for i, j, r in pairs] + [x.sum()], np.zeros(value.shape[1])).x
    return np.exp(logs) * np.nansum(value) / np.exp(logs).sum()


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_pairwise_amounts_minimise_the_sum_of_squares(missing):
    values = [random_amounts(seed, n, 5, missing) for seed, n in ((1, 12), (2, 3 if not missing else 9), (3, 20))]
    offsets = segment_offsets(np.array([len(ions) for ions in values]))
    quantities = pairwise_amounts(np.concatenate(values), offsets)
    for ions, quantity in zip(values, quantities, strict=True):
        np.testing.assert_allclose(quantity, minimised(ions), rtol=1e-5)


def test_pairwise_amounts_are_missing_without_shared_ions():
    value = np.array([[4.0, 2.0, 8.0, np.nan, np.nan, np.nan], [np.nan, np.nan, np.nan, 10.0, 30.0, np.nan]])
    quantities = pairwise_amounts(value, np.array([0, 2, 2]))
    np.testing.assert_allclose(quantities[0], [4.0, 2.0, 8.0, np.nan, np.nan, np.nan])  # the larger set of connected samples is used
    assert np.isnan(quantities[1]).all()
    equal = pairwise_amounts(np.where(np.isnan(value), np.nan, value)[:, [0, 1, 3, 4]], np.array([0, 2]))
    np.testing.assert_allclose(equal[0], [np.nan, np.nan, 10.0, 30.0])  # of sets of equal size, the more abundant one is used


def test_pairwise_amounts_follow_chains_of_shared_ions():
    value = np.array([[4.0, 2.0, np.nan], [np.nan, 10.0, 30.0]])
    quantities = pairwise_amounts(value, np.array([0, 2]))[0]
    np.testing.assert_allclose([quantities[0] / quantities[1], quantities[2] / quantities[1]], [2.0, 3.0])


def by_definition(value: np.ndarray) -> np.ndarray:
    """Return log2 ratios to the first sample of a group of ions from the solver; NaN for samples without an ion."""
    quantities = np.where(np.isnan(value).all(axis=0), np.nan, minimised(value))
    return np.log2(quantities / quantities[0])


@pytest.mark.parametrize("by", ["maxlfq", "top-3", "sum", "median"])
def test_level_amounts_do_not_depend_on_missing_charge_states(by):
    rng = np.random.default_rng(8)
    form, sequence, protein = np.repeat(np.arange(40), 3), np.arange(40) // 2, np.zeros(20, np.int64)
    ions = rng.lognormal(10, 2, (120, 1)) * np.array([1.0, 3.0, 0.5, 2.0])
    missing = rng.random(ions.shape) < 0.4
    missing[::3] = False  # one charge of each peptidoform is in all samples
    ions[missing] = np.nan
    levels = level_amounts(RawQuantities.from_values(ions), Grouping(form, sequence, protein, 1), by)
    for level in levels:
        np.testing.assert_allclose(level.value / level.value[:, :1], np.tile([1.0, 3.0, 0.5, 2.0], (len(level), 1)), rtol=1e-6)


def test_peptidoform_and_protein_amounts_equal_definition():
    value = random_amounts(9, 18, 5, 0.3)
    value[:, 0] = np.where(np.isnan(value[:, 0]), 1e4, value[:, 0])
    form, sequence = np.repeat(np.arange(6), 3), np.repeat(np.arange(2), 3)
    levels = level_amounts(RawQuantities.from_values(value), Grouping(form, sequence, np.zeros(2, np.int64), 1), "maxlfq")
    for row in range(6):
        np.testing.assert_allclose(
            np.log2(levels.forms.value[row] / levels.forms.value[row, 0]), by_definition(value[form == row]), atol=1e-4
        )
    np.testing.assert_allclose(np.log2(levels.proteins.value[0] / levels.proteins.value[0, 0]), by_definition(value), atol=1e-4)


def test_level_amounts_of_plexes_equal_each_plex_alone():
    value, form = random_amounts(10, 30, 6, 0.3), np.arange(30) // 3
    value[::3, 3:], value[1::3, :3], value[2::3] = np.nan, np.nan, np.nan  # no ion is in both plexes
    plexes, grouping = np.array([0, 1, 0, 1, 0, 1]), Grouping(form, np.arange(10), np.zeros(10, np.int64), 1)
    mixed = np.argsort(np.argsort(plexes, kind="stable"), kind="stable")
    quantities = level_amounts(RawQuantities.from_values(value[:, mixed]), grouping, "maxlfq", plexes).proteins.value[0]
    alone = [
        level_amounts(RawQuantities.from_values(value[:, rows]), grouping, "maxlfq").proteins.value[0] for rows in (slice(3), slice(3, 6))
    ]
    np.testing.assert_array_equal(quantities, np.concatenate(alone)[mixed])
    assert np.isnan(level_amounts(RawQuantities.from_values(value), grouping, "maxlfq").proteins.value[0]).sum() == 3


def test_ratio_amounts_mark_samples_without_a_shared_ion():
    value = np.array([[4.0, 2.0, 3.0, np.nan], [np.nan, np.nan, np.nan, 9.0], [5.0, np.nan, np.nan, 7.0]])
    quantities = ratio_amounts(RawQuantities.from_values(value), np.array([0, 0, 1]), 2)
    assert quantities.state.tolist() == [[State.MEASURED] * 3 + [State.NO_SHARED_ION], [0, State.NOT_SEEN, State.NOT_SEEN, 0]]
    np.testing.assert_array_equal(quantities.value[1], value[2])  # a single ion is unchanged


@pytest.mark.parametrize("missing", [0.2, 0.9])
def test_pairwise_amounts_of_many_samples_equal_a_general_solver(missing):
    n = 60
    value = random_amounts(9, 12, n, missing)
    value[:, 1:] = np.where(np.isnan(value[:, 1:]) & (np.arange(n - 1) < 3), value[:, :1], value[:, 1:])
    quantities = pairwise_amounts(value, np.array([0, 12]))[0]
    used = np.flatnonzero(~np.isnan(quantities))
    rows, right = [], []
    for i, j in combinations(used.tolist(), 2):
        ratios = np.log(value[:, i] / value[:, j])
        if not np.isnan(ratios).all():
            rows.append((np.arange(n) == i).astype(float) - (np.arange(n) == j))
            right.append(np.nanmedian(ratios))
    logs = np.linalg.lstsq(np.array(rows)[:, used], np.array(right), rcond=None)[0]
    assert len(used) > 20
    np.testing.assert_allclose(quantities[used], np.exp(logs) * np.nansum(value[:, used]) / np.exp(logs).sum(), rtol=1e-10)


def test_pairwise_amounts_of_a_long_chain_equal_its_ratios():
    ratios = np.random.default_rng(3).lognormal(0, 0.5, 300)
    value = np.full((300, 301), np.nan)
    value[np.arange(300), np.arange(300)], value[np.arange(300), np.arange(1, 301)] = 1.0, ratios
    quantities = pairwise_amounts(value, np.array([0, 300]))[0]
    np.testing.assert_allclose(quantities[1:] / quantities[:-1], ratios, rtol=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("by", ["maxlfq", "top-3", "sum", "median"])
@pytest.mark.parametrize("plexes", [None, np.array([0, 1, 0, 0, 1, 1, 0])], ids=["one plex", "two plexes"])
def test_amounts_are_equal_in_memory_and_on_disk(plexes, by, missing, tmp_path, monkeypatch):
    ions, factor = random_amounts(4, 40, 7, missing), np.arange(1, 8) / 4
    grouping = Grouping(np.arange(40) // 2, np.arange(20) // 2, np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, -1]), 4)
    expected = level_amounts(RawQuantities.from_values(ions * factor), grouping, by, plexes)
    for name, value in (("MAXIMUM_BYTES_IN_MEMORY", 0), ("_BLOCK_VALUES", 20)):
        monkeypatch.setattr(spooling, name, value)
    monkeypatch.setattr(amounts, "_VALUES_OF_BATCH", 30)
    spooled = spooling.full_matrix(ions.shape, np.nan, np.float64, tmp_path)
    spooled[:] = ions
    spooling.release_pages(spooled)
    levels = level_amounts(RawQuantities.from_values(spooled), grouping, by, plexes, factor=factor, spool=tmp_path)
    for level, other in zip(levels, expected, strict=True):
        np.testing.assert_array_equal(level.value, other.value)
        np.testing.assert_array_equal(level.state, other.state)
    levels.forms.scale(factor)
    np.testing.assert_array_equal(levels.forms.value, expected.forms.value * factor)
    assert not list(tmp_path.iterdir())
    logs = np.log(ions[~np.isnan(ions).any(axis=1)])
    shift = np.median(logs - logs.mean(axis=1, keepdims=True), axis=0)
    assert len(logs) > 2 or missing
    if not missing:
        np.testing.assert_allclose(normalisation_factors(spooled), np.exp(shift.mean() - shift), rtol=1e-12)


def test_pairwise_amounts_ignore_one_outlier_peptide():
    value = np.array([[1.0, 2.0], [10.0, 20.0], [5.0, 10.0], [100.0, 1.0], [3.0, 6.0]])
    quantities = pairwise_amounts(value, np.array([0, 5]))[0]
    assert quantities[1] / quantities[0] == pytest.approx(2.0)


def test_group_medians_equal_numpy():
    rng = np.random.default_rng(4)
    value, group = rng.normal(size=500), rng.integers(0, 40, 500)
    value[rng.random(500) < 0.2] = np.nan
    expected = [np.nanmedian(value[group == g]) if (~np.isnan(value[group == g])).any() else np.nan for g in range(41)]
    np.testing.assert_array_equal(group_medians(value, group, 41), expected)


def test_top_3_amounts_use_the_same_peptides_in_all_samples():
    peptides = RawQuantities.from_values(np.array([[1.0, 50.0], [9.0, 8.0], [7.0, 6.0], [100.0, np.nan], [5.0, 5.0]]))
    grouping = Grouping(np.arange(5), np.arange(5), np.array([0, 0, 0, 0, -1]), 2)
    top = protein_amounts(peptides, peptides, grouping, "top-3")
    np.testing.assert_allclose(top.value, [[110.0, 58.0], [np.nan, np.nan]])
    np.testing.assert_allclose(protein_amounts(peptides, peptides, grouping, "sum").value[0], [117.0, 64.0])
    np.testing.assert_allclose(protein_amounts(peptides, peptides, grouping, "median").value[0], [8.0, 8.0])


def test_summed_quantities_retain_the_reason_of_missing_values():
    value = np.array([[1.0, np.nan], [np.nan, np.nan], [2.0, np.nan]])
    state = np.array([[State.TRANSFERRED, State.TOO_LOW], [State.NOT_SEEN] * 2, [State.MEASURED, State.NOT_SEEN]], np.int8)
    sums = RawQuantities(value, state).summed(np.array([1, 0, 1]), 3)
    np.testing.assert_array_equal(sums.value, [[np.nan] * 2, [3.0, np.nan], [np.nan] * 2])
    assert sums.state.tolist() == [[State.NOT_SEEN] * 2, [State.MEASURED, State.TOO_LOW], [State.NOT_SEEN] * 2]
    twice = RawQuantities(value, state).summed(np.array([0, 1, -1]), 2, rows=np.array([2, 2, 0]))
    np.testing.assert_array_equal(twice.value, [[2.0, np.nan]] * 2)


def test_median_normalisation_removes_dilution_factors():
    value = random_amounts(7, 400, 1, 0.0) * np.array([[1.0, 4.0, 0.5]])
    value[:60, 1] *= 8  # a sixth that really changes
    factor = normalisation_factors(value)
    np.testing.assert_allclose(factor * [1.0, 4.0, 0.5], np.full(3, (factor * [1.0, 4.0, 0.5])[0]))
    assert np.prod(factor) == pytest.approx(1.0)
    empty = np.column_stack([value, np.full(400, np.nan)])
    assert normalisation_factors(empty)[3] == 1.0


def test_abundance_factors_of_a_sample_sum_to_one():
    counts, length = np.array([[10, 0], [5, 0], [3, 0]]), np.array([100, 50, 0])
    factors = abundance_factors(counts, length)
    np.testing.assert_allclose(factors[:2, 0], [0.5, 0.5])
    assert np.isnan(factors[2]).all() and np.isnan(factors[:, 1]).all()


def test_isotope_patterns_equal_convolution_atom_by_atom():
    peptides = [*random_peptides(20, 3), "MCMMSCPEPTIDEK", "G"]
    patterns = isotope_patterns(sequence_elements(peptides), 5)
    expected = np.array([averaged_pattern(peptide) for peptide in peptides])
    np.testing.assert_allclose(patterns, expected, atol=2e-4)  # two editions of the abundances


def test_element_counts_of_formulas_equal_unimod():
    for title, formula in (("Carbamidomethyl", "C2H3NO"), ("Oxidation", "O"), ("Phospho", "HO3"), ("Gln->pyro-Glu", "H-3N-1")):
        np.testing.assert_array_equal(element_counts(unimod().by_name(title).composition), element_counts(formula), err_msg=title)
