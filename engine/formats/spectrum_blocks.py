"""Parsed spectra in a block of a file, and the steps that the parsers of all formats have in common."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope import kernels
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.numbers import is_missing
from proteoscope.engine.formats.profiles import centroid_profiles, looks_sampled
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.results.counts import counted
from proteoscope.engine.spectra.columns import OtherPrecursors

__all__ = [
    "CUT_OFF",
    "HIGHEST_CHARGE",
    "MAXIMUM_INTENSITY",
    "MAXIMUM_MZ",
    "MAXIMUM_NAME_BYTES",
    "MAXIMUM_PEAKS",
    "MAXIMUM_SCAN",
    "NEGATIVE",
    "QUIET_REMARKS",
    "SHOWN_ISSUES",
    "IgnoredPeaks",
    "IssueCode",
    "Mode",
    "NoiseSamples",
    "Origin",
    "ParsedBlock",
    "RemarkCode",
    "SpectrumIssue",
    "SpectrumParser",
    "SpectrumTable",
    "charge_bits",
    "finish",
    "parse_polarity",
    "remark_text",
]

# Bounds of valid spectra: far above the values of any instrument, and far below the largest numbers that the searches can represent.
HIGHEST_CHARGE = 31
MAXIMUM_MZ = 1e5
"""Maximum m/z in thomson; whole viruses have m/z of up to a third of it."""
MINIMUM_MZ = 1e-3
"""Minimum m/z in thomson; peaks with smaller values, such as zeros that pad arrays, are not ions and are removed."""
MAXIMUM_INTENSITY = 1e30
MAXIMUM_SECONDS = 1e7
"""Maximum retention time in seconds: four months."""
MAXIMUM_PEAKS = 1 << 21
"""Maximum number of peaks of a spectrum; a profile spectrum of a time-of-flight instrument has hundreds of thousands of points."""
MAXIMUM_NAME_BYTES = 1 << 14
"""Maximum length of the name of a spectrum, since tables repeat it in each row of the results."""
MAXIMUM_SCAN = 10**15
_SAME_PRECURSOR = 1e-4
"""Minimum difference between two precursors of a spectrum, Th; precursors with a smaller difference are considered the same ion."""
NEGATIVE = 1
"""Bit 0 of a charge mask, set for negative ions."""
_MAXIMUM_CHARGE_BYTES = 1000
_CHARGE = re.compile(rb"([-+]?)(\d+)(?:\.0*)?([-+]?)")
_CHARGE_SEPARATOR = re.compile(rb"\s*(?:[,;/&]|\band\b|\bor\b|\s)\s*", re.IGNORECASE)


class Mode(IntEnum):
    """Type of the peaks of a spectrum."""

    UNKNOWN = 0
    CENTROID = 1
    PROFILE = 2


class IssueCode(IntEnum):
    """Codes of reasons why a spectrum cannot be used."""

    NONE = 0
    NUMBER = 1
    NO_PRECURSOR = 2
    CHARGE = 3
    NEGATIVE = 4
    UNCLOSED = 5
    LINE = 6
    NO_INTENSITY = 7
    XML = 8
    BASE64 = 9
    ZLIB = 10
    NUMPRESS = 11
    LENGTHS = 12
    UNSUPPORTED = 13
    NO_ARRAY = 14
    MZ = 15
    PEAK = 16
    TIME = 17
    PEAKS = 18
    NAME = 19
    DECIMAL_COMMA = 20
    CONTRADICTION = 21


_REMEDY = "Correct it there, or convert the raw data again"
_REASONS: dict[IssueCode, tuple[str, str]] = {
    IssueCode.NUMBER: ("a number cannot be read", _REMEDY),
    IssueCode.NO_PRECURSOR: ("the precursor m/z is missing or not positive", "Convert the raw data with their precursors to search it"),
    IssueCode.CHARGE: (f"the charge is not a whole number from 1 to {HIGHEST_CHARGE}", "Correct the charge in the file to search it"),
    IssueCode.NEGATIVE: ("its ions are negative; peptides are searched with positive ions only", "Compare it with a spectral library"),
    IssueCode.UNCLOSED: ("the spectrum has no end", "Copy or convert the file again"),
    IssueCode.LINE: ("the line is neither a peak nor a known key with a value", _REMEDY),
    IssueCode.NO_INTENSITY: ("a peak has no intensity", _REMEDY),
    IssueCode.XML: ("the XML is broken", _REMEDY),
    IssueCode.BASE64: ("the base64 text of a peak array is broken", _REMEDY),
    IssueCode.ZLIB: ("the zlib data of a peak array are broken", _REMEDY),
    IssueCode.NUMPRESS: ("the numpress data of a peak array are broken", _REMEDY),
    IssueCode.LENGTHS: ("the length of a peak array differs from the declared length", _REMEDY),
    IssueCode.UNSUPPORTED: ("a peak array is in an unknown encoding", "Convert the file with 32 or 64 bit floats and zlib"),
    IssueCode.NO_ARRAY: ("the m/z or the intensity array is missing", _REMEDY),
    IssueCode.MZ: (f"the precursor m/z is larger than {MAXIMUM_MZ:,.0f}", _REMEDY),
    IssueCode.PEAK: (f"a peak has an m/z larger than {MAXIMUM_MZ:,.0f} or an intensity larger than {MAXIMUM_INTENSITY:g}", _REMEDY),
    IssueCode.TIME: (f"the retention time is beyond {MAXIMUM_SECONDS:,.0f} seconds", _REMEDY),
    IssueCode.PEAKS: (f"the spectrum has more than {MAXIMUM_PEAKS:,} peaks", "Centroid it, or leave it out"),
    IssueCode.NAME: (f"the spectrum's name is longer than {MAXIMUM_NAME_BYTES:,} bytes", "Shorten its title"),
    IssueCode.DECIMAL_COMMA: (
        "a number has a comma, but other numbers in the file have decimal points",
        "Write all numbers with decimal points",
    ),
    IssueCode.CONTRADICTION: ("two lines give different values for the same key", "Delete the wrong line"),
}


class RemarkCode(IntEnum):
    """Codes of messages about spectra that are read in an unusual way."""

    CHARGES_DIFFER = 0
    SCAN_UNKNOWN = 1
    MS1 = 2
    WINDOW_CENTRE = 3
    FAR_MASS = 4
    WINDOW_TARGET = 5
    SEVERAL = 6
    TIME_UNIT = 7


_REMARKS: dict[RemarkCode, str] = {
    RemarkCode.CHARGES_DIFFER: "{n} with a charge in PEPMASS that differs from CHARGE: the charge in PEPMASS is used",
    RemarkCode.SCAN_UNKNOWN: "{n} whose SCANS is not a number, so that their scan numbers are unknown",
    RemarkCode.MS1: "{n} with MSLEVEL=1 left out, since only fragment spectra are read",
    RemarkCode.WINDOW_CENTRE: "{n} whose S line differs from their Z lines: the masses of the Z lines are used",
    RemarkCode.FAR_MASS: (
        "{n} whose Z line gives an m/z more than 5 Th from their S line: the S line is used, and peptide searches try both;"
        " check the program that wrote the masses"
    ),
    RemarkCode.WINDOW_TARGET: "{n} without the m/z of a selected ion: the target of the isolation window is used",
    RemarkCode.TIME_UNIT: "{n} whose scan start time has no unit of time, so that their retention times are unknown",
    RemarkCode.SEVERAL: "{n} with several precursors: all precursors are searched, and each spectrum gets one match",
}


QUIET_REMARKS = frozenset({RemarkCode.MS1, RemarkCode.WINDOW_TARGET})
"""Remarks about usual properties of files, which are logged as information instead of warnings."""


def remark_text(code: RemarkCode, n: int, place: str) -> str:
    """Return the message for a remark on `n` spectra.

    Parameters
    ----------
    code : RemarkCode
        Code of the remark.
    n : int
        Number of spectra.
    place : str
        Position of the first of these spectra in the file.
    """
    return f"{_REMARKS[code].format(n=counted(n, 'spectrum', 'spectra'))}; the first: {place}"


SHOWN_ISSUES = 3
"""Maximum number of skipped spectra that a message names."""


@dataclass(frozen=True)
class SpectrumIssue:
    """Reason why a spectrum or a file cannot be used.

    Attributes
    ----------
    reason : str
        Description of the problem.
    spectrum : str
        Name of the spectrum or another position in the file; '' if `line` gives the position.
    line : int
        Line relative to the beginning of the block, from 1; 0 if unknown.
    remedy : str
        Advice for the user.
    is_fatal : bool
        True if the file as a whole is damaged; False if the spectrum can be skipped.
    """

    reason: str
    spectrum: str = ""
    line: int = 0
    remedy: str = ""
    is_fatal: bool = False

    @classmethod
    def from_code(cls, code: int, *, spectrum: str = "", line: int = 0, is_fatal: bool = False) -> SpectrumIssue:
        """Return the issue with the reason and the remedy of a code.

        Parameters
        ----------
        code : int
            Value of an `IssueCode`.
        spectrum : str
            Name of the spectrum; '' if unknown or for an issue of the file as a whole.
        line : int
            Line of the issue, from 1; 0 if unknown.
        is_fatal : bool
            True if reading of the file must stop.
        """
        reason, remedy = _REASONS[IssueCode(code)]
        return cls(reason, shortened(spectrum), line, remedy, is_fatal)


CUT_OFF = SpectrumIssue("the file is cut off", remedy="Copy or convert it again", is_fatal=True)


class SpectrumTable:
    """Columns of the n spectra of a block while it is parsed, including all MS levels and invalid spectra.

    Attributes
    ----------
    identifier : list of str
        Names, '' if unknown.
    scan : ndarray of int64, shape (n,)
        Scan numbers, -1 if unknown.
    retention_time : ndarray of float64, shape (n,)
        Retention times in seconds, NaN if unknown.
    precursor_mz : ndarray of float64, shape (n,)
        m/z of the first precursor in thomson, NaN if unknown.
    precursor_intensity : ndarray of float64, shape (n,)
        Intensity of the first precursor, 0 if unknown.
    charges : ndarray of int64, shape (n,)
        Charge masks: bit z for charge z; bit 0 (`NEGATIVE`) for negative ions.
    mode : ndarray of int64, shape (n,)
        Values of `Mode`.
    isolation_width : ndarray of float64, shape (n,)
        Widths of the isolation windows in thomson, NaN if unknown.
    is_ms1 : ndarray of bool, shape (n,)
        True for MS1 spectra in peak lists, which normally contain only fragment spectra; they are skipped without an issue.
    other_precursors : list of (int, float, int)
        Spectrum, m/z and charge bits of each precursor after the first.
    remarks : dict of RemarkCode to dict of int to int
        For each code, the spectra with this remark and their lines in the block, 0 in formats without lines.
    has_mobility : ndarray of bool, shape (n,)
        True if the spectrum or its peaks have an ion mobility.
    voltage : ndarray of float64, shape (n,)
        FAIMS compensation voltages, NaN if there is none.
    activation : ndarray of uint8, shape (n,)
        Values of `proteoscope.engine.chemistry.activation.Activation`.
    issue : ndarray of int64, shape (n,)
        First `IssueCode` of each spectrum.
    issue_line : ndarray of int64, shape (n,)
        Line of the issue in the block, 0 in formats without lines.
    """

    def __init__(self, n: int) -> None:
        self.identifier = [""] * n
        self.scan = np.full(n, -1, dtype=np.int64)
        self.retention_time = np.full(n, np.nan)
        self.precursor_mz = np.full(n, np.nan)
        self.precursor_intensity = np.zeros(n)
        self.charges = np.zeros(n, dtype=np.int64)
        self.mode = np.zeros(n, dtype=np.int64)
        self.isolation_width = np.full(n, np.nan)
        self.is_ms1 = np.zeros(n, dtype=np.bool_)
        self.other_precursors: list[tuple[int, float, int]] = []
        self.remarks: dict[RemarkCode, dict[int, int]] = {}
        self.has_mobility = np.zeros(n, dtype=np.bool_)
        self.voltage = np.full(n, np.nan)
        self.activation = np.zeros(n, dtype=np.uint8)
        self.issue = np.zeros(n, dtype=np.int64)
        self.issue_line = np.zeros(n, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.scan)

    def note(self, spectra: NDArray[np.int64], code: IssueCode, lines: NDArray[np.int64] | int = 0) -> None:
        """Record the issue `code` for those of the given spectra that have no issue yet.

        Parameters
        ----------
        spectra : ndarray of int64, shape (k,)
            Indices of spectra; if an index is repeated, the first of its lines is recorded.
        code : IssueCode
            Issue.
        lines : ndarray of int64, shape (k,), or int
            Lines in the block.
        """
        at = np.broadcast_to(np.asarray(lines, dtype=np.int64), spectra.shape)
        is_new = self.issue[spectra] == IssueCode.NONE
        rows, at = spectra[is_new][::-1], at[is_new][::-1]
        self.issue[rows], self.issue_line[rows] = code, at

    def note_bounds(self, lines: NDArray[np.int64] | int = 0) -> None:
        """Record an issue for each spectrum whose precursor m/z or retention time is out of bounds.

        Parameters
        ----------
        lines : ndarray of int64, shape (n,), or int
            Line of each spectrum in the block.
        """
        at = np.broadcast_to(np.asarray(lines, dtype=np.int64), self.scan.shape)
        for is_absurd, code in (
            (self.precursor_mz > MAXIMUM_MZ, IssueCode.MZ),
            (np.abs(self.retention_time) > MAXIMUM_SECONDS, IssueCode.TIME),
        ):
            rows = np.flatnonzero(is_absurd)
            self.note(rows, code, at[rows])
        # No search uses the precursor intensity: values out of bounds are treated as unknown.
        self.precursor_intensity[~(self.precursor_intensity <= MAXIMUM_INTENSITY)] = 0.0

    def remark(self, code: RemarkCode, spectrum: int, line: int = 0) -> None:
        """Record a remark on a spectrum; later remarks with the same code and spectrum are ignored.

        Parameters
        ----------
        code : RemarkCode
            Kind of remark.
        spectrum : int
            Index of the spectrum in the table.
        line : int
            Line of the remark in the block, from 1; 0 if unknown.
        """
        self.remarks.setdefault(code, {}).setdefault(spectrum, line)

    def take_precursors(self, spectrum: int, candidates: list[tuple[float, int]]) -> None:
        """Set the precursors of a spectrum: the first candidate becomes its precursor, other candidates are added to `other_precursors`.

        Parameters
        ----------
        spectrum : int
            Index of the spectrum.
        candidates : list of (float, int)
            m/z (thomson) and charge bits; candidates of equal m/z are merged.
        """
        merged: list[tuple[float, int]] = []
        for mz, charges in candidates:
            at = next((i for i, (other, _) in enumerate(merged) if abs(other - mz) < _SAME_PRECURSOR), None)
            if at is None:
                merged.append((mz, charges))
            else:
                merged[at] = (merged[at][0], merged[at][1] | charges)
        self.precursor_mz[spectrum], self.charges[spectrum] = merged[0]
        self.other_precursors += [(spectrum, mz, charges) for mz, charges in merged[1:]]

    def report_broken(self, parsed: ParsedBlock, rows: NDArray[np.bool_], lines: NDArray[np.int64] | None = None) -> None:
        """Add the issues of skipped spectra to a parsed block.

        Parameters
        ----------
        parsed : ParsedBlock
            Block to change.
        rows : ndarray of bool, shape (n,)
            True for spectra to report.
        lines : ndarray of int64, shape (n,), optional
            First line of each spectrum, in text formats.
        """
        broken = self.broken(rows)
        parsed.n_broken, parsed.n_negative = len(broken), int((self.issue[broken] == IssueCode.NEGATIVE).sum())
        for spectrum in broken[:SHOWN_ISSUES].tolist():
            if lines is None:
                position, line = f"spectrum {self.identifier[spectrum] or spectrum}", 0
            else:
                position, line = "", int(self.issue_line[spectrum]) or int(lines[spectrum])
            parsed.issues.append(SpectrumIssue.from_code(self.issue[spectrum], spectrum=position, line=line))

    def broken(self, rows: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the indices of the spectra with an issue, ascending; with the mask `rows`, only of spectra for which it is True."""
        has_issue = self.issue != IssueCode.NONE
        return np.flatnonzero(has_issue if rows is None else has_issue & rows)

    def note_negative(self, lines: NDArray[np.int64] | int = 0) -> None:
        """Record an issue for each spectrum of negative ions.

        Parameters
        ----------
        lines : ndarray of int64, shape (n,), or int
            Line of each spectrum in the block.
        """
        at = np.broadcast_to(np.asarray(lines, dtype=np.int64), self.scan.shape)
        rows = np.flatnonzero(self.charges & NEGATIVE)
        self.note(rows, IssueCode.NEGATIVE, at[rows])


