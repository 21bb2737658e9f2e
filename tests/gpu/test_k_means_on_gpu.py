"""k-means results on GPUs equal those on the CPU, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.engine.clustering.k_means import InitialCentroids, Points, Vectors, k_means
from proteoscope.engine.execution.devices import gpus
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cuda.modules import open_gpu
from tests.shim.k_means_inputs import assigned, iterated, means_on, random_points, random_vectors, seeds_of

pytestmark = pytest.mark.gpu


def assert_same_rounds(first, other):
    np.testing.assert_array_equal(first[0], other[0])
    assert (first[1].n, first[1].changed) == (other[1].n, other[1].changed)
    for mine, its in zip(first[1].sums, other[1].sums, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("d", [*range(1, 18), 34, 100])
@pytest.mark.parametrize("k", [1, 2, 400, 5000])
def test_gpu_k_means_assignment_of_points_equals_cpu(device, d, k):
    rng = np.random.default_rng(d)
    points = random_points(rng, 20_000, d, most=1 << (30 if d % 2 else 6))
    centroids = points[rng.integers(0, 20_000, k)] + rng.normal(0.0, 1e5, (k, d)) * (rng.random((k, 1)) < 0.5)
    mine, its = (assigned(means_on(used, points), centroids, 20_000) for used in (Processor(8), device))
    for column, its_column in zip((*mine[:2], *mine[2]), (*its[:2], *its[2]), strict=True):
        np.testing.assert_array_equal(column, its_column)


@pytest.mark.parametrize("d", [2, 8, 34])
@pytest.mark.parametrize("tolerance", [0.0, 1e12])
def test_gpu_k_means_iterations_of_points_equal_cpu(device, d, tolerance):
    points = random_points(np.random.default_rng(d), 100_000, d)
    given = points[:200].astype(np.float64)
    assert_same_rounds(*(iterated(means_on(used, points), given, 100_000, 12, tolerance) for used in (Processor(8), device)))


@pytest.mark.parametrize("has_ranges", [False, True], ids=["all", "ranges"])
@pytest.mark.parametrize("k", [2, 700, 3000])
def test_gpu_k_means_iterations_of_vectors_equal_cpu(device, k, has_ranges):
    rng, n, n_bins = np.random.default_rng(k), 20_000, 400
    vectors = random_vectors(rng, n, n_bins, classes=2000)
    low = rng.integers(0, k, n)
    ranges = {"low": low, "high": np.minimum(k, low + 50)} if has_ranges else {}
    given = seeds_of(vectors, rng.choice(n, k, replace=False))
    mine, its = (assigned(means_on(used, vectors, n_bins, **ranges), given, n) for used in (Processor(8), device))
    for column, its_column in zip((*mine[:2], *mine[2]), (*its[:2], *its[2]), strict=True):
        np.testing.assert_array_equal(column, its_column)
    assert_same_rounds(*(iterated(means_on(used, vectors, n_bins, **ranges), given, n, 20) for used in (Processor(8), device)))


@pytest.mark.parametrize("sort", ["points", "tiles", "vectors"])
def test_k_means_on_any_set_of_devices_equals_cpu(number, sort):
    rng = np.random.default_rng(7)
    if sort == "vectors":
        data = Vectors(random_vectors(rng, 6000, 300, classes=500), 300)
    else:
        data = Points(rng.normal(0, 1, (60_000, 5 if sort == "points" else 40)))
    usable = [gpu.numbers[0] for gpu in gpus() if gpu.usable]
    results = []
    for numbers, with_processor in (([], True), ([number], False), ([number], True), (usable, False)):
        used = Resources(8, [open_gpu(used_number) for used_number in numbers], with_processor)
        results.append(k_means(Executor(used), data, InitialCentroids(60, "random", 1), rounds=15))
    for other in results[1:]:
        np.testing.assert_array_equal(other.labels, results[0].labels)
        for mine, its in zip(other.sums, results[0].sums, strict=True):
            np.testing.assert_array_equal(mine, its)
        assert (other.rounds, other.moved) == (results[0].rounds, results[0].moved)
