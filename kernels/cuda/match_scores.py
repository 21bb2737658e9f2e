"""Match scores of spectra on a GPU; counterpart of `proteoscope.kernels.cpu.match_scores`, with the kernels of match_scores.cu.

Carroll's Algorithm 11 reads, for each mass of a query, a row of bits with one element per candidate. If nearly all bits are 0 (a peptide
has a few dozen of about a hundred thousand occurring masses), a row is instead a list of the candidates with this mass, called postings.
The choice depends on the mean number of candidates per mass (`share_for_bits`). Rows and results stay on the device; if they do not fit,
candidates are processed in groups, whose rows are built again.

ATGPU analysis of q queries of n masses and r candidates of m masses in c chunks, with an average of p candidates per mass.
`building_analysis` and `search_analysis` compute these numbers in words of 4 bytes:

* rounds: one for each chunk, and four that build the lists;
* words in: r m and 3 r for candidates, q n and 7 q for queries; words out: 2 q top;
* operations: 4 r m to build postings, 2 r m to set bits; in a search 2 q n p counted postings, or 2 q n r / 32 words of bits;
* memory blocks: 2 q n p / 16 of postings, which are cached for the queries of a chunk, and 2 q n c of their starts, or
  2 q n r / 256 of bits;
* shared memory: the counters of a chunk, 64 KB (32 KB if there is less), and 4 KB.

Device memory: 4 bytes per candidate mass, another 4 while postings are built, and 4 in each chunk for each mass that occurs, counted up
from zero or down from precursors. Rows of bits need one bit per candidate and mass that occurs.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.counts import OperationCounts
from proteoscope.kernels.cpu.mass_lists import counting_candidates
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError, UnsupportedSearchError, available_threads
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

_FILE = "match_scores.cu"
_THREADS = 512
_FOUND = 512
_COUNTER_BYTES = 64 << 10  # shared memory for counters; three blocks fit a multiprocessor
_LIST_THREADS = 32
_SCORE_BYTES = 256 << 20  # memory for all scores of a batch of queries
_MAXIMUM_CANDIDATES = 1 << 32

_LISTS = np.dtype([(name, np.uint64) for name in ("offsets", "masses", "precursors")] + [("before", np.int64), ("n", np.int64)])
"""Layout of the struct Lists in match_scores.cu."""
_ROWS = np.dtype(
    [(name, np.uint64) for name in ("bits", "bits_below", "before", "before_below")] + [(name, np.int32) for name in ("words", "n")]
)
_INDEX = np.dtype(
    [(name, np.uint64) for name in ("starts", "postings", "firsts", "bits")]
    + [("stride", np.int64), ("chunk_size", np.int32), ("columns", np.int32)]
)
_QUERY_COLUMNS = "offsets", "masses", "precursors", "windows", "rows", "best"
_QUERIES = np.dtype([*[(name, np.uint64) for name in _QUERY_COLUMNS], ("n", np.int32), ("top", np.int32)])
_PASS = np.dtype(
    [("scores", np.uint64), ("row_length", np.int64), ("first", np.int64)]
    + [(name, np.int32) for name in ("chunk", "n", "lanes", "planes")]
)


def building_analysis(*, candidates: int, masses: int, rows: int, words: int, chunks: int, by_bits: bool) -> OperationCounts:
    """Return the operations of building the rows of a group of candidates. An operation counts or writes a posting, or sets a bit."""
    in_bytes = 8 * (candidates + 1) + 4 * masses + 4 * candidates + 8 * (chunks + 1) + 8 * (words + 1)
    operations = (2 if by_bits else 4) * masses
    blocks = 4 * masses + operations + (0 if by_bits else chunks * (rows + 2) * 4 * 3 // 32)
    return OperationCounts(2 if by_bits else 4, operations, blocks, -(-in_bytes // 4), 16 * words // 4, 0, 3 + 2 + 2 + 1)


def search_analysis(*, queries: int, masses: int, met: int, chunks: int, top: int, counter_bytes: int, by_bits: bool) -> OperationCounts:
    """Return the operations of a search in rows on the device; `met` is the number of visited postings, or of words of bits."""
    in_bytes = 8 * (queries + 1) + 4 * masses + 4 * queries + 16 * queries
    blocks = met * 4 // 32 if by_bits else met * 2 // 32 + 2 * masses * chunks
    return OperationCounts(chunks, met, blocks, -(-in_bytes // 4), 2 * queries * top, counter_bytes, 4 + 1)


@dataclass(frozen=True)
class _Group:
    """Rows of the chunks `first:last`, as postings or as bits."""

    first: int
    last: int
    rows: MassRows
    rows_below: MassRows
    buffers: dict[str, Any]

    @property
    def stride(self) -> int:
        """Number of rows of a chunk, including two empty rows."""
        return self.rows.n + self.rows_below.n + 2

    @property
    def by_bits(self) -> bool:
        """True if rows are bits, False if they are postings."""
        return "bits_of_rows" in self.buffers


class MatchScores:
    """Search of candidates by match score on a GPU.

    Parameters
    ----------
    device
        GPU.
    candidates
        Mass lists in ascending order of precursor mass, fewer than 2^32.

    Raises
    ------
    ValueError
        If the candidates are not in ascending order.
    UnsupportedSearchError
        If there are 2^32 candidates or more.

    Attributes
    ----------
    candidates_of_chunk, counter_bytes
        Maximum number of candidates of a chunk, and maximum bytes of its counters in shared memory.
    share_for_bits
        Minimum mean fraction of candidates per mass at which rows are bits. It is an estimate: visiting a posting takes 1/9 of a cycle of a
        multiprocessor, visiting a 32-bit word 1/5.
    share_of_free_memory
        Fraction of the free memory that the rows of a group may use.
    queries_of_batch
        Number of queries whose best candidates are on the device at the same time.
    passes_between_checks
        Number of (query, chunk) pairs between two checks for cancellation.
    """

    candidates_of_chunk = CANDIDATES_OF_CHUNK
    counter_bytes = _COUNTER_BYTES
    share_for_bits = 0.05
    share_of_free_memory = 0.6
    queries_of_batch = 1 << 14
    passes_between_checks = 1 << 20

    def __init__(self, device: Gpu, candidates: MassLists) -> None:
        n = len(candidates.precursors)
        if n >= _MAXIMUM_CANDIDATES:
            raise UnsupportedSearchError(f"{n:,} candidates are more than the 2^32 - 1 that GPUs search")
        self._gpu, self._stream = device, device.stream()
        workspace = self.counter_bytes
        while workspace + (8 << 10) > device.maximum_shared_bytes():
            workspace //= 2
        # Use 16-bit counters if the longest candidate requires them; the queries are not known yet.
        self._lists, self._longest = counting_candidates(candidates, available_threads())
        self._bits = 8 if 2 * self._longest < 1 << 8 else 16
        self._chunk_size = max(1, min(n, self.candidates_of_chunk, workspace * 8 // self._bits))
        self._n_chunks = -(-n // self._chunk_size)
        self._resident: _Group | None = None

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
        """Find the candidates with the highest match scores (see `proteoscope.kernels.cpu.match_scores.MatchScores.search`).

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If not even one chunk fits.
        UnsupportedSearchError
            If `top` is above 256, or a score could exceed 65,535.
        """
        last = len(queries.precursors) if last is None else last
        if top > _FOUND // 2:
            raise UnsupportedSearchError(f"GPUs find the best {_FOUND // 2} candidates of a query, not {top}")
        counted = counting(queries)
        self._check(counted)
        candidate[first:last], score[first:last] = -1, 0
        windows = candidate_ranges(self._lists, counted, window)
        try:
            for begin in range(first, last, self.queries_of_batch):
                end = min(last, begin + self.queries_of_batch)
                best = np.empty((end - begin, top), np.uint64)
                batch = self._sent(counted, windows, begin, end, top)
                yield from self._passed(batch, begin)
                self._gpu.download(best, batch.buffers["best"], self._stream)
                self._gpu.wait(self._stream)
                score[begin:end] = best >> np.uint64(32)
                numbers = np.uint64(_MAXIMUM_CANDIDATES - 1) - (best & np.uint64(_MAXIMUM_CANDIDATES - 1))
                candidate[begin:end] = np.where(best > 0, numbers.astype(np.int64), -1)
                yield end
        finally:
            self._gpu.wait(self._stream)
        if first == last:
            yield last

    def score(
        self, queries: MassLists, scores: NDArray[np.unsignedinteger], first: int = 0, last: int | None = None
    ) -> Generator[int, None, None]:
        """Write all match scores of queries (see `proteoscope.kernels.cpu.match_scores.MatchScores.score`).

        Raises
        ------
        DeviceError, DeviceMemoryError, UnsupportedSearchError
            See `search`.
        """
        last = len(queries.precursors) if last is None else last
        counted = counting(queries)
        if maximum_matches(counted, self._longest) > np.iinfo(scores.dtype).max:
            raise ValueError(f"scores of up to {maximum_matches(counted, self._longest)} do not fit into {scores.dtype}")
        self._check(counted)
        n = len(self._lists.precursors)
        windows = np.tile(np.array([0, n]), (len(counted.precursors), 1))
        queries_of_batch = max(1, _SCORE_BYTES // max(1, n * self._bits // 8))
        try:
            for begin in range(first, last, queries_of_batch):
                end = min(last, begin + queries_of_batch)
                result = np.empty((end - begin, n), score_type((1 << self._bits) - 1))
                batch = self._sent(counted, windows, begin, end, 1)
                workspace = self._gpu.buffer(result.nbytes)
                yield from self._passed(batch, begin, workspace)
                self._gpu.download(result, workspace, self._stream)
                self._gpu.wait(self._stream)
                scores[begin:end] = result
                yield end
        finally:
            self._gpu.wait(self._stream)
        if first == last:
            yield last

    def _check(self, queries: MassLists) -> None:
        if maximum_matches(queries, self._longest) >= 1 << 16:
            raise UnsupportedSearchError("GPUs count up to 65,535 matches, and these lists of masses are longer")

    def _sent(self, queries: MassLists, windows: NDArray[np.int64], first: int, last: int, top: int) -> _Batch:
        """Send the queries `first:last` to the device; return a batch of these queries with empty results."""
        offsets = queries.offsets[first : last + 1]
        arrays: dict[str, NDArray] = {
            "offsets": offsets,
            "masses": queries.masses[offsets[0] : offsets[-1]],
            "precursors": queries.precursors[first:last],
            "windows": windows[first:last],
        }
        n_masses = int(offsets[-1] - offsets[0])
        buffers = {"rows": self._gpu.buffer(8 * n_masses), "best": self._gpu.buffer(8 * top * (last - first))}
        buffers |= sent(self._gpu, arrays, self._stream)
        self._gpu.clear(buffers["best"], 8 * top * (last - first), self._stream)
        planes = maximum_matches(queries, self._longest).bit_length()
        return _Batch(last - first, top, planes, windows[first:last], buffers)

    def _passed(self, batch: _Batch, reported: int, scores: Any = 0) -> Generator[int, None, None]:
        """Search a batch of queries in all chunks; yields `reported` between launches."""
        since = 0
        for group in self._groups():
            launched, struct_of_queries = False, struct(self._gpu, _QUERIES, batch.buffers | {"n": batch.n, "top": batch.top})
            postings = 2 * int(self._lists.offsets[self._end(group.last)] - self._lists.offsets[self._end(group.first)])
            of_row = postings / max(1, group.stride * (group.last - group.first))
            lanes = next(width for width in (4, 8, 16, 32) if width >= min(32.0, of_row))
            kernel = "count_by_bits" if group.by_bits else "count_by_postings"
            for chunk in range(group.first, group.last):
                first, end = self._end(chunk), self._end(chunk + 1)
                if not np.any((batch.windows[:, 0] < end) & (batch.windows[:, 1] > first)):
                    continue
                if not launched:
                    blocks = -(-batch.n * _LIST_THREADS // _THREADS)
                    self._launch("find_rows", blocks, (struct_of_queries, self._rows(group)))
                    launched = True
                members = {
                    "scores": scores,
                    "row_length": len(self._lists.precursors),
                    "first": first,
                    "chunk": chunk - group.first,
                    "n": end - first,
                    "lanes": lanes,
                    "planes": batch.planes,
                }
                arguments = self._index(group), struct_of_queries, struct(self._gpu, _PASS, members)
                self._launch(kernel, batch.n, arguments, self._shared_bytes)
                since += batch.n
                if since >= self.passes_between_checks:
                    self._gpu.wait(self._stream)
                    since = 0
                    yield reported
            if self._resident is None:
                self._gpu.wait(self._stream)
                yield reported
            del group  # free its memory before the next group is created

    @property
    def _shared_bytes(self) -> int:
        return -(-self._chunk_size * self._bits // 128) * 16

    def _end(self, chunk: int) -> int:
        """Return the index of the candidate after a chunk."""
        return min(len(self._lists.precursors), chunk * self._chunk_size)

    def _launch(self, kernel: str, blocks: int, arguments: tuple[Any, ...], shared_bytes: int = 0) -> None:
        self._gpu.launch(
            _FILE, kernel, blocks, _THREADS, arguments, self._stream, shared_bytes=shared_bytes, defines=(f"BITS={self._bits}",)
        )

    def _groups(self) -> Generator[_Group, None, None]:
        """Yield groups of candidates that fit on the device."""
        if self._resident is not None:
            yield self._resident
            return
        first, most = 0, self._n_chunks
        while first < self._n_chunks:
            last = min(first + most, self._fitting(first))
            group = None
            with suppress(DeviceMemoryError):
                group = self._made(first, last)
            if group is None:
                self._gpu.wait(self._stream)
                if last - first == 1:
                    raise DeviceMemoryError(f"{self._gpu.name} does not have enough memory for {self._chunk_size:,} candidates")
                most = (last - first) // 2
                continue
            if (first, last) == (0, self._n_chunks):
                self._resident = group
            yield group
            group, first = None, last

    def _fitting(self, first: int) -> int:
        """Return the end (exclusive) of the largest group of chunks from `first` on that fits even if every possible mass occurs."""
        ends = np.array([self._end(chunk) for chunk in range(first, self._n_chunks + 1)])
        masses = self._lists.offsets[ends] - self._lists.offsets[ends[0]]
        rows = np.minimum(2 * masses, 2 * (int(self._lists.precursors.max(initial=0)) + 1))
        taken = 12 * masses + 12 * (ends - ends[0]) + 4 * rows * np.arange(len(ends)) + rows // 5
        return first + max(1, int(np.searchsorted(taken, self._gpu.free_bytes() * self.share_of_free_memory, side="right")) - 1)

    def _made(self, first: int, last: int) -> _Group:
        """Build the rows of the chunks `first:last` on the device.

        Raises
        ------
        DeviceMemoryError
            If the rows do not fit.
        """
        gpu, stream, size = self._gpu, self._stream, self._chunk_size
        begin, end = self._end(first), self._end(last)
        offsets = self._lists.offsets[begin : end + 1]
        raw: dict[str, Any] = {}
        buffers: dict[str, Any] = {}
        try:
            raw = sent(
                gpu,
                {
                    "offsets": offsets,
                    "masses": self._lists.masses[offsets[0] : offsets[-1]],
                    "precursors": self._lists.precursors[begin:end],
                },
                stream,
            )
            lists = struct(gpu, _LISTS, raw | {"before": int(offsets[0]), "n": end - begin})
            words = int(self._lists.precursors[begin:end].max(initial=0)) // 64 + 1
            bits = {name: np.empty(words, np.uint64) for name in ("bits", "bits_below")}
            blocks = -(-(end - begin) * _LIST_THREADS // _THREADS)
            for name in bits:
                buffers[name] = gpu.buffer(8 * words)
                gpu.clear(buffers[name], 8 * words, stream)
            marked = struct(gpu, _ROWS, buffers | {"before": 0, "before_below": 0, "words": words, "n": 0})
            self._launch("mark_masses", blocks, (lists, marked))
            for name, values in bits.items():
                gpu.download(values, buffers[name], stream)
            gpu.wait(stream)
            rows = MassRows.from_bits(bits["bits"]), MassRows.from_bits(bits["bits_below"])
            before = {name: table.before[:-1].astype(np.uint32) for name, table in zip(("before", "before_below"), rows, strict=True)}
            starts = np.minimum(np.arange(last - first + 1) * size, end - begin)
            buffers |= sent(gpu, before | {"firsts": 2 * (offsets[starts] - offsets[0])}, stream)
            group = _Group(first, last, *rows, buffers)
            n_masses = int(offsets[-1] - offsets[0])
            workspace = 4 * group.stride * (last - first)
            if 2 * n_masses > self.share_for_bits * group.stride * (end - begin):
                buffers["bits_of_rows"] = gpu.buffer(workspace * self._columns)
                gpu.clear(buffers["bits_of_rows"], workspace * self._columns, stream)
                self._launch("set_bits", blocks, (lists, self._rows(group), self._index(group)))
                return group
            buffers |= {"starts": gpu.buffer(workspace), "postings": gpu.buffer(4 * n_masses)}
            gpu.clear(buffers["starts"], workspace, stream)
            arguments = lists, self._rows(group), self._index(group)
            self._launch("count_postings", blocks, arguments)
            self._launch("add_up", last - first, arguments[-1:])
            self._launch("place_postings", blocks, arguments)
            return group
        finally:
            gpu.wait(stream)

    def _rows(self, group: _Group) -> NDArray[np.void]:
        names = "bits", "bits_below", "before", "before_below"
        members = {name: group.buffers[name] for name in names} | {"words": len(group.rows.bits), "n": group.rows.n}
        return struct(self._gpu, _ROWS, members)

    def _index(self, group: _Group) -> NDArray[np.void]:
        members = {name: group.buffers.get(name, 0) for name in ("starts", "postings", "firsts")}
        members |= {"bits": group.buffers.get("bits_of_rows", 0), "columns": self._columns}
        return struct(self._gpu, _INDEX, members | {"stride": group.stride, "chunk_size": self._chunk_size})

    @property
    def _columns(self) -> int:
        """Number of words of a row of bits, a multiple of the four that a thread reads at once."""
        return -(-self._chunk_size // 128) * 4


@dataclass(frozen=True)
class _Batch:
    """Queries on the device; `windows` is (n, 2), and `planes` is the number of bits of the largest score."""

    n: int
    top: int
    planes: int
    windows: NDArray[np.int64]
    buffers: dict[str, Any]
