"""k-means on the CPU and on a GPU (through tests/shim), against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proteoscope.kernels.clustering_layouts import (
    IN_PARTS,
    NEVER,
    PointSums,
    VectorArrays,
    VectorSums,
    moved_centroids,
    movement,
    sum_by_cluster,
    total_sums,
)
from proteoscope.kernels.cpu.k_means import PointMeans, VectorMeans
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.k_means import point_analysis, vector_analysis
from proteoscope.kernels.device import DeviceError, DeviceMemoryError
from tests.shim.k_means_inputs import (
    assigned,
    iterated,
    means_on,
    plain_point_labels,
    plain_vector_labels,
    random_points,
    random_vectors,
    seeds_of,
)
from tests.shim.shim_gpu import ShimGpu, missing_compiler

needs_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
DEVICES = [
    pytest.param(lambda: Processor(2), id="cpu"),
    pytest.param(ShimGpu, id="gpu", marks=needs_compiler),
    pytest.param(lambda: ShimGpu(descending=True), id="GPU descending", marks=needs_compiler),
]
on_each = pytest.mark.parametrize("device", DEVICES)


class SmallGpu(ShimGpu):
    """GPU with limited free memory."""

    def __init__(self, free: int, shared: int = 99 << 10) -> None:
        super().__init__()
        self._free, self._shared = free, shared

    def free_bytes(self) -> int:
        return self._free

    def maximum_shared_bytes(self) -> int:
        return self._shared


def assert_same(result: tuple, other: tuple) -> None:
    """Check that two results are equal to the bit, except the reported progress."""
    for mine, its in zip(result[:2], other[:2], strict=True):
        np.testing.assert_array_equal(mine, its)
    for mine, its in zip(result[2], other[2], strict=True):
        np.testing.assert_array_equal(mine, its)


# Each number of dimensions up to 16 has a separate form of the kernel from the same source: those in the middle are for --all.
@on_each
@pytest.mark.parametrize("d", [pytest.param(d, marks=[pytest.mark.long] * (3 < d < 7 or 9 < d < 15)) for d in (*range(1, 18), 34, 100)])
def test_k_means_assigns_points_to_the_nearest_centroid(device, d):
    rng = np.random.default_rng(d)
    for k, n, most in ((1, 70, 1 << 30), (2, 300, 3), (37, 300, 1 << 30)):
        points = random_points(rng, n, d, most=most)
        centroids = points[rng.integers(0, n, k)] + rng.normal(0, most / 10, (k, d)) * (rng.random((k, 1)) < 0.5)
        labels, distances, sums, ends = assigned(means_on(device(), points), centroids, n)
        expected, expected_distances = plain_point_labels(points, centroids)
        assert labels.tolist() == expected
        assert distances.tolist() == expected_distances
        assert ends[-1] == n
        assert isinstance(sums, PointSums)
        for j in range(k):
            assert sums.sums[j].tolist() == points[labels == j].astype(np.int64).sum(axis=0).tolist()
            assert sums.counts[j] == (labels == j).sum()


@on_each
@pytest.mark.parametrize("d", [2, 8, 20])
def test_k_means_assignment_is_exact_for_nearly_equal_distances(device, d):
    rng = np.random.default_rng(40 + d)
    points = random_points(rng, 200, d)
    # Pairs of centroids that differ by less than the precision of float32, and some equal ones.
    base = points[:20].astype(np.float64) + rng.normal(0.0, 1e6, (20, d))
    centroids = np.concatenate([base, base + rng.normal(0.0, 1.0, (20, d)), base[:5], base * (1.0 + 2.0**-50)])
    labels, _, _, _ = assigned(means_on(device(), points), centroids, 200)
    expected, _ = plain_point_labels(points, centroids)
    assert labels.tolist() == expected
    assert len({label // 20 for label in expected}) > 2


@on_each
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.sampled_from([1, 3, 8, 20]), exponent=st.integers(0, 30), spread=st.integers(-8, 3))
def test_k_means_assignment_is_exact_for_points_of_any_magnitude(device, seed, d, exponent, spread):
    rng = np.random.default_rng(seed)
    points = random_points(rng, 60, d, most=1 << exponent)
    centroids = points[:1] + rng.normal(0.0, 10.0**spread * 2.0**exponent, (9, d))
    assert assigned(means_on(device(), points), centroids, 60)[0].tolist() == plain_point_labels(points, centroids)[0]


@needs_compiler
@pytest.mark.parametrize("d", [3, 40])
def test_gpu_k_means_equals_cpu_beyond_shared_memory(d):
    rng = np.random.default_rng(50)
    points, k = random_points(rng, 400, d), 2500
    centroids = rng.integers(-(1 << 30), 1 << 30, (k, d)).astype(np.float64)
    mine = assigned(means_on(Processor(2), points), centroids, 400)
    # Shared memory for all sums, for those of some dimensions, and for none.
    for shared in (99 << 10, 40 << 10, 8 << 10):
        gpu = SmallGpu(1 << 30, shared)
        assert_same(assigned(means_on(gpu, points), centroids, 400), mine)
        assert ("add_points_one_by_one" in gpu.launched) == (shared == 8 << 10)


@on_each
@pytest.mark.parametrize("has_ranges", [False, True], ids=["all", "ranges"])
@pytest.mark.parametrize("k", [1, 2, 30, 300])
def test_k_means_assigns_vectors_to_the_nearest_centroid(device, k, has_ranges):
    rng, n, n_bins = np.random.default_rng(60 + k), 400, 90
    vectors = random_vectors(rng, n, n_bins, classes=40)
    low = rng.integers(0, k, n)
    ranges = {"low": low, "high": np.minimum(k, low + rng.integers(0, 40, n))} if has_ranges else {"low": None, "high": None}
    labels = np.concatenate([np.arange(k), rng.integers(0, k, n)])[:n]
    for centroids in (seeds_of(vectors, rng.choice(n, k, replace=False)), sum_by_cluster(vectors, labels, k, 0, n)):
        nearest, distances, sums, ends = assigned(means_on(device(), vectors, n_bins, **ranges), centroids, n)
        expected = plain_vector_labels(vectors, centroids, **ranges)
        assert nearest.tolist() == expected
        assert ends[-1] == n
        for mine, its in zip(sums, sum_by_cluster(vectors, nearest, k, 0, n), strict=True):
            np.testing.assert_array_equal(mine, its)
        dense, means = np.zeros((n, n_bins)), np.zeros((n_bins, k))
        dense[np.repeat(np.arange(n), np.diff(vectors.offsets)), vectors.bins] = vectors.weights
        means.reshape(-1)[centroids.keys] = centroids.sums
        means = np.where((nearest >= 0)[:, None], (means / np.maximum(1, centroids.counts)).T[nearest], 0.0)
        np.testing.assert_allclose(distances, ((dense - means) ** 2).sum(axis=1), atol=1e-6, rtol=1e-9)


@needs_compiler
def test_gpu_k_means_equals_cpu_for_many_and_empty_clusters():
    rng, n, n_bins, k = np.random.default_rng(70), 1500, 60, 1400
    vectors = random_vectors(rng, n, n_bins, classes=400)
    centroids = seeds_of(vectors, np.arange(k)).of(rng.random(k) < 0.9)
    low = rng.integers(0, k, n)
    for ranges in ({"low": None, "high": None}, {"low": low, "high": np.minimum(k, low + 100)}):
        mine, its = (assigned(means_on(device, vectors, n_bins, **ranges), centroids, n) for device in (Processor(2), ShimGpu()))
        assert_same(its, mine)
        assert mine[0].tolist() == plain_vector_labels(vectors, centroids, **ranges)


@on_each
@pytest.mark.parametrize("sort", ["points", "low points", "vectors", "ranges"])
def test_k_means_iterations_in_one_call_equal_single_iterations(device, sort):
    rng, n, n_bins, k = np.random.default_rng(80), 500 if "points" in sort else 260, 70, 20
    if "points" in sort:
        items = random_points(rng, n, 5 if sort == "low points" else 20)
        ranges, centroids = {}, items[:k].astype(np.float64)
    else:
        items = random_vectors(rng, n, n_bins, classes=30)
        low = rng.integers(0, k - 1, n)
        ranges = {"low": low, "high": np.minimum(k, low + 8)} if sort == "ranges" else {}
        centroids = seeds_of(items, np.arange(0, 2 * k, 2))
    current, before, rounds = centroids, np.full(n, -2), 0
    while True:
        labels, _, sums, _ = assigned(means_on(Processor(1), items, n_bins, **ranges), current, n)
        rounds += 1
        changed = int((labels != before).sum())
        if rounds == 9 or changed == 0 or not sums.counts.all():
            break
        before, current = labels, sums.centroids()
    assert rounds > 3
    final, status = iterated(means_on(device(), items, n_bins, **ranges), centroids, n, 9)
    assert (status.n, status.changed) == (rounds, changed)
    np.testing.assert_array_equal(final, labels)
    for mine, its in zip(status.sums, sums, strict=True):
        np.testing.assert_array_equal(mine, its)
    pairs = (status.centroids, current) if isinstance(current, VectorSums) else ((status.centroids,), (current,))
    for mine, its in zip(*pairs, strict=True):
        np.testing.assert_array_equal(mine, its)


@on_each
@pytest.mark.parametrize("sort", ["points", "vectors"])
def test_k_means_ends_at_convergence_or_an_empty_cluster(device, sort):
    rng, n, n_bins = np.random.default_rng(90), 500, 70
    items = random_points(rng, n, 3) if sort == "points" else random_vectors(rng, n, n_bins, classes=30)
    centroids = items[:15].astype(np.float64) if sort == "points" else seeds_of(items, np.arange(15))
    whole = iterated(means_on(Processor(2), items, n_bins), centroids, n, 30)[1]
    after = iterated(means_on(Processor(2), items, n_bins), centroids, n, 3)[1]
    most = movement(after.centroids, after.sums.centroids())
    tolerant = iterated(means_on(device(), items, n_bins), centroids, n, 30, most)[1]
    assert tolerant.n <= 3 < whole.n
    if sort == "points":
        far = np.concatenate([centroids, [[1e12] * 3]])
        labels, empty = iterated(means_on(device(), items), far, n, 30)
        assert empty.n == 1 and empty.sums.counts[-1] == 0 and (labels >= 0).all()


@needs_compiler
@pytest.mark.parametrize("sort", ["points", "tiles", "vectors"])
def test_gpu_k_means_splits_items_beyond_memory_into_groups(sort):
    rng, n, n_bins = np.random.default_rng(100), 500 if sort == "vectors" else 1000, 70
    items = random_vectors(rng, n, n_bins, classes=30) if sort == "vectors" else random_points(rng, n, 5 if sort == "points" else 20)
    centroids = seeds_of(items, np.arange(12)) if sort == "vectors" else items[:12].astype(np.float64)
    mine, rounds = (
        assigned(means_on(Processor(2), items, n_bins), centroids, n),
        iterated(means_on(Processor(2), items, n_bins), centroids, n, 6),
    )
    means = means_on(SmallGpu(9_000 if sort != "vectors" else 70_000), items, n_bins)
    in_groups = assigned(means, centroids, n)
    assert_same(in_groups, mine)
    assert len(in_groups[3]) > 3
    labels, status = iterated(means, centroids, n, 6)
    np.testing.assert_array_equal(labels, rounds[0])
    assert (status.n, status.changed) == (rounds[1].n, rounds[1].changed)
    for sums, expected in zip(status.sums, rounds[1].sums, strict=True):
        np.testing.assert_array_equal(sums, expected)
    if sort == "vectors":
        with pytest.raises(DeviceMemoryError, match="not enough for one vector"):
            assigned(means_on(SmallGpu(100), items, n_bins), centroids, n)


@on_each
@pytest.mark.parametrize("sort", ["points", "vectors"])
def test_k_means_sums_of_item_ranges_add_up_to_the_total(device, sort):
    rng, n, n_bins = np.random.default_rng(110), 700, 70
    items = random_points(rng, n, 4) if sort == "points" else random_vectors(rng, n, n_bins)
    centroids = items[:9].astype(np.float64) if sort == "points" else seeds_of(items, np.arange(9))
    means = means_on(device(), items, n_bins)
    whole = assigned(means, centroids, n)
    parts = [assigned(means, centroids, n, *part, reporting=IN_PARTS) for part in ((0, 256), (256, 512), (512, n))]
    for (first, last), (labels, _, _, ends) in zip(((0, 256), (256, 512), (512, n)), parts, strict=True):
        np.testing.assert_array_equal(labels[first:last], whole[0][first:last])
        assert (labels[:first] == -7).all() and (labels[last:] == -7).all() and ends[-1] == last
    for mine, its in zip(total_sums([part[2] for part in parts]), whole[2], strict=True):
        np.testing.assert_array_equal(mine, its)
    assert assigned(means, centroids, n, reporting=NEVER)[2] is None


def test_k_means_of_vectors_is_the_same_with_cached_labels():
    rng, n, n_bins, k = np.random.default_rng(120), 600, 80, 30
    vectors = random_vectors(rng, n, n_bins, classes=25)
    means, centroids = means_on(Processor(2), vectors, n_bins), seeds_of(vectors, np.arange(k))
    few = []
    for _ in range(8):
        labels, distances, sums, _ = assigned(means, centroids, n)
        fresh = assigned(means_on(Processor(1), vectors, n_bins), centroids, n)
        assert_same((labels, distances, sums), fresh)
        following = total_sums([sums, centroids.of(sums.counts == 0)])
        few.append(int(moved_centroids(centroids, following).sum()))
        centroids = following
        assigned(means, centroids, n, 5, 300)  # a part in between
    assert few[-1] < k


def test_moved_centroids_detects_changed_keys_sums_and_counts():
    keys, sums, counts = np.array([0, 2, 4, 8]), np.array([5, 6, 7, 8]), np.array([1, 1, 1, 1])  # of four clusters: 0, 2, 0, 0
    old = VectorSums(keys, sums, counts)
    assert not moved_centroids(old, old).any()
    assert moved_centroids(old, old._replace(sums=np.array([5, 6, 9, 8]))).tolist() == [True, False, False, False]
    assert moved_centroids(old, old._replace(counts=np.array([1, 2, 1, 1]))).tolist() == [False, True, False, False]
    assert moved_centroids(old, VectorSums(keys[:1], sums[:1], counts)).tolist() == [True, False, True, False]
    assert moved_centroids(VectorSums(keys[:0], sums[:0], counts), old).tolist() == [True, False, True, False]


def test_centroid_squares_beyond_64_bits_are_rounded_once():
    sums = VectorSums(np.arange(3), np.array([3 << 38, (5 << 30) + 7, 12345]), np.array([1 << 29]))
    exact = sum(int(value) ** 2 for value in sums.sums)
    assert sums.terms().square[0] == pytest.approx(exact / (1 << 29) ** 2, rel=1e-15)


@needs_compiler
@pytest.mark.parametrize(("d", "k"), [(3, 40), (8, 2500), (30, 70)])
def test_k_means_analysis_of_points_predicts_the_gpu_work(d, k):
    rng, n, rounds = np.random.default_rng(130), 3000, 3
    points, gpu = random_points(rng, n, d), ShimGpu()
    _, came = iterated(means_on(gpu, points), points[:k].astype(np.float64) + 0.5, n, rounds)
    counted = point_analysis(n, d, k, came.n, maximum_shared=gpu.maximum_shared_bytes())
    assert (gpu.operations, gpu.bytes_in, gpu.bytes_out) == (counted.operations, 4 * counted.words_in, 4 * counted.words_out)
    assert (gpu.transfers, gpu.shared_bytes) == (counted.transfers, counted.shared_bytes)


@needs_compiler
def test_k_means_analysis_of_vectors_predicts_the_gpu_work():
    rng, n, n_bins, k = np.random.default_rng(140), 900, 70, 1100
    vectors, gpu = random_vectors(rng, n, n_bins, classes=100), ShimGpu()
    centroids = seeds_of(vectors, rng.integers(0, n, 0).tolist() + list(range(0, n, 9)))
    centroids = VectorSums(
        centroids.keys // 100 * k + centroids.keys % 100, centroids.sums, np.r_[centroids.counts, np.zeros(k - 100, int)]
    )
    means = means_on(gpu, vectors, n_bins)
    gpu.operations = gpu.bytes_in = gpu.bytes_out = gpu.transfers = 0
    labels = np.full(n, -2, np.int32)
    list(means.assign(centroids, labels, np.empty(0), 0, n, IN_PARTS))
    walked = int(np.bincount(centroids.keys // k, minlength=n_bins)[vectors.bins].sum())
    counted = vector_analysis(n=n, elements=len(vectors.bins), n_bins=n_bins, k=k, entries=len(centroids.keys), walked=walked, ranges=False)
    assert (gpu.operations, gpu.bytes_in, gpu.bytes_out) == (counted.operations, 4 * counted.words_in, 4 * counted.words_out)
    assert (gpu.transfers, gpu.shared_bytes) == (counted.transfers, counted.shared_bytes)


@needs_compiler
@pytest.mark.parametrize("sort", ["points", "vectors"])
def test_k_means_on_a_lost_gpu_raises_device_error(sort):
    rng = np.random.default_rng(150)
    items = random_points(rng, 50, 3) if sort == "points" else random_vectors(rng, 50, 30)
    centroids = items[:4].astype(np.float64) if sort == "points" else seeds_of(items, np.arange(4))
    with pytest.raises(DeviceError, match="lost"):
        iterated(means_on(ShimGpu(failing_launch=2), items, 30), centroids, 50, 5)


def test_k_means_assignment_stops_when_closed():
    rng = np.random.default_rng(160)
    points, labels = random_points(rng, 200_000, 30), np.full(200_000, -7, np.int32)
    work = PointMeans(Processor(1), points).assign(points[:3000].astype(np.float64), labels, np.empty(0), 0, 200_000, NEVER)
    next(work)
    work.close()
    assert (labels == -7).any()


def test_k_means_assigns_empty_vectors_to_the_shortest_centroid():
    vectors = VectorArrays(np.array([0, 1, 2, 2]), np.array([3, 4], np.int32), np.array([1000, 900], np.int16))
    labels, distances, *_ = assigned(VectorMeans(Processor(1), vectors, 10), seeds_of(vectors, [0, 1]), 3)
    assert labels.tolist() == [0, 1, 1]
    assert distances.tolist() == [0.0, 0.0, 810_000.0]
