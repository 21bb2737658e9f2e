"""Logarithm and power with identical rounding on all devices.

Library functions differ in the last bit between CPUs, compilers and CUDA. These functions use only additions, multiplications, divisions
and bit operations, each rounded by IEEE 754; kernels/cuda/elementary.cuh has the same operations in the same order. The logarithm is
accurate to two units in the last place, powers of numbers above 1e-6 to 2e-14. The series are those of the inverse hyperbolic tangent and
the exponential (Abramowitz & Stegun, 4.1.27 and 4.2.1).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["FACTORIAL_LOG", "logarithm", "power"]

_LN_2 = 0.6931471805599453
_LN_2_HIGH, _LN_2_LOW = 2977044471.0 / 4294967296.0, 1.9082149292705878e-10  # ln 2 is their sum; the first has 32 significant bits
_PER_LN_2 = 1.4426950408889634
_BITS_OF_ROOT_OF_HALF = 0x3FE6A09E667F3BCD
_MANTISSA_BITS, _EXPONENT_OF_ONE = 52, 1023


@njit(nogil=True, cache=True, _nrt=False, forceinline=True)
def logarithm(x):
    """Return the natural logarithm of a positive, finite and normal float64."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - _BITS_OF_ROOT_OF_HALF) >> _MANTISSA_BITS
    mantissa = np.int64(bits - (exponent << _MANTISSA_BITS)).view(np.float64)  # from sqrt(1/2) to sqrt(2)
    f = (mantissa - 1.0) / (mantissa + 1.0)
    s = f * f
    s2 = s * s
    s4 = s2 * s2
    low = (1.0 / 3.0 + s * (1.0 / 5.0)) + s2 * (1.0 / 7.0 + s * (1.0 / 9.0))
    high = (1.0 / 11.0 + s * (1.0 / 13.0)) + s2 * (1.0 / 15.0 + s * (1.0 / 17.0))
    series = (low + s4 * high) + (s4 * s4) * (1.0 / 19.0)
    return exponent * _LN_2 + (2.0 * f + (2.0 * f) * (s * series))


@njit(nogil=True, cache=True, _nrt=False)
def power(base, exponent):
    """Return ``base ** exponent`` (float64) if base and result are normal numbers; 0 if `base` is not positive."""
    if not base > 0.0:
        return 0.0
    y = exponent * logarithm(base)
    n = np.floor(y * _PER_LN_2 + 0.5)
    r = (y - n * _LN_2_HIGH) - n * _LN_2_LOW
    r2 = r * r
    r4 = r2 * r2
    r8 = r4 * r4
    first = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
    second = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
    third = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (1.0 / 3628800.0 + r * (1.0 / 39916800.0))
    fourth = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
    exponential = (first + r4 * second) + r8 * (third + r4 * fourth)
    return exponential * np.int64((np.int64(n) + _EXPONENT_OF_ONE) << _MANTISSA_BITS).view(np.float64)


def _factorial_logs(most: int) -> NDArray[np.float64]:
    return np.concatenate((np.zeros(1), np.cumsum(logarithm.py_func(np.arange(1.0, most)))))


# Enough for the number of ions of 63 residues in six series with five charges.
FACTORIAL_LOG = _factorial_logs(2048)
"""Logarithms of the factorials of 0, 1, 2, …, (2048,) float64."""
