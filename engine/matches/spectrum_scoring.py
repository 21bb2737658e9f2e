"""Workload type that scores each spectrum against every candidate in the peptide index."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import matches
from proteoscope.engine.execution.workload import PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.device import Device, backend_module
from proteoscope.kernels.layouts import HitArrays, ModificationArrays, PeptideArrays, QueryArrays, ScoringSettings, SpectrumArrays

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.scoring import SpectrumSearch

__all__ = ["KIND", "SpectraAgainstPeptides", "create_workload", "view_hits"]

KIND = "spectra"
_COUNTED_TOGETHER = 1 << 16  # queries between checks for cancellation
_HISTOGRAM_BINS = 96
_NONE = 255


def create_workload(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    modifications: ModificationArrays,
    settings: ScoringSettings,
    *,
    hits_per_query: int,
    slots: int,
    histogram_width: float,
) -> Workload:
    """Return a workload that scores queries against peptides.

    A first round with the state ``{"phase": "count"}`` counts candidates. A second round scores the candidates; its state contains the
    phase ``search`` and the ``cost`` of each query.

    Parameters
    ----------
    index : SpectrumIndex
        Spectra and queries.
    peptides : PeptideArrays
        Peptides to search, in order of mass.
    modifications : ModificationArrays
        Modification combinations of the peptides.
    settings : ScoringSettings
        Settings of the scoring kernels.
    hits_per_query : int
        Number of best candidates to return per query.
    slots : int
        Maximum number of modifications of a candidate.
    histogram_width : float
        Bin width of the score histograms.
    """
    return Workload(
        KIND,
        {
            "spectra": index.arrays._asdict(),
            "queries": index.queries._asdict(),
            "peptides": peptides._asdict(),
            "modifications": modifications._asdict(),
            "settings": settings._asdict(),
        },
        {"hits_per_query": hits_per_query, "slots": slots, "histogram_width": histogram_width},
    )


def view_hits(rows: Rows, histogram_width: float) -> HitArrays:
    """Return result rows as the arrays of the kernels, without copying."""
    return HitArrays(**rows, histogram_width=histogram_width)


class SpectraAgainstPeptides(PredictableWorkloadType):
    """Workload type whose items are queries; the result row of a query is its candidate count, or its best candidates."""

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return matches.synthetic_workload.sample_spectra(size, seed)

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the cost of each query: 1 for counting, the cost in `state` for scoring."""
        n = len(workload.sources["queries"]["mass"])
        return np.ones(n) if state["phase"] == "count" else np.asarray(state["cost"], np.float64)

    @contextmanager
    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Load the peptides to the device."""
        yield _Computation(workload, device)

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return n initial rows: zero counts in the counting phase, no candidates in the scoring phase."""
        return {"candidates": np.zeros(n, np.int64)} if state["phase"] == "count" else _no_hits(workload, n)


def _no_hits(workload: Workload, n: int) -> dict[str, NDArray[Any]]:
    n_hits, slots = workload.settings["hits_per_query"], workload.settings["slots"]
    return {
        "score": np.full((n, n_hits), -np.inf, np.float32),
        "peptide": np.full((n, n_hits), -1, np.int64),
        "isotope_error": np.zeros((n, n_hits), np.int8),
        "site": np.full((n, n_hits, slots), _NONE, np.uint8),
        "modification": np.full((n, n_hits, slots), _NONE, np.uint8),
        "n_candidates": np.zeros(n, np.int64),
        "histogram": np.zeros((n, _HISTOGRAM_BINS), np.int32),
    }


def _select_queries(queries: QueryArrays, rows: NDArray[np.int64] | slice) -> QueryArrays:
    return QueryArrays(queries.spectrum[rows], queries.charge[rows], queries.mass[rows])


class _Computation:
    """Counting and scoring of candidates on one device, which stores the peptides."""

    def __init__(self, workload: Workload, device: Device) -> None:
        sources = workload.sources
        self._workload, self._spectra = workload, SpectrumArrays(**sources["spectra"])
        self._all_queries = self._queries = QueryArrays(**sources["queries"])
        parts = (PeptideArrays, "peptides"), (ModificationArrays, "modifications"), (ScoringSettings, "settings")
        self._search: SpectrumSearch = backend_module(device, "scoring").SpectrumSearch(
            device, *(kind(**sources[name]) for kind, name in parts)
        )
        self._is_counting = True

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Start counting or scoring all queries, or only the queries in `items`."""
        self._is_counting = state["phase"] == "count"
        self._queries = self._all_queries if items is None else _select_queries(self._all_queries, items)

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Count or score the candidates of the queries `first:last`; yield partial results."""
        if self._is_counting:
            out = np.zeros(len(self._queries.mass), np.int64)
            for begin in range(first, last, _COUNTED_TOGETHER):
                end = min(last, begin + _COUNTED_TOGETHER)
                self._search.count_candidates(self._queries, begin, end, out)
                yield PartialResult(end, {"candidates": out[begin:end]})
            return
        of_part = _select_queries(self._queries, slice(first, last))
        rows, done = _no_hits(self._workload, last - first), 0
        hits = view_hits(rows, self._workload.settings["histogram_width"])
        with closing(self._search.search_queries(self._spectra, of_part, hits, 0, last - first)) as ends:
            for end in ends:
                yield PartialResult(first + end, {name: column[done:end] for name, column in rows.items()})
                done = end
