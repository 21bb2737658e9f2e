"""Table of the measured traces of all files, in memory or, if large, in temporary files that are mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.spectra.spooling import GrowingColumn, release_pages
from proteoscope.kernels.cpu.elution import N_VALUES

__all__ = ["FeatureWriter", "Features"]

_CELLS = 1 << 20
"""Number of ions times files in a block."""


@dataclass(frozen=True)
class Features:
    """Measured traces (n) of ions in files, sorted by file and ion.

    Attributes
    ----------
    ion : ndarray of int32, shape (n,)
        Index of the ion; `n_ions` for traces that are not used.
    file : ndarray of int32, shape (n,)
        Index of the file in the design, ascending.
    values : ndarray of float64, shape (n, N_VALUES)
        Measured values (`proteoscope.kernels.cpu.elution`), possibly mapped from a file.
    reason : ndarray of int8, shape (n,)
        Reason for refusing the trace, 0 if it has a quantity.
    distance : ndarray of float64, shape (n,)
        Distance of the apex from the nearest spectrum that identified the ion, s.
    n_ions, n_files : int
        Numbers of ions and files.
    """

    ion: NDArray[np.int32]
    file: NDArray[np.int32]
    values: NDArray[np.float64]
    reason: NDArray[np.int8]
    distance: NDArray[np.float64]
    n_ions: int
    n_files: int

    @cached_property
    def by_ion(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices of the traces, sorted by ion and file, and the offset of each ion in these indices, (n_ions + 1,)."""
        return np.argsort(self.ion, kind="stable"), segment_offsets(np.bincount(self.ion, minlength=self.n_ions)[: self.n_ions])

    def rows_of_file(self, file: int) -> NDArray[np.int64]:
        """Return the indices of the used traces of a file, after freeing the memory of values mapped from a file."""
        release_pages(self.values)
        rows = np.arange(*np.searchsorted(self.file, [file, file + 1]).tolist())
        return rows[self.ion[rows] < self.n_ions]

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield consecutive ranges of ions; a table with a row per ion of a range and a column per file fits into memory.

        After each range, the memory of values mapped from a file is freed.
        """
        some = max(1, _CELLS // max(1, self.n_files))
        for first in range(0, self.n_ions, some):
            yield first, min(self.n_ions, first + some)
            release_pages(self.values)

    def rows(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the indices of the traces of the ions `first:last`, sorted by ion and file."""
        order, offsets = self.by_ion
        return order[offsets[first] : offsets[last]]

    def dense(self, rows: NDArray[np.int64], column: NDArray[np.float64], first: int, last: int) -> NDArray[np.float64]:
        """Return the values `column` of the traces `rows` as an array, (ions `first:last`, files); NaN without a trace."""
        result = np.full((last - first, self.n_files), np.nan)
        result[self.ion[rows] - first, self.file[rows]] = column
        return result


class FeatureWriter:
    """Collector of traces, which are added file by file.

    Parameters
    ----------
    folder : Path or None
        Folder of temporary files for columns that are too large for the memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._ion, self._file = (GrowingColumn(np.int32, folder) for _ in range(2))
        self._voltage = GrowingColumn(np.int16, folder)
        self._reason, self._distance = GrowingColumn(np.int8, folder), GrowingColumn(np.float64, folder)
        self._values = GrowingColumn(np.float64, folder)

    def append(
        self,
        file: int,
        voltage: int,
        ion: NDArray[np.int64],
        values: NDArray[np.float64],
        reason: NDArray[np.int8],
        distance: NDArray[np.float64],
    ) -> None:
        """Append the traces (k) of a file at one voltage, by index.

        Raises
        ------
        StorageError
            If the disk is full or cannot be written.
        """
        self._ion.append(ion)
        self._voltage.append(np.full(len(ion), voltage))
        self._file.append(np.full(len(ion), file))
        self._reason.append(reason)
        self._distance.append(distance)
        self._values.append(values.ravel())

    def finish(self, number: NDArray[np.int64], n_ions: int, n_files: int) -> Features:
        """Return the traces; `number` (ions, voltages) is the final index of each ion at each voltage, or -1 if it is not used."""
        ion = number[self._ion.finish(), self._voltage.finish()].astype(np.int32)
        ion[ion < 0] = n_ions
        values = self._values.finish().reshape(-1, N_VALUES)
        # Reasons change later, and changes to mapped arrays would be lost.
        return Features(ion, self._file.finish(), values, np.array(self._reason.finish()), self._distance.finish(), n_ions, n_files)
