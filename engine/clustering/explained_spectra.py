"""Explain: each unidentified spectrum and the identified one that it resembles most, and how often that is chance.

Li's thesis, 4.4: identified spectra are the centroids that unidentified ones join. Here with the cosine of unit vectors, with candidates of
the same charge and mass, and beside each centroid the spectrum of its shuffled peptide: a spectrum of a peptide that was not identified
joins either with the same chance, so that those that join shuffled ones tell how many of the others are wrong.

A peptide of any other mass is one of a thousand times more candidates, and peptides whose sequences overlap, or differ by a residue, are
alike without being modified forms. So q-values of these count one decoy more than was seen: fewer than a hundred prove nothing at 1 %.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import offsets_of, take_runs
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.parameters import ExplanationParameters
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.threads import run_on_threads
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.matches.identified_spectra import Identified, shuffled_spectra, spectra_of
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import bin_factors, spectrum_vectors
from proteoscope.engine.statistics.target_decoy import q_values
from proteoscope.kernels.cpu.nearest_vectors import CandidateRanges, MassRange, nearest_shifted, nearest_vectors
from proteoscope.kernels.partitions import Partition, equal_partitions
from proteoscope.kernels.vector_layouts import VectorArrays

__all__ = ["Explained", "Library", "Queries", "explained", "library_of"]

_MAXIMUM_CHARGE = 31


@dataclass(frozen=True)
class Library:
    """Identified spectra and those of their shuffled peptides as vectors, 2 n of them in order of charge and m/z.

    Attributes
    ----------
    row : (2 n,) int64, of the identified spectrum. is_decoy : (2 n,) bool. charge : (2 n,) int64. mz : (2 n,) float64, thomson.
    arrays : the vectors. factor : (bins,) float64, of the bins' weights. starts : (33,) int64, where the spectra of each charge begin.
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
        """None of the bins is as large."""
        return len(self.factor)


@dataclass(frozen=True)
class Explained:
    """m spectra, each with the identified one that it resembles most, or with a shuffled one.

    Attributes
    ----------
    spectrum : (m,) int64, ascending. identified : (m,) int64, row of the `Identified`. charge : (m,) int64.
    is_decoy : (m,) bool, it resembles a shuffled one more. is_modified : (m,) bool, the masses differ by more than the tolerance.
    similarity : (m,) float64, cosine. q_value : (m,) float64. mass_difference : (m,) float64, measured less the peptide's mass, for the
        isotope that is nearest where the masses agree, dalton.
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

    def take(self, rows: NDArray) -> Explained:
        """Some rows, by number or truth."""
        return Explained(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def library_of(
    spectra: Spectra, identified: Identified, ion_series: str, fragment_tolerance: Tolerance, parameters: ExplanationParameters,
    resources: Resources,
) -> Library:  # fmt: skip
    """The library of identified spectra; `ion_series` : the parameter of their search."""
    own, factor = spectra_of(spectra, identified), bin_factors(spectra, parameters, resources)
    shuffled = shuffled_spectra(own, identified, ion_series, parameters.seed, fragment_tolerance, resources)
    made = [spectrum_vectors(one, parameters, resources, factor=factor) for one in (own, shuffled)]
    row = np.concatenate([one.order for one in made])
    is_decoy = np.repeat([False, True], len(own))
    charge, mz = identified.charge[row], identified.mz[row]
    # Of equal ones the first wins: a shuffled one.
    order = np.lexsort((row, ~is_decoy, mz, charge))
    joined = offsets_of(np.concatenate([np.diff(one.arrays.offsets) for one in made]))
    bins, offsets = take_runs(np.concatenate([one.arrays.bins for one in made]), joined, order)
    weights, _ = take_runs(np.concatenate([one.arrays.weights for one in made]), joined, order)
    starts = np.searchsorted(charge[order], np.arange(_MAXIMUM_CHARGE + 2))
    return Library(row[order], is_decoy[order], charge[order], mz[order], VectorArrays(offsets, bins, weights), factor, starts)


def explained(queries: Queries, parameters: ExplanationParameters, resources: Resources) -> Explained:
    """Which of the spectra are explained by the library; one row for each that resembles anything.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    same = queries.same(parameters, resources)
    if not parameters.mass_difference:
        return same
    is_explained = ~same.is_decoy & (same.q_value <= parameters.fdr)
    modified = queries.modified(same.take(is_explained).spectrum, parameters, resources)
    kept = same.take(is_explained | ~np.isin(same.spectrum, modified.spectrum))
    order = np.argsort(np.concatenate([kept.spectrum, modified.spectrum]), kind="stable")
    return Explained(*(np.concatenate([getattr(kept, name), getattr(modified, name)])[order] for name in kept.__dataclass_fields__))


