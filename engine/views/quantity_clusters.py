"""Hierarchical clustering of quantities for a heat map.

Values are log2 quantities minus the median of the row. The distance of two rows, or of two columns, is the root mean square difference of
the values that both have; a pair without common values is given the largest distance of the other pairs. Linkage is average (UPGMA; Sokal &
Michener 1958).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["MAXIMUM_COLUMNS", "MAXIMUM_ROWS", "HeatMap", "average_linkage", "cluster_quantities", "pairwise_distances"]

MAXIMUM_ROWS = 500
"""Maximum number of proteins in a heat map; the most variable proteins are shown."""
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
        Merges of rows and of columns, numbered before they were reordered, as in `scipy.cluster.hierarchy.linkage`; empty if not clustered.
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

    `log2` has shape (n, s). The function returns None if there are fewer than two samples, or fewer than two rows with at
    least two quantities.
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

    Parameters
    ----------
    distances : ndarray of float64, shape (n, n)
        Symmetric distances of n items.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage  # imported here, since it takes 100 ms, and only maps need it

    tree = linkage(distances[np.triu_indices(len(distances), 1)], "average")
    return tree, leaves_list(tree).astype(np.int64)


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
