"""Explanation of each unidentified spectrum by the most similar identified spectrum, with error rates.

In Li's thesis (4.4), identified spectra are the centroids that unidentified spectra join. Here, spectra are compared by the cosine of unit
vectors with candidates of the same charge and mass, and each centroid has a counterpart: the spectrum of its shuffled peptide. A spectrum
of a peptide that was not identified joins a shuffled spectrum with the same probability, so the number of spectra that join shuffled
spectra estimates the number of false explanations.

Peptides of any other mass are a thousand times more numerous, and peptides with overlapping sequences, or with one different residue, are
similar without being modified forms. The q-values of explanations by peptides of other masses therefore count one decoy more than observed:
fewer than a hundred such explanations cannot reach 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets, take_segments
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.matches.identified_spectra import Identified, select_spectra, shuffled_spectra
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import bin_factors, spectrum_vectors
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.clustering_layouts import VectorArrays
from proteoscope.kernels.cpu.nearest_vectors import CandidateRanges, MassRange, nearest_shifted, nearest_vectors
from proteoscope.kernels.device import Partition, equal_partitions

__all__ = [
    "Explained",
    "Library",
    "Queries",
    "cascade",
    "identified_library",
    "plan_other_masses",
    "plan_same_mass",
    "prepare_queries",
    "score_other_masses",
    "score_same_mass",
]

_MAXIMUM_CHARGE = 31


@dataclass(frozen=True)
class Library:
    """Vectors of n identified spectra and of their shuffled peptides, ordered by charge and m/z.

    Attributes
    ----------
    row : ndarray of int64, shape (2 n,)
        Row of the identified spectrum in `Identified`; for a shuffled peptide, of the spectrum whose peptide was shuffled.
    is_decoy : ndarray of bool, shape (2 n,)
        True for shuffled peptides.
    charge : ndarray of int64, shape (2 n,)
        Precursor charge of each spectrum.
    mz : ndarray of float64, shape (2 n,)
        Precursor m/z, Th.
    arrays : VectorArrays
        The vectors of the spectra.
    factor : ndarray of float64, shape (bins,)
        Weight factor of each bin.
    starts : ndarray of int64, shape (33,)
        The spectra of charge z are ``starts[z]:starts[z + 1]``.
    """

    row: NDArray[np.int64]
    is_decoy: NDArray[np.bool_]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    arrays: VectorArrays
    factor: NDArray[np.float64]
    starts: NDArray[np.int64]

    @property
    def n_bins(self) -> int:
        """Number of bins of the m/z axis."""
        return len(self.factor)

    @property
    def mass(self) -> NDArray[np.float64]:
        """Neutral precursor mass, Da, (2 n,) float64."""
        return (self.mz - PROTON_MASS) * self.charge


class Queries(NamedTuple):
    """Spectra to explain, once for each possible charge: `spectrum`, `charge` and `mz` (Th), each (k,), and their vectors."""

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    arrays: VectorArrays

    @property
    def mass(self) -> NDArray[np.float64]:
        """Neutral precursor mass, Da, (k,) float64."""
        return (self.mz - PROTON_MASS) * self.charge


class SameMassPlan(NamedTuple):
    """Comparison with spectra of the same mass: queries, range of spectra for each, and masses (Da) of isotope errors, (s,)."""

    queries: Queries
    candidates: CandidateRanges
    shifts: NDArray[np.float64]


class OtherMassPlan(NamedTuple):
    """Comparison with spectra of other masses: queries, range of spectra for each, and the width of vector bins in thomson."""

    queries: Queries
    candidates: MassRange
    bin_width: float


@dataclass(frozen=True)
class Explained:
    """Spectra that are explained, m of them, each with the most similar identified (or shuffled) spectrum.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (m,)
        Row of each explained spectrum, ascending.
    identified : ndarray of int64, shape (m,)
        Row in `Identified` of the most similar spectrum; for a shuffled peptide, of the spectrum whose peptide was shuffled.
    charge : ndarray of int64, shape (m,)
        Precursor charge of each spectrum.
    is_decoy : ndarray of bool, shape (m,)
        True if the most similar spectrum belongs to a shuffled peptide.
    is_modified : ndarray of bool, shape (m,)
        True if the masses of the two spectra differ by more than the tolerance.
    similarity : ndarray of float64, shape (m,)
        Cosine of the two spectra.
    q_value : ndarray of float64, shape (m,)
        q-value of the match.
    mass_difference : ndarray of float64, shape (m,)
        Measured mass minus peptide mass in dalton; for the same mass, corrected by the nearest isotope error.
    """

    spectrum: NDArray[np.int64]
    identified: NDArray[np.int64]
    charge: NDArray[np.int64]
    is_decoy: NDArray[np.bool_]
    is_modified: NDArray[np.bool_]
    similarity: NDArray[np.float64]
    q_value: NDArray[np.float64]
    mass_difference: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.spectrum)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Explained:
        """Return the rows selected by indices or a mask."""
        return Explained(*(getattr(self, field.name)[rows] for field in fields(self)))

    def accepted(self, fdr: float) -> NDArray[np.int64]:
        """Return the rows of the spectra that have an accepted explanation: no decoy, and a q-value of at most `fdr`."""
        return self.spectrum[~self.is_decoy & (self.q_value <= fdr)]


def identified_library(
    spectra: Spectra,
    identified: Identified,
    ion_series: str,
    fragment_tolerance: Tolerance,
    parameters: ExplanationParameters,
    resources: Resources,
) -> Library:
    """Return the vectors of the identified spectra and of their shuffled peptides.

    Parameters
    ----------
    spectra : Spectra
        All spectra of the run.
    identified : Identified
        Identified spectra.
    ion_series : str
        Ion series of the search that identified the spectra.
    fragment_tolerance : Tolerance
        Tolerance of fragment m/z.
    parameters : ExplanationParameters
        Parameters of the explanation.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    Library
    """
    identified_spectra, factor = select_spectra(spectra, identified), bin_factors(spectra, parameters, resources)
    shuffled = shuffled_spectra(identified_spectra, identified, ion_series, parameters.random_seed, fragment_tolerance, resources)
    vectors = [spectrum_vectors(some, parameters, resources, factor=factor) for some in (identified_spectra, shuffled)]
    row = np.concatenate([some.order for some in vectors])
    is_decoy = np.repeat([False, True], len(identified_spectra))
    charge, mz = identified.charge[row], identified.mz[row]
    # Of equally similar spectra, the first is selected; shuffled spectra precede their targets.
    order = np.lexsort((row, ~is_decoy, mz, charge))
    joined = segment_offsets(np.concatenate([np.diff(some.arrays.offsets) for some in vectors]))
    bins, offsets = take_segments(np.concatenate([some.arrays.bins for some in vectors]), joined, order)
    weights, _ = take_segments(np.concatenate([some.arrays.weights for some in vectors]), joined, order)
    starts = np.searchsorted(charge[order], np.arange(_MAXIMUM_CHARGE + 2))
    return Library(row[order], is_decoy[order], charge[order], mz[order], VectorArrays(offsets, bins, weights), factor, starts)


def prepare_queries(
    spectra: Spectra, rows: NDArray[np.int64], library: Library, parameters: ExplanationParameters, resources: Resources
) -> Queries:
    """Return the spectra `rows` (ascending), once for each possible charge that occurs in the library."""
    vectors = spectrum_vectors(spectra.only(rows), parameters, resources, factor=library.factor)
    has_any = np.diff(vectors.arrays.offsets) > 0
    positions = np.flatnonzero(has_any & np.isfinite(vectors.precursor_mz) & (vectors.ion & NEGATIVE == 0))
    mask = vectors.ion[positions]
    charges = np.flatnonzero(np.diff(library.starts))  # charges in the library
    is_possible = (mask[:, None] == 0) | ((mask[:, None] >> charges.astype(np.uint32)[None]) & 1 > 0)
    position, column = np.nonzero(is_possible)
    order = np.argsort(vectors.order[positions[position]], kind="stable")
    position, charge = positions[position][order], charges[column[order]]
    bins, offsets = take_segments(vectors.arrays.bins, vectors.arrays.offsets, position)
    weights, _ = take_segments(vectors.arrays.weights, vectors.arrays.offsets, position)
    return Queries(vectors.order[position], charge, vectors.precursor_mz[position], VectorArrays(offsets, bins, weights))


def plan_same_mass(queries: Queries, library: Library, parameters: ExplanationParameters) -> SameMassPlan:
    """Return the comparison of queries with peptides of the same mass."""
    shifts = np.array(sorted(parameters.isotope_errors, key=abs), np.float64) * ISOTOPE_SPACING
    centre = queries.mz[:, None] - shifts[None] / queries.charge[:, None]
    width = parameters.precursor_tolerance.width(centre)
    low, high = _ranges(queries, library, centre - width, centre + width)
    candidates = CandidateRanges(low, high, centre, parameters.precursor_weight / np.maximum(width, 1e-12))
    return SameMassPlan(queries, candidates, shifts)


def plan_other_masses(queries: Queries, library: Library, excluded: NDArray[np.int64], parameters: ExplanationParameters) -> OtherMassPlan:
    """Return the plan to compare queries with spectra of other masses; queries of the spectra `excluded` are left out."""
    reach = parameters.mass_difference / queries.charge
    low, high = _ranges(queries, library, (queries.mz - reach)[:, None], (queries.mz + reach)[:, None])
    low, high = low[:, 0], np.where(np.isin(queries.spectrum, excluded), low[:, 0], high[:, 0])
    # A mass difference within the tolerance at the largest mass is not a modification.
    width = float(parameters.precursor_tolerance.width(float(queries.mass.max(initial=0.0))))
    shifts = np.array(parameters.isotope_errors, np.float64) * ISOTOPE_SPACING
    candidates = MassRange(low, high, np.stack([shifts - width, shifts + width], axis=1))
    return OtherMassPlan(queries, candidates, parameters.bin_width)


def score_same_mass(plan: SameMassPlan, library: Library, resources: Resources) -> Explained:
    """Match each spectrum with the most similar identified (or shuffled) spectrum of the same mass, and return the matches.

    Raises
    ------
    Cancelled
        If the user cancelled the search.
    """
    queries, n = plan.queries, len(plan.queries.spectrum)
    nearest, similarity, value = np.empty(n, np.int64), np.empty(n), np.empty(n)
    resources.progress.stage("Comparing with identified spectra", n)

    def compare(part: Partition) -> None:
        nearest_vectors(
            queries.arrays, plan.candidates, library.arrays, library.mz, library.n_bins, part.first, part.last, nearest, similarity, value
        )

    parts = equal_partitions((plan.candidates.high - plan.candidates.low).sum(axis=1) + 1, resources.threads)
    run_on_threads(compare, parts, resources.threads, resources.progress, steps=lambda part: part.last - part.first)
    return _best_of_spectra(queries, library, nearest, similarity, value, plan.shifts, is_modified=False)


def score_other_masses(plan: OtherMassPlan, library: Library, resources: Resources) -> Explained:
    """Match each spectrum with the most similar identified (or shuffled) spectrum of another mass, and return the matches.

    Raises
    ------
    Cancelled
        If the user cancelled the search.
    """
    queries, n = plan.queries, len(plan.queries.spectrum)
    mass, library_mass = queries.mass, library.mass
    nearest, similarity = np.empty(n, np.int64), np.empty(n)
    resources.progress.stage("Comparing with identified spectra of other masses", n)

    def compare(part: Partition) -> None:
        nearest_shifted(
            queries.arrays,
            mass,
            plan.candidates,
            library.arrays,
            library_mass,
            plan.bin_width,
            library.n_bins,
            part.first,
            part.last,
            nearest,
            similarity,
        )

    parts = equal_partitions(plan.candidates.high - plan.candidates.low + 1, resources.threads, per_worker=32)
    run_on_threads(compare, parts, resources.threads, resources.progress, steps=lambda part: part.last - part.first)
    return _best_of_spectra(queries, library, nearest, similarity, similarity, np.zeros(1), is_modified=True)


def cascade(same: Explained, others: Explained) -> Explained:
    """Return one match per spectrum, ordered by spectrum: from `others` if the spectrum has a match there, otherwise from `same`."""
    retained = same.take(~np.isin(same.spectrum, others.spectrum))
    joined = Explained(*(np.concatenate([getattr(retained, field.name), getattr(others, field.name)]) for field in fields(retained)))
    return joined.take(np.argsort(joined.spectrum, kind="stable"))


def _ranges(
    queries: Queries, library: Library, low_mz: NDArray[np.float64], high_mz: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and end of ranges of library spectra with the charge of the query and an m/z between two limits.

    Each query has one or several pairs of limits; start and end have the shape of the limits.
    """
    low, high = np.zeros(low_mz.shape, np.int64), np.zeros(low_mz.shape, np.int64)
    for charge in np.unique(queries.charge).tolist():
        first, last = library.starts[charge : charge + 2]
        rows, mz = queries.charge == charge, library.mz[first:last]
        low[rows] = first + np.searchsorted(mz, low_mz[rows])
        high[rows] = first + np.searchsorted(mz, high_mz[rows], side="right")
    return low, high


