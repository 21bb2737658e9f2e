"""Search for the most similar reference of each spectrum, on any devices, as a workload type."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import read_only
from proteoscope.engine.chemistry.masses import ISOTOPE_SPACING, PROTON_MASS
from proteoscope.engine.errors import InputError
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import GpuShape, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.engine.formats.spectrum_blocks import NEGATIVE
from proteoscope.engine.library_search.parameters import LibrarySearchParameters
from proteoscope.engine.library_search.references import HIGHEST_MZ, UNKNOWN_CHARGE, References, peak_lists, taken, width_in_units
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.kernels.cpu.library_search import search_costs
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.library_layouts import COSINE_LENGTH, UNITS, Matching, PeakLists, Pools

__all__ = [
    "KIND",
    "Matches",
    "Queries",
    "SearchPlan",
    "SpectraAgainstReferences",
    "plan_other_masses",
    "plan_same_mass",
    "prepare_queries",
    "score",
]


@dataclass(frozen=True)
class Queries:
    """Queries: a query is a spectrum with one of its possible charges.

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
    is_possible = (mask[:, None] >> np.abs(charges).astype(np.uint32)[None]) & 1 > 0
    is_possible = (slots == 0)[None] | ((is_possible | (charges == 0)[None]) & ((slots < 0)[None] == is_negative[:, None]))
    mz = spectra.precursor_mz
    is_possible &= ((np.diff(lists.offsets) > 0) & (mz > 0) & np.isfinite(mz))[:, None]
    is_possible &= mz[:, None] * np.maximum(np.abs(charges), 1)[None] < HIGHEST_MZ
    spectrum, column = np.nonzero(is_possible)
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
    """Return the comparison of queries with references of other masses, whose fragments may be shifted by the mass difference."""
    reach = parameters.precursor_tolerance.width(queries.mass[:, None]) / queries.charge_number
    pools = _pools(queries, references, queries.mz[:, None], reach)
    return SearchPlan(queries, pools, np.zeros(1), _matching(parameters, float(queries.mass.max(initial=0.0))))


def _pools(queries: Queries, references: References, centre: NDArray[np.float64], width: NDArray[np.float64]) -> Pools:
    """Return ranges of references, (q, k): references in the slot of the query whose m/z is within `width` of `centre`, both (q, k), Th."""
    low, high = centre - width, centre + width
    pools = Pools(np.zeros(centre.shape, np.int64), np.zeros(centre.shape, np.int64))
    for slot in np.unique(queries.slot).tolist():
        first, last = references.starts[slot + UNKNOWN_CHARGE : slot + UNKNOWN_CHARGE + 2]
        rows, mz = queries.slot == slot, references.mz[first:last]
        pools.low[rows] = first + np.searchsorted(mz, low[rows])
        pools.high[rows] = first + np.searchsorted(mz, high[rows], side="right")
    return pools


def _matching(parameters: LibrarySearchParameters, largest_mass: float | None) -> Matching:
    """Return the rules for comparing queries with references.

    To compare references of other masses, `largest_mass` is the maximum query mass (Da), from which the minimum mass difference of a shift
    is calculated. To compare only references of the same mass, it must be None.
    """
    is_shifted = largest_mass is not None
    # A mass difference within the tolerance at the largest mass is not a modification.
    nearest = 0 if largest_mass is None else round(float(parameters.nearest_tolerance.width(largest_mass)) * UNITS)
    tolerance, is_entropy = width_in_units(parameters.fragment_tolerance), parameters.similarity == "entropy"
    return Matching(*tolerance, parameters.minimum_matched_peaks, is_entropy, is_shifted, nearest)


KIND = "library-spectra"
_QUERIES, _REFERENCES, _OF_QUERY, _PEAKS = 4000, 50_000, 500, 60
_DRAWN = 5000  # random synthetic lists, which are then repeated


@dataclass(frozen=True)
class Matches:
    """Spectra with their most similar references, k of them.

    Attributes
    ----------
    spectrum : ndarray of int64, shape (k,)
        Row of each spectrum, ascending.
    reference : ndarray of int64, shape (k,)
        Row of the most similar reference in `References`.
    charge : ndarray of int64, shape (k,)
        Assumed charge, 0 if unknown.
    similarity : ndarray of float64, shape (k,)
        Similarity, 0 to 1.
    matched : ndarray of int64, shape (k,)
        Number of matched peaks of the reference.
    mass_difference : ndarray of float64, shape (k,)
        Mass of the spectrum minus mass of the reference in dalton; for the same mass, corrected by the nearest isotope error.
    is_shifted : ndarray of bool, shape (k,)
        True if the reference has another mass.
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

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Self:
        """Return the matches selected by indices or a mask."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def joined(self, other: Self) -> Self:
        """Return these matches and the matches of `other`, ordered by spectrum."""
        columns = {field.name: np.concatenate([getattr(self, field.name), getattr(other, field.name)]) for field in fields(self)}
        return replace(self, **columns).take(np.argsort(columns["spectrum"], kind="stable"))


