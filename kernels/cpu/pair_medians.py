"""Amounts of groups of ions in samples, by least squares from the median log ratios between samples."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["amounts_by_ratios"]

_CONVERGED = 1e-14
_SORTED_BY_INSERTION = 24


@njit(nogil=True, cache=True)
def _middle(values, count):
    """Return the median of the first `count` values, which are sorted in place."""
    if count <= _SORTED_BY_INSERTION:
        for i in range(1, count):
            value, j = values[i], i
            while j and values[j - 1] > value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
    else:
        values[:count].sort()
    return (values[(count - 1) // 2] + values[count // 2]) / 2


@njit(nogil=True, cache=True)
def _solve(is_pair, degree, right, x):
    """Solve the normal equations of connected samples by conjugate gradients with diagonal preconditioning; `x` has an arbitrary mean."""
    n = len(right)
    x[:] = 0
    residual, limit = right.copy(), _CONVERGED * np.abs(right).max()
    direction = residual / degree
    product = (residual * direction).sum()
    image, fraction = np.empty(n), np.empty(n)
    for _ in range(4 * n + 50):
        if np.abs(residual).max() <= limit:
            break
        for i in range(n):
            image[i] = degree[i] * direction[i]
        for j in range(n):
            for i in range(n):  # columns, so that the additions of a sample have one order and the loop is vectorised
                image[i] -= is_pair[j, i] * direction[j]
        curvature = (direction * image).sum()
        if not curvature > 0:
            break
        step = product / curvature
        x += step * direction
        residual -= step * image
        for i in range(n):
            fraction[i] = residual[i] / degree[i]
        before, product = product, (residual * fraction).sum()
        direction = fraction + (product / before) * direction


@njit(nogil=True, cache=True)
def amounts_by_ratios(value, offsets, amounts):
    """Write the amounts of each group, from the median log ratio of its ions for each pair of samples that share ions.

    Samples that share ions are connected. Only the largest set of connected samples gets amounts; of equally large sets, the most abundant
    set; of equally abundant sets, the first. Work and memory depend on the samples with ions of the group. Groups are independent, so that
    they may be distributed to threads.

    Parameters
    ----------
    value : (n, s) float64
        Amounts of ions, NaN if missing, sorted by group.
    offsets : (p + 1,) int64
        The ions of group i are the rows ``offsets[i]:offsets[i + 1]``.
    amounts : (p, s) float64
        Output, initially NaN; amounts of each group in each sample.
    """
    n_samples = value.shape[1]
    total = np.empty(n_samples)
    for g in range(len(offsets) - 1):
        first, last = offsets[g], offsets[g + 1]
        total[:] = 0
        for row in range(first, last):
            for i in range(n_samples):
                if value[row, i] > 0:
                    total[i] += value[row, i]
        present = np.flatnonzero(total > 0)
        n = len(present)
        if not n:
            continue
        logs = np.empty((n, last - first))
        for i in range(n):
            for row in range(first, last):
                single = value[row, present[i]]
                logs[i, row - first] = np.log(single) if single > 0 else np.nan
        is_pair, medians, ratios = np.zeros((n, n), np.uint8), np.zeros((n, n)), np.empty(last - first)
        root = np.arange(n)
        for i in range(n):
            for j in range(i):
                count = 0
                for row in range(last - first):
                    ratio = logs[i, row] - logs[j, row]
                    if ratio == ratio:
                        ratios[count] = ratio
                        count += 1
                if not count:
                    continue
                is_pair[i, j] = is_pair[j, i] = 1
                medians[i, j] = _middle(ratios, count)
                a, b = i, j
                while root[a] != a:
                    a = root[a]
                while root[b] != b:
                    b = root[b]
                # The smaller index is the root, and paths are shortened.
                root[max(a, b)] = min(a, b)
                root[i] = root[j] = min(a, b)
        size, abundance = np.zeros(n, np.int64), np.zeros(n)
        for i in range(n):
            while root[i] != root[root[i]]:
                root[i] = root[root[i]]
            size[root[i]] += 1
            abundance[root[i]] += total[present[i]]
        best = 0
        for i in range(n):
            if size[i] > size[best] or (size[i] == size[best] and abundance[i] > abundance[best]):
                best = i
        used = np.flatnonzero(root == best)
        m = len(used)
        pairs, degree, right, x = np.zeros((m, m), np.uint8), np.zeros(m), np.zeros(m), np.zeros(m)
        for a in range(m):
            for b in range(a):
                i, j = used[a], used[b]
                if is_pair[i, j]:
                    pairs[a, b] = pairs[b, a] = 1
                    degree[a] += 1
                    degree[b] += 1
                    right[a] += medians[i, j]
                    right[b] -= medians[i, j]
        if m > 1:
            _solve(pairs, degree, right, x)
        relative = np.exp(x - x.max())
        scale = abundance[best] / relative.sum()
        for a in range(m):
            amounts[g, present[used[a]]] = relative[a] * scale
