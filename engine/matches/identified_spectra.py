"""Library of a run's identified spectra, with an equal number of spectra of shuffled peptides to estimate chance similarities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets, take_segments
from proteoscope.engine.chemistry.masses import PROTON_MASS, RESIDUE_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.lazy_pyarrow import pa
from proteoscope.engine.matches.columns import EXPORTED_PSMS
from proteoscope.engine.matches.source_run import accepted_targets
from proteoscope.engine.results.reader import TableFile
from proteoscope.engine.spectra.columns import Spectra, SpectrumSeries
from proteoscope.engine.spectra.spectrum_index import absolute_and_relative
from proteoscope.kernels.cpu.shuffled_spectra import MOVED_SERIES, ShuffledPeptides, move_peaks, shuffle_residues
from proteoscope.kernels.device import Partition, equal_partitions

__all__ = ["Identified", "read_identified", "select_spectra", "shuffled_spectra"]

_COLUMNS = (
    "spectrum",
    "charge",
    "calculated_mass",
    "peptide",
    "sequence",
    "q_value",
    "rank",
    "is_decoy",
    "modification_positions",
    "modification_masses",
)
_MAXIMUM_CHARGE = 31
_MAXIMUM_LENGTH = 1000


@dataclass(frozen=True)
class Identified:
    """Identified spectra (n) of a run, with their p peptidoforms.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (n,)
        Indices of the spectra, without duplicates.
    charge : ndarray of int64, shape (n,)
        Charge of the precursor of each spectrum.
    mass : ndarray of float64, shape (n,)
        Neutral peptide mass, Da.
    peptide : ndarray of int64, shape (n,)
        Index into `peptides`.
    peptides : tuple of str, length p
        Peptidoforms in ProForma.
    sequence : ndarray of int64, shape (p,)
        Index into `sequences`.
    sequences : tuple of str
        Distinct sequences without modifications.
    offsets : ndarray of int64, shape (p + 1,)
        Start of each peptidoform in `residues`, followed by the length of `residues`.
    residues : ndarray of float64
        Masses of residues including their modifications, Da.
    n_terminal, c_terminal : ndarray of float64, shape (p,)
        Masses of the terminal modifications, Da.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    mass: NDArray[np.float64]
    peptide: NDArray[np.int64]
    peptides: tuple[str, ...]
    sequence: NDArray[np.int64]
    sequences: tuple[str, ...]
    offsets: NDArray[np.int64]
    residues: NDArray[np.float64]
    n_terminal: NDArray[np.float64]
    c_terminal: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.spectrum)

    @property
    def mz(self) -> NDArray[np.float64]:
        """Theoretical m/z of the peptide of each spectrum at the charge of the precursor, (n,) float64."""
        return self.mass / self.charge + PROTON_MASS

    def take(self, rows: NDArray[np.int64]) -> Identified:
        """Return the spectra with the given indices."""
        return replace(self, spectrum=self.spectrum[rows], charge=self.charge[rows], mass=self.mass[rows], peptide=self.peptide[rows])


def read_identified(path: Path, n_spectra: int, maximum_q_value: float) -> Identified:
    """Read the spectra identified up to a q-value: rank 1 target matches.

    Parameters
    ----------
    path : Path
        Table of PSMs.
    n_spectra : int
        Number of spectra of the run.
    maximum_q_value : float
        Maximum q-value of accepted matches.

    Returns
    -------
    Identified

    Raises
    ------
    InputError
        If the table does not contain valid PSMs.
    """
    with TableFile(path, EXPORTED_PSMS, _COLUMNS, n_rows_of={"spectra": n_spectra}, remedy="Run the identification again") as source:
        table = accepted_targets(source.read(_COLUMNS), maximum_q_value)
        spectrum, charge = (table[name].cast(pa.int64()).to_numpy().copy() for name in ("spectrum", "charge"))
        mass = table["calculated_mass"].to_numpy().copy()
        peptide, sequence = (table[name].to_pylist() for name in ("peptide", "sequence"))
        sites, changes = table["modification_positions"].to_pylist(), table["modification_masses"].to_pylist()
        is_sound = (
            len(np.unique(spectrum)) == len(spectrum) and (charge <= _MAXIMUM_CHARGE).all() and np.isfinite(mass).all() and (mass > 0).all()
        )
        if not is_sound:
            raise source.damaged("holds PSMs that the program does not write")
    names, first, of = np.unique(np.array(peptide, dtype=object), return_index=True, return_inverse=True)
    offsets, residues, ends = _residues([(sequence[row], sites[row], changes[row]) for row in first.tolist()], path)
    sequences, of_sequence = np.unique(np.array([sequence[row] for row in first.tolist()], dtype=object), return_inverse=True)
    return Identified(
        spectrum,
        charge,
        mass,
        of.astype(np.int64),
        tuple(names.tolist()),
        of_sequence.astype(np.int64),
        tuple(sequences.tolist()),
        offsets,
        residues,
        ends[:, 0].copy(),
        ends[:, 1].copy(),
    )