class NoiseSamples(NamedTuple):
    """Noise of n spectra, sampled along m/z, in compressed rows.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Samples of spectrum i are ``offsets[i]:offsets[i + 1]``.
    mz : ndarray of float64, shape (samples,)
        m/z in thomson, ascending within a spectrum.
    noise : ndarray of float64, shape (samples,)
        Noise in units of intensity, positive.
    baseline : ndarray of float64, shape (samples,)
        Intensity from which the height of a peak is measured.
    """

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    noise: NDArray[np.float64]
    baseline: NDArray[np.float64]


class IgnoredPeaks(NamedTuple):
    """Numbers of peaks without a valid m/z or intensity.

    Attributes
    ----------
    n_peaks, n_spectra : int
        Number of such peaks, and of spectra with such peaks.
    first : int
        Row of the first such spectrum, or -1.
    """

    n_peaks: int = 0
    n_spectra: int = 0
    first: int = -1


class Origin(NamedTuple):
    """Origin of a fragment spectrum: the spectra and ions from which it was made.

    Attributes
    ----------
    names : tuple of str
        Names of the precursor spectra, nearest first.
    precursors : tuple of float
        m/z of all precursor ions in thomson.
    """

    names: tuple[str, ...]
    precursors: tuple[float, ...]


@dataclass
class ParsedBlock:
    """Valid spectra of one MS level of a block as columns (see `Spectra`), with counts and issues.

    Attributes
    ----------
    index : ndarray of int64, shape (n,)
        Position of each spectrum in the block, counted over all MS levels.
    isolation_width : ndarray of float64, shape (n,)
        Widths of the isolation windows in thomson, NaN if unknown.
    voltage : ndarray of float64, shape (n,)
        FAIMS compensation voltages, NaN if unknown.
    n_spectra : int
        Number of spectra of all MS levels, including invalid spectra.
    n_profiles : int
        Number of valid spectra that were in profile mode.
    first_profile : str
        Name of the first spectrum in profile mode.
    n_with_mobility : int
        Number of valid spectra with ion mobilities.
    n_peaks_read : int
        Number of peaks before any were removed.
    ignored : IgnoredPeaks
        Peaks with a negative or missing m/z or intensity.
    n_lines, n_entries : int
        Number of lines, and of lines that are not peaks.
    n_broken, n_negative : int
        Number of skipped spectra, and number of spectra skipped because their ions are negative.
    issues : list of SpectrumIssue
        Issues of the first `SHOWN_ISSUES` skipped spectra, and of the file as a whole.
    noise : NoiseSamples, optional
        Noise of the spectra, if the parser reads it.
    n_noise_read : int
        Upper limit of the number of values in the unpacked arrays of noise.
    origins : list of Origin, optional
        Precursor spectra of MS3 spectra.
    n_deeper : int
        Number of MS3 spectra in the block, if the format contains MS levels.
    others : OtherPrecursors
        Further precursors of the spectra.
    remarks : dict of RemarkCode to (int, str, int)
        For each code the number of spectra, and the name and the line in the block of the first spectrum.
    """

    identifier: list[str]
    scan: NDArray[np.int64]
    index: NDArray[np.int64]
    retention_time: NDArray[np.float64]
    precursor_mz: NDArray[np.float64]
    precursor_intensity: NDArray[np.float32]
    charge_mask: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    isolation_width: NDArray[np.float64]
    voltage: NDArray[np.float64]
    activation: NDArray[np.uint8]
    n_spectra: int
    n_profiles: int
    first_profile: str
    n_with_mobility: int
    n_peaks_read: int = 0
    ignored: IgnoredPeaks = field(default_factory=IgnoredPeaks)
    n_lines: int = 0
    n_entries: int = 0
    n_broken: int = 0
    n_negative: int = 0
    issues: list[SpectrumIssue] = field(default_factory=list)
    noise: NoiseSamples | None = None
    n_noise_read: int = 0
    origins: list[Origin] | None = None
    n_deeper: int = 0
    others: OtherPrecursors = field(default_factory=OtherPrecursors.none)
    remarks: dict[RemarkCode, tuple[int, str, int]] = field(default_factory=dict)


