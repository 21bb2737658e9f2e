"""Logarithm and power against many digits, and equal in compiled and plain arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from numba import njit

from proteoscope.kernels.cpu.elementary import FACTORIAL_LOG, logarithm, power


@njit
def _logarithms(x, out):
    for i in range(len(x)):
        out[i] = logarithm(x[i])


@njit
def _powers(x, exponent, out):
    for i in range(len(x)):
        out[i] = power(x[i], exponent)


def _numbers():
    random = np.random.default_rng(1)
    wide = np.exp(random.uniform(-80, 80, 400))
    return np.concatenate((random.uniform(1, 2000, 400), 1 + random.uniform(0, 1e-3, 200), wide, [1.0, 2.0]))


def test_logarithm_is_exact_to_two_units_in_the_last_place():
    x = _numbers()
    actual = np.empty_like(x)
    _logarithms(x, actual)
    with localcontext() as context:
        context.prec = 40
        for value, result in zip(x.tolist(), actual.tolist(), strict=True):
            right = Decimal(value).ln()
            assert abs(Decimal(result) - right) <= 2 * Decimal(math.ulp(float(right))), value


@pytest.mark.parametrize("exponent", [1 / 6, 1 / 3, 0.4, 1.0, 2.5, 3.0, 6.0])
def test_power_is_exact_to_almost_fourteen_digits(exponent):
    x = np.concatenate((np.geomspace(1e-6, 60.0, 500), [1.0, 2.0, 0.125]))
    actual = np.empty_like(x)
    _powers(x, exponent, actual)
    with localcontext() as context:
        context.prec = 40
        for value, result in zip(x.tolist(), actual.tolist(), strict=True):
            right = (Decimal(value).ln() * Decimal(exponent)).exp()
            assert abs(Decimal(result) / right - 1) < Decimal("2e-14"), value


def test_power_of_non_positive_base_is_zero():
    assert [power(0.0, 3.0), power(-1.0, 0.5)] == [0.0, 0.0]


def test_compiled_logarithm_and_power_round_as_plain_python():
    """NumPy multiplies, then adds; a compiler that fused both would round once."""
    x = _numbers()
    actual = np.empty_like(x)
    _logarithms(x, actual)
    assert actual.tobytes() == logarithm.py_func(x).tobytes()
    _powers(x, 0.3, actual)
    assert actual.tolist() == [float(power.py_func(value, 0.3)) for value in x]


def test_logarithms_of_factorials_equal_lgamma():
    np.testing.assert_allclose(FACTORIAL_LOG, [math.lgamma(n + 1.0) for n in range(len(FACTORIAL_LOG))], rtol=1e-14)
