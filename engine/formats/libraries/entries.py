"""Entries of spectral libraries as returned by all readers, and the collector that converts them to columns."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import row_mask, segment_offsets
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.modification_naming import Namer
from proteoscope.engine.chemistry.noted_peptides import NotedPeptide
from proteoscope.engine.chemistry.peptidoforms import Peptidoform, PlacedModification, write
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.escaped_names import escape_unprintable
from proteoscope.engine.formats.numbers import MISSING, POINT, number_or_nan, read_number
from proteoscope.engine.formats.spectrum_blocks import (
    HIGHEST_CHARGE,
    MAXIMUM_INTENSITY,
    MAXIMUM_MZ,
    MAXIMUM_NAME_BYTES,
    MAXIMUM_PEAKS,
    MAXIMUM_SECONDS,
    MINIMUM_MZ,
)
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.spectral_library import MAXIMUM_SKIPPED_SHOWN, PROTEIN_SEPARATOR, Skipped, SkippedEntry, SpectralLibrary
from proteoscope.engine.spectra.spooling import GrowingColumn
from proteoscope.engine.unfolding import LIBRARY_PEAKS, Unfolding

__all__ = ["Entry", "LibraryCollector", "first_charge", "read_charge", "take_precursor", "take_time"]

_CHARGE = re.compile(r"([-+]?)(\d{1,3})(?:\.0*)?([-+]?)")
_CHARGE_SEPARATOR = re.compile(r"\s*(?:[,;/&]|\band\b|\bor\b|\s)\s*", re.IGNORECASE)
_TIME = re.compile(r"(\S*?)\s*(minutes?|mins?\.?|m|seconds?|secs?\.?|s)?", re.IGNORECASE)
_MAXIMUM_TEXT = MAXIMUM_NAME_BYTES
_MAXIMUM_LENGTH = 1000
"""Maximum number of residues of a peptide."""
_TEXTS = ("name", "peptidoform", "sequence", "proteins", "formula", "inchikey", "adduct")


@dataclass(slots=True)
class Entry:
    """Entry of a library as written in a file.

    Attributes
    ----------
    line : int
        Line at which the entry begins, from 1.
    name, formula, inchikey, adduct : str
        Texts of the file, '' if missing.
    peptide : NotedPeptide or Peptidoform, optional
        Peptide in the notation of the file (`NotedPeptide`) or in ProForma (`Peptidoform`); None for other molecules.
    proteins : sequence of str
        Accessions of the proteins that contain the peptide.
    charge : int
        Charge; negative for negative ions, 0 if unknown.
    precursor_mz : float
        Precursor m/z in thomson, NaN if unknown.
    retention_time : float
        Retention time in seconds, NaN if unknown.
    is_decoy : bool
        True for decoy spectra.
    n_members : int
        Number of source spectra.
    n_announced : int
        Number of peaks that the file states, or -1.
    polarity : int
        1 or -1 if the file gives the polarity of the ions, otherwise 0; the sign of a known charge takes precedence.
    issue : str
        Reason why the entry is omitted, or ''.
    remark : str
        Warning about information in the entry that is not used, or ''.
    """

    line: int
    name: str = ""
    peptide: NotedPeptide | Peptidoform | None = None
    proteins: Sequence[str] = ()
    formula: str = ""
    inchikey: str = ""
    adduct: str = ""
    charge: int = 0
    precursor_mz: float = float("nan")
    retention_time: float = float("nan")
    is_decoy: bool = False
    n_members: int = 1
    n_announced: int = -1
    polarity: int = 0
    issue: str = ""
    remark: str = ""


class LibraryCollector:
    """Columns of a library, which grow by blocks of entries while the files are read.

    Parameters
    ----------
    sources : sequence of Path
        Files of the library, in the order in which they are read.

    Attributes
    ----------
    remarks : dict of str to (int, int)
        Warnings about unused information in the current file, each with its number of entries and the line of the first entry.
    n_read, n_taken : int
        Numbers of read and of accepted entries of the current file.
    n_escaped : int
        Number of names with escaped characters in the current file.
    """

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = tuple(sources)
        self._namer = Namer()
        self._texts: dict[str, list[Any]] = {name: [] for name in _TEXTS}
        self._blocks: list[tuple[NDArray[Any], ...]] = []
        self._parts: dict[str, list[Any]] = {name: [] for name in _TEXTS}
        self._mz, self._intensity = GrowingColumn(np.float64), GrowingColumn(np.float32)
        self._skipped: list[SkippedEntry] = []
        self._counts: dict[str, int] = {}
        self.remarks: dict[str, tuple[int, int]] = {}
        self._source, self._unfolding = -1, Unfolding("", 0)
        self.n_read = self.n_taken = self.n_escaped = 0

    def begin(self, unfolding: Unfolding) -> None:
        """Start with the next file; `unfolding` limits the size of its decompressed content."""
        self._source += 1
        self._unfolding = unfolding
        self.remarks = {}
        self.n_read = self.n_taken = self.n_escaped = 0

    def first_issue(self) -> tuple[int, str]:
        """Return the line of the first skipped entry of the current file and the reason; (0, '') if no entry was skipped."""
        return next(((entry.line, entry.reason) for entry in self._skipped if entry.source == self._source), (0, ""))

    def skip(self, line: int, reason: str) -> None:
        """Count a skipped entry.

        Parameters
        ----------
        line : int
            Line of the entry, from 1.
        reason : str
            Reason why the entry cannot be used.
        """
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if len(self._skipped) < MAXIMUM_SKIPPED_SHOWN:
            self._skipped.append(SkippedEntry(self._source, line, reason))

    def add(self, entries: Sequence[Entry], offsets: NDArray[np.int64], mz: NDArray[np.float64], intensity: NDArray[np.float64]) -> None:
        """Add the valid entries; other entries are skipped and counted.

        Parameters
        ----------
        entries : sequence of Entry, length n
            Entries of the current file, in order.
        offsets : ndarray of int64, shape (n + 1,)
            Peaks of entry i are ``offsets[i]:offsets[i + 1]``.
        mz, intensity : ndarray of float64, shape (peaks,)
            m/z (thomson) and intensities as in the file, in any order within an entry.

        Raises
        ------
        InputError
            If the file contains more peaks than its size permits.
        """
        self._unfolding.add(LIBRARY_PEAKS, len(mz))
        counts = np.diff(offsets)
        mz, heights, owner, is_out_of_bounds = _clean_peaks(mz, intensity, counts)
        left = np.bincount(owner, minlength=len(entries))
        accepted: list[int] = []
        numbers: list[tuple[int, int, float, float, bool, int, int]] = []
        texts = self._texts
        peak_checks = zip(counts.tolist(), left.tolist(), is_out_of_bounds.tolist(), strict=True)
        for i, (entry, (n_peaks, n_left, out_of_bounds)) in enumerate(zip(entries, peak_checks, strict=True)):
            self.n_read += 1
            issue = entry.issue or _check_peaks(entry.n_announced, n_peaks, n_left, is_out_of_bounds=out_of_bounds) or _check_entry(entry)
            peptidoform = None
            if not issue and entry.peptide is not None:
                peptidoform = self._peptidoform(entry.peptide)
                issue = peptidoform if isinstance(peptidoform, str) else ""
            if issue:
                self.skip(entry.line, issue)
                continue
            if entry.remark:
                self._remark(entry.remark, entry.line)
            precursor_mz = entry.precursor_mz
            if isinstance(peptidoform, Peptidoform):
                if not precursor_mz > 0 and entry.charge > 0:
                    precursor_mz = peptidoform.mass / entry.charge + PROTON_MASS
                texts["peptidoform"].append(peptidoform.sequence if not peptidoform.modifications else write(peptidoform))
                texts["sequence"].append(peptidoform.sequence)
            else:
                texts["peptidoform"].append(None)
                texts["sequence"].append(None)
            texts["name"].append(self._escape(entry.name) or (texts["peptidoform"][-1] or ""))
            for name in ("formula", "inchikey", "adduct"):
                texts[name].append(self._escape(getattr(entry, name)[:_MAXIMUM_TEXT]) or None)
            texts["proteins"].append(self._joined_proteins(entry))
            accepted.append(i)
            numbers.append((self.n_read, entry.charge, precursor_mz, entry.retention_time, entry.is_decoy, entry.n_members, entry.polarity))
        self.n_taken += len(accepted)
        self._store(np.array(accepted, np.int64), numbers, owner, left, mz, heights)

    def _remark(self, remark: str, line: int) -> None:
        """Count an entry with this remark, and store the line of the first such entry."""
        n, first = self.remarks.get(remark, (0, line))
        self.remarks[remark] = (n + 1, first)

    def _escape(self, name: str) -> str:
        """Return a name with escaped unprintable characters; count changed names."""
        if name.isprintable():
            return name
        escaped = escape_unprintable(name)
        self.n_escaped += escaped != name
        return escaped

    def _joined_proteins(self, entry: Entry) -> str | None:
        """Return the accessions of an entry joined into one text (see `SpectralLibrary.proteins`); None if the entry has none.

        If the text would be too long, the last accessions are left out.
        """
        joined = PROTEIN_SEPARATOR.join(map(self._escape, entry.proteins))
        if len(joined) > _MAXIMUM_TEXT:
            self._remark("it lists too many proteins, and only the first are used", entry.line)
            joined = joined[: _MAXIMUM_TEXT + 1].rpartition(PROTEIN_SEPARATOR)[0]
        return joined or None

    def _store(
        self,
        accepted: NDArray[np.int64],
        numbers: list[tuple[int, int, float, float, bool, int, int]],
        owner: NDArray[np.int64],
        left: NDArray[np.int64],
        mz: NDArray[np.float64],
        intensity: NDArray[np.float32],
    ) -> None:
        if len(accepted) < len(left):
            is_accepted = row_mask(len(left), accepted)
            mz, intensity = mz[is_accepted[owner]], intensity[is_accepted[owner]]
        self._mz.append(mz)
        self._intensity.append(intensity)
        number, charge, precursor_mz, retention_time, is_decoy, n_members, polarity = zip(*numbers, strict=True) if numbers else ((),) * 7
        self._blocks.append(
            (
                np.full(len(accepted), self._source, np.int64),
                np.array(number, np.int64),
                np.array(charge, np.int64),
                np.array(precursor_mz, np.float64),
                np.array(retention_time, np.float64),
                np.array(is_decoy, np.bool_),
                np.array(n_members, np.int64),
                left[accepted].astype(np.int64),
                np.array(polarity, np.int64),
            )
        )
        # Arrow columns take a tenth of the memory of strings.
        for name in _TEXTS:
            self._parts[name].append(pa.array(self._texts[name], pa.string()))
            self._texts[name] = []

    def _peptidoform(self, peptide: NotedPeptide | Peptidoform) -> Peptidoform | str:
        """Return the peptidoform of a peptide, with named modifications, or the reason why the peptide cannot be interpreted."""
        if len(peptide.sequence) > _MAXIMUM_LENGTH:
            return f"its peptide has more than {_MAXIMUM_LENGTH:,} residues"
        if isinstance(peptide, Peptidoform):
            return peptide
        if not peptide.modifications:
            return Peptidoform(peptide.sequence)
        if not all(0 <= modification.position <= len(peptide.sequence) + 1 for modification in peptide.modifications):
            return "a modification lies outside its peptide"
        try:
            placed = self._namer.place_modifications(peptide)
        except ParameterError:
            placed = None
        if placed is None:
            return "a modification of its peptide is not known and has no mass"
        named = self._namer.modifications
        return Peptidoform(peptide.sequence, tuple(PlacedModification(at, named[number].name, named[number].mass) for at, number in placed))

    def finish(self) -> SpectralLibrary:
        """Return the library with all added entries."""
        source, number, charge, precursor_mz, retention_time, is_decoy, n_members, n_peaks, polarity = (
            np.concatenate(parts) for parts in zip(*self._blocks, strict=True)
        )
        columns = {name: pa.concat_arrays(parts) for name, parts in self._parts.items()}
        return SpectralLibrary(
            sources=self._sources,
            source=source,
            number=number,
            charge=charge,
            precursor_mz=precursor_mz,
            retention_time=retention_time,
            is_decoy=is_decoy,
            n_members=n_members,
            offsets=segment_offsets(n_peaks),
            mz=self._mz.finish(),
            intensity=self._intensity.finish(),
            skipped=Skipped(tuple(self._skipped), self._counts),
            polarity=polarity,
            **columns,
        )


def first_charge(text: str) -> int:
    """Return the first charge in a text such as ``2``, ``2+`` or ``-1``; 0 if the text has none.

    >>> first_charge("2+"), first_charge("1-"), first_charge("-1"), first_charge("many")
    (2, -1, -1, 0)
    """
    digits = ""
    for character in text[:_MAXIMUM_TEXT]:
        if "0" <= character <= "9":
            digits += character
        elif digits:
            break
        if len(digits) > 3:
            return 0
    if not digits or int(digits) > 999:
        return 0
    at = text.index(digits)
    before, after = text[at - 1 : at], text[at + len(digits) : at + len(digits) + 1]
    return -int(digits) if "-" in (before, after) else int(digits)


@lru_cache(1 << 10)
def read_charge(text: str) -> int:
    """Parse a charge or the first charge of a list; return 0 for texts that mean a missing value, such as N/A.

    Raises
    ------
    ValueError
        If the text is not a charge.

    Examples
    --------
    >>> read_charge("2+"), read_charge("-1"), read_charge("2+ and 3+"), read_charge("N/A")
    (2, -1, 2, 0)
    """
    if text.strip().lower() in MISSING:
        return 0
    word = _CHARGE_SEPARATOR.split(text.strip(), maxsplit=1)[0]
    match = _CHARGE.fullmatch(word)
    if match is None or (match[1] and match[3] and match[1] != match[3]):
        raise ValueError(text)
    return int(match[2]) * (-1 if "-" in (match[1], match[3]) else 1)


def take_precursor(entry: Entry, text: str, decimal: int) -> bool:
    """Set the precursor m/z of an entry from a text; if the text is not a number, set the issue of the entry.

    Parameters
    ----------
    entry : Entry
        Entry to change.
    text : str
        Text of the m/z.
    decimal : int
        Decimal sign, as the code of its character.

    Returns
    -------
    bool
        False if the text is empty, means a missing value, or is not positive, so that another field should be tried; otherwise True.
    """
    if not text:
        return False
    try:
        number = read_number(text, decimal)
    except ValueError:
        if text.strip().lower() in MISSING:
            return False
        has_comma = decimal == POINT and "," in text
        entry.issue = (
            entry.issue or f"the m/z of its precursor {'has a comma instead of a decimal point' if has_comma else 'is not a number'}"
        )
        return True
    if not number > 0:
        return False
    entry.precursor_mz = number
    return True


def take_time(entry: Entry, text: str, unit: float, decimal: int) -> None:
    """Set the retention time of an entry from a text; negative times are treated as unknown.

    Parameters
    ----------
    entry : Entry
        Entry to change.
    text : str
        Number with an optional unit.
    unit : float
        Seconds per unit, if the text has no unit.
    decimal : int
        Decimal sign, as the code of its character.
    """
    number = number_or_nan(text, decimal)
    if math.isnan(number):
        match = _TIME.fullmatch(text.strip())
        number = number_or_nan(match[1], decimal) if match else math.nan
        if match is None or (math.isnan(number) and text.strip().lower() not in MISSING):
            entry.remark = entry.remark or "its retention time cannot be read, and is unknown"
            return
        unit = unit if not match[2] else 60.0 if match[2].lower().startswith("m") else 1.0
    seconds = number * unit
    if seconds >= 0:
        entry.retention_time = seconds


def _check_entry(entry: Entry) -> str:
    if len(entry.name) > _MAXIMUM_TEXT:
        return f"its name has more than {_MAXIMUM_TEXT:,} characters"
    if abs(entry.charge) > HIGHEST_CHARGE:
        return f"its charge is beyond {HIGHEST_CHARGE}"
    if entry.precursor_mz <= 0 or entry.precursor_mz > MAXIMUM_MZ:
        return f"the m/z of its precursor is not between 0 and {MAXIMUM_MZ:,.0f}"
    if abs(entry.retention_time) > MAXIMUM_SECONDS:
        return f"its retention time is beyond {MAXIMUM_SECONDS:,.0f} seconds"
    return ""


def _check_peaks(n_announced: int, n_peaks: int, n_left: int, *, is_out_of_bounds: bool) -> str:
    if n_announced >= 0 and n_announced != n_peaks:
        return "its number of peaks differs from the declared number"
    if n_peaks > MAXIMUM_PEAKS:
        return f"it has more than {MAXIMUM_PEAKS:,} peaks"
    if is_out_of_bounds:
        return "a peak has an m/z or an intensity that is not a number or is out of bounds"
    return "" if n_left else "it has no peak"


def _clean_peaks(
    mz: NDArray[np.float64], intensity: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the m/z, the intensity and the entry of each valid peak, and True for each entry that has invalid values.

    Peaks are sorted by entry and m/z. Peaks without a positive m/z and intensity are removed.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    is_wrong = ~((mz >= 0) & (mz <= MAXIMUM_MZ) & (intensity <= MAXIMUM_INTENSITY) & (intensity >= -MAXIMUM_INTENSITY))
    is_out_of_bounds = row_mask(len(counts), owner[is_wrong])
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = intensity.astype(np.float32)
    is_positive = (mz > MINIMUM_MZ) & (small > 0) & ~is_wrong
    if not is_positive.all():
        mz, small, owner = mz[is_positive], small[is_positive], owner[is_positive]
    if ((mz[1:] < mz[:-1]) & (owner[1:] == owner[:-1])).any():
        order = np.lexsort((mz, owner))
        mz, small = mz[order], small[order]
    return mz, small, owner, is_out_of_bounds