class SpectrumParser(Protocol):
    """Parser of a spectrum format.

    `begin` is called once, then `parse` concurrently in several threads.

    Attributes
    ----------
    takes_negative : bool
        True if spectra of negative ions are read.
    has_decimal_commas : bool
        True if the numbers of the file have decimal commas; valid after `begin`.
    """

    takes_negative: bool
    has_decimal_commas: bool

    def begin(self, block: Block) -> None:
        """Read the properties of the whole file from its first block."""

    def cut(self, text: bytes) -> int:
        """Return the byte offset of the end of the last complete record in a text; 0 if no record is complete."""

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """Return the spectra of a block.

        Parameters
        ----------
        block : Block
            Text with complete records.
        centroid : bool or str
            Treatment of spectra in profile mode (see `proteoscope.engine.formats.read_spectra`).
        """


def charge_bits(text: bytes) -> tuple[int, IssueCode]:
    """Return the charge mask in a text such as ``2+ and 3+``, ``+2`` or ``2,3``, and the issue if the text is invalid.

    Bit z means charge z, bit 0 (`NEGATIVE`) means negative ions. An empty text, 0, and texts such as ``NA`` give a mask of 0.

    Examples
    --------
    >>> [charge_bits(text)[0] for text in (b"2+ and 3+", b"-2", b"0", b"NA", b"2.5")]
    [12, 5, 0, 0, 0]
    """
    if len(text) > _MAXIMUM_CHARGE_BYTES:
        return 0, IssueCode.CHARGE
    text = text.strip()
    if is_missing(text):
        return 0, IssueCode.NONE
    mask, signs, issue = 0, set(), IssueCode.NONE
    for word in _CHARGE_SEPARATOR.split(text):
        match = _CHARGE.fullmatch(word)
        if not match or (match[1] and match[3] and match[1] != match[3]):
            return 0, IssueCode.CHARGE
        charge = int(match[2]) if len(match[2]) < 10 else HIGHEST_CHARGE + 1
        if charge > HIGHEST_CHARGE:
            issue = IssueCode.CHARGE
        elif charge:
            mask |= 1 << charge
            signs.add(b"-" in (match[1], match[3]))
    if len(signs) > 1:
        return 0, IssueCode.CHARGE
    return mask | (NEGATIVE if True in signs else 0), issue


