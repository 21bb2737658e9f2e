"""Clustering of vectors as a workload of the executor."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from proteoscope.engine.clustering.grouping import VectorGroups, create_workload, grouped
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.jobs.progress import Progress
from proteoscope.kernels.clustering_layouts import AVERAGE, SINGLE, Linkage, islands, window_pairs
from proteoscope.kernels.cpu.processor import Processor
from proteoscope.kernels.cpu.vector_clustering import VectorClustering
from tests.shim.shim_gpu import ShimGpu, missing_compiler
from tests.shim.vector_inputs import clustered, random_vectors, windows


@pytest.mark.parametrize(
    "gpus",
    [[], pytest.param([ShimGpu()], marks=pytest.mark.skipif(bool(missing_compiler()), reason="g++ is not installed"))],
    ids=["cpu", "cpu and gpu"],
)
@pytest.mark.parametrize("linkage", [Linkage(SINGLE, 0.5, 3), Linkage(AVERAGE, 0.6)], ids=str)
def test_executor_clusters_equal_kernel_clusters(linkage: Linkage, gpus: list[Any]) -> None:
    rng = np.random.default_rng(1)
    vectors, ends = random_vectors(rng, 2000), windows(rng, 2000, 2.5)
    assert len(islands(ends)) > 100
    with Executor(Resources(2, [*gpus], True, Progress())).session(create_workload(vectors, ends)) as session:
        labels = grouped(session, linkage)
        again = grouped(session, linkage._replace(least=1.0))
    assert labels.tolist() == clustered(VectorClustering, Processor(1), vectors, ends, linkage)
    assert len(set(labels.tolist())) < len(set(again.tolist()))


def test_clustering_of_no_vectors_gives_no_clusters() -> None:
    rng = np.random.default_rng(2)
    with Executor(Resources(1, [], True, Progress())).session(create_workload(random_vectors(rng, 0), windows(rng, 0, 1.0))) as session:
        assert grouped(session, Linkage(SINGLE, 0.5)).tolist() == []


def test_workload_cost_of_an_island_is_proportional_to_its_pairs() -> None:
    rng = np.random.default_rng(3)
    vectors, ends = random_vectors(rng, 300), windows(rng, 300, 3.0)
    costs, starts = VectorGroups().costs(create_workload(vectors, ends), None), islands(ends)
    pairs = [window_pairs(ends)[a:b].sum() + b - a for a, b in pairwise(starts)]
    np.testing.assert_allclose(costs, np.array(pairs) * len(vectors.bins) / 300)