def score(plan: SearchPlan, references: References, resources: Resources) -> Matches:
    """Return the most similar reference of each spectrum that has a similar one.

    Raises
    ------
    Cancelled
        If the user cancelled the search.
    """
    queries, mass, is_shifted = plan.queries, plan.queries.mass, plan.matching.is_shifted
    sources = {
        "queries": {**queries.peaks._asdict(), "mass": np.rint(mass * UNITS).astype(np.int32)},
        "references": {**references.peaks._asdict(), "mass": references.mass},
        "pools": plan.pools._asdict(),
    }
    resources.progress.stage(f"Comparing with the library's spectra{' of other masses' if is_shifted else ''}", len(queries))
    with Executor(resources).session(Workload(KIND, sources, plan.matching._asdict())) as session:
        rows = session.run()
    some = np.flatnonzero(rows["found"] >= 0)
    order = some[np.lexsort((rows["found"][some], -rows["similarity"][some], queries.spectrum[some]))]
    spectrum, first = np.unique(queries.spectrum[order], return_index=True)
    best = order[first]
    reference = rows["found"][best]
    errors = (mass[best] - references.mass[reference] / UNITS)[:, None] - plan.shifts[None]
    isotope = np.abs(errors).argmin(axis=1) if len(best) else np.zeros(0, np.int64)
    return Matches(
        spectrum,
        reference,
        queries.charge[best],
        rows["similarity"][best],
        rows["matched"][best].astype(np.int64),
        errors[np.arange(len(best)), isotope],
        np.full(len(best), is_shifted),
    )


class SpectraAgainstReferences(PredictableWorkloadType):
    """Workload type whose items are queries, compared with references."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return synthetic queries, each compared with references of neighbouring mass, for measuring the speed of devices."""
        rng = np.random.Generator(np.random.PCG64(seed))
        n, m = max(8, round(_QUERIES * size)), max(2 * _OF_QUERY, round(_REFERENCES * size**0.25))
        queries, references = _synthetic_lists(rng, n), _synthetic_lists(rng, m)
        low = np.sort(rng.integers(0, m - _OF_QUERY, (n, 1)), axis=0)
        mass = [np.sort(rng.integers(400 * UNITS, 3000 * UNITS, count)).astype(np.int32) for count in (n, m)]
        sources = {
            "queries": {**queries._asdict(), "mass": mass[0]},
            # Read-only, like arrays of a mapped file, so that kernels compiled for a search are not compiled again.
            "references": {name: read_only(column) for name, column in {**references._asdict(), "mass": mass[1]}.items()},
            "pools": Pools(low, low + _OF_QUERY)._asdict(),
        }
        return Sample(Workload(KIND, sources, Matching(0, 20_000, 3, False, False, -1)._asdict()), [None])

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of references with which each query is compared, (queries,) float64."""
        return search_costs(Pools(**workload.sources["pools"]))

    def operations(self, workload: Workload, state: Any, gpu: GpuShape | None) -> float:
        """Return the estimated number of reference peaks compared, summed over all pairs of a query and a reference.

        See `PredictableWorkloadType`.
        """
        references = workload.sources["references"]
        each = len(references["mz"]) / max(1, len(references["mass"]))
        return float(self.costs(workload, state).sum()) * each * (2.0 if workload.settings["is_shifted"] else 1.0)

    @contextmanager
    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Copy the references to the device and yield the computation."""
        yield _Computation(workload, device)

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return a result without matches."""
        return {"found": np.full(n, -1, np.int64), "similarity": np.zeros(n), "matched": np.zeros(n, np.int32)}


class _Computation:
    """Search of queries on one device, which holds the references."""

    def __init__(self, workload: Workload, device: Device) -> None:
        queries, references = dict(workload.sources["queries"]), dict(workload.sources["references"])
        self._mass, mass = queries.pop("mass"), references.pop("mass")
        self._queries = PeakLists(**queries)
        self._pools, self._matching = Pools(**workload.sources["pools"]), Matching(**workload.settings)
        self._search = backend_module(device, "library_search").LibrarySearch(device, PeakLists(**references), mass)
        n = len(self._mass)
        self._rows: dict[str, NDArray[Any]] = {
            "found": np.full(n, -1, np.int64),
            "similarity": np.zeros(n),
            "matched": np.zeros(n, np.int32),
        }

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Prepare the search of all queries."""
        if items is not None:
            raise ValueError("all spectra are searched in a library")

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Search the queries `first:last`; yield partial results."""
        rows, done = self._rows, first
        with closing(self._search.search(self._queries, self._mass, self._pools, self._matching, *rows.values(), first, last)) as ends:
            for end in ends:
                yield PartialResult(end, {name: column[done:end].copy() for name, column in rows.items()})
                done = end


def _synthetic_lists(rng: np.random.Generator, n: int) -> PeakLists:
    """Return n peak lists of 60 peaks each, which are at least 1 Th apart."""
    positions = np.sort(rng.random((min(n, _DRAWN), _PEAKS)), axis=1) * 1800.0 + np.arange(_PEAKS) + 100.0
    weight = np.full(n * _PEAKS, round(COSINE_LENGTH / _PEAKS**0.5), np.uint16)
    return PeakLists(np.arange(n + 1) * _PEAKS, np.resize(np.rint(positions.ravel() * UNITS).astype(np.int32), n * _PEAKS), weight)
