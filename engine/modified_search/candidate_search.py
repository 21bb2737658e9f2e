"""Selection of the peptides that have most fragment masses in common with a spectrum, for any mass shift, as a workload type.

This is match score identification (Carroll's thesis, chapter 6) with theoretical spectra as candidates. The peptide index is searched in
parts that fit the memory; the best peptides of a query over all parts are its candidates.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import modified_search
from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.chemistry.masses import WATER_MASS
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources, run_on_threads
from proteoscope.engine.execution.workload import GpuShape, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.cpu.mass_lists import count_spectrum_masses, list_peptide_masses, list_spectrum_masses
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Device, Partition, available_threads, backend_module, even_partitions
from proteoscope.kernels.layouts import PeptideArrays, QueryArrays, ScoringSettings, SpectrumArrays
from proteoscope.kernels.match_score_layouts import CANDIDATES_OF_CHUNK, MassLists, search_integers
from proteoscope.kernels.threads import on_threads

__all__ = ["KIND", "Candidates", "ListSettings", "SpectraAgainstMassLists", "find_candidates", "peptide_lists", "query_lists"]

KIND = "mass-lists"
_BYTES_OF_MASS, _BYTES_OF_CANDIDATE = 8, 12  # list entry, and two postings
_BYTES_OF_UNIT = 8 / CANDIDATES_OF_CHUNK  # per candidate and occurring mass unit, in both indexes
_SHARE_THAT_OCCURS = 0.6  # fraction of mass units that occur in peptides
_BLOCKS = 1 << 14  # blocks of peptides, between which the peptides are cut into parts
_QUERIES_AT_ONCE = 1024  # number of queries whose mass lists are in memory at the same time


class ListSettings(NamedTuple):
    """Settings for converting masses to integers, in mass units.

    Attributes
    ----------
    per_dalton : float
        Mass units per dalton.
    slack_absolute, slack_relative : float
        Extension of the mass range of a peak beyond the fragment tolerance: in dalton, and as a fraction of the precursor mass.
    low, high : float
        Range of mass shifts in dalton.
    is_widened : bool
        True if a peak matches all mass units in its mass range, False if it matches only the mass unit of its mass.
    """

    per_dalton: float
    slack_absolute: float
    slack_relative: float
    low: float
    high: float
    is_widened: bool = True

    @property
    def window(self) -> tuple[int, int]:
        """Range of mass shifts in mass units."""
        return int(np.floor(self.low * self.per_dalton)), int(np.ceil(self.high * self.per_dalton))


class Candidates(NamedTuple):
    """Best k candidates of each of q queries, by decreasing number of matching masses.

    Attributes
    ----------
    peptide : ndarray of int64, shape (q, k)
        Index of the peptide, or -1.
    matches : ndarray of int32, shape (q, k)
        Number of matching masses.
    """

    peptide: NDArray[np.int64]
    matches: NDArray[np.int32]


def peptide_lists(peptides: PeptideArrays, per_dalton: float, first: int, last: int, resources: Resources) -> MassLists:
    """Return the mass lists of the peptides `first:last`.

    Parameters
    ----------
    peptides : PeptideArrays
        Peptides to search, in order of mass.
    per_dalton : float
        Mass units per dalton.
    first, last : int
        Range of peptide indices, `last` exclusive.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    MassLists
    """
    n, parts = last - first, even_partitions(last - first, resources.threads)
    begins = np.array([part.first for part in parts], np.int64)
    bonds = np.add.reduceat(peptides.length[first:last], begins, dtype=np.int64) - np.diff(begins, append=n) if n else begins
    starts = segment_offsets(bonds)
    offsets, masses, precursors = np.zeros(n + 1, np.int64), np.empty(starts[-1], np.int32), np.empty(n, np.int32)
    offsets[begins] = starts[:-1]

    def fill(part: Partition) -> None:
        begin, end = part.first, part.last
        list_peptide_masses(peptides, per_dalton, first + begin, first + end, offsets[begin : end + 1], masses, precursors[begin:end])

    run_on_threads(fill, parts, resources.threads, resources.progress, steps=lambda _: 0)
    return MassLists(offsets, masses, precursors)


def query_lists(
    spectra: SpectrumArrays, queries: QueryArrays, settings: ScoringSettings, lists: ListSettings, threads: int = 1
) -> MassLists:
    """Return the mass lists of queries: mass ranges, as wide as the tolerances, of each peak as an N-terminal and a C-terminal fragment."""
    counts = np.zeros(len(queries.mass), np.int64)
    if not lists.is_widened:
        settings = settings._replace(fragment_absolute=0.0, fragment_relative=0.0)
    given = (spectra, queries, settings, WATER_MASS, lists.per_dalton, lists.slack_absolute, lists.slack_relative)
    parts = even_partitions(len(counts), threads)

    def count(part: Partition) -> None:
        count_spectrum_masses(*given, part.first, part.last, counts[part.first : part.last])

    def fill(part: Partition) -> None:
        list_spectrum_masses(*given, part.first, part.last, offsets[part.first : part.last + 1], masses)

    with on_threads(count, parts, threads) as counted:
        for future in counted:
            future.result()
    offsets = segment_offsets(counts)
    masses = np.empty(offsets[-1], np.int32)
    with on_threads(fill, parts, threads) as filled:
        for future in filled:
            future.result()
    return MassLists(offsets, masses, np.rint(queries.mass * lists.per_dalton).astype(np.int32))


def find_candidates(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    settings: ScoringSettings,
    lists: ListSettings,
    n_candidates: int,
    memory_bytes: int,
    resources: Resources,
) -> Candidates:
    """Return the `n_candidates` peptides with most matching masses for each query; among equally good peptides, the first.

    Parameters
    ----------
    index : SpectrumIndex
        Spectra and queries.
    peptides : PeptideArrays
        Peptides to search, in order of mass.
    settings : ScoringSettings
        Settings of the scoring kernels.
    lists : ListSettings
        Settings of the mass lists.
    n_candidates : int
        Number of candidates per query.
    memory_bytes : int
        Maximum memory of the mass lists and index of one part of the peptides.
    resources : Resources
        Devices, threads and progress of the run.

    Returns
    -------
    Candidates
    """
    n, cuts = len(index.queries.mass), _cuts(peptides, lists.per_dalton, memory_bytes)
    result = Candidates(np.full((n, n_candidates), -1, np.int64), np.zeros((n, n_candidates), np.int32))
    for number, (first, last) in enumerate(pairwise(cuts), 1):
        of_part = f" (part {number} of {len(cuts) - 1})" if len(cuts) > 2 else ""
        resources.progress.stage(f"Listing masses{of_part}")
        workload = Workload(
            KIND,
            {
                "spectra": index.arrays._asdict(),
                "queries": index.queries._asdict(),
                "settings": settings._asdict(),
                "candidates": peptide_lists(peptides, lists.per_dalton, first, last, resources)._asdict(),
            },
            {"n_candidates": n_candidates, **lists._asdict()},
        )
        resources.progress.stage(f"Counting matches{of_part}", n)
        with Executor(resources).session(workload) as session:
            rows = session.run()
        if len(cuts) == 2:
            return Candidates(rows["candidate"], rows["score"])
        result = _merge_candidates(result, Candidates(np.where(rows["candidate"] >= 0, rows["candidate"] + first, -1), rows["score"]))
    return result


def _cuts(peptides: PeptideArrays, per_dalton: float, memory_bytes: int) -> list[int]:
    """Return the bounds of consecutive parts of the peptides that fit the memory: peptide indices, from 0 to the number of peptides."""
    n = len(peptides.mass)
    begins = np.arange(0, n, max(1, n // _BLOCKS))  # there may be millions of peptides
    if not n:
        return [0]
    size = np.add.reduceat(peptides.mass, begins) * (per_dalton * _SHARE_THAT_OCCURS * _BYTES_OF_UNIT)
    size += np.add.reduceat(peptides.length, begins, dtype=np.int64) * float(_BYTES_OF_MASS)
    size += np.diff(begins, append=n) * float(_BYTES_OF_CANDIDATE)
    total = np.cumsum(size)
    n_parts = max(1, -(-int(total[-1]) // max(1, memory_bytes)))
    inner = begins[np.searchsorted(total, np.arange(1, n_parts) * (total[-1] / n_parts))]
    cuts: list[int] = np.unique([0, *inner, n]).tolist()
    return cuts


def _merge_candidates(first: Candidates, second: Candidates) -> Candidates:
    """Return the best candidates of two parts; `first` contains the peptides with lower indices."""
    peptide, matches = np.hstack((first.peptide, second.peptide)), np.hstack((first.matches, second.matches))
    order = np.argsort(-matches, axis=1, kind="stable")[:, : first.peptide.shape[1]]
    return Candidates(np.take_along_axis(peptide, order, 1), np.take_along_axis(matches, order, 1))


class SpectraAgainstMassLists(PredictableWorkloadType):
    """Workload type whose items are queries; its result has the candidates of each query."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return modified_search.synthetic_workload.sample_lists(size, seed)

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of candidates in the mass window of each query, plus one."""
        masses, per_dalton = workload.sources["queries"]["mass"], workload.settings["per_dalton"]
        precursors = workload.sources["candidates"]["precursors"]
        bounds = (np.ceil((masses - workload.settings[name]) * per_dalton) for name in ("high", "low"))
        ends = [search_integers(precursors, bound) for bound in bounds]
        return 1.0 + (ends[1] - ends[0]).astype(np.float64)

    def operations(self, workload: Workload, state: Any, gpu: GpuShape | None) -> float:
        """Return the estimated number of masses that queries and candidates share by chance, plus the number of candidates' masses."""
        candidates, spectra = workload.sources["candidates"], workload.sources["spectra"]
        n, n_queries = max(1, len(candidates["precursors"])), max(1, len(workload.sources["queries"]["mass"]))
        units = max(1.0, float(np.max(candidates["precursors"], initial=1)))
        met = float(self.costs(workload, state).sum()) * len(candidates["masses"]) / n * 4.0 * len(spectra["mz"]) / n_queries / units
        return met + len(candidates["masses"])

    @contextmanager
    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Copy the mass lists of the candidates to the device and yield the computation."""
        yield _Computation(workload, device)

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return a result without candidates."""
        return _no_rows(workload, n)


