"""The result tables of grouping spectra, and of explaining the unidentified."""

from __future__ import annotations

from engine.tables import Column, Table

__all__ = ["CLUSTER_TABLES", "EXPLANATION_TABLES"]

_CHARGE = Column("charge", "z", "Charge of the precursor; negative for negative ions", "integer", 4)
_MZ = Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4)
_TIME = Column("retention_time", "RT", "Retention time", "minutes", 8, unit="min")
_FILE = Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False)

_CLUSTER_COLUMNS = (
    Column("cluster", "Cluster", "Number of the cluster", "identifier", 8),
    Column("n_members", "Spectra", "Spectra of the cluster", "integer", 7),
    _MZ,
    _CHARGE,
    Column("mean_similarity", "Similarity", "Mean cosine of its spectra and its consensus spectrum", "number", 9, 3),
    Column("least_similarity", "Least", "Cosine of the consensus spectrum and the member least like it", "number", 7, 3),
    _TIME,
    Column("title", "Consensus spectrum", "Name of the member that stands for the cluster", width=36),
    Column("label", "Label", "Most frequent label of its spectra, where labels were given", width=24, is_shown=False),
    Column("label_share", "Share", "Part of its labelled spectra with that label", "percent", 7, unit="%", is_shown=False),
)

_MEMBER_COLUMNS = (
    Column("cluster", "Cluster", "Number of the cluster", "identifier", 8),
    Column("title", "Spectrum", "Name of the spectrum", width=24),
    _MZ,
    _CHARGE,
    Column("similarity_to_consensus", "Similarity", "Cosine of the spectrum and its cluster's consensus spectrum", "number", 9, 3),
    _TIME,
    Column("is_consensus", "Consensus", "Whether it stands for the cluster", "truth", 9),
    Column("n_members", "Spectra", "Spectra of the cluster", "integer", 7, is_shown=False),
    Column("spectrum_id", "Spectrum ID", "Name of the spectrum in its file", width=30, is_shown=False),
    _FILE,
)

CLUSTER_TABLES = (
    Table("clusters", "Clusters", _CLUSTER_COLUMNS, ("cluster", "consensus")),
    Table("members", "Spectra", _MEMBER_COLUMNS, ("spectrum",)),
)
"""From the cluster to its spectra. ``consensus`` and ``spectrum``: rows of the tables ``consensus`` and ``spectra``."""

_EXPLAINED_COLUMNS = (
    Column("scan", "Scan", "Number of the scan in its file", "identifier", 7),
    Column("peptide", "Peptide", "Identified peptide that the spectrum resembles, in ProForma", width=26),
    _CHARGE,
    Column("similarity", "Similarity", "Cosine of the spectrum and the identified one", "number", 9, 3),
    Column("q_value", "q-value", "Smallest false discovery rate at which the explanation is accepted", "probability", 8),
    Column(
        "mass_difference",
        "Mass difference",
        "Measured less the peptide's mass; beyond the tolerance a probable modification",
        "number",
        10,
        4,
        unit="Da",
    ),
    _MZ,
    _TIME,
    Column("nearest_spectrum", "Identified spectrum", "The identified spectrum that is most similar", width=30),
    Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
    _FILE,
)  # fmt: skip

EXPLANATION_TABLES = (Table("explained", "Explained spectra", _EXPLAINED_COLUMNS, ("spectrum", "nearest", "kind")),)
"""``spectrum`` and ``nearest``: rows of the table ``spectra`` of the identification. ``kind``: same or modified."""
