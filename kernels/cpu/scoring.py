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
from proteoscope.kernels.device import StopFlag
from proteoscope.kernels.layouts import (
    HitArrays,
    ModificationArrays,
    PeptideArrays,
    QueryArrays,
    ScoringSettings,
    SpectrumArrays,
)
from proteoscope.kernels.partitions import Partition, equal_partitions
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = ["MAXIMUM_PEAKS", "SpectrumSearch"]

MAXIMUM_PEAKS = (sys.maxsize,) * len(SCORE_KINDS)
"""Peaks of a spectrum that can be searched, by score: any number."""

_QUERIES_COUNTED = 4096  # by a thread between two checks for a cancel


class SpectrumSearch:
    """A dictionary, ready to be searched.

    Parameters
    ----------
    device
        Whose threads search.
    peptides, modifications, settings
        Bundles of `proteoscope.kernels.layouts`.

    Attributes
    ----------
    candidates_of_partition
        At most about a tenth of a second of one thread, the time between two steps of the progress.
    """

    candidates_of_partition = CANDIDATES_OF_PARTITION

    def __init__(self, device: Processor, peptides: PeptideArrays, modifications: ModificationArrays, settings: ScoringSettings) -> None:
        self._device, self._peptides, self._modifications, self._settings = device, peptides, modifications, settings

    def count_candidates(self, queries: QueryArrays, first: int, last: int, out: NDArray[np.int64]) -> None:
        """Write the number of unmodified peptides in the mass windows of each query `first:last`, over all combinations and isotope errors.

        `out` (q,) int64, a row for each query. This is the pre-calculation of Li 2014: plans cut the queries where its sums say.
        """

        def count(begun: int, stop: int, flag: StopFlag) -> None:
            candidates.count_candidates(queries, self._peptides.mass, self._modifications, self._settings, begun, stop, out)

        chunks = [Partition(start, min(last, start + _QUERIES_COUNTED), 1.0) for start in range(first, last, _QUERIES_COUNTED)]
        for _ in self._device.run(count, chunks, first):
            pass

    def search_queries(
        self, spectra: SpectrumArrays, queries: QueryArrays, hits: HitArrays, first: int, last: int
    ) -> Generator[int, None, None]:
        """Score every candidate of the queries `first:last` and store the best of each, replacing their rows of `hits`.

        Candidates of a query are the peptides, with any allowed combination of variable modifications, whose mass agrees with the query's
        at one of the isotope errors.

        Yields the end of the finished part, a few times a second: `hits` holds all rows before it. Closing the generator stops the search
        within a tenth of a second.

        Raises
        ------
        UnsupportedSearchError
            The search is beyond the device's sizes.
        DeviceError
            The device failed. Rows from the last yielded end are undefined.
        """
        cost = np.zeros(len(queries.mass), np.int64)
        self.count_candidates(queries, first, last, cost)

        def search(begun: int, stop: int, flag: StopFlag) -> None:
            _empty(hits, begun, stop)
            candidates.search_queries(spectra, queries, self._peptides, self._modifications, self._settings, hits, begun, stop, flag)

        cuts = equal_partitions(cost[first:last] + COST_OF_QUERY, self._device.threads, maximum_cost=self.candidates_of_partition)
        yield from self._device.run(search, [Partition(first + cut.first, first + cut.last, cut.cost) for cut in cuts], first)


def _empty(hits: HitArrays, first: int, last: int) -> None:
    """Clear the hits of the queries `first:last`."""
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
