"""Write spectra in the formats of the registry that have a writer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.registry import FileFormat, formats_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.separated import write_lines
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["SpectrumWriter", "spectrum_format", "write_spectrum_file", "written_formats"]

_PEAKS, _SPECTRA = 1 << 17, 1 << 10
"""Of a piece that a thread makes at a time, about: a few of them stand in memory."""


class SpectrumWriter(Protocol):
    """A format to write, made with the spectra: what stands before them, for some of them (in several threads), and behind them."""

    def begin(self, rows: NDArray[np.int64]) -> bytes:
        """What stands before the first spectrum. `rows`: (n,) int64, those that will be written, in this order."""

    def text(self, rows: NDArray[np.int64]) -> Any:
        """Some of them, which follow one another."""

    def written(self, text: Any) -> bytes:
        """What stands in the file for a text, asked in the order of the file."""

    def end(self) -> bytes:
        """What stands behind the last spectrum."""


def written_formats() -> tuple[FileFormat, ...]:
    """The formats that spectra can be written in."""
    return tuple(one for one in formats_of("spectra") if one.writer)


def spectrum_format(name: str) -> FileFormat:
    """The format that spectra are written in, by its name or by the suffix of a file.

    Raises
    ------
    ParameterError : there is none of this name, or it is not written.

    Examples
    --------
    >>> spectrum_format("mzml").name, spectrum_format("folder/run.mgf").name
    ('mzML', 'MGF')
    """
    wish = name.lower()
    for one in written_formats():
        if wish == one.name.lower() or wish.endswith(one.suffixes):
            return one
    *others, last = (one.suffixes[0] for one in written_formats())
    names = f"{', '.join(others)} or {last}"
    behind = "; what is written is not packed" if wish.endswith(".gz") else ""
    raise ParameterError(f"'{name:.200}' names no format that spectra are written in; expected a name that ends with {names}{behind}")


def write_spectrum_file(
    out: Path,
    spectra: Spectra,
    *,
    format: str = "",
    rows: NDArray[np.int64] | None = None,
    progress: Progress | None = None,
    threads: int = 1,
) -> None:
    """Write spectra to the file `out`, which appears whole or not at all.

    Parameters
    ----------
    format : ``mgf``, ``ms2`` or ``mzml``; by the suffix of `out` where it is empty. rows : (n,) int64, those to write, in this order; all
        when None.
    progress : told the spectra, and asked for a cancel.

    Raises
    ------
    ParameterError : there is no such format. StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    chosen = spectrum_format(format or out.name)
    rows = np.arange(len(spectra)) if rows is None else rows
    progress = progress or Progress()
    assert chosen.writer is not None
    writer: SpectrumWriter = chosen.writer()(spectra)
    progress.stage(f"Writing {chosen.name}", len(rows))
    header = writer.begin(rows)
    write_lines(out, header, _pieces(spectra, rows), writer.text, progress, threads=threads, then=writer.written, end=writer.end)


def _pieces(spectra: Spectra, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    n_peaks = np.diff(spectra.offsets)[rows]
    piece = (np.cumsum(n_peaks) - n_peaks) // _PEAKS + np.arange(len(rows)) // _SPECTRA
    yield from np.split(rows, np.flatnonzero(np.diff(piece)) + 1)
