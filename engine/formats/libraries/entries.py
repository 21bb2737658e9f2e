"""Entries of spectral libraries, as the readers of all formats make them, and the columns that they become."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
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
from proteoscope.engine.spectra.spectral_library import MAXIMUM_SKIPPED_TOLD, PROTEIN_SEPARATOR, Skipped, SkippedEntry, SpectralLibrary
from proteoscope.engine.spectra.spooling import GrowingColumn
from proteoscope.engine.unfolding import LIBRARY_PEAKS, Unfolding

__all__ = ["Entry", "LibraryCollector", "first_charge", "read_charge", "take_precursor", "take_time"]

_CHARGE = re.compile(r"([-+]?)(\d{1,3})(?:\.0*)?([-+]?)")
_CHARGE_SEPARATOR = re.compile(r"\s*(?:[,;/&]|\band\b|\bor\b|\s)\s*", re.IGNORECASE)
_TIME = re.compile(r"(\S*?)\s*(minutes?|mins?\.?|m|seconds?|secs?\.?|s)?", re.IGNORECASE)
_MAXIMUM_TEXT = MAXIMUM_NAME_BYTES
_MAXIMUM_LENGTH = 1000
"""Residues of a peptide."""
_TEXTS = ("name", "peptidoform", "sequence", "proteins", "formula", "inchikey", "adduct")


@dataclass(slots=True)
class Entry:
    """An entry of a library, as its file notes it.

    Attributes
    ----------
    line : where it begins, from 1. proteins : accessions. name, formula, inchikey, adduct : as in the file, empty where it says nothing.
        peptide : as it
        notes it, or as ProForma describes it; None where it is none. charge : negative of negative ions, 0 unknown. precursor_mz : thomson,
        NaN unknown. retention_time : seconds, NaN unknown. n_announced : peaks that the file says it has, -1 where it says nothing.
    polarity : 1 or -1 where the file names that of the ions, else 0; the sign of a charge that is known counts more.
    issue : why it cannot be taken, empty where it can. remark : what of it was not used, empty where all was.
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
    """The columns of a library while its files are read: they grow by blocks of entries."""

    def __init__(self, sources: Sequence[Path]) -> None:
        self._sources = tuple(sources)
        self._namer = Namer()
        self._texts: dict[str, list[Any]] = {name: [] for name in _TEXTS}
        self._blocks: list[tuple[NDArray, ...]] = []
        self._parts: dict[str, list[Any]] = {name: [] for name in _TEXTS}
        self._mz, self._intensity = GrowingColumn(np.float64), GrowingColumn(np.float32)
        self._told: list[SkippedEntry] = []
        self._counts: dict[str, int] = {}
        self.remarks: dict[str, tuple[int, int]] = {}
        """Of the file that is being read: what of entries was not used, with the number of these entries and the line of the first."""
        self._source, self._unfolding = -1, Unfolding("", 0)
        self.n_read = self.n_taken = self.n_escaped = 0
        """Of the file that is being read: entries, those of them that were taken, and names with escaped characters."""

    def begin(self, unfolding: Unfolding) -> None:
        """Continue with the next file, with the counts of what it unfolds to."""
        self._source += 1
        self._unfolding = unfolding
        self.remarks = {}
        self.n_read = self.n_taken = self.n_escaped = 0

    def first_issue(self) -> tuple[int, str]:
        """Line and reason of the first entry of this file that was not taken."""
        return next(((one.line, one.reason) for one in self._told if one.source == self._source), (0, ""))

    def skip(self, line: int, reason: str) -> None:
        """Count an entry that cannot be taken."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        if len(self._told) < MAXIMUM_SKIPPED_TOLD:
            self._told.append(SkippedEntry(self._source, line, reason))

    def add(self, entries: Sequence[Entry], offsets: NDArray[np.int64], mz: NDArray[np.float64], intensity: NDArray[np.float64]) -> None:
        """Add entries whose peaks, as the file has them, are `offsets[i]:offsets[i + 1]` of `mz` (thomson) and `intensity`.

        Raises
        ------
        InputError : the file holds more of them than its size allows.
        """
        self._unfolding.add(LIBRARY_PEAKS, len(mz))
        counts = np.diff(offsets)
        mz, heights, owner, is_absurd = _clean_peaks(mz, intensity, counts)
        left = np.bincount(owner, minlength=len(entries))
        kept: list[int] = []
        numbers: list[tuple[int, int, float, float, bool, int, int]] = []
        texts = self._texts
        for i, (entry, n_peaks, n_left, absurd) in enumerate(zip(entries, counts.tolist(), left.tolist(), is_absurd.tolist(), strict=True)):
            self.n_read += 1
            issue = entry.issue or _issue_of_peaks(entry.n_announced, n_peaks, n_left, is_absurd=absurd) or _issue_of(entry)
            found = None
            if not issue and entry.peptide is not None:
                found = self._peptidoform(entry.peptide)
                issue = found if isinstance(found, str) else ""
            if issue:
                self.skip(entry.line, issue)
                continue
            if entry.remark:
                self._remark(entry.remark, entry.line)
            precursor_mz = entry.precursor_mz
            if isinstance(found, Peptidoform):
                if not precursor_mz > 0 and entry.charge > 0:
                    precursor_mz = found.mass / entry.charge + PROTON_MASS
                texts["peptidoform"].append(found.sequence if not found.modifications else write(found))
                texts["sequence"].append(found.sequence)
            else:
                texts["peptidoform"].append(None)
                texts["sequence"].append(None)
            texts["name"].append(self._escape(entry.name) or (texts["peptidoform"][-1] or ""))
            for name in ("formula", "inchikey", "adduct"):
                texts[name].append(self._escape(getattr(entry, name)[:_MAXIMUM_TEXT]) or None)
            texts["proteins"].append(self._joined_proteins(entry))
            kept.append(i)
            numbers.append((self.n_read, entry.charge, precursor_mz, entry.retention_time, entry.is_decoy, entry.n_members, entry.polarity))
        self.n_taken += len(kept)
        self._store(np.array(kept, np.int64), numbers, owner, left, mz, heights)

    def _remark(self, remark: str, line: int) -> None:
        """Count an entry of which something is not used."""
        n, first = self.remarks.get(remark, (0, line))
        self.remarks[remark] = (n + 1, first)

    def _escape(self, name: str) -> str:
        """Return a name without characters that cannot be printed, and count it if it changed."""
        if name.isprintable():
            return name
        escaped = escape_unprintable(name)
        self.n_escaped += escaped != name
        return escaped

    def _joined_proteins(self, entry: Entry) -> str | None:
        """Return the accessions of an entry as `SpectralLibrary.proteins` has them: as many as there is space for."""
        joined = PROTEIN_SEPARATOR.join(map(self._escape, entry.proteins))
        if len(joined) > _MAXIMUM_TEXT:
            self._remark("of a long list of proteins only the first are used", entry.line)
            joined = joined[: _MAXIMUM_TEXT + 1].rpartition(PROTEIN_SEPARATOR)[0]
        return joined or None

    def _store(
        self,
        kept: NDArray[np.int64],
        numbers: list[tuple[int, int, float, float, bool, int, int]],
        owner: NDArray[np.int64],
        left: NDArray[np.int64],
        mz: NDArray[np.float64],
        intensity: NDArray[np.float32],
    ) -> None:
        if len(kept) < len(left):
            is_kept = np.zeros(len(left), np.bool_)
            is_kept[kept] = True
            mz, intensity = mz[is_kept[owner]], intensity[is_kept[owner]]
        self._mz.append(mz)
        self._intensity.append(intensity)
        number, charge, precursor_mz, retention_time, is_decoy, n_members, polarity = zip(*numbers, strict=True) if numbers else ((),) * 7
        self._blocks.append(
            (
                np.full(len(kept), self._source, np.int64),
                np.array(number, np.int64),
                np.array(charge, np.int64),
                np.array(precursor_mz, np.float64),
                np.array(retention_time, np.float64),
                np.array(is_decoy, np.bool_),
                np.array(n_members, np.int64),
                left[kept].astype(np.int64),
                np.array(polarity, np.int64),
            )
        )
        # As Arrow columns they take a tenth of what they take as strings.
        for name in _TEXTS:
            self._parts[name].append(pa.array(self._texts[name], pa.string()))
            self._texts[name] = []

    def _peptidoform(self, peptide: NotedPeptide | Peptidoform) -> Peptidoform | str:
        """The peptide with its modifications by their names, or why it cannot be known."""
        if len(peptide.sequence) > _MAXIMUM_LENGTH:
            return f"its peptide has more than {_MAXIMUM_LENGTH:,} residues"
        if isinstance(peptide, Peptidoform):
            return peptide
        if not peptide.modifications:
            return Peptidoform(peptide.sequence)
        if not all(0 <= one.position <= len(peptide.sequence) + 1 for one in peptide.modifications):
            return "a modification stands outside its peptide"
        try:
            placed = self._namer.of_peptide(peptide)
        except ParameterError:
            placed = None
        if placed is None:
            return "a modification of its peptide is not known and has no mass"
        known = self._namer.modifications
        return Peptidoform(peptide.sequence, tuple(PlacedModification(at, known[number].name, known[number].mass) for at, number in placed))

    def finish(self) -> SpectralLibrary:
        """The library."""
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
            offsets=offsets_of(n_peaks),
            mz=self._mz.finish(),
            intensity=self._intensity.finish(),
            skipped=Skipped(tuple(self._told), self._counts),
            polarity=polarity,
            **columns,
        )


def first_charge(text: str) -> int:
    """The first charge that a text names, as ``2``, ``2+`` or ``-1``; 0 where it names none.

    >>> first_charge("2+"), first_charge("1-"), first_charge("-1"), first_charge("many")
    (2, -1, -1, 0)
    """
    digits = ""
    for letter in text[:_MAXIMUM_TEXT]:
        if "0" <= letter <= "9":
            digits += letter
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
    """Return the charge that a text is, of a list the first, 0 where it means none.

    Raises
    ------
    ValueError
        It is not a charge.

    >>> read_charge("2+"), read_charge("-1"), read_charge("2+ and 3+"), read_charge("N/A")
    (2, -1, 2, 0)
    """
    if text.strip().lower() in MISSING:
        return 0
    word = _CHARGE_SEPARATOR.split(text.strip(), maxsplit=1)[0]
    found = _CHARGE.fullmatch(word)
    if found is None or (found[1] and found[3] and found[1] != found[3]):
        raise ValueError(text)
    return int(found[2]) * (-1 if "-" in (found[1], found[3]) else 1)


def take_precursor(entry: Entry, text: str, decimal: int) -> bool:
    """Take the m/z of the precursor from a text; return whether the text holds one. One that cannot be read is a issue."""
    if not text:
        return False
    try:
        number = read_number(text, decimal)
    except ValueError:
        if text.strip().lower() in MISSING:
            return False
        has_comma = decimal == POINT and "," in text
        entry.issue = entry.issue or f"the m/z of its precursor {'has a comma, and no decimal point' if has_comma else 'is not a number'}"
        return True
    if not number > 0:
        return False
    entry.precursor_mz = number
    return True


def take_time(entry: Entry, text: str, unit: float, decimal: int) -> None:
    """Take a retention time from a text, in seconds by the unit that it names, or by `unit` seconds; negative ones mean none."""
    number = number_or_nan(text, decimal)
    if math.isnan(number):
        found = _TIME.fullmatch(text.strip())
        number = number_or_nan(found[1], decimal) if found else math.nan
        if found is None or (math.isnan(number) and text.strip().lower() not in MISSING):
            entry.remark = entry.remark or "its retention time cannot be read, and is unknown"
            return
        unit = unit if not found[2] else 60.0 if found[2].lower().startswith("m") else 1.0
    seconds = number * unit
    if seconds >= 0:
        entry.retention_time = seconds


def _issue_of(entry: Entry) -> str:
    if len(entry.name) > _MAXIMUM_TEXT:
        return f"its name has more than {_MAXIMUM_TEXT:,} letters"
    if abs(entry.charge) > HIGHEST_CHARGE:
        return f"its charge is beyond {HIGHEST_CHARGE}"
    if entry.precursor_mz <= 0 or entry.precursor_mz > MAXIMUM_MZ:
        return f"the m/z of its precursor is not between 0 and {MAXIMUM_MZ:,.0f}"
    if abs(entry.retention_time) > MAXIMUM_SECONDS:
        return f"its retention time is beyond {MAXIMUM_SECONDS:,.0f} seconds"
    return ""


def _issue_of_peaks(n_announced: int, n_peaks: int, n_left: int, *, is_absurd: bool) -> str:
    if n_announced >= 0 and n_announced != n_peaks:
        return "it does not have as many peaks as it says"
    if n_peaks > MAXIMUM_PEAKS:
        return f"it has more than {MAXIMUM_PEAKS:,} peaks"
    if is_absurd:
        return "a peak has an m/z or an intensity that is no number or beyond all bounds"
    return "" if n_left else "it has no peak"


def _clean_peaks(
    mz: NDArray[np.float64], intensity: NDArray[np.float64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
    """The peaks of a block in order of m/z within each entry, positive ones only; their entries; and which entries have absurd ones."""
    owner = np.repeat(np.arange(len(counts)), counts)
    is_wrong = ~((mz >= 0) & (mz <= MAXIMUM_MZ) & (intensity <= MAXIMUM_INTENSITY) & (intensity >= -MAXIMUM_INTENSITY))
    is_absurd = np.zeros(len(counts), np.bool_)
    is_absurd[owner[is_wrong]] = True
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        small = intensity.astype(np.float32)
    kept = (mz > MINIMUM_MZ) & (small > 0) & ~is_wrong
    if not kept.all():
        mz, small, owner = mz[kept], small[kept], owner[kept]
    if ((mz[1:] < mz[:-1]) & (owner[1:] == owner[:-1])).any():
        order = np.lexsort((mz, owner))
        mz, small = mz[order], small[order]
    return mz, small, owner, is_absurd
