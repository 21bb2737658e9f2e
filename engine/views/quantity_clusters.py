"""Hierarchical clustering of quantities for a heat map.

Values are log2 quantities minus the median of the row. The distance of two rows, or of two columns, is the root mean square difference of
the values that both have; pairs without common values have the largest distance of all pairs. Linkage is average (UPGMA; Sokal & Michener
1958).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAXIMUM_COLUMNS", "MAXIMUM_ROWS", "HeatMap", "average_linkage", "cluster_quantities", "pairwise_distances", "tree_order"]

MAXIMUM_ROWS = 500
"""Maximum number of proteins in a heat map, the most variable ones."""
MAXIMUM_COLUMNS = 1000
"""Maximum number of samples whose columns are clustered."""
_LEAST_LIMIT = 0.5
"""Minimum of `HeatMap.limit`."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Values of n proteins in s samples, in the order of the heat map.

    Attributes
    ----------
    rows : (n,) int64
        Row of each protein in the quantities.
    columns : (s,) int64
        Index of each sample in the quantities.
    values : (n, s) float64
        log2 quantities minus the median of the row, NaN if missing.
    row_tree, column_tree : ndarray of float64, shape (n - 1, 4) and (s - 1, 4)
        Merges of rows and of columns before ordering, as in `scipy.cluster.hierarchy.linkage`; empty if not clustered.
    n_eligible
        Number of proteins with at least two quantities.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    row_tree: NDArray[np.float64]
    column_tree: NDArray[np.float64]
    n_eligible: int

    @property
    def limit(self) -> float:
        """log2 difference that is shown in the full colour: the 98th percentile, rounded up to a multiple of 0.5."""
        sizes = np.abs(self.values[np.isfinite(self.values)])
        return max(_LEAST_LIMIT, float(np.ceil(2 * np.percentile(sizes, 98)) / 2)) if len(sizes) else _LEAST_LIMIT


def cluster_quantities(log2: NDArray[np.float64], most: int = MAXIMUM_ROWS) -> HeatMap | None:
    """Return the heat map of at most `most` rows with the largest standard deviations.

    `log2` has shape (n, s). The function returns None unless there are two samples and two rows with two quantities.
    """
    n_values = np.isfinite(log2).sum(axis=1)
    eligible = np.flatnonzero(n_values >= 2)
    if len(eligible) < 2 or log2.shape[1] < 2:
        return None
    variable = eligible[np.argsort(-np.nanstd(log2[eligible], axis=1, ddof=1), kind="stable")][:most]
    rows = np.sort(variable)
    values = log2[rows] - np.nanmedian(log2[rows], axis=1, keepdims=True)
    row_tree, row_order = average_linkage(pairwise_distances(values))
    column_tree, column_order = (
        average_linkage(pairwise_distances(values.T))
        if log2.shape[1] <= MAXIMUM_COLUMNS
        else (np.empty((0, 4)), np.arange(values.shape[1]))
    )
    return HeatMap(rows[row_order], column_order, values[row_order][:, column_order], row_tree, column_tree, len(eligible))


def average_linkage(distances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the merges of a hierarchical clustering by average linkage, as SciPy's `linkage`, and the order of the items in the tree.

    Chains of nearest neighbours (Murtagh 1983, Comput. J. 26:354) need O(n^2) operations. SciPy, which takes a second to load, is not used.

    Parameters
    ----------
    distances : ndarray of float64, shape (n, n)
        Symmetric distances of n items.
    """
    n = len(distances)
    between = np.array(distances, np.float64)
    np.fill_diagonal(between, np.inf)
    sizes, merges, chain = np.ones(n), np.empty((max(0, n - 1), 4)), list[int]()
    for step in range(n - 1):
        chain = chain or [int(np.argmax(sizes > 0))]
        while True:
            row = between[chain[-1]]
            nearest = int(row.argmin())
            # Of equally near clusters the previous one is taken, so that a chain ends.
            if len(chain) > 1 and row[chain[-2]] <= row[nearest]:
                break
            chain.append(nearest)
        first, second = sorted(chain[-2:])
        del chain[-2:]
        size = sizes[first] + sizes[second]
        merges[step] = first, second, between[first, second], size
        merged = (sizes[first] * between[first] + sizes[second] * between[second]) / size
        merged[second] = np.inf
        between[second], between[:, second] = merged, merged
        between[first], between[:, first] = np.inf, np.inf
        sizes[first], sizes[second] = 0, size
    merges = merges[np.argsort(merges[:, 2], kind="stable")]
    # Clusters are numbered in the order of their distances: cluster n + i is that of merge i.
    cluster, leader = np.arange(n), np.arange(n)
    for step, (first, second) in enumerate(merges[:, :2].astype(np.int64).tolist()):
        first, second = _leader(leader, first), _leader(leader, second)
        merges[step, :2] = sorted((cluster[first], cluster[second]))
        leader[first], cluster[second] = second, n + step
        merges[step, 3] = sum(1 if at < n else merges[at - n, 3] for at in merges[step, :2].astype(np.int64).tolist())
    return merges, tree_order(merges)


def tree_order(merges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order of the n items of a tree, int64, from its n - 1 merges."""
    leaves = [[item] for item in range(len(merges) + 1)]
    for first, second in merges[:, :2].astype(np.int64).tolist():
        leaves.append(leaves[first] + leaves[second])
    return np.array(leaves[-1], np.int64)


def _leader(leader: NDArray[np.int64], item: int) -> int:
    """Return the leader of the cluster of an item, and shorten the path to it."""
    while leader[item] != item:
        leader[item] = leader[leader[item]]
        item = int(leader[item])
    return item


def pairwise_distances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the root mean square differences of all pairs of rows over their common values, (n, n).

    >>> pairwise_distances(np.array([[0.0, 1.0], [3.0, 5.0], [np.nan, 1.0]])).round(3).tolist()
    [[0.0, 3.536, 0.0], [3.536, 0.0, 4.0], [0.0, 4.0, 0.0]]
    """
    has = np.isfinite(values)
    value, present = np.where(has, values, 0.0), has.astype(np.float32)
    n_shared = (present @ present.T).astype(np.float64)  # exact: counts are small
    squares = value**2 @ has.astype(np.float64).T
    total = np.maximum(squares + squares.T - 2 * value @ value.T, 0.0)
    distance = np.sqrt(np.divide(total, n_shared, out=np.zeros_like(total), where=n_shared > 0))
    distance = np.where(n_shared > 0, distance, distance.max(initial=0.0))
    np.fill_diagonal(distance, 0.0)
    symmetric: NDArray[np.float64] = (distance + distance.T) / 2
    return symmetric
