"""Entries (descriptions for the command line and the window) of the clustering, and of the explanation of unidentified spectra."""

from proteoscope.engine import clustering
from proteoscope.engine.entry import IDENTIFICATION_INPUT, SPECTRA_INPUT, STRICT_OPTION, Demo, Export, Option, Search
from proteoscope.engine.matches.exports import library_exports

__all__ = ["CLUSTERING", "EXPLANATION"]

_CLUSTER_EPILOG = """
Spectra are compared by the cosine of their vectors (bins of m/z, square roots of intensities, without the precursor). Only spectra of the
same charge and polarity whose precursors are within the tolerance are compared; spectra without a charge are compared only with each other.
Every spectrum has a row in exports/clusters.tsv; a spectrum that joins no cluster has a separate cluster number.

hierarchical: average or complete linkage up to --maximum-distance. dbscan: connected neighbours up to this distance. k-means: CLUSTERS
centroids; spectra join the nearest centroid of the same charge and polarity within the precursor tolerance.

--labels FILE: a tab-separated table with the column label and one of the columns spectrum_id, title, accession and index. The summary then
shows how well the clusters agree with the labels.
"""

_EXPLAIN_EPILOG = """
Each unidentified spectrum of an identification is assigned to the identified peptide whose spectrum it resembles. Both must have the same
charge and, within the tolerance, the same mass. With --mass-difference DA, masses may differ by up to DA; such spectra are probably of a
modified form. q-values are estimated from the spectra that instead resemble the spectrum of a shuffled peptide, separately for equal and
different masses. Results are added to PROJECT; --out FILE also writes the table.
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
            "write the consensus spectra of clusters of at least two spectra into this file (MGF)",
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
