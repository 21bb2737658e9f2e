"""Reading of the stored peaks of a run, given the row of a spectrum in the table of spectra."""

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import SpectrumRow
from proteoscope.engine.chemistry.activation import Activation, parse_activation_names
from proteoscope.engine.errors import InputError, ProteoscopeError
from proteoscope.engine.project import Project
from proteoscope.engine.results.reader import TableFile, row_count
from proteoscope.engine.spectra.tables import PEAKS

__all__ = ["Peaks", "PeaksOfRun", "SpectraReader", "open_peaks"]

_CACHED_PEAKS = 4_000_000


class Peaks(NamedTuple):
    """Peaks of one spectrum.

    Attributes
    ----------
    mz
        m/z values in thomson, ascending, shape (n,), float64.
    intensity
        Intensities, shape (n,), float64.
    activation
        Fragmentation method.
    """

    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    activation: int = Activation.UNKNOWN


class _Group(NamedTuple):
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    activation: NDArray[np.uint8]


class SpectraReader:
    """Reader of single rows of ``spectra.parquet``, which caches recently used row groups.

    Raises
    ------
    InputError
        If the file is not Parquet, or has no peaks.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file = TableFile(self._path, PEAKS, remedy="Run the search again")
        self._starts = np.concatenate(([0], np.cumsum(self._file.group_rows, dtype=np.int64)))
        self._groups: OrderedDict[int, _Group] = OrderedDict()

    def __len__(self) -> int:
        return int(self._starts[-1])

    def peaks(self, row: SpectrumRow) -> Peaks:
        """Return the peaks of the spectrum in row `row` of the table, sorted by m/z.

        Raises
        ------
        InputError
            If there is no such row, or the file is damaged.
        """
        if not 0 <= row < len(self):
            raise InputError(self._path, f"has no spectrum {row}; it holds {len(self)}", remedy="Run the search again")
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        group = self._group(number)
        position = int(row - self._starts[number])
        first, last = group.offsets[position : position + 2]
        mz, intensity = group.mz[first:last], group.intensity[first:last]
        if (np.diff(mz) < 0).any():
            order = np.argsort(mz, kind="stable")
            mz, intensity = mz[order], intensity[order]
        return Peaks(mz, intensity, int(group.activation[position]))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _group(self, number: int) -> _Group:
        if number in self._groups:
            self._groups.move_to_end(number)
            return self._groups[number]
        has_activation = "activation" in self._file.columns
        table = self._file.read_group(number, ("mz", "intensity", "activation") if has_activation else ("mz", "intensity"))
        mz, intensity = table["mz"].chunk(0), table["intensity"].chunk(0)
        # Offsets of a list column count from the start of its buffer, but flattened values start at the first offset.
        offsets = mz.offsets.to_numpy().astype(np.int64)
        names = table["activation"].to_pylist() if has_activation else [None] * len(table)
        group = _Group(
            offsets - offsets[0], mz.flatten().to_numpy(), intensity.flatten().to_numpy().astype(np.float64), parse_activation_names(names)
        )
        self._groups[number] = group
        while len(self._groups) > 1 and sum(len(retained.mz) for retained in self._groups.values()) > _CACHED_PEAKS:
            self._groups.popitem(last=False)
        return group


class PeaksOfRun:
    """Reader of the peaks of single spectra in a table; the file is opened on first use, and only one thread may use the reader.

    Attributes
    ----------
    problem
        Reason why peaks are missing, or ''.
    """

    def __init__(self, path: str, problem: str) -> None:
        self._path, self._problem = path, problem
        self._reader: SpectraReader | None = None

    @property
    def is_there(self) -> bool:
        """True if peaks are available."""
        return not self._problem

    def peaks(self, row: SpectrumRow) -> Peaks:
        """Return the peaks of the spectrum in a row.

        Raises
        ------
        ProteoscopeError
            If there are no peaks, or the file is damaged.
        """
        if self._problem:
            raise ProteoscopeError(self._problem)
        if self._reader is None:
            self._reader = SpectraReader(self._path)
        return self._reader.peaks(row)

    def count(self) -> int | None:
        """Return the number of spectra, or None if unknown."""
        return row_count(Path(self._path)) if self.is_there else None

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()


def open_peaks(project: Project, run_id: str, table: str) -> PeaksOfRun:
    """Return a reader of the peaks in a table of a run.

    The digest of the file is not checked, since this would read the whole file; each section of the file has a checksum.
    """
    try:
        return PeaksOfRun(str(project.table(table, run_id, verify=False)), "")
    except InputError:
        return PeaksOfRun("", f"The peaks of the run '{run_id}' are not stored.")
    except ProteoscopeError as error:
        return PeaksOfRun("", str(error))
