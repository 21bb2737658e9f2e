"""K-means on a GPU; counterpart of `proteoscope.kernels.cpu.k_means`, with the kernels of k_means.cu.

Points and vectors stay on the device if they fit, and iterations run there: the host receives only the number of changed labels and the
cluster sizes of each iteration. Otherwise they are sent in groups in each iteration, and the host adds the sums of the groups (Li's
thesis, Algorithm 4.7). Each of several devices has its own points, labels and sums; only cluster sums are sent to the host, and centroids
back.

ATGPU analysis: `point_analysis` and `vector_analysis` compute the following numbers in words of 4 bytes. For n points of d dimensions, k
centroids and r rounds:

* rounds: r, each with three launches (nearest, sums, centroids), the last one with two;
* words in: once n d for points, n for labels and 2 k d for centroids; words out: 2 (k + 1) in each round, and n + 4 k d at the end;
* operations: n k d in each round, each a subtraction and a fused multiply-add; 5 more for each of the n k distances;
* memory blocks: n d / 8 twice in each round for points; for centroids k d / 8 for each block of points, which are cached;
* shared memory: 32 KB for centroids; 9 KB for tiles; 8 k d + 4 k bytes for sums, where d is the number of dimensions that fit together.

For vectors of m elements in b bins:

* rounds: r, each with four launches (labels, counts, sums, terms);
* words in: 3 m for the vectors, by vector and by bin, and 2 (n + b) for their starts; words out: 2 (k + 1) in each round;
* operations: one for each element and each cluster in the list of its bin. These are all clusters in the first two rounds; later only the
  clusters that moved, but all clusters for a vector if its own centroid moved;
* memory blocks: 12 / 32 for each of these operations, which are cached, and 16 k / 32 for the terms of each vector;
* shared memory: 32 KB of products.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.kernels.clustering_layouts import (
    NEVER,
    POINTS_OF_RUN,
    Assigned,
    PointSums,
    Rounds,
    Tally,
    VectorArrays,
    VectorSums,
    rounds_through_host,
    tally_through_host,
)
from proteoscope.kernels.counts import OperationCounts
from proteoscope.kernels.cuda.modules import Gpu, struct
from proteoscope.kernels.cuda.rates import USUAL_RATES, items_between_checks
from proteoscope.kernels.cuda.sending import sent
from proteoscope.kernels.device import DeviceMemoryError

__all__ = ["PointMeans", "VectorMeans"]

_FILE = "k_means.cu"
_THREADS = 256
_MAXIMUM_DIMENSIONS = 16  # maximum dimensions of points that are stored in registers
_FLOATS_OF_CENTROIDS = 8192  # floats of centroids in shared memory at the same time
_SIDE, _DEPTH = 64, 16  # points (and centroids) and dimensions of a tile
_TILE_BYTES = 2 * _DEPTH * (_SIDE + 4) * 4
_CLUSTERS_OF_TILE, _WARPS = 1024, 4
_PRODUCT_BYTES = _CLUSTERS_OF_TILE * _WARPS * 8
_SUM_BYTES = 96 << 10  # shared memory for sums; two blocks fit a multiprocessor
_POINTS_OF_BLOCK = 32768  # with more points, counters of sums could overflow
_BLOCKS = 4  # blocks per multiprocessor of kernels whose blocks loop over the work
_VECTOR_BLOCKS = 16
_SHARE_OF_FREE_MEMORY = 0.6
_OPERATIONS_OF_RUN = 500_000_000_000  # operations between two checks for a cancel: 0.1 s on an H200
_STEPS_OF_RUN = 10_000_000_000
_ELEMENT_BYTES = 6 + 6 + 24  # bytes per element: stored by vector, by bin, and in the lists
_VECTOR_BYTES = 8 + 8 + 4 + 8

_POINTS = np.dtype(
    [
        *[(name, np.uint64) for name in ("points", "labels", "distances", "changed")],
        ("first", np.int64),
        ("last", np.int64),
        ("d", np.int32),
        ("measures", np.int32),
    ]
)
"""Layout of the struct Points in k_means.cu."""
_MEANS = np.dtype(
    [
        *[(name, np.uint64) for name in ("sums", "counts", "old", "exact", "quick", "moved")],
        *[(name, np.int32) for name in ("k", "d", "stride", "is_given")],
    ]
)
_CENTROIDS = np.dtype([("exact", np.uint64), ("quick", np.uint64), ("k", np.int32), ("stride", np.int32)])
_VECTOR_COLUMNS = "offsets", "bins", "weights", "low", "high", "bin_offsets", "vector_of", "weight_of"
_VECTORS = np.dtype([*[(name, np.uint64) for name in _VECTOR_COLUMNS], ("has_ranges", np.int32), ("tiles", np.int32)])
_LISTS = np.dtype([(name, np.uint64) for name in ("starts", "clusters", "sums")])
_TERMS = np.dtype(
    [
        *[(name, np.uint64) for name in ("factor", "square", "is_moved", "moves", "changed", "squares")],
        ("k", np.int32),
        ("is_whole", np.int32),
    ]
)


def _points_of_thread(d: int) -> int:
    return 8 if d <= 4 else 4 if d <= 8 else 2


def _stride(d: int) -> int:
    return -(-d // 4) * 4 if d <= _MAXIMUM_DIMENSIONS else d


def point_analysis(n: int, d: int, k: int, rounds: int, *, maximum_shared: int) -> OperationCounts:
    """Return the operations (dimensions of distances) of iterations with points that stay on a GPU, including their transfer."""
    in_registers, columns = d <= _MAXIMUM_DIMENSIONS, _columns(k, d, maximum_shared)
    if in_registers:
        of_block = _THREADS * _points_of_thread(d)
        operations = -(-n // of_block) * of_block * k * d
    else:
        operations = -(-n // _SIDE) * -(-k // _SIDE) * _SIDE**2 * -(-d // _DEPTH) * _DEPTH
    centroids = min(k, _FLOATS_OF_CENTROIDS // _stride(d)) * _stride(d) * 4 if in_registers else _TILE_BYTES
    return OperationCounts(
        rounds,
        operations * rounds,
        rounds * 2 * n * d // 8,
        n * d + n + 2 * k * d,
        (rounds + 1) * 2 * (k + 1) + n + 4 * k * d,
        max(centroids, k * (8 * columns + 4) if columns else 0),
        3 + rounds + 4,
    )


def vector_analysis(*, n: int, elements: int, n_bins: int, k: int, entries: int, walked: int, ranges: bool) -> OperationCounts:
    """Return the operations (visited list entries) of an iteration with vectors that stay on a GPU, including the report to the host.

    Parameters
    ----------
    entries
        Number of entries of the centroids' lists.
    walked
        Number of entries visited by all elements.
    """
    tiles = -(-k // _CLUSTERS_OF_TILE)
    in_bytes = 8 * n_bins * (tiles + 1) + 12 * entries + 16 * k
    out_bytes = 4 * n + 8 * n_bins * (tiles + 1) + 12 * elements + 8 * (k + 1)
    blocks = (12 * walked + 16 * k * n + (8 * n if ranges else 0)) // 32
    return OperationCounts(1, walked, blocks, in_bytes // 4, out_bytes // 4, _PRODUCT_BYTES, 5 + 5)


def _columns(k: int, d: int, maximum_shared: int) -> int:
    """Return the number of dimensions that a block sums at once in shared memory; 0 if not even one fits."""
    return max(0, min(d, (min(maximum_shared, _SUM_BYTES) // k - 4) // 8))


class _RoundStatus:
    """Report of an iteration: size of each cluster, and number of changed labels."""

    def __init__(self, gpu: Gpu, stream: Any, k: int) -> None:
        self._gpu, self._stream, self._k = gpu, stream, k
        self.buffer = gpu.buffer(8 * (k + 1))
        self.changed_at = gpu.address(self.buffer) + 8 * k
        self._values: NDArray[np.int64] = gpu.pinned(8 * (k + 1))[: 8 * (k + 1)].view(np.int64)

    def clear(self) -> None:
        self._gpu.clear(self.buffer, 8 * (self._k + 1), self._stream)

    def read(self) -> tuple[NDArray[np.int64], int]:
        """Wait for the stream and return the report."""
        self._gpu.download(self._values, self.buffer, self._stream)
        self._gpu.wait(self._stream)
        return self._values[: self._k].copy(), int(self._values[self._k])


@dataclass(frozen=True)
class _Group:
    """Items `first:last` on the device, with their buffers."""

    first: int
    last: int
    buffers: dict[str, Any]

    def part(self, first: int, last: int) -> tuple[int, int]:
        """Return the indices of the items `first:last` within the group."""
        return max(first, self.first) - self.first, min(last, self.last) - self.first


class _Centers:
    """Centroids of points on the device, for the current and the next iteration."""

    def __init__(self, gpu: Gpu, stream: Any, k: int, d: int) -> None:
        self._gpu, self._stream, self.k, self._d, self.stride = gpu, stream, k, d, _stride(d)
        self._exact, self._next = gpu.buffer(8 * k * d), gpu.buffer(8 * k * d)
        self._quick, self._moved = gpu.buffer(4 * k * self.stride), gpu.buffer(8 * k)
        self.sums, self.status = gpu.buffer(8 * k * d), _RoundStatus(gpu, stream, k)

    @property
    def struct(self) -> NDArray[np.void]:
        return struct(self._gpu, _CENTROIDS, {"exact": self._exact, "quick": self._quick, "k": self.k, "stride": self.stride})

    def put(self, centroids: NDArray[np.float64]) -> None:
        self._gpu.upload(self._exact, np.ascontiguousarray(centroids), self._stream)
        self._make(self._exact, self._exact, is_given=True)

    def move(self) -> None:
        """Set the next centroids to the means."""
        self._make(self._exact, self._next, is_given=False)

    def movement(self) -> float:
        moved = np.empty(self.k)
        self._gpu.download(moved, self._moved, self._stream)
        self._gpu.wait(self._stream)
        return float(moved.sum())

    def advance(self) -> None:
        """Replace the current centroids by the next centroids."""
        self._exact, self._next = self._next, self._exact

    def centroids(self) -> NDArray[np.float64]:
        result = np.empty((self.k, self._d))
        self._gpu.download(result, self._exact, self._stream)
        return result

    def clear(self) -> None:
        """Clear the sums."""
        self._gpu.clear(self.sums, 8 * self.k * self._d, self._stream)
        self.status.clear()

    def found(self) -> tuple[PointSums, int]:
        """Return the sums and the number of changed labels."""
        sums = np.empty((self.k, self._d), np.int64)
        self._gpu.download(sums, self.sums, self._stream)
        counts, changed = self.status.read()
        return PointSums(sums, counts), changed

    def _make(self, old: Any, new: Any, *, is_given: bool) -> None:
        members = {
            "sums": self.sums,
            "counts": self.status.buffer,
            "old": old,
            "exact": new,
            "quick": self._quick,
            "moved": self._moved,
            "k": self.k,
            "d": self._d,
            "stride": self.stride,
            "is_given": int(is_given),
        }
        means = struct(self._gpu, _MEANS, members)
        self._gpu.launch(_FILE, "move_centroids", -(-self.k // _THREADS), _THREADS, (means,), self._stream, defines=_defines(self._d))


def _defines(d: int) -> tuple[str, ...]:
    """Return the macros for points of `d` dimensions; points that do not fit into registers have the same macros as vectors."""
    return (f"DIMENSIONS={d if d <= _MAXIMUM_DIMENSIONS else 8}",)


class PointMeans:
    """Points that are clustered on a GPU.

    Parameters
    ----------
    device
        GPU.
    points : (n, d) int32
        Coordinates.
    """

    def __init__(self, device: Gpu, points: NDArray[np.int32]) -> None:
        self._gpu, self._points, self._stream = device, np.ascontiguousarray(points, np.int32), device.stream()
        self._d = points.shape[1]
        self._bytes = 4 * self._d + 4 + 8
        runs = int(device.free_bytes() * _SHARE_OF_FREE_MEMORY) // (self._bytes * POINTS_OF_RUN)
        self._most = max(1, runs) * POINTS_OF_RUN
        self._residents: list[_Group] = []  # groups on the device, by index; a group that was sent stays if it fits
        self._centers: tuple[_Centers, Any] | None = None

    def assign(
        self,
        centroids: NDArray[np.float64],
        labels: NDArray[np.int32],
        distances: NDArray[np.float64],
        first: int,
        last: int,
        reporting: int,
    ) -> Generator[Assigned, None, None]:
        """Assign points to the nearest centroid (see `proteoscope.kernels.cpu.k_means.PointMeans.assign`).

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If the centroids do not fit.
        """
        try:
            centers = _Centers(self._gpu, self._stream, len(centroids), self._d)
            centers.put(centroids)
            for group in self._groups(first, last):
                begin, end = max(first, group.first), min(last, group.last)
                here = begin - group.first, end - group.first
                self._gpu.clear(group.buffers["labels"], 4 * (group.last - group.first), self._stream)
                workspace = self._gpu.buffer(8 * (group.last - group.first) if len(distances) else 0)
                centers.clear()
                for _ in self._label(group, workspace, bool(len(distances)), centers, *here):
                    self._gpu.wait(self._stream)
                    yield Assigned(begin)
                if reporting != NEVER:
                    self._add(group, centers, *here)
                self._gpu.download(labels[begin:end], group.buffers["labels"], self._stream, offset=4 * here[0])
                if len(distances):
                    self._gpu.download(distances[begin:end], workspace, self._stream, offset=8 * here[0])
                sums = centers.found()[0] if reporting != NEVER else None
                self._gpu.wait(self._stream)
                yield Assigned(end, sums)
        finally:
            self._gpu.wait(self._stream)

    def iterate(
        self, centroids: NDArray[np.float64], labels: NDArray[np.int32], rounds: int, tolerance: float
    ) -> Generator[int, None, Rounds]:
        """Iterate over all points (see `proteoscope.kernels.cpu.k_means.PointMeans.iterate`)."""
        n = len(labels)
        group = self._whole(n)
        if group is None:
            return (yield from rounds_through_host(self, centroids, labels, rounds, tolerance))
        try:
            centers, workspace = _Centers(self._gpu, self._stream, len(centroids), self._d), self._gpu.buffer(0)
            centers.put(centroids)
            self._gpu.upload(group.buffers["labels"], labels, self._stream)
            for number in range(1, rounds + 1):
                centers.clear()
                for _ in self._label(group, workspace, False, centers, 0, n):
                    self._gpu.wait(self._stream)
                    yield number - 1
                self._add(group, centers, 0, n)
                counts, changed = centers.status.read()
                if number == rounds or changed == 0 or not counts.all():
                    break
                centers.move()
                if tolerance > 0.0 and centers.movement() <= tolerance:
                    break
                centers.advance()
                yield number
            self._gpu.download(labels, group.buffers["labels"], self._stream)
            used = centers.centroids()
            sums, _ = centers.found()
            return Rounds(number, used, sums, changed)
        finally:
            self._gpu.wait(self._stream)

    def tally(
        self,
        centroids: NDArray[np.float64],
        previous: NDArray[np.float64] | None,
        labels: NDArray[np.int32],
        first: int,
        last: int,
        *,
        is_labelled: bool,
    ) -> Generator[None, None, Tally]:
        """Run an iteration (see `proteoscope.kernels.cpu.k_means.PointMeans.tally`); labels stay on the GPU with the points."""
        if not self._bring(first, last):
            # The labels on the host may be older than those on the GPU were.
            yielded = tally_through_host(self, centroids, previous, labels, first, last, is_labelled=False)
            return (yield from yielded)
        try:
            centers, workspace = self._cached_centers(len(centroids))
            if previous is not None and not is_labelled:
                centers.put(previous)
                for group in self._groups(first, last):
                    for _ in self._label(group, workspace, False, centers, *group.part(first, last)):
                        yield
                        self._gpu.wait(self._stream)
            centers.put(centroids)
            centers.clear()
            for group in self._groups(first, last):
                here = group.part(first, last)
                for _ in self._label(group, workspace, False, centers, *here):
                    yield
                    self._gpu.wait(self._stream)
                self._add(group, centers, *here)
            yield  # before waiting, so that one thread can start several GPUs
            sums, changed = centers.found()
            return Tally(sums, last - first if previous is None else changed)
        finally:
            self._gpu.wait(self._stream)

    def _label(
        self, group: _Group, workspace: Any, measures: bool, centers: _Centers, first: int, last: int
    ) -> Generator[None, None, None]:
        """Launch the labelling of the points `first:last` of a group; yields between launches."""
        of_block = _THREADS * _points_of_thread(self._d) if self._d <= _MAXIMUM_DIMENSIONS else _SIDE
        of_run = items_between_checks(_OPERATIONS_OF_RUN, self._gpu.rates.multiply_adds, USUAL_RATES.multiply_adds)
        most = max(1, of_run // (centers.k * self._d * of_block)) * of_block
        for begin in range(first, last, most):
            if begin > first:
                yield
            end = min(last, begin + most)
            blocks, centroids = -(-(end - begin) // of_block), centers.struct
            if self._d <= _MAXIMUM_DIMENSIONS:
                kernel, shared = "nearest_in_registers", min(centers.k, _FLOATS_OF_CENTROIDS // centers.stride) * centers.stride * 4
            else:
                kernel, shared = "nearest_in_tiles", _TILE_BYTES
            self._gpu.launch(
                _FILE,
                kernel,
                blocks,
                _THREADS,
                (self._struct(group, workspace, measures, centers, begin, end), centroids),
                self._stream,
                shared_bytes=shared,
                defines=_defines(self._d),
            )

    def _add(self, group: _Group, centers: _Centers, first: int, last: int) -> None:
        """Launch the kernel that adds the points `first:last` of a group to the sums of their clusters."""
        points, columns = (
            self._struct(group, None, False, centers, first, last),
            _columns(centers.k, self._d, self._gpu.maximum_shared_bytes()),
        )
        multiprocessors, n = self._gpu.multiprocessors(), last - first
        sums, counts, defines = centers.sums, centers.status.buffer, _defines(self._d)
        if columns == 0:
            blocks = min(multiprocessors * _BLOCKS, -(-n * self._d // _THREADS))
            self._gpu.launch(_FILE, "add_points_one_by_one", blocks, _THREADS, (points, sums, counts), self._stream, defines=defines)
            return
        of_block = max(_THREADS, min(_POINTS_OF_BLOCK, -(-n // (multiprocessors * _BLOCKS))))
        for column in range(0, self._d, columns):
            some = min(columns, self._d - column)
            numbers = np.int32(centers.k), np.int32(column), np.int32(some), np.int32(of_block)
            self._gpu.launch(
                _FILE,
                "add_points",
                -(-n // of_block),
                _THREADS,
                (points, *numbers, sums, counts),
                self._stream,
                shared_bytes=centers.k * (8 * some + 4),
                defines=defines,
            )

    def _struct(self, group: _Group, workspace: Any, measures: bool, centers: _Centers, first: int, last: int) -> NDArray[np.void]:
        return struct(
            self._gpu,
            _POINTS,
            {
                **group.buffers,
                "distances": 0 if workspace is None else workspace,
                "changed": centers.status.changed_at,
                "first": first,
                "last": last,
                "d": self._d,
                "measures": int(measures),
            },
        )

    def _groups(self, first: int, last: int) -> Generator[_Group, None, None]:
        """Yield groups of points on the device: all groups if they fit together, otherwise one after the other."""
        if self._bring(first, last):
            yield from (group for group in self._residents if group.first < last and first < group.last)
            return
        for begin in range(first, last, self._most):
            yield self._sent(begin, min(last, begin + self._most))

    def _bring(self, first: int, last: int) -> bool:
        """Copy the points `first:last` to the device if they fit; they remain there. Return True if all of them are on the device."""
        gaps, position = list[tuple[int, int]](), first
        for group in self._residents:
            if group.last <= position or group.first >= last:
                continue
            if group.first > position:
                gaps.append((position, group.first))
            position = group.last
        if position < last:
            gaps.append((position, last))
        n_new = sum(end - begin for begin, end in gaps)
        if n_new == 0:
            return True
        if n_new + sum(group.last - group.first for group in self._residents) > self._most:
            return False
        try:
            new = [self._sent(begin, end) for begin, end in gaps]
        except DeviceMemoryError:
            return False
        finally:
            self._gpu.wait(self._stream)
        self._residents = sorted([*self._residents, *new], key=lambda group: group.first)
        return True

    def _cached_centers(self, k: int) -> tuple[_Centers, Any]:
        """Return the buffers for centroids, and an empty buffer for distances; cached, since an iteration takes only milliseconds."""
        if self._centers is None or self._centers[0].k != k:
            self._centers = None
            self._centers = _Centers(self._gpu, self._stream, k, self._d), self._gpu.buffer(0)
        return self._centers

    def _whole(self, n: int) -> _Group | None:
        """Return all points as one group on the device, or None if they do not fit."""
        if len(self._residents) > 1:
            self._residents = []
        return self._residents[0] if self._bring(0, n) and len(self._residents) == 1 else None

    def _sent(self, first: int, last: int) -> _Group:
        buffers = {"labels": self._gpu.buffer(4 * (last - first)), **sent(self._gpu, {"points": self._points[first:last]}, self._stream)}
        return _Group(first, last, buffers)


class _Lists:
    """Clusters with a non-zero sum by bin and tile (range of `_CLUSTERS_OF_TILE` clusters), on the device; at most `entries` elements."""

    def __init__(self, gpu: Gpu, n_bins: int, tiles: int, entries: int) -> None:
        self._gpu, self._n_bins, self._tiles, self._entries = gpu, n_bins, tiles, entries
        self._buffers = {
            "starts": gpu.buffer(8 * n_bins * (tiles + 1)),
            "clusters": gpu.buffer(4 * entries),
            "sums": gpu.buffer(8 * entries),
        }

    @classmethod
    def of(cls, gpu: Gpu, stream: Any, centroids: VectorSums, n_bins: int, tiles: int) -> _Lists:
        """Create the lists of the given centroids."""
        k, made = len(centroids.counts), cls(gpu, n_bins, tiles, len(centroids.keys))
        ends = np.minimum(np.arange(tiles + 1) * _CLUSTERS_OF_TILE, k)
        starts = np.searchsorted(centroids.keys, np.arange(n_bins)[:, None] * k + ends)
        columns = {"starts": starts.astype(np.int64), "clusters": (centroids.keys % k).astype(np.int32), "sums": centroids.sums}
        for name, column in columns.items():
            gpu.upload(made._buffers[name], np.ascontiguousarray(column), stream)
        gpu.wait(stream)
        return made

    @property
    def struct(self) -> NDArray[np.void]:
        return struct(self._gpu, _LISTS, self._buffers)

    def clear(self, stream: Any) -> None:
        """Clear the lists and the gaps between the lists of two bins, since gaps are also read."""
        self._gpu.clear(self._buffers["clusters"], 4 * self._entries, stream)
        self._gpu.clear(self._buffers["sums"], 8 * self._entries, stream)

    def read(self, stream: Any, counts: NDArray[np.int64]) -> VectorSums:
        """Return the sums in the lists."""
        starts = np.empty((self._n_bins, self._tiles + 1), np.int64)
        clusters, sums = np.empty(self._entries, np.int32), np.empty(self._entries, np.int64)
        for column, name in ((starts, "starts"), (clusters, "clusters"), (sums, "sums")):
            self._gpu.download(column, self._buffers[name], stream)
        self._gpu.wait(stream)
        lengths = starts[:, -1] - starts[:, 0]
        bins = np.repeat(np.arange(self._n_bins), lengths)
        positions = np.arange(len(bins)) + np.repeat(starts[:, 0] - np.concatenate(([0], np.cumsum(lengths)))[:-1], lengths)
        return VectorSums(bins * np.int64(len(counts)) + clusters[positions], sums[positions], counts)


class _VectorCenters:
    """Terms of the centroids of vectors on the device, and the state of an iteration."""

    def __init__(self, gpu: Gpu, stream: Any, k: int) -> None:
        self._gpu, self._stream, self.k = gpu, stream, k
        self.tiles = -(-k // _CLUSTERS_OF_TILE)
        self._terms = {name: gpu.buffer(8 * k) for name in ("factor", "square")}
        self._is_moved, self._moves, self._squares = gpu.buffer(k), gpu.buffer(k), gpu.buffer(24 * k)
        self.status = _RoundStatus(gpu, stream, k)
        for buffer in (self._is_moved, self._moves):
            gpu.clear(buffer, k, stream)

    def put(self, centroids: VectorSums) -> None:
        for name, column in centroids.terms()._asdict().items():
            self._gpu.upload(self._terms[name], column, self._stream)
        self._gpu.wait(self._stream)

    def begin(self) -> None:
        """Reset the state for an iteration."""
        self.status.clear()
        self._gpu.clear(self._moves, self.k, self._stream)
        self._gpu.clear(self._squares, 24 * self.k, self._stream)

    def advance(self) -> None:
        """Mark the clusters that lost or gained items as changed."""
        self._is_moved, self._moves = self._moves, self._is_moved

    def terms(self, is_whole: bool) -> NDArray[np.void]:
        members = {
            "is_moved": self._is_moved,
            "moves": self._moves,
            "changed": self.status.changed_at,
            "squares": self._squares,
            "k": self.k,
            "is_whole": int(is_whole),
        }
        return struct(self._gpu, _TERMS, {**self._terms, **members})

    def make(self) -> None:
        """Compute the terms of the sums of this iteration."""
        arguments = self.terms(False), self.status.buffer
        self._gpu.launch(_FILE, "make_terms", -(-self.k // _THREADS), _THREADS, arguments, self._stream, defines=_defines(8))


class VectorMeans:
    """Sparse vectors that are clustered on a GPU.

    Parameters
    ----------
    device
        GPU.
    vectors, n_bins, low, high
        See `proteoscope.kernels.cpu.k_means.VectorMeans`.
    """

    def __init__(
        self,
        device: Gpu,
        vectors: VectorArrays,
        n_bins: int,
        low: NDArray[np.int64] | None = None,
        high: NDArray[np.int64] | None = None,
    ) -> None:
        self._gpu, self._vectors, self._n_bins, self._stream = device, vectors, n_bins, device.stream()
        self._ranges = None if low is None or high is None else {"low": low, "high": high}
        self._budget = int(device.free_bytes() * _SHARE_OF_FREE_MEMORY)
        self._resident: _Group | None = None
        n = len(vectors.offsets) - 1
        before = self._bytes()
        if int(before[-1]) <= self._budget and n < 2**31:
            with suppress(DeviceMemoryError):
                self._resident = self._sent(0, n)
        device.wait(self._stream)

    def assign(
        self,
        centroids: VectorSums,
        labels: NDArray[np.int32],
        distances: NDArray[np.float64],
        first: int,
        last: int,
        reporting: int,
    ) -> Generator[Assigned, None, None]:
        """Assign vectors to the nearest centroid (see `proteoscope.kernels.cpu.k_means.VectorMeans.assign`).

        Raises
        ------
        DeviceError
            If the device failed.
        DeviceMemoryError
            If the centroids, or a single vector, do not fit.
        """
        try:
            centers = _VectorCenters(self._gpu, self._stream, len(centroids.counts))
            centers.put(centroids)
            lists = _Lists.of(self._gpu, self._stream, centroids, self._n_bins, centers.tiles)
            for group in self._groups(first, last):
                begin, end = max(first, group.first), min(last, group.last)
                here = begin - group.first, end - group.first
                self._gpu.clear(group.buffers["labels"], 4 * (group.last - group.first), self._stream)
                centers.begin()
                for _ in self._label(group, centers, lists, lists, *here, is_whole=True):
                    self._gpu.wait(self._stream)
                    yield Assigned(begin)
                sums = None
                if reporting != NEVER:
                    made = self._added(group, centers, *here)
                    counts, _ = centers.status.read()
                    sums = made[0].read(self._stream, counts)
                self._gpu.download(labels[begin:end], group.buffers["labels"], self._stream, offset=4 * here[0])
                if len(distances):
                    self._gpu.download(distances[begin:end], group.buffers["values"], self._stream, offset=8 * here[0])
                self._gpu.wait(self._stream)
                if len(distances):
                    self._measure(labels, distances, begin, end)
                yield Assigned(end, sums)
        finally:
            self._gpu.wait(self._stream)

    def iterate(self, centroids: VectorSums, labels: NDArray[np.int32], rounds: int, tolerance: float) -> Generator[int, None, Rounds]:
        """Iterate over all vectors (see `proteoscope.kernels.cpu.k_means.VectorMeans.iterate`).

        With a tolerance, the centroids are sent through the host.
        """
        group, n = self._resident, len(labels)
        if group is None or tolerance > 0.0:
            return (yield from rounds_through_host(self, centroids, labels, rounds, tolerance))
        try:
            centers = _VectorCenters(self._gpu, self._stream, len(centroids.counts))
            centers.put(centroids)
            lists = _Lists.of(self._gpu, self._stream, centroids, self._n_bins, centers.tiles)
            of_moved, is_given = lists, True
            self._gpu.upload(group.buffers["labels"], labels, self._stream)
            counts = centroids.counts
            for number in range(1, rounds + 1):
                before = counts
                centers.begin()
                for _ in self._label(group, centers, lists, of_moved, 0, n, is_whole=number <= 2):
                    self._gpu.wait(self._stream)
                    yield number - 1
                made = self._added(group, centers, 0, n)
                counts, changed = centers.status.read()
                if number == rounds or changed == 0 or not counts.all():
                    break
                centers.make()
                centers.advance()
                (lists, of_moved), is_given = made, False
                yield number
            self._gpu.download(labels, group.buffers["labels"], self._stream)
            sums = made[0].read(self._stream, counts)
            used = centroids if is_given else lists.read(self._stream, before)
            return Rounds(number, used, sums, changed)
        finally:
            self._gpu.wait(self._stream)

    def tally(
        self,
        centroids: VectorSums,
        previous: VectorSums | None,
        labels: NDArray[np.int32],
        first: int,
        last: int,
        *,
        is_labelled: bool,
    ) -> Generator[None, None, Tally]:
        """Run an iteration (see `proteoscope.kernels.cpu.k_means.VectorMeans.tally`); labels are sent through the host."""
        return (yield from tally_through_host(self, centroids, previous, labels, first, last, is_labelled=is_labelled))

    def _label(
        self, group: _Group, centers: _VectorCenters, lists: _Lists, of_moved: _Lists, first: int, last: int, *, is_whole: bool
    ) -> Generator[None, None, None]:
        """Launch the labelling of the vectors `first:last` of a group; yields between launches."""
        offsets = self._vectors.offsets[group.first + first : group.first + last + 1]
        marks = np.arange(offsets[0], offsets[-1], max(1, _STEPS_OF_RUN // centers.k))[1:]
        cuts = np.unique([0, *np.searchsorted(offsets, marks), last - first])
        vectors, terms = self._struct(group, centers), centers.terms(is_whole)
        for position, (begin, end) in enumerate(pairwise(cuts.tolist())):
            if position:
                yield
            blocks = min(-(-(end - begin) // _WARPS), self._gpu.multiprocessors() * _VECTOR_BLOCKS)
            arguments = vectors, lists.struct, of_moved.struct, terms, np.int32(first + begin), np.int32(first + end)
            buffers = group.buffers["labels"], group.buffers["values"]
            self._gpu.launch(
                _FILE,
                "assign_vectors",
                blocks,
                32 * _WARPS,
                (*arguments, *buffers),
                self._stream,
                shared_bytes=_PRODUCT_BYTES,
                defines=_defines(8),
            )

    def _added(self, group: _Group, centers: _VectorCenters, first: int, last: int) -> tuple[_Lists, _Lists]:
        """Sum the vectors `first:last` of a group by cluster; return the lists of all clusters, and the lists of the changed clusters."""
        entries = int(self._vectors.offsets[group.last] - self._vectors.offsets[group.first])
        made = [_Lists(self._gpu, self._n_bins, centers.tiles, entries) for _ in range(2)]
        made[0].clear(self._stream)
        numbers, labels = (np.int32(first), np.int32(last)), group.buffers["labels"]
        blocks = min(self._gpu.multiprocessors() * _BLOCKS, -(-(last - first) // _THREADS))
        self._gpu.launch(
            _FILE, "count_vectors", blocks, _THREADS, (labels, *numbers, centers.status.buffer), self._stream, defines=_defines(8)
        )
        arguments = self._struct(group, centers), labels, *numbers, made[0].struct, made[1].struct, centers.terms(False)
        self._gpu.launch(_FILE, "add_vectors", self._n_bins, _THREADS, arguments, self._stream, defines=_defines(8))
        return made[0], made[1]

    def _measure(self, labels: NDArray[np.int32], distances: NDArray[np.float64], first: int, last: int) -> None:
        """Replace the values of the vectors `first:last` by squared distances."""
        offsets = self._vectors.offsets[first : last + 1]
        weights = self._vectors.weights[offsets[0] : offsets[-1]].astype(np.float64)
        before = np.concatenate(([0.0], np.cumsum(weights * weights)))[offsets - offsets[0]]
        squares = np.diff(before)
        has_label = labels[first:last] >= 0
        distances[first:last] = np.where(has_label, np.maximum(0.0, squares - distances[first:last]), squares)

    def _struct(self, group: _Group, centers: _VectorCenters) -> NDArray[np.void]:
        columns = {name: group.buffers.get(name, 0) for name in _VECTOR_COLUMNS}
        return struct(self._gpu, _VECTORS, {**columns, "has_ranges": int(self._ranges is not None), "tiles": centers.tiles})

    def _bytes(self) -> NDArray[np.int64]:
        """Return the cumulative bytes of the vectors on the device, (n + 1,)."""
        offsets = self._vectors.offsets
        return _ELEMENT_BYTES * (offsets - offsets[0]) + _VECTOR_BYTES * np.arange(len(offsets))

    def _groups(self, first: int, last: int) -> Generator[_Group, None, None]:
        """Yield groups of vectors on the device: one group if all vectors are already there, otherwise groups that fit."""
        if self._resident is not None:
            if first < last:
                yield self._resident
            return
        before = self._bytes()
        while first < last:
            end = min(last, first + 2**30, int(np.searchsorted(before, before[first] + self._budget, side="right")) - 1)
            if end <= first:
                raise DeviceMemoryError(f"{self._gpu.name} has {self._budget / 1e6:,.0f} MB of memory available, not enough for one vector")
            yield self._sent(first, end)
            first = end

    def _sent(self, first: int, last: int) -> _Group:
        vectors, n = self._vectors, last - first
        offsets = vectors.offsets[first : last + 1] - vectors.offsets[first]
        elements = slice(int(vectors.offsets[first]), int(vectors.offsets[last]))
        bins, weights = vectors.bins[elements], vectors.weights[elements]
        # Sort elements by bin. Bin and element index in one integer sort fastest.
        order = np.sort(bins.astype(np.int64) << 32 | np.arange(len(bins))) & 0xFFFFFFFF
        vector_of = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
        columns: dict[str, NDArray] = {
            "offsets": offsets,
            "bins": bins,
            "weights": weights,
            "bin_offsets": np.concatenate(([0], np.cumsum(np.bincount(bins, minlength=self._n_bins)))),
            "vector_of": vector_of[order],
            "weight_of": weights[order],
        }
        if self._ranges is not None:
            columns |= {name: column[first:last].astype(np.int32) for name, column in self._ranges.items()}
        buffers = {"labels": self._gpu.buffer(4 * n), "values": self._gpu.buffer(8 * n)}
        group = _Group(first, last, {**buffers, **sent(self._gpu, columns, self._stream)})
        self._gpu.wait(self._stream)
        return group
