"""Lengths of alignments from their CIGARs, without a line of Python for each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.lazy_pyarrow import pa

__all__ = ["count_cigar_symbols"]

_ZERO, _DIGITS = ord("0"), 10


def count_cigar_symbols(cigars: pa.StringArray, kinds: str) -> NDArray[np.int64]:
    """Sum the lengths of CIGAR operations of some kinds; counts have up to nine digits, each before its operation.

    >>> import pyarrow as pa
    >>> count_cigar_symbols(pa.array(["3=1X12I", "", "2D"]), "=XD").tolist()
    [4, 0, 2]
    """
    texts = Texts.from_arrow(cigars)
    symbols, offsets = texts.used.astype(np.int64), texts.offsets - texts.offsets[0]
    ends = np.flatnonzero((symbols < _ZERO) | (symbols >= _ZERO + _DIGITS))
    if not len(ends):
        return np.zeros(len(texts), np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    operation = np.repeat(np.arange(len(ends)), ends + 1 - starts)
    places = np.arange(len(operation))
    powers = ends[operation] - 1 - places
    digits = symbols[: len(operation)] - _ZERO
    values = np.where(powers >= 0, digits * _DIGITS ** np.maximum(powers, 0), 0)
    counts = np.add.reduceat(values, starts)
    is_wanted = np.isin(symbols[ends], [ord(kind) for kind in kinds])
    total = np.concatenate(([0], np.cumsum(np.where(is_wanted, counts, 0))))
    before = np.searchsorted(ends, offsets)
    result: NDArray[np.int64] = total[before[1:]] - total[before[:-1]]
    return result
