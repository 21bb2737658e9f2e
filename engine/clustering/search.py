"""Clustering of similar spectra: from files to a project, in the steps read, index, plan, score and report."""

from proteoscope.engine.clustering.consensus import SpectrumClusters, described_clusters
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.quality import Quality, compared_with_labels, read_labels
from proteoscope.engine.clustering.results import CLUSTERS_FILE, write_clusters
from proteoscope.engine.clustering.spectrum_groups import plan_groups, score_groups
from proteoscope.engine.clustering.summary import ClusteringSummary
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, SearchRun, project_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra
from proteoscope.engine.spectra.vectors import spectrum_vectors

__all__ = ["cluster"]


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
            write_clusters(results, clusters, spectra, cluster_labels, consensus, parameters, resources)
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
