"""Spectra of one block of a file: what each format's parser makes, and the steps that all of them share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

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
    "SHOWN_FAULTS",
    "Fault",
    "FaultCode",
    "IgnoredPeaks",
    "Mode",
    "NoiseSamples",
    "Origin",
    "ParsedBlock",
    "RemarkCode",
    "SpectrumParser",
    "SpectrumTable",
    "charge_bits",
    "finish",
    "polarity_of",
    "remark_text",
]

# Bounds of what a spectrum can be: far beyond every instrument, and well within what the searches can count with.
HIGHEST_CHARGE = 31
MAXIMUM_MZ = 1e5
"""Thomson. Whole viruses are measured at a third of it."""
MINIMUM_MZ = 1e-3
"""Thomson. What lies below is no ion: it fills up an array, as zeros do, and is left out."""
MAXIMUM_INTENSITY = 1e30
MAXIMUM_SECONDS = 1e7
"""A run of four months."""
MAXIMUM_PEAKS = 1 << 21
"""Of one spectrum; a profile of a time-of-flight instrument has some hundred thousand points."""
MAXIMUM_NAME_BYTES = 1 << 14
"""Of a spectrum's name, which stands in every line of the results."""
MAXIMUM_SCAN = 10**15
_SAME_PRECURSOR = 1e-4
"""Thomson: precursors of a spectrum nearer to each other are the same ion."""
NEGATIVE = 1
"""Bit 0 among those of charges: the ions are negative."""
_MAXIMUM_CHARGE_BYTES = 1000
_CHARGE = re.compile(rb"([-+]?)(\d+)(?:\.0*)?([-+]?)")
_CHARGE_SEPARATOR = re.compile(rb"\s*(?:[,;/&]|\band\b|\bor\b|\s)\s*", re.IGNORECASE)


class Mode(IntEnum):
    """Values of a spectrum's peaks."""

    UNKNOWN = 0
    CENTROID = 1
    PROFILE = 2


class FaultCode(IntEnum):
    """Faults of one spectrum."""

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


_AGAIN = "Correct it there, or convert the raw data again"
_REASONS: dict[FaultCode, tuple[str, str]] = {
    FaultCode.NUMBER: ("a number cannot be read", _AGAIN),
    FaultCode.NO_PRECURSOR: ("the precursor m/z is missing or not positive", "Convert the raw data with their precursors to search it"),
    FaultCode.CHARGE: (f"the charge is not a whole number from 1 to {HIGHEST_CHARGE}", "Correct the charge in the file to search it"),
    FaultCode.NEGATIVE: ("its ions are negative, and only positive ions are searched for peptides", "Compare it with a spectral library"),
    FaultCode.UNCLOSED: ("the spectrum has no end", "Copy or convert the file again"),
    FaultCode.LINE: ("the line is neither a peak nor a known entry", _AGAIN),
    FaultCode.NO_INTENSITY: ("a peak has no intensity", _AGAIN),
    FaultCode.XML: ("the XML is broken", _AGAIN),
    FaultCode.BASE64: ("the base64 text of a peak array is broken", _AGAIN),
    FaultCode.ZLIB: ("the zlib data of a peak array are broken", _AGAIN),
    FaultCode.NUMPRESS: ("the numpress data of a peak array are broken", _AGAIN),
    FaultCode.LENGTHS: ("a peak array does not have as many values as the spectrum says", _AGAIN),
    FaultCode.UNSUPPORTED: ("a peak array is in an unknown encoding", "Convert the file with 32 or 64 bit floats and zlib"),
    FaultCode.NO_ARRAY: ("the m/z or the intensity array is missing", _AGAIN),
    FaultCode.MZ: (f"the precursor m/z is larger than {MAXIMUM_MZ:,.0f}", _AGAIN),
    FaultCode.PEAK: (f"a peak has an m/z larger than {MAXIMUM_MZ:,.0f} or an intensity larger than {MAXIMUM_INTENSITY:g}", _AGAIN),
    FaultCode.TIME: (f"the retention time is beyond {MAXIMUM_SECONDS:,.0f} seconds", _AGAIN),
    FaultCode.PEAKS: (f"the spectrum has more than {MAXIMUM_PEAKS:,} peaks", "Centroid it, or leave it out"),
    FaultCode.NAME: (f"the spectrum's name is longer than {MAXIMUM_NAME_BYTES:,} bytes", "Shorten its title"),
    FaultCode.DECIMAL_COMMA: (
        "a number has a comma, and other numbers of the file have decimal points",
        "Write all numbers with decimal points",
    ),
    FaultCode.CONTRADICTION: ("two lines give different values of the same entry", "Delete the wrong line"),
}


