"""Quality of clusters by its definition: the sum of squared distances of items from their centroids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from proteoscope.kernels.clustering_layouts import VectorSums


def dense(sums: VectorSums, n_bins: int) -> NDArray[np.float64]:
    """Return the centroids (k, n_bins) of vectors."""
    k = len(sums.counts)
    whole = np.zeros((n_bins, k))
    whole.reshape(-1)[sums.keys] = sums.sums
    return whole.T / np.maximum(1, sums.counts)[:, None]


def inertia(values: Any, labels: NDArray[np.int32], centroids: NDArray[np.float64]) -> float:
    """Return the inertia of items (n, d), dense or CSR, in clusters with centroids (k, d)."""
    if not issparse(values):
        return float(((values - centroids[labels]) ** 2).sum())
    # Vectors are many and of many dimensions: (x - c)^2 = x^2 - 2 x c + c^2, the second summed by cluster.
    members = csr_matrix((np.ones(len(labels)), (labels, np.arange(len(labels)))), (len(centroids), len(labels)))
    squares = values.multiply(values).sum() + np.bincount(labels, minlength=len(centroids)) @ (centroids**2).sum(axis=1)
    return float(squares - 2.0 * (members @ values).multiply(centroids).sum())
