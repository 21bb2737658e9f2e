"""Settings and groups of vector clustering, for both backends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.vector_layouts import VectorArrays

__all__ = ["AVERAGE", "COMPLETE", "SIMILARITY_UNITS", "SINGLE", "Groups", "Linkage", "islands", "named_by_smallest", "window_pairs"]

SINGLE, COMPLETE, AVERAGE = 0, 1, 2
"""Methods of linkage: DBSCAN (Ester et al. 1996), and agglomerative clustering with complete and with average linkage."""
SIMILARITY_UNITS = 1 << 20
"""Number of units that represent a similarity of 1 in the integer matrices of complete and average linkage.

Integer sums do not depend on order.
"""


class Linkage(NamedTuple):
    """Settings of a linkage.

    Attributes
    ----------
    method
        SINGLE, COMPLETE or AVERAGE.
    least
        Minimum similarity (cosine) of vectors in a cluster, above 0 and at most 1.
    minimum_neighbours
        Only for SINGLE: minimum number of vectors with at least the similarity `least` to a core point, which is counted too; 2 gives
        connected components.
    maximum_members
        Only for COMPLETE and AVERAGE: larger connected components are divided first (see `proteoscope.kernels.cpu.linkage_rounds`).
    """

    method: int
    least: float
    minimum_neighbours: int = 2
    maximum_members: int = 16_384

    def checked(self) -> Linkage:
        """Return self after validating the settings.

        Raises
        ------
        ValueError
            If a setting is out of bounds.
        """
        if self.method not in (SINGLE, COMPLETE, AVERAGE):
            raise ValueError(f"there is no linkage {self.method}")
        if not 0.0 < self.least <= 1.0:
            raise ValueError(f"the least similarity of vectors that belong together is above 0 and at most 1, not {self.least}")
        if self.minimum_neighbours < 1 or self.maximum_members < 2:
            raise ValueError("a core point has at least 1 neighbour, itself, and the largest matrix at least 2 rows")
        return self


class Groups(NamedTuple):
    """Groups (g) of vectors that are clustered separately by complete or average linkage.

    Attributes
    ----------
    vectors
        All vectors; `members` are their indices.
    ends : (n,) int64
        End (exclusive) of the following vectors with which each vector is compared (see `islands`).
    members : (k,) int64
        Indices of the vectors of each group, group by group, ascending within a group.
    starts : (g + 1,) int64
        Start of each group in `members`, followed by k.
    least : (g,) int32
        Minimum similarity at which clusters of the group merge, in `SIMILARITY_UNITS`.
    counts : (k,) int32
        Number of vectors that each member represents.
    """

    vectors: VectorArrays
    ends: NDArray[np.int64]
    members: NDArray[np.int64]
    starts: NDArray[np.int64]
    least: NDArray[np.int32]
    counts: NDArray[np.int32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each group, shape (g,)."""
        return np.diff(self.starts)


def islands(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the boundaries of islands: the smallest ranges of vectors such that no vector is compared with one in another range.

    Parameters
    ----------
    ends : (n,) int64
        End (exclusive) of the comparison window of each vector, non-decreasing; vector i is compared with the vectors i + 1 : ends[i], i +
        1 <= ends[i] <= n.

    Returns
    -------
    (k + 1,) int64, where each of the k islands begins, and n.
    """
    cuts = np.flatnonzero(ends[:-1] <= np.arange(1, len(ends))) + 1 if len(ends) else np.zeros(0, np.int64)
    return np.concatenate(([0] * (len(ends) > 0), cuts, [len(ends)])).astype(np.int64)


def window_pairs(ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of following vectors with which each vector is compared, (n,)."""
    return ends - np.arange(1, len(ends) + 1)


def named_by_smallest(roots: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the smallest item in the cluster of each item, (n,); `roots` gives, for each item, any item that identifies its cluster."""
    n = len(roots)
    smallest = np.zeros(n, np.int64)
    smallest[roots[::-1]] = np.arange(n)[::-1]  # with repeated indices, NumPy keeps the last value: the smallest here
    return smallest[roots]
