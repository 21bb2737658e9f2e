"""Operations in CIGARs and their lengths, computed for many alignments at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Texts
from proteoscope.engine.lazy_pyarrow import pa

__all__ = ["CigarRuns", "cigar_runs", "count_cigar_symbols"]

_ZERO, _DIGITS = ord("0"), 10


class CigarRuns(NamedTuple):
    """Operations (m in total) of n CIGARs.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Operations of CIGAR i are ``offsets[i]:offsets[i + 1]``.
    length, kind : ndarray of int64 and of uint8, shape (m,)
        Length of each operation, and its ASCII character.
    """

    offsets: NDArray[np.int64]
    length: NDArray[np.int64]
    kind: NDArray[np.uint8]


def cigar_runs(cigars: pa.StringArray) -> CigarRuns:
    """Return the operations of CIGARs; the length of each operation must have at most nine digits."""
    texts = Texts.from_arrow(cigars)
    symbols, offsets = texts.used.astype(np.int64), texts.offsets - texts.offsets[0]
    ends = np.flatnonzero((symbols < _ZERO) | (symbols >= _ZERO + _DIGITS))
    if not len(ends):
        return CigarRuns(np.zeros(len(texts) + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
    starts = np.concatenate(([0], ends[:-1] + 1))
    operation = np.repeat(np.arange(len(ends)), ends + 1 - starts)
    positions = np.arange(len(operation))
    powers = ends[operation] - 1 - positions
    digits = symbols[: len(operation)] - _ZERO
    values = np.where(powers >= 0, digits * _DIGITS ** np.maximum(powers, 0), 0)
    return CigarRuns(np.searchsorted(ends, offsets), np.add.reduceat(values, starts), symbols[ends].astype(np.uint8))


def count_cigar_symbols(cigars: pa.StringArray, kinds: str) -> NDArray[np.int64]:
    """Return the total length of the operations of the given kinds in each of n CIGARs, (n,) int64.

    The length of each operation must have at most nine digits.

    >>> import pyarrow as pa
    >>> count_cigar_symbols(pa.array(["3=1X12I", "", "2D"]), "=XD").tolist()
    [4, 0, 2]
    """
    runs = cigar_runs(cigars)
    is_wanted = np.isin(runs.kind, [ord(kind) for kind in kinds])
    total = np.concatenate(([0], np.cumsum(np.where(is_wanted, runs.length, 0))))
    result: NDArray[np.int64] = total[runs.offsets[1:]] - total[runs.offsets[:-1]]
    return result
