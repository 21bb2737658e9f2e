"""Reader of mzSpecLib text: sections in angle brackets, one line per attribute, and the peaks."""

import re

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.libraries.mzspeclib import USED_TERMS, Attribute, AttributeSets, described
from proteoscope.engine.formats.libraries.text_entries import Line, TextLibrary, find_last_line, rows_with
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress

__all__ = ["MzSpecLibText", "read_mzspeclib_text"]

_ATTRIBUTE = re.compile(r"(?:\[([^\]]{1,20})\])?([A-Za-z]{1,10}:\d{1,10})\|[^=]{0,400}=(.*)", re.DOTALL)
_TERM = re.compile(r"([A-Za-z]{1,10}:\d{1,10})\|")
_SET = re.compile(r"<AttributeSet (\w{1,40})=([^>]{0,1000})>")


def read_mzspeclib_text(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the entries of an mzSpecLib text file to a library.

    Parameters
    ----------
    source : ByteSource
        File.
    library : LibraryCollector
        Library that receives the entries.
    progress : Progress
        Progress, which receives messages and is checked for cancellation.

    Raises
    ------
    InputError
        If the file as a whole is not in this format.
    """
    MzSpecLibText(source).read(library, progress)


class MzSpecLibText(TextLibrary):
    """Reader of mzSpecLib text.

    Parameters
    ----------
    source : ByteSource
        File to read.
    """

    def __init__(self, source: ByteSource) -> None:
        super().__init__(source)
        self._sets = AttributeSets(source.unfolding)

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the last ``<Spectrum=``, or 0."""
        return find_last_line(text, (b"<Spectrum=",))

    def entry_rows(self, data: bytes, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the line table that begin with ``<Spectrum=``."""
        return rows_with(data, table, b"<Spectrum=", is_whole=False)

    def header(self, lines: list[Line]) -> None:
        """Read the attribute sets of the header."""
        chosen: list[Attribute] | None = None
        for _, text in lines:
            if text.startswith("<"):
                match = _SET.match(text)
                sets = {"Spectrum": self._sets.spectrum, "Analyte": self._sets.analyte}.get(match[1]) if match else None
                chosen = sets.setdefault(match[2], []) if match and sets is not None else None
            elif chosen is not None and (attribute := _attribute(text)) is not None:
                chosen.append(attribute)

    def entry(self, lines: list[Line]) -> Entry:
        """Return the entry described by its lines."""
        spectrum: list[Attribute] = []
        analytes: list[list[Attribute]] = []
        section: list[Attribute] | None = spectrum
        for _, text in lines[1:]:
            if text.startswith("<"):
                section = None
                if text.startswith("<Analyte="):
                    section = []
                    analytes.append(section)
            elif section is not None and (attribute := _attribute(text)) is not None:
                section.append(attribute)
        return described(lines[0][0], spectrum, analytes, self._sets)


def _attribute(text: str) -> Attribute | None:
    """Parse an attribute; return None if its term is not in `USED_TERMS`."""
    match = _ATTRIBUTE.match(text)
    if match is None or match[2] not in USED_TERMS:
        return None
    group, term, value = match.groups("")
    value_term = _TERM.match(value)
    return Attribute(term, value, value_term[1] if value_term else "", group)
