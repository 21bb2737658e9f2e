"""Entries of a spectral library that are to be written: peptides with their peaks, and which fragment ion each peak is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of
from proteoscope.engine.chemistry.masses import PROTON_MASS
from proteoscope.engine.chemistry.peptidoforms import write_many
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.spectra.spectral_library import SpectralLibrary

__all__ = ["EntryModifications", "LibraryEntries", "PeakIons", "rounded_peaks", "spectral_library"]

Origin = Literal["best", "merged", "predicted"]
"""Where the peaks of entries come from: the best spectrum of each, the mean of all, or a model."""


class PeakIons(NamedTuple):
    """Which ion each of the peaks is; all (peaks,).

    Attributes
    ----------
    series : uint8, the letter of the series, 0 where no ion explains the peak. number : uint8, residues of the fragment. charge : uint8.
    error : float32, thomson, the peak's m/z less the ion's.
    """

    series: NDArray[np.uint8]
    number: NDArray[np.uint8]
    charge: NDArray[np.uint8]
    error: NDArray[np.float32]


class EntryModifications(NamedTuple):
    """Modifications of n peptides as columns (CSR).

    Attributes
    ----------
    offsets : (n + 1,) int64. position : (m,) int64, 0 the N-terminus, 1 to L the residues, L + 1 the C-terminus; ascending within each.
    kind : (m,) int64, into `names`, as ProForma has them, and `masses`, dalton.
    """

    offsets: NDArray[np.int64]
    position: NDArray[np.int64]
    kind: NDArray[np.int64]
    names: tuple[str, ...]
    masses: tuple[float, ...]

    def mass(self) -> NDArray[np.float64]:
        """(n,) what each peptide carries, dalton."""
        owner = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        carried = np.bincount(owner, np.array([*self.masses, 0.0])[self.kind], minlength=len(self.offsets) - 1)
        return carried.astype(np.float64)


@dataclass(frozen=True)
class LibraryEntries:
    """n entries, all of peptides, positive ions.

    Attributes
    ----------
    sequence : n texts. modifications : what they carry. proteins : n texts, accessions with `PROTEIN_SEPARATOR` between them, null where
        unknown.
    charge : (n,) int64. mass : (n,) float64, neutral, of the peptidoform, dalton. retention_time : (n,) float64, seconds, NaN unknown.
    q_value : (n,) float64, NaN unknown. n_members : (n,) int64, spectra that the entry was made of.
    offsets, mz, intensity : the peaks, CSR, ascending in m/z, as of `SpectralLibrary`. ions : what they are. origin : where they come from.
    files, file : spectrum files, and (n,) int64 into them, the file of the best spectrum of an entry; empty where there is none.
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
        """(n,) float64, thomson, of the peptide with its charge."""
        return self.mass / self.charge + PROTON_MASS

    def peptidoforms(self) -> pa.StringArray:
        """n texts in ProForma 2.0, without charge."""
        of = self.modifications
        if not len(of.position):
            return self.sequence
        return pa.array(write_many(self.sequence.to_pylist(), of.offsets, of.position, of.kind, of.names, of.masses), pa.string())


def rounded_peaks(mz: NDArray[np.float64], intensity: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Peaks with as many decimals as libraries are written with, so that all formats hold the same numbers."""
    return np.round(mz, 5), np.round(intensity, 2)


def spectral_library(parts: list[LibraryEntries], source: Path) -> SpectralLibrary:
    """Entries as a library that is searched, as if they had been read from the file `source`."""

    def joined(name: str) -> NDArray:
        return np.concatenate([getattr(one, name) for one in parts])

    n = sum(map(len, parts))
    nothing = pa.nulls(n, pa.string())
    forms = pa.concat_arrays([one.peptidoforms() for one in parts])
    return SpectralLibrary(
        (source,),
        np.zeros(n, np.int64),
        np.arange(n) + 1,
        forms,
        forms,
        pa.concat_arrays([one.sequence for one in parts]),
        pa.concat_arrays([one.proteins for one in parts]),
        nothing,
        nothing,
        nothing,
        joined("charge"),
        joined("precursor_mz"),
        joined("retention_time"),
        np.zeros(n, np.bool_),
        joined("n_members"),
        offsets_of(np.concatenate([np.diff(one.offsets) for one in parts])),
        joined("mz"),
        joined("intensity"),
    )
