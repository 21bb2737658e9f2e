"""Writer of spectra in the formats of the registry that have a writer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.registry import FileFormat, bare_name, select_formats
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.separated import write_lines
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["SpectrumWriter", "spectrum_format", "write_spectrum_file", "written_formats"]

_PEAKS, _SPECTRA = 1 << 17, 1 << 10
"""Approximate numbers of peaks and spectra in a batch; threads format a few batches simultaneously."""


class SpectrumWriter(Protocol):
    """Writer of a format. The constructor takes the spectra; the method `text` is called in several threads."""

    def begin(self, rows: NDArray[np.int64]) -> bytes:
        """Return the text before the first spectrum; `rows` are the indices of the spectra to write, shape (n,), in this order."""

    def text(self, rows: NDArray[np.int64]) -> Any:
        """Format spectra that will be consecutive in the file, given by their indices `rows`; the result is passed to `written`."""

    def written(self, text: Any) -> bytes:
        """Return the bytes to write for the result `text` of the method `text`; called in the order of the file."""

    def end(self) -> bytes:
        """Return the text after the last spectrum."""


def written_formats() -> tuple[FileFormat, ...]:
    """Return the formats in which spectra can be written."""
    return tuple(file_format for file_format in select_formats("spectra") if file_format.writer)


def spectrum_format(name: str) -> FileFormat:
    """Return the format for writing spectra that a format name or a file name indicates.

    Raises
    ------
    ParameterError
        If the name is not a format that can be written, and does not have the suffix of such a format.

    Examples
    --------
    >>> spectrum_format("mzml").name, spectrum_format("folder/run.mgf").name
    ('mzML', 'MGF')
    """
    lowered = bare_name(name)
    for file_format in written_formats():
        if lowered == file_format.name.lower() or lowered.endswith(file_format.suffixes):
            return file_format
    *others, last = (file_format.suffixes[0] for file_format in written_formats())
    names = f"{', '.join(others)} or {last}"
    raise ParameterError(f"'{name:.200}' is not a format for writing spectra; expected a name that ends with {names}, also followed by .gz")


def write_spectrum_file(
    out: Path,
    spectra: Spectra,
    *,
    format: str = "",
    rows: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
    threads: int = 1,
) -> None:
    """Write spectra to the file `out` atomically.

    Parameters
    ----------
    out : Path
        File to write.
    spectra : Spectra
        Spectra from which `rows` are written.
    format : str
        Name of the format: ``mgf``, ``ms2`` or ``mzml``; '' selects it by the suffix of `out`.
    rows : ndarray of int64, shape (n,), optional
        Indices of the spectra to write, in this order; by default all.
    progress : Progress, optional
        Receives the number of spectra written; polled for cancellation.
    threads : int
        Number of threads that format spectra.

    Raises
    ------
    ParameterError
        If there is no such format.
    StorageError
        If the disk is full or cannot be written.
    Cancelled
        If the user cancels.
    """
    chosen = spectrum_format(format or out.name)
    rows = np.arange(len(spectra)) if rows is None else rows
    progress = progress or Progress()
    assert chosen.writer is not None
    writer: SpectrumWriter = chosen.writer()(spectra)
    progress.stage(f"Writing {chosen.name}", len(rows))
    header = writer.begin(rows)
    write_lines(out, header, _batches(spectra, rows), writer.text, progress, threads=threads, then=writer.written, end=writer.end)


def _batches(spectra: Spectra, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    n_peaks = np.diff(spectra.offsets)[rows]
    batch = (np.cumsum(n_peaks) - n_peaks) // _PEAKS + np.arange(len(rows)) // _SPECTRA
    yield from np.split(rows, np.flatnonzero(np.diff(batch)) + 1)