class RemarkCode(IntEnum):
    """Messages about spectra that are read."""

    CHARGES_DIFFER = 0
    SCAN_UNKNOWN = 1
    SURVEY = 2
    WINDOW_CENTRE = 3
    FAR_MASS = 4
    WINDOW_TARGET = 5
    SEVERAL = 6
    TIME_UNIT = 7


_REMARKS: dict[RemarkCode, str] = {
    RemarkCode.CHARGES_DIFFER: "{n} with another charge after PEPMASS than in CHARGE, where that after PEPMASS is used",
    RemarkCode.SCAN_UNKNOWN: "{n} whose SCANS is not a number, so that their scan numbers are unknown",
    RemarkCode.SURVEY: "{n} of MSLEVEL=1 left out, since only spectra of fragments are read",
    RemarkCode.WINDOW_CENTRE: "{n} whose S line differs from their Z lines, where the masses of the Z lines are used",
    RemarkCode.FAR_MASS: (
        "{n} whose Z line gives an m/z more than 5 Th from their S line, where the S line is used, and searches for peptides try both;"
        " check the program that wrote the masses"
    ),
    RemarkCode.WINDOW_TARGET: "{n} without the m/z of a selected ion, where the target of the isolation window is used",
    RemarkCode.TIME_UNIT: "{n} whose scan start time has no unit, or one that is not a time, so that their retention times are unknown",
    RemarkCode.SEVERAL: "{n} with several precursors, all of which are searched, with one match for a spectrum",
}


QUIET_REMARKS = frozenset({RemarkCode.SURVEY, RemarkCode.WINDOW_TARGET})
"""Remarks on what files of that kind usually have."""


def remark_text(code: RemarkCode, n: int, place: str) -> str:
    """Return a remark on `n` spectra, the first of them at a place of the file, as a message has it."""
    return f"{_REMARKS[code].format(n=counted(n, 'spectrum', 'spectra'))}; the first: {place}"


SHOWN_FAULTS = 3
"""Spectra that were left out and are named in a message; the others are counted."""


@dataclass(frozen=True)
class Fault:
    """A fault in a block: where (a spectrum's name, or a line counted in the block), what, and what to do.

    `is_fatal`: the file as a whole is in doubt; else one spectrum can be left out.
    """

    reason: str
    spectrum: str = ""
    line: int = 0
    remedy: str = ""
    is_fatal: bool = False

    @classmethod
    def of(cls, code: int, *, spectrum: str = "", line: int = 0, is_fatal: bool = False) -> Fault:
        """The fault of a code."""
        reason, remedy = _REASONS[FaultCode(code)]
        return cls(reason, shortened(spectrum), line, remedy, is_fatal)


CUT_OFF = Fault("the file is cut off", remedy="Copy or convert it again", is_fatal=True)


