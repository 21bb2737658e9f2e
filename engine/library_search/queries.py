"""Queries: spectra with each charge that they may have, and the references that each is compared with.

Of each spectrum with each charge that it may have the references of that charge are candidates whose mass agrees; then, where the precursor
tolerance is wide, those of other masses, with the fragments where they are or moved by the difference. References of unknown charge are
candidates whatever the charge is, but those of negative ions only for negative ions, and those of positive ions for all others. So the
work is known in advance: pairs of a query and a reference, by which it is divided.
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
from proteoscope.engine.library_search.peak_lists import HIGHEST_MZ, peak_lists, taken, width_in_units
from proteoscope.engine.library_search.references import UNKNOWN_CHARGE, References
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.kernels.library_layouts import UNITS, Matching, PeakLists, Pools

__all__ = ["Queries", "SearchPlan", "plan_other_masses", "plan_same_mass", "prepare_queries"]


@dataclass(frozen=True)
class Queries:
    """Spectra with each charge that they may have, q of them: `charge` is that of the candidates, 0 for references of unknown charge.

    Attributes
    ----------
    spectrum, charge, slot : (q,) int64
        The slot is that of the references, see `References.starts`.
    mz : (q,) float64
        Thomson.
    peaks
        Their lists.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    slot: NDArray[np.int64]
    mz: NDArray[np.float64]
    peaks: PeakLists

    def __len__(self) -> int:
        return len(self.spectrum)

    def exclude(self, spectra: NDArray[np.int64]) -> Queries:
        """Return the queries of all spectra but these."""
        rows = np.flatnonzero(~np.isin(self.spectrum, spectra))
        return Queries(self.spectrum[rows], self.charge[rows], self.slot[rows], self.mz[rows], taken(self.peaks, rows))

    @property
    def charge_number(self) -> NDArray[np.int64]:
        """(q, 1) int64, charges without sign; 1 where unknown."""
        return np.maximum(np.abs(self.charge), 1)[:, None]

    @property
    def mass(self) -> NDArray[np.float64]:
        """(q,) float64, neutral, dalton; unknown charges count as one."""
        return np.maximum(np.abs(self.charge), 1) * self.mz - np.where(self.charge == 0, 1, self.charge) * PROTON_MASS


class SearchPlan(NamedTuple):
    """Queries with the references that they are compared with.

    Attributes
    ----------
    pools
        Rows of `References`, (q, k) for k isotope errors.
    shifts : (k,) float64
        Dalton, mass of each isotope error.
    matching
        Rules of the comparison.
    """

    queries: Queries
    pools: Pools
    shifts: NDArray[np.float64]
    matching: Matching


def prepare_queries(spectra: Spectra, references: References, parameters: LibrarySearchParameters, resources: Resources) -> Queries:
    """Return the spectra with a precursor and enough peaks, once per possible charge.

    Raises
    ------
    InputError
        There are none.
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
    # Neighbours in mass are compared with the same references.
    order = np.lexsort((mz[spectrum], slots[column]))
    spectrum, column = spectrum[order], column[order]
    return Queries(spectrum, charges[column], slots[column], mz[spectrum], taken(lists, spectrum))


def plan_same_mass(queries: Queries, references: References, parameters: LibrarySearchParameters) -> SearchPlan:
    """Plan the comparison with references of the same mass."""
    tolerance, count = parameters.nearest_tolerance, queries.charge_number
    shifts = np.array(sorted(parameters.isotope_errors, key=abs), np.float64) * ISOTOPE_SPACING
    centre = queries.mz[:, None] - shifts[None] / count
    # Of a tolerance in dalton the charge's part, of ppm those of the m/z.
    width = tolerance.width(centre) / (count if tolerance.unit == "Da" else 1)
    return SearchPlan(queries, _pools(queries, references, centre, width), shifts, _matching(parameters, None))


def plan_other_masses(queries: Queries, references: References, parameters: LibrarySearchParameters) -> SearchPlan:
    """Plan the comparison with references of other masses, whose fragments may be moved by the difference."""
    reach = parameters.precursor_tolerance.width(queries.mass[:, None]) / queries.charge_number
    pools = _pools(queries, references, queries.mz[:, None], reach)
    return SearchPlan(queries, pools, np.zeros(1), _matching(parameters, float(queries.mass.max(initial=0.0))))


def _pools(queries: Queries, references: References, centre: NDArray[np.float64], width: NDArray[np.float64]) -> Pools:
    """Return the rows of references within `width` of `centre`, both (q, k) thomson."""
    low, high = centre - width, centre + width
    pools = Pools(np.zeros(centre.shape, np.int64), np.zeros(centre.shape, np.int64))
    for slot in np.unique(queries.slot).tolist():
        first, last = references.starts[slot + UNKNOWN_CHARGE : slot + UNKNOWN_CHARGE + 2]
        rows, mz = queries.slot == slot, references.mz[first:last]
        pools.low[rows] = first + np.searchsorted(mz, low[rows])
        pools.high[rows] = first + np.searchsorted(mz, high[rows], side="right")
    return pools


def _matching(parameters: LibrarySearchParameters, largest_mass: float | None) -> Matching:
    """Return the rules of a comparison; `largest_mass`: of the queries, dalton, None among references of the same mass."""
    is_shifted = largest_mass is not None
    # A shift within the tolerance at the largest mass is not a modification.
    nearest = 0 if largest_mass is None else round(float(parameters.nearest_tolerance.width(largest_mass)) * UNITS)
    tolerance, is_entropy = width_in_units(parameters.fragment_tolerance), parameters.similarity == "entropy"
    return Matching(*tolerance, parameters.minimum_matched_peaks, is_entropy, is_shifted, nearest)
