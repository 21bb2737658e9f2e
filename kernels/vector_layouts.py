"""Layouts of sparse vectors that both backends share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["UNIT_LENGTH", "VectorArrays"]

UNIT_LENGTH = 1024
"""The length to which vectors are scaled before their weights are rounded: weights are whole numbers, so that their products add up to the
same sum in any order."""


class VectorArrays(NamedTuple):
    """n sparse vectors of whole numbers, CSR.

    Attributes
    ----------
    offsets : (n + 1,) int64
        The elements of vector i are `offsets[i]:offsets[i + 1]`.
    bins : (m,) int32
        Not negative, ascending within a vector.
    weights : (m,) int16
        Positive, none above `UNIT_LENGTH`; the squares of a vector add up to about UNIT_LENGTH².
    """

    offsets: NDArray[np.int64]
    bins: NDArray[np.int32]
    weights: NDArray[np.int16]
