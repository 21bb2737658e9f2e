"""The ways of grouping spectra: hierarchical clustering, DBSCAN and k-means, each of vectors within windows of precursor m/z."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.clustering.consensus import SpectrumClusters, described_clusters
from proteoscope.engine.clustering.grouping import STEP_PRODUCTS, grouped, work_of
from proteoscope.engine.clustering.k_means_of_spectra import k_means_labels
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.vectors import SpectrumVectors, spectrum_vectors, windows
from proteoscope.kernels.clustering_layouts import AVERAGE, COMPLETE, SINGLE, Linkage, window_pairs

__all__ = ["clusters_of", "grouped_spectra"]

_LINKAGES = {"average": AVERAGE, "complete": COMPLETE}


def clusters_of(spectra: Spectra, parameters: ClusteringParameters, resources: Resources) -> SpectrumClusters:
    """The clusters of spectra: index, plan and score, without files.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    with resources.clock.stage("index"):
        vectors = spectrum_vectors(spectra, parameters, resources)
    labels = grouped_spectra(vectors, parameters, resources)
    with resources.clock.stage("report"):
        return described_clusters(vectors, labels, spectra, parameters, resources)


def grouped_spectra(vectors: SpectrumVectors, parameters: ClusteringParameters, resources: Resources) -> NDArray[np.int64]:
    """(n,) int64, a label for each place of the vectors; spectra with the same label are a cluster.

    Raises
    ------
    Cancelled : the user asked to stop.
    """
    if parameters.method == "k-means":
        return k_means_labels(vectors, parameters, resources)
    method = SINGLE if parameters.method == "dbscan" else _LINKAGES[parameters.linkage]
    with resources.clock.stage("plan"):
        ends = windows(vectors, parameters.precursor_tolerance)
        elements = max(1.0, len(vectors.arrays.bins) / max(1, len(ends)))
        resources.progress.stage("Comparing spectra", max(1, int((len(ends) + window_pairs(ends).sum()) * elements / STEP_PRODUCTS)))
        linkage = Linkage(method, parameters.least_similarity, parameters.minimum_neighbours)
    with resources.clock.stage("score"), Executor(resources).session(work_of(vectors.arrays, ends)) as session:
        return grouped(session, linkage)