class SpectrumTable:
    """Columns of the n spectra of a block while it is parsed, those of every MS level and the broken ones among them.

    Attributes
    ----------
    identifier : n names, empty where there is none.
    scan : (n,) int64, -1 unknown. retention_time, precursor_mz : (n,) float64, NaN unknown. precursor_intensity : (n,) float64.
    charges : (n,) int64, bits. mode : (n,) int64, `Mode`. isolation_width : (n,) float64, thomson, NaN unknown.
    is_survey : (n,) bool, whether they are no spectra of fragments. other_precursors : of spectra with several, those besides the first:
    spectrum, m/z and charge bits. remarks : of each code the spectra, each with its line in the block.
    has_mobility : (n,) bool, whether the ion mobility is known, of the spectrum or of its peaks.
    voltage : (n,) float64, FAIMS compensation voltage, NaN without one. activation : (n,) uint8, as of `Spectra`.
    fault : (n,) int64, `FaultCode`, the first found. fault_line : (n,) int64, its line in the block, 0 where lines mean nothing.
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
        self.is_survey = np.zeros(n, dtype=np.bool_)
        self.other_precursors: list[tuple[int, float, int]] = []
        self.remarks: dict[RemarkCode, dict[int, int]] = {}
        self.has_mobility = np.zeros(n, dtype=np.bool_)
        self.voltage = np.full(n, np.nan)
        self.activation = np.zeros(n, dtype=np.uint8)
        self.fault = np.zeros(n, dtype=np.int64)
        self.fault_line = np.zeros(n, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.scan)

    def note(self, spectra: NDArray[np.int64], code: FaultCode, lines: NDArray[np.int64] | int = 0) -> None:
        """Note a fault of some spectra, unless they have one already; of several `lines` for a spectrum the first counts."""
        at = np.broadcast_to(np.asarray(lines, dtype=np.int64), spectra.shape)
        is_new = self.fault[spectra] == FaultCode.NONE
        sound, at = spectra[is_new][::-1], at[is_new][::-1]
        self.fault[sound], self.fault_line[sound] = code, at

    def note_bounds(self, lines: NDArray[np.int64] | int = 0) -> None:
        """Note spectra whose precursor or time is beyond all bounds; `lines`: that of each spectrum."""
        at = np.broadcast_to(np.asarray(lines, dtype=np.int64), self.scan.shape)
        for is_absurd, code in (
            (self.precursor_mz > MAXIMUM_MZ, FaultCode.MZ),
            (np.abs(self.retention_time) > MAXIMUM_SECONDS, FaultCode.TIME),
        ):
            rows = np.flatnonzero(is_absurd)
            self.note(rows, code, at[rows])
        # Nothing is searched by it, and what no number can hold is as good as unknown.
        self.precursor_intensity[~(self.precursor_intensity <= MAXIMUM_INTENSITY)] = 0.0

    def remark(self, code: RemarkCode, spectrum: int, line: int = 0) -> None:
        """Remember a remark on a spectrum; of several with the same code the first counts."""
        self.remarks.setdefault(code, {}).setdefault(spectrum, line)

    def take_precursors(self, spectrum: int, found: list[tuple[float, int]]) -> None:
        """Set the precursor of a spectrum from candidates, m/z and charge bits each: the first; the others stay besides."""
        merged: list[tuple[float, int]] = []
        for mz, charges in found:
            at = next((i for i, (other, _) in enumerate(merged) if abs(other - mz) < _SAME_PRECURSOR), None)
            if at is None:
                merged.append((mz, charges))
            else:
                merged[at] = (merged[at][0], merged[at][1] | charges)
        self.precursor_mz[spectrum], self.charges[spectrum] = merged[0]
        self.other_precursors += [(spectrum, mz, charges) for mz, charges in merged[1:]]

    def tell_broken(self, parsed: ParsedBlock, rows: NDArray[np.bool_], lines: NDArray[np.int64] | None = None) -> None:
        """Tell a parsed block which of the spectra that `rows` chooses are left out; `lines`: where each begins, where lines count."""
        broken = self.broken(rows)
        parsed.n_broken, parsed.n_negative = len(broken), int((self.fault[broken] == FaultCode.NEGATIVE).sum())
        for spectrum in broken[:SHOWN_FAULTS].tolist():
            if lines is None:
                place, line = f"spectrum {self.identifier[spectrum] or spectrum}", 0
            else:
                place, line = "", int(self.fault_line[spectrum]) or int(lines[spectrum])
            parsed.faults.append(Fault.of(self.fault[spectrum], spectrum=place, line=line))

    def broken(self, rows: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the spectra that are left out, of those that `rows` chooses, ascending."""
        found = self.fault != FaultCode.NONE
        return np.flatnonzero(found if rows is None else found & rows)

    def note_negative(self, lines: NDArray[np.int64] | int = 0) -> None:
        """Note spectra of negative ions; `lines`: that of each spectrum."""
        at = np.broadcast_to(np.asarray(lines, dtype=np.int64), self.scan.shape)
        rows = np.flatnonzero(self.charges & NEGATIVE)
        self.note(rows, FaultCode.NEGATIVE, at[rows])


class NoiseSamples(NamedTuple):
    """Noise of n spectra (CSR): ``offsets`` (n + 1,) int64; of the samples float64 each: ``mz``, ascending within a spectrum, ``noise``,
    positive, and ``baseline``, from which the height of a peak counts."""

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    noise: NDArray[np.float64]
    baseline: NDArray[np.float64]


class IgnoredPeaks(NamedTuple):
    """Peaks without a usable m/z or intensity: their number, that of their spectra, and the row of the first such spectrum."""

    n_peaks: int = 0
    n_spectra: int = 0
    first: int = -1


