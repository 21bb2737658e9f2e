"""Search for the most similar reference of each spectrum, on any devices, as a workload type."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import read_only
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import GpuShape, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.engine.library_search.queries import SearchPlan
from proteoscope.engine.library_search.references import References
from proteoscope.kernels.cpu.library_search import search_costs
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.library_layouts import COSINE_LENGTH, UNITS, Matching, PeakLists, Pools

__all__ = ["KIND", "Matches", "SpectraAgainstReferences", "score"]

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
        """Return these matches and those of `other`, ordered by spectrum."""
        columns = {field.name: np.concatenate([getattr(self, field.name), getattr(other, field.name)]) for field in fields(self)}
        return replace(self, **columns).take(np.argsort(columns["spectrum"], kind="stable"))


def score(plan: SearchPlan, references: References, resources: Resources) -> Matches:
    """Return the most similar reference of each spectrum that is similar to one.

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
        """Return the estimated number of compared reference peaks over all pairs (see `PredictableWorkloadType`)."""
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
