"""Runs of uneven length in one array: a flat array, and offsets of n + 1 places in it (the CSR habit)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise, repeat

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa

__all__ = ["Texts", "offsets_of", "pieces", "ranges", "read_only", "take_runs"]

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


def pieces(starts: NDArray[np.int64], size: int = 0) -> list[slice]:
    """All runs, given by where they begin, of some `size` values each (0: `_PIECE`), or one that is longer.

    >>> pieces(np.array([0, 0, 5]))  # the first is empty, and belongs to them
    [slice(0, 3, None)]
    """
    if not len(starts):
        return []
    size = size or _PIECE
    later = np.searchsorted(starts, np.arange(size, int(starts[-1]) + 1, size), side="right") - 1
    cuts = np.unique(np.concatenate(([0], later)))
    return [slice(first, last) for first, last in pairwise([*cuts.tolist(), len(starts)])]


@dataclass(frozen=True)
class Texts:
    """n texts in one array: `letters` uint8, UTF-8; `offsets` (n + 1,) int64 into it.

    >>> Texts.of(["a", "", "bc"])[1:].strings()
    ['', 'bc']
    """

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, strings: Iterable[str]) -> Texts:
        """Some strings."""
        encoded = list(map(str.encode, strings))
        offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def of_arrow(cls, column: pa.StringArray) -> Texts:
        """An Arrow column of texts, none of them missing; not copied."""
        _, offsets, letters = column.buffers()
        of_all = np.frombuffer(letters, np.uint8) if letters is not None else np.empty(0, np.uint8)
        return cls(of_all, np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, some: slice) -> Texts:
        """Some that follow one another; not copied."""
        first, last, _ = some.indices(len(self))
        return Texts(self.letters, self.offsets[first : max(first, last) + 1])

    @property
    def own(self) -> NDArray[np.uint8]:
        """The letters of these texts alone."""
        return self.letters[self.offsets[0] : self.offsets[-1]]

    def take(self, order: NDArray[np.int64]) -> Texts:
        """The texts in another order, some of them or some twice."""
        return Texts(*take_runs(self.letters, self.offsets, order))

    def strings(self) -> list[str]:
        """The texts as strings, made without a line of Python for each."""
        whole, places = self.own.tobytes(), (self.offsets - self.offsets[0]).tolist()
        parts = map(slice, places[:-1], places[1:])
        if whole.isascii():
            return list(map(whole.decode("ascii").__getitem__, parts))
        return list(map(str, map(whole.__getitem__, parts), repeat("utf-8")))

    def arrow(self) -> pa.StringArray:
        """An Arrow column of them."""
        offsets = (self.offsets - self.offsets[0]).astype(np.int32)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(self.own)))


def read_only(array: NDArray) -> NDArray:
    """The same array, which cannot be written to by this name.

    Kernels are compiled for arrays that can be written to and for others, as those that a file is mapped to: what comes from either is
    given to them as read-only, so that no search compiles what another has not.
    """
    view = array.view()
    view.setflags(write=False)
    return view