class Origin(NamedTuple):
    """What a spectrum says of the spectra that it was made from: their names, the nearest first, and the m/z of all precursors, thomson."""

    names: tuple[str, ...]
    precursors: tuple[float, ...]


@dataclass
class ParsedBlock:
    """The sound MS2 spectra of a block as columns (see `Spectra`), and what was found besides.

    `index` counts from the block's beginning; `isolation_width` is in thomson, `voltage` that of FAIMS, both NaN
    where unknown. `n_spectra` counts the spectra of every
    level, broken ones too; `n_profiles` those MS2 spectra that were profiles, `n_with_mobility` those with ion mobilities; `n_peaks_read`
    the peaks before any were left out. `faults` holds those of the first of `n_broken` spectra (`SHOWN_FAULTS` at most) and what is wrong
    with the file as a whole; `n_negative` counts those of the broken whose ions are negative; `n_entries` the lines that are no peaks.
    `noise`: that of the spectra, where the parser was asked for it, made from `n_noise_read` numbers. `origins`: those of spectra of MS3,
    and `n_deeper` how many of these the block has, where the format tells.
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
    faults: list[Fault] = field(default_factory=list)
    noise: NoiseSamples | None = None
    n_noise_read: int = 0
    origins: list[Origin] | None = None
    n_deeper: int = 0
    others: OtherPrecursors = field(default_factory=OtherPrecursors.none)
    remarks: dict[RemarkCode, tuple[int, str, int]] = field(default_factory=dict)
    """Of each code: how many spectra, and name and line in the block of the first."""


class SpectrumParser(Protocol):
    """A format: where its files may be cut, and how a block becomes columns. `parse` runs in several threads at once, after `begin`.

    `takes_negative`: negative ions are no fault. `has_decimal_commas`: the numbers of the file have decimal commas, after `begin`.
    """

    takes_negative: bool
    has_decimal_commas: bool

    def begin(self, block: Block) -> None:
        """Look at the first block for what concerns the whole file."""

    def cut(self, text: bytes) -> int:
        """Behind which byte a record ends for the last time; 0: nowhere."""

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """The spectra of a block."""


def charge_bits(text: bytes) -> tuple[int, FaultCode]:
    """Return the bits of the charges in ``2+ and 3+``, ``+2``, ``2,3``, with `NEGATIVE` for those of negative ions, and what is wrong.

    Nothing, 0 and texts such as ``NA`` are no charge.

    >>> [charge_bits(text)[0] for text in (b"2+ and 3+", b"-2", b"0", b"NA", b"2.5")]
    [12, 5, 0, 0, 0]
    """
    if len(text) > _MAXIMUM_CHARGE_BYTES:
        return 0, FaultCode.CHARGE
    text = text.strip()
    if is_missing(text):
        return 0, FaultCode.NONE
    mask, signs, fault = 0, set(), FaultCode.NONE
    for word in _CHARGE_SEPARATOR.split(text):
        found = _CHARGE.fullmatch(word)
        if not found or (found[1] and found[3] and found[1] != found[3]):
            return 0, FaultCode.CHARGE
        charge = int(found[2]) if len(found[2]) < 10 else HIGHEST_CHARGE + 1
        if charge > HIGHEST_CHARGE:
            fault = FaultCode.CHARGE
        elif charge:
            mask |= 1 << charge
            signs.add(b"-" in (found[1], found[3]))
    if len(signs) > 1:
        return 0, FaultCode.CHARGE
    return mask | (NEGATIVE if True in signs else 0), fault


def polarity_of(text: bytes) -> int:
    """Return 1 for a text that means positive ions, -1 for negative ones, 0 for any other.

    >>> polarity_of(b"Negative"), polarity_of(b" + "), polarity_of(b"N/A")
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
    """Columns of the sound MS2 spectra of a block, their peaks in order: ascending m/z, positive and finite, profiles made centroids.

    Parameters
    ----------
    table : all spectra of the block; those with absurd peaks are noted in it and left out.
    rows : (n,) int64, the spectra to keep.
    mz, intensity : float64, their peaks as read, those of the i-th at ``offsets[i]:offsets[i + 1]``; offsets : (n + 1,) int64.
    centroid : as `read_spectra` takes it.
    """
    n_peaks_read = len(mz)
    owner = np.repeat(np.arange(len(rows)), np.diff(offsets))
    is_absurd = (mz > MAXIMUM_MZ) | (intensity > MAXIMUM_INTENSITY)
    if is_absurd.any():
        table.note(rows[owner[is_absurd]], FaultCode.PEAK)
        is_kept = table.fault[rows] == FaultCode.NONE
        sound = is_kept[owner]
        rows = rows[is_kept]
        mz, intensity, owner = mz[sound], intensity[sound], (np.cumsum(is_kept) - 1)[owner[sound]]
    invalid = owner[:0]
    is_usable = (mz > MINIMUM_MZ) & (mz < np.inf)
    if not is_usable.all():
        invalid = owner[_is_negative_or_nan(mz)]
        mz, intensity, owner = mz[is_usable], intensity[is_usable], owner[is_usable]
    if ((mz[1:] < mz[:-1]) & (owner[1:] == owner[:-1])).any():
        order = np.lexsort((mz, owner))
        mz, intensity = mz[order], intensity[order]
    profiles = np.zeros(len(rows), dtype=np.bool_)
    suspects = np.ones(len(rows), dtype=np.bool_) if centroid is True else table.mode[rows] != Mode.CENTROID
    if suspects.any():
        bounds = _offsets(owner, len(rows))
        profiles = suspects & looks_sampled(mz, intensity, bounds)
        if profiles.any() and centroid is not False:
            mz, intensity, owner = centroid_profiles(mz, intensity, bounds, profiles)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = intensity.astype(np.float32)
        small_precursors = table.precursor_intensity[rows].astype(np.float32)
    positive = (small > 0) & (small < np.inf)
    if not positive.all():
        invalid = np.concatenate([invalid, owner[_is_negative_or_nan(small)]])
        mz, small, owner = mz[positive], small[positive], owner[positive]
    kept = rows.tolist()
    names = table.identifier if len(kept) == len(table) else [table.identifier[i] for i in kept]
    return ParsedBlock(
        identifier=names,
        scan=table.scan[rows],
        index=rows.astype(np.int64),
        retention_time=table.retention_time[rows],
        precursor_mz=table.precursor_mz[rows],
        precursor_intensity=small_precursors,
        charge_mask=table.charges[rows].astype(np.uint32),
        offsets=_offsets(owner, len(rows)),
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
        remarks=_remarks_of(table, rows),
    )


