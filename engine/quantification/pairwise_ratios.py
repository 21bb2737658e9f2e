"""Amounts by the pairwise medians of the ratios of ions: MaxLFQ (Cox et al. 2014, Mol. Cell. Proteomics 13:2513).

Of each pair of samples the median log ratio of the ions that both have is taken, and amounts are those whose log ratios come nearest to
all of these, by least squares, scaled to the sum of the ions' amounts. Samples that no chain of pairs connects have no ratio to each other:
the largest connected set of samples has amounts, and the others have none. No ion that is missing is made up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of

__all__ = ["group_medians", "pairwise_amounts"]

_VALUES_OF_PIECE = 1 << 22


def group_medians(value: NDArray[np.float64], group: NDArray[np.int64], n_groups: int) -> NDArray[np.float64]:
    """Return median of the values of each group, (n_groups,) float64, NaN where it has none.

    Parameters
    ----------
    value : (n,) float64, those that are NaN left out. group : (n,) int64.

    Examples
    --------
    >>> group_medians(np.array([1.0, 9.0, 2.0, np.nan]), np.array([0, 0, 0, 1]), 2).tolist()
    [2.0, nan]
    """
    rows = np.flatnonzero(~np.isnan(value))
    rows = rows[np.lexsort((value[rows], group[rows]))]
    count = np.bincount(group[rows], minlength=n_groups)
    first = offsets_of(count)[:-1]
    found = np.full(n_groups, np.nan)
    some = np.flatnonzero(count)
    low, high = first[some] + (count[some] - 1) // 2, first[some] + count[some] // 2
    found[some] = (value[rows[low]] + value[rows[high]]) / 2
    return found


def pairwise_amounts(value: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the amounts of groups of ions: of proteins, peptides or peptidoforms.

    Parameters
    ----------
    value : (n, s) float64, amounts of ions in samples, NaN where missing, group after group.
    offsets : (p + 1,) int64; the ions of group i are the rows `offsets[i]:offsets[i + 1]`.

    Returns
    -------
    (p, s) float64, NaN where a group has no ion, or where a sample has no ratio to the largest set of samples that are connected by
    shared ions; of several equally large sets, the most abundant.
    """
    n_proteins, n_samples = len(offsets) - 1, value.shape[1]
    found = np.full((n_proteins, n_samples), np.nan)
    some = max(1, _VALUES_OF_PIECE // max(1, n_samples * n_samples))
    for first in range(0, n_proteins, some):
        last = min(first + some, n_proteins)
        rows = slice(offsets[first], offsets[last])
        found[first:last] = _piece(value[rows], offsets[first : last + 1] - offsets[first])
    return found


def _piece(value: NDArray[np.float64], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    n_proteins, n_samples = len(offsets) - 1, value.shape[1]
    group = np.repeat(np.arange(n_proteins), np.diff(offsets))
    logs = np.full(value.shape, np.nan)
    np.log(value, out=logs, where=value > 0)
    columns, of_sizes = np.ascontiguousarray(logs.T), _rows_by_size(offsets)
    laplacian = np.zeros((n_proteins, n_samples, n_samples))
    right = np.zeros((n_proteins, n_samples))
    for i in range(n_samples):
        for j in range(i):
            median = _medians_by_size(columns[i] - columns[j], of_sizes, n_proteins)
            rows = np.flatnonzero(~np.isnan(median))
            laplacian[rows, i, i] += 1
            laplacian[rows, j, j] += 1
            laplacian[rows, i, j] = laplacian[rows, j, i] = -1
            right[rows, i] += median[rows]
            right[rows, j] -= median[rows]
    part = _parts(laplacian != 0)
    # One equation for each part, that its logarithms have no mean, makes the normal equations solvable.
    same = (part[:, :, None] == part[:, None, :]).astype(np.float64)
    solved = np.linalg.solve(laplacian + same, right[..., None])[..., 0]
    total = np.zeros((n_proteins, n_samples))
    np.add.at(total, group, np.nan_to_num(np.where(value > 0, value, 0.0)))
    is_used = _in_largest_part(same, total)
    relative = np.where(is_used, np.exp(solved), 0.0)
    of_part = np.where(is_used, total, 0.0).sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        amount = relative * of_part / relative.sum(axis=1, keepdims=True)
    return np.where(is_used, amount, np.nan)


def _rows_by_size(offsets: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the groups of each size and their rows, (groups, size): rows of one length are sorted together, without a key."""
    size = np.diff(offsets)
    found = []
    for n in np.unique(size[size > 0]).tolist():
        groups = np.flatnonzero(size == n)
        found.append((groups, offsets[groups][:, None] + np.arange(n)))
    return found


def _medians_by_size(
    value: NDArray[np.float64], of_sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]], n_groups: int
) -> NDArray[np.float64]:
    """Return the median of the values of each group, (n_groups,) float64, NaN where it has none."""
    found = np.full(n_groups, np.nan)
    for groups, rows in of_sizes:
        values = np.sort(value[rows], axis=1)  # NaN last
        count = (~np.isnan(values)).sum(axis=1)
        some = np.flatnonzero(count)
        low, high = (count[some] - 1) // 2, count[some] // 2
        found[groups[some]] = (values[some, low] + values[some, high]) / 2
    return found


def _in_largest_part(same: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which samples are in the connected part with most samples, of several the most abundant, of equals the first: (p, s) bool."""
    has_any = total > 0
    size = np.where(has_any, (same * has_any[:, None, :]).sum(axis=2), 0.0)
    is_largest = has_any & (size == size.max(axis=1, keepdims=True))
    abundance = np.where(is_largest, (same * total[:, None, :]).sum(axis=2), -1.0)
    chosen = abundance.argmax(axis=1)
    return has_any & (same[np.arange(len(same)), chosen] > 0)


def _parts(edges: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the least sample that each is connected with, (p, s), by edges (p, s, s)."""
    n = edges.shape[1]
    reach = edges | np.eye(n, dtype=np.bool_)
    for _ in range(max(1, int(np.ceil(np.log2(max(2, n)))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    found: NDArray[np.int64] = reach.argmax(axis=2)
    return found
