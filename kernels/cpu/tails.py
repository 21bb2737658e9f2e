"""Tail probabilities of distributions for many values."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["normal_tail"]


@njit(nogil=True, cache=True, error_model="numpy")
def normal_tail(z):
    """Return the upper tail probability of the standard normal distribution at each of `z`, (n,) float64."""
    chance = np.empty(len(z))
    for i in range(len(z)):
        chance[i] = 0.5 * math.erfc(z[i] / math.sqrt(2.0))
    return chance
