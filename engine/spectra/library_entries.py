"""Entries of spectral libraries to be written: peptides with their peaks, and the fragment ion of each peak."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

__all__ = ["EntryModifications", "LibraryEntries", "PeakIons", "rounded_peaks", "spectral_library"]

Origin = Literal["best", "merged", "predicted"]
"""Source of the peaks of an entry: its best spectrum, the mean of its spectra, or a model."""


class PeakIons(NamedTuple):
    """Fragment ions to which peaks were assigned.

    Attributes
    ----------
    series : ndarray of uint8, shape (peaks,)
        Character code of the ion series, 0 if no ion is assigned to the peak.
    number : ndarray of uint8, shape (peaks,)
        Number of residues of the fragment.
    charge : ndarray of uint8, shape (peaks,)
        Charge of the fragment.
    error : ndarray of float32, shape (peaks,)
        m/z of the peak minus m/z of the ion, thomson.
    """

    series: NDArray[np.uint8]
    number: NDArray[np.uint8]
    charge: NDArray[np.uint8]
    error: NDArray[np.float32]


class EntryModifications(NamedTuple):
    """Modifications of n peptides, in compressed rows.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n + 1,)
        Start of the modifications of each peptide in `position`; the last value is the number of all modifications.
    position : ndarray of int64, shape (m,)
        0 for the N-terminus, 1 to L for the residues, L + 1 for the C-terminus; ascending within a peptide.
    kind : ndarray of int64, shape (m,)
        Index of each modification in `names` and `masses`.
    names : tuple of str
        Names in ProForma.
    masses : tuple of float
        Masses in dalton.
    """

    offsets: NDArray[np.int64]
    position: NDArray[np.int64]
    kind: NDArray[np.int64]
    names: tuple[str, ...]
    masses: tuple[float, ...]

    def mass(self) -> NDArray[np.float64]:
        """Return the total mass of the modifications of each peptide in dalton, shape (n,)."""
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        carried = np.bincount(owner, np.array([*self.masses, 0.0])[self.kind], minlength=len(self.offsets) - 1)
        return carried.astype(np.float64)


@dataclass(frozen=True)
class LibraryEntries:
    """Entries of a spectral library, n of them, all positive ions.

    Attributes
    ----------
    sequence : pyarrow.StringArray, length n
        Residues of the peptides.
    modifications : EntryModifications
        Modifications of the peptides.
    proteins : pyarrow.StringArray, length n
        Accessions separated by `PROTEIN_SEPARATOR`, null if unknown.
    charge : ndarray of int64, shape (n,)
        Charges.
    mass : ndarray of float64, shape (n,)
        Neutral mass of the peptidoform in dalton.
    retention_time : ndarray of float64, shape (n,)
        Retention times in seconds, NaN if unknown.
    q_value : ndarray of float64, shape (n,)
        q-values, NaN if unknown.
    n_members : ndarray of int64, shape (n,)
        Number of source spectra of each entry.
    offsets, mz, intensity : ndarray
        Start of the peaks of each entry, their m/z (ascending) and intensities, see `SpectralLibrary`.
    ions : PeakIons
        Fragment ions of the peaks.
    origin : Origin
        Source of the peaks.
    files : tuple of str
        Spectrum files; empty for predicted entries.
    file : ndarray of int64, shape (n,) or (0,)
        Index in `files` of the best spectrum of each entry.
    """

    sequence: pa.StringArray
    modifications: EntryModifications
    proteins: pa.StringArray
    charge: NDArray[np.int64]
    mass: NDArray[np.float64]
    retention_time: NDArray[np.float64]
    q_value: NDArray[np.float64]
    n_members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    mz: NDArray[np.float64]
    intensity: NDArray[np.float32]
    ions: PeakIons
    origin: Origin
    files: tuple[str, ...] = ()
    file: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.charge)

    @property
    def precursor_mz(self) -> NDArray[np.float64]:
        """m/z of the peptidoforms with their charges in thomson, shape (n,)."""
        return self.mass / self.charge + PROTON_MASS

    def peptidoforms(self) -> pa.StringArray:
        """Return the peptidoforms in ProForma 2.0 without charges."""
        offsets, position, kind, names, masses = self.modifications
        if not len(position):
            return self.sequence
        return pa.array(write_many(self.sequence.to_pylist(), offsets, position, kind, names, masses), pa.string())


def rounded_peaks(mz: NDArray[np.float64], intensity: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Round peaks to the number of decimals in library files, so that all formats contain the same numbers.

    Parameters
    ----------
    mz : ndarray of float64
        m/z in thomson; rounded to five decimals.
    intensity : ndarray of float32
        Intensities; rounded to two decimals.
    """
    return np.round(mz, 5), np.round(intensity, 2)


def spectral_library(parts: list[LibraryEntries], source: Path) -> SpectralLibrary:
    """Return entries as a spectral library that can be searched, as if it had been read from a file.

    Parameters
    ----------
    parts : list of LibraryEntries
        Entries, in several chunks.
    source : Path
        File that the library names as its source.
    """

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    n = sum(map(len, parts))
    nothing = pa.nulls(n, pa.string())
    forms = pa.concat_arrays([part.peptidoforms() for part in parts])
    return SpectralLibrary(
        (source,),
        np.zeros(n, np.int64),
        np.arange(n) + 1,
        forms,
        forms,
        pa.concat_arrays([part.sequence for part in parts]),
        pa.concat_arrays([part.proteins for part in parts]),
        nothing,
        nothing,
        nothing,
        joined("charge"),
        joined("precursor_mz"),
        joined("retention_time"),
        np.zeros(n, np.bool_),
        joined("n_members"),
        segment_offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
        joined("mz"),
        joined("intensity"),
    )
