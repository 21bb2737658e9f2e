"""Vector clusters on a GPU equal those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from proteoscope.kernels.clustering_layouts import AVERAGE, COMPLETE, SINGLE, Linkage
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.vector_clustering import VectorClustering as OnProcessor
from proteoscope.kernels.cuda.vector_clustering import VectorClustering as OnGpu
from tests.shim.tuning import tuned
from tests.shim.vector_inputs import clustered, random_vectors, windows

pytestmark = pytest.mark.gpu

LINKAGES = [Linkage(SINGLE, 0.6), Linkage(SINGLE, 0.6, 5), Linkage(COMPLETE, 0.6), Linkage(AVERAGE, 0.6), Linkage(AVERAGE, 0.6, 2, 300)]


@pytest.mark.parametrize("linkage", LINKAGES, ids=str)
@pytest.mark.parametrize("kinds", [20, 2000], ids=["large clusters", "small clusters"])
def test_gpu_vector_clustering_equals_cpu(linkage, kinds, device):
    rng = np.random.default_rng(1)
    vectors, ends = random_vectors(rng, 20_000, kinds=kinds, bins=1000, elements=27, noise=0.7), windows(rng, 20_000, 700.0)
    expected = clustered(OnProcessor, Processor(4), vectors, ends, linkage)
    assert clustered(OnGpu, device, vectors, ends, linkage) == expected
    assert 1000 < len(set(expected)) < 19_990


@pytest.mark.parametrize("linkage", LINKAGES, ids=str)
def test_gpu_vector_clustering_equals_cpu_for_any_batch_size(linkage, device):
    rng = np.random.default_rng(2)
    vectors, ends = random_vectors(rng, 3000, kinds=5, coarse=True, bins=20, elements=4), windows(rng, 3000, 2.5)
    expected = clustered(OnProcessor, Processor(2), vectors, ends, linkage)
    assert clustered(tuned(OnGpu, pairs_of_batch=500.0, pairs_of_run=2000.0), device, vectors, ends, linkage) == expected
