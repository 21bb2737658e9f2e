"""Layouts of sparse vectors for both backends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNIT_LENGTH", "VectorArrays"]

UNIT_LENGTH = 1024
"""Length to which vectors are scaled before their weights are rounded to integers, so that sums of products do not depend on the order."""


class VectorArrays(NamedTuple):
    """Sparse vectors (n) of integers as CSR.

    Attributes
    ----------
    offsets : (n + 1,) int64
        Elements of vector i are `offsets[i]:offsets[i + 1]`.
    bins : (m,) int32
        Bins, non-negative and ascending in each vector.
    weights : (m,) int16
        Weights from 1 to `UNIT_LENGTH`; the squares of a vector's weights sum to about UNIT_LENGTH².
    """

    offsets: NDArray[np.int64]
    bins: NDArray[np.int32]
    weights: NDArray[np.int16]
