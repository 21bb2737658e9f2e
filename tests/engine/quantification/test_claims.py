"""A summit is one ion's: that which was identified nearest to it. Against the definition, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest

from engine.arrays import offsets_of
from engine.chemistry.masses import ISOTOPE_SPACING
from engine.quantification.claims import traces_of_others
from engine.quantification.ions import Ions
from engine.quantification.parameters import QuantificationParameters
from kernels.cpu.elution import APEX, N_VALUES, TIME, WIDTH

PARAMETERS = QuantificationParameters()


def plain(ions, sequence, values, anchors):
    """Which ions have the trace of another, by every pair of ions and of isotopes."""
    width, n = PARAMETERS.precursor_tolerance.width, len(ions)
    apart = [min(abs(values[i, TIME] - one) for one in anchors[i]) for i in range(n)]
    found = []
    for i in range(n):
        lost = False
        for k in range(n):
            is_one = abs(values[i, TIME] - values[k, TIME]) <= 0.5 * max(values[i, WIDTH], values[k, WIDTH])
            if i == k or sequence[i] == sequence[k] or not is_one or apart[i] <= apart[k]:
                continue
            height = 0.0
            for own in range(ions.pattern.shape[1]):
                for other in range(ions.pattern.shape[1]):
                    a = ions.mz[i] + own * ISOTOPE_SPACING / ions.charge[i]
                    b = ions.mz[k] + other * ISOTOPE_SPACING / ions.charge[k]
                    if abs(a - b) <= width(np.array([min(a, b)]))[0]:
                        height += values[k, APEX] * ions.pattern[k, other] / ions.pattern[k].sum()
            lost |= height >= 0.5 * values[i, APEX]
        found.append(lost)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_it_is_what_the_definition_says(seed):
    rng, n = np.random.default_rng(seed), 60
    base = rng.choice([500.0, 500.003, 500.5, 501.0033, 640.2], n) + rng.choice([0.0, 0.0, ISOTOPE_SPACING / 2, ISOTOPE_SPACING], n)
    pattern = rng.uniform(0.05, 1.0, (n, 3))
    ions = Ions(np.arange(n), rng.choice([1, 2, 3], n), base, pattern, np.zeros(0, np.int64))
    values = np.zeros((n, N_VALUES))
    values[:, TIME], values[:, WIDTH], values[:, APEX] = rng.uniform(100, 130, n), rng.uniform(5, 20, n), rng.lognormal(10, 1, n)
    anchors = [(time + rng.normal(0, 5, rng.integers(1, 4))).tolist() for time in values[:, TIME]]
    sequence = rng.integers(0, 40, n)
    flat, offsets = np.concatenate(anchors), offsets_of(np.array([len(one) for one in anchors]))
    found = traces_of_others(ions, sequence, values, flat, offsets, PARAMETERS)
    expected = plain(ions, sequence, values, anchors)
    assert found.tolist() == expected and 0 < sum(expected) < n


def test_of_two_that_are_one_summit_the_nearer_keeps_it_and_forms_of_one_sequence_share_it():
    ions = Ions(np.arange(2), np.array([2, 2]), np.array([500.0, 500.002]), np.array([[0.7, 0.3], [0.7, 0.3]]), np.zeros(0, np.int64))
    values = np.zeros((2, N_VALUES))
    values[:, TIME], values[:, WIDTH], values[:, APEX] = 100.0, 10.0, 1e5
    anchors, offsets = np.array([101.0, 92.0]), np.array([0, 1, 2])
    assert traces_of_others(ions, np.array([0, 1]), values, anchors, offsets, PARAMETERS).tolist() == [False, True]
    assert traces_of_others(ions, np.array([0, 0]), values, anchors, offsets, PARAMETERS).tolist() == [False, False]
    assert traces_of_others(ions.part(np.array([0])), np.array([0]), values[:1], anchors[:1], offsets[:2], PARAMETERS).tolist() == [False]