def parse_polarity(text: bytes) -> int:
    """Return 1 for texts that mean positive ions, -1 for negative ions, and 0 for other texts.

    Examples
    --------
    >>> parse_polarity(b"Negative"), parse_polarity(b" + "), parse_polarity(b"N/A")
    (-1, 1, 0)
    """
    word = text.strip().lower()
    if word in (b"n", b"-", b"neg", b"1-") or word.startswith(b"negative"):
        return -1
    return 1 if word in (b"p", b"+", b"pos", b"1+") or word.startswith(b"positive") else 0


def finish(
    table: SpectrumTable,
    rows: NDArray[np.int64],
    mz: NDArray[np.float64],
    intensity: NDArray[np.float64],
    offsets: NDArray[np.int64],
    centroid: bool | str,
) -> ParsedBlock:
    """Return the valid spectra among the given rows of a block as columns.

    Peaks are sorted by m/z, peaks without a positive finite m/z and intensity are removed, and profiles are centroided.

    Parameters
    ----------
    table : SpectrumTable
        All spectra of the block; spectra with peaks out of bounds are skipped and get an issue.
    rows : ndarray of int64, shape (n,)
        Indices of the spectra to return.
    mz, intensity : ndarray of float64, shape (peaks,)
        Peaks as read.
    offsets : ndarray of int64, shape (n + 1,)
        Peaks of spectrum ``rows[i]`` are ``offsets[i]:offsets[i + 1]``.
    centroid : bool or str
        See `proteoscope.engine.formats.read_spectra`.

    Returns
    -------
    ParsedBlock
        Columns of the valid spectra.
    """
    n_peaks_read, invalid = len(mz), np.empty(0, np.int64)
    small = np.empty(n_peaks_read, np.float32)
    are_valid = kernels.cpu.peaks.narrow_peaks(mz, intensity, offsets, MINIMUM_MZ, MAXIMUM_MZ, MAXIMUM_INTENSITY, small)
    if not are_valid:
        rows, mz, intensity, owner, invalid = _sorted_peaks(table, rows, mz, intensity, offsets)
        offsets = segment_offsets(np.bincount(owner, minlength=len(rows)))
    profiles = np.zeros(len(rows), dtype=np.bool_)
    suspects = np.ones(len(rows), dtype=np.bool_) if centroid is True else table.mode[rows] != Mode.CENTROID
    if suspects.any():
        profiles = suspects & looks_sampled(mz, intensity, offsets)
        if profiles.any() and centroid is not False:
            mz, intensity, owner = centroid_profiles(mz, intensity, offsets, profiles)
            are_valid = False
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = small if are_valid else intensity.astype(np.float32)
        small_precursors = table.precursor_intensity[rows].astype(np.float32)
    if not are_valid:
        positive = (small > 0) & (small < np.inf)
        if not positive.all():
            invalid = np.concatenate([invalid, owner[_is_negative_or_nan(small)]])
            mz, small, owner = mz[positive], small[positive], owner[positive]
        offsets = segment_offsets(np.bincount(owner, minlength=len(rows)))
    names = table.identifier if len(rows) == len(table) else [table.identifier[i] for i in rows.tolist()]
    return ParsedBlock(
        identifier=names,
        scan=table.scan[rows],
        index=rows.astype(np.int64),
        retention_time=table.retention_time[rows],
        precursor_mz=table.precursor_mz[rows],
        precursor_intensity=small_precursors,
        charge_mask=table.charges[rows].astype(np.uint32),
        offsets=offsets,
        mz=mz,
        intensity=small,
        isolation_width=table.isolation_width[rows],
        voltage=table.voltage[rows],
        activation=table.activation[rows],
        n_spectra=len(table),
        n_profiles=int(profiles.sum()),
        first_profile=names[int(np.argmax(profiles))] if profiles.any() else "",
        n_with_mobility=int(table.has_mobility[rows].sum()),
        n_peaks_read=n_peaks_read,
        ignored=_ignored_peaks(invalid),
        others=_other_precursors(table, rows),
        remarks=_collect_remarks(table, rows),
    )


