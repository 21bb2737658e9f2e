"""Base class of the readers of text libraries, which parse blocks of lines into entries in several threads."""

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
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import available_threads
from proteoscope.engine.formats.libraries.entries import Entry, LibraryCollector
from proteoscope.engine.formats.numbers import COMMA, COMMA_WARNING, POINT, decimal_sign
from proteoscope.engine.formats.peak_lists import MAXIMUM_LINES
from proteoscope.engine.formats.reading import mapped_blocks
from proteoscope.engine.formats.sources import Block, ByteSource, decoded
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.unfolding import ENTRIES

__all__ = ["Line", "TextLibrary", "find_last_line", "rows_with"]

_MAXIMUM_LINE_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_AT_FIRST = 1 << 14
_DECIMAL_COMMA = re.compile(rb"[0-9],[0-9]")

Line = tuple[int, str]
"""Number of a line in its block, from 1, and text of the line."""
_Peaks = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class _ParsedBlock:
    entries: list[Entry]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    n_lines: int


class _Scan(NamedTuple):
    """Lines and peaks found in the text of a block.

    Attributes
    ----------
    data : bytes
        Text.
    table : ndarray of int64, shape (k, LINE_COLUMNS)
        Lines that are not peaks, described as in `proteoscope.kernels.cpu.library_text.scan_library_lines`.
    mz, intensity : ndarray of float64, shape (peaks,)
        Peaks of all entries.
    n_lines : int
        Number of lines.
    n_ambiguous : int
        Number of lines that can be read as one peak or as several peaks.
    """

    data: bytes
    table: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    n_lines: int
    n_ambiguous: int

    @property
    def is_broken(self) -> bool:
        """True if a number in a peak cannot be parsed."""
        return bool((self.table[:, 4] != kernels.cpu.library_text.LINE_WORDS).any())


