"""Functions for segments of a flat array that n + 1 offsets (CSR) delimit, texts stored as such segments, masks and hashes.

Row indices have types, so that mypy reports the use of a row of peptides as a row of spectra. At run time each index is an int. Arrays
of row indices are arrays of plain integers; an index taken from such an array is converted to its type. Row indices of other tables
(matches, hits, members of clusters) are plain ints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, repeat
from typing import Any, NewType, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.lazy_pyarrow import pa

__all__ = [
    "ChainRow",
    "PeptideRow",
    "ProteinRow",
    "Scalar",
    "SpectrumRow",
    "Texts",
    "batch_segments",
    "is_group_start",
    "positions_in_groups",
    "ranges",
    "read_only",
    "row_mask",
    "row_range",
    "segment_offsets",
    "splitmix64",
    "take_segments",
]

PeptideRow = NewType("PeptideRow", int)
"""Row of a peptide, from 0: in a `PeptideIndex`, in `Identifications.peptides`, or in a run's table ``peptides``."""

SpectrumRow = NewType("SpectrumRow", int)
"""Row of a spectrum, from 0: in `Spectra`, in the `SpectrumTable` of a block, or in a run's table ``spectra``."""

ProteinRow = NewType("ProteinRow", int)
"""Row of a protein, from 0: in `Proteins`, in a `SequenceDatabase`, or in the table ``proteins`` of mapped evidence."""

ChainRow = NewType("ChainRow", int)
"""Row of a protein chain, from 0: in the `Chains` of structure files or of a structure database."""

Row = TypeVar("Row", PeptideRow, SpectrumRow, ProteinRow, ChainRow)


def row_range(kind: Callable[[int], Row], n: int) -> Sequence[Row]:
    """Return the row indices 0 to n - 1 with the type `kind`, without converting each index.

    Parameters
    ----------
    kind : type
        Type of the row indices, such as `PeptideRow`.
    n : int
        Number of rows of the table.

    Examples
    --------
    >>> list(row_range(ProteinRow, 3))
    [0, 1, 2]
    """
    return cast("Sequence[Row]", range(n))


Scalar = TypeVar("Scalar", bound=np.generic)
"""Type of the values of an array."""

_BATCH_VALUES = 1 << 22