def _no_rows(workload: Workload, n: int) -> dict[str, NDArray[Any]]:
    n_candidates = workload.settings["n_candidates"]
    return {"candidate": np.full((n, n_candidates), -1, np.int64), "score": np.zeros((n, n_candidates), np.int32)}


class _Computation:
    """Search of queries on one device, which holds the mass lists of the candidates."""

    def __init__(self, workload: Workload, device: Device) -> None:
        sources = workload.sources
        self._workload, self._spectra = workload, SpectrumArrays(**sources["spectra"])
        self._queries, self._settings = QueryArrays(**sources["queries"]), ScoringSettings(**sources["settings"])
        self._lists = ListSettings(**{name: workload.settings[name] for name in ListSettings._fields})
        self._threads = device.threads if isinstance(device, Processor) else available_threads()
        self._scores = backend_module(device, "match_scores").MatchScores(device, MassLists(**sources["candidates"]))

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Prepare the search of all queries."""
        if items is not None:
            raise ValueError("all queries are searched by their mass lists")

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Search the queries `first:last`; yield partial results."""
        n_candidates = self._workload.settings["n_candidates"]
        for begun in range(first, last, _QUERIES_AT_ONCE):
            stop = min(last, begun + _QUERIES_AT_ONCE)
            some = QueryArrays(self._queries.spectrum[begun:stop], self._queries.charge[begun:stop], self._queries.mass[begun:stop])
            lists = query_lists(self._spectra, some, self._settings, self._lists, self._threads)
            rows, done = _no_rows(self._workload, stop - begun), 0
            with closing(self._scores.search(lists, self._lists.window, n_candidates, rows["candidate"], rows["score"])) as ends:
                for end in ends:
                    yield PartialResult(begun + end, {name: column[done:end] for name, column in rows.items()})
                    done = end
