"""Decimal rounding and texts of columns of numbers, as Python's `round` and formats give them, but for all numbers at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa

__all__ = ["printed", "rounded", "rounded_to_digits"]

_LARGEST = 1e12  # of scaled values: products have an error below 1e-3
_NEAR_TIE = 1e-2


def rounded(values: NDArray[np.floating], decimals: int) -> NDArray[np.float64]:
    """Return numbers rounded in decimal arithmetic, as `round` does; NumPy multiplies first, and then treats 0.00625 as a tie.

    Only numbers that lie near a tie, or are too large for this arithmetic, are rounded one by one.

    >>> rounded(np.array([0.00625, 2.675, -0.1]), 2).tolist(), rounded(np.array([0.00625]), 4).tolist()
    ([0.01, 2.67, -0.1], [0.0063])
    """
    values = np.asarray(values, np.float64)
    scaled = values * 10.0**decimals
    integers = np.rint(scaled)
    with np.errstate(invalid="ignore"):
        is_sure = (np.abs(scaled) < _LARGEST) & (np.abs(scaled - integers) < 0.5 - _NEAR_TIE)
    result: NDArray[np.float64] = integers / 10.0**decimals
    is_unsure = ~is_sure & ~np.isnan(values)
    result[is_unsure] = [round(value, decimals) for value in values[is_unsure].tolist()]
    return result


def rounded_to_digits(values: NDArray[np.floating], digits: int) -> NDArray[np.float64]:
    """Return numbers rounded to the given number of significant digits.

    >>> rounded_to_digits(np.array([123456.0, 1.23456e-30, np.nan]), 4).tolist()
    [123500.0, 1.235e-30, nan]
    """
    result: NDArray[np.float64] = printed(values, f".{digits}g").cast(pa.float64()).to_numpy(zero_copy_only=False)
    return result


def printed(values: NDArray[np.floating], form: str) -> pa.Array:
    """Return numbers as texts in a format of Python, since Arrow has none; one format string for all values halves the time."""
    lines = np.frombuffer((f"%{form}\n" * len(values) % tuple(np.asarray(values, np.float64).tolist())).encode(), np.uint8)
    is_end = lines == ord("\n")
    ends = np.flatnonzero(is_end) - np.arange(len(values))  # positions after removal of the line ends
    offsets = np.concatenate(([0], ends)).astype(np.int64)
    symbols = pa.py_buffer(lines[~is_end])
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(offsets), symbols).cast(pa.string())
