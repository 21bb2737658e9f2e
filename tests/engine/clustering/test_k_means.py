"""k-means against scikit-learn and plain loops, with seeds, empty clusters, ranges, and several devices."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from proteoscope.engine.clustering.k_means import Clusters, InitialCentroids, Points, Vectors, k_means
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.scheduler import Scheduler
from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.kernels.clustering_layouts import UNIT_LENGTH, VectorArrays, VectorSums
from proteoscope.kernels.device import DeviceError
from tests.engine.clustering.inertia import dense, inertia
from tests.shim.k_means_inputs import random_vectors
from tests.shim.shim_gpu import ShimGpu, missing_compiler


class ProcessorAsGpu:
    """Second device that computes with the kernels of the CPU, and fails at a given run."""

    name = "cuda:0"
    kernels = "cpu"
    is_processor = False
    threads = 1

    def __init__(self, fails_at: int = -1) -> None:
        from proteoscope.kernels.cpu.processor import Processor

        self._processor, self._fails_at, self.runs = Processor(1), fails_at, 0

    def run(self, *arguments: Any) -> Any:
        self.runs += 1
        if self.runs - 1 == self._fails_at:
            raise DeviceError("it is lost")
        return self._processor.run(*arguments)


def resources(threads: int = 2, gpus: int = 0, *, with_processor: bool = True, fails_at: int = -1) -> Resources:
    made: list[Any] = [ProcessorAsGpu(fails_at if number == 0 else -1) for number in range(gpus)]
    for number, gpu in enumerate(made):
        gpu.name = f"cuda:{number}"
    return Resources(threads + gpus, made, with_processor)


def executor(**options: Any) -> Executor:
    return Executor(resources(**options))


def matrix(vectors: VectorArrays, n_bins: int) -> csr_matrix:
    return csr_matrix((vectors.weights.astype(np.float64), vectors.bins, vectors.offsets), (len(vectors.offsets) - 1, n_bins))


def by_scikit(values: Any, centroids: np.ndarray, rounds: int, tolerance: float = 0.0) -> Any:
    from sklearn.cluster import KMeans  # the import takes as long as many tests

    return KMeans(len(centroids), init=centroids, n_init=1, max_iter=rounds, tol=tolerance, algorithm="lloyd").fit(values)


def assert_same(result: Clusters, other: Clusters) -> None:
    """Check that two results are equal to the last bit."""
    np.testing.assert_array_equal(result.labels, other.labels)
    pairs = [(result.sums, other.sums)]
    if isinstance(result.centroids, VectorSums):
        pairs.append((result.centroids, other.centroids))
    for mine, its in pairs:
        for column, its_column in zip(mine, its, strict=True):
            np.testing.assert_array_equal(column, its_column)
    if not isinstance(result.centroids, VectorSums):
        np.testing.assert_array_equal(result.centroids, other.centroids)
    assert (result.rounds, result.moved, result.is_settled) == (other.rounds, other.moved, other.is_settled)


def mean_distances(values: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    return ((values[:, None] - centroids[None]) ** 2).sum(axis=2)


@pytest.mark.filterwarnings("ignore:Number of distinct clusters:UserWarning", "ignore:.*ConvergenceWarning")
@pytest.mark.parametrize(("n", "d", "k"), [(3000, 2, 30), (2000, 8, 50), (1500, 34, 20), (700, 100, 9)])
def test_k_means_round_of_points_equals_scikit_learn(n, d, k):
    rng = np.random.default_rng(d)
    values = rng.normal(0.0, 1.0, (n, d)) + rng.normal(0.0, 2.0, (5, d))[rng.integers(0, 5, n)]
    first = values[:k]
    clusters = k_means(executor(), Points(values), first, rounds=1)
    distances = mean_distances(values, first)
    nearest, labels = np.sort(distances, axis=1), distances.argmin(axis=1)
    is_clear = nearest[:, 1] - nearest[:, 0] > 1e-6
    assert is_clear.mean() > 0.9
    means = np.array([values[labels == j].mean(axis=0) for j in range(k)])
    np.testing.assert_allclose(clusters.centroids, means, rtol=0, atol=1e-6)
    its = by_scikit(values, first, 1)
    np.testing.assert_allclose(clusters.centroids, its.cluster_centers_, atol=1e-6)
    assert (clusters.labels == its.labels_).mean() > 0.999
    assert inertia(values, clusters.labels, clusters.centroids) == pytest.approx(its.inertia_, rel=1e-6)


@pytest.mark.parametrize("sort", ["points", "vectors"])
def test_k_means_of_fifty_rounds_is_as_good_as_scikit_learn(sort):
    rng = np.random.default_rng(3)
    if sort == "points":
        values = rng.random((1500, 8))
        clusters = k_means(executor(), Points(values), values[:40], rounds=50)
        its = by_scikit(values, values[:40], 50)
        inertia_here = inertia(values, clusters.labels, clusters.centroids)
    else:
        vectors = random_vectors(rng, 3000, 200, classes=40)
        given = Vectors(vectors, 200).centroids_at(np.arange(30))
        clusters = k_means(executor(), Vectors(vectors, 200), given, rounds=50)
        its = by_scikit(matrix(vectors, 200), dense(given, 200), 50)
        inertia_here = inertia(matrix(vectors, 200), clusters.labels, dense(clusters.centroids, 200))
    assert inertia_here == pytest.approx(its.inertia_, rel=1e-3)


def test_k_means_round_of_vectors_equals_scikit_learn_and_loops():
    rng, n_bins, k = np.random.default_rng(4), 300, 40
    vectors = random_vectors(rng, 2000, n_bins, classes=60, with_ties=False)
    data = Vectors(vectors, n_bins)
    given = data.centroids_at(rng.choice(2000, k, replace=False))
    clusters = k_means(executor(), data, given, rounds=1)
    values, centroids = matrix(vectors, n_bins).toarray(), dense(given, n_bins)
    distances = mean_distances(values, centroids)
    labels = distances.argmin(axis=1)
    assert (np.sort(distances, axis=1)[:, 1] - distances.min(axis=1) > 1e-6).mean() > 0.8
    sums = np.array([values[labels == j].sum(axis=0) for j in range(k)])
    is_own = np.bincount(labels, minlength=k) > 0
    np.testing.assert_array_equal((dense(clusters.sums, n_bins)[is_own] * clusters.sums.counts[is_own, None]).round(), sums[is_own])
    its = by_scikit(matrix(vectors, n_bins), centroids, 1)
    assert inertia(values, clusters.labels, dense(clusters.centroids, n_bins)) == pytest.approx(its.inertia_, rel=1e-3)


@pytest.mark.parametrize("method", ["first", "random", "k-means++"])
@pytest.mark.parametrize("sort", ["points", "vectors"])
def test_k_means_seeds_are_equal_on_every_device(sort, method):
    rng = np.random.default_rng(5)
    data = Points(rng.random((300, 3))) if sort == "points" else Vectors(random_vectors(rng, 300, 50), 50)
    results = [
        k_means(Executor(used), data, InitialCentroids(8, method, seed=3), rounds=4)
        for used in (resources(1), resources(3), resources(1, 1), resources(1, 2, with_processor=False))
    ]
    for other in results[1:]:
        assert_same(results[0], other)
    other_seed = k_means(executor(), data, InitialCentroids(8, method, seed=4), rounds=4)
    assert np.array_equal(other_seed.labels, results[0].labels) == (method == "first")


def test_k_means_plus_plus_seeds_are_far_from_each_other():
    rng = np.random.default_rng(6)
    centers = rng.random((12, 2)) * 100
    values = centers[rng.integers(0, 12, 2000)] + rng.normal(0, 0.01, (2000, 2))
    results = (k_means(executor(), Points(values), InitialCentroids(12, method, seed=1), rounds=1) for method in ("k-means++", "random"))
    spread, random = (inertia(values, clusters.labels, clusters.centroids) for clusters in results)
    assert spread < 1.0 < random


def test_k_means_converges_when_all_items_are_equal():
    clusters = k_means(executor(), Points(np.ones((5, 2))), InitialCentroids(3, "k-means++"), rounds=5)
    assert (clusters.centroids[0] == 1.0).all()
    assert clusters.is_settled
    assert clusters.labels.tolist() == [0] * 5


@pytest.mark.parametrize("sort", ["points", "vectors"])
def test_k_means_moves_the_farthest_item_to_an_empty_cluster(sort):
    if sort == "points":
        values = np.array([[0.0], [1.0], [2.0], [50.0], [3.0]])
        first = np.array([[1.0], [1000.0], [-1000.0]])
        clusters = k_means(executor(), Points(values), first, rounds=1)
        # 50 is assigned first, then 3 among the rest.
        assert clusters.centroids.tolist() == [[1.0], [50.0], [3.0]]
        assert clusters.sums.counts.tolist() == [3, 1, 1]
        return
    vectors = VectorArrays(np.array([0, 1, 2, 3, 4]), np.array([0, 0, 0, 7], np.int32), np.full(4, UNIT_LENGTH, np.int16))
    data = Vectors(vectors, 10)
    given = data.centroids_at(np.array([0, 1]))
    clusters = k_means(executor(), data, given, rounds=1)
    np.testing.assert_array_equal(clusters.labels, [0, 0, 0, 1])


@pytest.mark.filterwarnings("ignore:.*:sklearn.exceptions.ConvergenceWarning")
def test_k_means_fills_empty_clusters_like_scikit_learn():
    rng = np.random.default_rng(8)
    values = rng.normal(0, 1, (800, 3))
    first = np.concatenate([values[:10], np.full((3, 3), 100.0) * np.arange(1, 4)[:, None]])
    clusters, its = k_means(executor(), Points(values), first, rounds=1), by_scikit(values, first, 1)
    np.testing.assert_allclose(np.sort(clusters.centroids, axis=0), np.sort(its.cluster_centers_, axis=0), atol=1e-6)


def test_k_means_assigns_vectors_only_to_centroids_in_range():
    rng, n_bins, n, k = np.random.default_rng(9), 120, 600, 25
    vectors = random_vectors(rng, n, n_bins)
    low = np.sort(rng.integers(0, k, n))
    high = np.minimum(k, low + rng.integers(0, 6, n))
    high[(low <= 5) & (high > 5)] = 5  # so that one centroid gets no vector
    data = Vectors(vectors, n_bins, low, high)
    given = Vectors(vectors, n_bins).centroids_at(np.sort(rng.choice(n, k, replace=False)))
    values, centroids = matrix(vectors, n_bins).toarray(), dense(given, n_bins)
    expected = np.full(n, -1)
    for i in range(n):
        if high[i] > low[i]:
            expected[i] = low[i] + mean_distances(values[i : i + 1], centroids[low[i] : high[i]])[0].argmin()
    clusters = k_means(executor(), data, given, rounds=1)
    counts = np.bincount(expected[expected >= 0], minlength=k)
    np.testing.assert_array_equal(clusters.sums.counts, counts)
    assert (counts == 0).any()
    unused = np.flatnonzero(counts == 0)
    assert isinstance(clusters.centroids, VectorSums)
    np.testing.assert_array_equal(dense(clusters.centroids, n_bins)[unused], centroids[unused])
    assert ((clusters.labels < 0) == (high <= low)).all()
    assert_same(clusters, k_means(executor(threads=1, gpus=1), data, given, rounds=1))
    many, again = (k_means(executor(threads=threads), data, given, rounds=20) for threads in (1, 3))
    assert_same(many, again)


@pytest.mark.parametrize("gpus", [0, 2])
def test_k_means_stops_when_labels_or_centroids_are_stable(gpus):
    rng = np.random.default_rng(10)
    data = Points(rng.random((900, 4)))
    seeds = InitialCentroids(7, "first")
    settled = k_means(executor(gpus=gpus), data, seeds, rounds=300)
    assert settled.is_settled and settled.rounds < 300 and settled.moved == 0.0
    sooner = k_means(executor(gpus=gpus), data, seeds, rounds=300, tolerance=1e-2)
    assert sooner.is_settled and sooner.rounds < settled.rounds
    assert 0.0 < sooner.moved <= 1e-2 * np.var(data.points / data.scale, axis=0).mean()
    its = by_scikit(data.points / data.scale, (data.points / data.scale)[:7], 300, 1e-2)
    assert its.n_iter_ == sooner.rounds
    cut = k_means(executor(gpus=gpus), data, seeds, rounds=3)
    assert cut.rounds == 3 and not cut.is_settled


@pytest.mark.parametrize("sort", ["points", "vectors"])
@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_k_means_clusters_are_equal_on_all_devices(sort, tolerance):
    rng = np.random.default_rng(11)
    data = Points(rng.random((700, 5))) if sort == "points" else Vectors(random_vectors(rng, 700, 80, classes=40), 80)
    seeds = InitialCentroids(25, "random", 2)
    alone = k_means(executor(threads=1), data, seeds, rounds=12, tolerance=tolerance)
    for options in (
        {"threads": 3},
        {"threads": 1, "gpus": 1},
        {"threads": 1, "gpus": 3, "with_processor": False},
        {"threads": 1, "gpus": 1, "fails_at": 2},
        {"threads": 1, "gpus": 1, "with_processor": False, "fails_at": 3},
    ):
        assert_same(alone, k_means(executor(**options), data, seeds, rounds=12, tolerance=tolerance))


@pytest.mark.parametrize("sort", ["points", "vectors"])
@pytest.mark.parametrize("fails_at", range(0, 40, 3))
def test_k_means_clusters_are_equal_when_a_gpu_is_lost(sort, fails_at):
    data, expected = clusters_of_one_device(sort)
    used = executor(threads=1, gpus=2, with_processor=False, fails_at=fails_at)
    assert_same(expected, k_means(used, data, InitialCentroids(25, "random", 2), rounds=9))


@cache
def clusters_of_one_device(sort):
    """Return items and their clusters by one device, with which runs on several GPUs are compared."""
    rng = np.random.default_rng(14)
    data = Points(rng.random((1500, 5))) if sort == "points" else Vectors(random_vectors(rng, 300, 80, classes=40), 80)
    return data, k_means(executor(threads=1), data, InitialCentroids(25, "random", 2), rounds=9)


def test_k_means_on_gpus_uses_threads_only_at_start_and_end(monkeypatch):
    divided = list[object]()
    serve = Scheduler._serve_alone
    monkeypatch.setattr(Scheduler, "_serve_alone", lambda self, pace: (divided.append(pace), serve(self, pace))[1])
    data = Points(np.random.default_rng(15).random((5000, 5)))
    clusters = k_means(executor(threads=1, gpus=2, with_processor=False), data, InitialCentroids(25, "random", 2), rounds=9)
    assert clusters.rounds == 9 and len(divided) == 4  # two GPUs in the first round, and for the labels at the end


@pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
@pytest.mark.parametrize("sort", ["points", "far points", "vectors", "ranges"])
def test_k_means_clusters_are_equal_on_gpu_and_cpu(sort):
    rng = np.random.default_rng(13)
    low = np.sort(rng.integers(0, 20, 180))
    start: Any = InitialCentroids(20, "k-means++", 2)
    match sort:
        case "points":
            data: Any = Points(rng.random((180, 3)))
        case "far points":  # clusters that are empty at first
            data, start = Points(rng.random((180, 20))), np.concatenate([rng.random((15, 20)), rng.random((5, 20)) + 5.0])
        case "vectors":
            data = Vectors(random_vectors(rng, 180, 60, classes=40), 60)
        case _:
            vectors = random_vectors(rng, 180, 60, classes=40)
            data = Vectors(vectors, 60, low, np.minimum(20, low + 3))
            start = Vectors(vectors, 60).centroids_at(np.arange(20))
    mine = k_means(executor(), data, start, rounds=5)
    for n_gpus, with_processor in ((1, False), (1, True), (2, False)):
        gpus: list[Any] = [ShimGpu() for _ in range(n_gpus)]
        for number, gpu in enumerate(gpus):
            gpu.name = f"cuda:{number}"
        assert_same(mine, k_means(Executor(Resources(2, gpus, with_processor)), data, start, rounds=5))


def test_k_means_reports_rounds_and_stops_at_cancel():
    events: list[ProgressEvent] = []
    progress = Progress(events.append, interval=0.0)
    data = Points(np.random.default_rng(12).random((500, 3)))
    used = Resources(1, [], False, progress)
    clusters = k_means(Executor(used), data, InitialCentroids(20, "random"), rounds=200, progress=progress)
    assert [event.done for event in events if event.stage == "k-means"][-1] >= clusters.rounds
    progress.cancel()
    with pytest.raises(Cancelled):
        k_means(Executor(used), data, InitialCentroids(20, "random"), rounds=200)


@pytest.mark.parametrize(
    ("values", "start", "options"),
    [
        (np.array([[np.nan]]), InitialCentroids(1), {}),
        (np.zeros(3), InitialCentroids(1), {}),
        (np.zeros((3, 0)), InitialCentroids(1), {}),
        (np.zeros((3, 1)), InitialCentroids(4), {}),
        (np.zeros((3, 1)), InitialCentroids(0), {}),
        (np.zeros((3, 1)), InitialCentroids(1, "best"), {}),
        (np.zeros((3, 1)), np.zeros((2, 2)), {}),
        (np.ones((3, 1)), np.full((1, 1), 1e200), {}),
        (np.zeros((3, 1)), InitialCentroids(1), {"rounds": 0}),
        (np.zeros((3, 1)), InitialCentroids(1), {"tolerance": -1.0}),
    ],
)
def test_k_means_rejects_invalid_input(values, start, options):
    with pytest.raises(ParameterError):
        k_means(executor(), Points(values), start, **options)


def test_k_means_points_are_scaled_to_integers_for_any_magnitude():
    for factor in (1e-320, 1e-30, 1.0, 1e30):
        values = np.float64(factor) * np.array([[0.1, -1.0], [0.25, 0.7]])
        points = Points(values)
        assert np.abs(points.points).max() <= 2**30
        np.testing.assert_allclose(points.points / points.scale, values, atol=max(factor * 2.0**-29, 2.0**-1000))
