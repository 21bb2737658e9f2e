"""Normal equations that give least-squares quantities from the median log ratios between samples in groups of ions."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["pair_medians"]


@njit(nogil=True, cache=True)
def pair_medians(logs, offsets, laplacian, right, part):
    """Add the equations of each group: the median log ratio of the ions in both samples, for each pair of samples.

    Parameters
    ----------
    logs : (n, s) float64
        Logarithms of amounts, NaN if missing, sorted by group.
    offsets : (p + 1,) int64
        The ions of group i are the rows ``offsets[i]:offsets[i + 1]``.
    laplacian : (p, s, s) float64
        Output, initially 0: number of pairs of each sample on the diagonal, and -1 for each pair.
    right : (p, s) float64
        Output, initially 0: sums of the medians of each sample's ratios to others.
    part : (p, s) int64
        Output: smallest index of the samples that are connected to each sample.
    """
    n_samples = logs.shape[1]
    ratios = np.empty(np.diff(offsets).max() if len(offsets) > 1 else 0)
    for g in range(len(offsets) - 1):
        first, last = offsets[g], offsets[g + 1]
        root = part[g]
        for i in range(n_samples):
            root[i] = i
            for j in range(i):
                count = 0
                for row in range(first, last):
                    ratio = logs[row, i] - logs[row, j]
                    if not np.isnan(ratio):
                        ratios[count] = ratio
                        count += 1
                if not count:
                    continue
                ratios[:count].sort()
                median = (ratios[(count - 1) // 2] + ratios[count // 2]) / 2
                laplacian[g, i, i] += 1
                laplacian[g, j, j] += 1
                laplacian[g, i, j] = -1
                laplacian[g, j, i] = -1
                right[g, i] += median
                right[g, j] -= median
                a, b = i, j
                while root[a] != a:
                    a = root[a]
                while root[b] != b:
                    b = root[b]
                # The smaller index is the root, and paths are shortened.
                root[max(a, b)] = min(a, b)
                root[i] = root[j] = min(a, b)
        for i in range(n_samples):
            while root[i] != root[root[i]]:
                root[i] = root[root[i]]
