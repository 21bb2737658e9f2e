"""Workload types that assign points or vectors to the nearest of k centroids, and compute the sums of clusters, on any devices.

Devices receive centroids and return partial sums, which the host adds (Li's thesis, Algorithms 4.9 and 4.10); labels remain on the devices
until the last round. A single device runs several rounds without exchanging centroids. One thread controls several GPUs in the same round,
since a round of a few milliseconds is shorter than the synchronisation of threads. The host needs longer to add the sums of sparse vectors
than a GPU needs for a round, so that only one GPU is used for vectors.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine import clustering
from proteoscope.engine.execution.executor import Session
from proteoscope.engine.execution.workload import Columns, PartialResult, PredictableWorkloadType, Rows, Sample, Workload
from proteoscope.kernels.clustering_layouts import (
    IN_PARTS,
    NEVER,
    POINTS_OF_RUN,
    Assigned,
    PointSums,
    Rounds,
    Tally,
    VectorArrays,
    VectorSums,
    total_sums,
)
from proteoscope.kernels.device import Device, backend_module

__all__ = [
    "POINTS",
    "VECTORS",
    "Assignment",
    "PointsToCentroids",
    "VectorsToCentroids",
    "assign",
    "measure",
    "point_workload",
    "vector_workload",
]

POINTS, VECTORS = "points", "vectors"
ROUNDS, SUMS, LABELS, DISTANCES = "rounds", "sums", "labels", "distances"
"""Outputs of a round: the result of several rounds, sums with the number of changed labels, labels, or labels with distances."""
_COST_OF_ELEMENT = 0.1  # relative cost of one vector element, compared with the constant cost of a vector


class Assignment(NamedTuple):
    """Result of one or several rounds for n items.

    Attributes
    ----------
    labels : ndarray of int32, shape (n,)
        Cluster of each item, -1 for a vector without an allowed centroid; (0,) if the labels remained on the devices.
    distances : ndarray of float64, shape (n,)
        Squared distance of each item from its nearest centroid; (0,) if not requested.
    sums : PointSums or VectorSums
        Sums and counts of the items of each cluster.
    centroids : ndarray of float64, shape (k, d), or VectorSums
        Centroids used by the last round.
    rounds : int
        Number of completed rounds.
    changed : int
        Number of labels that differ from the previous round.
    """

    labels: NDArray[np.int32]
    distances: NDArray[np.float64]
    sums: PointSums | VectorSums
    centroids: Any
    rounds: int
    changed: int


def point_workload(points: NDArray[np.int32]) -> Workload:
    """Return the workload of assigning the points (n, d) int32."""
    return Workload(POINTS, {"points": {"points": points}}, {})


def vector_workload(
    vectors: VectorArrays, n_bins: int, low: NDArray[np.int64] | None = None, high: NDArray[np.int64] | None = None
) -> Workload:
    """Return the workload of assigning n vectors.

    Parameters
    ----------
    vectors : VectorArrays
        The n vectors.
    n_bins : int
        Number of bins; all bins of the vectors are lower.
    low, high : ndarray of int64, shape (n,), optional
        Range of centroids to which each vector may be assigned; by default all.
    """
    ranges = {} if low is None or high is None else {"low": low, "high": high}
    return Workload(VECTORS, {"vectors": vectors._asdict(), "ranges": ranges}, {"n_bins": n_bins})


def assign(
    session: Session,
    workload: Workload,
    centroids: NDArray[np.float64] | VectorSums,
    *,
    before: NDArray[np.int32] | None = None,
    previous: NDArray[np.float64] | VectorSums | None = None,
    rounds: int = 1,
    tolerance: float = 0.0,
) -> Assignment:
    """Assign all items to their nearest centroids (one round) and return the result.

    A single device continues with the new centroids, for up to `rounds` rounds.

    Parameters
    ----------
    session : Session
        Session of the workload.
    workload : Workload
        Workload of the session.
    centroids : ndarray of float64, shape (k, d), or VectorSums
        Centroids of points or of vectors.
    before : ndarray of int32, shape (n,), or None
        Labels of the previous round, -2 in the first round; None if the labels remained on the devices.
    previous : ndarray of float64, VectorSums or None
        Centroids of the previous round, None in the first round.
    rounds : int
        Maximum number of rounds.
    tolerance : float
        See `proteoscope.kernels.clustering_layouts.rounds_through_host`.

    Returns
    -------
    Assignment

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    continues_rounds = len(session.devices) == 1 and before is not None
    state = _state(workload, centroids, ROUNDS if continues_rounds else SUMS, rounds if continues_rounds else 1)
    state |= {"tolerance": tolerance, "before": before if continues_rounds else None, "previous": _columns(previous)}
    # Several rounds may end early, so their time does not measure the speed of a device.
    rows = session.run(state, step_cost=state["round_cost"], is_measured=not continues_rounds, is_stored=False, in_step=True)
    is_sparse, used = isinstance(centroids, VectorSums), centroids
    if rows["rounds"][0]:
        used = VectorSums(*(rows[f"of_{name}"] for name in VectorSums._fields)) if is_sparse else rows["of_centroids"]
    sums = _sums(is_sparse, rows)
    return Assignment(rows["labels"], rows["distances"], sums, used, max(1, int(rows["rounds"][0])), int(rows["changed"][0]))


