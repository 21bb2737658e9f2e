"""Layouts of library search for both backends; peaks are integers, so that sums do not depend on the order.

The similarity of two spectra is a sum of integer contributions of their matched peaks, from a product or a table:

    cosine      sum of a b / sqrt(sum of a² times sum of b²)
    entropy     sum of g(a, b) / (2 N), with g(a, b) = (a + b) log2(a + b) - a log2 a - b log2 b and weights that add up to N

The second similarity equals 1 - (2 S_AB - S_A - S_B) / ln 4 of Li et al. 2021 (Nature Methods 18:1524), in which the terms of unmatched
peaks cancel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["COSINE_LENGTH", "ENTROPY_SCALE", "ENTROPY_TOTAL", "MOST_PEAKS", "UNITS", "Matching", "PeakLists", "Pools", "entropy_table"]

UNITS = 100_000
"""Number of units of m/z per thomson, and of mass per dalton."""
MOST_PEAKS = 256
"""Maximum number of peaks of a spectrum."""
COSINE_LENGTH = 16_384
"""Length to which spectra are scaled for cosines: the sum of their squared weights is about the square of this length."""
ENTROPY_TOTAL = 32_768
"""Sum of the weights of a spectrum for spectral entropy."""
ENTROPY_SCALE = 16_384
"""Number of units per bit of the entropy table; two spectra reach at most 2 * ENTROPY_TOTAL * ENTROPY_SCALE, below 2^31."""


class PeakLists(NamedTuple):
    """Peaks of n spectra as CSR.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Start of each spectrum's peaks, followed by m; a spectrum has at most `MOST_PEAKS`.
    mz : (m,) int32
        m/z in `UNITS`, ascending in each spectrum; more than twice the tolerance apart, so that a peak matches at most one other.
    weight : (m,) uint16
        Weights, positive.
    """

    offsets: NDArray[np.int64]
    mz: NDArray[np.int32]
    weight: NDArray[np.uint16]


class Pools(NamedTuple):
    """References with which each of q queries is compared, as ranges, (q, r) each.

    Attributes
    ----------
    low, high : int64
        References `low:high` of each range.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Matching(NamedTuple):
    """Conditions for matching peaks and spectra.

    Attributes
    ----------
    absolute
        Absolute tolerance, in `UNITS`.
    relative
        Relative tolerance, in thousandths of ppm; peaks match within the sum of both tolerances.
    least
        Minimum number of matched peaks.
    is_entropy
        True for the entropy similarity, False for the cosine.
    is_shifted
        True if fragments of a reference may be shifted by the mass difference.
    nearest
        If fragments are shifted: references whose mass differs by at most this value (in `UNITS`) are excluded; -1 excludes none.
    """

    absolute: int
    relative: int
    least: int
    is_entropy: bool
    is_shifted: bool
    nearest: int


def entropy_table() -> NDArray[np.int32]:
    """Return x log2(x / 2 N) for integers x from 0 to 2 `ENTROPY_TOTAL`, as int32 in units of 1 / `ENTROPY_SCALE`.

    N is `ENTROPY_TOTAL`. The function g (see the module) may use this instead of x log2 x, since the additional terms cancel. Values are at
    least -2 N / (e ln 2), which fits in 32 bits.
    """
    x = np.arange(2 * ENTROPY_TOTAL + 1, dtype=np.float64)
    x[0] = 1.0
    values = x * np.log2(x / (2 * ENTROPY_TOTAL))
    values[0] = 0.0
    return np.rint(values * ENTROPY_SCALE).astype(np.int32)
