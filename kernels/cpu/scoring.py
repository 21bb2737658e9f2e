"""Search of spectra against the mass-sorted peptide dictionary on CPU threads: candidates, modified forms and scores.

Counterpart of `proteoscope.kernels.cuda.scoring` with bit-identical hits. Compiled functions are in `proteoscope.kernels.cpu.candidates`
and `proteoscope.kernels.cpu.scores`.
"""

from __future__ import annotations

import sys
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.counts import CANDIDATES_OF_PARTITION, COST_OF_QUERY
from proteoscope.kernels.cpu import candidates
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.scores import NONE
from proteoscope.kernels.device import Partition, StopFlag, equal_partitions
from proteoscope.kernels.layouts import (
    HitArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoringSettings,
    SpectrumArrays,
)
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["MAXIMUM_PEAKS", "SpectrumSearch"]

MAXIMUM_PEAKS = (sys.maxsize,) * len(SCORE_KINDS)
"""Maximum number of peaks of a searched spectrum for each score (unlimited)."""

_QUERIES_COUNTED = 4096  # queries per thread between two checks for a cancel


class SpectrumSearch:
    """Search of spectra against a peptide dictionary.

    Parameters
    ----------
    device
        CPU whose threads search.
    peptides, modifications, settings
        Tuples of arrays of `proteoscope.kernels.layouts`.

    Attributes
    ----------
    candidates_of_partition
        Number of candidates that one thread scores in about a tenth of a second, the time between two progress reports.
    """

    candidates_of_partition = CANDIDATES_OF_PARTITION

    def __init__(self, device: Processor, peptides: PeptideArrays, modifications: ModificationArrays, settings: ScoringSettings) -> None:
        self._device, self._peptides, self._modifications, self._settings = device, peptides, modifications, settings

    def count_candidates(self, queries: QueryArrays, first: int, last: int, out: NDArray[np.int64]) -> None:
        """Write the number of unmodified peptides in the mass windows of each of the queries `first:last` to `out`.

        The number is summed over all combinations and isotope errors; `out` has shape (q,), int64. This is the pre-calculation of Li 2014:
        queries are divided into partitions of equal sums.
        """

        def count(begun: int, stop: int, flag: StopFlag) -> None:
            candidates.count_candidates(queries, self._peptides.mass, self._modifications, self._settings, begun, stop, out)

        chunks = [Partition(start, min(last, start + _QUERIES_COUNTED), 1.0) for start in range(first, last, _QUERIES_COUNTED)]
        for _ in self._device.run(count, chunks, first):
            pass

    def search_queries(
        self, spectra: SpectrumArrays, queries: QueryArrays, hits: HitArrays, first: int, last: int
    ) -> Generator[int, None, None]:
        """Score every candidate of the queries `first:last`; store the best of each query in its row of `hits`.

        Candidates of a query are the peptides, with any allowed combination of variable modifications, whose mass matches the query mass
        at one of the isotope errors.

        Yields the end of the finished range a few times a second; all rows of `hits` before it are written. Closing the generator stops the
        search within a tenth of a second.

        Raises
        ------
        UnsupportedSearchError
            If the search exceeds the limits of the device.
        DeviceError
            If the device fails. Rows from the last yielded end on are undefined.
        """
        cost = np.zeros(len(queries.mass), np.int64)
        self.count_candidates(queries, first, last, cost)

        def search(begun: int, stop: int, flag: StopFlag) -> None:
            _empty(hits, begun, stop)
            candidates.search_queries(spectra, queries, self._peptides, self._modifications, self._settings, hits, begun, stop, flag)

        cuts = equal_partitions(cost[first:last] + COST_OF_QUERY, self._device.threads, maximum_cost=self.candidates_of_partition)
        yield from self._device.run(search, [Partition(first + cut.first, first + cut.last, cut.cost) for cut in cuts], first)


def _empty(hits: HitArrays, first: int, last: int) -> None:
    """Reset the hits of the queries `first:last`."""
    for column, nothing in (
        (hits.score, -np.inf),
        (hits.peptide, -1),
        (hits.isotope_error, 0),
        (hits.site, NONE),
        (hits.modification, NONE),
        (hits.n_candidates, 0),
        (hits.histogram, 0),
    ):
        column[first:last] = nothing
