"""mzSpecLib as JSON: the same attributes as its text, spectrum by spectrum, so that the whole never stands in memory as objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.libraries.mzspeclib import USED_TERMS, Attribute, AttributeSets, described
from proteoscope.engine.formats.sources import ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import ENTRIES

__all__ = ["read_mzspeclib_json"]

_MAXIMUM_BYTES = 1 << 30
_PIECE = 1 << 22
_USUAL_LETTERS, _MAXIMUM_LETTERS = 1 << 18, 1 << 24
"""Of a value, as one spectrum is; 16 MB are half a million peaks."""
_BATCH = 500
_MAXIMUM_ANALYTES = 100
_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class _Text:
    """The text of a file, and how far it was read."""

    def __init__(self, source: ByteSource, progress: Progress) -> None:
        pieces, size, taken = [], 0, 0
        while piece := source.read(_PIECE):
            progress.check()
            progress.advance(source.consumed - taken)
            taken = source.consumed
            pieces.append(piece)
            size += len(piece)
            if size > _MAXIMUM_BYTES:
                raise InputError(source.path, f"is JSON of more than {_MAXIMUM_BYTES >> 20} MB", remedy="Convert it to mzSpecLib text")
        whole = b"".join(pieces).removeprefix(b"\xef\xbb\xbf")
        pieces.clear()
        self.path, self.at = source.path, 0
        try:
            self.text = whole.decode()
        except UnicodeDecodeError as error:
            line = whole.count(b"\n", 0, error.start) + 1
            raise InputError(source.path, "the text is not UTF-8", place=f"line {line}", remedy="Save it as UTF-8") from None

    def broken(self, reason: str = "the JSON is broken or cut off") -> InputError:
        """The error of this place."""
        return InputError(self.path, reason, place=f"line {self.line}", remedy="Download or write it again")

    @property
    def line(self) -> int:
        """The line of this place, from 1."""
        return self.text.count("\n", 0, self.at) + 1

    def skip(self, letters: str) -> str:
        """Pass over blanks and one of some letters, which must stand there; which it was."""
        self.pass_blanks()
        found = self.text[self.at : self.at + 1]
        if not found or found not in letters:
            raise self.broken()
        self.at += 1
        return found

    def pass_blanks(self) -> None:
        """Pass over blanks."""
        blanks = _BLANKS.match(self.text, self.at)
        assert blanks is not None
        self.at = blanks.end()

    def value(self) -> Any:
        """The value that begins here."""
        self.pass_blanks()
        room = _USUAL_LETTERS
        while True:
            # As an object a value takes some twenty times its text, so that what is decoded at once is bounded.
            piece = self.text[self.at : self.at + room]
            is_whole = self.at + room >= len(self.text)
            try:
                found, end = _DECODER.raw_decode(piece)
            except (ValueError, RecursionError) as error:
                if is_whole or isinstance(error, RecursionError):
                    raise self.broken() from None
            else:
                if end < len(piece) or is_whole:
                    self.at += end
                    return found
            if room >= _MAXIMUM_LETTERS:
                raise self.broken(f"a value is broken, or longer than {_MAXIMUM_LETTERS >> 20} MB")
            room = min(8 * room, _MAXIMUM_LETTERS)

    def members(self) -> Iterator[str]:
        """The names of the object that begins here; the caller reads each value."""
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
        """Place and value of each item of the array that begins here."""
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

    Raises
    ------
    InputError : the JSON is broken, or has no list of spectra.
    """
    text = _Text(source, progress)
    sets = AttributeSets(source.unfolding)
    begin = -1
    # Sets of attributes may stand behind the spectra that refer to them.
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
            chosen.update({str(key): _attributes(some) for key, some in value.items()})
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
    offsets = offsets_of(np.array([len(mz) for mz, _ in peaks], np.int64))
    library.add(entries, offsets, np.concatenate([mz for mz, _ in peaks]), np.concatenate([height for _, height in peaks]))
    entries.clear()
    peaks.clear()


def _entry(line: int, value: Any, sets: AttributeSets) -> tuple[Entry, NDArray[np.float64], NDArray[np.float64]]:
    nothing = np.empty(0)
    if not isinstance(value, dict):
        return Entry(line, issue="it is no object"), nothing, nothing
    analytes = value.get("analytes")
    listed = list(analytes.values())[:_MAXIMUM_ANALYTES] if isinstance(analytes, dict) else []
    entry = described(
        line, _attributes(value.get("attributes")), [_attributes(one.get("attributes")) for one in listed if isinstance(one, dict)], sets
    )
    try:
        mz, intensity = (np.array(value.get(name, []), np.float64).reshape(-1) for name in ("mzs", "intensities"))
    except (ValueError, TypeError, OverflowError):
        entry.issue = "a peak of it is no number"
        return entry, nothing, nothing
    if len(mz) != len(intensity):
        entry.issue = "it has not as many intensities as m/z"
        return entry, nothing, nothing
    return entry, mz, intensity


def _attributes(value: Any) -> list[Attribute]:
    """The attributes of a list that describe an entry."""
    found = []
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            term, content, group = str(one.get("accession")), one.get("value"), one.get("cv_param_group", "")
            if term in USED_TERMS:
                found.append(Attribute(term, str(content)[: 1 << 16], str(one.get("value_accession", "")), str(group)))
    return found
