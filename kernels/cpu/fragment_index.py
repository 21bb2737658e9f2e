"""Fragment-ion index on CPU threads, for wide precursor windows.

The method follows MSFragger (Kong 2017, Nature Methods 14:513): instead of looking up the ions of every candidate among the peaks, all ions
are sorted by mass, and for each peak the matching ions are visited. Integer counters give the scores of `proteoscope.kernels.cpu.scores` to
about a thousandth. This accuracy is sufficient to select slightly more candidates than requested. Their exact scores are computed by
`proteoscope.kernels.cpu.candidates.score_candidates`.

Counterpart of `proteoscope.kernels.cuda.fragment_index` with bit-identical results. Compiled functions are in
`proteoscope.kernels.cpu.postings`.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.counts import CROWDING, NANOSECONDS_OF_PARTITION, fragment_index_search
from proteoscope.kernels.cpu.peptidoforms import peptidoform_code
from proteoscope.kernels.cpu.postings import build_chunks, empty_index, search_chunks
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Partition, StopFlag, equal_partitions
from proteoscope.kernels.layouts import (
    KEYS_OF_DALTON,
    PEPTIDOFORMS_OF_CHUNK,
    BestArrays,
    FragmentIndexArrays,
    IndexHits,
    ModificationArrays,
    PeptideArrays,
    ScoreTables,
    ScoringSettings,
    SegmentArrays,
)

__all__ = ["FragmentSearch"]

_CHUNKS_BUILT = 4  # number of chunks that a thread builds with the same sorting buffer


class FragmentSearch:
    """Fragment-ion index of peptidoforms, and search of spectra in it.

    Parameters
    ----------
    device
        CPU whose threads build and search the index.
    peptides, modifications, settings
        Tuples of arrays of `proteoscope.kernels.layouts`.
    form_mass, form_number : (f,) float64
        Mass in dalton, ascending, and number, (f,) int64, of each peptidoform, from
        `proteoscope.kernels.cpu.peptidoforms.list_peptidoforms`.

    Raises
    ------
    DeviceMemoryError
        If the device has no memory for the proteins and a small section of the index.
    DeviceError
        If the search exceeds the limits of the device, or the device fails.

    Attributes
    ----------
    nanoseconds_of_partition
        Time of one thread between two progress reports, ns.
    """

    nanoseconds_of_partition = NANOSECONDS_OF_PARTITION

    def __init__(
        self,
        device: Processor,
        peptides: PeptideArrays,
        modifications: ModificationArrays,
        settings: ScoringSettings,
        form_mass: NDArray[np.float64],
        form_number: NDArray[np.int64],
    ) -> None:
        self._device, self._peptides, self._modifications, self._settings = device, peptides, modifications, settings
        self._code = peptidoform_code(peptides, modifications)
        self._form_mass, self._form_number = form_mass, form_number
        self._index: FragmentIndexArrays | None = None

    def build(self) -> Generator[int, None, None]:
        """Build the section of the index that fits into the memory of the device; a CPU builds all of it.

        Yields the number of indexed peptidoforms a few times a second. Closing the generator stops the computation and discards the index,
        which the first search then builds.
        """
        if self._index is not None:
            yield len(self._form_mass)
            return
        index = empty_index(self._peptides, self._modifications, self._settings, self._form_mass, self._form_number)
        n_chunks = len(index.chunk_start) - 1

        def build(first: int, last: int, stop: StopFlag) -> None:
            build_chunks(self._peptides, self._modifications, self._settings, self._code, index, first, last, stop)

        chunks = [Partition(start, min(n_chunks, start + _CHUNKS_BUILT), 1.0) for start in range(0, n_chunks, _CHUNKS_BUILT)]
        for chunk in self._device.run(build, chunks, 0):
            yield min(len(self._form_mass), chunk * PEPTIDOFORMS_OF_CHUNK)
        self._index = index

    def search_chunks(
        self,
        segments: SegmentArrays,
        windows: NDArray[np.int64],
        tables: ScoreTables,
        first: int,
        last: int,
        best: BestArrays,
        histogram: NDArray[np.int32],
        histogram_width: float,
        n_candidates: NDArray[np.int64],
    ) -> Generator[int, None, None]:
        """Search the queries `first:last`; update their best candidates, histograms and numbers of candidates.

        Row 0 of `segments` and `windows` (q, e, 2) belongs to query `first`; the other arrays have rows for all queries. Results are added
        to `best`, `histogram` (q, b) int32 and `n_candidates` (q,) int64; b is at most 256. Queries without peaks have no candidates.

        Yields the end of the finished range a few times a second: all rows before it are written. Queries in the order of mass are finished
        one after the other. Closing the generator stops the search within a tenth of a second.

        Raises
        ------
        DeviceError
            If the device failed, or the search exceeds its limits. Rows after the last yielded end are undefined.
        """
        for _ in self.build():
            yield first
        index, offsets, result = self._index, segments.offsets, IndexHits(best, histogram, histogram_width, n_candidates)
        assert index is not None

        def search(begun: int, stop: int, flag: StopFlag) -> None:
            segment_rows = slice(offsets[begun - first], offsets[stop - first])
            of_partition = SegmentArrays(
                offsets[begun - first : stop - first + 1] - segment_rows.start,
                segments.low[segment_rows],
                segments.high[segment_rows],
                segments.weight[segment_rows],
            )
            search_chunks(
                index, of_partition, windows[begun - first : stop - first], tables, self._code, self._settings, begun, stop, result, flag
            )

        cost = self._nanoseconds(index, segments, windows)
        cuts = equal_partitions(cost, self._device.threads, maximum_cost=self.nanoseconds_of_partition)
        yield from self._device.run(search, [Partition(first + cut.first, first + cut.last, cut.cost) for cut in cuts], first)

    def _nanoseconds(self, index: FragmentIndexArrays, segments: SegmentArrays, windows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the approximate nanoseconds of one thread for each query."""
        forms = np.maximum(windows[..., 1] - windows[..., 0], 0).sum(axis=1)
        keys = np.concatenate(([0], np.cumsum(segments.high.astype(np.int64) - segments.low)))
        heaviest = float(index.form_mass[-1]) if len(index.form_mass) else 100.0
        covered = np.minimum(1.0, CROWDING * np.diff(keys[segments.offsets]) / (KEYS_OF_DALTON * max(heaviest, 100.0)))
        ions = len(index.key) / max(1, len(index.form_mass))
        has_any = (forms > 0) & (np.diff(segments.offsets) > 0)
        return np.where(has_any, fragment_index_search(forms, ions, 1, covered), 0.0)
