"""Conversion of spectrum files to another format, optionally limited by charge, mass, retention time and identification status."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import InputError, ParameterError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.formats.reading import read_spectra
from proteoscope.engine.formats.writing import spectrum_format, write_spectrum_file
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.matches.source_run import identified_indices
from proteoscope.engine.project.digests import file_digest
from proteoscope.engine.project.outputs import check_distinct, check_outputs
from proteoscope.engine.spectra.selection import SpectrumSelection

if TYPE_CHECKING:
    from proteoscope.engine.spectra.columns import Spectra

__all__ = ["Conversion", "ConversionRequest", "IdentifiedIn", "check_conversion", "convert_spectra"]


class IdentifiedIn(NamedTuple):
    """Selection of the spectra that a run of a project identified, or of the spectra that it did not identify.

    Attributes
    ----------
    project : Path
        Project folder.
    is_wanted : bool
        True selects identified spectra, False selects unidentified spectra.
    run : str
        Run identifier; '' for the newest.
    q_value : float
        Maximum q-value of identified spectra.
    """

    project: Path
    is_wanted: bool
    run: str = ""
    q_value: float = 0.01


@dataclass(frozen=True)
class ConversionRequest:
    """Settings of a conversion.

    Attributes
    ----------
    spectra : tuple of Path
        Input files.
    out : Path
        Output file.
    format : str
        Format name; '' selects the format by the suffix of `out`.
    selection : SpectrumSelection
        Selection by spectrum properties.
    identified : IdentifiedIn or None
        Selection by identification; None for all spectra.
    strict : bool
        Reject files with unreadable spectra.
    threads : int or None
        Number of threads; None for all.
    """

    spectra: tuple[Path, ...]
    out: Path
    format: str = ""
    selection: SpectrumSelection = field(default_factory=SpectrumSelection)
    identified: IdentifiedIn | None = None
    strict: bool = False
    threads: int | None = None


class Conversion(NamedTuple):
    """Numbers of written spectra and of all spectra in the input files."""

    n_written: int
    n_spectra: int


def check_conversion(request: ConversionRequest) -> None:
    """Raise an error if a conversion is invalid, before any file is read.

    Raises
    ------
    ParameterError
        If the format is unknown, or an input file would be overwritten.
    InputError
        If a file is given twice.
    """
    spectrum_format(request.format or str(request.out))
    check_outputs([request.out], request.spectra)
    check_distinct(request.spectra)


def convert_spectra(request: ConversionRequest, progress: Progress) -> Conversion:
    """Write the selected spectra to a file, atomically.

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can fix; one sentence describes it.
    Cancelled
        If the user cancelled.
    """
    check_conversion(request)
    threads = request.threads or available_threads()
    spectra = read_spectra(request.spectra, progress=progress, strict=request.strict, threads=threads, takes_negative=True)
    rows = _select_spectra(spectra, request, progress)
    if not len(rows):
        raise ParameterError(f"none of the {len(spectra):,} spectra matches the selection; nothing was written")
    written_as = spectrum_format(request.format or str(request.out))
    write_spectrum_file(request.out, spectra, format=written_as.name, rows=rows, progress=progress, threads=threads)
    return Conversion(len(rows), len(spectra))


def _select_spectra(spectra: Spectra, request: ConversionRequest, progress: Progress) -> NDArray[np.int64]:
    """Return the indices of the selected spectra, (r,) int64."""
    rows, requested = request.selection.rows(spectra), request.identified
    if requested is None:
        return rows
    run, positions = identified_indices(requested.project, requested.run, requested.q_value)
    is_identified = np.zeros(len(spectra), np.bool_)
    for number, file in enumerate(request.spectra):
        result = positions.get(file_digest(file, progress))
        if result is None:
            raise InputError(file, f"was not read by run '{run}' of {requested.project}", remedy="Give the files that were identified")
        is_identified |= (spectra.file == number) & np.isin(spectra.index, result)
    wanted: NDArray[np.int64] = rows[is_identified[rows] == requested.is_wanted]
    return wanted
