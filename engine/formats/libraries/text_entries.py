"""Libraries of spectra in text, entry by entry: blocks of lines become entries, in several threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.peak_lists import MAXIMUM_LINES
from proteoscope.engine.formats.reading import mapped_blocks, n_processors
from proteoscope.engine.formats.sources import Block, ByteSource
from proteoscope.engine.jobs.progress import Progress

__all__ = ["Line", "TextLibrary", "decoded", "last_of"]

_MAXIMUM_LINE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AT_FIRST = 1 << 14

Line = tuple[int, str]
"""Number of a line in its block, from 1, and what it says."""


@dataclass(frozen=True)
class _ParsedBlock:
    entries: list[Entry]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    n_lines: int


class TextLibrary(ABC):
    """A format of libraries in text: where its entries begin, and what their lines say."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source

    @abstractmethod
    def cut(self, text: bytes) -> int:
        """Behind which byte an entry ends for the last time; 0: nowhere."""

    @abstractmethod
    def begins_entry(self, line: bytes) -> bool:
        """Whether an entry begins with a line that holds no peak."""

    @abstractmethod
    def entry(self, lines: list[Line]) -> Entry:
        """An entry from its lines without the peaks, the first of them that it begins with. Runs in several threads."""

    def header(self, lines: list[Line]) -> None:  # noqa: B027 - most formats have nothing there that counts
        """Take what stands before the first entry of the file."""

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
                library.check_proportions(self._source.consumed)
                n_lines += parsed.n_lines
                progress.advance(consumed)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, block: Block) -> None:
        data, table, *_ = self._scanned(block)
        header = []
        for start, stop, number, _, _ in table.tolist():
            if self.begins_entry(data[start:stop]):
                break
            header.append((number, decoded(data[start : min(stop, start + _MAXIMUM_LINE_BYTES)])))
        self.header(header)

    def _parse(self, block: Block) -> _ParsedBlock:
        data, table, mz, intensity, n_lines = self._scanned(block)
        entries: list[Entry] = []
        starts: list[int] = []
        lines: list[Line] = []
        fault = ""
        for start, stop, number, n_before, code in table.tolist():
            content = data[start : min(stop, start + _MAXIMUM_LINE_BYTES)]
            if code != kernels.cpu.library_text.LINE_WORDS:
                fault = fault or "a number of a peak cannot be read"
                continue
            if self.begins_entry(content):
                if lines:
                    entries.append(self._finished(lines, fault))
                lines, fault = [(number, decoded(content))], ""
                starts.append(n_before)
            elif lines:
                lines.append((number, decoded(content)))
            if stop - start > _MAXIMUM_LINE_BYTES:
                fault = fault or f"a line of it is longer than {_MAXIMUM_LINE_BYTES >> 20} MB"
        if lines:
            entries.append(self._finished(lines, fault))
        first = starts[0] if starts else len(mz)
        offsets = np.array([*starts, len(mz)], np.int64) - first
        return _ParsedBlock(entries, offsets, mz[first:], intensity[first:], n_lines)

    def _finished(self, lines: list[Line], fault: str) -> Entry:
        entry = self.entry(lines)
        entry.fault = entry.fault or fault
        return entry

    def _scanned(self, block: Block) -> tuple[bytes, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], int]:
        """Text of a block, its lines without peaks, peaks, and how many lines it has."""
        data = block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text
        text = np.frombuffer(data, np.uint8)
        n_most = data.count(b"\n") + data.count(b"\r") + data.count(b";") + 1
        mz, intensity = np.empty(n_most), np.empty(n_most)
        state = np.zeros(3, np.int64)
        parts: list[NDArray[np.int64]] = []
        room, n = _LINES_AT_FIRST, 0
        while not parts or state[0] < len(text):
            table = np.empty((room, kernels.cpu.library_text.LINE_COLUMNS), np.int64)
            parts.append(table[: kernels.cpu.library_text.scan_library_lines(text, state, mz, intensity, table)])
            room, n = 2 * room, n + len(parts[-1])
            if n > MAXIMUM_LINES:
                raise InputError(
                    self._source.path, f"more than {MAXIMUM_LINES:,} lines that are no peaks belong to one part of the file",
                    remedy="Is it a library of spectra?",
                )  # fmt: skip
        return data, np.concatenate(parts), mz[: state[2]], intensity[: state[2]], int(state[1])


def decoded(content: bytes) -> str:
    """A text of the file: UTF-8, or Latin-1 where it is not."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def last_of(text: bytes, words: tuple[bytes, ...]) -> int:
    """Where the last line of a text begins that begins with one of some words; 0 where none does behind the first."""
    return max(max(text.rfind(b"\n" + word), text.rfind(b"\r" + word)) for word in words) + 1