def _is_negative_or_nan(values: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Return which values are neither zero nor positive."""
    return ~(values >= 0)


def _ignored_peaks(owner: NDArray[np.int64]) -> IgnoredPeaks:
    """Count ignored peaks from the spectrum of each."""
    if not len(owner):
        return IgnoredPeaks()
    spectra = np.unique(owner)
    return IgnoredPeaks(len(owner), len(spectra), int(spectra[0]))


def _other_precursors(table: SpectrumTable, rows: NDArray[np.int64]) -> OtherPrecursors:
    """The further precursors of some spectra of a table, by their numbers among these."""
    if not table.other_precursors:
        return OtherPrecursors.none()
    place = {row: i for i, row in enumerate(rows.tolist())}
    kept = [(place[row], mz, charges) for row, mz, charges in table.other_precursors if row in place and 0 < mz <= MAXIMUM_MZ]
    spectrum, mz, charges = zip(*kept, strict=True) if kept else ((), (), ())
    return OtherPrecursors(np.array(spectrum, np.int64), np.array(mz, np.float64), np.array(charges, np.uint32))


def _remarks_of(table: SpectrumTable, rows: NDArray[np.int64]) -> dict[RemarkCode, tuple[int, str, int]]:
    """The remarks on some spectra of a table, and on those that are no spectra of fragments."""
    if not table.remarks and not table.other_precursors:
        return {}
    is_taken = table.is_survey.copy()
    is_taken[rows] = True
    if table.other_precursors:
        for spectrum, _, _ in table.other_precursors:
            table.remark(RemarkCode.SEVERAL, spectrum)
    counted = {}
    for code, found in table.remarks.items():
        sound = {spectrum: line for spectrum, line in found.items() if is_taken[spectrum]}
        if sound:
            first = min(sound)
            counted[code] = (len(sound), table.identifier[first], sound[first])
    return counted


def _offsets(owner: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """CSR offsets of n spectra from the (ascending) spectrum of each peak."""
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=n), out=offsets[1:])
    return offsets