def _sorted_peaks(
    table: SpectrumTable, rows: NDArray[np.int64], mz: NDArray[np.float64], intensity: NDArray[np.float64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Sort peaks by m/z, and remove those without a valid m/z; spectra with peaks out of bounds get an issue (see `finish`).

    Return the rows of the other spectra; m/z, intensity and spectrum (index of the row) of each peak; and the spectrum of each removed peak
    with a negative or missing m/z.
    """
    owner = np.repeat(np.arange(len(rows)), np.diff(offsets))
    is_out_of_bounds = (mz > MAXIMUM_MZ) | (intensity > MAXIMUM_INTENSITY)
    if is_out_of_bounds.any():
        table.note(rows[owner[is_out_of_bounds]], IssueCode.PEAK)
        is_valid = table.issue[rows] == IssueCode.NONE
        of_valid = is_valid[owner]
        rows = rows[is_valid]
        mz, intensity, owner = mz[of_valid], intensity[of_valid], (np.cumsum(is_valid) - 1)[owner[of_valid]]
    invalid = owner[:0]
    is_usable = (mz > MINIMUM_MZ) & (mz < np.inf)
    if not is_usable.all():
        invalid = owner[_is_negative_or_nan(mz)]
        mz, intensity, owner = mz[is_usable], intensity[is_usable], owner[is_usable]
    if ((mz[1:] < mz[:-1]) & (owner[1:] == owner[:-1])).any():
        order = np.lexsort((mz, owner))
        mz, intensity = mz[order], intensity[order]
    return rows, mz, intensity, owner, invalid


def _is_negative_or_nan(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return True for each value that is negative or NaN."""
    return ~(values >= 0)


def _ignored_peaks(owner: NDArray[np.int64]) -> IgnoredPeaks:
    """Count ignored peaks and their spectra; `owner` is the index of the spectrum of each ignored peak."""
    if not len(owner):
        return IgnoredPeaks()
    spectra = np.unique(owner)
    return IgnoredPeaks(len(owner), len(spectra), int(spectra[0]))


def _other_precursors(table: SpectrumTable, rows: NDArray[np.int64]) -> OtherPrecursors:
    """Return the further precursors (all except the first) of each spectrum in `rows`; the spectra are numbered by position in `rows`."""
    if not table.other_precursors:
        return OtherPrecursors.none()
    position = {row: i for i, row in enumerate(rows.tolist())}
    precursors = [(position[row], mz, charges) for row, mz, charges in table.other_precursors if row in position and 0 < mz <= MAXIMUM_MZ]
    spectrum, mz, charges = zip(*precursors, strict=True) if precursors else ((), (), ())
    return OtherPrecursors(np.array(spectrum, np.int64), np.array(mz, np.float64), np.array(charges, np.uint32))


def _collect_remarks(table: SpectrumTable, rows: NDArray[np.int64]) -> dict[RemarkCode, tuple[int, str, int]]:
    """Count the remarks on the spectra in `rows` and on MS1 spectra."""
    if not table.remarks and not table.other_precursors:
        return {}
    is_taken = table.is_ms1.copy()
    is_taken[rows] = True
    if table.other_precursors:
        for spectrum, _, _ in table.other_precursors:
            table.remark(RemarkCode.SEVERAL, spectrum)
    counted = {}
    for code, line_of in table.remarks.items():
        lines = {spectrum: line for spectrum, line in line_of.items() if is_taken[spectrum]}
        if lines:
            first = min(lines)
            counted[code] = (len(lines), table.identifier[first], lines[first])
    return counted
