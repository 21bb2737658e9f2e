"""Clustering of similar vectors on any devices, as a workload type."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import clustering as clustering_package
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.kernels.clustering_layouts import Linkage, VectorArrays, islands, window_pairs
from proteoscope.kernels.device import Device, backend_module

if TYPE_CHECKING:
    from proteoscope.kernels.cpu.vector_clustering import VectorClustering

__all__ = ["KIND", "STEP_PRODUCTS", "VectorGroups", "create_workload", "grouped"]

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
        return clustering_package.synthetic_workload.sample_groups(size, seed)

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
        """Return labels by which each vector is a separate cluster, and the starts of the islands, which `merge` uses."""
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
