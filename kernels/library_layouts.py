"""Layouts of the search of spectral libraries that both backends share: peaks as whole numbers, so that sums are the same in any order.

Similarities of two spectra are sums over their peaks that match, which a table or a product gives, both whole numbers:

    cosine      sum of a b / sqrt(sum of a² times sum of b²)
    entropy     sum of g(a, b) / (2 N), with g(a, b) = (a + b) log2(a + b) - a log2 a - b log2 b and weights that add up to N

The second is 1 - (2 S_AB - S_A - S_B) / ln 4 of Li et al. 2021 (Nature Methods 18:1524) written out: peaks without a partner cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["COSINE_LENGTH", "ENTROPY_SCALE", "ENTROPY_TOTAL", "MOST_PEAKS", "UNITS", "Matching", "PeakLists", "Pools", "entropy_table"]

UNITS = 100_000
"""Units of m/z and of mass in a thomson and a dalton."""
MOST_PEAKS = 256
"""Maximum number of peaks of a spectrum."""
COSINE_LENGTH = 16_384
"""Length to which spectra are scaled for cosines: their squared weights sum to about its square."""
ENTROPY_TOTAL = 32_768
"""Sum of the weights of a spectrum for spectral entropy."""
ENTROPY_SCALE = 16_384
"""Units per bit of the entropy table; two spectra reach at most 2 * ENTROPY_TOTAL * ENTROPY_SCALE, below 2^31."""


class PeakLists(NamedTuple):
    """Peaks of n spectra, CSR.

    Attributes
    ----------
    offsets : (n + 1,) int64
        From 0; no spectrum has more than `MOST_PEAKS`.
    mz : (m,) int32
        In `UNITS`, ascending in a spectrum, further from each other than twice the tolerance, so that a peak has one partner at most.
    weight : (m,) uint16
        Positive.
    """

    offsets: NDArray[np.int64]
    mz: NDArray[np.int32]
    weight: NDArray[np.uint16]


class Pools(NamedTuple):
    """References compared with each of q queries as ranges, (q, r) each.

    Attributes
    ----------
    low, high : int64
        Each range is the references `low:high`.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Matching(NamedTuple):
    """Conditions for matching peaks and spectra.

    Attributes
    ----------
    absolute
        Units.
    relative
        Thousandths of ppm: peaks match within the sum of both.
    least
        Peaks that must match.
    is_entropy
        The similarity, else the cosine.
    is_shifted
        Fragments of a reference may lie where they are or be moved by the difference of the masses.
    nearest
        Units; references whose mass differs by no more are left out where it is shifted; -1: none.
    """

    absolute: int
    relative: int
    least: int
    is_entropy: bool
    is_shifted: bool
    nearest: int


def entropy_table() -> NDArray[np.int32]:
    """Return x log2 x for integers, minus a linear term that cancels in g: (2 ENTROPY_TOTAL + 1,) int32, in 1 / `ENTROPY_SCALE`.

    x log2(x / 2 N) is at least -2 N / (e ln 2), which fits 32 bits.
    """
    x = np.arange(2 * ENTROPY_TOTAL + 1, dtype=np.float64)
    x[0] = 1.0
    values = x * np.log2(x / (2 * ENTROPY_TOTAL))
    values[0] = 0.0
    return np.rint(values * ENTROPY_SCALE).astype(np.int32)
