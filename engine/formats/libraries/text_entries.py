"""Libraries of spectra in text, entry by entry: blocks of lines become entries, in several threads."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.numbers import COMMA, COMMA_WARNING, POINT, decimal_sign
from proteoscope.engine.formats.peak_lists import MAXIMUM_LINES
from proteoscope.engine.formats.reading import mapped_blocks, n_processors
from proteoscope.engine.formats.sources import Block, ByteSource
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import ENTRIES

__all__ = ["Line", "TextLibrary", "decoded", "last_of"]

_MAXIMUM_LINE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AT_FIRST = 1 << 14
_DECIMAL_COMMA = re.compile(rb"[0-9],[0-9]")

Line = tuple[int, str]
"""Number of a line in its block, from 1, and what it says."""


@dataclass(frozen=True)
class _ParsedBlock:
    entries: list[Entry]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    n_lines: int


class _Scan(NamedTuple):
    """Text of a block, its lines without peaks (see `proteoscope.kernels.cpu.library_text.scan_library_lines`), and its peaks."""

    data: bytes
    table: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    n_lines: int
    n_ambiguous: int

    @property
    def is_broken(self) -> bool:
        """True if a number of a peak cannot be read."""
        return bool((self.table[:, 4] != kernels.cpu.library_text.LINE_WORDS).any())


class TextLibrary(ABC):
    """A format of libraries in text: where its entries begin, and what their lines say."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._decimal = POINT

    @abstractmethod
    def cut(self, text: bytes) -> int:
        """Behind which byte an entry ends for the last time; 0: nowhere."""

    @abstractmethod
    def begins_entry(self, line: bytes) -> bool:
        """Whether an entry begins with a line that holds no peak."""

    @abstractmethod
    def entry(self, lines: list[Line]) -> Entry:
        """An entry from its lines without the peaks, the first of them that it begins with. Runs in several threads."""

    def entry_rows(self, data: bytes, table: NDArray[np.int64]) -> Iterator[int]:
        """Yield the rows of a table of lines that entries begin with."""
        is_words = (table[:, 4] == kernels.cpu.library_text.LINE_WORDS).tolist()
        spans = zip(table[:, 0].tolist(), table[:, 1].tolist(), is_words, strict=True)
        return (row for row, (start, stop, words) in enumerate(spans) if words and self.begins_entry(data[start:stop]))

    def header(self, lines: list[Line]) -> None:  # noqa: B027 - most formats have nothing there that counts
        """Take what stands before the first entry of the file."""

    def numbers(self, text: bytes) -> Iterator[bytes]:
        """Yield the words of a text that may be numbers with decimals, peaks among them; none where the format has no decimal commas."""
        return iter(())

    def read(self, library: LibraryCollector, progress: Progress) -> None:
        """Add all entries.

        Raises
        ------
        InputError : the file as a whole is none of this format.
        """
        n_threads, n_lines = min(4, n_processors()), 0
        pool = ThreadPoolExecutor(n_threads, thread_name_prefix="library-reader")
        try:
            for parsed, consumed in mapped_blocks(self._source, self.cut, self._begin, self._parse, pool, n_threads, progress):
                for entry in parsed.entries:
                    entry.line += n_lines
                library.add(parsed.entries, parsed.offsets, parsed.mz, parsed.intensity)
                n_lines += parsed.n_lines
                progress.advance(consumed)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if self._decimal == COMMA:
            progress.message(COMMA_WARNING.format(self._source.path), "warning")

    def _begin(self, block: Block) -> None:
        data = _without_mark(block)
        self._find_decimal_sign(data)
        scan = self._scanned(data)
        header = []
        first = next(self.entry_rows(data, scan.table), len(scan.table))
        for start, stop, number, *_ in scan.table[:first].tolist():
            header.append((number, decoded(data[start : min(stop, start + _MAXIMUM_LINE_BYTES)])))
        self.header(header)

    def _find_decimal_sign(self, data: bytes) -> None:
        """Take a comma as the decimal sign where no number has a point, and more entries can be read so."""
        if b"," not in data or decimal_sign(self.numbers(data)) != COMMA:
            return
        n_sound = {}
        for sign in (POINT, COMMA):
            self._decimal = sign
            parsed = self._parsed(data)
            counts = np.diff(parsed.offsets)
            n_sound[sign] = sum(
                not entry.fault and entry.n_announced in (-1, n) for entry, n in zip(parsed.entries, counts.tolist(), strict=True)
            )
        self._decimal = COMMA if n_sound[COMMA] > n_sound[POINT] else POINT

    def _parse(self, block: Block) -> _ParsedBlock:
        return self._parsed(_without_mark(block), is_counted=True)

    def _parsed(self, data: bytes, *, is_counted: bool = False) -> _ParsedBlock:
        scan = self._scanned(data)
        rows = list(self.entry_rows(data, scan.table))
        if is_counted:
            self._source.unfolding.add(ENTRIES, len(rows))
        entries: list[Entry] = []
        peaks: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        bounds = [*rows, len(scan.table)]
        starts = [*scan.table[rows, 3].tolist(), len(scan.mz)]
        ends = [*scan.table[rows, 0].tolist(), len(data)]
        is_packed = False
        lines = scan.table.tolist()
        for i, (first, last) in enumerate(pairwise(bounds)):
            entry, broken = self._entry_of(scan.data, lines[first:last])
            own = scan.mz[starts[i] : starts[i + 1]], scan.intensity[starts[i] : starts[i + 1]]
            if scan.n_ambiguous or broken or entry.n_announced not in (-1, len(own[0])):
                packed = self._packed_peaks(entry, len(own[0]), data[ends[i] : ends[i + 1]])
                if packed is not None:
                    own, broken, is_packed = packed, "", True
            entry.fault = entry.fault or broken
            entries.append(entry)
            peaks.append(own)
        mz, intensity = scan.mz[starts[0] :], scan.intensity[starts[0] :]
        if is_packed:
            mz, intensity = (np.concatenate(columns) for columns in zip(*peaks, strict=True))
        return _ParsedBlock(entries, offsets_of(np.array([len(own[0]) for own in peaks], np.int64)), mz, intensity, scan.n_lines)

    def _entry_of(self, data: bytes, rows: list[list[int]]) -> tuple[Entry, str]:
        """Return the entry of some rows of the table of lines of a block, and what is wrong with its peaks, or ''."""
        lines: list[Line] = []
        broken = too_long = ""
        for start, stop, number, _, code in rows:
            content = data[start : min(stop, start + _MAXIMUM_LINE_BYTES)]
            if code == kernels.cpu.library_text.LINE_WORDS:
                lines.append((number, decoded(content)))
            elif not broken:
                has_comma = self._decimal == POINT and _DECIMAL_COMMA.search(content)
                broken = "a number of a peak has a comma, and no decimal point" if has_comma else "a number of a peak cannot be read"
            if stop - start > _MAXIMUM_LINE_BYTES:
                too_long = f"a line of it is longer than {_MAXIMUM_LINE_BYTES >> 20} MB"
        entry = self.entry(lines)
        entry.fault = entry.fault or too_long
        return entry, broken

    def _packed_peaks(self, entry: Entry, n_peaks: int, text: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the peaks of an entry whose lines hold several each, or None if they do not: the number that it announces decides."""
        if entry.n_announced == n_peaks:
            return None
        scan = self._scanned(text, is_packed=True)
        if scan.is_broken or len(scan.mz) == n_peaks:
            return None
        if entry.n_announced < 0:
            entry.fault = entry.fault or "it does not say how many peaks it has, and its lines can be read as one peak or as several"
        return (scan.mz, scan.intensity) if len(scan.mz) == entry.n_announced else None

    def _scanned(self, data: bytes, *, is_packed: bool = False) -> _Scan:
        """Scan the lines of a text."""
        text = np.frombuffer(data, np.uint8)
        n_most = len(data) // 2 if is_packed else sum(map(data.count, (b"\n", b"\r", b";", b":", b"(")))
        mz, intensity = np.empty(n_most + 1), np.empty(n_most + 1)
        state = np.zeros(kernels.cpu.library_text.N_LIBRARY_STATES, np.int64)
        parts: list[NDArray[np.int64]] = []
        room, n = _LINES_AT_FIRST if not is_packed else 1 << 6, 0
        while not parts or state[0] < len(text):
            table = np.empty((room, kernels.cpu.library_text.LINE_COLUMNS), np.int64)
            parts.append(table[: kernels.cpu.library_text.scan_library_lines(text, is_packed, self._decimal, state, mz, intensity, table)])
            room, n = 2 * room, n + len(parts[-1])
            if n > MAXIMUM_LINES:
                raise InputError(
                    self._source.path, f"more than {MAXIMUM_LINES:,} lines that are no peaks belong to one part of the file",
                    remedy="Is it a library of spectra?",
                )  # fmt: skip
        return _Scan(data, np.concatenate(parts), mz[: state[2]], intensity[: state[2]], int(state[1]), int(state[3]))


def _without_mark(block: Block) -> bytes:
    return block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text


def decoded(content: bytes) -> str:
    """A text of the file: UTF-8, or Latin-1 where it is not."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def last_of(text: bytes, words: tuple[bytes, ...]) -> int:
    """Where the last line of a text begins that begins with one of some words; 0 where none does behind the first."""
    return max(max(text.rfind(b"\n" + word), text.rfind(b"\r" + word)) for word in words) + 1
