"""Differences of quantities from the median of their table row, which the window shows as colours."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["relative"]


def relative(values: Sequence[float | None]) -> NDArray[np.float64]:
    """Return log2 quantities minus their median; missing quantities (None) give NaN.

    >>> relative([1.0, None, 3.0, 2.0]).tolist()
    [-1.0, nan, 1.0, 0.0]
    """
    result = np.array([np.nan if value is None else value for value in values], np.float64)
    has = np.isfinite(result)
    return np.where(has, result - (np.median(result[has]) if has.any() else 0.0), np.nan)
