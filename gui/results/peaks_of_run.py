"""The stored peaks of a run, or why there are none."""

from __future__ import annotations

from pathlib import Path

from engine.errors import InputError, ProteoscopeError
from engine.project import Project
from engine.results.reader import row_count
from gui.spectrum.spectra_reader import Peaks, SpectraReader

__all__ = ["PeaksOfRun", "open_peaks"]


class PeaksOfRun:
    """Peaks by their row in a table of spectra, which is opened when the first are asked for. For one thread at a time.

    `problem`: why there are none, empty where there are some.
    """

    def __init__(self, path: str, problem: str) -> None:
        self._path, self._problem = path, problem
        self._reader: SpectraReader | None = None

    @property
    def is_there(self) -> bool:
        """Whether there are some."""
        return not self._problem

    def peaks(self, row: int) -> Peaks:
        """The peaks of a row.

        Raises
        ------
        ProteoscopeError : there are none, or the file is damaged.
        """
        if self._problem:
            raise ProteoscopeError(self._problem)
        if self._reader is None:
            self._reader = SpectraReader(self._path)
        return self._reader.peaks(row)

    def count(self) -> int | None:
        """How many spectra there are; None where it cannot be told."""
        return row_count(Path(self._path)) if self.is_there else None

    def close(self) -> None:
        """Let the file go."""
        if self._reader is not None:
            self._reader.close()


def open_peaks(project: Project, run_id: str, table: str) -> PeaksOfRun:
    """The peaks in a table of a run. Spectra are large, and each part of the file carries its own check."""
    try:
        return PeaksOfRun(str(project.table(table, run_id, verify=False)), "")
    except InputError:
        return PeaksOfRun("", f"There are no stored peaks of the run {run_id}.")
    except ProteoscopeError as error:
        return PeaksOfRun("", str(error))
