"""Reader of spectral libraries in any supported format, which is recognised by the content."""

from collections.abc import Sequence
from pathlib import Path

from proteoscope.engine.errors import InputError
from proteoscope.engine.escaped_names import warn_escaped_names
from proteoscope.engine.formats.libraries.entries import LibraryCollector
from proteoscope.engine.formats.recognition import recognise
from proteoscope.engine.formats.registry import format_names
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

__all__ = ["read_libraries"]


def read_libraries(paths: Sequence[str | Path], progress: Progress | None = None) -> SpectralLibrary:
    """Read the entries of spectral libraries in any supported format, in the order of the files.

    Invalid entries and entries with an unknown peptide are skipped and counted (`SpectralLibrary.skipped`), and reported in a warning.

    Parameters
    ----------
    paths : sequence of str or Path
        Files, at least one.
    progress : Progress, optional
        Progress, which receives messages and is checked for cancellation.

    Returns
    -------
    SpectralLibrary
        Entries of all files.

    Raises
    ------
    InputError
        If a file is missing, damaged, not a library, or without a usable entry.
    Cancelled
        If the user cancels.
    """
    progress = progress or Progress()
    files = [Path(path) for path in paths]
    if not files:
        raise ValueError("no libraries were given")
    library = LibraryCollector(files)
    for path in files:
        with ByteSource(path) as source:
            written_as = recognise(source)
            reader = written_as.reader if written_as.content == "libraries" else written_as.library_reader
            if reader is None:
                remedy = "Give it as SPECTRA" if written_as.content == "spectra" else f"Give {format_names('libraries')}"
                raise InputError(path, f"is {written_as.name}, not a spectral library", remedy=remedy)
            progress.stage(f"Reading {path.name}", source.size)
            library.begin(source.unfolding)
            reader()(source, library, progress)
        line, reason = library.first_issue()
        if not library.n_taken:
            if not library.n_read:
                raise InputError(path, "contains no spectrum", remedy="Give another library")
            raise InputError(
                path,
                f"has no usable entry; the first: {reason}",
                place=f"line {line}" if line else "",
                remedy="Download or write it again",
            )
        if library.n_taken < library.n_read:
            progress.message(
                f"{path}: {library.n_read - library.n_taken:,} of {library.n_read:,} entries left out; the first: line {line}, {reason}",
                "warning",
            )
        warn_escaped_names(progress, path, library.n_escaped)
        for remark, (n, line) in sorted(library.remarks.items()):
            progress.message(f"{path}: {counted(n, 'entry', 'entries')}, the first in line {line}: {remark}", "warning")
    return library.finish()
