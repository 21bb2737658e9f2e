"""Queries (each spectrum with each possible charge), and the references with which queries are compared.

Candidates of a query are first the references of its charge whose mass agrees. If the precursor tolerance is wide, references of other
masses follow, with fragments at the same m/z or moved by the mass difference. References of unknown charge are candidates for all charges;
those of negative ions only for negative ions, the others only for positive ions, if the polarity is known. All pairs of a query and a
reference are thus known in advance, and their number divides the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import HIGHEST_MZ, UNKNOWN_CHARGE, References, peak_lists, taken, width_in_units
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.kernels.library_layouts import UNITS, Matching, PeakLists, Pools

__all__ = ["Queries", "SearchPlan", "plan_other_masses", "plan_same_mass", "prepare_queries"]


@dataclass(frozen=True)
class Queries:
    """Spectra with each possible charge, q queries.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (q,)
        Row of the spectrum of each query.
    charge : ndarray of int64, shape (q,)
        Charge of the candidates, negative for negative ions; 0 for references of unknown charge.
    slot : ndarray of int64, shape (q,)
        Slot of the candidates (see `References.starts`).
    mz : ndarray of float64, shape (q,)
        Precursor m/z, Th.
    peaks : PeakLists
        Peak list of each query.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    slot: NDArray[np.int64]
    mz: NDArray[np.float64]
    peaks: PeakLists

    def __len__(self) -> int:
        return len(self.spectrum)

    def exclude(self, spectra: NDArray[np.int64]) -> Queries:
        """Return the queries of all spectra except the given ones."""
        rows = np.flatnonzero(~np.isin(self.spectrum, spectra))
        return Queries(self.spectrum[rows], self.charge[rows], self.slot[rows], self.mz[rows], taken(self.peaks, rows))

    @property
    def charge_number(self) -> NDArray[np.int64]:
        """Charge of each query without its sign, 1 if unknown, (q, 1) int64."""
        return np.maximum(np.abs(self.charge), 1)[:, None]

    @property
    def mass(self) -> NDArray[np.float64]:
        """Neutral precursor mass of each query in dalton, (q,) float64; unknown charges count as 1."""
        return np.maximum(np.abs(self.charge), 1) * self.mz - np.where(self.charge == 0, 1, self.charge) * PROTON_MASS


class SearchPlan(NamedTuple):
    """Queries with the references with which they are compared.

    Attributes
    ----------
    queries : Queries
        Queries to compare.
    pools : Pools
        Ranges of rows of `References`, (q, k) for k isotope errors.
    shifts : ndarray of float64, shape (k,)
        Mass of each isotope error in dalton.
    matching : Matching
        Rules of the comparison.
    """

    queries: Queries
    pools: Pools
    shifts: NDArray[np.float64]
    matching: Matching


def prepare_queries(spectra: Spectra, references: References, parameters: LibrarySearchParameters, resources: Resources) -> Queries:
    """Return the spectra that have a precursor and enough peaks, once for each possible charge.

    Raises
    ------
    InputError
        If no spectrum can be compared.
    """
    resources.progress.stage("Preparing spectra", len(spectra))
    lists = peak_lists(spectra.peak_arrays, spectra.precursor_mz, parameters, resources)
    slots = np.flatnonzero(np.diff(references.starts)) - UNKNOWN_CHARGE
    charges = np.where(np.abs(slots) == UNKNOWN_CHARGE, 0, slots)
    is_negative = spectra.charge_mask & NEGATIVE > 0
    mask = spectra.charge_mask & ~np.uint32(NEGATIVE)
    tried = np.uint32(sum(1 << z for z in range(parameters.minimum_charge, parameters.maximum_charge + 1)))
    mask = np.where(mask == 0, tried, mask)
    may = (mask[:, None] >> np.abs(charges).astype(np.uint32)[None]) & 1 > 0
    may = (slots == 0)[None] | ((may | (charges == 0)[None]) & ((slots < 0)[None] == is_negative[:, None]))
    mz = spectra.precursor_mz
    may &= ((np.diff(lists.offsets) > 0) & (mz > 0) & np.isfinite(mz))[:, None]
    may &= mz[:, None] * np.maximum(np.abs(charges), 1)[None] < HIGHEST_MZ
    spectrum, column = np.nonzero(may)
    if not len(spectrum):
        raise InputError(
            spectra.files[0],
            "none of its spectra has a precursor, enough peaks, and a charge that the library has",
            remedy="Give spectra and a library of the same polarity, or lower minimum_peaks",
        )
    # Order by mass, so that neighbours are compared with the same references.
    order = np.lexsort((mz[spectrum], slots[column]))
    spectrum, column = spectrum[order], column[order]
    return Queries(spectrum, charges[column], slots[column], mz[spectrum], taken(lists, spectrum))


def plan_same_mass(queries: Queries, references: References, parameters: LibrarySearchParameters) -> SearchPlan:
    """Return the comparison of queries with references of the same mass."""
    tolerance, count = parameters.nearest_tolerance, queries.charge_number
    shifts = np.array(sorted(parameters.isotope_errors, key=abs), np.float64) * ISOTOPE_SPACING
    centre = queries.mz[:, None] - shifts[None] / count
    # Divide a tolerance in dalton by the charge; ppm apply to the m/z.
    width = tolerance.width(centre) / (count if tolerance.unit == "Da" else 1)
    return SearchPlan(queries, _pools(queries, references, centre, width), shifts, _matching(parameters, None))


def plan_other_masses(queries: Queries, references: References, parameters: LibrarySearchParameters) -> SearchPlan:
    """Return the comparison of queries with references of other masses, whose fragments may be moved by the mass difference."""
    reach = parameters.precursor_tolerance.width(queries.mass[:, None]) / queries.charge_number
    pools = _pools(queries, references, queries.mz[:, None], reach)
    return SearchPlan(queries, pools, np.zeros(1), _matching(parameters, float(queries.mass.max(initial=0.0))))


def _pools(queries: Queries, references: References, centre: NDArray[np.float64], width: NDArray[np.float64]) -> Pools:
    """Return the ranges of references whose m/z is within `width` of `centre`, both (q, k) in thomson."""
    low, high = centre - width, centre + width
    pools = Pools(np.zeros(centre.shape, np.int64), np.zeros(centre.shape, np.int64))
    for slot in np.unique(queries.slot).tolist():
        first, last = references.starts[slot + UNKNOWN_CHARGE : slot + UNKNOWN_CHARGE + 2]
        rows, mz = queries.slot == slot, references.mz[first:last]
        pools.low[rows] = first + np.searchsorted(mz, low[rows])
        pools.high[rows] = first + np.searchsorted(mz, high[rows], side="right")
    return pools


def _matching(parameters: LibrarySearchParameters, largest_mass: float | None) -> Matching:
    """Return the rules of a comparison; `largest_mass` is the maximum query mass (Da), or None for references of the same mass."""
    is_shifted = largest_mass is not None
    # A mass difference within the tolerance at the largest mass is not a modification.
    nearest = 0 if largest_mass is None else round(float(parameters.nearest_tolerance.width(largest_mass)) * UNITS)
    tolerance, is_entropy = width_in_units(parameters.fragment_tolerance), parameters.similarity == "entropy"
    return Matching(*tolerance, parameters.minimum_matched_peaks, is_entropy, is_shifted, nearest)
