"""Write spectral libraries in the formats of the registry that have a writer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import ESCAPES
from proteoscope.engine.formats.registry import FileFormat, formats_of
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.separated import write_lines
from proteoscope.engine.spectra.library_entries import LibraryEntries

__all__ = ["LIBRARY_FORMATS", "LibraryTextWriter", "library_format", "library_suffixes", "write_library"]

LIBRARY_FORMATS = {"msp": "MSP", "mzspeclib": "mzSpecLib text", "blib": "BiblioSpec blib"}
"""The formats that libraries are written in, as ``--format`` calls them, and their names in the registry."""


class LibraryTextWriter(Protocol):
    """A format in text: what stands before the entries, for some of them (in several threads), and behind them."""

    def begin(self, name: str) -> bytes:
        """What stands before the first entry of the library of this name."""

    def text(self, entries: LibraryEntries) -> Any:
        """Some entries, which follow one another."""

    def end(self) -> bytes:
        """What stands behind the last entry."""


def library_format(name: str) -> str:
    """The format that a library is written in, by its name or by the suffix of a file.

    Raises
    ------
    ParameterError : there is none of this name.

    Examples
    --------
    >>> library_format("mine.mzlib.txt"), library_format("BLIB")
    ('mzspeclib', 'blib')
    """
    wish = name.lower()
    for one in LIBRARY_FORMATS:
        if wish == one or wish.endswith(_format(one).suffixes):
            return one
    *others, last = (_format(one).suffixes[0] for one in LIBRARY_FORMATS)
    raise ParameterError(
        f"'{name:.200}' names no format that libraries are written in; expected a name that ends with {', '.join(others)} or {last}"
    )


def library_suffixes() -> tuple[str, ...]:
    """The suffixes of the files that libraries are written in, the usual one of each format first."""
    return tuple(suffix for one in LIBRARY_FORMATS for suffix in _format(one).suffixes)


def _format(name: str) -> FileFormat:
    return next(one for one in formats_of("libraries") if one.name == LIBRARY_FORMATS[name])


def write_library(
    out: Path, pieces: Iterable[LibraryEntries], format: str, progress: Progress, *, total: int = 0, threads: int = 1
) -> None:
    """Write entries, which may come as they are made, to the file `out`, which appears whole or not at all.

    Parameters
    ----------
    format : one of `LIBRARY_FORMATS`. total : how many entries there will be, 0 where that is not known. threads : that make text.

    Raises
    ------
    StorageError : the disk refused. Cancelled : the user asked to stop.
    """
    chosen = _format(format)
    progress.stage(f"Writing {chosen.name}", total)
    assert chosen.writer is not None
    made = chosen.writer()
    if format == "blib":  # which is a database
        made(out, pieces, progress)
        return
    writer = made()
    write_lines(
        out, writer.begin(out.name), pieces, writer.text, progress, threads=threads, then=getattr(writer, "written", bytes), end=writer.end
    )
    if n := getattr(writer, "n_escaped", 0):
        entries = "1 entry names" if n == 1 else f"{n:,} entries name"
        progress.message(f"{out.name}: {entries} proteins with commas or quotes, which the format needs; they are {ESCAPES}", "warning")