def measure(session: Session, workload: Workload, centroids: NDArray[np.float64] | VectorSums, *, distances: bool) -> Assignment:
    """Assign all items to `centroids` and return the labels; with `distances`, also the distances. Sums are not computed.

    Raises
    ------
    Cancelled
        If the user cancelled.
    """
    state = _state(workload, centroids, DISTANCES if distances else LABELS, 1)
    rows = session.run(state, step_cost=state["round_cost"], is_measured=False, is_stored=False)
    return Assignment(rows["labels"], rows["distances"], _sums(isinstance(centroids, VectorSums), rows), centroids, 1, 0)


def _state(workload: Workload, centroids: NDArray[np.float64] | VectorSums, output: str, rounds: int) -> dict[str, Any]:
    """Return the state of a round (one iteration), which is sent to devices: centroids, requested output, number of rounds, and cost."""
    state: dict[str, Any] = {"centroids": _columns(centroids), "output": output, "rounds": rounds}
    kind: _Kind = VectorsToCentroids() if workload.kind == VECTORS else PointsToCentroids()
    return state | {"round_cost": kind.round_cost(workload, state)}


def _columns(centroids: NDArray[np.float64] | VectorSums | None) -> dict[str, NDArray[Any]] | None:
    if centroids is None:
        return None
    return centroids._asdict() if isinstance(centroids, VectorSums) else {"centroids": centroids}


def _sums(is_sparse: bool, rows: Rows) -> PointSums | VectorSums:
    return VectorSums(rows["keys"], rows["sums"], rows["counts"]) if is_sparse else PointSums(rows["sums"], rows["counts"])


