"""Clustering of sparse vectors on a GPU.

Counterpart of `proteoscope.kernels.cpu.vector_clustering`, with the kernels of vector_clustering.cu.

Islands are copied to the device in batches. Passes over the pairs of a batch find its connected components, or the clusters of DBSCAN. For
complete and average linkage, the host then lists the components as groups (`proteoscope.kernels.cpu.linkage_rounds`). The device computes
as many matrices as fit, and merges each in a separate block, with groups of different sizes at the same time.

ATGPU analysis of n vectors of m elements in total, with p pairs in windows, and of g groups of k members in total, with c cells and q
pairs. `analysis` computes these numbers in words of 4 bytes:

* rounds: one per batch; in each, one launch for squares, one that names clusters, one or three passes, and for linkage one more pass and
  up to four launches for merging;
* words in: 3 n + 3 m / 2 + 2 and the tiles; for DBSCAN 2 n or more in the passes; for linkage 4 k + 4 g + 1 and the tiles; words out: n,
  and k for linkage;
* operations: p pairs in a pass and q pairs in the pass of linkage; each pair needs about as many steps as the vectors have common elements.
  Each member of a group needs about three searches of a row, and one merger;
* memory blocks: the elements of a vector once for each tile of 32 whose window contains it; a row of the matrix for each search, and a
  row and a column for each merger;
* shared memory: the table of a tile, 64 bytes for each row of up to `rows`, and 6 for each of its slots.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import (
    AVERAGE,
    COMPLETE,
    SINGLE,
    Groups,
    Linkage,
    VectorArrays,
    islands,
    named_by_smallest,
    window_pairs,
)
from proteoscope.kernels.cpu.linkage_rounds import LinkageRounds
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.rates import USUAL_RATES, items_between_checks
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError, UnsupportedSearchError, equal_partitions

__all__ = ["VectorClustering"]

_FILE = "vector_clustering.cu"
_WIDTH = 32  # vectors per tile
_TABLES = (480, 10), (960, 11), (1920, 12)  # rows of a table, and log2 of its slots; at most about half of them are used
_STATIC_BYTES = 2048  # other (static) shared memory of a block
_PLAIN_THREADS = 256
_LARGEST_OF_CLASS = (2048, 256, 32)
_THREADS_OF_CLASS = (1024, 256, 64, 32)  # threads that merge a group, by the number of its members
_VECTOR_BYTES, _ELEMENT_BYTES, _MEMBER_BYTES, _GROUP_BYTES = 48, 6, 40, 16

_VECTORS = np.dtype([(name, np.uint64) for name in ("offsets", "bins", "weights", "ends", "squares")])
"""Layout of the struct Vectors in vector_clustering.cu."""
_TILES = np.dtype([*[(name, np.uint64) for name in ("starts", "members", "limits")], ("rows", np.int32), ("shift", np.int32)])
"""Layout of the struct Tiles in vector_clustering.cu."""
_CLUSTERS = np.dtype(
    [
        *[(name, np.uint64) for name in ("neighbours", "parents", "highest", "nearest")],
        ("least", np.float64),
        ("minimum_neighbours", np.int64),
    ]
)
"""Layout of the struct Clusters in vector_clustering.cu."""
_GROUPS = np.dtype(
    [(name, np.uint64) for name in ("starts", "begins", "least", "of_member", "counts", "labels", "active", "places", "chain", "cells")]
)
"""Layout of the struct Groups in vector_clustering.cu."""


class _Merger(NamedTuple):
    """Kernels of a linkage, and number of bytes of a cell of its matrices."""

    fill: str
    merge: str
    cell_bytes: int


_MERGERS = {COMPLETE: _Merger("fill_minima", "merge_minima", 4), AVERAGE: _Merger("fill_averages", "merge_averages", 8)}


@dataclass(frozen=True)
class Analysis:
    """Cost of a clustering: words in both directions, launches, compared pairs, matrix cells, and shared bytes of a block."""

    words_in: int
    words_out: int
    launches: int
    pairs: int
    cells: int
    shared_bytes: int


def analysis(gpu: Gpu, vectors: VectorArrays, ends: NDArray[np.int64], linkage: Linkage, sizes: NDArray[np.int64]) -> Analysis:
    """Return the cost of a clustering in one batch, with one launch of each pass.

    Parameters
    ----------
    sizes
        Number of members of each group of complete or average linkage. Groups are not divided; all pairs of members may be compared.
    """
    n, k, g = len(ends), int(sizes.sum()), len(sizes)
    table = _table_for(gpu, np.diff(vectors.offsets))
    tiles = len(_tile_starts(np.diff(vectors.offsets), table.rows))
    is_counted = linkage.method == SINGLE and linkage.minimum_neighbours > 2
    bytes_in = 8 * (n + 1) + _ELEMENT_BYTES * len(vectors.bins) + 4 * n + 4 * tiles + 4 * n * is_counted
    words_out, passes, pairs, cells = n, 3 if is_counted else 1, int(window_pairs(ends).sum()), 0
    launches = 2 + passes
    if g:
        of_members = np.full(k, len(vectors.bins) // max(1, n))
        bytes_in += 16 * k + 4 * (g + 1) + 12 * g + 4 * len(_tile_starts(of_members, table.rows))
        words_out += k
        cells = int((sizes**2).sum())
        launches += 1 + len(_classes(np.sort(sizes)[::-1]))
    return Analysis(bytes_in // 4, words_out, launches, passes * pairs + int((sizes * (sizes - 1) // 2).sum()), cells, table.shared_bytes)


@dataclass(frozen=True)
class _Table:
    """Size of the table of a tile."""

    rows: int
    slot_bits: int

    @property
    def shared_bytes(self) -> int:
        return 2 * _WIDTH * self.rows + 6 * (1 << self.slot_bits)


def _table_for(gpu: Gpu, lengths: NDArray[np.int64]) -> _Table:
    """Return the smallest table that can hold each vector, and most tiles of 32 vectors with the given lengths.

    Raises
    ------
    UnsupportedSearchError
        If a vector is too long for every table.
    """
    workspace = gpu.maximum_shared_bytes() - _STATIC_BYTES
    possible = [table for table in (_Table(*sizes) for sizes in _TABLES) if table.shared_bytes <= workspace]
    longest = int(lengths.max(initial=0))
    if not possible or longest > possible[-1].rows:
        rows = possible[-1].rows if possible else 0
        raise UnsupportedSearchError(f"{gpu.name} clusters vectors of at most {rows:,} elements, and one has {longest:,}")
    wanted = max(longest, _WIDTH * float(lengths.mean()) if len(lengths) else 0)
    return next((table for table in possible if table.rows >= wanted), possible[-1])


def _tile_starts(lengths: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return the starts of tiles (consecutive vectors that share a table), followed by n.

    A tile has 32 vectors, halved repeatedly if they have more elements than the table has rows.
    """
    n, before = len(lengths), np.concatenate(([0], np.cumsum(lengths)))
    starts = np.append(np.arange(0, n, _WIDTH), n)
    while True:
        begins, stops = starts[:-1], starts[1:]
        is_full = (before[stops] - before[begins] > rows) & (stops - begins > 1)
        if not is_full.any():
            return starts
        starts = np.sort(np.concatenate((starts, (begins + stops)[is_full] // 2)))


def _classes(sizes: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """Divide groups, given by decreasing size, into ranges (first, last, number of threads that merge each group of the range)."""
    cuts = [0, *np.searchsorted(-sizes, -np.array(_LARGEST_OF_CLASS)).tolist(), len(sizes)]
    return [(first, last, threads) for (first, last), threads in zip(pairwise(cuts), _THREADS_OF_CLASS, strict=True) if first < last]


class VectorClustering:
    """Clustering of vectors on a GPU.

    Parameters
    ----------
    device
        GPU.
    vectors, ends
        See `proteoscope.kernels.cpu.vector_clustering.VectorClustering`.

    Attributes
    ----------
    share_of_free_memory
        Fraction of the free memory that vectors and matrices may use; vectors may use half of it.
    pairs_of_batch, pairs_of_run
        Number of pairs in windows of a batch of islands, and of a launch, which should take less than a tenth of a second.
    threads
        Threads of a block that compares pairs.
    """

    share_of_free_memory = 0.8
    pairs_of_batch = 5e10
    pairs_of_run = 1e10
    threads = 448

    def __init__(self, device: Gpu, vectors: VectorArrays, ends: NDArray[np.int64]) -> None:
        self._gpu, self._vectors, self._ends = device, vectors, ends
        self._stream, self._others = device.stream(), [device.stream() for _ in _THREADS_OF_CLASS]
        self._table = _table_for(device, np.diff(vectors.offsets))

    def cluster(self, linkage: Linkage, labels: NDArray[np.int64], first: int = 0, last: int | None = None) -> Generator[int, None, None]:
        """Cluster the vectors `first:last` (see `proteoscope.kernels.cpu.vector_clustering.VectorClustering.cluster`).

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If not even one island or one matrix fits.
        ValueError
            If a setting of the linkage is out of bounds.
        """
        linkage, last = linkage.checked(), len(self._ends) if last is None else last
        cuts = first + islands(self._ends[first:last] - first)
        for begin, end in self._batches(cuts):
            offsets = self._vectors.offsets[begin : end + 1]
            elements = slice(int(offsets[0]), int(offsets[-1]))
            arrays = VectorArrays(offsets - offsets[0], self._vectors.bins[elements], self._vectors.weights[elements])
            batch = _OnGpu(self._gpu, self._stream, arrays, self._ends[begin:end] - begin, self._table)
            join = self._joined if linkage.method == SINGLE else self._linked
            for _ in join(batch, linkage, labels[begin:end]):
                yield begin
            labels[begin:end] += begin
            yield end

    def _batches(self, cuts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yield ranges of vectors that contain whole islands (see `islands`) and fit on the device."""
        budget = self._budget() / 2
        pairs = np.concatenate(([0.0], np.cumsum(window_pairs(self._ends), dtype=np.float64)))[cuts]
        taken = _VECTOR_BYTES * cuts + _ELEMENT_BYTES * self._vectors.offsets[cuts]
        begin = 0
        while begin + 1 < len(cuts):
            fits = int(np.searchsorted(taken, taken[begin] + budget, side="right")) - 1
            if fits <= begin:
                raise DeviceMemoryError(f"{self._gpu.name} has {budget / 1e6:,.0f} MB available, not enough for one island of vectors")
            is_few = int(np.searchsorted(pairs, pairs[begin] + self.pairs_of_batch, side="right")) - 1
            end = min(fits, max(begin + 1, is_few))
            yield int(cuts[begin]), int(cuts[end])
            begin = end

    def _pairs_of_run(self) -> int:
        return items_between_checks(self.pairs_of_run, self._gpu.rates.lookups, USUAL_RATES.lookups)

    def _budget(self) -> float:
        return self._gpu.free_bytes() * self.share_of_free_memory

    def _joined(self, batch: _OnGpu, linkage: Linkage, labels: NDArray[np.int64]) -> Iterator[None]:
        """Compute the labels by SINGLE linkage, relative to the first vector of the batch."""
        gpu, n, stream = self._gpu, batch.n, self._stream
        is_counted = linkage.minimum_neighbours > 2
        sizes = {"roots": 4 * n} | ({"neighbours": 4 * n, "highest": 8 * n, "nearest": 4 * n} if is_counted else {})
        buffers = {name: gpu.buffer(size) for name, size in sizes.items()}
        tiles = _Tiling(batch)
        with self._ended():
            if is_counted:
                gpu.upload(buffers["nearest"], np.full(n, np.iinfo(np.int32).max, np.int32), stream)
                gpu.clear(buffers["neighbours"], 4 * n, stream)
                gpu.clear(buffers["highest"], 8 * n, stream)
            clusters = struct(
                gpu,
                _CLUSTERS,
                {
                    **{name: buffers.get(name, 0) for name in ("neighbours", "highest", "nearest")},
                    "parents": batch.parents,
                    "least": linkage.least,
                    "minimum_neighbours": linkage.minimum_neighbours,
                },
            )
            for kernel in ("count_neighbours", "join_neighbours", "choose_nearest") if is_counted else ("join_neighbours",):
                yield from tiles.visited(kernel, clusters, self.threads, self._pairs_of_run())
            arguments = clusters, buffers["roots"], np.int32(n)
            gpu.launch(_FILE, "name_clusters", -(-n // _PLAIN_THREADS), _PLAIN_THREADS, arguments, stream)
            roots = np.empty(n, np.int32)
            gpu.download(roots, buffers["roots"], stream)
        labels[:] = named_by_smallest(roots)

    def _linked(self, batch: _OnGpu, linkage: Linkage, labels: NDArray[np.int64]) -> Iterator[None]:
        """Compute the labels by COMPLETE or AVERAGE linkage, relative to the first vector of the batch."""
        yield from self._joined(batch, linkage._replace(method=SINGLE, minimum_neighbours=2), labels)
        rounds = LinkageRounds(batch.arrays, batch.ends, labels, 0, linkage)
        while (groups := rounds.groups()) is not None:
            positions = np.arange(len(groups.members))
            vectors = batch
            if groups.vectors is not batch.arrays:
                table = _table_for(self._gpu, np.diff(groups.vectors.offsets))
                vectors = _OnGpu(self._gpu, self._stream, groups.vectors, groups.ends, table)
            yield from self._merged(vectors, groups, _MERGERS[linkage.method], positions)
            rounds.take(positions)
        labels[:] = rounds.labels

    def _merged(self, vectors: _OnGpu, groups: Groups, merger: _Merger, positions: NDArray[np.int64]) -> Iterator[None]:
        """Write to `positions`, for each member of the groups, the index in `members` of the smallest member of its cluster."""
        order = np.argsort(-groups.sizes, kind="stable")
        sizes = groups.sizes[order]
        before = np.concatenate(([0], np.cumsum(merger.cell_bytes * sizes**2 + _MEMBER_BYTES * sizes + _GROUP_BYTES)))
        if not len(order):
            return
        budget, need = self._budget(), before[1]
        if need > budget:
            raise DeviceMemoryError(f"{self._gpu.name} has {budget / 1e6:,.0f} MB available, but a matrix needs {need / 1e6:,.0f} MB")
        runs, cells = self._workspace(sizes, before, budget, merger)
        for first, last in runs:
            yield from self._merged_at_once(vectors, groups, order[first:last], merger, cells, positions)

    def _workspace(
        self, sizes: NDArray[np.int64], before: NDArray[np.int64], budget: float, merger: _Merger
    ) -> tuple[list[tuple[int, int]], Any]:
        """Divide groups into ranges whose matrices fit on the device together; return the ranges, and a buffer for the largest range."""
        ends = [0]
        while ends[-1] < len(sizes):
            ends.append(int(np.searchsorted(before, before[ends[-1]] + budget, side="right")) - 1)
        runs = list(pairwise(ends))
        try:
            return runs, self._gpu.buffer(merger.cell_bytes * max(int((sizes[first:last] ** 2).sum()) for first, last in runs))
        except DeviceMemoryError:
            if budget <= before[1]:
                raise
        # Allocation may fail, since free memory can be fragmented.
        taken = max(before[last] - before[first] for first, last in runs)
        return self._workspace(sizes, before, max(float(before[1]), taken / 2), merger)

    def _merged_at_once(
        self, vectors: _OnGpu, groups: Groups, chosen: NDArray[np.int64], merger: _Merger, cells: Any, positions: NDArray[np.int64]
    ) -> Iterator[None]:
        """Merge groups, largest first, whose matrices fit on the device at the same time."""
        gpu, stream = self._gpu, self._stream
        sizes = groups.sizes[chosen]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        members = np.arange(starts[-1]) + np.repeat(groups.starts[chosen] - starts[:-1], sizes)
        begins = np.concatenate(([0], np.cumsum(sizes**2)))
        buffers = {name: gpu.buffer(4 * len(members)) for name in ("labels", "active", "places", "chain")}
        buffers["cells"] = cells
        tiles = _Tiling(vectors, groups.members[members], np.repeat(starts[1:], sizes))
        buffers |= sent(
            gpu,
            {
                "starts": starts.astype(np.int32),
                "begins": begins[:-1],
                "least": groups.least[chosen],
                "of_member": np.repeat(np.arange(len(chosen), dtype=np.int32), sizes),
                "counts": groups.counts[members],
            },
            stream,
        )
        with self._ended():
            gpu.clear(buffers["cells"], merger.cell_bytes * int(begins[-1]), stream)
            on_gpu = struct(gpu, _GROUPS, buffers)
            yield from tiles.visited(merger.fill, on_gpu, self.threads, self._pairs_of_run())
            for (first, last, threads), other in zip(_classes(sizes), self._others, strict=False):
                gpu.launch(_FILE, merger.merge, last - first, threads, (on_gpu, np.int32(first)), other)
            for other in self._others:
                gpu.wait(other)
                yield
            result = np.empty(len(members), np.int32)
            gpu.download(result, buffers["labels"], stream)
        positions[members] = members[result + np.repeat(starts[:-1], sizes)]

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """Context manager that waits for all kernels started in it before its memory is freed."""
        try:
            yield
        finally:
            for stream in (self._stream, *self._others):
                self._gpu.wait(stream)


class _OnGpu:
    """Vectors on a GPU, their squared lengths, and trees that become clusters; each vector is initially its own parent."""

    def __init__(self, gpu: Gpu, stream: Any, arrays: VectorArrays, ends: NDArray[np.int64], table: _Table) -> None:
        self.gpu, self.stream, self.arrays, self.ends, self.table, self.n = gpu, stream, arrays, ends, table, len(ends)
        self.parents, squares = gpu.buffer(4 * self.n), gpu.buffer(4 * self.n)
        self._buffers = {"squares": squares, **sent(gpu, {**arrays._asdict(), "ends": ends.astype(np.int32)}, stream)}
        self.vectors = struct(gpu, _VECTORS, self._buffers)
        arguments = self.vectors, self.parents, np.int32(self.n)
        gpu.launch(_FILE, "sum_squares", -(-self.n // _PLAIN_THREADS), _PLAIN_THREADS, arguments, stream)
        gpu.wait(stream)


class _Tiling:
    """Tiles of vectors, or of `members` of groups; `limits` are then the ends of their groups."""

    def __init__(self, vectors: _OnGpu, members: NDArray[np.int64] | None = None, limits: NDArray[np.int64] | None = None) -> None:
        self._vectors, gpu = vectors, vectors.gpu
        lengths = np.diff(vectors.arrays.offsets)
        self._starts = _tile_starts(lengths if members is None else lengths[members], vectors.table.rows)
        reach = (vectors.ends if limits is None else limits)[self._starts[1:] - 1]
        self._pairs = (reach - self._starts[:-1]) * np.diff(self._starts)
        columns = {"starts": self._starts.astype(np.int32)}
        if members is not None and limits is not None:
            columns |= {"members": members.astype(np.int32), "limits": limits.astype(np.int32)}
        self._buffers = {"members": 0, "limits": 0} | sent(gpu, columns, vectors.stream)
        shape = {"rows": vectors.table.rows, "shift": 32 - vectors.table.slot_bits}
        self._tiles = struct(gpu, _TILES, {**self._buffers, **shape})
        gpu.wait(vectors.stream)

    def visited(self, kernel: str, reported: NDArray[np.void], threads: int, pairs_of_run: float) -> Iterator[None]:
        """Run a kernel over the pairs of all tiles, in launches of about `pairs_of_run` pairs; yield between launches."""
        gpu, stream = self._vectors.gpu, self._vectors.stream
        for run in sorted(equal_partitions(self._pairs, 1, maximum_cost=pairs_of_run, per_worker=1), key=lambda run: run.first):
            arguments = self._vectors.vectors, self._tiles, reported, np.int32(run.first)
            gpu.launch(_FILE, kernel, run.last - run.first, threads, arguments, stream, shared_bytes=self._vectors.table.shared_bytes)
            gpu.wait(stream)
            yield