def segment_offsets(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the offsets (CSR) of consecutive segments with the given lengths.

    Parameters
    ----------
    lengths : ndarray of int, shape (n,)
        Number of elements of each segment.

    Returns
    -------
    ndarray of int64, shape (n + 1,)

    Examples
    --------
    >>> segment_offsets(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: NDArray[np.integer], stops: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ranges ``starts[i]:stops[i]`` as offsets (CSR) and the concatenated indices.

    >>> [array.tolist() for array in ranges(np.array([7, 1]), np.array([9, 2]))]
    [[0, 2, 3], [7, 8, 1]]
    """
    offsets = segment_offsets((np.asarray(stops) - np.asarray(starts)).astype(np.int64))
    return offsets, np.arange(offsets[-1]) + np.repeat(np.asarray(starts).astype(np.int64) - offsets[:-1], np.diff(offsets))


def take_segments(
    values: NDArray[Scalar], offsets: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[Scalar], NDArray[np.int64]]:
    """Return the segments with the indices `order`, as values and offsets (CSR); `order` may omit or repeat segments.

    >>> [array.tolist() for array in take_segments(np.array([1, 2, 3]), np.array([0, 2, 3]), np.array([1, 0]))]
    [[3, 1, 2], [0, 1, 3]]
    """
    new = segment_offsets(np.diff(offsets)[order])
    taken = np.empty((new[-1], *values.shape[1:]), values.dtype)
    # In batches, since the int64 indices may take eight times the memory of the values.
    for batch in batch_segments(new[:-1]):
        start, stop = new[batch.start], new[batch.stop]
        shift = np.repeat(offsets[order[batch]] - new[batch], np.diff(new[batch.start : batch.stop + 1]))
        taken[start:stop] = values[np.arange(start, stop) + shift]
    return taken, new


def batch_segments(starts: NDArray[np.int64], size: int = 0) -> list[slice]:
    """Group consecutive segments into batches of about `size` values; a longer segment forms a separate batch.

    Parameters
    ----------
    starts : ndarray of int64, shape (n,)
        Index of the first value of each segment, ascending.
    size : int
        Approximate number of values per batch; 0 for the default.

    Returns
    -------
    list of slice
        Ranges of segment indices.

    Examples
    --------
    >>> batch_segments(np.array([0, 0, 5]))  # the first segment is empty
    [slice(0, 3, None)]
    """
    if not len(starts):
        return []
    size = size or _BATCH_VALUES
    later = np.searchsorted(starts, np.arange(size, int(starts[-1]) + 1, size), side="right") - 1
    cuts = np.unique(np.concatenate(([0], later)))
    return [slice(first, last) for first, last in pairwise([*cuts.tolist(), len(starts)])]


@dataclass(frozen=True)
class Texts:
    """n texts stored in one array of bytes.

    Attributes
    ----------
    characters : ndarray of uint8
        Concatenated UTF-8 bytes of the texts.
    offsets : ndarray of int64, shape (n + 1,)
        Text i is ``characters[offsets[i]:offsets[i + 1]]``.

    Examples
    --------
    >>> Texts.from_strings(["a", "", "bc"])[1:].strings()
    ['', 'bc']
    """

    characters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> Texts:
        """Return strings in the form of `Texts`."""
        encoded = list(map(str.encode, strings))
        offsets = np.fromiter(accumulate(map(len, encoded), initial=0), np.int64, len(encoded) + 1)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    @classmethod
    def from_arrow(cls, column: pa.StringArray) -> Texts:
        """Return the texts of an Arrow column without nulls; the bytes of the column are used without copying."""
        _, offsets, content = column.buffers()
        characters = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
        return cls(characters, np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset).astype(np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, rows: slice) -> Texts:
        """Return a slice of consecutive texts, without copying."""
        first, last, _ = rows.indices(len(self))
        return Texts(self.characters, self.offsets[first : max(first, last) + 1])

    @property
    def used(self) -> NDArray[np.uint8]:
        """UTF-8 bytes of these texts only; after slicing, `characters` still contains the bytes of all texts."""
        return self.characters[self.offsets[0] : self.offsets[-1]]

    def take(self, order: NDArray[np.int64]) -> Texts:
        """Return the texts with the indices `order`, which may omit or repeat texts."""
        return Texts(*take_segments(self.characters, self.offsets, order))

    def strings(self) -> list[str]:
        """Return the texts as strings, without a Python loop."""
        whole, positions = self.used.tobytes(), (self.offsets - self.offsets[0]).tolist()
        parts = map(slice, positions[:-1], positions[1:])
        if whole.isascii():
            return list(map(whole.decode("ascii").__getitem__, parts))
        return list(map(str, map(whole.__getitem__, parts), repeat("utf-8")))

    def arrow(self) -> pa.StringArray:
        """Return the texts as an Arrow column."""
        offsets = (self.offsets - self.offsets[0]).astype(np.int32)
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(self.used)))


def is_group_start(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return True for each row that differs from the row before in any of the columns; True for the first row.

    >>> is_group_start(np.array([4, 4, 7, 7]), np.array([0, 0, 0, 1])).tolist()
    [True, False, True, True]
    """
    result = np.ones(len(columns[0]), np.bool_)
    result[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return result


def positions_in_groups(is_first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the index of each row within its group of consecutive rows, from 0; `is_first` is True for the first row of each group.

    >>> positions_in_groups(np.array([True, False, True, False, False])).tolist()
    [0, 1, 0, 1, 2]
    """
    rows = np.arange(len(is_first))
    places: NDArray[np.int64] = rows - np.maximum.accumulate(np.where(is_first, rows, 0))
    return places


def row_mask(n: int, rows: NDArray[np.integer] | Sequence[int]) -> NDArray[np.bool_]:
    """Return n values that are True at the indices `rows`, and False elsewhere.

    >>> row_mask(4, [0, 2]).tolist()
    [True, False, True, False]
    """
    result = np.zeros(n, np.bool_)
    result[rows] = True
    return result


def splitmix64(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the SplitMix64 hash of each state (Steele 2014, OOPSLA).

    Callers first spread small numbers over 64 bits, by multiplying them with the golden-ratio constant of SplitMix64.
    """
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view of an array.

    Kernels are compiled separately for writable arrays and for read-only ones, such as memory-mapped arrays. Passing all arrays as
    read-only avoids a second compilation.
    """
    view = array.view()
    view.setflags(write=False)
    return view
