"""Match scores of spectra on the CPU: best candidates of each query, found with an index of masses.

The index of Carroll's thesis (Algorithms 9 and 10) lists, for each mass, the candidates that have it; the lists of a query's masses are
visited. The thesis builds the lists again for each shift. Here, a second set of lists, by the difference from the precursor mass, serves
all shifts and queries. With n masses of a query and m of each of r candidates, methods without an index
(`proteoscope.kernels.cpu.match_score_variants`) need r (n + m) or r m steps. The index needs n p steps; p, the mean number of candidates
per mass, is far less than r. The index is built as soon as searching with bit vectors would have taken as long as building it.

Candidates with adjacent masses form a chunk with separate lists, so that its counters stay in the cache of a core while queries visit it.
Adjacent occurring masses (a peak with its tolerance) are one range of postings. Memory: 4 bytes per candidate mass, and 4 per occurring
mass (counted up from zero and down from precursors) in each chunk of 65,536 candidates. If the masses have so high a resolution that hardly
any two are equal, the second number becomes too large; then no index is built, and queries are searched as bit vectors.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from proteoscope.kernels.cpu.ion_lookup import count_bits, fetch_early
from proteoscope.kernels.cpu.mass_lists import counting_candidates
from proteoscope.kernels.cpu.match_score_variants import score_by_vector
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.device import Partition, StopFlag, equal_partitions
from proteoscope.kernels.match_score_layouts import (
    CANDIDATES_OF_CHUNK,
    MassLists,
    MassRows,
    candidate_ranges,
    counting,
    maximum_matches,
    score_type,
)

__all__ = ["MatchScores"]

# Nanoseconds of one thread, measured with benchmarks/match_scores.py. Only their ratios matter.
_PER_LOOKUP = 2.0  # bit vectors: both look-ups of a mass
_PER_PLACED = 35.0  # building the index: a mass, which has two postings
_PER_RANGE = 25.0  # index: finding the postings of a query's mass in a chunk
_PER_POSTING = 1.5
_PER_COUNTER = 0.05
_NANOSECONDS_OF_PARTITION = 1e9  # many queries share a chunk in the cache; checks for a cancel are between partitions
_PARTITIONS_OF_THREAD = 4
_GROUP = 128  # number of counters that are compared together


class _Index(NamedTuple):
    """Postings of all chunks.

    The rows of a chunk are the masses of all candidates, followed by the differences between precursor mass and masses of all candidates.

    Attributes
    ----------
    chunk_size
        Number of candidates of a chunk.
    first : (c + 1,) int64
        First posting of each chunk.
    start : (c, rows + 2) uint32
        First posting of each row, relative to the first posting of the chunk; two more elements are needed while `_build` counts.
    posting : (p,) uint16
        Index of the candidate, relative to the first candidate of the chunk.
    """

    chunk_size: int
    first: NDArray[np.int64]
    start: NDArray[np.uint32]
    posting: NDArray[np.uint16]


class _Ranges(NamedTuple):
    """Ranges of rows `low:high` of queries; query q has the ranges with the indices `offsets[q]:offsets[q + 1]`."""

    offsets: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


@njit(nogil=True, cache=True)
def _mark(lists, first, last, bits, bits_below):
    """Set the bits of the masses in the lists `first:last`, and of their differences from the precursor mass."""
    for j in range(first, last):
        precursor = np.int64(lists.precursors[j])
        for i in range(lists.offsets[j], lists.offsets[j + 1]):
            mass, below = np.uint64(lists.masses[i]), np.uint64(precursor - np.int64(lists.masses[i]))
            bits[mass >> np.uint64(6)] |= np.uint64(1) << (mass & np.uint64(63))
            bits_below[below >> np.uint64(6)] |= np.uint64(1) << (below & np.uint64(63))


@njit(nogil=True, cache=True)
def _row(rows, mass):
    """Return the row of a non-negative mass, or -1."""
    word, bit = np.uint64(mass) >> np.uint64(6), np.uint64(mass) & np.uint64(63)
    if word >= np.uint64(len(rows.bits)) or not rows.bits[word] >> bit & np.uint64(1):
        return np.int64(-1)
    return rows.before[word] + count_bits(rows.bits[word] & ((np.uint64(1) << bit) - np.uint64(1)))


@njit(nogil=True, cache=True)
def _build(lists, rows, rows_below, n_rows, index, chunk):
    """Write the postings of a chunk."""
    first = chunk * index.chunk_size
    last = min(len(lists.precursors), first + index.chunk_size)
    start, postings, unit = index.start[chunk], index.posting[index.first[chunk] : index.first[chunk + 1]], np.uint32(1)
    start[:] = 0
    for j in range(first, last):
        for i in range(lists.offsets[j], lists.offsets[j + 1]):
            mass = np.int64(lists.masses[i])
            start[_row(rows, mass) + 2] += unit
            start[n_rows + _row(rows_below, lists.precursors[j] - mass) + 2] += unit
    for r in range(2, len(start)):
        start[r] += start[r - 1]
    # Counts are stored shifted by one element: after the postings are placed, the cursors of the rows are their start indices.
    for j in range(first, last):
        for i in range(lists.offsets[j], lists.offsets[j + 1]):
            mass = np.int64(lists.masses[i])
            r = _row(rows, mass) + 1
            postings[start[r]] = j - first
            start[r] += unit
            r = n_rows + _row(rows_below, lists.precursors[j] - mass) + 1
            postings[start[r]] = j - first
            start[r] += unit


@njit(nogil=True, cache=True)
def _ranges(queries, first, last, rows, rows_below, n_rows):
    """Return the ranges of rows of the queries `first:last`, excluding masses that no candidate has."""
    most = 2 * (queries.offsets[last] - queries.offsets[first])
    offsets, low, high, n = np.zeros(last - first + 1, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), 0
    for q in range(first, last):
        end = np.int64(-1)
        for i in range(queries.offsets[q], queries.offsets[q + 1]):
            row = _row(rows, np.int64(queries.masses[i]))
            if row >= 0:
                if row != end:
                    low[n] = row
                    n += 1
                end = row + 1
                high[n - 1] = end
        end = np.int64(-1)
        for i in range(queries.offsets[q + 1] - 1, queries.offsets[q] - 1, -1):
            row = _row(rows_below, np.int64(queries.precursors[q]) - np.int64(queries.masses[i]))
            if row >= 0:
                if row != end:
                    low[n] = n_rows + row
                    n += 1
                end = row + 1
                high[n - 1] = n_rows + end
        offsets[q - first + 1] = n
    return _Ranges(offsets, low[:n].copy(), high[:n].copy())


@njit(nogil=True, cache=True)
def _count(index, chunk, ranges, q, begin, end, counter):
    """Write the match scores of a query with the candidates of a chunk to `counter`, initially 0; `begin` and `end` are workspace."""
    first, start, n = index.first[chunk], index.start[chunk], 0
    # Do all look-ups before visiting postings, so that their memory accesses overlap.
    for s in range(ranges.offsets[q], ranges.offsets[q + 1]):
        low, high = np.int64(start[ranges.low[s]]), np.int64(start[ranges.high[s]])
        if low < high:
            begin[n], end[n] = first + low, first + high
            fetch_early(index.posting, first + low)
            n += 1
    posting, unit = index.posting, counter.dtype.type(1)
    for s in range(n):
        for i in range(begin[s], end[s]):
            counter[posting[i]] += unit


@njit(nogil=True, cache=True)
def _whole_groups(n):
    """Return n rounded up to a multiple of `_GROUP`, the number of counters that `_keep` processes together."""
    return -(-n // _GROUP) * _GROUP


@njit(nogil=True, cache=True)
def _has_above(group, worst):
    """Return True if one of `_GROUP` counters exceeds `worst`, in 8-bit arithmetic, which uses vector instructions."""
    has = np.uint8(0)
    for i in range(_GROUP):
        has = np.uint8(has | np.uint8(group[i] > worst))
    return has


@njit(nogil=True, cache=True)
def _keep(counter, low, high, start, candidates, scores):
    """Insert the candidates `start + low:start + high` into the best.

    Candidates that were found earlier have smaller indices. Therefore they precede new candidates with equal scores.

    `counter` consists of complete groups.
    """
    top = len(scores)
    worst = counter.dtype.type(scores[top - 1])
    for at in range(low // _GROUP * _GROUP, high, _GROUP):
        if _has_above(counter[at : at + _GROUP], worst):
            for i in range(max(low, at), min(high, at + _GROUP)):
                if counter[i] > worst:
                    score, position = np.int32(counter[i]), top - 1
                    while position > 0 and scores[position - 1] < score:
                        scores[position], candidates[position] = scores[position - 1], candidates[position - 1]
                        position -= 1
                    scores[position], candidates[position] = score, start + i
                    worst = counter.dtype.type(scores[top - 1])


@njit(nogil=True, cache=True)
def _search_by_index(index, ranges, windows, first, counter, candidates, scores, stop):
    """Search queries in all chunks that overlap their windows; row 0 of `ranges` belongs to query `first`."""
    most = np.int64(0)
    for q in range(len(ranges.offsets) - 1):
        most = max(most, ranges.offsets[q + 1] - ranges.offsets[q])
    begin, end = np.empty(most, np.int64), np.empty(most, np.int64)
    for chunk in range(len(index.first) - 1):
        start = chunk * index.chunk_size
        for q in range(len(ranges.offsets) - 1):
            low, high = max(np.int64(0), windows[first + q, 0] - start), min(index.chunk_size, windows[first + q, 1] - start)
            if low < high:
                if stop[0]:
                    return
                counter[:] = 0
                _count(index, chunk, ranges, q, begin, end, counter)
                _keep(counter, low, high, start, candidates[first + q], scores[first + q])


@njit(nogil=True, cache=True)
def _score_by_index(index, ranges, first, counter, scores, stop):
    """Write all match scores of queries, with counters of the type of `scores` (q, n); row 0 of `ranges` belongs to query `first`."""
    most = np.int64(0)
    for q in range(len(ranges.offsets) - 1):
        most = max(most, ranges.offsets[q + 1] - ranges.offsets[q])
    begin, end = np.empty(most, np.int64), np.empty(most, np.int64)
    for chunk in range(len(index.first) - 1):
        start = chunk * index.chunk_size
        n = min(index.chunk_size, scores.shape[1] - start)
        for q in range(len(ranges.offsets) - 1):
            if stop[0]:
                return
            counter[:] = 0
            _count(index, chunk, ranges, q, begin, end, counter)
            scores[first + q, start : start + n] = counter[:n]


@njit(nogil=True, cache=True)
def _search_by_vector(queries, first, last, lists, windows, candidates, scores, stop):
    """Search the queries `first:last` as bit vectors, candidate by candidate."""
    most = np.int64(0)
    for q in range(first, last):
        most = max(most, windows[q, 1] - windows[q, 0])
    result = np.empty(_whole_groups(most), np.int32)
    for q in range(first, last):
        if stop[0]:
            return
        low, high = windows[q]
        score_by_vector(queries, q, lists, low, high, result, stop)
        _keep(result, 0, high - low, low, candidates[q], scores[q])


class MatchScores:
    """Search of candidates by match score on the CPU.

    Parameters
    ----------
    device
        CPU whose threads search.
    candidates
        Mass lists in ascending order of precursor mass.

    Raises
    ------
    ValueError
        If the candidates are not in ascending order.

    Attributes
    ----------
    candidates_of_chunk
        Number of candidates per chunk, at most 65,536.
    lookups_per_indexed_mass
        Number of look-ups in bit vectors that cost as much as indexing one mass.
    maximum_starts
        Maximum number of bytes of row starts per byte of postings.
    nanoseconds_of_partition
        Time of one thread between two checks for cancellation, ns.
    """

    candidates_of_chunk = CANDIDATES_OF_CHUNK
    lookups_per_indexed_mass = _PER_PLACED / _PER_LOOKUP
    maximum_starts = 8.0
    nanoseconds_of_partition = _NANOSECONDS_OF_PARTITION

    def __init__(self, device: Processor, candidates: MassLists) -> None:
        self._device = device
        self._lists, self._longest = counting_candidates(candidates, device.threads)
        n = len(candidates.precursors)
        self._chunk_size = max(1, min(n, self.candidates_of_chunk, (1 << 32) // (2 * self._longest + 1)))  # `start` has 32 bits
        self._n_lookups = 0.0  # number of candidate masses looked up with bit vectors
        self._index: _Index | None = None
        self._is_fine = False  # masses have so high a resolution that no index is built
        self._rows = self._rows_below = MassRows.from_bits(np.zeros(1, np.uint64))

    def search(
        self,
        queries: MassLists,
        window: tuple[int, int],
        top: int,
        candidate: NDArray[np.int64],
        score: NDArray[np.int32],
        first: int = 0,
        last: int | None = None,
    ) -> Generator[int, None, None]:
        """Find the candidates with the highest match scores for each of the queries `first:last`.

        The best candidate comes first; candidates with equal scores are sorted by index.

        Parameters
        ----------
        window
            Minimum and maximum shift (query precursor mass minus candidate precursor mass), inclusive.
        top
            Number of candidates to find, at least 1.
        candidate, score : (q, top)
            Output; rows `first:last` are written. -1 and 0 if fewer candidates match.

        Yields
        ------
        End of the finished range, at least every tenth of a second. Closing the generator stops the work.
        """
        last = len(queries.precursors) if last is None else last
        lists, counted = self._lists, counting(queries)
        windows = candidate_ranges(lists, counted, window)
        candidate[first:last], score[first:last] = -1, 0
        lookups = (lists.offsets[windows[:, 1]] - lists.offsets[windows[:, 0]]).astype(np.float64)[first:last]
        if self._index is None and not self._is_fine:
            self._n_lookups += float(lookups.sum())
            if self._n_lookups > self.lookups_per_indexed_mass * len(lists.masses):
                yield from self._build(first)
        index, kind = self._index, score_type(maximum_matches(counted, self._longest))

        def work(begin: int, end: int, stop: StopFlag) -> None:
            begin, end = first + begin, first + end
            if index is None:
                _search_by_vector(counted, begin, end, lists, windows, candidate, score, stop)
                return
            ranges = self._ranges(counted, begin, end)
            counter = np.zeros(_whole_groups(index.chunk_size), kind)
            _search_by_index(index, ranges, windows, begin, counter, candidate, score, stop)

        cost = lookups * _PER_LOOKUP if index is None else self._costs(counted, windows)[first:last]
        chunks = equal_partitions(cost, self._device.threads, maximum_cost=self.nanoseconds_of_partition, per_worker=_PARTITIONS_OF_THREAD)
        for done in self._device.run(work, chunks, 0):
            yield first + done
        if first == last:
            yield last

    def score(
        self, queries: MassLists, scores: NDArray[np.unsignedinteger], first: int = 0, last: int | None = None
    ) -> Generator[int, None, None]:
        """Write the match scores of the queries `first:last` with all candidates, at any shift, to rows of `scores` (q, n), unsigned.

        Yields the end of the finished range, like `search`.

        Raises
        ------
        ValueError
            If the type of `scores` cannot hold a score.
        """
        last = len(queries.precursors) if last is None else last
        counted = counting(queries)
        if maximum_matches(counted, self._longest) > np.iinfo(scores.dtype).max:
            raise ValueError(f"scores of up to {maximum_matches(counted, self._longest)} do not fit into {scores.dtype}")
        if self._index is None and not self._is_fine:
            yield from self._build(first)
        lists, index = self._lists, self._index

        def work(begin: int, end: int, stop: StopFlag) -> None:
            if index is None:
                for q in range(first + begin, first + end):
                    score_by_vector(counted, q, lists, 0, len(lists.precursors), scores[q], stop)
                return
            ranges = self._ranges(counted, first + begin, first + end)
            _score_by_index(index, ranges, first + begin, np.zeros(index.chunk_size, scores.dtype), scores, stop)

        every = np.tile((0, len(lists.precursors)), (len(counted.precursors), 1))
        cost = np.full(last - first, len(lists.masses) * _PER_LOOKUP) if index is None else self._costs(counted, every)[first:last]
        chunks = equal_partitions(cost, self._device.threads, maximum_cost=self.nanoseconds_of_partition, per_worker=_PARTITIONS_OF_THREAD)
        for done in self._device.run(work, chunks, 0):
            yield first + done
        if first == last:
            yield last

    def _ranges(self, queries: MassLists, first: int, last: int) -> _Ranges:
        return _ranges(queries, first, last, self._rows, self._rows_below, self._rows.n)

    def _costs(self, queries: MassLists, windows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the estimated time of each query with the index on one thread, (q,), ns."""
        assert self._index is not None
        candidates = (windows[:, 1] - windows[:, 0]).astype(np.float64)
        chunks = np.where(candidates > 0, candidates / self._index.chunk_size + 1.0, 0.0)
        rows, n = max(1, self._rows.n + self._rows_below.n), len(self._lists.precursors)
        postings = len(self._index.posting) / rows * candidates / max(1, n)
        return chunks * (_PER_RANGE * 2 * np.diff(queries.offsets) + _PER_COUNTER * self._index.chunk_size) + (
            2 * np.diff(queries.offsets) * postings * _PER_POSTING
        )

    def _build(self, reported: int) -> Generator[int, None, None]:
        """Build the index, unless it would be too large because hardly any masses are equal; yield `reported` repeatedly."""
        lists, size, threads = self._lists, self._chunk_size, self._device.threads
        n_chunks = -(-len(lists.precursors) // size)
        words = max(0, int(lists.precursors.max(initial=0))) // 64 + 1
        marked: list[NDArray[np.uint64]] = []

        def mark(first: int, last: int, stop: StopFlag) -> None:
            bits = np.zeros((2, words), np.uint64)
            _mark(lists, first, last, bits[0], bits[1])
            marked.append(bits)

        for _ in self._device.run(mark, equal_partitions(np.diff(lists.offsets), threads, per_worker=1), 0):
            yield reported
        bits = marked.pop() if marked else np.zeros((2, words), np.uint64)
        for others in marked:  # in place, since these arrays are large for masses of high resolution
            bits |= others
        self._rows, self._rows_below = MassRows.from_bits(bits[0]), MassRows.from_bits(bits[1])
        n_rows = self._rows.n + self._rows_below.n
        self._is_fine = n_chunks * (n_rows + 2) > self.maximum_starts * len(lists.masses)  # four bytes each
        if self._is_fine:
            return
        ends = lists.offsets[np.minimum(np.arange(n_chunks + 1) * size, len(lists.precursors))]
        index = _Index(size, 2 * ends, np.empty((n_chunks, n_rows + 2), np.uint32), np.empty(2 * len(lists.masses), np.uint16))

        def build(first: int, last: int, stop: StopFlag) -> None:
            for chunk in range(first, last):
                if not stop[0]:
                    _build(lists, self._rows, self._rows_below, self._rows.n, index, chunk)

        for _ in self._device.run(build, [Partition(chunk, chunk + 1, 1.0) for chunk in range(n_chunks)], 0):
            yield reported
        self._index = index