class _Kind(PredictableWorkloadType):
    """Workload type whose items are segments of points, or single vectors; the state of a round contains its centroids."""

    is_sparse: ClassVar[bool]
    of_item: ClassVar[int]  # number of points or vectors per item
    parts_of_worker = 1  # each part has separate sums

    def __init__(self) -> None:
        self._costs: tuple[float, NDArray[np.float64]] | None = None

    def costs(self, workload: Workload, state: Any) -> NDArray[np.float64]:
        """Return the maximum number of operations of each item over all rounds; cached, since a round may take only a millisecond."""
        factor = state["rounds"] * self._factor(state)
        if self._costs is None or self._costs[0] != factor:
            self._costs = factor, self._operations(workload) * factor
        return self._costs[1]

    def round_cost(self, workload: Workload, state: Any) -> float:
        """Return the operations of one round."""
        return self._total(workload) * self._factor(state)

    def _factor(self, state: Any) -> float:
        k, d = self._shape(state)
        return float(k * max(1, d))

    def _total(self, workload: Workload) -> float:
        raise NotImplementedError

    def _operations(self, workload: Workload) -> NDArray[np.float64]:
        raise NotImplementedError

    @contextmanager
    def open(self, workload: Workload, device: Device, *, is_shared: bool) -> Iterator[_Computation]:
        """Copy the items to the device and yield the computation."""
        yield _Computation(self._means(workload, device), self.is_sparse, self._length(workload), self.of_item)

    def _length(self, workload: Workload) -> int:
        raise NotImplementedError

    def _means(self, workload: Workload, device: Device) -> Any:
        raise NotImplementedError

    def empty(self, workload: Workload, state: Any, n: int) -> Rows:
        """Return a result without assigned items."""
        (k, d), n, output = self._shape(state), self._length(workload), state["output"]
        none = np.empty(0, np.int64)
        sums = (
            VectorSums(none, none, np.zeros(k, np.int64))
            if self.is_sparse
            else PointSums(np.zeros((k, d), np.int64), np.zeros(k, np.int64))
        )
        return {
            "labels": np.full(0 if output == SUMS else n, -1, np.int32),
            "distances": np.empty(n if output == DISTANCES else 0),
            "rounds": np.zeros(1, np.int64),
            "changed": np.zeros(1, np.int64),
            **sums._asdict(),
        }

    def _shape(self, state: Any) -> tuple[int, int]:
        columns: Columns = state["centroids"]
        return (len(columns["counts"]), 0) if self.is_sparse else columns["centroids"].shape

    def merge(self, into: Rows, first: int, end: int, rows: Rows) -> None:
        """Copy labels and distances of the items `first:end` to `into`, and add the sums."""
        assert isinstance(into, dict)
        for name, column in rows.items():
            if name in ("labels", "distances"):
                into[name][first * self.of_item : first * self.of_item + len(column)] = column
        if "counts" in rows:
            into.update(total_sums([_sums(self.is_sparse, into), _sums(self.is_sparse, rows)])._asdict())
        if "changed" in rows:
            into["changed"] = into["changed"] + rows["changed"]
        into.update({name: column for name, column in rows.items() if name.startswith("of_") or name == "rounds"})


