"""A summit is assigned to the nearest identified ion or to one with its own lighter peak; checked against the definition by pairs."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING
from proteoscope.engine.quantification.ions import Ions, traces_of_others
from proteoscope.engine.quantification.parameters import QuantificationParameters
from proteoscope.kernels.cpu.elution import APEX, N_VALUES, TIME, WIDTH

PARAMETERS = QuantificationParameters()


def plain(ions, sequence, values, apart):
    """Return for each ion whether its trace belongs to another, by every pair of ions and of isotopes."""
    width, n = PARAMETERS.precursor_tolerance.width, len(ions)
    shared = []
    for i in range(n):
        lost = False
        for k in range(n):
            is_one = abs(values[i, TIME] - values[k, TIME]) <= 0.5 * max(values[i, WIDTH], values[k, WIDTH])
            is_lighter = ions.mz[k] < ions.mz[i] - width(ions.mz[[i]])[0]
            if i == k or sequence[i] == sequence[k] or not is_one or not (apart[i] > apart[k] or is_lighter):
                continue
            height = 0.0
            for isotope in range(3):
                for other_isotope in range(5):
                    a = ions.mz[i] + isotope * ISOTOPE_SPACING / ions.charge[i]
                    b = ions.mz[k] + other_isotope * ISOTOPE_SPACING / ions.charge[k]
                    if abs(a - b) <= width(np.array([min(a, b)]))[0]:
                        height += values[k, APEX] * ions.isotopes[k, other_isotope] / ions.isotopes[k, :3].sum()
            lost |= height >= 0.5 * values[i, APEX]
        shared.append(lost)
    return shared


def ions_at(charge: np.ndarray, mz: np.ndarray, isotopes: np.ndarray, n_isotopes: int = 3) -> Ions:
    """Return ions of different peptidoforms, without spectra."""
    n = len(mz)
    return Ions(np.arange(n), charge, mz, isotopes, n_isotopes, np.ones(n, np.bool_), np.zeros(0, np.int64), np.full(n, np.nan))


@pytest.mark.parametrize("seed", range(6))
def test_traces_of_overlapping_ions_equal_the_definition(seed):
    rng, n = np.random.default_rng(seed), 60
    base = rng.choice([500.0, 500.003, 500.5, 501.0033, 640.2], n) + rng.choice([0.0, 0.0, ISOTOPE_SPACING / 2, ISOTOPE_SPACING], n)
    isotopes = rng.uniform(0.05, 1.0, (n, 5))
    ions = ions_at(rng.choice([1, 2, 3], n), base, isotopes)
    values = np.zeros((n, N_VALUES))
    values[:, TIME], values[:, WIDTH], values[:, APEX] = rng.uniform(100, 130, n), rng.uniform(5, 20, n), rng.lognormal(10, 1, n)
    apart, sequence = np.abs(rng.normal(0, 5, n)), rng.integers(0, 40, n)
    shared = traces_of_others(ions, sequence, values, apart, PARAMETERS)
    expected = plain(ions, sequence, values, apart)
    assert shared.tolist() == expected and 0 < sum(expected) < n


def test_shared_trace_is_assigned_to_the_nearer_ion():
    ions = ions_at(np.array([2, 2]), np.array([500.0, 500.002]), np.array([[0.7, 0.3], [0.7, 0.3]]), 2)
    values = np.zeros((2, N_VALUES))
    values[:, TIME], values[:, WIDTH], values[:, APEX] = 100.0, 10.0, 1e5
    apart = np.array([1.0, 8.0])
    assert traces_of_others(ions, np.array([0, 1]), values, apart, PARAMETERS).tolist() == [False, True]
    assert traces_of_others(ions, np.array([0, 0]), values, apart, PARAMETERS).tolist() == [False, False]
    assert traces_of_others(ions.part(np.array([0])), np.array([0]), values[:1], apart[:1], PARAMETERS).tolist() == [False]


@pytest.mark.parametrize(("height", "lost"), [(2e6, True), (1e5, False)])
def test_trace_with_half_isotope_signal_belongs_to_other_ion(height, lost):
    """The third isotope of the first ion, which is not traced, coincides with the first isotope of the other."""
    isotopes = np.array([[0.5, 0.3, 0.15, 0.05], [0.5, 0.3, 0.15, 0.05]])
    ions = ions_at(np.array([2, 2]), np.array([500.0, 500 + ISOTOPE_SPACING]), isotopes, 2)
    values = np.zeros((2, N_VALUES))
    values[:, TIME], values[:, WIDTH], values[:, APEX] = 100.0, 10.0, (height, 4e5)
    assert traces_of_others(ions, np.arange(2), values, np.array([8.0, 1.0]), PARAMETERS).tolist() == [False, lost]
