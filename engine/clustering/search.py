"""Clustering of similar spectra: from files to a project, in the steps read, index, plan, score and report."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.arrays import take_segments
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.clustering.grouping import STEP_PRODUCTS, create_workload, grouped
from proteoscope.engine.clustering.k_means import InitialCentroids, Vectors, k_means, seed_items
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.quality import Quality, compared_with_labels, read_labels
from proteoscope.engine.clustering.results import CLUSTERS_FILE, SpectrumClusters, described_clusters, write_clusters
from proteoscope.engine.clustering.summary import ClusteringSummary
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.execution.executor import Executor
from proteoscope.engine.execution.resources import Resources
from proteoscope.engine.execution.workload import Workload
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra
from proteoscope.engine.spectra.vectors import SpectrumVectors, spectrum_vectors, windows
from proteoscope.kernels.clustering_layouts import AVERAGE, COMPLETE, SINGLE, Linkage, VectorArrays, VectorSums, window_pairs

__all__ = ["GroupingPlan", "LinkagePlan", "MeansPlan", "cluster", "compute_clusters", "plan_groups", "score_groups"]

_LINKAGES = {"average": AVERAGE, "complete": COMPLETE}
_SPECTRA_OF_CLUSTER = 10


class LinkagePlan(NamedTuple):
    """Plan of a clustering by linkage: the workload that compares vectors of similar precursor m/z, its progress steps, and the linkage."""

    workload: Workload
    n_steps: int
    linkage: Linkage


class MeansPlan(NamedTuple):
    """Plan of a k-means clustering.

    Attributes
    ----------
    n : int
        Number of spectra.
    spectra : ndarray of int64, shape (m,)
        Indices of the spectra that are clustered.
    vectors : Vectors or None
        Vectors of these spectra; None without vectors.
    centroids : VectorSums or None
        Initial centroids; None without vectors.
    """

    n: int
    spectra: NDArray[np.int64]
    vectors: Vectors | None = None
    centroids: VectorSums | None = None


GroupingPlan = LinkagePlan | MeansPlan


def compute_clusters(spectra: Spectra, parameters: ClusteringParameters, resources: Resources) -> SpectrumClusters:
    """Return the clusters of spectra without writing results."""
    vectors = spectrum_vectors(spectra, parameters, resources)
    labels = score_groups(plan_groups(vectors, parameters, resources), parameters, resources)
    return described_clusters(vectors, labels, spectra, parameters, resources)


def plan_groups(vectors: SpectrumVectors, parameters: ClusteringParameters, resources: Resources) -> GroupingPlan:
    """Return the plan of the selected method: the comparisons of a clustering by linkage, or the centroids of a k-means clustering.

    Raises
    ------
    ParameterError
        If there are fewer spectra than clusters.
    Cancelled
        If the user cancelled the search.
    """
    if parameters.method == "k-means":
        return _plan_means(vectors, parameters, resources)
    ends = windows(vectors, parameters.precursor_tolerance)
    elements = max(1.0, len(vectors.arrays.bins) / max(1, len(ends)))
    n_steps = max(1, int((len(ends) + window_pairs(ends).sum()) * elements / STEP_PRODUCTS))
    method = SINGLE if parameters.method == "dbscan" else _LINKAGES[parameters.linkage]
    return LinkagePlan(
        create_workload(vectors.arrays, ends), n_steps, Linkage(method, parameters.least_similarity, parameters.minimum_neighbours)
    )


def score_groups(plan: GroupingPlan, parameters: ClusteringParameters, resources: Resources) -> NDArray[np.int64]:
    """Return a label for each vector, (n,) int64; spectra with equal labels form a cluster.

    Raises
    ------
    Cancelled
        If the user cancelled the search.
    """
    if isinstance(plan, LinkagePlan):
        resources.progress.stage("Comparing spectra", plan.n_steps)
        with Executor(resources).session(plan.workload) as session:
            return grouped(session, plan.linkage)
    labels = np.arange(plan.n)
    if plan.vectors is None or plan.centroids is None:
        return labels
    result = k_means(
        Executor(resources),
        plan.vectors,
        plan.centroids,
        rounds=parameters.maximum_iterations,
        tolerance=parameters.convergence_tolerance,
        progress=resources.progress,
    ).labels
    joined = plan.spectra[result >= 0]
    _, first, cluster = np.unique(result[result >= 0], return_index=True, return_inverse=True)
    labels[joined] = joined[first][cluster]
    return labels


def _plan_means(vectors: SpectrumVectors, parameters: ClusteringParameters, resources: Resources) -> MeansPlan:
    """Return the plan of a k-means clustering: initial centroids, and for each spectrum the centroids to which it may be assigned.

    Spectra without peaks, or without such centroids, remain separate.
    """
    positions = np.flatnonzero((np.diff(vectors.arrays.offsets) > 0) & np.isfinite(vectors.precursor_mz))
    n = len(positions)
    if not n:
        return MeansPlan(len(vectors), positions)
    k = parameters.clusters or max(1, n // _SPECTRA_OF_CLUSTER)
    if k > n:
        raise ParameterError(f"clusters = {k}: there are only {n:,} spectra to group; request fewer clusters")
    bins, offsets = take_segments(vectors.arrays.bins, vectors.arrays.offsets, positions)
    weights, _ = take_segments(vectors.arrays.weights, vectors.arrays.offsets, positions)
    arrays = VectorArrays(offsets, bins, weights)
    anywhere = Vectors(arrays, vectors.n_bins)
    with Executor(resources).session(workload := anywhere.work()) as session:
        chosen = seed_items(
            session, workload, anywhere, InitialCentroids(k, parameters.seeding, parameters.random_seed), resources.progress
        )
    if parameters.seeding == "first":  # the first spectra in the order of the files
        chosen = np.argsort(vectors.order[positions], kind="stable")[:k]
    chosen = np.sort(chosen)
    low, high = _ranges(vectors.ion[positions], vectors.precursor_mz[positions], chosen, parameters.precursor_tolerance)
    return MeansPlan(len(vectors), positions, Vectors(arrays, vectors.n_bins, low, high), anywhere.centroids_at(chosen))


def _ranges(
    ion: NDArray[np.uint32], precursor_mz: NDArray[np.float64], chosen: NDArray[np.int64], tolerance: Tolerance
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the range of initial centroids to which each vector may be assigned, as start and end, (n,) int64 each."""
    n = len(ion)
    low, high = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for first, last in pairwise([0, *(np.flatnonzero(np.diff(ion)) + 1).tolist(), n]):
        a, b = np.searchsorted(chosen, (first, last))
        seeds_mz = precursor_mz[chosen[a:b]]
        low_mz, high_mz = tolerance.bounds(precursor_mz[first:last])
        low[first:last] = a + np.searchsorted(seeds_mz, low_mz)
        high[first:last] = a + np.searchsorted(seeds_mz, high_mz, side="right")
    return low, high


