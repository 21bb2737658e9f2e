"""Parser of peak lists in plain text: MGF (Matrix Science), MS2 (McDonald et al. 2004), DTA (SEQUEST) and PKL (Micromass)."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import ranges, segment_offsets
from proteoscope.engine.chemistry.activation import Activation, combine_activations, parse_activation, parse_filter_activation
from proteoscope.engine.errors import InputError
from proteoscope.engine.formats.numbers import COMMA, POINT, decimal_sign, is_missing, read_number
from proteoscope.engine.formats.sources import Block, decoded
from proteoscope.engine.formats.spectrum_blocks import (
    MAXIMUM_NAME_BYTES,
    MAXIMUM_PEAKS,
    MAXIMUM_SCAN,
    NEGATIVE,
    SHOWN_ISSUES,
    IssueCode,
    ParsedBlock,
    RemarkCode,
    SpectrumIssue,
    SpectrumTable,
    charge_bits,
    finish,
    parse_polarity,
)

__all__ = ["DtaParser", "MgfParser", "Ms2Parser", "PklParser"]

PROTON_MASS = 1.007276466621  # dalton (CODATA 2018); DTA files contain the mass of the singly protonated peptide

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES, _LINES_WITH_ENDS = re.compile(rb"[^\r\n]+"), re.compile(rb"([^\r\n]*)(?:\r\n|[\r\n]|$)")
_BEGINNING, _LINE_ENDS, _REST_OF_LINE = b"BEGIN IONS", (b"\n", b"\r"), re.compile(rb"[ \t]*[\r\n]")
_COMMENT_SIGNS = b"#;!/"
_DECIMAL_COMMA = re.compile(rb"[0-9],[0-9]")
_MGF_NUMBERS = re.compile(rb"(?:(?:PEPMASS|RTINSECONDS)[ \t]*=[ \t]*)?([-+]?[0-9.,].*)", re.IGNORECASE)
_MS2_NUMBERS = re.compile(rb"(?:S[ \t]+[0-9]+[ \t]+[0-9]+[ \t]+|Z[ \t]+[-+]?[0-9]+[ \t]+|I[ \t]+RTime[ \t]+)?([-+]?[0-9.,].*)")
_HEADED_NUMBERS = re.compile(rb"([-+]?[0-9.,].*)")
_CHARGE_AFTER_MASS = re.compile(rb"[-+]?[0-9]{1,3}[-+]?")
_SCANS = re.compile(rb"(?:F[0-9]{1,9}:|(?:\S+ )*scan=)?([0-9]{1,18})(?:[ ]*[-,][ ]*[0-9]{1,18})*")
_SECONDS_UNIT = re.compile(rb"(?:s|sec|secs|second|seconds)$", re.IGNORECASE)
_CONTROLS = (np.arange(256) <= 32) & ~np.isin(np.arange(256), np.frombuffer(b"\n\r", dtype=np.uint8))
_COMMENTS = np.isin(np.arange(256), np.frombuffer(_COMMENT_SIGNS, dtype=np.uint8))
# Titles contain the scan number as ``scan=12`` (ProteoWizard) or ``run.12.12.2`` (SEQUEST and the Trans-Proteomic Pipeline).
_TITLE_SCAN = re.compile(r"\bscan=([0-9]{1,18})\b|\.([0-9]{1,27})(?=\.([0-9]{1,27})\.[0-9])")
_ACTIVATION_KEYS = (b"ACTIVATION", b"ACTIVATIONMETHOD", b"ACTIVATION_METHOD", b"FRAGMENTATION", b"FRAGMENTATION_METHOD", b"DISSOCIATION")
_FIELDS = {
    name: number
    for number, name in enumerate(
        (
            *(b"BEGIN IONS", b"END IONS", b"TITLE=", b"CHARGE=", b"PEPMASS=", b"RTINSECONDS=", b"SCANS=", b"MSLEVEL="),
            *(b"IONMODE=", b"ION_MODE=", b"POLARITY="),
            *(key + b"=" for key in _ACTIVATION_KEYS),
        )
    )
}
"""Numbers of the lines that are read in MGF files: whole lines, and keys with their sign."""
_FIELD_NAMES = np.frombuffer(b"".join(_FIELDS), dtype=np.uint8)
_FIELD_OFFSETS = segment_offsets(np.array([len(name) for name in _FIELDS]))
_HINTS = ("@", "activation", "fragmentation", "dissociation")
"""Texts that precede an activation in a title: the @ of a filter string, or a word. Activations in file names are ignored."""
_AFTER_WORD = re.compile(r"(?:activation|fragmentation|dissociation)[ _]?(?:method|type)?[ ]?[=:][ \"']{0,2}([a-z+]{2,12})", re.IGNORECASE)
_SAME_MZ, _ISOLATED = 1e-6, 5.0
"""Maximum difference between two values of the same m/z, and a difference larger than the isolation window of any peptide, both in Th."""
MAXIMUM_LINES = 1 << 20
"""Maximum number of lines in a block that are not peaks; blocks usually have a few thousand."""
_LINES_AT_FIRST, _BYTES_OF_LINE = 1 << 12, 32  # size of the first table of lines: unused pages of it need no memory
_Read: TypeAlias = tuple[SpectrumTable, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""Spectra; start and end (exclusive) of the lines of each spectrum in the line table; line numbers of lines outside of spectra."""
_MS2_ACTIVATIONS = {
    b"ActivationType": parse_activation,
    b"ActivationMethod": parse_activation,
    b"Filter": parse_filter_activation,
    b"FilterLine": parse_filter_activation,
}
"""Keys of ``I`` lines in MS2 files that give the activation, with the parsers of their values."""
_LINE_ISSUES = {1: IssueCode.NUMBER, 2: IssueCode.NO_INTENSITY}


