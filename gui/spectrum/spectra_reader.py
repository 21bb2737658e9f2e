"""Single spectra out of the spectra table of a run, by row."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.errors import InputError

__all__ = ["Peaks", "SpectraReader"]

_PEAKS_KEPT = 4_000_000


class Peaks(NamedTuple):
    """Peaks of one spectrum: `mz` (n,) float64, thomson, ascending; `intensity` (n,) float64."""

    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]


class _Group(NamedTuple):
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]


class SpectraReader:
    """Random access to ``spectra.parquet``: a row group is read and decoded at a time, and those used last are kept.

    Raises
    ------
    InputError : the file is no Parquet, or has no peaks.
    """

    def __init__(self, path: str | Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = Path(path)
        try:
            self._file = pq.ParquetFile(self._path)
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error
        missing = {"mz", "intensity"} - set(self._file.schema_arrow.names)
        if missing:
            self.close()
            raise InputError(self._path, f"has no column {', '.join(sorted(missing))}", remedy="Run the search again")
        metadata = self._file.metadata
        counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        self._groups: OrderedDict[int, _Group] = OrderedDict()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def peaks(self, row: int) -> Peaks:
        """The peaks of the spectrum in `row` of the table, ordered by m/z.

        Raises
        ------
        InputError : there is no such row, or the file is damaged.
        """
        if not 0 <= row < len(self):
            raise InputError(self._path, f"has no spectrum {row}; it holds {len(self)}", remedy="Run the search again")
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        group = self._group(number)
        first, last = group.offsets[row - self._starts[number] :][:2]
        mz, intensity = group.mz[first:last], group.intensity[first:last]
        if (np.diff(mz) < 0).any():
            order = np.argsort(mz, kind="stable")
            mz, intensity = mz[order], intensity[order]
        return Peaks(mz, intensity)

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def _group(self, number: int) -> _Group:
        import pyarrow as pa

        if number in self._groups:
            self._groups.move_to_end(number)
            return self._groups[number]
        try:
            table = self._file.read_row_group(number, columns=["mz", "intensity"], use_threads=False).combine_chunks()
        except (OSError, pa.ArrowException) as error:
            raise self._damaged(error) from error
        mz, intensity = table["mz"].combine_chunks(), table["intensity"].combine_chunks()
        # Offsets of a list column count from its buffer's begin, its flattened values from its own.
        offsets = mz.offsets.to_numpy().astype(np.int64)
        group = _Group(offsets - offsets[0], mz.flatten().to_numpy().astype(np.float64), intensity.flatten().to_numpy().astype(np.float64))
        if len(group.mz) != len(group.intensity):
            raise self._damaged("m/z and intensities differ in number")
        self._groups[number] = group
        while len(self._groups) > 1 and sum(len(kept.mz) for kept in self._groups.values()) > _PEAKS_KEPT:
            self._groups.popitem(last=False)
        return group

    def _damaged(self, why: object) -> InputError:
        return InputError(self._path, f"cannot be read as a table of spectra ({why})", remedy="Run the search again")