def _residues(
    peptides: list[tuple[str, list[int], list[float]]], path: Path
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the residue masses of peptidoforms, including modifications (CSR), and the masses of terminal modifications, (p, 2), Da."""
    table = np.full(256, np.nan)
    table[ord("A") : ord("A") + len(RESIDUE_MASS)] = RESIDUE_MASS
    offsets = segment_offsets(np.array([len(symbols) for symbols, _, _ in peptides], np.int64))
    residues = table[np.frombuffer("".join(symbols for symbols, _, _ in peptides).encode("latin-1", "replace"), np.uint8)]
    ends = np.zeros((len(peptides), 2))
    for row, (symbols, sites, changes) in enumerate(peptides):
        n = len(symbols)
        if not 0 < n <= _MAXIMUM_LENGTH:
            raise InputError(path, "holds PSMs that the program does not write", remedy="Run the identification again")
        for site, change in zip(sites, changes, strict=True):
            if site in (0, n + 1):
                ends[row, int(site > 0)] += change
            else:
                residues[offsets[row] + site - 1] += change
    if not (np.isfinite(residues).all() and np.isfinite(ends).all()):
        raise InputError(path, "contains peptides with residues that have no mass", remedy="Run the identification again")
    return offsets, residues, ends


def select_spectra(spectra: Spectra, identified: Identified) -> Spectra:
    """Return the identified spectra with the charge and theoretical m/z of their peptides."""
    mz, offsets = take_segments(spectra.mz, spectra.offsets, identified.spectrum)
    intensity, _ = take_segments(spectra.intensity, spectra.offsets, identified.spectrum)
    rows = identified.spectrum
    return Spectra(
        spectra.files,
        spectra.file[rows],
        [],
        spectra.scan[rows],
        spectra.index[rows],
        spectra.retention_time[rows],
        identified.mz,
        spectra.precursor_intensity[rows],
        (1 << identified.charge).astype(np.uint32),
        offsets,
        mz,
        intensity,
        activation=spectra.activation[rows],
    )


def shuffled_spectra(
    library: Spectra, identified: Identified, ion_series: str, seed: int, fragment_tolerance: Tolerance, resources: Resources
) -> Spectra:
    """Return a spectrum of a shuffled peptide for each library spectrum; all spectra of a peptide use the same permutation.

    See `kernels.cpu.shuffled_spectra` for the method.

    Parameters
    ----------
    library : Spectra
        The n library spectra.
    identified : Identified
        Peptides of the library spectra.
    ion_series : str
        Parameter `ion_series` of the search that identified the spectra.
    seed : int
        Random seed of the permutations.
    fragment_tolerance : Tolerance
        Tolerance of fragment m/z.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    Spectra
    """
    threads, progress = resources.threads, resources.progress
    shuffled = np.empty_like(identified.residues)
    seeds = np.random.Generator(np.random.PCG64(seed)).integers(0, 1 << 62, len(identified.sequences), np.int64)
    of_form = seeds[identified.sequence].astype(np.uint64)
    parts = equal_partitions(np.diff(identified.offsets), threads)
    run_on_threads(
        lambda part: shuffle_residues(identified.residues, identified.offsets, of_form, part.first, part.last, shuffled),
        parts,
        threads,
        progress,
        steps=lambda _: 0,
    )
    residues, offsets = take_segments(identified.residues, identified.offsets, identified.peptide)
    other, _ = take_segments(shuffled, identified.offsets, identified.peptide)
    series = SpectrumSeries.for_spectra(ion_series, library.activation)
    peptides = ShuffledPeptides(
        offsets,
        residues,
        other,
        identified.n_terminal[identified.peptide],
        identified.c_terminal[identified.peptide],
        np.column_stack([series.have(frozenset(symbol)) for symbol in MOVED_SERIES]),
    )
    mz, intensity = np.empty_like(library.mz), np.empty_like(library.intensity)
    absolute, relative = absolute_and_relative(fragment_tolerance)

    def move(part: Partition) -> None:
        move_peaks(library.peak_arrays, identified.charge, peptides, absolute, relative, part.first, part.last, mz, intensity)

    run_on_threads(move, equal_partitions(np.diff(library.offsets) + 1, threads), threads, progress, steps=lambda _: 0)
    return replace(library, mz=mz, intensity=intensity)