@dataclass(frozen=True)
class Queries:
    """Spectra to be explained, each with each charge that it may have: k of them, and the library.

    `low`, `high`: (k,) int64, the spectra of the library with that charge.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    mz: NDArray[np.float64]
    arrays: VectorArrays
    library: Library

    @classmethod
    def of(
        cls, spectra: Spectra, rows: NDArray[np.int64], library: Library, parameters: ExplanationParameters, resources: Resources
    ) -> Queries:
        """The spectra `rows` (ascending) with each charge that they may have and the library has."""
        vectors = spectrum_vectors(spectra.only(rows), parameters, resources, factor=library.factor)
        has_any = np.diff(vectors.arrays.offsets) > 0
        places = np.flatnonzero(has_any & np.isfinite(vectors.precursor_mz) & (vectors.ion & NEGATIVE == 0))
        mask = vectors.ion[places]
        charges = np.flatnonzero(np.diff(library.starts))  # those that the library has
        may = (mask[:, None] == 0) | ((mask[:, None] >> charges.astype(np.uint32)[None]) & 1 > 0)
        place, column = np.nonzero(may)
        place = places[place]
        order = np.argsort(vectors.order[place], kind="stable")
        place, charge = place[order], charges[column[order]]
        bins, offsets = take_runs(vectors.arrays.bins, vectors.arrays.offsets, place)
        weights, _ = take_runs(vectors.arrays.weights, vectors.arrays.offsets, place)
        return cls(vectors.order[place], charge, vectors.precursor_mz[place], VectorArrays(offsets, bins, weights), library)

    def same(self, parameters: ExplanationParameters, resources: Resources) -> Explained:
        """Those that resemble a peptide of the same mass."""
        library, n = self.library, len(self.spectrum)
        shift = np.array(sorted(parameters.isotope_errors, key=abs), np.float64) * ISOTOPE_SPACING
        centre = self.mz[:, None] - shift[None] / self.charge[:, None]
        width = parameters.precursor_tolerance.width(centre)
        low, high = self._ranges(centre - width, centre + width)
        ranges = CandidateRanges(low, high, centre, parameters.precursor_weight / np.maximum(width, 1e-12))
        nearest, similarity, value = np.empty(n, np.int64), np.empty(n), np.empty(n)
        resources.progress.stage("Comparing with identified spectra", n)

        def compare(part: Partition) -> None:
            nearest_vectors(
                self.arrays, ranges, library.arrays, library.mz, library.n_bins, part.first, part.last, nearest, similarity, value
            )

        parts = equal_partitions((high - low).sum(axis=1) + 1, resources.threads)
        run_on_threads(compare, parts, resources.threads, resources.progress, steps=lambda part: part.last - part.first)
        found = self._best(nearest, similarity, value)
        taken = nearest[found]
        difference = self._mass(found) - self._library_mass(taken)
        errors = difference[:, None] - shift[None]
        isotope = np.abs(errors).argmin(axis=1)
        return self._judged(found, taken, similarity[found], errors[np.arange(len(found)), isotope], is_modified=False)

    def modified(self, but: NDArray[np.int64], parameters: ExplanationParameters, resources: Resources) -> Explained:
        """Those that resemble a peptide of another mass, of the spectra that are not in `but`."""
        library, n = self.library, len(self.spectrum)
        reach = parameters.mass_difference / self.charge
        low, high = self._ranges((self.mz - reach)[:, None], (self.mz + reach)[:, None])
        low, high = low[:, 0], np.where(np.isin(self.spectrum, but), low[:, 0], high[:, 0])
        mass, of_mass = self._mass(np.arange(n)), self._library_mass(np.arange(len(library.mz)))
        # What the tolerance lets pass at the largest mass is not taken for a modification.
        largest = float(mass.max()) if n else 0.0
        width = float(parameters.precursor_tolerance.width(largest))
        shift = np.array(parameters.isotope_errors, np.float64) * ISOTOPE_SPACING
        mass_range = MassRange(low, high, np.stack([shift - width, shift + width], axis=1))
        nearest, similarity = np.empty(n, np.int64), np.empty(n)
        resources.progress.stage("Comparing with identified spectra of other masses", n)

        def compare(part: Partition) -> None:
            nearest_shifted(
                self.arrays, mass, mass_range, library.arrays, of_mass, parameters.bin_width, library.n_bins, part.first, part.last,
                nearest, similarity,
            )  # fmt: skip

        parts = equal_partitions(high - low + 1, resources.threads, per_worker=32)
        run_on_threads(compare, parts, resources.threads, resources.progress, steps=lambda part: part.last - part.first)
        found = self._best(nearest, similarity, similarity)
        taken = nearest[found]
        return self._judged(found, taken, similarity[found], self._mass(found) - self._library_mass(taken), is_modified=True)

    def _ranges(self, low_mz: NDArray[np.float64], high_mz: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Spectra of the library between two m/z, of the charge of each query: of the shape of the m/z."""
        low, high = np.zeros(low_mz.shape, np.int64), np.zeros(low_mz.shape, np.int64)
        for charge in np.unique(self.charge).tolist():
            first, last = self.library.starts[charge : charge + 2]
            rows, mz = self.charge == charge, self.library.mz[first:last]
            low[rows] = first + np.searchsorted(mz, low_mz[rows])
            high[rows] = first + np.searchsorted(mz, high_mz[rows], side="right")
        return low, high

    def _mass(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return (self.mz[rows] - PROTON_MASS) * self.charge[rows]

    def _library_mass(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return (self.library.mz[rows] - PROTON_MASS) * self.library.charge[rows]

    def _best(self, nearest: NDArray[np.int64], similarity: NDArray[np.float64], value: NDArray[np.float64]) -> NDArray[np.int64]:
        """Of each spectrum the query with the best charge, where any resembles anything."""
        some = np.flatnonzero(nearest >= 0)
        order = some[np.lexsort((-value[some], self.spectrum[some]))]
        _, first = np.unique(self.spectrum[order], return_index=True)
        return order[first]

    def _judged(
        self, rows: NDArray[np.int64], taken: NDArray[np.int64], similarity: NDArray[np.float64], difference: NDArray[np.float64], *,
        is_modified: bool,
    ) -> Explained:  # fmt: skip
        is_decoy = self.library.is_decoy[taken]
        return Explained(
            self.spectrum[rows], self.library.row[taken], self.charge[rows], is_decoy, np.full(len(rows), is_modified), similarity,
            q_values(similarity, is_decoy, plus_one=is_modified), difference,
        )  # fmt: skip
