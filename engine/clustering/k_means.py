"""k-means of points and of sparse vectors on any devices (Lloyd's algorithm, as in Li's thesis, section 4.2).

Items are integers, and centroids are quotients of integers, so that devices of any type and number find the same clusters. A stopped run
resumes after the last stored round, or with the initial centroids selected so far.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import row_mask
from proteoscope.engine.clustering.assignment import Assignment, assign, measure, point_workload, vector_workload
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.checkpoints import IterationCheckpoint
from proteoscope.engine.execution.executor import Executor, Session
from proteoscope.engine.execution.workload import Workload
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.clustering_layouts import PointSums, VectorArrays, VectorSums, keep_empty, movement, sum_by_cluster, total_sums

__all__ = ["Clusters", "InitialCentroids", "KMeansCheckpoint", "Points", "Vectors", "k_means", "seed_items"]

SECONDS_AT_ONCE = 5.0  # duration of the rounds between checkpoints on a single device
_FIRST_AT_ONCE = 4
_BITS = 30  # bits of the largest coordinate
_FARTHEST = 1e100  # maximum coordinate of a centroid: its square must be finite
_POINTS_OF_BATCH = 10_000  # points converted to integers together, so that temporary arrays stay in the cache
_MAXIMUM_EXPONENT = 1000  # maximum exponent of the scale, which must be finite


class KMeansCheckpoint:
    """Checkpoint of a k-means iteration, created by `for_iteration`; in a run without checkpoints, it stores no data."""

    def __init__(self, checkpoint: IterationCheckpoint | None) -> None:
        self._checkpoint, self._at_once, self._adjusted_at = checkpoint, _FIRST_AT_ONCE, time.monotonic()

    @classmethod
    def for_iteration(cls, session: Session, identification: dict[str, Any]) -> KMeansCheckpoint:
        """Return the checkpoint of the iteration that the settings `identification` identify."""
        return cls(session.checkpoint(identification))

    def rounds_at_once(self, left: int) -> int:
        """Return the number of rounds, at most `left`, that a single device runs before the next checkpoint: about five seconds of work."""
        if self._checkpoint is None:
            return left
        now = time.monotonic()
        if now - self._adjusted_at < SECONDS_AT_ONCE:
            self._at_once *= 2
        elif now - self._adjusted_at > 2 * SECONDS_AT_ONCE:
            self._at_once = max(1, self._at_once // 2)
        self._adjusted_at = now
        return min(left, self._at_once)

    def resumed_rounds(self, labels: NDArray[np.int32] | None, centroids: Any) -> tuple[NDArray[np.int32] | None, Any, Any, int]:
        """Return the stored labels, the centroids of the last round, those for the next round, and the number of completed rounds.

        The labels are None if they were on several devices. Without a stored state, `labels`, None, `centroids` and 0 are returned.
        """
        retained = None if self._checkpoint is None else self._checkpoint.state()
        if retained is None:
            return labels, None, centroids, 0
        previous, following = (_columns(retained, name, isinstance(centroids, VectorSums)) for name in ("previous", "centroids"))
        return retained.get("labels"), previous, following, int(retained["done"][0])

    def store_rounds(self, labels: NDArray[np.int32] | None, previous: Any, centroids: Any, done: int) -> None:
        """Store the state after `done` rounds, if a checkpoint is due."""
        if self._checkpoint is not None and self._checkpoint.is_due:
            state = {"done": np.array([done])} if labels is None else {"done": np.array([done]), "labels": labels}
            for name, columns in (("previous", previous), ("centroids", centroids)):
                state |= {
                    f"{name}_{number}": column for number, column in enumerate(columns if isinstance(columns, VectorSums) else (columns,))
                }
            self._checkpoint.store(state)

    def resumed_seeds(self, chosen: list[int], nearest: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
        """Return the stored items that were selected as centroids, and for each item the squared distance from the nearest of them.

        The distances do not yet include the item selected last. Without a stored state, the arguments are returned.
        """
        retained = None if self._checkpoint is None else self._checkpoint.state()
        return (chosen, nearest) if retained is None else (retained["chosen"].tolist(), retained["nearest"])

    def store_seeds(self, chosen: list[int], nearest: NDArray[np.float64]) -> None:
        """Store the items that were selected as initial centroids so far, if a checkpoint is due."""
        if self._checkpoint is not None and self._checkpoint.is_due:
            self._checkpoint.store({"chosen": np.array(chosen), "nearest": nearest})


def _columns(stored: Mapping[str, NDArray[Any]], name: str, is_sparse: bool) -> Any:
    """Return the centroids stored under `name`: VectorSums if `is_sparse`, otherwise an array."""
    columns = (stored[f"{name}_{number}"] for number in range(len(VectorSums._fields) if is_sparse else 1))
    return VectorSums(*columns) if is_sparse else next(columns)


class Clusters(NamedTuple):
    """Result of k-means.

    Attributes
    ----------
    labels : ndarray of int32, shape (n,)
        Cluster of each item, -1 for vectors without an allowed centroid.
    centroids : ndarray of float64, shape (k, d), or VectorSums
        Centroids in the unit of the data; an array for points, sums for vectors.
    sums : PointSums or VectorSums
        Sums of the last round, whose means are the centroids; empty clusters retain their centroids.
    rounds : int
        Number of rounds.
    moved : float
        Sum of the squared distances by which the centroids moved in the last round.
    is_settled : bool
        True if another round would change no label, or move centroids only within the tolerance.
    """

    labels: NDArray[np.int32]
    centroids: NDArray[np.float64] | VectorSums
    sums: PointSums | VectorSums
    rounds: int
    moved: float
    is_settled: bool


@dataclass(frozen=True)
class InitialCentroids:
    """Method by which the k initial centroids are selected.

    Attributes
    ----------
    k : int
        Number of centroids.
    method : str
        "first", the first k items; "random", k random items; "k-means++", each with a probability proportional to its squared distance from
        the nearest item selected before (Arthur and Vassilvitskii 2007).
    seed : int
        Seed of the PCG64 random generator.
    """

    k: int
    method: str = "k-means++"
    seed: int = 0


class _Data(Protocol):
    """Operations on points or vectors that k-means needs in addition to the assignment."""

    def __len__(self) -> int:
        """Return the number of items."""

    def work(self) -> Workload:
        """Return the workload of the assignment."""

    def centroids_at(self, items: NDArray[np.int64]) -> Any:
        """Return the items with the given indices as centroids."""

    def checked_centroids(self, centroids: Any) -> Any:
        """Check the centroids of the caller, and return them in the unit of the computation."""

    def to_data_unit(self, centroids: Any) -> Any:
        """Convert centroids from the unit of the computation to the unit of the data."""

    def moved(self, sums: Any, items: NDArray[np.int64], labels: NDArray[np.int32], clusters: NDArray[np.int64]) -> Any:
        """Return the sums after moving each item from its cluster `labels` to the empty cluster `clusters`."""

    @property
    def unit(self) -> float:
        """Unit of distance of the computation, in the unit of the data."""

    @property
    def variance(self) -> float:
        """Mean variance of the coordinates, in the unit of the computation."""

    @property
    def can_move(self) -> bool:
        """True if every item may be assigned to every centroid."""

    @property
    def goes_to_one_gpu(self) -> bool:
        """True if one GPU is as fast as several, since adding their results takes longer than a round."""


class Points:
    """Points (n, d) of finite numbers, converted to integers.

    Coordinates are multiplied by `scale` and rounded. `scale` is the largest power of two, at most 2^1000, for which no product exceeds
    2^30 in absolute value.
    """

    can_move, goes_to_one_gpu = True, False

    def __init__(self, values: NDArray[np.number]) -> None:
        # The extremes also reveal values that are not finite.
        most = float(max(abs(values.min(initial=0)), abs(values.max(initial=0)))) if values.ndim == 2 else np.nan
        if not np.isfinite(most) or values.shape[1] == 0:
            raise ParameterError("points for k-means: expected an array (n, d) of finite numbers, d at least 1")
        self.scale = 2.0 ** min(_MAXIMUM_EXPONENT, _BITS - (int(np.frexp(most)[1]) if most > 0.0 else 0))
        self.points: NDArray[np.int32] = np.empty(values.shape, np.int32)
        for first in range(0, len(values), _POINTS_OF_BATCH):
            some = slice(first, first + _POINTS_OF_BATCH)
            self.points[some] = np.rint(values[some] * np.float64(self.scale))

    def __len__(self) -> int:
        return len(self.points)

    def work(self) -> Workload:
        """Return the workload of the assignment."""
        return point_workload(self.points)

    def centroids_at(self, items: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the items with the given indices as centroids."""
        return self.points[items].astype(np.float64)

    def checked_centroids(self, centroids: NDArray[np.float64]) -> NDArray[np.float64]:
        """Check the centroids of the caller, and return them in the unit of the computation."""
        centroids = np.asarray(centroids, np.float64)
        if centroids.ndim != 2 or centroids.shape[1] != self.points.shape[1] or not (np.abs(centroids) <= _FARTHEST / self.scale).all():
            raise ParameterError(f"centroids: expected an array (k, {self.points.shape[1]}) of numbers, none very far from the points")
        return centroids * self.scale

    def to_data_unit(self, centroids: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert centroids from the unit of the computation to the unit of the data."""
        return centroids / self.scale

    def moved(self, sums: PointSums, items: NDArray[np.int64], labels: NDArray[np.int32], clusters: NDArray[np.int64]) -> PointSums:
        """Return the sums after moving each item from its cluster `labels` to the empty cluster `clusters`."""
        new, counts = sums.sums.copy(), sums.counts.copy()
        np.subtract.at(new, labels, self.points[items])
        np.subtract.at(counts, labels, 1)
        new[clusters], counts[clusters] = self.points[items], 1
        return PointSums(new, counts)

    @property
    def unit(self) -> float:
        """Unit of distance of the computation, in the unit of the data."""
        return 1.0 / self.scale

    @property
    def variance(self) -> float:
        """Mean variance of the coordinates, in the unit of the computation."""
        return float(np.mean([np.var(column.astype(np.float64)) for column in self.points.T]))


class Vectors:
    """Sparse vectors with bins below `n_bins`.

    If `low` and `high` (n,) are given, vector i may only be assigned to the centroids ``low[i]:high[i]``, or to none if the range is empty.
    In this case, the caller gives the initial centroids, and an empty cluster retains its centroid.
    """

    unit, goes_to_one_gpu = 1.0, True

    def __init__(
        self, vectors: VectorArrays, n_bins: int, low: NDArray[np.int64] | None = None, high: NDArray[np.int64] | None = None
    ) -> None:
        if len(vectors.bins) and not 0 <= int(vectors.bins.min()) <= int(vectors.bins.max()) < n_bins:
            raise ParameterError(f"n_bins = {n_bins}: some vectors have higher bins")
        self.vectors, self.n_bins, self.low, self.high = vectors, n_bins, low, high
        self.can_move = low is None

    def __len__(self) -> int:
        return len(self.vectors.offsets) - 1

    def work(self) -> Workload:
        """Return the workload of the assignment."""
        return vector_workload(self.vectors, self.n_bins, self.low, self.high)

    def centroids_at(self, items: NDArray[np.int64]) -> VectorSums:
        """Return the items with the given indices as centroids."""
        labels = np.full(len(self), -1, np.int32)
        labels[items] = np.arange(len(items))
        return sum_by_cluster(self.vectors, labels, len(items), 0, len(self))

    def checked_centroids(self, centroids: VectorSums) -> VectorSums:
        """Check the centroids of the caller, and return them in the unit of the computation."""
        k = len(centroids.counts)
        if self.high is not None and len(self.high) and int(self.high.max()) > k:
            raise ParameterError(f"ranges of centroids: expected none beyond {k}, the number of centroids")
        return centroids

    def to_data_unit(self, centroids: VectorSums) -> VectorSums:
        """Convert centroids from the unit of the computation to the unit of the data."""
        return centroids

    def moved(self, sums: VectorSums, items: NDArray[np.int64], labels: NDArray[np.int32], clusters: NDArray[np.int64]) -> VectorSums:
        """Return the sums after moving each item from its cluster `labels` to the empty cluster `clusters`."""
        k = len(sums.counts)
        every = np.full(len(self), -1, np.int32)
        every[items] = labels
        gone = sum_by_cluster(self.vectors, every, k, 0, len(self))
        every[items] = clusters
        come = sum_by_cluster(self.vectors, every, k, 0, len(self))
        new = total_sums([sums, come, VectorSums(gone.keys, -gone.sums, -gone.counts)])
        is_there = new.sums != 0
        return VectorSums(new.keys[is_there], new.sums[is_there], new.counts)

    @property
    def variance(self) -> float:
        """Mean variance of the coordinates, in the unit of the computation."""
        weights, n = self.vectors.weights.astype(np.float64), max(1, len(self))
        means = np.bincount(self.vectors.bins, weights, minlength=self.n_bins) / n
        return float((np.sum(weights * weights) / n - np.sum(means * means)) / self.n_bins)


def k_means(
    executor: Executor,
    data: Points | Vectors,
    start: InitialCentroids | NDArray[np.float64] | VectorSums,
    *,
    rounds: int = 300,
    tolerance: float = 0.0,
    progress: Progress | None = None,
) -> Clusters:
    """Cluster points or vectors.

    In each round, every item is assigned to its nearest centroid (the first of several equally near centroids), and the means of the
    clusters are the next centroids. An empty cluster receives the item farthest from its centroid (the first of several equally far items),
    unless that item is the only one in its cluster. The iteration ends when no label changes, when centroids move only within the
    tolerance, or after `rounds` rounds; then each item is assigned once more.

    Parameters
    ----------
    executor : Executor
        Executor of the rounds.
    data : Points or Vectors
        Items to cluster.
    start : InitialCentroids, ndarray of float64 of shape (k, d), or VectorSums
        Method to select the initial centroids, or the centroids.
    rounds : int
        Maximum number of rounds.
    tolerance : float
        Sum of squared centroid movements relative to the mean variance of coordinates, as `tol` of scikit-learn; with 0, only unchanged
        labels end the iteration.
    progress : Progress, optional
        Progress, with a stage of one step per round.

    Returns
    -------
    Clusters

    Raises
    ------
    ParameterError
        If data, centroids or seeds are invalid.
    Cancelled
        If the user cancelled.
    """
    source: _Data = data
    workload = source.work()
    if rounds < 1 or not tolerance >= 0.0:
        raise ParameterError(
            f"k-means: rounds = {rounds}, tolerance = {tolerance}: expected rounds of at least 1 and a tolerance of at least 0"
        )
    with executor.session(workload, one_gpu=source.goes_to_one_gpu) as session:
        if isinstance(start, InitialCentroids):
            if not source.can_move:
                raise ParameterError("vectors with restricted centroids: initial centroids must be given")
            centroids = source.centroids_at(seed_items(session, workload, source, start, progress))
        else:
            centroids = source.checked_centroids(start)
        if progress is not None:
            progress.stage("k-means", rounds + 1)
        most = tolerance * source.variance if tolerance > 0.0 else 0.0
        labels: NDArray[np.int32] | None = np.full(len(source), -2, np.int32)
        is_settled = False
        saved = KMeansCheckpoint.for_iteration(session, {"start": centroids, "rounds": rounds, "tolerance": tolerance})
        labels, previous, centroids, done = saved.resumed_rounds(labels, centroids)
        if progress is not None:
            progress.advance(done)
        while True:
            at_once = saved.rounds_at_once(rounds - done)
            result = assign(session, workload, centroids, before=labels, previous=previous, rounds=at_once, tolerance=most)
            done += result.rounds
            sums = _fill_empty_clusters(session, workload, source, result)
            labels, previous, centroids = (
                result.labels if len(result.labels) else None,
                result.centroids,
                keep_empty(result.centroids, sums),
            )
            is_settled = result.changed == 0 or (most > 0.0 and movement(result.centroids, centroids) <= most)
            if is_settled or done >= rounds:
                break
            saved.store_rounds(labels, previous, centroids, done)
        last = measure(session, workload, centroids, distances=False)
        moved = movement(result.centroids, centroids) * source.unit**2
        return Clusters(last.labels, source.to_data_unit(centroids), sums, done, moved, is_settled)


def _fill_empty_clusters(session: Session, workload: Workload, data: _Data, assignment: Assignment) -> Any:
    """Return the sums of a round after moving the items farthest from their centroids to the empty clusters, one to each.

    The only item of a cluster is not moved.
    """
    empty = np.flatnonzero(assignment.sums.counts == 0)
    if len(empty) == 0 or not data.can_move:
        return assignment.sums
    measured = measure(session, workload, assignment.centroids, distances=True)
    labels, distances = measured.labels, measured.distances
    left, chosen = assignment.sums.counts.copy(), list[int]()
    for item in np.argsort(-distances, kind="stable").tolist():
        if len(chosen) == len(empty) or distances[item] == 0.0:
            break
        if left[labels[item]] > 1:
            left[labels[item]] -= 1
            chosen.append(item)
    items = np.array(chosen, np.int64)
    return data.moved(assignment.sums, items, labels[items], empty[: len(items)])


def seed_items(
    session: Session, workload: Workload, data: Points | Vectors | _Data, seeds: InitialCentroids, progress: Progress | None
) -> NDArray[np.int64]:
    """Return the k items that are the initial centroids, in the order of selection, (k,) int64.

    Parameters
    ----------
    session : Session
        Session of `workload`.
    workload : Workload
        Workload of `data`, in which every item may be assigned to every centroid.
    data : Points or Vectors
        Items to cluster.
    seeds : InitialCentroids
        Method, number and random seed of the initial centroids.
    progress : Progress or None
        Progress of the run; None to report nothing.

    Raises
    ------
    ParameterError
        If there are fewer than k items, or the method is unknown.
    Cancelled
        If the user cancelled.
    """
    n, k = len(data), seeds.k
    if not 1 <= k <= n:
        raise ParameterError(f"k = {k}: expected 1 to {n}, the number of items")
    random = np.random.Generator(np.random.PCG64(seeds.seed))
    match seeds.method:
        case "first":
            return np.arange(k)
        case "random":
            return random.choice(n, k, replace=False)
        case "k-means++":
            return _spread_items(session, workload, data, k, random, progress)
    raise ParameterError(f"seeds = '{seeds.method:.40}': expected first, random or k-means++")


def _spread_items(
    session: Session, workload: Workload, data: _Data, k: int, random: np.random.Generator, progress: Progress | None
) -> NDArray[np.int64]:
    """Return items selected by k-means++, (k,) int64."""
    n = len(data)
    if progress is not None:
        progress.stage("Choosing the first centroids", k)
    saved = KMeansCheckpoint.for_iteration(session, {"k": k, "random": str(random.bit_generator.state)})
    chosen, nearest = saved.resumed_seeds([int(random.integers(n))], np.full(n, np.inf))
    is_chosen = row_mask(n, chosen)
    random.random(len(chosen) - 1)  # skip the numbers drawn before the checkpoint
    while True:
        saved.store_seeds(chosen, nearest)
        is_chosen[chosen[-1]] = True
        if len(chosen) == k:
            return np.array(chosen)
        result = measure(session, workload, data.centroids_at(np.array(chosen[-1:])), distances=True)
        nearest = np.where(is_chosen, 0.0, np.minimum(nearest, result.distances))
        before = np.cumsum(nearest)
        if before[-1] > 0.0:
            chosen.append(int(min(np.searchsorted(before, random.random() * before[-1], side="right"), np.flatnonzero(nearest)[-1])))
        else:  # all remaining items are equal to chosen items
            chosen.append(int(np.flatnonzero(~is_chosen)[0]))
