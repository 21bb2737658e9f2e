"""Summaries of clustering, and of explaining unidentified spectra."""

from dataclasses import dataclass

from proteoscope.engine.clustering.quality import Quality
from proteoscope.engine.results.counts import Count, counted
from proteoscope.engine.summary import Summary

__all__ = ["ClusteringSummary", "ExplanationSummary"]


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
        lines = [f"{clusters} {self.n_clustered:,} of {spectra} ({fraction:.1f} %); the others are alone"]
        if self.quality is not None:
            result = self.quality
            lines.append(
                f"Of {result.labelled:,} labelled spectra {result.clustered * 100:.1f} % are clustered, {result.incorrect * 100:.2f} % of"
                f" these with other labels; completeness {result.completeness:.3f}, homogeneity {result.homogeneity:.3f}"
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
            f"At {self.fdr * 100:.3g} % FDR {self.n_explained:,} of the {self.n_unidentified:,} others resemble one of "
            f"{counted(self.n_peptides, 'peptide')}: {self.n_same:,} of the same mass, {self.n_modified:,} of another (probably modified)",
            *([f"  {certainty.text}"] if certainty is not None else []),
        ]
