"""Result tables of clustering, and of explaining unidentified spectra."""

from proteoscope.engine.results.columns import Column, Table
from proteoscope.engine.spectra.tables import SPECTRA

__all__ = [
    "CLUSTERS",
    "CLUSTER_STORED",
    "CLUSTER_TABLES",
    "CONSENSUS",
    "EXPLAINED",
    "EXPLANATION_STORED",
    "EXPLANATION_TABLES",
    "MAP",
    "MEMBERS",
]

_MAXIMUM_CHARGE = 31
_CHARGE = Column(
    "charge",
    "z",
    "Charge of the precursor; negative for negative ions",
    "integer",
    4,
    type="int32",
    is_nullable=True,
    low=-_MAXIMUM_CHARGE,
    high=_MAXIMUM_CHARGE,
)
_MZ = Column("precursor_mz", "m/z", "Measured m/z of the precursor", "number", 10, 4, saved=".6f", is_nullable=True, low=-1e9, high=1e9)
_TIME = Column("retention_time", "RT", "Retention time", "minutes", 8, unit="s", saved=".3f", is_nullable=True, low=-1e12, high=1e12)
_FILE = Column("spectrum_file", "File", "File of the spectrum", width=24, is_shown=False)
_CLUSTER = Column("cluster", "Cluster", "Number of the cluster", "identifier", 8)
_N_MEMBERS = Column("n_members", "Spectra", "Number of spectra in the cluster", "integer", 7, low=0, high=1 << 40)

CLUSTERS = Table.from_columns(
    "clusters",
    "Clusters",
    (
        _CLUSTER,
        _N_MEMBERS,
        _MZ,
        _CHARGE,
        Column(
            "mean_similarity", "Similarity", "Mean cosine between the spectra and the consensus spectrum", "number", 9, 3, is_nullable=True
        ),
        Column(
            "least_similarity", "Minimum", "Minimum cosine between the spectra and the consensus spectrum", "number", 7, 3, is_nullable=True
        ),
        _TIME,
        Column("title", "Consensus spectrum", "Name of the member that represents the cluster", width=36),
        Column("consensus", meaning="Row of the cluster in the table of consensus spectra, from 0", kind="identifier", rows_of="consensus"),
        Column("label", "Label", "Most frequent label of the spectra, if labels were given", width=24, is_shown=False, is_nullable=True),
        Column(
            "label_share",
            "Label fraction",
            "Fraction of the spectra with any label that have the most frequent label",
            "percent",
            8,
            is_shown=False,
            is_nullable=True,
        ),
    ),
    shown="cluster n_members precursor_mz charge mean_similarity least_similarity retention_time title label label_share",
    links="cluster consensus",
)

MEMBERS = Table.from_columns(
    "members",
    "Spectra",
    (
        Column("spectrum", meaning="Row of the spectrum in the table of spectra, from 0", kind="identifier", rows_of="spectra"),
        _CLUSTER,
        Column("title", "Spectrum", "Name of the spectrum", width=24),
        _FILE,
        Column("spectrum_id", "Spectrum ID", "Name of the spectrum in its file", width=30, is_shown=False),
        _MZ,
        _CHARGE,
        _TIME,
        Column(
            "similarity_to_consensus",
            "Similarity",
            "Cosine between the spectrum and the consensus spectrum of the cluster",
            "number",
            9,
            3,
            saved=".4f",
            is_nullable=True,
        ),
        Column("is_consensus", "Consensus", "True for the spectrum that represents the cluster", "truth", 9),
        Column("n_members", "Spectra", "Number of spectra in the cluster", "integer", 7, is_shown=False, low=0, high=1 << 40),
    ),
    shown="cluster title precursor_mz charge similarity_to_consensus retention_time is_consensus n_members spectrum_id spectrum_file",
    links="spectrum",
    saved="spectrum_file spectrum_id title cluster precursor_mz charge similarity_to_consensus is_consensus",
)