class TextLibrary(ABC):
    """Base class of the readers of text formats, which find and interpret the lines of entries.

    Parameters
    ----------
    source : ByteSource
        File to read.
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._decimal = POINT

    @abstractmethod
    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete entry in a text; 0 if no entry is complete."""

    @abstractmethod
    def entry_rows(self, data: bytes, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indices of the lines that start an entry.

        Parameters
        ----------
        data : bytes
            Text of a block.
        table : ndarray of int64, shape (k, LINE_COLUMNS)
            Lines of the block that are not peaks, with the columns of `proteoscope.kernels.cpu.library_text.scan_library_lines`.

        Returns
        -------
        ndarray of int64, shape (n,)
            Rows of `table`, ascending.
        """

    @abstractmethod
    def entry(self, lines: list[Line]) -> Entry:
        """Return the entry described by its lines, without peaks; called in several threads.

        Parameters
        ----------
        lines : list of Line
            Lines of the entry that are not peaks, including its first line.
        """

    def header(self, lines: list[Line]) -> None:  # noqa: B027 - most formats have no header
        """Read the lines before the first entry of the file."""

    def numbers(self, text: bytes) -> Iterator[bytes]:
        """Yield the words of a text that may be decimal numbers, to detect the decimal sign; nothing for formats with decimal points."""
        return iter(())

    def read(self, library: LibraryCollector, progress: Progress) -> None:
        """Add all entries of the file to a library.

        Parameters
        ----------
        library : LibraryCollector
            Library that receives the entries.
        progress : Progress
            Progress, which receives messages and is checked for cancellation.

        Raises
        ------
        InputError
            If the file as a whole is not in this format.
        Cancelled
            If the user cancels.
        """
        n_threads, n_lines = min(4, available_threads()), 0
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
        rows = self.entry_rows(data, scan.table)
        for start, stop, number, *_ in scan.table[: rows[0] if len(rows) else None].tolist():
            header.append((number, decoded(data[start : min(stop, start + _MAXIMUM_LINE_BYTES)])))
        self.header(header)

    def _find_decimal_sign(self, data: bytes) -> None:
        """Find the decimal sign: a comma if no number contains a point, and a comma makes more entries valid; otherwise a point."""
        if b"," not in data or decimal_sign(self.numbers(data)) != COMMA:
            return
        n_valid = {}
        for sign in (POINT, COMMA):
            self._decimal = sign
            parsed = self._parsed(data)
            counts = np.diff(parsed.offsets)
            n_valid[sign] = sum(
                not entry.issue and entry.n_announced in (-1, n) for entry, n in zip(parsed.entries, counts.tolist(), strict=True)
            )
        self._decimal = COMMA if n_valid[COMMA] > n_valid[POINT] else POINT

    def _parse(self, block: Block) -> _ParsedBlock:
        return self._parsed(_without_mark(block), is_counted=True)

    def _parsed(self, data: bytes, *, is_counted: bool = False) -> _ParsedBlock:
        scan = self._scanned(data)
        rows = self.entry_rows(data, scan.table)
        if is_counted:
            self._source.unfolding.add(ENTRIES, len(rows))
        starts = [*scan.table[rows, 3].tolist(), len(scan.mz)]
        ends = [*scan.table[rows, 0].tolist(), len(data)]
        broken, too_long = self._issues(scan, rows)
        entries: list[Entry] = []
        packed: dict[int, _Peaks] = {}
        for i, lines in enumerate(_iterate_entry_lines(scan, rows)):
            entry = self.entry(lines)
            if i in too_long:
                entry.issue = entry.issue or f"one of its lines is longer than {_MAXIMUM_LINE_BYTES >> 20} MB"
            issue, n_peaks = broken.get(i, ""), starts[i + 1] - starts[i]
            if entry.n_announced != n_peaks and (entry.n_announced != -1 or issue or scan.n_ambiguous):
                peaks = self._packed_peaks(entry, n_peaks, data[ends[i] : ends[i + 1]])
                if peaks is not None:
                    packed[i], issue = peaks, ""
            entry.issue = entry.issue or issue
            entries.append(entry)
        return _ParsedBlock(entries, *_read_entry_peaks(scan, starts, packed), scan.n_lines)

    def _issues(self, scan: _Scan, rows: NDArray[np.int64]) -> tuple[dict[int, str], set[int]]:
        """Return a dict of the entries with invalid peaks (index to reason), and the set of the entries with a line that is too long."""
        broken: dict[int, str] = {}
        lengths = scan.table[:, 1] - scan.table[:, 0]
        too_long = set((np.searchsorted(rows, np.flatnonzero(lengths > _MAXIMUM_LINE_BYTES), "right") - 1).tolist())
        unread = np.flatnonzero(scan.table[:, 4] != kernels.cpu.library_text.LINE_WORDS)
        owners, firsts = np.unique(np.searchsorted(rows, unread, "right") - 1, return_index=True)
        for owner, (start, stop) in zip(owners.tolist(), scan.table[unread[firsts], :2].tolist(), strict=True):
            content = scan.data[start : min(stop, start + _MAXIMUM_LINE_BYTES)]
            has_comma = self._decimal == POINT and _DECIMAL_COMMA.search(content)
            broken[owner] = "a number in a peak has a comma, not a point" if has_comma else "a number in a peak cannot be read"
        return broken, too_long

    def _packed_peaks(self, entry: Entry, n_peaks: int, text: bytes) -> _Peaks | None:
        """Return the peaks of an entry, read as several peaks per line; None to keep the `n_peaks` peaks read as one peak per line.

        Peaks read as several per line are returned only if there are as many as the entry declares, and not `n_peaks`. An entry that does
        not declare the number gets an issue.
        """
        scan = self._scanned(text, is_packed=True)
        if scan.is_broken or len(scan.mz) == n_peaks:
            return None
        if entry.n_announced < 0:
            entry.issue = entry.issue or "it does not declare its number of peaks, and its lines can be read as one peak or as several"
        return (scan.mz, scan.intensity) if len(scan.mz) == entry.n_announced else None

    def _scanned(self, data: bytes, *, is_packed: bool = False) -> _Scan:
        """Find the lines and peaks of a text; with `is_packed`, a line may contain several peaks."""
        text = np.frombuffer(data, np.uint8)
        maximum_peaks = len(data) // 2 if is_packed else kernels.cpu.library_text.count_peak_ends(text)
        mz, intensity = np.empty(maximum_peaks + 1), np.empty(maximum_peaks + 1)
        state = np.zeros(kernels.cpu.library_text.N_LIBRARY_STATES, np.int64)
        parts: list[NDArray[np.int64]] = []
        n_rows, n = _LINES_AT_FIRST if not is_packed else 1 << 6, 0
        while not parts or state[0] < len(text):
            table = np.empty((n_rows, kernels.cpu.library_text.LINE_COLUMNS), np.int64)
            parts.append(table[: kernels.cpu.library_text.scan_library_lines(text, is_packed, self._decimal, state, mz, intensity, table)])
            n_rows, n = 2 * n_rows, n + len(parts[-1])
            if n > MAXIMUM_LINES:
                raise InputError(
                    self._source.path,
                    f"more than {MAXIMUM_LINES:,} lines between two spectra are not peaks",
                    remedy="Check that it is a library of spectra",
                )
        return _Scan(data, np.concatenate(parts), mz[: state[2]], intensity[: state[2]], int(state[1]), int(state[3]))


def _without_mark(block: Block) -> bytes:
    return block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text


def _iterate_entry_lines(scan: _Scan, rows: NDArray[np.int64]) -> Iterator[list[Line]]:
    """Yield, for each entry, its lines that are not peaks."""
    is_words = scan.table[:, 4] == kernels.cpu.library_text.LINE_WORDS
    starts, stops, numbers = scan.table[is_words, :3].T
    spans = zip(starts.tolist(), np.minimum(stops, starts + _MAXIMUM_LINE_BYTES).tolist(), strict=True)
    # Decoding once, with one character per byte, and slicing takes a third of the time of decoding each line.
    text = scan.data.decode("latin-1")
    texts = [text[start:stop] for start, stop in spans]
    if not text.isascii():
        texts = [line if line.isascii() else decoded(line.encode("latin-1")) for line in texts]
    lines = list(zip(numbers.tolist(), texts, strict=True))
    bounds = segment_offsets(is_words)[[*rows, len(is_words)]].tolist()
    return (lines[first:last] for first, last in pairwise(bounds))


def _read_entry_peaks(
    scan: _Scan, starts: list[int], packed: dict[int, _Peaks]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return offsets, m/z and intensities of the peaks of all entries.

    The peaks are those of `scan`; for an entry in `packed`, they are the peaks that `packed` contains.
    """
    if not packed:
        return segment_offsets(np.diff(starts)), scan.mz[starts[0] :], scan.intensity[starts[0] :]
    peaks = [packed.get(i) or (scan.mz[start:stop], scan.intensity[start:stop]) for i, (start, stop) in enumerate(pairwise(starts))]
    mz, intensity = (np.concatenate(columns) for columns in zip(*peaks, strict=True))
    return segment_offsets(np.array([len(masses) for masses, _ in peaks], np.int64)), mz, intensity


def rows_with(data: bytes, table: NDArray[np.int64], word: bytes, *, is_whole: bool) -> NDArray[np.int64]:
    """Return the rows of the line table whose lines begin with a word.

    Parameters
    ----------
    data : bytes
        Text of a block.
    table : ndarray of int64, shape (k, LINE_COLUMNS)
        Lines of the block, as in `TextLibrary.entry_rows`.
    word : bytes
        Word to find.
    is_whole : bool
        True for lines that equal the word.

    Returns
    -------
    ndarray of int64, shape (n,)
        Rows of `table`, ascending.
    """
    text, lengths = np.frombuffer(data, np.uint8), table[:, 1] - table[:, 0]
    is_long = lengths == len(word) if is_whole else lengths >= len(word)
    rows = np.flatnonzero(is_long & (table[:, 4] == kernels.cpu.library_text.LINE_WORDS))
    for at, character in enumerate(word):
        rows = rows[text[table[rows, 0] + at] == character]
    return rows


def find_last_line(text: bytes, words: tuple[bytes, ...]) -> int:
    """Return the start of the last line that begins with one of the given words.

    Parameters
    ----------
    text : bytes
        Text; its first line is ignored.
    words : tuple of bytes
        Words at the beginning of a line.

    Returns
    -------
    int
        Byte offset; 0 if there is no such line.
    """
    return max(max(text.rfind(b"\n" + word), text.rfind(b"\r" + word)) for word in words) + 1
