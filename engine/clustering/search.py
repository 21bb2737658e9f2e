"""Group spectra that are alike: read -> index -> plan -> score -> report, from files to a project."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proteoscope.engine.clustering.compilation import CLUSTERING
from proteoscope.engine.clustering.consensus import SpectrumClusters, consensus_spectra, described_clusters
from proteoscope.engine.clustering.methods import grouped_spectra
from proteoscope.engine.clustering.parameters import ClusteringParameters
from proteoscope.engine.clustering.quality import Quality, cluster_quality, majority_labels, read_labels
from proteoscope.engine.clustering.results import cluster_tables, consensus_table, write_consensus_file, write_exports
from proteoscope.engine.clustering.summary import ClusteringSummary
from proteoscope.engine.entry import SearchRequest
from proteoscope.engine.formats import read_spectra
from proteoscope.engine.jobs.progress import Progress
from proteoscope.engine.results.counts import counted
from proteoscope.engine.search_run import RunSpec, search_run
from proteoscope.engine.spectra.columns import Spectra
from proteoscope.engine.spectra.tables import write_spectra
from proteoscope.engine.spectra.vectors import spectrum_vectors

__all__ = ["cluster"]

_CLUSTERS_PER_GROUP = 256  # a window draws one at a time


def cluster(request: SearchRequest, progress: Progress | None = None) -> ClusteringSummary:
    """Group the spectra of files and write the clusters into a project.

    Parameters
    ----------
    request : input ``spectra``, files of any known format; `ClusteringParameters`. Its `project` is made where it does not exist; a run is
        added to a project that does. Its options: ``consensus``, a file for the consensus spectra, as MGF; ``labels``, a table of known
        labels, see `proteoscope.engine.clustering.quality.read_labels`; ``strict``, refuse files with spectra that
        cannot be read.

    Raises
    ------
    InputError, ParameterError, StorageError : what the user can mend, said in one sentence. Cancelled : the user asked to stop.
    """
    parameters, labels, consensus = request.parameters_as(ClusteringParameters), request.path("labels"), request.path("consensus")
    spec = RunSpec(
        "cluster", request, {"spectra": "SPECTRA.mzML"},
        {"spectra": request.files("spectra"), "labels": [] if labels is None else [labels]}, request.outputs("consensus"),
    )  # fmt: skip

    def read(progress: Progress, threads: int) -> Spectra:
        return read_spectra(
            request.files("spectra"), progress=progress, strict=request.flag("strict"), threads=threads, takes_negative=True,
            spool=spec.spool,
        )  # fmt: skip

    with search_run(spec, read, CLUSTERING, progress) as run:
        assert run.run is not None
        results = run.run
        opening = run.begin(run.resources)
        found = run.read()
        known = None if labels is None else read_labels(labels, found)
        spectra_written = run.begin(lambda progress: write_spectra(results, found, progress))
        resources = opening().telling(run.progress)
        with run.step("index"):
            vectors = spectrum_vectors(found, parameters, resources)
        labelled = grouped_spectra(vectors, parameters, resources)  # plan and score, in rounds where the method has some
        run.device = resources.used
        with run.step("report"):
            clusters = described_clusters(vectors, labelled, found, parameters, resources)
            consensus_of = consensus_spectra(clusters, np.sort(clusters.groups), found, parameters, resources)
            quality, of_clusters = (None, None) if known is None else _compared(clusters, known)
            groups, members = cluster_tables(clusters, found, of_clusters)
            spectra_of_groups = consensus_table(clusters, consensus_of, found)
            results.write_table("clusters", groups)
            results.write_table("members", members)
            results.write_table("consensus", spectra_of_groups, _CLUSTERS_PER_GROUP)
            exported = write_exports(results, members, resources)
            if consensus is not None:
                write_consensus_file(consensus, spectra_of_groups, members, run.progress)
            spectra_written()
            run.progress.check()
        n_clustered = int(clusters.sizes[clusters.groups].sum())
        counts = {"spectra": len(found), "clusters": len(groups), "clustered": n_clustered}
        recorded = {} if quality is None else {"quality": quality._asdict()}
        run.record(
            counts, f"{counted(len(groups), 'cluster')} of {counted(n_clustered, 'spectrum', 'spectra')}", exports=[exported], **recorded
        )
        return ClusteringSummary(
            **run.summary_fields,
            n_spectra=len(found),
            n_clusters=len(groups),
            n_clustered=n_clustered,
            method=parameters.method,
            quality=quality,
        )


def _compared(clusters: SpectrumClusters, known: list[str]) -> tuple[Quality, tuple[list[str], NDArray[np.int64], NDArray[np.float64]]]:
    """How well clusters agree with labels, and the most frequent label of each."""
    names, numbers = np.unique(known, return_inverse=True)
    if not names[0]:
        names, numbers = names[1:], numbers - 1
    return cluster_quality(clusters.cluster, numbers), (names.tolist(), *majority_labels(clusters.cluster, numbers, len(clusters)))
