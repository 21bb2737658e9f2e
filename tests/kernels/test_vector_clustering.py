"""Vector clusters on the CPU and on a GPU (through tests/shim), against the definitions, scikit-learn and SciPy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from proteoscope.kernels.clustering_layouts import (
    AVERAGE,
    COMPLETE,
    SIMILARITY_UNITS,
    SINGLE,
    UNIT_LENGTH,
    Linkage,
    VectorArrays,
    islands,
    named_by_smallest,
)
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.vector_sums import sum_vectors
from proteoscope.kernels.cuda.vector_clustering import analysis
from proteoscope.kernels.device import Device, DeviceMemoryError, UnsupportedSearchError, backend_module
from tests.kernels.test_both_backends import constants
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.tuning import tuned
from tests.shim.vector_inputs import (
    clustered,
    plain_components,
    plain_dbscan,
    plain_linkage,
    plain_similarities,
    random_vectors,
    windows,
)

needs_compiler = pytest.mark.skipif(bool(missing_compiler()), reason=missing_compiler() or "g++ is there")
DEVICES = [
    pytest.param(lambda: Processor(2), id="cpu"),
    pytest.param(ShimGpu, id="gpu", marks=needs_compiler),
    pytest.param(lambda: ShimGpu(descending=True), id="GPU descending", marks=needs_compiler),
]
on_each = pytest.mark.parametrize("device", DEVICES)
METHODS = [SINGLE, COMPLETE, AVERAGE]
NAMES = {SINGLE: "single", COMPLETE: "complete", AVERAGE: "average"}


def labels_on(device: Device, vectors: VectorArrays, ends: np.ndarray, linkage: Linkage) -> list[int]:
    return clustered(backend_module(device, "vector_clustering").VectorClustering, device, vectors, ends, linkage)


def expected(vectors: VectorArrays, ends: np.ndarray, linkage: Linkage) -> list[int]:
    similarities = plain_similarities(vectors, ends)
    if linkage.method == SINGLE:
        return plain_dbscan(similarities, linkage.least, linkage.minimum_neighbours)
    return plain_linkage(similarities, linkage.least, linkage.method == AVERAGE)


def inputs(seed: int, n: int, width: float, **options: object) -> tuple[VectorArrays, np.ndarray]:
    rng = np.random.default_rng(seed)
    return random_vectors(rng, n, **options), windows(rng, n, width)


@on_each
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 90),
    width=st.sampled_from([0.0, 3.0, 20.0, 200.0]),
    coarse=st.booleans(),
    linkage=st.builds(
        Linkage, st.sampled_from(METHODS), st.sampled_from([0.05, 0.3, 0.5, 0.8, 1.0]), st.sampled_from([1, 2, 3, 6]), st.just(100)
    ),
)
def test_vector_clusters_equal_brute_force_with_ties(device, seed, n, width, coarse, linkage):
    options = {"coarse": True, "bins": 12, "elements": 3} if coarse else {}
    vectors, ends = inputs(seed, n, width, **options)
    assert labels_on(device(), vectors, ends, linkage) == expected(vectors, ends, linkage)


@on_each
@pytest.mark.parametrize("method", [COMPLETE, AVERAGE])
def test_vector_clusters_without_equal_similarities_equal_scipy(device, method):
    vectors, ends = inputs(1, 300, 60.0, noise=0.8, empty=0.0)
    distances = 1.0 - np.maximum(plain_similarities(vectors, ends), 0.0)
    np.fill_diagonal(distances, 0.0)
    for least in (0.3, 0.5, 0.7):
        theirs = fcluster(linkage(squareform(distances, checks=False), NAMES[method]), 1.0 - least, "distance")
        mine = labels_on(device(), vectors, ends, Linkage(method, least))
        assert mine == named_by_smallest(np.unique(theirs, return_index=True)[1][theirs - 1]).tolist()
        assert 20 < len(set(mine)) < 290


@on_each
@pytest.mark.parametrize("minimum_neighbours", [2, 4, 9])
def test_single_linkage_core_points_and_noise_equal_scikit_learn(device, minimum_neighbours):
    from sklearn.cluster import DBSCAN  # the import takes as long as many tests

    vectors, ends = inputs(2, 300, 60.0, noise=0.8, empty=0.0)
    distances = 1.0 - np.maximum(plain_similarities(vectors, ends), 0.0)
    np.fill_diagonal(distances, 0.0)
    theirs = DBSCAN(eps=0.4, min_samples=minimum_neighbours, metric="precomputed").fit(distances)
    mine = np.array(labels_on(device(), vectors, ends, Linkage(SINGLE, 0.6, minimum_neighbours)))
    cores = theirs.core_sample_indices_
    assert len({*zip(mine[cores].tolist(), theirs.labels_[cores].tolist(), strict=True)}) == len(set(theirs.labels_[cores].tolist()))
    noise = np.flatnonzero(theirs.labels_ < 0)
    assert (mine[noise] == noise).all()
    assert len(cores) > 50 and (minimum_neighbours == 2 or len(cores) + len(noise) < 300)


@on_each
@pytest.mark.parametrize("method", METHODS)
def test_vector_cluster_labels_do_not_depend_on_partitions(device, method):
    vectors, ends = inputs(3, 400, 2.5)
    requested, cuts = Linkage(method, 0.5, 3, 6), islands(ends)
    whole = labels_on(device(), vectors, ends, requested)
    assert len(cuts) > 20
    used, labels = device(), np.full(400, -7)
    search = backend_module(used, "vector_clustering").VectorClustering(used, vectors, ends)
    for first, last in ((0, 5), (12, len(cuts) - 1), (5, 12)):
        first, last = int(cuts[first]), int(cuts[last])
        before = labels.copy()
        reached = list(search.cluster(requested, labels, first, last))
        assert reached == sorted(reached) and reached[-1] == last and {*reached} <= {*cuts.tolist()}
        assert (labels[:first] == before[:first]).all() and (labels[last:] == before[last:]).all()
    assert labels.tolist() == whole


@on_each
@pytest.mark.parametrize("method", [COMPLETE, AVERAGE])
def test_large_components_are_split_equally_on_every_device(device, method):
    vectors, ends = inputs(4, 400, 80.0, kinds=3, noise=0.5)
    requested = Linkage(method, 0.6, maximum_members=8)
    labels = labels_on(device(), vectors, ends, requested)
    assert labels == labels_on(Processor(1), vectors, ends, requested)
    components = plain_components(plain_similarities(vectors, ends) >= 0.6)
    assert max(np.bincount(components)) > 100, "some are divided, and more than once"
    assert all(components[label] == components[point] for point, label in enumerate(labels)), "clusters lie inside components"
    assert labels == named_by_smallest(np.array(labels)).tolist()
    assert len(set(labels)) < 120, "and find most of what belongs together"


def test_split_of_a_large_component_leaves_clusters_whole():
    rng, n = np.random.default_rng(5), 600
    kinds = rng.integers(0, 4, n)
    bins = np.repeat(kinds * 40, 20) + np.tile(np.arange(20), n)
    weights = rng.integers(180, 280, 20 * n).astype(np.int16)
    vectors = VectorArrays(np.arange(n + 1) * 20, bins.astype(np.int32), weights)
    ends = np.full(n, n)
    first = named_by_smallest(np.unique(kinds, return_index=True)[1][kinds]).tolist()
    for method in METHODS:
        assert labels_on(Processor(2), vectors, ends, Linkage(method, 0.8, maximum_members=8)) == first


def test_representative_vectors_of_clusters_have_unit_length():
    from proteoscope.kernels.cpu.linkage_rounds import _sums

    vectors = random_vectors(np.random.default_rng(6), 50, empty=0.0)
    sums = _sums(vectors, np.arange(50), np.arange(50) // 5, np.arange(1, 51), 10)
    rows = np.zeros((10, 200))
    of = np.repeat(np.arange(50), np.diff(vectors.offsets))
    np.add.at(rows, (of // 5, vectors.bins), vectors.weights * (of + 1.0))
    rows *= UNIT_LENGTH / np.sqrt((rows**2).sum(axis=1, keepdims=True))
    mine = np.zeros((10, 200))
    mine[np.repeat(np.arange(10), np.diff(sums.offsets)), sums.bins] = sums.weights
    np.testing.assert_allclose(mine, rows, atol=0.5 + 1e-9)
    assert all((np.diff(sums.bins[a:b]) > 0).all() for a, b in pairwise(sums.offsets))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), most=st.sampled_from([1, 2, 5, 30]), largest=st.sampled_from([2, 5, 1000]))
def test_vector_sum_retains_the_largest_elements(seed, most, largest):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 20, 12)
    bins = [np.sort(rng.choice(25, length, replace=False)) for length in lengths]
    weights = [rng.integers(1, largest, length) for length in lengths]
    members, starts, counts = rng.permutation(12)[:9], np.array([0, 4, 4, 9]), rng.integers(1, 50, 9)
    vectors = VectorArrays(
        np.concatenate(([0], np.cumsum(lengths))), np.concatenate(bins).astype(np.int32), np.concatenate(weights).astype(np.int16)
    )
    workspace = int(lengths[members].sum())
    sums = VectorArrays(np.empty(4, np.int64), np.empty(workspace, np.int32), np.empty(workspace, np.int16))
    sum_vectors(vectors, 25, members, starts, counts, 1024.0, most, sums)
    for cluster in range(3):
        total = np.zeros(25)
        for k in range(starts[cluster], starts[cluster + 1]):
            total[bins[members[k]]] += weights[members[k]] * counts[k]
        whole = np.floor(total * (1024.0 / max(1e-300, math.sqrt(sum(total**2)))) + 0.5)
        expected = sorted(sorted(((b, w) for b, w in enumerate(whole) if w > 0), key=lambda element: -element[1])[:most])
        part = slice(sums.offsets[cluster], sums.offsets[cluster + 1])
        assert list(zip(sums.bins[part], sums.weights[part], strict=True)) == expected


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 30), width=st.sampled_from([0.0, 0.5, 2.0, 50.0]))
def test_islands_of_vectors_end_where_no_window_extends_further(seed, n, width):
    ends = windows(np.random.default_rng(seed), n, width)
    cuts = [i for i in range(1, n) if all(end <= i for end in ends[:i])]
    assert islands(ends).tolist() == [*([0] if n else []), *cuts, n]


@pytest.mark.parametrize(
    "linkage", [Linkage(3, 0.5), Linkage(SINGLE, 0.0), Linkage(SINGLE, 1.1), Linkage(SINGLE, 0.5, 0), Linkage(AVERAGE, 0.5, 2, 1)], ids=str
)
@on_each
def test_vector_clustering_rejects_invalid_settings(device, linkage):
    vectors, ends = inputs(7, 5, 2.0)
    with pytest.raises(ValueError):
        labels_on(device(), vectors, ends, linkage)


def test_vector_clustering_stops_immediately_when_closed():
    vectors = random_vectors(np.random.default_rng(8), 6000, kinds=2, noise=0.1)
    labels = np.full(6000, -7)
    work = backend_module(Processor(1), "vector_clustering").VectorClustering(Processor(1), vectors, np.full(6000, 6000))
    clustering = work.cluster(Linkage(AVERAGE, 0.5), labels)
    assert next(clustering) == 0
    clustering.close()


class SmallGpu(ShimGpu):
    """A GPU with limited free memory and shared memory per block."""

    def __init__(self, free: int = 1 << 32, shared: int = 99 << 10) -> None:
        super().__init__()
        self._free, self._shared = free, shared

    def free_bytes(self) -> int:
        return self._free

    def maximum_shared_bytes(self) -> int:
        return self._shared


@needs_compiler
@pytest.mark.parametrize("linkage", [Linkage(SINGLE, 0.5, 4), Linkage(COMPLETE, 0.5), Linkage(AVERAGE, 0.5)], ids=str)
def test_vector_clustering_on_gpu_with_little_memory_equals_cpu(linkage):
    vectors, ends = inputs(9, 500, 2.5)
    whole = labels_on(Processor(1), vectors, ends, linkage)
    for free in (60_000, 120_000):
        gpu = SmallGpu(free)
        assert labels_on(gpu, vectors, ends, linkage) == whole
        assert gpu.launched.count("sum_squares") > 1
    with pytest.raises(DeviceMemoryError, match="not enough for one island of vectors"):
        labels_on(SmallGpu(1000), vectors, ends, linkage)


@needs_compiler
def test_gpu_clustering_fills_matrices_singly_in_little_memory():
    vectors, ends = inputs(10, 300, 300.0, kinds=6, noise=0.1)
    gpu, requested = SmallGpu(145_000), Linkage(AVERAGE, 0.5)
    assert labels_on(gpu, vectors, ends, requested) == labels_on(Processor(1), vectors, ends, requested)
    assert gpu.launched.count("sum_squares") == 1 and gpu.launched.count("fill_averages") > 1


@needs_compiler
def test_gpu_clustering_fills_fewer_matrices_if_allocation_fails():
    class FragmentedGpu(ShimGpu):
        """A GPU that refuses buffers above some size, whatever is free."""

        largest = 100_000

        def buffer(self, n_bytes: int):
            if n_bytes > self.largest:
                raise DeviceMemoryError("fragmented")
            return super().buffer(n_bytes)

    vectors, ends = inputs(10, 300, 300.0, kinds=6, noise=0.1)
    gpu, requested = FragmentedGpu(), Linkage(AVERAGE, 0.5)
    assert labels_on(gpu, vectors, ends, requested) == labels_on(Processor(1), vectors, ends, requested)
    assert gpu.launched.count("fill_averages") > 1
    gpu.largest = 15_000
    with pytest.raises(DeviceMemoryError, match="fragmented"):
        labels_on(gpu, vectors, ends, requested)


@needs_compiler
def test_gpu_clustering_rejects_a_matrix_larger_than_memory():
    vectors, ends = inputs(10, 300, 300.0, kinds=1, noise=0.1)
    assert labels_on(SmallGpu(200_000), vectors, ends, Linkage(SINGLE, 0.5)) == labels_on(Processor(1), vectors, ends, Linkage(SINGLE, 0.5))
    with pytest.raises(DeviceMemoryError, match="a matrix needs"):
        labels_on(SmallGpu(200_000), vectors, ends, Linkage(AVERAGE, 0.5))


@needs_compiler
@pytest.mark.parametrize("method", METHODS)
def test_gpu_clustering_of_long_vectors_uses_smaller_tiles(method):
    vectors, ends = inputs(11, 45, 15.0, kinds=3, bins=600, elements=180, noise=0.8)
    lengths = np.diff(vectors.offsets)
    assert 200 < lengths.max() < 480
    requested, search = Linkage(method, 0.7), tuned(backend_module(ShimGpu(), "vector_clustering").VectorClustering, threads=64)
    assert clustered(search, SmallGpu(shared=64 << 10), vectors, ends, requested) == expected(vectors, ends, requested)
    assert clustered(search, ShimGpu(), vectors, ends, requested) == expected(vectors, ends, requested)


@needs_compiler
def test_gpu_clustering_rejects_too_long_vectors():
    vectors = VectorArrays(np.array([0, 1000]), np.arange(1000, dtype=np.int32), np.full(1000, 32, np.int16))
    with pytest.raises(UnsupportedSearchError, match="at most 960 elements, and one has 1,000"):
        labels_on(ShimGpu(), vectors, np.array([1]), Linkage(SINGLE, 0.5))


@needs_compiler
@pytest.mark.parametrize("linkage", [Linkage(SINGLE, 0.3), Linkage(SINGLE, 0.3, 4), Linkage(COMPLETE, 0.3), Linkage(AVERAGE, 0.3)], ids=str)
def test_vector_clustering_analysis_predicts_the_work_of_the_gpu(linkage):
    vectors = random_vectors(np.random.default_rng(12), 200, kinds=5, noise=0.1)
    ends, gpu = np.full(200, 200), ShimGpu()
    components = np.array(plain_components(plain_similarities(vectors, ends) >= 0.3))
    sizes = np.bincount(components)
    sizes = sizes[sizes > 1] if linkage.method != SINGLE else sizes[:0]
    assert linkage.method == SINGLE or sizes.max() > 32
    labels_on(gpu, vectors, ends, linkage)
    work = analysis(gpu, vectors, ends, linkage, sizes)
    assert work.launches == len(gpu.launched)
    assert work.words_in == gpu.bytes_in // 4 and 4 * work.words_out == gpu.bytes_out
    assert work.pairs == gpu.operations
    assert work.shared_bytes == gpu.shared_bytes
    assert work.cells == int((sizes**2).sum())


def test_similarity_units_are_equal_in_python_and_cuda():
    assert constants("vector_clustering")["kUnits"] == SIMILARITY_UNITS
