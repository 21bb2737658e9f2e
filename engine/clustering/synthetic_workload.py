"""Synthetic points and vectors for measuring the speed of devices."""

from typing import Any

import numpy as np

from proteoscope.engine.arrays import segment_offsets
from proteoscope.engine.clustering.assignment import ROUNDS, SUMS, point_workload, vector_workload
from proteoscope.engine.clustering.grouping import create_workload
from proteoscope.engine.execution.workload import Sample
from proteoscope.kernels.clustering_layouts import COMPLETE, UNIT_LENGTH, Linkage, VectorArrays, sum_by_cluster

__all__ = ["sample_groups", "sample_points", "sample_vectors"]

_POINTS, _DIMENSIONS, _CLUSTERS, _ROUNDS = 2_000_000, 8, 100, 5
_VECTORS, _CLUSTERS_OF_VECTORS, _BINS = 60_000, 500, 40_000
_GROUPED, _ELEMENTS, _OF_KIND, _WINDOW = 200_000, 30, 5, 40
_DRAWN = 20_000  # random vectors, in islands of a thousand; more are copies


def _vectors(n: int, rng: np.random.Generator) -> VectorArrays:
    """Return noisy copies of vectors, in groups of similar neighbours; vectors beyond the first 20,000 repeat these."""
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
    """Return vectors for complete linkage in islands of a thousand, each vector compared with all following ones of its island."""
    rng = np.random.default_rng(seed)
    n = max(50, round(_GROUPED * size))
    numbers = np.arange(n)
    ends = np.minimum(np.minimum(numbers + 1 + _WINDOW, (numbers // 1000 + 1) * 1000), n)
    return Sample(create_workload(_vectors(n, rng), ends.astype(np.int64)), [Linkage(COMPLETE, 0.6)._asdict()])