class PointsToCentroids(_Kind):
    """Workload type for points in d dimensions."""

    is_sparse = False
    of_item = POINTS_OF_RUN

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return clustering.grouping.sample_points(size, seed)

    def _operations(self, workload: Workload) -> NDArray[np.float64]:
        return np.full(-(-self._length(workload) // POINTS_OF_RUN), float(POINTS_OF_RUN))

    def _total(self, workload: Workload) -> float:
        return float(-(-self._length(workload) // POINTS_OF_RUN) * POINTS_OF_RUN)

    def _length(self, workload: Workload) -> int:
        return len(workload.sources["points"]["points"])

    def _means(self, workload: Workload, device: Device) -> Any:
        return backend_module(device, "k_means").PointMeans(device, workload.sources["points"]["points"])


class VectorsToCentroids(_Kind):
    """Workload type for sparse vectors."""

    is_sparse = True
    of_item = 1

    def samples(self, size: float, seed: int) -> Sample:
        """Return a synthetic workload of approximately the given size."""
        return clustering.grouping.sample_vectors(size, seed)

    def _length(self, workload: Workload) -> int:
        return len(workload.sources["vectors"]["offsets"]) - 1

    def _operations(self, workload: Workload) -> NDArray[np.float64]:
        operations: NDArray[np.float64] = 1.0 + _COST_OF_ELEMENT * np.diff(workload.sources["vectors"]["offsets"])
        return operations

    def _total(self, workload: Workload) -> float:
        return self._length(workload) + _COST_OF_ELEMENT * len(workload.sources["vectors"]["bins"])

    def _means(self, workload: Workload, device: Device) -> Any:
        vectors = VectorArrays(**workload.sources["vectors"])
        return backend_module(device, "k_means").VectorMeans(device, vectors, workload.settings["n_bins"], **workload.sources["ranges"])


class _Computation:
    """Assignment of items to centroids on one device, which holds the points or vectors."""

    def __init__(self, means: Any, is_sparse: bool, n: int, of_item: int) -> None:
        self._means, self._is_sparse, self._of_item = means, is_sparse, of_item
        self._labels, self._distances = np.empty(n, np.int32), np.empty(0)
        self._state = dict[str, Any]()
        # Two masks of items: their labels on this device belong to the previous centroids, or to the current centroids.
        self._is_labelled, self._is_done = (np.zeros(-(-n // of_item), np.bool_) for _ in range(2))
        self._used: Any = None

    def begin(self, state: Any, items: NDArray[np.int64] | None) -> None:
        """Start a round with new centroids."""
        if items is not None:
            raise ValueError("all items are assigned")
        self._state = state
        self._centroids, self._previous = self._unpacked_centroids(state["centroids"]), self._unpacked_centroids(state.get("previous"))
        self._distances = np.empty(len(self._labels) if state["output"] == DISTANCES else 0)
        nothing = np.zeros(len(self._is_done), np.bool_)
        continues_rounds = state["output"] == SUMS and self._previous is not None and _are_same(self._used, self._previous)
        self._is_labelled, self._is_done = self._is_done if continues_rounds else nothing, nothing.copy()
        self._used = self._centroids if state["output"] == SUMS else None

    def _unpacked_centroids(self, columns: Any) -> Any:
        return None if columns is None else VectorSums(**columns) if self._is_sparse else columns["centroids"]

    def search(self, first: int, last: int) -> Generator[PartialResult, None, None]:
        """Assign the items `first:last`, in one or several rounds; yield partial results."""
        begun, until, output = first * self._of_item, min(len(self._labels), last * self._of_item), self._state["output"]
        if output == ROUNDS and until - begun == len(self._labels):
            yield from self._rounds(last)
            return
        if output == SUMS:
            yield from self._tally(first, last, begun, until)
            return
        reporting = IN_PARTS if output == ROUNDS else NEVER  # only part of the items is on this device
        parts: Generator[Assigned, None, None] = self._means.assign(self._centroids, self._labels, self._distances, begun, until, reporting)
        with closing(parts):
            for end, sums in parts:
                if end == begun or (sums is None and reporting != NEVER):
                    yield PartialResult(begun // self._of_item)
                    continue
                rows = {"labels": self._labels[begun:end], **({} if sums is None else sums._asdict())}
                if sums is not None:
                    rows["changed"] = np.array([np.count_nonzero(rows["labels"] != self._state["before"][begun:end])])
                if len(self._distances):
                    rows["distances"] = self._distances[begun:end]
                yield PartialResult(-(-end // self._of_item), rows)  # the last run may be shorter
                begun = end

    def _tally(self, first: int, last: int, begun: int, until: int) -> Generator[PartialResult, None, None]:
        """Run a round whose labels remain on the device; yield partial results."""
        is_labelled = bool(self._is_labelled[first:last].all())
        self._is_labelled[first:last] = False  # labels change from here on
        result: list[Tally] = []

        def tally() -> Generator[None, None, None]:
            given = self._centroids, self._previous, self._labels, begun, until
            result.append((yield from self._means.tally(*given, is_labelled=is_labelled)))

        with closing(tally()) as steps:
            for _ in steps:
                yield PartialResult(first)
        self._is_done[first:last] = True
        (outcome,) = result
        yield PartialResult(last, {**outcome.sums._asdict(), "changed": np.array([outcome.changed])})

    def _rounds(self, last: int) -> Generator[PartialResult, None, None]:
        """Run several rounds with all items; yield the progress after each round, and the result at the end."""
        state = self._state
        self._labels[:] = state["before"]
        result: list[Rounds] = []

        def rounds() -> Generator[int, None, None]:
            result.append((yield from self._means.iterate(self._centroids, self._labels, state["rounds"], state["tolerance"])))

        with closing(rounds()) as done:
            for number in done:
                yield PartialResult(0, beyond=number * state["round_cost"])
        (outcome,) = result
        columns = outcome.centroids._asdict() if self._is_sparse else {"centroids": outcome.centroids}
        yield PartialResult(
            last,
            {
                "labels": self._labels,
                **outcome.sums._asdict(),
                **{f"of_{name}": column for name, column in columns.items()},
                "rounds": np.array([outcome.n]),
                "changed": np.array([outcome.changed]),
            },
        )


def _are_same(first: Any, second: Any) -> bool:
    """Return True for bit-identical centroids."""
    if first is None or second is None or type(first) is not type(second):
        return False
    pairs = zip(first, second, strict=True) if isinstance(first, VectorSums) else ((first, second),)
    return all(np.array_equal(column, of_other) for column, of_other in pairs)
