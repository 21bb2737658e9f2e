"""Reference spectra as columns: what every reader of spectral libraries makes, and every search of them takes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_runs
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.columns import Spectra

__all__ = ["MAXIMUM_SKIPPED_TOLD", "PROTEIN_SEPARATOR", "Skipped", "SkippedEntry", "SpectralLibrary"]

PROTEIN_SEPARATOR = "\t"
"""Between the accessions of an entry, which hold no control characters."""
MAXIMUM_SKIPPED_TOLD = 100
"""Of the entries that could not be taken, so many are told one by one; the others are counted."""
_HIGHEST_CHARGE = 31


class SkippedEntry(NamedTuple):
    """An entry of a library that could not be taken: `source`, its file, into `SpectralLibrary.sources`; `line`, where it begins (the
    number of the entry in files without lines), from 1; `reason`, in words."""

    source: int
    line: int
    reason: str


@dataclass(frozen=True)
class Skipped:
    """Entries that could not be taken: the first of them (`MAXIMUM_SKIPPED_TOLD` at most), and how many there are by reason."""

    entries: tuple[SkippedEntry, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


@dataclass(frozen=True)
class SpectralLibrary:
    """n reference spectra, with their peaks in one flat array (CSR).

    Attributes
    ----------
    sources : the files, in the order given. source : (n,) int64, into `sources`. number : (n,) int64, the entry's place in its file,
        from 1.
    name : n texts, as in the file. peptidoform : n texts, ProForma 2.0 without charge; null where the entry is no peptide. sequence : n
        texts, its residues alone; null likewise.
    proteins : n texts, accessions with `PROTEIN_SEPARATOR` between them; null where unknown. formula, inchikey, adduct : n texts, null
        where unknown.
    charge : (n,) int64, 0 where unknown, negative of negative ions. precursor_mz : (n,) float64, thomson, NaN where unknown.
    retention_time : (n,) float64, seconds, NaN where unknown. is_decoy : (n,) bool. n_members : (n,) int64, spectra that the entry was made
        of, 1 where unknown.
    offsets : (n + 1,) int64; the peaks of entry i are `offsets[i]:offsets[i + 1]`. mz : (peaks,) float64, thomson, ascending within an
        entry. intensity : (peaks,) float32, positive and finite.
    skipped : entries that could not be taken.
    polarity : (n,) int64, 1 of positive ions, -1 of negative ones, 0 unknown, which counts where the charge is unknown; None: all unknown.
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
        """(n,) int64, 1 of positive ions, -1 of negative ones, 0 unknown."""
        named = np.zeros(len(self), np.int64) if self.polarity is None else self.polarity
        return np.where(self.charge == 0, named, np.sign(self.charge))

    def take(self, rows: NDArray[np.int64]) -> SpectralLibrary:
        """Some of the entries, in another order or some twice; what was skipped stays."""
        mz, offsets = take_runs(self.mz, self.offsets, rows)
        intensity, _ = take_runs(self.intensity, self.offsets, rows)
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
        """The entries as spectra, which what prepares spectra for a search takes; their peaks are not copied."""
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
