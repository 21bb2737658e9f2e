"""Spectra of one block of a file: what each format's parser makes, and the steps that all of them share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.errors import shortened
from proteoscope.engine.formats.profiles import centroid_profiles, looks_sampled
from proteoscope.engine.formats.sources import Block
from proteoscope.engine.row_numbers import SpectrumRow

__all__ = [
    "CUT_OFF",
    "MAXIMUM_INTENSITY",
    "MAXIMUM_MZ",
    "MAXIMUM_NAME_BYTES",
    "MAXIMUM_PEAKS",
    "MAXIMUM_SCAN",
    "NEGATIVE",
    "Fault",
    "FaultCode",
    "Mode",
    "NoiseSamples",
    "Origin",
    "ParsedBlock",
    "SpectrumParser",
    "SpectrumTable",
    "charge_bits",
    "finish",
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
NEGATIVE = 1
"""Bit 0 among those of charges: the ions are negative."""
_MAXIMUM_CHARGE_BYTES = 1000
_CHARGE = re.compile(rb"([-+]?)(\d+)(?:\.0+)?([-+]?)(?!\d)")


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


_AGAIN = "Convert the file again"
_REASONS: dict[FaultCode, tuple[str, str]] = {
    FaultCode.NUMBER: ("a number cannot be read", _AGAIN),
    FaultCode.NO_PRECURSOR: ("the precursor m/z is missing or not positive", "Convert the file again with its precursors"),
    FaultCode.CHARGE: (f"the charge is not a whole number from 1 to {HIGHEST_CHARGE}", _AGAIN),
    FaultCode.NEGATIVE: ("the charge is negative, and only positive ions can be searched", "Leave the negative spectra out"),
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
}


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
    has_mobility : (n,) bool, whether the ion mobility is known, of the spectrum or of its peaks.
    voltage : (n,) float64, FAIMS compensation voltage, NaN without one.
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
        self.has_mobility = np.zeros(n, dtype=np.bool_)
        self.voltage = np.full(n, np.nan)
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

    def broken(self, rows: NDArray[np.bool_] | None = None) -> tuple[int, SpectrumRow]:
        """How many spectra are broken, of those that `rows` chooses, and which is the first; -1: none."""
        found = self.fault != FaultCode.NONE
        found = np.flatnonzero(found if rows is None else found & rows)
        return len(found), SpectrumRow(int(found[0]) if len(found) else -1)


class NoiseSamples(NamedTuple):
    """Noise of n spectra (CSR): ``offsets`` (n + 1,) int64; of the samples float64 each: ``mz``, ascending within a spectrum, ``noise``,
    positive, and ``baseline``, from which the height of a peak counts."""

    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    noise: NDArray[np.float64]
    baseline: NDArray[np.float64]


class Origin(NamedTuple):
    """What a spectrum says of the spectra that it was made from: their names, the nearest first, and the m/z of all precursors, thomson."""

    names: tuple[str, ...]
    precursors: tuple[float, ...]


@dataclass
class ParsedBlock:
    """The sound MS2 spectra of a block as columns (see `Spectra`), and what was found besides.

    `index` counts from the block's beginning; `isolation_width` is in thomson, `voltage` that of FAIMS, both NaN where unknown.
    `n_spectra` counts the spectra of every level, broken ones too; `n_profiles` those MS2 spectra that were profiles, `n_with_mobility`
    those with ion mobilities; `n_peaks_read` the peaks before any were left out. `faults` holds that of the first of `n_broken` spectra and
    what is wrong with the file as a whole;
    `n_entries` counts the lines that are no peaks. `noise`: that of the spectra, where the parser was asked for it, made from
    `n_noise_read` numbers. `origins`: those of spectra of MS3, and `n_deeper` how many of these the block has, where the format tells.
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
    n_spectra: int
    n_profiles: int
    first_profile: str
    n_with_mobility: int
    n_peaks_read: int = 0
    n_lines: int = 0
    n_entries: int = 0
    n_broken: int = 0
    faults: list[Fault] = field(default_factory=list)
    noise: NoiseSamples | None = None
    n_noise_read: int = 0
    origins: list[Origin] | None = None
    n_deeper: int = 0


class SpectrumParser(Protocol):
    """A format: where its files may be cut, and how a block becomes columns. `parse` runs in several threads at once, after `begin`.

    `takes_negative`: negative charges are no fault.
    """

    takes_negative: bool

    def begin(self, block: Block) -> None:
        """Look at the first block for what concerns the whole file."""

    def cut(self, text: bytes) -> int:
        """Behind which byte a record ends for the last time; 0: nowhere."""

    def parse(self, block: Block, centroid: bool | str) -> ParsedBlock:
        """The spectra of a block."""


def charge_bits(text: bytes, *, takes_negative: bool = False) -> tuple[int, FaultCode]:
    """Bits of the charges named in ``2+ and 3+``, ``+2``, ``2,3``; none for nothing or 0; for negative ones `NEGATIVE`, or that bit too."""
    mask, fault = 0, FaultCode.NONE
    if len(text) > _MAXIMUM_CHARGE_BYTES:
        return mask, FaultCode.CHARGE
    found = _CHARGE.findall(text)
    for before, digits, after in found:
        charge = int(digits) if len(digits) < 4 else HIGHEST_CHARGE + 1
        if b"-" in (before, after) and not takes_negative:
            fault = FaultCode.NEGATIVE
        elif charge > HIGHEST_CHARGE:
            fault = FaultCode.CHARGE
        elif charge:
            mask |= 1 << charge | (NEGATIVE if b"-" in (before, after) else 0)
    if not found and text.strip():
        fault = FaultCode.CHARGE
    return mask, fault


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
        is_absurd &= (mz < np.inf) & (intensity < np.inf)
        table.note(rows[owner[is_absurd]], FaultCode.PEAK)
        is_kept = table.fault[rows] == FaultCode.NONE
        sound = is_kept[owner]
        rows = rows[is_kept]
        mz, intensity, owner = mz[sound], intensity[sound], (np.cumsum(is_kept) - 1)[owner[sound]]
    sound = (mz > MINIMUM_MZ) & (mz < np.inf)
    if not sound.all():
        mz, intensity, owner = mz[sound], intensity[sound], owner[sound]
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
        n_spectra=len(table),
        n_profiles=int(profiles.sum()),
        first_profile=names[int(np.argmax(profiles))] if profiles.any() else "",
        n_with_mobility=int(table.has_mobility[rows].sum()),
        n_peaks_read=n_peaks_read,
    )


def _offsets(owner: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """CSR offsets of n spectra from the (ascending) spectrum of each peak."""
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(owner, minlength=n), out=offsets[1:])
    return offsets
