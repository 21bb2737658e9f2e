"""Summaries and methods paragraphs of clustering, and of explaining unidentified spectra."""

from dataclasses import dataclass

from proteoscope.engine.clustering.quality import Quality
from proteoscope.engine.results.counts import Count, Methods, RunFacts, counted, listed
from proteoscope.engine.summary import Summary

__all__ = ["ClusteringSummary", "ExplanationSummary", "clustering_methods", "explanation_methods"]


@dataclass(frozen=True, kw_only=True)
class ClusteringSummary(Summary):
    """Numbers of spectra and clusters of a clustering; clusters have at least two spectra.

    Attributes
    ----------
    n_spectra, n_clusters : int
        Number of spectra and of clusters.
    n_clustered : int
        Number of spectra in clusters.
    method : str
        Method of clustering.
    quality : Quality or None
        Agreement of the clusters with labels; None without labels.
    """

    n_spectra: int
    n_clusters: int
    n_clustered: int
    method: str
    quality: Quality | None = None

    def counts(self) -> list[Count]:
        """Return the numbers of clusters and of spectra in them."""
        return [
            Count(self.n_clusters, "cluster", "clusters"),
            Count(self.n_clustered, "spectrum in them", "spectra in them", total=self.n_spectra),
        ]

    def lines(self) -> list[str]:
        """Return lines about the clusters and their agreement with labels."""
        fraction = self.n_clustered / max(1, self.n_spectra) * 100
        clusters, spectra = counted(self.n_clusters, "cluster holds", "clusters hold"), counted(self.n_spectra, "spectrum", "spectra")
        lines = [f"{clusters} {self.n_clustered:,} of {spectra} ({fraction:.1f} %); the other spectra are unclustered"]
        if self.quality is not None:
            result = self.quality
            lines.append(
                f"Of {result.labelled:,} labelled spectra, {result.clustered * 100:.1f} % are clustered; {result.incorrect * 100:.2f} % of"
                f" these differ from their cluster's label; completeness {result.completeness:.3f}, homogeneity {result.homogeneity:.3f}"
            )
        return lines


@dataclass(frozen=True, kw_only=True)
class ExplanationSummary(Summary):
    """Summary of a search that explains unidentified spectra, by peptides of the same mass and of other masses.

    Attributes
    ----------
    source_run : str
        Id of the identification.
    decoys : int
        Number of accepted decoys.
    false_share_low, false_share_high : float
        Confidence interval of the false fraction (`proteoscope.engine.statistics.target_decoy.false_share_interval`).
    targets_at_5_percent : int
        Number of spectra explained at a false discovery rate of 5 %.
    """

    source_run: str
    n_spectra: int
    n_identified: int
    n_unidentified: int
    n_explained: int
    n_same: int
    n_modified: int
    n_peptides: int
    fdr: float
    decoys: int = 0
    false_share_low: float = 0.0
    false_share_high: float = 1.0
    targets_at_5_percent: int = 0

    def counts(self) -> list[Count]:
        """Return the number of explained spectra."""
        names = "decoys", "false_share_low", "false_share_high", "targets_at_5_percent"
        counts = {name: getattr(self, name) for name in names}
        return [Count.from_acceptance(self.n_explained, "explained spectrum", "explained spectra", counts, self.fdr, self.n_unidentified)]

    def lines(self) -> list[str]:
        """Return lines about the numbers of identified and explained spectra."""
        certainty = self.counts()[0].certainty
        return [
            f"{self.n_identified:,} of {counted(self.n_spectra, 'spectrum', 'spectra')} are identified (run {self.source_run})",
            f"At {self.fdr * 100:.3g} % FDR {self.n_explained:,} of the {self.n_unidentified:,} unidentified spectra resemble one of "
            f"{counted(self.n_peptides, 'peptide')}: {self.n_same:,} with the same mass, "
            f"{self.n_modified:,} with another mass (probably modified)",
            *([f"  {certainty.text}"] if certainty is not None else []),
        ]


