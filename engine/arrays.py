"""Runs of uneven length in one array: a flat array, and offsets of n + 1 places in it (the CSR habit)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["offsets_of", "pieces", "ranges", "take_runs"]

_PIECE = 1 << 22


def offsets_of(lengths: NDArray) -> NDArray[np.int64]:
    """(n + 1,) int64 offsets of runs that follow one another.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: NDArray[np.integer], stops: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and flat indexes of the ranges `starts[i]:stops[i]`.

    >>> [found.tolist() for found in ranges(np.array([7, 1]), np.array([9, 2]))]
    [[0, 2, 3], [7, 8, 1]]
    """
    offsets = offsets_of((np.asarray(stops) - np.asarray(starts)).astype(np.int64))
    return offsets, np.arange(offsets[-1]) + np.repeat(np.asarray(starts).astype(np.int64) - offsets[:-1], np.diff(offsets))


def take_runs(values: NDArray, offsets: NDArray[np.int64], order: NDArray[np.int64]) -> tuple[NDArray, NDArray[np.int64]]:
    """The runs in another order, some of them or some twice: values and offsets.

    >>> [found.tolist() for found in take_runs(np.array([1, 2, 3]), np.array([0, 2, 3]), np.array([1, 0]))]
    [[3, 1, 2], [0, 1, 3]]
    """
    new = offsets_of(np.diff(offsets)[order])
    taken = np.empty(new[-1], values.dtype)
    # In pieces, since the places of the values take eight times the room of the values.
    for some in pieces(new[:-1]):
        start, stop = new[some.start], new[some.stop]
        shift = np.repeat(offsets[order[some]] - new[some], np.diff(new[some.start : some.stop + 1]))
        taken[start:stop] = values[np.arange(start, stop) + shift]
    return taken, new


def pieces(starts: NDArray[np.int64]) -> list[slice]:
    """Runs, given by where they begin, of some `_PIECE` values each, or one that is longer."""
    if not len(starts):
        return []
    cuts = np.unique(np.searchsorted(starts, np.arange(0, int(starts[-1]) + 1, _PIECE), side="right") - 1)
    return [slice(first, last) for first, last in pairwise([*cuts.tolist(), len(starts)])]