@dataclass(frozen=True)
class _Lines:
    """Lines of a block that are not peaks, as columns (see `proteoscope.kernels.cpu.text.scan_peak_lines`), and the peaks of the block."""

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
        """Return the text of line `i`."""
        return self.data[self.start[i] : self.stop[i]]

    def after_blanks(self, at: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first position without a blank at or after each position in `at`, but at most `stop`."""
        after: NDArray[np.int64] = kernels.cpu.text.after_blanks(self.text, at, stop)
        return after


class _PeakListParser(ABC):
    """Base class of the parsers of peak lists.

    Parameters
    ----------
    path : Path
        File, for messages.
    takes_negative : bool
        True to read spectra of negative ions; otherwise they are reported as issues.

    Attributes
    ----------
    is_headed : bool
        True if a spectrum begins with a line of numbers, False if it begins with a word.
    """

    is_headed = False
    numbers: re.Pattern[bytes]
    """Regular expression of lines with decimal numbers; its group matches the numbers."""

    def __init__(self, path: Path, *, takes_negative: bool = False) -> None:
        self.takes_negative = takes_negative
        self._path = path
        self._default_charges = 0
        self._decimal = POINT

    @property
    def has_decimal_commas(self) -> bool:
        """True if the numbers of the file have decimal commas."""
        return self._decimal == COMMA

    def begin(self, block: Block) -> None:
        """Detect the decimal sign of the file: a comma if no number has a point and a comma makes more spectra valid, else a point."""
        text = block.text.removeprefix(_BYTE_ORDER_MARK)
        if b"," not in text or not _DECIMAL_COMMA.search(text):
            return
        lines = (self.numbers.fullmatch(line[0].strip()) for line in _LINES.finditer(text))
        if decimal_sign(word for line in lines if line for word in line[1].split()[:2]) == COMMA:
            n_broken = {}
            for sign in (POINT, COMMA):
                self._decimal = sign
                n_broken[sign] = self._n_unread(text)
            self._decimal = COMMA if n_broken[COMMA] < n_broken[POINT] else POINT

    def _n_unread(self, text: bytes) -> int:
        """Return the number of invalid spectra in a text."""
        lines = _scan(text, self._path, self._decimal, is_headed=self.is_headed)
        table, firsts, ends, _ = self._read(lines)
        _note_broken_peaks(table, lines, firsts, ends)
        return len(table.broken())

    @abstractmethod
    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete record in a text; 0 if no record is complete."""

    @abstractmethod
    def _read(self, lines: _Lines) -> _Read:
        """Read the headers of the spectra of a block from its lines."""

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """Return the spectra of a block (see `proteoscope.engine.formats.read_spectra` for `centroid`)."""
        data = block.text.removeprefix(_BYTE_ORDER_MARK) if block.is_first else block.text
        lines = _scan(data, self._path, self._decimal, is_headed=self.is_headed)
        table, firsts, ends, stray = self._read(lines)
        _note_broken_peaks(table, lines, firsts, ends)
        lacking = np.flatnonzero(~(table.precursor_mz > 0))
        table.note(lacking, IssueCode.NO_PRECURSOR, lines.number[firsts[lacking]])
        table.note_bounds(lines.number[firsts])
        if self._default_charges:
            has_none = (table.charges & ~NEGATIVE) == 0
            table.charges[has_none] = self._default_charges | (table.charges[has_none] & NEGATIVE)
        if not self.takes_negative:
            table.note_negative(lines.number[firsts])
        for i in np.flatnonzero(table.scan < 0).tolist():
            table.scan[i] = _parse_title_scan(table.identifier[i])
        after = np.append(lines.n_peaks_before, len(lines.mz))
        starts, stops = lines.n_peaks_before[firsts], after[ends]
        too_many = np.flatnonzero(stops - starts > MAXIMUM_PEAKS)
        table.note(too_many, IssueCode.PEAKS, lines.number[firsts[too_many]])
        rows = np.flatnonzero((table.issue == IssueCode.NONE) & ~table.is_ms1)
        parsed = finish(table, rows, *_select_peaks(lines, starts[rows], stops[rows]), centroid)
        parsed.n_lines, parsed.n_entries = lines.n_lines, len(lines)
        table.report_broken(parsed, ~table.is_ms1, lines.number[firsts])
        if len(stray):
            # Lines outside of spectra remain from a damaged spectrum.
            parsed.n_broken += len(stray)
            parsed.issues += [SpectrumIssue.from_code(IssueCode.LINE, line=line) for line in stray[:SHOWN_ISSUES].tolist()]
            parsed.issues.sort(key=lambda issue: issue.line)
            del parsed.issues[SHOWN_ISSUES:]
        return parsed


class MgfParser(_PeakListParser):
    """Parser of MGF files."""

    numbers = _MGF_NUMBERS

    def begin(self, block: Block) -> None:
        """Detect the decimal sign, and read the global CHARGE before the first spectrum, if there is any."""
        super().begin(block)
        for number, match in enumerate(_LINES_WITH_ENDS.finditer(block.text.removeprefix(_BYTE_ORDER_MARK)), 1):
            key, sign, value = match[1].strip(b" \t").partition(b"=")
            if key and not sign and key[0] not in _COMMENT_SIGNS:
                break
            if sign and key.rstrip().upper() == b"CHARGE":
                self._default_charges, issue = charge_bits(value)
                if issue:
                    raise InputError(
                        self._path,
                        f"the CHARGE of all spectra, '{decoded(value.strip()):.60}', cannot be read",
                        place=f"line {number}",
                        remedy="Write it as 2+ and 3+",
                    )

    def cut(self, text: bytes) -> int:
        """Return the start of the last spectrum as a byte offset, or 0."""
        return self._last_beginning(text) or self._last_beginning(text.upper())

    @staticmethod
    def _last_beginning(text: bytes) -> int:
        start = text.rfind(_BEGINNING)
        while start > 0 and not (text[start - 1 : start] in _LINE_ENDS and _REST_OF_LINE.match(text, start + len(_BEGINNING))):
            start = text.rfind(_BEGINNING, 0, start)
        return max(start, 0)

    def _read(self, lines: _Lines) -> _Read:
        return _MgfRecords(lines, self._decimal).read()


class Ms2Parser(_PeakListParser):
    """Parser of MS2 files."""

    numbers = _MS2_NUMBERS

    def cut(self, text: bytes) -> int:
        """Return the start of the last spectrum as a byte offset, or 0."""
        return max(text.rfind(b"\nS\t"), text.rfind(b"\nS "), text.rfind(b"\rS\t"), text.rfind(b"\rS ")) + 1

    def _read(self, lines: _Lines) -> _Read:
        return _read_ms2(lines, self._decimal)


class DtaParser(_PeakListParser):
    """Parser of DTA files, whose spectra are separated by blank lines and begin with [M+H]+ and charge."""

    is_headed = True
    numbers = _HEADED_NUMBERS

    def cut(self, text: bytes) -> int:
        """Return the end of the last blank line as a byte offset, or the start of the name before it; 0 if there is none."""
        # The last bytes may be half of a line end, so the blank line has to lie before them.
        end = max(text.rfind(blank, 0, len(text) - 2) + 1 for blank in (b"\n\n", b"\n\r\n", b"\r\r"))
        before = text[:end].rstrip(b" \t\r\n")
        start = max(before.rfind(line_end) for line_end in _LINE_ENDS) + 1
        if before[start:].removeprefix(_BYTE_ORDER_MARK).lstrip(b" \t").startswith(b"="):
            return start  # the name belongs to the next spectrum
        return end if end > 1 else 0

    def _read(self, lines: _Lines) -> _Read:
        return _read_headed(lines, self._decimal, with_intensity=False)


class PklParser(DtaParser):
    """Parser of PKL files, whose spectra are separated by blank lines and begin with m/z, intensity and charge."""

    def _read(self, lines: _Lines) -> _Read:
        return _read_headed(lines, self._decimal, with_intensity=True)


def _parse_title_scan(title: str) -> int:
    """Return the scan number in a title, or -1.

    The code, not the pattern, compares the two numbers in a SEQUEST title, since a pattern would try all ways to split the zeros.
    """
    for match in _TITLE_SCAN.finditer(title):
        named, first, second = match.groups()
        if named or int(first) == int(second) < MAXIMUM_SCAN:
            return int(named or first)
    return -1


def _scan(data: bytes, path: Path, decimal: int, *, is_headed: bool) -> _Lines:
    text = np.frombuffer(data, dtype=np.uint8)
    # A peak needs four bytes. Pages of the arrays that no peak reaches are never used; counting lines would hold the GIL.
    mz, intensity = np.empty(len(data) // 4 + 1), np.empty(len(data) // 4 + 1)
    state = np.zeros(kernels.cpu.text.N_STATES, dtype=np.int64)
    parts: list[NDArray[np.int64]] = []
    n_columns = max(_LINES_AT_FIRST, len(data) // _BYTES_OF_LINE)
    while not parts or state[0] < len(text):
        table = np.empty((5, n_columns), dtype=np.int64)
        parts.append(table[:, : kernels.cpu.text.scan_peak_lines(text, is_headed, decimal, state, mz, intensity, table)])
        n_columns *= 2
        if sum(part.shape[1] for part in parts) > MAXIMUM_LINES:
            raise InputError(
                path,
                f"more than {MAXIMUM_LINES:,} lines between two spectra are not peaks",
                remedy="Is it a file of spectra?",
            )
    start, stop, number, n_before, code = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    n_lines, n_peaks = int(state[1]), int(state[2])
    for peaks in (mz, intensity):
        peaks.resize(n_peaks, refcheck=False)  # in place: the remaining memory is freed
    return _Lines(data, text, start, stop, number, n_before, code, mz, intensity, n_lines)


def _select_peaks(
    lines: _Lines, starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the m/z and intensities of the given ranges of peaks, concatenated, and their offsets."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    if offsets[-1] == len(lines.mz):
        return lines.mz, lines.intensity, offsets
    chosen = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
    return lines.mz[chosen], lines.intensity[chosen], offsets


def _note_broken_peaks(table: SpectrumTable, lines: _Lines, firsts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
    """Record an issue for each spectrum with an invalid line of numbers; `firsts` and `ends` are the ranges of lines of the spectra."""
    broken = np.flatnonzero(lines.code != 0)
    if len(broken) and len(firsts):
        spectrum = np.searchsorted(firsts, broken, side="right") - 1
        within = (spectrum >= 0) & (broken < ends[spectrum])
        broken, spectrum = broken[within], spectrum[within]
        # The first broken line of each spectrum is reported.
        spectrum, first = np.unique(spectrum, return_index=True)
        broken = broken[first]
        for code, issue in _LINE_ISSUES.items():
            chosen = lines.code[broken] == code
            with_comma = [bool(_DECIMAL_COMMA.search(lines.content(line))) for line in broken[chosen].tolist()]
            for has_comma in (True, False):
                rows = np.flatnonzero(chosen)[np.equal(with_comma, has_comma)]
                table.note(spectrum[rows], IssueCode.DECIMAL_COMMA if has_comma else issue, lines.number[broken[rows]])


def _name(
    table: SpectrumTable,
    lines: _Lines,
    at: NDArray[np.int64],
    spectra: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
) -> None:
    """Set the identifiers of `spectra` to the texts between the positions `start` and `stop` of the lines `at`."""
    too_long = stop - start > MAXIMUM_NAME_BYTES
    table.note(spectra[too_long], IssueCode.NAME, lines.number[at[too_long]])
    stop = np.minimum(stop, start + MAXIMUM_NAME_BYTES)
    has_controls = _CONTROLS[lines.text[start - 1]] | _CONTROLS[lines.text[np.minimum(stop, len(lines.text) - 1)]]
    if too_long.any() or has_controls.any() or not len(spectra):
        for spectrum, a, b, is_longer in zip(spectra.tolist(), start.tolist(), stop.tolist(), has_controls.tolist(), strict=True):
            table.identifier[spectrum] = decoded(_with_controls(lines.data, a, b) if is_longer else lines.data[a:b].strip(b" \t"))
        return
    joined = _texts(lines, start, stop)
    try:
        names = joined.decode().split("\n")
    except UnicodeDecodeError:
        names = [decoded(name) for name in joined.split(b"\n")]
    if len(spectra) == len(table) and (spectra == np.arange(len(table))).all():
        table.identifier = names
    else:
        for spectrum, name in zip(spectra.tolist(), names, strict=True):
            table.identifier[spectrum] = name


def _texts(lines: _Lines, start: NDArray[np.int64], stop: NDArray[np.int64]) -> bytes:
    """Return the texts between positions of lines, separated by line feeds."""
    offsets, at = ranges(start, stop + 1)
    joined = lines.text[np.minimum(at, len(lines.text) - 1)]
    joined[offsets[1:] - 1] = ord("\n")  # no line contains one
    return joined[:-1].tobytes()


def _with_controls(data: bytes, start: int, stop: int) -> bytes:
    """Return the text between `start` and `stop`, with the control characters next to it, which `_Lines` treats as blanks."""
    while data[start - 1 : start] <= b" " and data[start - 1 : start] not in (b"", b"\n", b"\r"):
        start -= 1
    while data[stop : stop + 1] <= b" " and data[stop : stop + 1] not in (b"", b"\n", b"\r"):
        stop += 1
    return data[start:stop].strip(b" \t")


class _MgfRecords:
    """Reader of the spectra in an MGF block, given its lines that are not peaks."""

    def __init__(self, lines: _Lines, decimal: int) -> None:
        self._lines, self._decimal = lines, decimal
        self._fields, self._values = np.empty((2, len(lines)), dtype=np.int64)
        kernels.cpu.text.find_fields(
            lines.text, lines.start, lines.stop, lines.code, _FIELD_NAMES, _FIELD_OFFSETS, self._fields, self._values
        )
        self._counts = np.bincount(self._fields - kernels.cpu.text.FIELD_UNKNOWN, minlength=len(_FIELDS) + 2).tolist()
        firsts, closings = self._lines_of(b"BEGIN IONS"), self._lines_of(b"END IONS")
        self._firsts, self.table = firsts, SpectrumTable(len(firsts))
        following = np.append(firsts[1:], len(lines))
        nearest = np.append(closings, len(lines))[np.searchsorted(closings, firsts)]
        self._ends = np.minimum(nearest, following)
        unclosed = np.flatnonzero((nearest > following) | (nearest == len(lines)))
        self.table.note(unclosed, IssueCode.UNCLOSED, lines.number[firsts[unclosed]])
        self._spectrum = np.cumsum(self._fields == 0) - 1
        self._inside = np.arange(len(lines)) < np.append(self._ends, 0)[self._spectrum]  # -1, for lines before all spectra, is the last

    def _lines_of(self, field: bytes) -> NDArray[np.int64]:
        """Return the indices of the lines with a field."""
        number = _FIELDS[field]
        is_present = self._counts[number - kernels.cpu.text.FIELD_UNKNOWN] > 0
        return np.flatnonzero(self._fields == number) if is_present else np.empty(0, np.int64)

    def read(self) -> _Read:
        """Read the headers of all spectra."""
        at, owners, start, stop = self._field(b"TITLE")
        _name(self.table, self._lines, at, owners, start, stop)
        # A charge after the m/z in PEPMASS overrides the CHARGE line (Mascot's format).
        at_charge, owners, start, stop = self._field(b"CHARGE")
        self._take_charges(at_charge, owners, start, stop)
        self._take_precursors()
        self._take_polarity()
        self._take_times()
        self._take_scans()
        self._take_levels()
        self._take_activations()
        return self.table, self._firsts, self._ends, self._unknown_lines()

    def _field(self, key: bytes, *, is_single: bool = True) -> tuple[NDArray[np.int64], ...]:
        """Return the lines ``KEY=VALUE`` within spectra with the key `key`, the spectrum of each line, and start and end of each value.

        If `is_single`, an issue is recorded for each spectrum with different values of the key.
        """
        lines, at = self._lines, self._lines_of(key + b"=")
        if not len(at):
            return at, at, at, at
        at = at[self._inside[at]]
        start, owners, stop = self._values[at], self._spectrum[at], lines.stop[at]
        if is_single and key != b"TITLE":
            for row in np.flatnonzero(owners[1:] == owners[:-1]).tolist():
                if lines.data[start[row] : stop[row]] != lines.data[start[row + 1] : stop[row + 1]]:
                    self.table.note(owners[row : row + 1], IssueCode.CONTRADICTION, int(lines.number[at[row + 1]]))
        return at, owners, start, stop

    def _note(self, owner: int, line: int, text: bytes, issue: IssueCode = IssueCode.NUMBER) -> None:
        """Record as an issue that the text of a line is invalid."""
        if issue == IssueCode.NUMBER and _DECIMAL_COMMA.search(text):
            issue = IssueCode.DECIMAL_COMMA
        self.table.note(np.array([owner]), issue, int(self._lines.number[line]))

    def _numbers(
        self, start: NDArray[np.int64], stop: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
        """Parse the number at the beginning of each text.

        Return the numbers; the end of each number; and a mask, True for a valid text: an empty one, or a number followed by a blank or by
        the end of the text.
        """
        ends = np.empty(len(start), dtype=np.int64)
        numbers = kernels.cpu.text.parse_numbers(self._lines.text, start, stop, ends, self._decimal)
        follows = self._lines.text[np.minimum(ends, len(self._lines.text) - 1)]
        return numbers, ends, ((ends > start) & ((ends == stop) | (follows <= 32))) | (start >= stop)

    def _take_charges(self, at: NDArray[np.int64], owners: NDArray[np.int64], start: NDArray[np.int64], stop: NDArray[np.int64]) -> None:
        if not len(at):
            return
        texts = _texts(self._lines, start, stop).split(b"\n")
        seen = {text: charge_bits(text) for text in set(texts)}
        if not (self.table.charges[owners].any() or (owners[1:] == owners[:-1]).any() or any(issue for _, issue in seen.values())):
            self.table.charges[owners] = [seen[text][0] for text in texts]
            return
        charges_of = self.table.charges.tolist()
        for line, owner, text in zip(at.tolist(), owners.tolist(), texts, strict=True):
            charges, issue = seen[text]
            before = charges_of[owner]
            charges_of[owner] = charges or before
            if before and charges and charges & before != charges:
                self.table.remark(RemarkCode.CHARGES_DIFFER, owner, int(self._lines.number[line]))
            if issue:
                self._note(owner, line, text, issue)
        self.table.charges[:] = charges_of

    def _take_precursors(self) -> None:
        """Read ``PEPMASS``: m/z and, optionally, intensity and charge."""
        lines, table = self._lines, self.table
        at, owners, start, stop = self._field(b"PEPMASS")
        mz, ends, is_sound = self._numbers(start, stop)
        table.precursor_mz[owners] = mz
        for row in np.flatnonzero(~is_sound).tolist():
            if not is_missing(text := lines.data[start[row] : stop[row]]):
                self._note(int(owners[row]), int(at[row]), text)
        second = lines.after_blanks(ends, stop)
        has_more = np.flatnonzero(is_sound & (second < stop))
        if not len(has_more):
            return
        at, owners, second, stop = at[has_more], owners[has_more], second[has_more], stop[has_more]
        heights, ends, is_sound = self._numbers(second, stop)
        third = lines.after_blanks(ends, stop)
        for row in np.flatnonzero(~is_sound).tolist():
            word = lines.data[second[row] : stop[row]].split()[0]
            heights[row], third[row] = 0.0, second[row]
            if is_missing(word):
                third[row] = lines.after_blanks(second[row : row + 1] + len(word), stop[row : row + 1])[0]
            elif not _CHARGE_AFTER_MASS.fullmatch(word):
                third[row] = stop[row]
                self._note(int(owners[row]), int(at[row]), word)
        table.precursor_intensity[owners] = np.where(heights > 0, heights, 0.0)
        rows = np.flatnonzero(third < stop)
        self._take_charges(at[rows], owners[rows], third[rows], stop[rows])

    def _take_polarity(self) -> None:
        for key in (b"IONMODE", b"ION_MODE", b"POLARITY"):
            _, owners, start, stop = self._field(key)
            for owner, a, b in zip(owners.tolist(), start.tolist(), stop.tolist(), strict=True):
                if parse_polarity(self._lines.data[a:b]) < 0:
                    self.table.charges[owner] |= NEGATIVE

    def _take_times(self) -> None:
        """Read ``RTINSECONDS``: a number, or the first number of a range."""
        lines = self._lines
        at, owners, start, stop = self._field(b"RTINSECONDS")
        if not len(at):
            return
        times, ends, _ = self._numbers(start, stop)
        self.table.retention_time[owners] = times
        for row in np.flatnonzero((ends != stop) & (start < stop)).tolist():
            text = lines.data[start[row] : stop[row]]
            if is_missing(text):
                continue
            try:
                self.table.retention_time[owners[row]] = _first_time(text, self._decimal)
            except ValueError:
                self._note(int(owners[row]), int(at[row]), text)

    def _take_scans(self) -> None:
        """Read ``SCANS``: a number, or the first number of a range or list; spectra with other texts get a remark."""
        lines = self._lines
        at, owners, start, stop = self._field(b"SCANS")
        if not len(at):
            return
        scans, ends, _ = self._numbers(start, stop)
        is_whole = (ends == stop) & (scans >= 0) & (scans < MAXIMUM_SCAN) & (scans == np.floor(scans))
        self.table.scan[owners[is_whole]] = scans[is_whole].astype(np.int64)
        for row in np.flatnonzero(~is_whole & (start < stop)).tolist():
            text = lines.data[start[row] : stop[row]]
            match = _SCANS.fullmatch(text)
            if match and int(match[1]) < MAXIMUM_SCAN:
                self.table.scan[owners[row]] = int(match[1])
            elif text[:1] in b"0123456789+.,":
                self._note(int(owners[row]), int(at[row]), text)
            elif not is_missing(text) and text != b"-1":
                self.table.remark(RemarkCode.SCAN_UNKNOWN, int(owners[row]), int(lines.number[at[row]]))

    def _take_levels(self) -> None:
        at, owners, start, stop = self._field(b"MSLEVEL")
        for line, owner, a, b in zip(at.tolist(), owners.tolist(), start.tolist(), stop.tolist(), strict=True):
            if self._lines.data[a:b].strip() == b"1":
                self.table.is_ms1[owner] = True
                self.table.remark(RemarkCode.MS1, owner, int(self._lines.number[line]))

    def _take_activations(self) -> None:
        """Read the activations from the lines of their keys, or from the titles of spectra without such lines."""
        activation, data = self.table.activation, self._lines.data
        for key in _ACTIVATION_KEYS:
            _, owners, start, stop = self._field(key)
            for owner, a, b in zip(owners.tolist(), start.tolist(), stop.tolist(), strict=True):
                named = parse_activation(data[a:b].decode("latin-1"))
                activation[owner] = combine_activations((Activation(activation[owner]), named))
        titles = "\n".join(self.table.identifier).lower()
        if not any(hint in titles for hint in _HINTS):
            return
        for row in np.flatnonzero(activation == 0).tolist():
            title = self.table.identifier[row]
            activation[row] = parse_filter_activation(title) or parse_activation(" ".join(_AFTER_WORD.findall(title)))

    def _unknown_lines(self) -> NDArray[np.int64]:
        """Record an issue for each spectrum with an unknown line; return the line numbers of unknown lines and peaks outside spectra."""
        lines, inside = self._lines, self._inside
        is_unknown = self._fields == kernels.cpu.text.FIELD_UNKNOWN
        closings = self._lines_of(b"END IONS")
        is_unknown[closings] = True
        is_unknown[self._ends[self._ends < len(lines)]] = False
        unknown = np.flatnonzero(is_unknown)
        unknown = unknown[~_COMMENTS[lines.text[lines.start[unknown]]]]
        misplaced = unknown[inside[unknown]]
        self.table.note(self._spectrum[misplaced], IssueCode.LINE, lines.number[misplaced])
        outside = lines.number[np.concatenate([unknown[~inside[unknown]], np.flatnonzero((lines.code != 0) & ~inside)])]
        # Peaks are outside of spectra if they follow a line outside of spectra, or precede the first line.
        after = np.append(lines.n_peaks_before, len(lines.mz))
        loose = np.flatnonzero(after[1:] > after[:-1])
        loose = lines.number[loose[~inside[loose]]] + 1 if len(lines) else loose
        is_first = len(lines.mz) > 0 and (not len(lines) or lines.n_peaks_before[0] > 0)
        return np.unique(np.concatenate([[1] if is_first else [], outside, loose]).astype(np.int64))


def _first_time(text: bytes, decimal: int) -> float:
    """Return the first time of a text such as ``12.5``, ``12.5-13``, ``12.5,13.5`` or ``12.5 s``.

    Raises
    ------
    ValueError
        If a time is invalid, or if a comma may be a decimal sign.
    """
    text = _SECONDS_UNIT.sub(b"", text).rstrip(b" \t")
    parts = text.split(b",") if decimal != COMMA else [text]
    if len(parts) > 1 and not all(b"." in part for part in parts):
        raise ValueError(text)
    ranges = [[read_number(word, decimal) for word in re.split(rb"(?<=[0-9.])[ ]*-[ ]*", part)] for part in parts]
    if any(times != sorted(times) for times in ranges):
        raise ValueError(text)
    return ranges[0][0]


def _read_ms2(lines: _Lines, decimal: int) -> _Read:
    """Read the headers of the spectra of an MS2 block."""
    first_characters = np.zeros(len(lines), dtype=np.uint8)
    filled = np.flatnonzero((lines.stop > lines.start) & (lines.code == 0))
    first_characters[filled] = lines.text[lines.start[filled]]
    firsts = np.flatnonzero(first_characters == ord("S"))
    ends = np.append(firsts[1:], len(lines))[: len(firsts)]
    table = SpectrumTable(len(firsts))
    spectra = np.searchsorted(firsts, np.arange(len(lines)), side="right") - 1
    # Select the few relevant I lines: keys of the time begin with R, keys of the activation with A or F.
    remarks = np.flatnonzero(first_characters == ord("I"))
    at = lines.after_blanks(lines.start[remarks] + 1, lines.stop[remarks])
    remarks = remarks[np.isin(lines.text[np.minimum(at, len(lines.text) - 1)], np.frombuffer(b"RAF", np.uint8))]
    relevant = np.sort(np.concatenate([np.flatnonzero((first_characters == ord("S")) | (first_characters == ord("Z"))), remarks]))
    relevant = relevant[spectra[relevant] >= 0]
    masses: list[tuple[int, int, int, bytes]] = []
    selected_texts: dict[int, bytes] = {}
    seen: dict[bytes, tuple[int, IssueCode]] = {}
    for line, line_type, spectrum in zip(relevant.tolist(), first_characters[relevant].tolist(), spectra[relevant].tolist(), strict=True):
        words = lines.content(line).split()
        issue = IssueCode.NONE
        try:
            if line_type == ord("S"):
                table.scan[spectrum] = scan = _scan_number(words[1])
                table.identifier[spectrum] = f"scan={scan}"
                if len(words) > 3:
                    table.precursor_mz[spectrum] = read_number(words[3], decimal)
                    selected_texts[spectrum] = words[3]
            elif line_type == ord("Z"):
                if words[1] not in seen:
                    seen[words[1]] = charge_bits(words[1])
                charges, issue = seen[words[1]]
                table.charges[spectrum] |= charges
                if charges:
                    masses.append((spectrum, line, charges, words[2] if len(words) > 2 else b""))
            elif len(words) > 2 and words[1] in (b"RTime", b"RetTime"):
                table.retention_time[spectrum] = 60.0 * read_number(words[2], decimal)  # the format gives minutes
            elif len(words) > 2 and words[1] in _MS2_ACTIVATIONS:
                named = _MS2_ACTIVATIONS[words[1]](b" ".join(words[2:]).decode("latin-1"))
                table.activation[spectrum] = combine_activations((Activation(table.activation[spectrum]), named))
        except (ValueError, IndexError):
            if line_type == ord("I") and is_missing(words[2]):
                continue
            issue = IssueCode.DECIMAL_COMMA if _DECIMAL_COMMA.search(lines.content(line)) else IssueCode.NUMBER
        if issue:
            table.note(np.array([spectrum]), issue, int(lines.number[line]))
    _take_masses(table, lines, masses, selected_texts, decimal)
    strange = filled[~np.isin(first_characters[filled], np.frombuffer(b"SHIDZ", dtype=np.uint8))]
    misplaced = strange[spectra[strange] >= 0]
    table.note(spectra[misplaced], IssueCode.LINE, lines.number[misplaced])
    return table, firsts, ends, lines.number[strange[spectra[strange] < 0]]


def _take_masses(
    table: SpectrumTable, lines: _Lines, masses: list[tuple[int, int, int, bytes]], selected_texts: dict[int, bytes], decimal: int
) -> None:
    """Set the precursors from the [M+H]+ of ``Z`` lines and the m/z of ``S`` lines.

    Z lines contain the mass of the peptide and take precedence, since many programs write the centre of the isolation window to the S line.
    If both agree, the value with more decimals is used. If they differ by more than any isolation window, both become precursors.

    Parameters
    ----------
    table : SpectrumTable
        Receives the precursors.
    lines : _Lines
        Lines of the block.
    masses : list of (int, int, int, bytes)
        Spectrum, line, charge bits and text of the mass of each Z line.
    selected_texts : dict of int to bytes
        Text of the m/z in the S line of each spectrum.
    decimal : int
        Decimal sign.
    """
    selected_mz, sign = table.precursor_mz.tolist(), chr(decimal).encode()
    candidates: dict[int, list[tuple[float, int]]] = {}
    differing = set()
    for spectrum, line, charges, word in masses:
        try:
            mass = read_number(word, decimal)
        except ValueError:
            mass = 0.0
            if not is_missing(word):
                issue = IssueCode.DECIMAL_COMMA if _DECIMAL_COMMA.search(word) else IssueCode.NUMBER
                table.note(np.array([spectrum]), issue, int(lines.number[line]))
        charge, selected = (charges & ~NEGATIVE).bit_length() - 1, selected_mz[spectrum]
        mz = (mass + (-(charge + 1) if charges & NEGATIVE else charge - 1) * PROTON_MASS) / charge
        if not (mass > 0 and mz > 0) or abs(mz - selected) <= _SAME_MZ:
            mz = selected
        elif selected > 0:
            decimals, mass_decimals = len(selected_texts[spectrum].partition(sign)[2]), len(word.partition(sign)[2])
            rounding = 0.5 * 10.0**-decimals + 0.5 * 10.0**-mass_decimals / charge + _SAME_MZ
            is_far = abs(mz - selected) > _ISOLATED
            if abs(mz - selected) > rounding:
                table.remark(RemarkCode.FAR_MASS if is_far else RemarkCode.WINDOW_CENTRE, spectrum, int(lines.number[line]))
            elif decimals >= mass_decimals:
                mz = selected
            if is_far:
                candidates.setdefault(spectrum, []).append((selected, charges))
        if mz > 0:
            candidates.setdefault(spectrum, []).append((mz, charges))
            if mz != selected:
                differing.add(spectrum)
    for spectrum in sorted(differing):
        table.take_precursors(spectrum, candidates[spectrum])


def _scan_number(word: bytes) -> int:
    """Parse a scan number; raise a `ValueError` if it is invalid."""
    if not word.isdigit() or len(word) > 18 or int(word) >= MAXIMUM_SCAN:
        raise ValueError(word)
    return int(word)


def _read_headed(lines: _Lines, decimal: int, *, with_intensity: bool) -> _Read:
    """Read the first line of each spectrum: [M+H]+ and charge (DTA); with `with_intensity`, m/z, intensity and charge (PKL)."""
    is_text = lines.stop > lines.start
    first_characters = np.zeros(len(lines), dtype=np.uint8)
    first_characters[is_text] = lines.text[lines.start[is_text]]
    is_words = is_text & (lines.code == 0) & (first_characters != ord("="))
    is_parted = np.append(True, ~is_text[:-1] | (first_characters[:-1] == ord("="))) if len(lines) else is_text
    is_parted[1:] &= lines.n_peaks_before[1:] == lines.n_peaks_before[:-1]
    is_head = is_words & (is_parted | np.isin(first_characters, np.frombuffer(b"0123456789.,+-", dtype=np.uint8)))
    firsts = np.flatnonzero(is_head)
    table = SpectrumTable(len(firsts))
    # A spectrum ends before the next blank line, name or header.
    parting = np.append(np.flatnonzero(~is_text | (first_characters == ord("=")) | is_head), len(lines))
    ends = parting[np.searchsorted(parting, firsts, side="right")]
    stray: list[int] = []
    title = ""
    spectrum = -1
    for line in np.flatnonzero(is_text & (lines.code == 0)).tolist():
        content, number = lines.content(line), int(lines.number[line])
        if is_head[line]:
            spectrum += 1
            index_array = np.array([spectrum])
            if len(title) > MAXIMUM_NAME_BYTES:
                table.note(index_array, IssueCode.NAME, number)
            table.identifier[spectrum], title = title, ""
            words = content.split()
            try:
                numbers = [read_number(words[0], decimal)]
                if with_intensity:
                    numbers.append(0.0 if is_missing(words[1]) else read_number(words[1], decimal))
                charges, issue = charge_bits(words[len(numbers)])
                if with_intensity and len(words) > 3:
                    raise ValueError(content)
            except (ValueError, IndexError):
                table.note(index_array, IssueCode.DECIMAL_COMMA if _DECIMAL_COMMA.search(content) else IssueCode.NUMBER, number)
                continue
            if issue or (not charges and not with_intensity):
                table.note(index_array, issue or IssueCode.CHARGE, number)
                continue
            table.charges[spectrum] = charges
            charge = charges.bit_length() - 1
            table.precursor_mz[spectrum] = (numbers[0] + (charge - 1) * PROTON_MASS) / charge if not with_intensity else numbers[0]
            table.precursor_intensity[spectrum] = max(numbers[1], 0.0) if with_intensity else 0.0
        elif first_characters[line] == ord("="):
            title = decoded(content[: 2 * MAXIMUM_NAME_BYTES].strip(b'= "'))  # merged DTA files name each spectrum between equals signs
        elif spectrum >= 0 and line < ends[spectrum]:
            table.note(np.array([spectrum]), IssueCode.LINE, number)
        else:
            stray.append(number)
            title = ""  # a name is followed by its spectrum
    return table, firsts, ends, np.array(stray, np.int64)