_MURTAGH = "Murtagh F. A survey of recent advances in hierarchical clustering. Comput J 1983, 26:354."
_ESTER = "Ester M et al. A density-based algorithm for discovering clusters. KDD 1996, 226."
_LLOYD = "Lloyd SP. Least squares quantization in PCM. IEEE Trans Inf Theory 1982, 28:129."
_WAYS = {
    "hierarchical": ("hierarchical clustering ({linkage} linkage)", _MURTAGH),
    "dbscan": ("DBSCAN with at least {minimum_neighbours} neighbours of a core spectrum", _ESTER),
    "k-means": ("k-means (initial centroids: {seeding}; at most {maximum_iterations} iterations)", _LLOYD),
}
_SHUFFLED = "Lam H, Deutsch EW, Aebersold R. Artificial decoy spectral libraries. J Proteome Res 2010, 9:605."


def _vectors(facts: RunFacts) -> str:
    return (
        f"Spectra were converted to unit vectors with bins of {facts.text('bin_width')} Th from {facts.text('minimum_mz')} to "
        f"{facts.text('maximum_mz')} Th (intensities: {facts.text('intensity_transform')}; peaks within "
        f"{facts.text('precursor_removal')} Th of the precursor left out; at most {facts.text('maximum_peaks')} peaks)."
    )


def clustering_methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of a clustering."""
    n_spectra, n_clusters, n_clustered = (facts.count(name) for name in ("spectra", "clusters", "clustered"))
    way, source = _WAYS.get(facts.text("method"), (facts.text("method"), ""))
    named = way.format(**{name: facts.text(name) for name in ("linkage", "minimum_neighbours", "seeding", "maximum_iterations")})
    size = "" if n_spectra is None else f" ({counted(n_spectra, 'spectrum', 'spectra')})"
    bound = "" if facts.text("method") == "k-means" else f", up to a distance (1 minus the cosine) of {facts.text('maximum_distance')}"
    result = (
        ""
        if n_clusters is None or n_clustered is None
        else f"{counted(n_clustered, 'spectrum', 'spectra')} joined {counted(n_clusters, 'cluster')} of at least two spectra."
    )
    sentences = [
        f"The MS/MS spectra of {listed(facts.names('spectra'))}{size} were grouped by {named}{bound}, among precursors of the "
        f"same charge within {facts.text('precursor_tolerance')}.",
        _vectors(facts),
        f"A cluster is represented by its {facts.text('consensus_spectrum')} spectrum.",
        result,
    ]
    return Methods(sentences, [source] if source else [])


def explanation_methods(facts: RunFacts) -> Methods:
    """Return the methods paragraph of an explanation of unidentified spectra."""
    source, n_unidentified, n_explained = facts.record.get("source_run"), facts.count("unidentified"), facts.count("explained")
    left = counted(n_unidentified, "spectrum", "spectra") if n_unidentified is not None else "The spectra"
    whose = source if isinstance(source, str) and source else "an identification"
    difference = facts.parameters.get("mass_difference")
    modified = isinstance(difference, int | float) and difference > 0
    sentences = [
        f"{left} that {whose} left unidentified were compared with the identified spectra (peptides accepted at "
        f"{facts.text('peptide_fdr')} FDR) of precursors within {facts.text('precursor_tolerance')}, by the cosine.",
        _vectors(facts),
        f"Precursors lighter or heavier by up to {difference:g} Da were allowed for modified peptides." if modified else "",
        f"For explanations with a cosine of at least {facts.text('minimum_similarity')}, the FDR was estimated with spectra of shuffled "
        f"peptides, one for each identified spectrum. Explanations were accepted at "
        f"{facts.text('fdr')} FDR" + ("." if n_explained is None else f": {counted(n_explained, 'spectrum', 'spectra')}."),
    ]
    return Methods(sentences, [_SHUFFLED])
