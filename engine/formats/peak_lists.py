"""Peak lists in plain text: MGF (Matrix Science), MS2 (McDonald et al. 2004), DTA (SEQUEST) and PKL (Micromass)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.formats.spectrum_blocks import (
    MAXIMUM_NAME_BYTES,
    MAXIMUM_PEAKS,
    MAXIMUM_SCAN,
    Fault,
    FaultCode,
    ParsedBlock,
    SpectrumTable,
    charge_bits,
    finish,
)

__all__ = ["DtaParser", "MgfParser", "Ms2Parser", "PklParser"]

PROTON_MASS = 1.007276466621  # CODATA 2018, dalton; a DTA file gives the mass of the singly protonated peptide

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GLOBAL_CHARGE = re.compile(rb"^[ \t]*CHARGE[ \t]*=([^\r\n]*)", re.MULTILINE)
_COMMENTS = np.isin(np.arange(256), np.frombuffer(b"#;!/", dtype=np.uint8))
# Titles carry the scan number as ``scan=12`` (ProteoWizard) or as ``run.12.12.2`` (SEQUEST and the Trans-Proteomic Pipeline).
_TITLE_SCAN = re.compile(r"\bscan=([0-9]{1,18})\b|\.([0-9]{1,27})(?=\.([0-9]{1,27})\.[0-9])")
MAXIMUM_LINES = 1 << 20
"""Of one block that are no peaks: an ordinary one has some thousand, and one that is longer is a spectrum of many peaks."""
_LINES_AT_FIRST = 1 << 14
_Read: TypeAlias = tuple[SpectrumTable, NDArray[np.int64], NDArray[np.int64], int]
"""Spectra, the line of the table where each begins and ends, and the first line that belongs nowhere (0: none)."""
_LINE_FAULTS = {1: FaultCode.NUMBER, 2: FaultCode.NO_INTENSITY}


@dataclass(frozen=True)
class _Lines:
    """The lines of a block that are no peaks, as columns (see `proteoscope.kernels.cpu.text.scan_peak_lines`), and its peaks."""

    data: bytes
    text: NDArray[np.uint8]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    number: NDArray[np.int64]
    n_peaks_before: NDArray[np.int64]
    code: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float64]
    n_lines: int

    def __len__(self) -> int:
        return len(self.start)

    def content(self, i: int) -> bytes:
        """The text of line `i` of the table."""
        return self.data[self.start[i] : self.stop[i]]

    def beginning_with(self, word: bytes) -> NDArray[np.int64]:
        """Which lines begin with a word."""
        lines = np.flatnonzero((self.stop - self.start >= len(word)) & (self.code == 0))
        for k, letter in enumerate(word):
            lines = lines[self.text[self.start[lines] + k] == letter]
        return lines

    def values(self, key: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Lines ``KEY=VALUE`` of a key, blanks around the sign allowed: which, and where the values begin."""
        lines = self.beginning_with(key)
        at = self.after_blanks(self.start[lines] + len(key), self.stop[lines])
        has_sign = at < self.stop[lines]
        has_sign[has_sign] = self.text[at[has_sign]] == ord("=")
        lines, at = lines[has_sign], at[has_sign] + 1
        return lines, self.after_blanks(at, self.stop[lines])

    def after_blanks(self, at: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first places from `at` on that hold no blank, or `stop`."""
        return kernels.cpu.text.after_blanks(self.text, at, stop)

    def hold(self, lines: NDArray[np.int64], letter: bytes) -> NDArray[np.bool_]:
        """Which of some lines of the table hold a letter."""
        places = np.append(np.flatnonzero(self.text == ord(letter)), len(self.text))
        return places[np.searchsorted(places, self.start[lines])] < self.stop[lines]


class _PeakListParser(ABC):
    """What the parsers of all peak lists share. `is_headed`: a spectrum begins with a line of numbers, and not with words."""

    is_headed = False

    def __init__(self, path: Path, *, takes_negative: bool = False) -> None:
        self.takes_negative = takes_negative
        self._path = path
        self._default_charges = 0

    def begin(self, block: Block) -> None:
        """Most of these files say nothing before their first spectrum that counts for others."""
        self._default_charges = 0

    @abstractmethod
    def cut(self, text: bytes) -> int:
        """Behind which byte a record ends for the last time; 0: nowhere."""

    @abstractmethod
    def _read(self, lines: _Lines) -> _Read:
        """The spectra of a block."""

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """The spectra of a block."""
        data = block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text
        lines = _scan(data, self._path, is_headed=self.is_headed)
        table, firsts, ends, stray = self._read(lines)
        _note_broken_peaks(table, lines, firsts, ends)
        at_fault = np.flatnonzero(~(table.precursor_mz > 0))
        table.note(at_fault, FaultCode.NO_PRECURSOR, lines.number[firsts[at_fault]])
        table.note_bounds(lines.number[firsts])
        if self._default_charges:
            table.charges[table.charges == 0] = self._default_charges
        for i in np.flatnonzero(table.scan < 0).tolist():
            table.scan[i] = _scan_of_title(table.identifier[i])
        after = np.append(lines.n_peaks_before, len(lines.mz))
        starts, stops = lines.n_peaks_before[firsts], after[ends]
        too_many = np.flatnonzero(stops - starts > MAXIMUM_PEAKS)
        table.note(too_many, FaultCode.PEAKS, lines.number[firsts[too_many]])
        rows = np.flatnonzero(table.fault == FaultCode.NONE)
        parsed = finish(table, rows, *_peaks_of(lines, starts[rows], stops[rows]), centroid)
        parsed.n_lines, parsed.n_entries = lines.n_lines, len(lines)
        parsed.n_broken, first = table.broken()
        if first >= 0:
            line = int(table.fault_line[first]) or int(lines.number[firsts[first]])
            parsed.faults.append(Fault.of(table.fault[first], line=line))
        if stray:
            parsed.faults.append(Fault.of(FaultCode.LINE, line=stray, is_fatal=True))
        return parsed


class MgfParser(_PeakListParser):
    """Parser of MGF files."""

    def begin(self, block: Block) -> None:
        """Read the global CHARGE that the file may have before its first spectrum."""
        header = block.text.removeprefix(_BYTE_ORDER_MARK).partition(b"BEGIN IONS")[0].replace(b"\r", b"\n")
        for match in _GLOBAL_CHARGE.finditer(header):
            self._default_charges, _ = charge_bits(match.group(1), takes_negative=self.takes_negative)

    def cut(self, text: bytes) -> int:
        """Before the last beginning of a spectrum."""
        return max(text.rfind(b"\nBEGIN IONS"), text.rfind(b"\rBEGIN IONS")) + 1

    def _read(self, lines: _Lines) -> _Read:
        return _read_mgf(lines, takes_negative=self.takes_negative)


class Ms2Parser(_PeakListParser):
    """Parser of MS2 files."""

    def cut(self, text: bytes) -> int:
        """Before the last beginning of a spectrum."""
        return max(text.rfind(b"\nS\t"), text.rfind(b"\nS "), text.rfind(b"\rS\t"), text.rfind(b"\rS ")) + 1

    def _read(self, lines: _Lines) -> _Read:
        return _read_ms2(lines, takes_negative=self.takes_negative)


class DtaParser(_PeakListParser):
    """Parser of DTA files, whose spectra are parted by blank lines and begin with [M+H]+ and the charge."""

    is_headed = True

    def cut(self, text: bytes) -> int:
        """Behind the last blank line."""
        # The last bytes may be half of a line end, so the blank line has to lie before them.
        ends = [text.rfind(blank, 0, len(text) - 2) + behind for blank, behind in ((b"\n\n", 1), (b"\n\r\n", 1), (b"\r\r", 1))]
        return max(ends) if max(ends) > 1 else 0

    def _read(self, lines: _Lines) -> _Read:
        return _read_headed(lines, with_intensity=False, takes_negative=self.takes_negative)


class PklParser(DtaParser):
    """Parser of PKL files, which are parted likewise; their spectra begin with m/z, intensity and charge."""

    def _read(self, lines: _Lines) -> _Read:
        return _read_headed(lines, with_intensity=True, takes_negative=self.takes_negative)


def _scan_of_title(title: str) -> int:
    """The scan number that a title carries, -1: none. Numbers are compared here, since an expression would try every split of zeros."""
    for found in _TITLE_SCAN.finditer(title):
        named, first, second = found.groups()
        if named or int(first) == int(second) < MAXIMUM_SCAN:
            return int(named or first)
    return -1


def _scan(data: bytes, path: Path, *, is_headed: bool) -> _Lines:
    text = np.frombuffer(data, dtype=np.uint8)
    n_most = min(len(data) // 4, data.count(b"\n") + data.count(b"\r")) + 1
    mz, intensity = np.empty(n_most), np.empty(n_most)
    state = np.zeros(kernels.cpu.text.N_STATES, dtype=np.int64)
    parts: list[NDArray[np.int64]] = []
    room = _LINES_AT_FIRST
    while not parts or state[0] < len(text):
        table = np.empty((room, 5), dtype=np.int64)
        parts.append(table[: kernels.cpu.text.scan_peak_lines(text, is_headed, state, mz, intensity, table)])
        room *= 2
        if sum(map(len, parts)) > MAXIMUM_LINES:
            raise InputError(
                path,
                f"more than {MAXIMUM_LINES:,} lines that are no peaks belong to one part of the file",
                remedy="Is it a file of spectra?",
            )
    start, stop, number, n_before, code = (np.concatenate([part[:, k] for part in parts]) for k in range(5))
    n_lines, n_peaks = int(state[1]), int(state[2])
    return _Lines(data, text, start, stop, number, n_before, code, mz[:n_peaks], intensity[:n_peaks], n_lines)


def _peaks_of(
    lines: _Lines, starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The peaks of some spectra end to end, and their offsets."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    if offsets[-1] == len(lines.mz):
        return lines.mz.copy(), lines.intensity, offsets
    chosen = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
    return lines.mz[chosen], lines.intensity[chosen], offsets


def _note_broken_peaks(table: SpectrumTable, lines: _Lines, firsts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Note lines of numbers that are broken in the spectra whose lines run from `firsts` to `ends`."""
    broken = np.flatnonzero(lines.code != 0)
    if len(broken) and len(firsts):
        spectrum = np.searchsorted(firsts, broken, side="right") - 1
        within = (spectrum >= 0) & (broken < ends[spectrum])
        broken, spectrum = broken[within], spectrum[within]
        # The first of each spectrum counts, of whichever kind it is.
        spectrum, first = np.unique(spectrum, return_index=True)
        broken = broken[first]
        for code, fault in _LINE_FAULTS.items():
            chosen = lines.code[broken] == code
            table.note(spectrum[chosen], fault, lines.number[broken[chosen]])


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _name(
    table: SpectrumTable,
    lines: _Lines,
    at: NDArray[np.int64],
    spectra: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Name spectra by what lines hold from `start` to `stop`."""
    too_long = stop - start > MAXIMUM_NAME_BYTES
    table.note(spectra[too_long], FaultCode.NAME, lines.number[at[too_long]])
    for spectrum, a, b in zip(spectra.tolist(), start.tolist(), np.minimum(stop, start + MAXIMUM_NAME_BYTES).tolist(), strict=True):
        table.identifier[spectrum] = _text(lines.data[a:b])


def _read_mgf(lines: _Lines, *, takes_negative: bool) -> _Read:
    """Spectra of an MGF block."""
    firsts, closings = lines.beginning_with(b"BEGIN IONS"), lines.beginning_with(b"END IONS")
    firsts = firsts[lines.stop[firsts] - lines.start[firsts] == len(b"BEGIN IONS")]
    closings = closings[lines.stop[closings] - lines.start[closings] == len(b"END IONS")]
    table = SpectrumTable(len(firsts))
    following = np.append(firsts[1:], len(lines))
    nearest = np.append(closings, len(lines))[np.searchsorted(closings, firsts)]
    ends = np.minimum(nearest, following)
    unclosed = np.flatnonzero((nearest > following) | (nearest == len(lines)))
    table.note(unclosed, FaultCode.UNCLOSED, lines.number[firsts[unclosed]])

    spectrum = np.searchsorted(firsts, np.arange(len(lines)), side="right") - 1
    inside = spectrum >= 0
    inside[inside] = np.flatnonzero(inside) < ends[spectrum[inside]]
    known = np.zeros(len(lines), dtype=np.bool_)
    known[firsts] = known[ends[ends < len(lines)]] = True
    known |= (lines.start == lines.stop) | (lines.code != 0)
    filled = np.flatnonzero(~known)
    known[filled] = _COMMENTS[lines.text[lines.start[filled]]]

    def field(key: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Lines of a key within spectra, their spectra, and where the values begin and stop."""
        at, start = lines.values(key)
        known[at] = True
        start, at = start[inside[at]], at[inside[at]]
        return at, spectrum[at], start, lines.stop[at]

    at, owners, start, stop = field(b"TITLE")
    _name(table, lines, at, owners, start, stop)
    at, owners, start, stop = field(b"PEPMASS")
    ends_of_numbers = np.empty(len(at), dtype=np.int64)
    table.precursor_mz[owners] = kernels.cpu.text.parse_numbers(lines.text, start, stop, ends_of_numbers)
    broken = (ends_of_numbers == start) & (start < stop)
    table.note(owners[broken], FaultCode.NUMBER, lines.number[at[broken]])
    second = lines.after_blanks(ends_of_numbers, stop)
    heights = kernels.cpu.text.parse_numbers(lines.text, second, stop, ends_of_numbers)
    table.precursor_intensity[owners] = np.where((ends_of_numbers > second) & (heights > 0), heights, 0.0)
    at, owners, start, stop = field(b"RTINSECONDS")
    ends_of_numbers = np.empty(len(at), dtype=np.int64)
    table.retention_time[owners] = kernels.cpu.text.parse_numbers(lines.text, start, stop, ends_of_numbers)
    broken = (ends_of_numbers == start) & (start < stop)
    table.note(owners[broken], FaultCode.NUMBER, lines.number[at[broken]])
    at, owners, start, stop = field(b"SCANS")
    scans = kernels.cpu.text.parse_numbers(lines.text, start, stop, np.empty(len(at), dtype=np.int64))
    usable = (scans >= 0) & (scans < MAXIMUM_SCAN)
    table.scan[owners[usable]] = scans[usable].astype(np.int64)
    at, owners, start, stop = field(b"CHARGE")
    seen: dict[bytes, tuple[int, FaultCode]] = {}
    for line, owner, a, b in zip(at.tolist(), owners.tolist(), start.tolist(), stop.tolist(), strict=True):
        text = lines.data[a:b]
        if text not in seen:
            seen[text] = charge_bits(text, takes_negative=takes_negative)
        table.charges[owner], fault = seen[text]
        if fault:
            table.note(np.array([owner]), fault, int(lines.number[line]))

    unknown = np.flatnonzero(~known)
    unknown = unknown[~lines.hold(unknown, b"=")]
    misplaced = unknown[inside[unknown]]
    table.note(spectrum[misplaced], FaultCode.LINE, lines.number[misplaced])
    outside = unknown[~inside[unknown]]
    stray = int(lines.number[outside[0]]) if len(outside) else 0
    after = np.append(lines.n_peaks_before, len(lines.mz))
    loose = np.flatnonzero(after[1:] > after[:-1])
    loose = loose[~inside[loose]] if len(lines) else loose
    if not stray and len(loose):
        stray = int(lines.number[loose[0]]) + 1
    elif not stray and len(lines.mz) and (not len(lines) or lines.n_peaks_before[0] > 0):
        stray = 1
    return table, firsts, ends, stray


def _read_ms2(lines: _Lines, *, takes_negative: bool) -> _Read:
    """Spectra of an MS2 block."""
    letters = np.zeros(len(lines), dtype=np.uint8)
    filled = np.flatnonzero((lines.stop > lines.start) & (lines.code == 0))
    letters[filled] = lines.text[lines.start[filled]]
    firsts = np.flatnonzero(letters == ord("S"))
    ends = np.append(firsts[1:], len(lines))[: len(firsts)]
    table = SpectrumTable(len(firsts))
    spectra = np.searchsorted(firsts, np.arange(len(lines)), side="right") - 1
    # Of the many lines of information those that may be of the time begin with an R.
    remarks = np.flatnonzero(letters == ord("I"))
    at = lines.after_blanks(lines.start[remarks] + 1, lines.stop[remarks])
    remarks = remarks[lines.text[np.minimum(at, len(lines.text) - 1)] == ord("R")]
    telling = np.sort(np.concatenate([np.flatnonzero((letters == ord("S")) | (letters == ord("Z"))), remarks]))
    telling = telling[spectra[telling] >= 0]
    for line, letter, spectrum in zip(telling.tolist(), letters[telling].tolist(), spectra[telling].tolist(), strict=True):
        words = lines.content(line).split()
        fault = FaultCode.NONE
        if letter == ord("S"):
            try:
                table.scan[spectrum] = scan = _scan_number(words[1])
                if len(words) > 3:
                    table.precursor_mz[spectrum] = float(words[3])
                table.identifier[spectrum] = f"scan={scan}"
            except (ValueError, IndexError):
                fault = FaultCode.NUMBER
        elif letter == ord("Z"):
            charges, fault = charge_bits(words[1] if len(words) > 1 else b"?", takes_negative=takes_negative)
            table.charges[spectrum] |= charges
        elif len(words) > 2 and words[1] in (b"RTime", b"RetTime"):
            try:
                table.retention_time[spectrum] = 60.0 * float(words[2])  # the format gives minutes
            except ValueError:
                fault = FaultCode.NUMBER
        if fault:
            table.note(np.array([spectrum]), fault, int(lines.number[line]))
    strange = filled[~np.isin(letters[filled], np.frombuffer(b"SHIDZ", dtype=np.uint8))]
    misplaced = strange[spectra[strange] >= 0]
    table.note(spectra[misplaced], FaultCode.LINE, lines.number[misplaced])
    outside = strange[spectra[strange] < 0]
    return table, firsts, ends, int(lines.number[outside[0]]) if len(outside) else 0


def _scan_number(word: bytes) -> int:
    """A scan number; a `ValueError` where it is none."""
    number = int(word)
    if not 0 <= number < MAXIMUM_SCAN:
        raise ValueError(word)
    return number


def _read_headed(lines: _Lines, *, with_intensity: bool, takes_negative: bool) -> _Read:
    """Spectra of a block whose spectra begin with [M+H]+ and charge, or, `with_intensity`, with m/z, intensity and charge."""
    is_text = lines.stop > lines.start
    letters = np.zeros(len(lines), dtype=np.uint8)
    letters[is_text] = lines.text[lines.start[is_text]]
    is_head = is_text & (lines.code == 0) & np.isin(letters, np.frombuffer(b"0123456789.+-", dtype=np.uint8))
    firsts = np.flatnonzero(is_head)
    table = SpectrumTable(len(firsts))
    # A spectrum ends at the next blank line, name or head.
    parting = np.append(np.flatnonzero(~is_text | (letters == ord("=")) | is_head), len(lines))
    ends = parting[np.searchsorted(parting, firsts, side="right")]
    stray, title = 0, ""
    spectrum = -1
    for line in np.flatnonzero(is_text & (lines.code == 0)).tolist():
        content, number = lines.content(line), int(lines.number[line])
        if is_head[line]:
            spectrum += 1
            here = np.array([spectrum])
            if len(title) > MAXIMUM_NAME_BYTES:
                table.note(here, FaultCode.NAME, number)
            table.identifier[spectrum], title = title, ""
            words = content.split()
            try:
                numbers = [float(word) for word in words[: 2 if with_intensity else 1]]
                charges, fault = charge_bits(words[len(numbers)], takes_negative=takes_negative)
            except (ValueError, IndexError):
                table.note(here, FaultCode.NUMBER, number)
                continue
            if fault or (not charges and not with_intensity):
                table.note(here, fault or FaultCode.CHARGE, number)
                continue
            table.charges[spectrum] = charges
            charge = charges.bit_length() - 1
            table.precursor_mz[spectrum] = (numbers[0] + (charge - 1) * PROTON_MASS) / charge if not with_intensity else numbers[0]
            table.precursor_intensity[spectrum] = max(numbers[1], 0.0) if with_intensity else 0.0
        elif letters[line] == ord("="):
            title = _text(content[: 2 * MAXIMUM_NAME_BYTES].strip(b'= "'))  # merged DTA files name each spectrum in a line of equals signs
        elif spectrum >= 0 and line < ends[spectrum]:
            table.note(np.array([spectrum]), FaultCode.LINE, number)
        elif not stray:
            stray = number
    return table, firsts, ends, stray
