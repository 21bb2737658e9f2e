"""k-means of spectra: some of them are the first centroids, which spectra of the same sort of ion and near precursors join."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_runs
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.k_means import Seeds, Vectors, k_means, seed_items
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.spectra.vectors import SpectrumVectors
from proteoscope.kernels.vector_layouts import VectorArrays

__all__ = ["k_means_labels"]

_SPECTRA_OF_CLUSTER = 10


def k_means_labels(vectors: SpectrumVectors, parameters: ClusteringParameters, resources: Resources) -> NDArray[np.int64]:
    """(n,) int64, a label for each place of the vectors; spectra that may join no centroid, or have no peaks, are alone.

    Raises
    ------
    ParameterError : there are fewer spectra than clusters. Cancelled : the user asked to stop.
    """
    labels = np.arange(len(vectors))
    places = np.flatnonzero((np.diff(vectors.arrays.offsets) > 0) & np.isfinite(vectors.precursor_mz))
    n, executor, progress = len(places), Executor(resources), resources.progress
    if not n:
        return labels
    k = parameters.clusters or max(1, n // _SPECTRA_OF_CLUSTER)
    if k > n:
        raise ParameterError(f"clusters = {k}: there are only {n:,} spectra to group; ask for fewer")
    bins, offsets = take_runs(vectors.arrays.bins, vectors.arrays.offsets, places)
    weights, _ = take_runs(vectors.arrays.weights, vectors.arrays.offsets, places)
    arrays = VectorArrays(offsets, bins, weights)
    anywhere = Vectors(arrays, vectors.n_bins)
    with resources.clock.stage("index"), executor.session(work := anywhere.work()) as session:
        chosen = seed_items(session, work, anywhere, Seeds(k, parameters.seeding, parameters.seed), progress)
    if parameters.seeding == "first":  # in the order of the files
        chosen = np.argsort(vectors.order[places], kind="stable")[:k]
    chosen = np.sort(chosen)
    low, high = _ranges(vectors.ion[places], vectors.precursor_mz[places], chosen, parameters.precursor_tolerance)
    with resources.clock.stage("score"):
        found = k_means(
            executor, Vectors(arrays, vectors.n_bins, low, high), anywhere.centroids_at(chosen), rounds=parameters.rounds,
            tolerance=parameters.movement, progress=progress,
        )  # fmt: skip
    joined = found.labels >= 0
    _, first, of = np.unique(found.labels[joined], return_index=True, return_inverse=True)
    labels[places[joined]] = places[joined][first][of]
    return labels


def _ranges(
    ion: NDArray[np.uint32], precursor_mz: NDArray[np.float64], chosen: NDArray[np.int64], tolerance: Tolerance
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The seeds, by their places in order, that each vector may join: (n,) int64 each."""
    n = len(ion)
    low, high = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cuts = [0, *(np.flatnonzero(np.diff(ion)) + 1).tolist(), n]
    for first, last in pairwise(cuts):
        a, b = np.searchsorted(chosen, (first, last))
        of = precursor_mz[chosen[a:b]]
        low_mz, high_mz = tolerance.bounds(precursor_mz[first:last])
        low[first:last], high[first:last] = a + np.searchsorted(of, low_mz), a + np.searchsorted(of, high_mz, side="right")
    return low, high
