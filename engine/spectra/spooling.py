"""Columns that grow while files are read: in memory or, if large, in a temporary file without a name.

The file is memory-mapped: pages are loaded from disk on access, and `release_pages` frees them, so that a column that is larger than the
memory can be processed block by block.
"""

import mmap
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Generic

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import Scalar
from proteoscope.engine.files import storage_errors

__all__ = ["MAXIMUM_BYTES_IN_MEMORY", "GrowingColumn", "full_matrix", "iterate_chunks", "release_pages", "row_blocks"]

MAXIMUM_BYTES_IN_MEMORY = 1 << 27
"""Maximum size in bytes of a column in memory if a folder is given, which is the size for about 80,000 spectra."""
_CHUNK_VALUES = 1 << 24
_BLOCK_VALUES = 1 << 20
_MAXIMUM_LISTED_BYTES = 1 << 25
"""Maximum size in bytes of a column that is a list of arrays; larger arrays grow in place, since the system can move their pages."""


class GrowingColumn(Generic[Scalar]):
    """One-dimensional array that grows at its end.

    A small column is a list of arrays in memory. A larger one grows in place if the system can move pages, so that little is stored twice.
    With a `folder`, columns larger than `MAXIMUM_BYTES_IN_MEMORY` continue in a temporary file without a name, which disappears with the
    process.

    Parameters
    ----------
    dtype : type
        Type of the values.
    folder : Path, optional
        Folder of the temporary file; None to stay in memory.
    """

    def __init__(self, dtype: type[Scalar], folder: Path | None = None) -> None:
        self._values: NDArray[Scalar] = np.empty(0, dtype=dtype)
        self._listed: list[NDArray[Scalar]] | None = []
        self._length, self._folder = 0, folder
        self._file: IO[bytes] | None = None

    def append(self, values: NDArray[np.generic]) -> None:
        """Append values; the array `values` must not be changed afterwards.

        Raises
        ------
        StorageError
            If the disk is full or cannot be written.
        """
        added = np.ascontiguousarray(values, self._values.dtype)
        stop = self._length + len(added)
        if self._listed is not None:
            if stop * self._values.itemsize <= min(_MAXIMUM_LISTED_BYTES, MAXIMUM_BYTES_IN_MEMORY):
                # A view would retain the whole underlying array in memory.
                self._listed.append(added if added.base is None else added.copy())
                self._length = stop
                return
            self._join()
        if self._file is None and self._folder is not None and stop * self._values.itemsize > MAXIMUM_BYTES_IN_MEMORY:
            with storage_errors(self._folder):
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - it stays open until `finish`
                self._file.write(self._values[: self._length].data)
            self._values = self._values[:0].copy()
        if self._file is not None:
            assert self._folder is not None
            with storage_errors(self._folder):
                self._file.write(added.data)
        else:
            if stop > len(self._values):
                self._values.resize(stop + stop // 8, refcheck=False)
            self._values[self._length : stop] = added
        self._length = stop

    def _join(self) -> None:
        """Concatenate the list of arrays into one array."""
        self._values = np.concatenate([self._values, *(self._listed or [])])
        self._listed = None

    def finish(self) -> NDArray[Scalar]:
        """Return the complete array; values cannot be appended afterwards. Changes of the array are not written to a file."""
        if self._listed is not None:
            self._join()
            return self._values
        if self._file is None:
            self._values.resize(self._length, refcheck=False)
            return self._values
        assert self._folder is not None
        with storage_errors(self._folder), self._file as file:
            file.flush()
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return np.frombuffer(pages, self._values.dtype, self._length)


def full_matrix(shape: tuple[int, int], value: float, dtype: type[Scalar], folder: Path | None) -> NDArray[Scalar]:
    """Return a matrix filled with a value, in memory, or, if it is large and a folder is given, mapped from a nameless temporary file.

    Raises
    ------
    StorageError
        If the disk is full or cannot be written.
    """
    n_rows, n_columns = shape
    n_bytes = n_rows * n_columns * np.dtype(dtype).itemsize
    if folder is None or n_bytes <= MAXIMUM_BYTES_IN_MEMORY:
        return np.full(shape, value, dtype)
    with storage_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        # All bytes are written, because a full disk would otherwise end the program when a page is first used.
        block = np.full((max(1, _BLOCK_VALUES // n_columns), n_columns), value, dtype)
        for first in range(0, n_rows, len(block)):
            file.write(block[: n_rows - first].data)
        file.flush()
        pages = mmap.mmap(file.fileno(), n_bytes)
    return np.frombuffer(pages, dtype).reshape(shape)


def row_blocks(*matrices: NDArray[np.generic]) -> Iterator[slice]:
    """Yield slices of rows of `matrices`, which have the same shape; after each slice, free the memory of matrices mapped from files."""
    n_rows, n_columns = matrices[0].shape
    some = max(1, _BLOCK_VALUES // max(1, n_columns))
    for first in range(0, n_rows, some):
        yield slice(first, min(n_rows, first + some))
        for values in matrices:
            release_pages(values)


def release_pages(values: NDArray[np.generic]) -> None:
    """Free the memory of a column or matrix that is mapped from a file; its values are read from the file again when they are next used.

    Arrays that are not mapped are unchanged. Values that were changed in a column from `GrowingColumn` are lost; values that were changed
    in a matrix from `full_matrix` are not.
    """
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def iterate_chunks(values: NDArray[Scalar]) -> Iterator[NDArray[Scalar]]:
    """Yield the values of a column in chunks, and free the memory of a mapped column after each chunk."""
    for first in range(0, len(values), _CHUNK_VALUES):
        yield values[first : first + _CHUNK_VALUES]
        release_pages(values)
