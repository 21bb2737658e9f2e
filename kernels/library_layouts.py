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
"""Of a spectrum."""
COSINE_LENGTH = 16_384
"""To which spectra are scaled whose cosines are computed: the squares of their weights add up to about its square."""
ENTROPY_TOTAL = 32_768
"""What the weights of a spectrum add up to whose entropy is computed."""
ENTROPY_SCALE = 16_384
"""Units of the table of entropies in a bit; all that two spectra may reach is 2 * ENTROPY_TOTAL * ENTROPY_SCALE, below 2^31."""


class PeakLists(NamedTuple):
    """Peaks of n spectra, CSR.

    Attributes
    ----------
    offsets : (n + 1,) int64, from 0; no spectrum has more than `MOST_PEAKS`. mz : (m,) int32, in `UNITS`, ascending in a spectrum, further
        from each other than twice the tolerance, so that a peak has one partner at most. weight : (m,) uint16, positive.
    """

    offsets: NDArray[np.int64]
    mz: NDArray[np.int32]
    weight: NDArray[np.uint16]


class Pools(NamedTuple):
    """With which references each of q queries is compared: those of some ranges, (q, r) all.

    Attributes
    ----------
    low, high : int64, each range is the references `low:high`.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Matching(NamedTuple):
    """When peaks match, and when spectra do.

    Attributes
    ----------
    absolute : units; relative : thousandths of ppm: peaks match within the sum of both. least : peaks that must match.
    is_entropy : the similarity, else the cosine. is_shifted : fragments of a reference may lie where they are or be moved by the difference
        of the masses. nearest : units; references whose mass differs by no more are left out where it is shifted; -1: none.
    """

    absolute: int
    relative: int
    least: int
    is_entropy: bool
    is_shifted: bool
    nearest: int


def entropy_table() -> NDArray[np.int32]:
    """x log2 x for whole numbers, less what is linear in x, which cancels in g: (2 ENTROPY_TOTAL + 1,) int32, in 1 / `ENTROPY_SCALE`.

    x log2(x / 2 N) is at least -2 N / (e ln 2), so that 32 bits hold it.
    """
    x = np.arange(2 * ENTROPY_TOTAL + 1, dtype=np.float64)
    x[0] = 1.0
    values = x * np.log2(x / (2 * ENTROPY_TOTAL))
    values[0] = 0.0
    return np.rint(values * ENTROPY_SCALE).astype(np.int32)