def _best_of_spectra(
    queries: Queries,
    library: Library,
    nearest: NDArray[np.int64],
    similarity: NDArray[np.float64],
    value: NDArray[np.float64],
    shifts: NDArray[np.float64],
    *,
    is_modified: bool,
) -> Explained:
    """Return the best match of each spectrum, with q-values.

    A spectrum has one query for each possible charge. The match of the query with the highest `value` is the match of the spectrum.

    Parameters
    ----------
    nearest : ndarray of int64, shape (k,)
        Library spectrum nearest to each query; -1 if there is none.
    similarity : ndarray of float64, shape (k,)
        Cosine of each query and its nearest library spectrum.
    value : ndarray of float64, shape (k,)
        Value by which the queries of a spectrum are ranked; higher is better.
    shifts : ndarray of float64
        Mass of each isotope error in dalton.
    """
    some = np.flatnonzero(nearest >= 0)
    order = some[np.lexsort((-value[some], queries.spectrum[some]))]
    best = order[np.unique(queries.spectrum[order], return_index=True)[1]]
    taken, of_best = nearest[best], similarity[best]
    errors = (queries.mass[best] - library.mass[taken])[:, None] - shifts[None]
    difference = errors[np.arange(len(best)), np.abs(errors).argmin(axis=1)]
    is_decoy = library.is_decoy[taken]
    return Explained(
        queries.spectrum[best],
        library.row[taken],
        queries.charge[best],
        is_decoy,
        np.full(len(best), is_modified),
        of_best,
        q_values(of_best, is_decoy, plus_one=is_modified),
        difference,
    )