def cluster(request: SearchRequest, progress: Progress | None = None) -> ClusteringSummary:
    """Cluster the spectra of files and write the clusters to a project.

    Parameters
    ----------
    request : SearchRequest
        Input ``spectra`` (files of any supported format), with `ClusteringParameters`. The `project` is created if it does not exist;
        otherwise a run is added. Options: ``consensus``, an MGF file for the consensus spectra; ``labels``, a table of known labels (see
        `proteoscope.engine.clustering.quality.read_labels`); ``strict``, which rejects files with unreadable spectra.
    progress : Progress, optional
        Progress, which receives stages and messages.

    Returns
    -------
    ClusteringSummary

    Raises
    ------
    InputError, ParameterError, StorageError
        If there is an error that the user can correct.
    Cancelled
        If the user cancelled the search.
    """
    parameters, labels, consensus = request.parameters_as(ClusteringParameters), request.path("labels"), request.path("consensus")
    spec = RunSpec(
        "cluster",
        request,
        {"spectra": "SPECTRA.mzML"},
        {"spectra": request.files("spectra"), "labels": [] if labels is None else [labels]},
        request.outputs("consensus"),
        kernels="cluster",
    )

    def read(progress: Progress, threads: int) -> Spectra:
        return read_spectra(
            request.files("spectra"),
            progress=progress,
            strict=request.flag("strict"),
            threads=threads,
            takes_negative=True,
            spool=spec.spool,
        )

    with project_run(spec, read, progress) as (run, results):
        opening = run.begin(run.resources)
        run.load_writers()
        run.load_kernels("spectrum_vectors", "vector_clustering", "vector_sums", "consensus")
        spectra = run.read()
        known_labels = None if labels is None else read_labels(labels, spectra)
        spectra_written = run.begin(lambda progress: write_spectra(results, spectra, progress))
        resources = opening().reporting_to(run.progress)
        with run.step("index"):
            vectors = spectrum_vectors(spectra, parameters, resources)
        with run.step("plan"):
            plan = plan_groups(vectors, parameters, resources)
        with run.step("score"):
            groups = score_groups(plan, parameters, resources)
        run.device = resources.used
        with run.step("report"):
            clusters = described_clusters(vectors, groups, spectra, parameters, resources)
            quality, cluster_labels = (None, None) if known_labels is None else compared_with_labels(clusters.cluster, known_labels)
            write_clusters(results, clusters, spectra, cluster_labels, consensus, parameters, resources, run.begin)
            spectra_written()
            run.progress.check()
        return _summary(run, clusters, quality, parameters)


def _summary(
    run: SearchRun[Spectra], clusters: SpectrumClusters, quality: Quality | None, parameters: ClusteringParameters
) -> ClusteringSummary:
    """Write the record of the run, and return its summary."""
    n_clusters, n_clustered = len(clusters.groups), int(clusters.sizes[clusters.groups].sum())
    counts = {"spectra": len(clusters.cluster), "clusters": n_clusters, "clustered": n_clustered}
    message = f"{counted(n_clusters, 'cluster')} of {counted(n_clustered, 'spectrum', 'spectra')}"
    run.record(counts, message, exports=[CLUSTERS_FILE], **({} if quality is None else {"quality": quality._asdict()}))
    return ClusteringSummary(**run.summary_fields(counts), method=parameters.method, quality=quality)
