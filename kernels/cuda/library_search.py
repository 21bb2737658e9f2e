"""Search of the most similar reference of each spectrum on a GPU, with the kernel of library_search.cu.

Counterpart of `proteoscope.kernels.cpu.library_search`.

ATGPU analysis of one batch of q queries of n peaks, for p pairs of a query and a reference of m peaks. `search_analysis` computes these
numbers in words of 4 bytes and memory blocks of 32 bytes:

* rounds: 1;
* words in: 1.5 q n + 3 q for the queries, and 4 for each range of references of a query; words out: 5 q;
* operations: p m peaks of references (twice as many with shifted fragments);
* memory blocks: 6 m / 32 + 2 for each pair, since each thread reads the peaks of a different reference;
* shared memory: 5 KB, for the peaks of the query and the best result of each thread.

Not counted is the single transfer of r references to the device: 1.5 r m + 3 r words. If the references do not fit, ranges of them are
searched one after the other, and the best result is returned.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.counts import OperationCounts
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError
from proteoscope.kernels.library_layouts import Matching, PeakLists, Pools, entropy_table

__all__ = ["LibrarySearch"]

_FILE = "library_search.cu"
_THREADS = 128
_SHARE_OF_FREE_MEMORY = 0.6
_BYTES_OF_PEAK, _BYTES_OF_REFERENCE = 6, 20
_QUERIES_OF_BATCH = 1 << 14
_PAIRS_OF_LAUNCH = 1 << 26  # comparisons between two checks for a cancel
_SHARED_BYTES = 5 << 10

_PEAKS = np.dtype([(name, np.uint64) for name in ("offsets", "mz", "weight", "mass")] + [("before", np.int64)])
_POOLS = np.dtype([("low", np.uint64), ("high", np.uint64), ("ranges", np.int64)])
_RULES = np.dtype([("table", np.uint64), *[(name, np.int64) for name in Matching._fields]])
_ANSWER = np.dtype([(name, np.uint64) for name in ("found", "similarity", "matched")])


def search_analysis(*, queries: int, query_peaks: int, ranges: int, pairs: int, peaks: int, is_shifted: bool) -> OperationCounts:
    """Return the numbers of operations of a search on the device; `peaks` is the number of reference peaks in all pairs."""
    in_bytes = 8 * (queries + 1) + 6 * query_peaks + 4 * queries + 16 * queries * ranges
    operations = peaks * (2 if is_shifted else 1)
    return OperationCounts(1, operations, 6 * peaks // 32 + 2 * pairs, -(-in_bytes // 4), 5 * queries, _SHARED_BYTES, 6 + 3)


class LibrarySearch:
    """Search on a GPU for the most similar references of spectra.

    Parameters
    ----------
    device
        GPU.
    references
        Peaks of the references.
    mass : (n,) int32
        Masses of the references, in `proteoscope.kernels.library_layouts.UNITS`.

    Attributes
    ----------
    share_of_free_memory
        Fraction of the free memory that references may use.
    queries_of_batch
        Number of queries on the device at the same time.
    pairs_of_launch
        Number of (query, reference) pairs between two checks for cancellation.
    """

    share_of_free_memory = _SHARE_OF_FREE_MEMORY
    queries_of_batch = _QUERIES_OF_BATCH
    pairs_of_launch = _PAIRS_OF_LAUNCH

    def __init__(self, device: Gpu, references: PeakLists, mass: NDArray[np.int32]) -> None:
        self._gpu, self._stream, self._references, self._mass = device, device.stream(), references, mass
        square = references.weight.astype(np.int64) ** 2
        total = np.concatenate(([0], np.cumsum(square)))
        self._squares = np.diff(total[references.offsets])
        self._resident: tuple[int, int, dict[str, Any]] | None = None

    def search(
        self,
        queries: PeakLists,
        mass: NDArray[np.int32],
        pools: Pools,
        matching: Matching,
        reference: NDArray[np.int64],
        similarity: NDArray[np.float64],
        matched: NDArray[np.int32],
        first: int = 0,
        last: int | None = None,
    ) -> Generator[int, None, None]:
        """Search the most similar references (see `proteoscope.kernels.cpu.library_search.LibrarySearch.search`).

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If not even a few references fit.
        """
        last = len(mass) if last is None else last
        reference[first:last], similarity[first:last], matched[first:last] = -1, 0.0, 0
        table = {"table": entropy_table() if matching.is_entropy else np.zeros(1, np.int32)}
        try:
            rules = sent(self._gpu, table, self._stream)
            parts = list(self._parts())
            for begin, end in self._batches(pools, first, last):
                for low, high in parts:
                    self._search(queries, mass, pools, matching, rules, (begin, end), (low, high), (reference, similarity, matched))
                    yield begin
                yield end
        finally:
            self._gpu.wait(self._stream)
        if first == last:
            yield last

    def _batches(self, pools: Pools, first: int, last: int) -> Generator[tuple[int, int], None, None]:
        """Yield the ranges of queries that each launch searches."""
        pairs = np.concatenate(([0], np.cumsum(np.maximum(pools.high - pools.low, 0).sum(axis=1))))
        begin = first
        while begin < last:
            most = int(np.searchsorted(pairs, pairs[begin] + self.pairs_of_launch, side="right")) - 1
            end = min(last, begin + self.queries_of_batch, max(begin + 1, most))
            yield begin, end
            begin = end

    def _parts(self) -> Generator[tuple[int, int], None, None]:
        """Yield ranges of references that fit on the device."""
        size = _BYTES_OF_PEAK * self._references.offsets + _BYTES_OF_REFERENCE * np.arange(len(self._references.offsets))
        workspace, n, first = self._gpu.free_bytes() * self.share_of_free_memory, len(self._mass), 0
        if self._resident is not None:
            workspace += size[self._resident[1]] - size[self._resident[0]]
        while first < n:
            last = min(n, int(np.searchsorted(size, size[first] + workspace, side="right")) - 1)
            if last <= first:
                raise DeviceMemoryError(f"{self._gpu.name} does not have enough memory for a reference")
            yield first, last
            first = last

    def _on_gpu(self, first: int, last: int) -> dict[str, Any]:
        """Return the references `first:last` on the device, where they stay until they are replaced."""
        if self._resident is None or self._resident[:2] != (first, last):
            self._gpu.wait(self._stream)
            self._resident = None
            offsets = self._references.offsets[first : last + 1]
            peaks = slice(int(offsets[0]), int(offsets[-1]))
            arrays = {
                "offsets": offsets,
                "mz": _some(self._references.mz[peaks]),
                "weight": _some(self._references.weight[peaks]),
                "mass": self._mass[first:last],
                "squares": self._squares[first:last],
            }
            arrays = {name: np.ascontiguousarray(values) for name, values in arrays.items()}
            self._resident = first, last, sent(self._gpu, arrays, self._stream)
        return self._resident[2]

    def _search(
        self,
        queries: PeakLists,
        mass: NDArray[np.int32],
        pools: Pools,
        matching: Matching,
        rules: dict[str, Any],
        rows: tuple[int, int],
        part: tuple[int, int],
        answer: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]],
    ) -> None:
        """Search queries among the references `part`; replace worse results in `answer`."""
        (begin, end), (low, high), gpu = rows, part, self._gpu
        if begin == end or low == high:
            return
        held = self._on_gpu(low, high)
        offsets = queries.offsets[begin : end + 1]
        peaks = slice(int(offsets[0]), int(offsets[-1]))
        query_arrays = {"offsets": offsets, "mz": _some(queries.mz[peaks]), "weight": _some(queries.weight[peaks]), "mass": mass[begin:end]}
        ranges = {"low": np.clip(pools.low[begin:end], low, high) - low, "high": np.clip(pools.high[begin:end], low, high) - low}
        sent_own = sent(gpu, {name: np.ascontiguousarray(values) for name, values in query_arrays.items()}, self._stream)
        sent_ranges = sent(gpu, {name: np.ascontiguousarray(values) for name, values in ranges.items()}, self._stream)
        n = end - begin
        fresh: tuple[NDArray, ...] = np.empty(n, np.int64), np.empty(n, np.float64), np.empty(n, np.int32)
        workspace = {name: gpu.buffer(values.nbytes) for name, values in zip(("found", "similarity", "matched"), fresh, strict=True)}
        first_peak = int(self._references.offsets[low])
        arguments = (
            struct(gpu, _PEAKS, sent_own | {"before": int(offsets[0])}),
            struct(gpu, _PEAKS, {name: held[name] for name in ("offsets", "mz", "weight", "mass")} | {"before": first_peak}),
            held["squares"],
            struct(gpu, _POOLS, sent_ranges | {"ranges": pools.low.shape[1]}),
            struct(gpu, _RULES, rules | {name: int(getattr(matching, name)) for name in Matching._fields}),
            struct(gpu, _ANSWER, workspace),
        )
        gpu.launch(_FILE, "search_library", end - begin, _THREADS, arguments, self._stream)
        for values, buffer in zip(fresh, workspace.values(), strict=True):
            gpu.download(values, buffer, self._stream)
        gpu.wait(self._stream)
        result, similarity, matched = (column[begin:end] for column in answer)
        # Partial results are in order of their references, so the first of equal similarities stays.
        better = fresh[1] > similarity
        result[better], similarity[better], matched[better] = fresh[0][better] + low, fresh[1][better], fresh[2][better]


def _some(values: NDArray) -> NDArray:
    """Return the array, or an array of one element if it is empty, since GPU buffers cannot be empty."""
    return values if len(values) else np.zeros(1, values.dtype)
