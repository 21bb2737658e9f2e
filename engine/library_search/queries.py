"""Queries: spectra with each charge that they may have, and the references that they resemble most.

Of each spectrum with each charge that it may have the references of that charge are looked at whose mass agrees; then, where the precursor
tolerance is wide, those of other masses, with the fragments where they are or moved by the difference. References of unknown charge are
looked at whatever the charge is, but those of negative ions only for negative ions, and those of positive ions for all others. So what is
to be done is known before: pairs of a query and a reference, by which the work is divided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.peak_lists import HIGHEST_MZ, peak_lists, taken, width_in_units
from proteoscope.engine.library_search.references import UNKNOWN_CHARGE, References
from proteoscope.engine.library_search.scoring import work_of
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.kernels.library_layouts import UNITS, Matching, PeakLists, Pools

__all__ = ["Found", "Queries"]


@dataclass(frozen=True)
class Found:
    """k spectra, each with the reference that it resembles most.

    Attributes
    ----------
    spectrum : (k,) int64, ascending. reference : (k,) int64, into `References`. charge : (k,) int64, assumed; 0 where nothing tells it.
    similarity : (k,) float64. matched : (k,) int64, peaks of the reference with a partner. mass_difference : (k,) float64, the spectrum's
        less the reference's, dalton, for the isotope that is nearest where they are of the same mass. is_shifted : (k,) bool.
    """

    spectrum: NDArray[np.int64]
    reference: NDArray[np.int64]
    charge: NDArray[np.int64]
    similarity: NDArray[np.float64]
    matched: NDArray[np.int64]
    mass_difference: NDArray[np.float64]
    is_shifted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.spectrum)

    def take(self, rows: NDArray) -> Found:
        """Some of them, by number or truth."""
        return Found(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def joined(self, other: Found) -> Found:
        """These and others, by spectrum."""
        order = np.argsort(np.concatenate([self.spectrum, other.spectrum]), kind="stable")
        return Found(*(np.concatenate([getattr(self, name), getattr(other, name)])[order] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Queries:
    """Spectra with each charge that they may have, q of them: `charge` is that of the references looked at, 0 those of unknown charge.

    Attributes
    ----------
    spectrum, charge, slot : (q,) int64; the slot is that of the references, see `References.starts`. mz : (q,) float64, thomson.
    peaks : their lists. n_searched : spectra among them.
    """

    spectrum: NDArray[np.int64]
    charge: NDArray[np.int64]
    slot: NDArray[np.int64]
    mz: NDArray[np.float64]
    peaks: PeakLists
    n_searched: int

    def __len__(self) -> int:
        return len(self.spectrum)

    @classmethod
    def of(cls, spectra: Spectra, references: References, parameters: LibrarySearchParameters, resources: Resources) -> Queries:
        """The spectra that have a precursor and enough peaks."""
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
        slot = slots[column]
        # Neighbours in mass look at the same references.
        order = np.lexsort((mz[spectrum], slot))
        spectrum, slot, charge = spectrum[order], slot[order], charges[column][order]
        return cls(spectrum, charge, slot, mz[spectrum], taken(lists, spectrum), len(np.unique(spectrum)))

    def take(self, rows: NDArray[np.int64]) -> Queries:
        """Some of them."""
        some = self.spectrum[rows]
        return Queries(some, self.charge[rows], self.slot[rows], self.mz[rows], taken(self.peaks, rows), len(np.unique(some)))

    def but(self, spectra: NDArray[np.int64]) -> Queries:
        """Those of other spectra than these."""
        return self.take(np.flatnonzero(~np.isin(self.spectrum, spectra)))

    @property
    def mass(self) -> NDArray[np.float64]:
        """(q,) float64, neutral, dalton; of unknown charge as of one."""
        return np.maximum(np.abs(self.charge), 1) * self.mz - np.where(self.charge == 0, 1, self.charge) * PROTON_MASS

    def same(self, references: References, parameters: LibrarySearchParameters, resources: Resources) -> Found:
        """Those that resemble a reference of the same mass."""
        count = np.maximum(np.abs(self.charge), 1)[:, None]
        shift = np.array(sorted(parameters.isotope_errors, key=abs), np.float64) * ISOTOPE_SPACING
        centre = self.mz[:, None] - shift[None] / count
        width = self._width(parameters, centre, count)
        pools = self._pools(references, centre - width, centre + width)
        return self._found(references, pools, parameters, shift, resources, is_shifted=False)

    def shifted(self, references: References, parameters: LibrarySearchParameters, resources: Resources) -> Found:
        """Those that resemble a reference of another mass."""
        count = np.maximum(np.abs(self.charge), 1)[:, None]
        mass = self.mass[:, None]
        reach = parameters.precursor_tolerance.width(mass) / count
        pools = self._pools(references, self.mz[:, None] - reach, self.mz[:, None] + reach)
        return self._found(references, pools, parameters, np.zeros(1), resources, is_shifted=True)

    def _width(
        self, parameters: LibrarySearchParameters, centre: NDArray[np.float64], count: NDArray[np.int64]
    ) -> NDArray[np.float64]:  # fmt: skip
        """Within which m/z are of the same mass, thomson: of a mass in dalton the charge's part, of ppm those of the m/z."""
        tolerance = parameters.nearest_tolerance
        return tolerance.width(centre) / (count if tolerance.unit == "Da" else 1)

    def _pools(self, references: References, low: NDArray[np.float64], high: NDArray[np.float64]) -> Pools:
        pools = Pools(np.zeros(low.shape, np.int64), np.zeros(low.shape, np.int64))
        for slot in np.unique(self.slot).tolist():
            first, last = references.starts[slot + UNKNOWN_CHARGE : slot + UNKNOWN_CHARGE + 2]
            rows, mz = self.slot == slot, references.mz[first:last]
            pools.low[rows] = first + np.searchsorted(mz, low[rows])
            pools.high[rows] = first + np.searchsorted(mz, high[rows], side="right")
        return pools

    def _found(
        self, references: References, pools: Pools, parameters: LibrarySearchParameters, shift: NDArray[np.float64], resources: Resources,
        *, is_shifted: bool,
    ) -> Found:  # fmt: skip
        nearest = 0
        if is_shifted:
            # What the tolerance lets pass at the largest mass is not taken for a modification.
            nearest = round(float(parameters.nearest_tolerance.width(float(self.mass.max(initial=0.0)))) * UNITS)
        is_entropy, tolerance = parameters.similarity == "entropy", width_in_units(parameters.fragment_tolerance)
        matching = Matching(*tolerance, parameters.minimum_matched_peaks, is_entropy, is_shifted, nearest)
        work = work_of(self.peaks, self.mass, references, pools, matching)
        of = " of other masses" if is_shifted else ""
        resources.progress.stage(f"Comparing with the library's spectra{of}", len(self))
        with Executor(resources).session(work) as session:
            rows = session.run()
        some = np.flatnonzero(rows["found"] >= 0)
        order = some[np.lexsort((rows["found"][some], -rows["similarity"][some], self.spectrum[some]))]
        spectrum, first = np.unique(self.spectrum[order], return_index=True)
        best = order[first]
        reference = rows["found"][best]
        difference = self.mass[best] - references.mass[reference] / UNITS
        errors = difference[:, None] - shift[None]
        isotope = np.abs(errors).argmin(axis=1) if len(best) else np.zeros(0, np.int64)
        return Found(
            spectrum, reference, self.charge[best], rows["similarity"][best], rows["matched"][best].astype(np.int64),
            errors[np.arange(len(best)), isotope], np.full(len(best), is_shifted),
        )  # fmt: skip
