"""Columns that grow as files are read: in memory, or in a nameless file where they become large.

What lies in the file is mapped: its pages come from the disk when somebody looks, and `release_pages` lets them go again, so that a column
larger than the memory can be gone through block by block.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.files import storage_errors

__all__ = ["GrowingColumn", "passed_through", "release_pages"]

_MAXIMUM_BYTES = 1 << 27
"""Of a column in memory, where there is a folder for more: that of some 80,000 spectra."""
_PIECE = 1 << 24
_MAXIMUM_LISTED_BYTES = 1 << 25
"""Of values that are listed until they are joined: the system moves the pages of larger arrays as they grow, and copies smaller ones."""


class GrowingColumn:
    """A flat array that is added to at its end.

    In memory it is a list of the values while it is small, and then grows in place where the system can move pages, so that little is
    held twice. With a `folder` it goes on in a file there,
    which has no name and is gone with the process, however that ends, once it is larger than `_MAXIMUM_BYTES`.
    """

    def __init__(self, dtype: type, folder: Path | None = None) -> None:
        self._values: NDArray = np.empty(0, dtype=dtype)
        self._listed: list[NDArray] | None = []
        self._length, self._folder = 0, folder
        self._file: IO[bytes] | None = None

    def append(self, values: NDArray) -> None:
        """Add values at the end; the array itself must not be changed any more.

        Raises
        ------
        StorageError : the disk refused.
        """
        values = np.ascontiguousarray(values, self._values.dtype)
        stop = self._length + len(values)
        if self._listed is not None:
            if stop * self._values.itemsize <= min(_MAXIMUM_LISTED_BYTES, _MAXIMUM_BYTES):
                # A view would hold the whole array that it is a part of in memory.
                self._listed.append(values if values.base is None else values.copy())
                self._length = stop
                return
            self._join()
        if self._file is None and self._folder is not None and stop * self._values.itemsize > _MAXIMUM_BYTES:
            with storage_errors(self._folder):
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - it stays open until `finish`
                self._file.write(self._values[: self._length].data)
            self._values = self._values[:0].copy()
        if self._file is not None:
            assert self._folder is not None
            with storage_errors(self._folder):
                self._file.write(values.data)
        else:
            if stop > len(self._values):
                self._values.resize(stop + stop // 8, refcheck=False)
            self._values[self._length : stop] = values
        self._length = stop

    def _join(self) -> None:
        """Make one array of the values listed so far."""
        self._values = np.concatenate([self._values, *(self._listed or [])])
        self._listed = None

    def finish(self) -> NDArray:
        """The whole array; nothing can be added any more. What is written into one that is mapped stays in this process."""
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


def release_pages(values: NDArray) -> None:
    """Give back the memory of a column that is mapped from a file, until somebody looks at it again, and drop what was written into it; of
    any other column, do nothing."""
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def passed_through(values: NDArray) -> Iterator[NDArray]:
    """The values in pieces, one after the other; the memory of those that were mapped from a file is given back behind each."""
    for first in range(0, len(values), _PIECE):
        yield values[first : first + _PIECE]
        release_pages(values)
