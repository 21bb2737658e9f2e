"""Entries, in the list of searches, of the clustering and of the search that explains unidentified spectra."""

from proteoscope.engine import clustering
from proteoscope.engine.entry import IDENTIFICATION_INPUT, SPECTRA_INPUT, STRICT_OPTION, Demo, Export, Option, Search
from proteoscope.engine.matches.exports import library_exports

__all__ = ["CLUSTERING", "EXPLANATION"]

_CLUSTER_EPILOG = """
Spectra are compared by the cosine of their vectors (bins of m/z, square roots of intensities, without the precursor), within the precursor
tolerance and among ions of the same charge and polarity; those without a charge form a class of their own. Every spectrum has a row in
exports/clusters.tsv; one that joins none has a cluster number of its own.

hierarchical: average or complete linkage up to --maximum-distance. dbscan: connected neighbours up to that distance. k-means: CLUSTERS
centroids, which spectra of their class and within the precursor tolerance join.

--labels FILE: a table (tab-separated) with the columns label and one of spectrum_id, title, accession, index; the summary then shows
how well the clusters agree with the labels.
"""

_EXPLAIN_EPILOG = """
Spectra that an identification left unidentified join the identified peptide they resemble: same charge, same mass within the tolerance, or,
with --mass-difference DA, lighter or heavier by up to that, as probably modified. q-values count spectra that resemble the spectrum of a
shuffled peptide instead, separately for equal and different masses. Results go into PROJECT; --out FILE also writes the table.
"""


CLUSTERING = Search(
    kind="cluster",
    name="clustering",
    question="Which spectra are similar?",
    manual="clustering",
    purpose="Group similar spectra",
    description="Group similar spectra of any molecules. Results go into a project folder: exports/clusters.tsv, run.json.",
    epilog=_CLUSTER_EPILOG,
    job="Cluster {spectra}",
    icon="cluster",
    parameters=lambda: clustering.parameters.ClusteringParameters,
    preset="high-resolution",
    inputs=(SPECTRA_INPUT,),
    options=(
        STRICT_OPTION,
        Option(
            "consensus",
            "",
            "write the consensus spectra of clusters of two and more into this file (MGF)",
            metavar="FILE",
            is_output_file=True,
        ),
        Option("labels", "", "table of known labels, to show how well the clusters agree with them", metavar="FILE"),
    ),
    shortcuts=("method", "maximum_distance", "linkage", "precursor_tolerance", "clusters"),
    writes="project",
    run=lambda request, progress: clustering.search.cluster(request, progress),
    modules=(lambda: clustering.search,),
    workload_estimator=lambda: clustering.workload.estimate_workload,
    tables=lambda: clustering.tables.CLUSTER_TABLES,
    stored=lambda: clustering.tables.CLUSTER_STORED,
    methods=lambda: clustering.summary.clustering_methods,
    exports=(
        Export("tsv", "Table, tab-separated", lambda: clustering.export.export_clusters, (".tsv",)),
        Export("mgf", "Consensus spectra", lambda: clustering.export.export_consensus, (".mgf",)),
    ),
    demo=Demo({"spectra": ("BSA1.mzML.gz", "BSA2.mzML.gz", "BSA3.mzML.gz")}, "low-resolution"),
    workload_types=(
        ("vector-groups", lambda: clustering.grouping.VectorGroups),
        ("points", lambda: clustering.assignment.PointsToCentroids),
        ("vectors", lambda: clustering.assignment.VectorsToCentroids),
    ),
)

EXPLANATION = Search(
    kind="explain",
    name="explanation",
    question="What are the unidentified spectra?",
    manual="clustering",
    purpose="Explain unidentified spectra by similar identified spectra",
    description="Explain the unidentified spectra of an identification by the identified spectra that they resemble.",
    epilog=_EXPLAIN_EPILOG,
    job="Explain spectra of {project}",
    icon="explain",
    parameters=lambda: clustering.parameters.ExplanationParameters,
    preset="standard",
    inputs=(IDENTIFICATION_INPUT,),
    shortcuts=("run", "precursor_tolerance", "minimum_similarity", "mass_difference"),
    writes="given project",
    run=lambda request, progress: clustering.explanation_search.explain(request, progress),
    modules=(lambda: clustering.explanation_search,),
    demo=Demo({}, "low-resolution", after="import"),
    workload_estimator=lambda: clustering.workload.estimate_explanation_workload,
    tables=lambda: clustering.tables.EXPLANATION_TABLES,
    stored=lambda: clustering.tables.EXPLANATION_STORED,
    methods=lambda: clustering.summary.explanation_methods,
    exports=(
        Export("tsv", "Table, tab-separated", lambda: clustering.export.export_explained, (".tsv",)),
        *library_exports(lambda: clustering.export.export_explained_library),
    ),
)
