"""Workload type that scores spectra with an index of the fragment ions of peptidoforms."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import matches
from proteoscope.engine.execution.workload import GpuShape, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.engine.spectra.spectrum_index import SpectrumIndex
from proteoscope.kernels.counts import fragment_index_building
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.segments import make_segments, precursor_windows, score_tables
from proteoscope.kernels.device import Device, Partition, StopFlag, backend_module
from proteoscope.kernels.layouts import (
    PEPTIDOFORMS_OF_CHUNK,
    BestArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoreTables,
    ScoringSettings,
    SegmentArrays,
    SpectrumArrays,
)

__all__ = ["BYTES_OF_FORM", "BYTES_OF_POSTING", "KIND", "MAXIMUM_FORMS", "SpectraAgainstFragments", "create_workload"]

KIND = "fragment-index"
BYTES_OF_FORM, BYTES_OF_POSTING = 24, 4
MAXIMUM_FORMS = 512 * PEPTIDOFORMS_OF_CHUNK  # limit per CPU index, so that a query takes at most a few hundredths of a second
_BYTES_OF_SEGMENT, _BYTES_OF_SEGMENTS = 10, 64 << 20
_QUERIES_OF_CUT = 512


def create_workload(
    index: SpectrumIndex,
    peptides: PeptideArrays,
    modifications: ModificationArrays,
    settings: ScoringSettings,
    form_mass: NDArray[np.float64],
    form_number: NDArray[np.int64],
    *,
    histogram_width: float,
    index_bytes: int,
    bytes_of_form: float,
    threads: int,
) -> Workload:
    """Return a workload that searches queries in an index of the fragment ions of peptidoforms.

    The state of a round contains the best candidates found so far (`BestArrays`), score histograms, candidate counts, and the ``cost`` of
    each query.

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
    form_mass : ndarray of float64, shape (f,)
        Masses of the peptidoforms, Da, ascending.
    form_number : ndarray of int64, shape (f,)
        Numbers of the peptidoforms, in the order of `form_mass`.
    histogram_width : float
        Bin width of the score histograms.
    index_bytes : int
        Memory limit of the index on the CPU, bytes.
    bytes_of_form : float
        Index memory per peptidoform, bytes.
    threads : int
        Number of CPU threads that prepare the index.
    """
    return Workload(
        KIND,
        {
            "spectra": index.arrays._asdict(),
            "queries": index.queries._asdict(),
            "peptides": peptides._asdict(),
            "modifications": modifications._asdict(),
            "settings": settings._asdict(),
            "forms": {"mass": form_mass, "number": form_number},
        },
        {
            "histogram_width": histogram_width,
            "forms_at_once": min(MAXIMUM_FORMS, max(1, int(index_bytes / bytes_of_form))),
            "threads": threads,
        },
    )


class SpectraAgainstFragments(PredictableWorkloadType):
    """Workload type whose items are queries; each result row holds a query's best candidates."""

    parts_of_worker = 2  # each partition builds an index of the peptidoforms within the precursor windows of its queries

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return matches.synthetic_workload.sample_fragments(size, seed)

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the cost of each query, taken from the state."""
        return np.asarray(state["cost"], np.float64)

    def operations(self, workload: Workload, state: Any, gpu: GpuShape | None) -> float:
        """Return the estimated time for building and searching the index on one thread, ns (see `PredictableWorkloadType`)."""
        lengths, forms = workload.sources["peptides"]["length"], len(workload.sources["forms"]["mass"])
        ions = 2.0 * (float(lengths.mean()) - 1.0) if len(lengths) else 0.0
        return float(self.costs(workload, state).sum()) + fragment_index_building(0.0, forms, forms * ions)

    @contextmanager
    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Yield the computation on `device`. For its queries, it builds indexes of the peptidoforms in their precursor windows."""
        yield _Computation(workload, device)

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return a copy of the best candidates found so far."""
        return {name: column.copy() for name, column in state.items() if name != "cost"}


class _Computation:
    """Search of queries on one device, with fragment indexes that are built for consecutive batches of peptidoforms."""

    def __init__(self, workload: Workload, device: Device) -> None:
        sources = workload.sources
        self._device, self._threads, self._width = device, Processor(workload.settings["threads"]), workload.settings["histogram_width"]
        self._spectra, self._queries = SpectrumArrays(**sources["spectra"]), QueryArrays(**sources["queries"])
        self._settings = ScoringSettings(**sources["settings"])
        self._of_index = (
            PeptideArrays(**sources["peptides"]),
            ModificationArrays(**sources["modifications"]),
            self._settings,
        )
        self._mass: NDArray[np.float64] = sources["forms"]["mass"]
        self._number: NDArray[np.int64] = sources["forms"]["number"]
        self._forms_at_once = workload.settings["forms_at_once"] if device.is_processor else len(self._mass)
        self._tables: ScoreTables = score_tables(self._spectra, self._settings)
        self._state: dict[str, NDArray[Any]] = {}

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Start a round with the best candidates found so far."""
        if items is not None:
            raise ValueError("all queries are searched in a fragment index")
        self._state = state

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Search all peptidoforms with the queries `first:last`; yield partial results."""
        rows = {name: column[first:last].copy() for name, column in self._state.items() if name != "cost"}
        windows = precursor_windows(self._mass, self._queries, self._settings, first, last)
        filled = windows[windows[..., 0] < windows[..., 1]]
        if not len(filled):
            yield PartialResult(last, rows)
            return
        low, high, done = int(filled[:, 0].min()), int(filled[:, 1].max()), first
        for begin in range(low, high, self._forms_at_once):
            end = min(high, begin + self._forms_at_once)
            index = backend_module(self._device, "fragment_index").FragmentSearch(
                self._device, *self._of_index, self._mass[begin:end], self._number[begin:end]
            )
            with closing(index.build()) as built:
                for _ in built:
                    yield PartialResult(done)
            for begun, stop in self._cuts(first, last):
                segments = self._segments(begun, stop)
                of_part = {name: column[begun - first : stop - first] for name, column in rows.items()}
                of_cut = np.clip(windows[begun - first : stop - first] - begin, 0, end - begin)
                result = BestArrays(of_part["score"], of_part["code"]), of_part["histogram"], self._width, of_part["n_candidates"]
                with closing(index.search_chunks(segments, of_cut, self._tables, 0, stop - begun, *result)) as ends:
                    for scored in ends:
                        if end < high:
                            yield PartialResult(done)
                        else:
                            yield PartialResult(
                                begun + scored, {name: column[done - first : begun + scored - first] for name, column in rows.items()}
                            )
                            done = begun + scored

    def _cuts(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Divide the queries `first:last` into consecutive ranges whose m/z segments fit a memory limit, and yield the ranges."""
        queries, settings = self._queries, self._settings
        peaks = np.diff(self._spectra.offsets)[queries.spectrum[first:last]]
        charges = np.maximum(1, np.minimum(settings.maximum_fragment_charge, queries.charge[first:last] - 1))
        total = np.concatenate(([0], np.cumsum(2 * _BYTES_OF_SEGMENT * peaks * charges)))
        begun = 0
        while begun < last - first:
            stop = int(np.searchsorted(total, total[begun] + _BYTES_OF_SEGMENTS, side="right")) - 1
            stop = min(last - first, max(stop, begun + 1))
            yield first + begun, first + stop
            begun = stop

    def _segments(self, first: int, last: int) -> SegmentArrays:
        """Return the m/z segments of the queries `first:last`."""
        made: dict[int, SegmentArrays] = {}

        def make(begun: int, stop: int, flag: StopFlag) -> None:
            made[begun] = SegmentArrays(*make_segments(self._spectra, self._queries, self._settings, self._tables, begun, stop))

        chunks = [Partition(begin, min(last, begin + _QUERIES_OF_CUT), 1.0) for begin in range(first, last, _QUERIES_OF_CUT)]
        for _ in self._threads.run(make, chunks, first):
            pass
        parts = [made[begun] for begun in sorted(made)]
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "weight"))
        return SegmentArrays(np.concatenate(([0], np.cumsum(counts))), *columns)
