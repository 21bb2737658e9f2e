"""Writer of spectral libraries in the formats of the registry that have a writer."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import ESCAPES
from proteoscope.engine.formats.registry import FileFormat, bare_name, select_formats
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.separated import write_lines
from proteoscope.engine.spectra.library_entries import LibraryEntries

__all__ = ["LIBRARY_FORMATS", "LibraryTextWriter", "library_format", "library_suffixes", "write_library"]

LIBRARY_FORMATS = {"msp": "MSP", "mzspeclib": "mzSpecLib text", "blib": "BiblioSpec blib"}
"""Names of library formats in ``--format``, mapped to their names in the registry."""


class LibraryTextWriter(Protocol):
    """Writer of a text format; its method `text` is called in several threads."""

    def begin(self, name: str) -> bytes:
        """Return the text before the first entry; `name` is the name of the library."""

    def text(self, entries: LibraryEntries) -> Any:
        """Return consecutive entries as bytes, or as an object that the method `written` converts to bytes."""

    def end(self) -> bytes:
        """Return the text after the last entry."""


def library_format(name: str) -> str:
    """Return the name of the library format that a name indicates: the name of a format, or of a file with the suffix of a format.

    Raises
    ------
    ParameterError
        If the name is not a format and does not have the suffix of a format.

    Examples
    --------
    >>> library_format("mine.mzlib.txt"), library_format("BLIB")
    ('mzspeclib', 'blib')
    """
    lowered = bare_name(name)
    for format_name in LIBRARY_FORMATS:
        if lowered == format_name or lowered.endswith(_format(format_name).suffixes):
            return format_name
    *others, last = (_format(format_name).suffixes[0] for format_name in LIBRARY_FORMATS)
    raise ParameterError(
        f"'{name:.200}' is not a format for writing libraries; expected a name that ends with {', '.join(others)} or {last}"
    )


def library_suffixes() -> tuple[str, ...]:
    """Return the suffixes of library files that can be written; the usual suffix of each format is first."""
    return tuple(suffix for format_name in LIBRARY_FORMATS for suffix in _format(format_name).suffixes)


def _format(name: str) -> FileFormat:
    return next(file_format for file_format in select_formats("libraries") if file_format.name == LIBRARY_FORMATS[name])


def write_library(
    out: Path, batches: Iterable[LibraryEntries], format: str, progress: Progress, *, total: int = 0, threads: int = 1
) -> None:
    """Write entries to the file `out` atomically.

    Parameters
    ----------
    out : Path
        File to write.
    batches : iterable of LibraryEntries
        Entries of the library, in batches; may be an iterator.
    format : str
        Name of the format, from `LIBRARY_FORMATS`.
    progress : Progress
        Progress, which receives the number of entries written and is checked for cancellation.
    total : int
        Number of entries, 0 if unknown.
    threads : int
        Number of threads that format entries.

    Raises
    ------
    StorageError
        If the disk is full or cannot be written.
    Cancelled
        If the user cancels.
    """
    chosen = _format(format)
    progress.stage(f"Writing {chosen.name}", total)
    assert chosen.writer is not None
    create = chosen.writer()
    if format == "blib":  # a database, not text
        create(out, batches, progress)
        return
    writer = create()
    write_lines(
        out, writer.begin(out.name), batches, writer.text, progress, threads=threads, then=getattr(writer, "written", bytes), end=writer.end
    )
    if n := getattr(writer, "n_escaped", 0):
        entries = "1 entry names" if n == 1 else f"{n:,} entries name"
        progress.message(f"{out.name}: {entries} proteins with commas or quotes, which are delimiters; they are {ESCAPES}", "warning")
