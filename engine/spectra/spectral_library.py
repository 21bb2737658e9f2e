"""Reference spectra as columns, which all readers of spectral libraries create and all library searches use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["MAXIMUM_SKIPPED_SHOWN", "PROTEIN_SEPARATOR", "Skipped", "SkippedEntry", "SpectralLibrary"]

PROTEIN_SEPARATOR = "\t"
"""Separator of the accessions of an entry; accessions contain no control characters."""
MAXIMUM_SKIPPED_SHOWN = 100
"""Maximum number of skipped entries that are reported individually."""
_HIGHEST_CHARGE = 31


class SkippedEntry(NamedTuple):
    """Entry of a library that was skipped.

    Attributes
    ----------
    source : int
        Index of the entry's file in `SpectralLibrary.sources`.
    line : int
        Line in which the entry begins, or, in files without lines, the number of the entry; from 1.
    reason : str
        Reason why it cannot be used.
    """

    source: int
    line: int
    reason: str


@dataclass(frozen=True)
class Skipped:
    """Entries of a library that were skipped.

    Attributes
    ----------
    entries : tuple of SkippedEntry
        First `MAXIMUM_SKIPPED_SHOWN` skipped entries.
    counts : dict of str to int
        Number of all skipped entries by reason.
    """

    entries: tuple[SkippedEntry, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of skipped entries."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class SpectralLibrary:
    """Reference spectra, n of them, with their peaks in compressed rows.

    Attributes
    ----------
    sources : tuple of Path
        Files, in the given order.
    source : ndarray of int64, shape (n,)
        Index of the file of each entry in `sources`.
    number : ndarray of int64, shape (n,)
        Number of the entry in its file, from 1.
    name : pyarrow.StringArray, length n
        Names as in the file.
    peptidoform : pyarrow.StringArray, length n
        ProForma 2.0 without charge, null for other molecules.
    sequence : pyarrow.StringArray, length n
        Residues, null for other molecules.
    proteins : pyarrow.StringArray, length n
        Accessions separated by `PROTEIN_SEPARATOR`, null if unknown.
    formula, inchikey, adduct : pyarrow.StringArray, length n
        Formula, InChIKey and adduct, null if unknown.
    charge : ndarray of int64, shape (n,)
        Charges, 0 if unknown, negative for negative ions.
    precursor_mz : ndarray of float64, shape (n,)
        Precursor m/z in thomson, NaN if unknown.
    retention_time : ndarray of float64, shape (n,)
        Retention times in seconds, NaN if unknown.
    is_decoy : ndarray of bool, shape (n,)
        True for decoy spectra.
    n_members : ndarray of int64, shape (n,)
        Number of source spectra of each entry, 1 if unknown.
    offsets : ndarray of int64, shape (n + 1,)
        Start of the peaks of each entry in `mz`; the last value is the number of all peaks.
    mz : ndarray of float64, shape (peaks,)
        m/z in thomson, ascending within an entry.
    intensity : ndarray of float32, shape (peaks,)
        Intensities, positive and finite.
    skipped : Skipped
        Entries that could not be used.
    polarity : ndarray of int64, shape (n,), optional
        1 for positive ions, -1 for negative ions, 0 if unknown; used for entries of unknown charge. None if all are unknown.
    """

    sources: tuple[Path, ...]
    source: NDArray[np.int64]
    number: NDArray[np.int64]
    name: pa.StringArray
    peptidoform: pa.StringArray
    sequence: pa.StringArray
    proteins: pa.StringArray
    formula: pa.StringArray
    inchikey: pa.StringArray
    adduct: pa.StringArray
    charge: NDArray[np.int64]
    precursor_mz: NDArray[np.float64]
    retention_time: NDArray[np.float64]
    is_decoy: NDArray[np.bool_]
    n_members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    skipped: Skipped = Skipped()
    polarity: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.precursor_mz)

    @property
    def polarities(self) -> NDArray[np.int64]:
        """Polarity of each entry, from its charge or `polarity`: 1 for positive ions, -1 for negative ions, 0 if unknown, shape (n,)."""
        named = np.zeros(len(self), np.int64) if self.polarity is None else self.polarity
        return np.where(self.charge == 0, named, np.sign(self.charge))

    def take(self, rows: NDArray[np.int64]) -> SpectralLibrary:
        """Return the entries with the given indices, which may be in any order or repeated; `skipped` is unchanged."""
        mz, offsets = take_segments(self.mz, self.offsets, rows)
        intensity, _ = take_segments(self.intensity, self.offsets, rows)
        return replace(
            self,
            source=self.source[rows],
            number=self.number[rows],
            name=self.name.take(rows),
            peptidoform=self.peptidoform.take(rows),
            sequence=self.sequence.take(rows),
            proteins=self.proteins.take(rows),
            formula=self.formula.take(rows),
            inchikey=self.inchikey.take(rows),
            adduct=self.adduct.take(rows),
            charge=self.charge[rows],
            precursor_mz=self.precursor_mz[rows],
            retention_time=self.retention_time[rows],
            is_decoy=self.is_decoy[rows],
            n_members=self.n_members[rows],
            offsets=offsets,
            mz=mz,
            intensity=intensity,
            polarity=self.polarities[rows],
        )

    def spectra(self) -> Spectra:
        """Return the entries as spectra, for the preprocessing of searches, without copying peaks."""
        n = len(self)
        charge = np.abs(self.charge)
        is_known = (charge > 0) & (charge <= _HIGHEST_CHARGE)
        mask = np.where(is_known, np.uint32(1) << np.where(is_known, charge, 0).astype(np.uint32), np.uint32(0))
        return Spectra(
            files=tuple(map(str, self.sources)),
            file=self.source.astype(np.int32),
            identifier=self.name.to_pylist(),
            scan=np.full(n, -1, np.int64),
            index=self.number - 1,
            retention_time=self.retention_time,
            precursor_mz=self.precursor_mz,
            precursor_intensity=np.zeros(n, np.float32),
            charge_mask=(mask | (self.polarities < 0)).astype(np.uint32),
            offsets=self.offsets,
            mz=self.mz,
            intensity=self.intensity,
            n_skipped=self.skipped.n,
        )