CONSENSUS = Table.from_columns(
    "consensus",
    "Consensus spectra",
    (
        _CLUSTER,
        Column("precursor_mz", meaning="Precursor m/z of the spectrum that represents the cluster", kind="number", is_nullable=True),
        _CHARGE,
        Column("mz", meaning="m/z of the peaks of the consensus spectrum", kind="numbers", type="large_list<double>"),
        Column(
            "intensity",
            meaning="Intensities of the peaks of the consensus spectrum",
            kind="numbers",
            type="large_list<double>",
            as_long_as="mz",
        ),
    ),
)
"""Table of the consensus spectra of clusters of at least two spectra."""

CLUSTER_TABLES = (CLUSTERS, MEMBERS)
"""Shown tables, from clusters to spectra; their columns ``consensus`` and ``spectrum`` are row numbers of other tables."""
CLUSTER_STORED = (CONSENSUS, SPECTRA)

EXPLAINED = Table.from_columns(
    "explained",
    "Explained spectra",
    (
        Column("spectrum", meaning="Row of the spectrum in the identification's table of spectra, from 0", kind="identifier", low=0),
        _FILE,
        Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=30, is_shown=False),
        Column("scan", "Scan", "Number of the scan in its file", "identifier", 7, is_nullable=True),
        Column("peptide", "Peptide", "Peptide of the most similar identified spectrum, in ProForma", width=26),
        _CHARGE,
        Column(
            "similarity",
            "Similarity",
            "Cosine between the spectrum and the most similar identified spectrum",
            "number",
            9,
            3,
            saved=".4f",
            is_nullable=True,
        ),
        Column(
            "mass_difference",
            "Mass difference",
            "Measured mass minus the mass of the identified peptide. A difference beyond the precursor tolerance is probably a"
            " modification",
            "number",
            10,
            4,
            unit="Da",
            saved=".6f",
            is_nullable=True,
            low=-1e9,
            high=1e9,
        ),
        Column(
            "q_value",
            "q-value",
            "Minimum FDR at which the explanation is accepted",
            "probability",
            8,
            saved=".6f",
            is_nullable=True,
        ),
        Column("nearest_spectrum", "Identified spectrum", "Name of the most similar identified spectrum", width=30, is_nullable=True),
        Column(
            "nearest",
            meaning="Row of the most similar identified spectrum in the identification's table of spectra, from 0",
            kind="identifier",
            low=0,
        ),
        _MZ,
        _TIME,
        Column("kind", meaning="same: the mass of the identified peptide; modified: another mass", pattern="same|modified"),
    ),
    shown="scan peptide charge similarity q_value mass_difference precursor_mz retention_time nearest_spectrum spectrum_id spectrum_file",
    links="spectrum nearest kind",
    saved="spectrum_file spectrum_id peptide charge similarity mass_difference q_value nearest_spectrum",
)

MAP = Table.from_columns(
    "map",
    "Spectra of the run",
    (
        Column("spectrum", meaning="Row of the spectrum in the identification's table of spectra, from 0", kind="identifier", low=0),
        _TIME,
        _MZ,
        Column(
            "status",
            meaning="Status of the spectrum: 0 unexplained, 1 identified, 2 explained",
            kind="integer",
            type="uint8",
            low=0,
            high=2,
        ),
        Column(
            "peptide",
            meaning="Peptide identified in the spectrum, or in the most similar identified spectrum if the spectrum is explained",
            is_nullable=True,
        ),
        Column("scan", meaning="Number of the scan in its file", kind="identifier", is_nullable=True),
        Column("spectrum_file", meaning="File of the spectrum", is_nullable=True),
    ),
)

EXPLANATION_TABLES = (EXPLAINED,)
"""Table that is shown.

``spectrum`` and ``nearest`` are rows of the identification's table ``spectra``; ``kind`` is same or modified.
"""
EXPLANATION_STORED = (MAP,)
