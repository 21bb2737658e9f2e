"""What the colours of a row of numbers tell: how far each is from the row's median."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["relative"]


def relative(values: Sequence[float | None]) -> NDArray[np.float64]:
    """log2 quantities less their median, NaN where there is none: what the colours of a row tell.

    >>> relative([1.0, None, 3.0, 2.0]).tolist()
    [-1.0, nan, 1.0, 0.0]
    """
    found = np.array([np.nan if one is None else one for one in values], np.float64)
    has = np.isfinite(found)
    return np.where(has, found - (np.median(found[has]) if has.any() else 0.0), np.nan)
