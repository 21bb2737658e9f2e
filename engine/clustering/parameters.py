"""Parameters of grouping spectra, and of explaining the unidentified: the one place where each exists."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import field_validator, model_validator

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.spectra.vector_settings import Merging, Transform

__all__ = ["ClusteringParameters", "ExplanationParameters", "VectorParameters"]

_CLUSTERS, _MEANS, _PRECURSOR, _VECTORS, _CONSENSUS, _EXPLANATION = (
    "Clusters",
    "k-means",
    "Precursor",
    "Vectors",
    "Consensus",
    "Explanation",
)
_WIDEST_PRECURSOR = {"ppm": 1_000_000, "Da": 10_000}
_MAXIMUM_BINS = 1 << 20


class VectorParameters(SearchParameters):
    """Settings that decide the vectors that spectra are compared by (`proteoscope.engine.spectra.vector_settings.VectorSettings`)."""

    bin_width: float = parameter(
        0.05,
        ge=0.001,
        le=10,
        title="Bin width",
        unit="Th",
        group=_VECTORS,
        help="Peaks in the same bin of m/z are compared: 0.02 to 0.05 for high resolution, 0.3 to 0.5 for ion traps.",
    )
    bin_spread: float = parameter(
        0.0,
        ge=0,
        le=1,
        title="Share of neighbouring bins",
        group=_VECTORS,
        advanced=True,
        help="Fraction of a peak's weight that the neighbouring bins get; 0.5 helps if peaks scatter by about a bin.",
    )
    minimum_mz: float = parameter(
        50.0, ge=0, le=10_000, title="Minimum m/z", unit="Th", group=_VECTORS, advanced=True, help="Peaks below are not used."
    )
    maximum_mz: float = parameter(
        2000.0, ge=10, le=20_000, title="Maximum m/z", unit="Th", group=_VECTORS, advanced=True, help="Peaks from here on are not used."
    )
    intensity_transform: Transform = parameter(
        "square-root",
        title="Intensities",
        group=_VECTORS,
        advanced=True,
        help="How intensities are weighted: the root keeps a few large peaks from deciding alone.",
    )
    peak_merging: Merging = parameter(
        "sum",
        title="Peaks in one bin",
        group=_VECTORS,
        advanced=True,
        help="What several peaks in one bin count: their sum, mean or largest.",
    )
    precursor_removal: float = parameter(
        0.5,
        ge=0,
        le=20,
        title="Precursor removal",
        unit="Th",
        group=_VECTORS,
        advanced=True,
        help="Peaks so near to the precursor are not used: all spectra that are compared share it. 0 keeps them.",
    )
    rarity: float = parameter(
        0.0,
        ge=0,
        le=2,
        title="Weight of rare peaks",
        group=_VECTORS,
        advanced=True,
        help="How much more peaks weigh that few spectra have; 0: all the same, 1: the logarithm of how many spectra there are for each.",
    )
    peaks_per_window: int = parameter(
        0,
        ge=0,
        le=1000,
        title="Peaks used in 100 Th",
        group=_VECTORS,
        advanced=True,
        help="The most intense peaks of each 100 Th are used; 0: of the whole spectrum alone.",
    )
    minimum_precursor_mz: float = parameter(
        0.0,
        ge=0,
        le=100_000,
        title="Minimum precursor m/z",
        unit="Th",
        group=_PRECURSOR,
        advanced=True,
        help="Spectra of lighter ones stay alone.",
    )
    maximum_precursor_mz: float = parameter(
        100_000.0,
        ge=0,
        le=100_000,
        title="Maximum precursor m/z",
        unit="Th",
        group=_PRECURSOR,
        advanced=True,
        help="Spectra of heavier ones stay alone.",
    )
    minimum_charge: int = parameter(
        0,
        ge=0,
        le=31,
        title="Minimum charge",
        group=_PRECURSOR,
        advanced=True,
        help="Spectra with fewer charges stay alone; 0 also takes those whose charge the file does not say.",
    )
    maximum_charge: int = parameter(
        31, ge=1, le=31, title="Maximum charge", group=_PRECURSOR, advanced=True, help="Spectra with more charges stay alone."
    )
    maximum_peaks: int = parameter(
        200,
        ge=1,
        le=100_000,
        title="Maximum number of peaks",
        group=_VECTORS,
        advanced=True,
        help="The most intense peaks of a spectrum are used.",
    )
    minimum_peaks: int = parameter(
        3, ge=1, le=1000, title="Minimum number of peaks", group=_VECTORS, advanced=True, help="Spectra with fewer peaks stay alone."
    )

    @field_validator("precursor_tolerance", check_fields=False)
    @classmethod
    def _is_tolerance(cls, tolerance: Tolerance) -> Tolerance:
        if tolerance.value > _WIDEST_PRECURSOR[tolerance.unit]:
            raise ValueError(f"a tolerance of at most {_WIDEST_PRECURSOR[tolerance.unit]:,} {tolerance.unit} is expected")
        return tolerance

    @model_validator(mode="after")
    def _has_bins(self) -> Self:
        for what in ("mz", "precursor_mz"):
            if getattr(self, f"minimum_{what}") >= getattr(self, f"maximum_{what}"):
                raise ValueError(f"minimum_{what} must be below maximum_{what}")
        if self.minimum_charge > self.maximum_charge:
            raise ValueError("minimum_charge must not be above maximum_charge")
        if (self.maximum_mz - self.minimum_mz) / self.bin_width > _MAXIMUM_BINS:
            raise ValueError(f"bin_width = {self.bin_width:g} Th gives more than {_MAXIMUM_BINS:,} bins; make it wider")
        return self


class ClusteringParameters(VectorParameters):
    """Parameters that, with the spectra, determine the clusters."""

    method: Literal["hierarchical", "dbscan", "k-means"] = parameter(
        "hierarchical",
        title="Method",
        group=_CLUSTERS,
        help="Hierarchical: clusters up to a distance. DBSCAN: chains of neighbours. k-means: a given number of clusters.",
    )
    maximum_distance: float = parameter(
        0.3,
        ge=0,
        le=0.99,
        title="Maximum distance",
        group=_CLUSTERS,
        help="1 less the cosine of two spectra's vectors: up to it clusters are joined, and spectra are neighbours.",
    )
    linkage: Literal["average", "complete"] = parameter(
        "average",
        title="Linkage",
        group=_CLUSTERS,
        help="Hierarchical: whether the mean or the largest distance between two clusters counts.",
    )
    minimum_neighbours: int = parameter(
        2,
        ge=1,
        le=1000,
        title="Neighbours of a core",
        group=_CLUSTERS,
        advanced=True,
        help="DBSCAN: spectra within the distance, itself included, that make a spectrum the core of a cluster.",
    )
    precursor_tolerance: Tolerance = parameter(
        Tolerance(20.0, "ppm"),
        title="Precursor tolerance",
        group=_PRECURSOR,
        editor="tolerance",
        help="Only spectra whose precursors agree so far are compared, as 20 ppm or 0.05 Da.",
    )
    clusters: int = parameter(
        0,
        ge=0,
        le=10_000_000,
        title="Number of clusters",
        zero="automatic",
        group=_MEANS,
        help="k-means: how many; automatic (0): one for each ten spectra.",
    )
    seeding: Literal["first", "random", "k-means++"] = parameter(
        "random",
        title="First centroids",
        group=_MEANS,
        advanced=True,
        help="k-means: the first spectra, random ones, or random ones far from each other, which takes longest.",
    )
    seed: int = parameter(
        1, ge=0, le=2**31, title="Random seed", group=_MEANS, advanced=True, help="The same seed gives the same centroids."
    )
    rounds: int = parameter(
        100,
        ge=1,
        le=10_000,
        title="Maximum number of iterations",
        group=_MEANS,
        advanced=True,
        help="k-means ends after this number of rounds.",
    )
    movement: float = parameter(
        1e-4,
        ge=0,
        le=1,
        title="Convergence tolerance",
        group=_MEANS,
        advanced=True,
        help="k-means ends when centroids move by less than this part of the variance, all squared and summed.",
    )
    consensus_spectrum: Literal["most-similar", "best", "mean"] = parameter(
        "most-similar",
        title="Consensus spectrum",
        group=_CONSENSUS,
        help="Of each cluster: the member most similar to the others, the most intense one, or the mean of all.",
    )

    @property
    def least_similarity(self) -> float:
        """Cosine from which on spectra belong together."""
        return 1.0 - self.maximum_distance


class ExplanationParameters(VectorParameters):
    """Parameters that, with a run, determine which unidentified spectra are explained."""

    run: str = parameter(
        "",
        title="Run",
        group=_EXPLANATION,
        editor="run",
        help="The identification whose spectra are explained; the newest where it is empty.",
    )
    minimum_similarity: float = parameter(
        0.6,
        ge=0,
        le=1,
        title="Minimum similarity",
        group=_EXPLANATION,
        help="Cosine of a spectrum and an identified one from which on it is reported.",
    )
    precursor_tolerance: Tolerance = parameter(
        Tolerance(10.0, "ppm"),
        title="Precursor tolerance",
        group=_PRECURSOR,
        editor="tolerance",
        help="Error of the precursor mass, as 10 ppm or 0.05 Da.",
    )
    isotope_errors: tuple[int, ...] = parameter(
        (0, 1, 2),
        title="Isotope errors",
        group=_PRECURSOR,
        help="Isotope peaks that the instrument may have selected instead of the monoisotopic one, as 0, 1, 2.",
    )
    mass_difference: float = parameter(
        0.0,
        ge=0,
        le=1000,
        title="Maximum mass difference",
        unit="Da",
        group=_PRECURSOR,
        help="Spectra so much lighter or heavier than a peptide may join it, as probably modified; 0: only those of the same mass.",
    )
    precursor_weight: float = parameter(
        0.1,
        ge=0,
        le=1,
        title="Weight of the precursor",
        group=_PRECURSOR,
        advanced=True,
        help="Of two peptides as similar, the one of nearer mass is taken: a cosine lower by this at the end of the tolerance.",
    )
    fdr: float = parameter(
        0.01, gt=0, le=1, title="False discovery rate", group=_EXPLANATION, help="Explanations up to this q-value are counted and shown."
    )
    peptide_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Identified up to",
        group=_EXPLANATION,
        advanced=True,
        help="PSMs of the run up to this q-value are identified spectra.",
    )
    seed: int = parameter(
        1,
        ge=0,
        le=2**31,
        title="Random seed",
        group=_EXPLANATION,
        advanced=True,
        help="Of the shuffled peptides that count false explanations.",
    )

    @field_validator("isotope_errors")
    @classmethod
    def _are_few(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or len(value) > 10 or not all(-5 <= error <= 10 for error in value) or len(set(value)) < len(value):
            raise ValueError("expected up to ten different whole numbers from -5 to 10, as 0, 1, 2")
        return value
