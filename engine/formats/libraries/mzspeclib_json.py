"""Reader of mzSpecLib JSON that parses spectra one by one, so that only the text of the file is in memory."""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.libraries.mzspeclib import USED_TERMS, Attribute, AttributeSets, described
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import ENTRIES

__all__ = ["read_mzspeclib_json"]

_MAXIMUM_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 22
_USUAL_CHARACTERS, _MAXIMUM_CHARACTERS = 1 << 18, 1 << 24
"""Usual and maximum number of characters of a value, such as a spectrum; half a million peaks need 16 MB."""
_BATCH = 500
_MAXIMUM_ANALYTES = 100
_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _Text:
    """Text of a JSON file with the current reading position."""

    def __init__(self, source: ByteSource, progress: Progress) -> None:
        chunks, size, consumed = [], 0, 0
        while chunk := source.read(_CHUNK_BYTES):
            progress.check()
            progress.advance(source.consumed - consumed)
            consumed = source.consumed
            chunks.append(chunk)
            size += len(chunk)
            if size > _MAXIMUM_BYTES:
                raise InputError(source.path, f"is JSON of more than {_MAXIMUM_BYTES >> 20} MB", remedy="Convert it to mzSpecLib text")
        whole = b"".join(chunks).removeprefix(b"\xef\xbb\xbf")
        chunks.clear()
        self.path, self.at = source.path, 0
        try:
            self.text = whole.decode()
        except UnicodeDecodeError as error:
            line = whole.count(b"\n", 0, error.start) + 1
            raise InputError(source.path, "the text is not UTF-8", place=f"line {line}", remedy="Save it as UTF-8") from None

    def broken(self, reason: str = "the JSON is broken or cut off") -> InputError:
        """Return an error with the line of the reading position."""
        return InputError(self.path, reason, place=f"line {self.line}", remedy="Download or write it again")

    @property
    def line(self) -> int:
        """Line of the reading position, from 1."""
        return self.text.count("\n", 0, self.at) + 1

    def skip(self, characters: str) -> str:
        """Skip blanks and the next character, which must be in `characters`; return this character."""
        self.pass_blanks()
        character = self.text[self.at : self.at + 1]
        if not character or character not in characters:
            raise self.broken()
        self.at += 1
        return character

    def pass_blanks(self) -> None:
        """Skip blanks."""
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks is not None
        self.at = blanks.end()

    def value(self) -> Any:
        """Return the value at the reading position, and move to its end."""
        self.pass_blanks()
        size = _USUAL_CHARACTERS
        while True:
            # An object takes about twenty times the memory of its text: limit the text that is parsed in one call.
            chunk = self.text[self.at : self.at + size]
            is_whole = self.at + size >= len(self.text)
            try:
                value, end = _DECODER.raw_decode(chunk)
            except (ValueError, RecursionError) as error:
                if is_whole or isinstance(error, RecursionError):
                    raise self.broken() from None
            else:
                if end < len(chunk) or is_whole:
                    self.at += end
                    return value
            if size >= _MAXIMUM_CHARACTERS:
                raise self.broken(f"a value is broken, or longer than {_MAXIMUM_CHARACTERS >> 20} MB")
            size = min(8 * size, _MAXIMUM_CHARACTERS)

    def members(self) -> Iterator[str]:
        """Yield the name of each member of the JSON object at the reading position; the caller reads the value before the next name."""
        self.skip("{")
        self.pass_blanks()
        if self.text.startswith("}", self.at):
            return
        while True:
            name = self.value()
            if not isinstance(name, str):
                raise self.broken()
            self.skip(":")
            yield name
            if self.skip(",}") == "}":
                return

    def items(self) -> Iterator[tuple[int, Any]]:
        """Yield the position and the value of each item of the array at the reading position."""
        self.skip("[")
        self.pass_blanks()
        if self.text.startswith("]", self.at):
            self.at += 1
            return
        while True:
            self.pass_blanks()
            at = self.at
            yield at, self.value()
            if self.skip(",]") == "]":
                return


def read_mzspeclib_json(source: ByteSource, library: LibraryCollector, progress: Progress) -> None:
    """Add the entries of an mzSpecLib JSON file to a library.

    Parameters
    ----------
    source : ByteSource
        Open file.
    library : LibraryCollector
        Collector that receives the entries.
    progress : Progress
        Progress, which receives the number of bytes read and is checked for cancellation.

    Raises
    ------
    InputError
        If the JSON is invalid or has no list of spectra.
    Cancelled
        If the user cancels.
    """
    text = _Text(source, progress)
    sets = AttributeSets(source.unfolding)
    begin = -1
    # Sets of attributes may follow the spectra that refer to them.
    for name in text.members():
        text.pass_blanks()
        if name == "spectra":
            begin = text.at
            for _ in text.items():
                progress.check()
            continue
        value = text.value()
        if name in ("spectrum_attribute_sets", "analyte_attribute_sets") and isinstance(value, dict):
            chosen = sets.spectrum if name.startswith("spectrum") else sets.analyte
            chosen.update({str(key): _attributes(attributes) for key, attributes in value.items()})
    if begin < 0:
        raise InputError(source.path, "has no list of spectra", remedy="Give an mzSpecLib library")
    text.at = begin
    entries: list[Entry] = []
    peaks: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    counted, line = 0, 1
    for at, value in text.items():
        line, counted = line + text.text.count("\n", counted, at), at
        entry, mz, intensity = _entry(line, value, sets)
        entries.append(entry)
        peaks.append((mz, intensity))
        if len(entries) == _BATCH:
            progress.check()
            source.unfolding.add(ENTRIES, len(entries))
            _add(library, entries, peaks)
    if entries:
        _add(library, entries, peaks)


def _add(library: LibraryCollector, entries: list[Entry], peaks: list[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> None:
    offsets = segment_offsets(np.array([len(mz) for mz, _ in peaks], np.int64))
    library.add(entries, offsets, np.concatenate([mz for mz, _ in peaks]), np.concatenate([height for _, height in peaks]))
    entries.clear()
    peaks.clear()


def _entry(line: int, value: Any, sets: AttributeSets) -> tuple[Entry, NDArray[np.float64], NDArray[np.float64]]:
    nothing = np.empty(0)
    if not isinstance(value, dict):
        return Entry(line, issue="it is not a JSON object"), nothing, nothing
    analytes = value.get("analytes")
    listed = list(analytes.values())[:_MAXIMUM_ANALYTES] if isinstance(analytes, dict) else []
    entry = described(
        line,
        _attributes(value.get("attributes")),
        [_attributes(analyte.get("attributes")) for analyte in listed if isinstance(analyte, dict)],
        sets,
    )
    try:
        mz, intensity = (np.array(value.get(name, []), np.float64).reshape(-1) for name in ("mzs", "intensities"))
    except (ValueError, TypeError, OverflowError):
        entry.issue = "one of its peaks is not a number"
        return entry, nothing, nothing
    if len(mz) != len(intensity):
        entry.issue = "its numbers of intensities and m/z differ"
        return entry, nothing, nothing
    return entry, mz, intensity


def _attributes(value: Any) -> list[Attribute]:
    """Return the attributes of a JSON list whose terms are in `USED_TERMS`."""
    attributes = []
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            term, content, group = str(item.get("accession")), item.get("value"), item.get("cv_param_group", "")
            if term in USED_TERMS:
                attributes.append(Attribute(term, str(content)[: 1 << 16], str(item.get("value_accession", "")), str(group)))
    return attributes
