"""Clustering of similar vectors on any devices, as a workload type."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.clustering.assignment import ROUNDS, SUMS, point_workload, vector_workload
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.kernels.clustering_layouts import COMPLETE, UNIT_LENGTH, Linkage, VectorArrays, islands, sum_by_cluster, window_pairs
from proteoscope.kernels.device import Device, backend_module

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.vector_clustering import VectorClustering

__all__ = ["KIND", "STEP_PRODUCTS", "VectorGroups", "create_workload", "grouped", "sample_groups", "sample_points", "sample_vectors"]

_POINTS, _DIMENSIONS, _CLUSTERS, _ROUNDS = 2_000_000, 8, 100, 5
_VECTORS, _CLUSTERS_OF_VECTORS, _BINS = 60_000, 500, 40_000
_GROUPED, _ELEMENTS, _OF_KIND, _WINDOW = 200_000, 30, 5, 40
_DRAWN = 20_000  # random vectors, in islands of a thousand; more are copies


def _vectors(n: int, rng: np.random.Generator) -> VectorArrays:
    """Return `n` random vectors, in series of similar vectors; after 20,000 vectors, the same vectors are repeated."""
    if n > _DRAWN:
        some = _vectors(_DRAWN, rng)
        source = np.arange(n) % _DRAWN
        sizes, times = np.diff(some.offsets), -(-n // _DRAWN)
        offsets = segment_offsets(sizes[source])
        last = int(offsets[-1])
        return VectorArrays(offsets, np.tile(some.bins, times)[:last], np.tile(some.weights, times)[:last])
    kinds = rng.integers(0, _BINS, (max(1, n // _OF_KIND), _ELEMENTS))
    source = np.sort(rng.integers(0, len(kinds), n))
    rows = np.sort(kinds[source], axis=1)
    is_used = (np.diff(rows, axis=1, prepend=-1) > 0) & (rng.random(rows.shape) < 0.9)
    is_used[:, 0] = True
    weights = np.clip(rng.exponential(UNIT_LENGTH / 6, rows.shape), 1, UNIT_LENGTH).astype(np.int16)
    return VectorArrays(segment_offsets(is_used.sum(axis=1)), rows[is_used].astype(np.int32), weights[is_used])


def _state(centroids: dict[str, Any], n: int, rounds: int) -> dict[str, Any]:
    before = np.full(n, -2, np.int32) if rounds > 1 else None
    output = SUMS if before is None else ROUNDS
    return {
        "centroids": centroids,
        "previous": None,
        "output": output,
        "rounds": rounds,
        "tolerance": 0.0,
        "before": before,
        "round_cost": 1.0,
    }


def sample_points(size: float, seed: int) -> Sample:
    """Return points in eight dimensions, for several rounds."""
    rng = np.random.default_rng(seed)
    n = max(2000, round(_POINTS * size))
    points = rng.integers(-(1 << 28), 1 << 28, (n, _DIMENSIONS), np.int32)
    workload = point_workload(points)
    return Sample(workload, [_state({"centroids": points[:_CLUSTERS].astype(np.float64)}, n, _ROUNDS)])


def sample_vectors(size: float, seed: int) -> Sample:
    """Return vectors of spectra, for one round."""
    rng = np.random.default_rng(seed)
    n = max(_CLUSTERS_OF_VECTORS, round(_VECTORS * size))
    vectors = _vectors(n, rng)
    labels = np.full(n, -1)
    labels[rng.choice(n, _CLUSTERS_OF_VECTORS, replace=False)] = np.arange(_CLUSTERS_OF_VECTORS)
    workload = vector_workload(vectors, _BINS)
    return Sample(workload, [_state(sum_by_cluster(vectors, labels, _CLUSTERS_OF_VECTORS, 0, n)._asdict(), n, 1)])


def sample_groups(size: float, seed: int) -> Sample:
    """Return a sample for complete linkage: independent groups (islands) of a thousand vectors.

    Each vector is compared with the next `_WINDOW` vectors of its island.
    """
    rng = np.random.default_rng(seed)
    n = max(50, round(_GROUPED * size))
    numbers = np.arange(n)
    ends = np.minimum(np.minimum(numbers + 1 + _WINDOW, (numbers // 1000 + 1) * 1000), n)
    return Sample(create_workload(_vectors(n, rng), ends.astype(np.int64)), [Linkage(COMPLETE, 0.6)._asdict()])


KIND = "vector-groups"
STEP_PRODUCTS = 10_000_000
"""Number of products of vector elements per step of the progress."""


def create_workload(vectors: VectorArrays, ends: NDArray[np.int64]) -> Workload:
    """Return the workload of clustering n vectors.

    Parameters
    ----------
    vectors : VectorArrays
        Vectors to group.
    ends : ndarray of int64, shape (n,)
        End of the range of vectors with which each vector i may be compared, not decreasing; the range starts at i + 1.
    """
    return Workload(KIND, {"vectors": vectors._asdict(), "windows": {"ends": ends, "starts": islands(ends)}}, {})


def grouped(session: Session, linkage: Linkage) -> NDArray[np.int64]:
    """Return, for each vector, the smallest index of a vector in its cluster, (n,) int64.

    Raises
    ------
    ValueError
        If a number of the linkage is out of bounds.
    Cancelled
        If the user cancelled.
    """
    return session.run(linkage.checked()._asdict(), step_cost=STEP_PRODUCTS)["labels"]


class VectorGroups(PredictableWorkloadType):
    """Workload type whose items are islands: ranges of vectors such that vectors of different islands are not compared.

    The state of a round is the linkage.
    """

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return sample_groups(size, seed)

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the number of products of elements for each island."""
        ends, starts = workload.sources["windows"]["ends"], workload.sources["windows"]["starts"]
        if not len(ends):
            return np.zeros(0)
        elements = max(1.0, len(workload.sources["vectors"]["bins"]) / len(ends))
        return np.add.reduceat(1 + window_pairs(ends), starts[:-1]) * elements

    @contextmanager
    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Copy the vectors to the device and yield the computation."""
        vectors, windows = VectorArrays(**workload.sources["vectors"]), workload.sources["windows"]
        clustering = backend_module(device, "vector_clustering").VectorClustering(device, vectors, windows["ends"])
        yield _Computation(clustering, windows["starts"])

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return the initial rows: a different label for each vector, and the starts of the islands, which `merge` uses."""
        windows = workload.sources["windows"]
        return {"labels": np.arange(len(windows["ends"])), "starts": windows["starts"]}

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Copy the labels of the islands `first:end` to `into`."""
        into["labels"][into["starts"][first] : into["starts"][end]] = rows["labels"]


class _Computation:
    """Clustering of vectors on one device, which holds them."""

    def __init__(self, clustering: VectorClustering, starts: NDArray[np.int64]) -> None:
        self._clustering, self._starts = clustering, starts
        self._labels = np.empty(int(starts[-1]), np.int64)
        self._linkage: Linkage | None = None

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Start a round with a linkage."""
        if items is not None:
            raise ValueError("vectors are clustered with all islands of a run of them")
        self._linkage = Linkage(**state)

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Cluster the islands `first:last`; yield partial results."""
        assert self._linkage is not None
        begun, stop = int(self._starts[first]), int(self._starts[last])
        with closing(self._clustering.cluster(self._linkage, self._labels, begun, stop)) as ends:
            for end in ends:
                yield PartialResult(int(np.searchsorted(self._starts, end)), {"labels": self._labels[begun:end].copy()})
                begun = end
