"""Parameters of the clustering of spectra, and of the search that explains unidentified spectra."""

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
    """Settings of the vectors by which spectra are compared (`proteoscope.engine.spectra.vector_settings.VectorSettings`)."""

    bin_width: float = parameter(
        0.05,
        ge=0.001,
        le=10,
        title="Bin width",
        unit="Th",
        group=_VECTORS,
        help="Width of the m/z bins in which peaks are compared: 0.02 to 0.05 for high resolution, 0.3 to 0.5 for ion traps.",
    )
    bin_spread: float = parameter(
        0.0,
        ge=0,
        le=1,
        title="Weight of neighbouring bins",
        group=_VECTORS,
        advanced=True,
        help="Fraction of a peak's weight that is also added to each of the two neighbouring bins. 0.5 helps if the m/z of the"
        " same peak differs by about one bin between spectra.",
    )
    minimum_mz: float = parameter(
        50.0, ge=0, le=10_000, title="Minimum m/z", unit="Th", group=_VECTORS, advanced=True, help="Peaks with a lower m/z are not used."
    )
    maximum_mz: float = parameter(
        2000.0,
        ge=10,
        le=20_000,
        title="Maximum m/z",
        unit="Th",
        group=_VECTORS,
        advanced=True,
        help="Peaks at or above this m/z are not used.",
    )
    intensity_transform: Transform = parameter(
        "square-root",
        title="Intensity transform",
        group=_VECTORS,
        advanced=True,
        help="Transformation of peak intensities. square-root limits the influence of a few large peaks.",
    )
    peak_merging: Merging = parameter(
        "sum",
        title="Peak merging",
        group=_VECTORS,
        advanced=True,
        help="How peaks in the same bin are combined: sum, mean or maximum of their weights.",
    )
    precursor_removal: float = parameter(
        0.5,
        ge=0,
        le=20,
        title="Precursor removal distance",
        unit="Th",
        group=_VECTORS,
        advanced=True,
        help="Peaks within this m/z distance of the precursor are not used, because all compared spectra contain the precursor. 0"
        " keeps all peaks.",
    )
    rare_peak_weight: float = parameter(
        0.0,
        ge=0,
        le=2,
        title="Rare peak weight",
        group=_VECTORS,
        advanced=True,
        help="Exponent of the inverse document frequency. Higher values give more weight to peaks that occur in few spectra; 0"
        " weights all peaks equally.",
    )
    peaks_per_window: int = parameter(
        0,
        ge=0,
        le=1000,
        title="Peaks per 100 Th",
        group=_VECTORS,
        advanced=True,
        help="Maximum number of peaks used per 100 Th, the most intense first. 0: no limit except the maximum number of peaks per"
        " spectrum.",
    )
    minimum_precursor_mz: float = parameter(
        0.0,
        ge=0,
        le=100_000,
        title="Minimum precursor m/z",
        unit="Th",
        group=_PRECURSOR,
        advanced=True,
        help="Spectra with a lower precursor m/z are not clustered.",
    )
    maximum_precursor_mz: float = parameter(
        100_000.0,
        ge=0,
        le=100_000,
        title="Maximum precursor m/z",
        unit="Th",
        group=_PRECURSOR,
        advanced=True,
        help="Spectra with a higher precursor m/z are not clustered.",
    )
    minimum_charge: int = parameter(
        0,
        ge=0,
        le=31,
        title="Minimum charge",
        group=_PRECURSOR,
        advanced=True,
        help="Spectra with a lower charge are not clustered; 0 includes spectra of unknown charge.",
    )
    maximum_charge: int = parameter(
        31, ge=1, le=31, title="Maximum charge", group=_PRECURSOR, advanced=True, help="Spectra with a higher charge are not clustered."
    )
    maximum_peaks: int = parameter(
        200,
        ge=1,
        le=100_000,
        title="Maximum number of peaks",
        group=_VECTORS,
        advanced=True,
        help="Maximum number of peaks used per spectrum, the most intense first.",
    )
    minimum_peaks: int = parameter(
        3, ge=1, le=1000, title="Minimum number of peaks", group=_VECTORS, advanced=True, help="Spectra with fewer peaks are not clustered."
    )

    @field_validator("precursor_tolerance", check_fields=False)
    @classmethod
    def _check_tolerance_width(cls, tolerance: Tolerance) -> Tolerance:
        if tolerance.value > _WIDEST_PRECURSOR[tolerance.unit]:
            raise ValueError(f"a tolerance of at most {_WIDEST_PRECURSOR[tolerance.unit]:,} {tolerance.unit} is expected")
        return tolerance

    @model_validator(mode="after")
    def _check_ranges_and_bins(self) -> Self:
        for what in ("mz", "precursor_mz"):
            if getattr(self, f"minimum_{what}") >= getattr(self, f"maximum_{what}"):
                raise ValueError(f"minimum_{what} must be below maximum_{what}")
        if self.minimum_charge > self.maximum_charge:
            raise ValueError("minimum_charge must not be above maximum_charge")
        if (self.maximum_mz - self.minimum_mz) / self.bin_width > _MAXIMUM_BINS:
            raise ValueError(f"bin_width = {self.bin_width:g} Th gives more than {_MAXIMUM_BINS:,} bins; make it wider")
        return self


class ClusteringParameters(VectorParameters):
    """Parameters that determine the clusters, together with the spectra."""

    method: Literal["hierarchical", "dbscan", "k-means"] = parameter(
        "hierarchical",
        title="Method",
        group=_CLUSTERS,
        help="hierarchical: spectra and clusters are joined up to a maximum distance. dbscan: dense groups of spectra form"
        " clusters. k-means: spectra are divided into a given number of clusters.",
    )
    maximum_distance: float = parameter(
        0.3,
        ge=0,
        le=0.99,
        title="Maximum distance",
        group=_CLUSTERS,
        help="Maximum distance (1 minus the cosine) of joined clusters (hierarchical) or neighbouring spectra (DBSCAN). Higher"
        " values give fewer and larger clusters.",
    )
    linkage: Literal["average", "complete"] = parameter(
        "average",
        title="Linkage",
        group=_CLUSTERS,
        help="Distance of two clusters in hierarchical clustering. average: mean of all distances between their spectra;"
        " complete: largest distance.",
    )
    minimum_neighbours: int = parameter(
        2,
        ge=1,
        le=1000,
        title="Minimum neighbours of a core spectrum",
        group=_CLUSTERS,
        advanced=True,
        help="Number of spectra within the maximum distance, including the spectrum itself, that make it the core of a cluster"
        " (DBSCAN). Higher values leave more spectra unclustered.",
    )
    precursor_tolerance: Tolerance = parameter(
        Tolerance(20.0, "ppm"),
        title="Precursor tolerance",
        group=_PRECURSOR,
        editor="tolerance",
        help="Maximum difference between the precursor m/z values of compared spectra, such as 20 ppm or 0.05 Da.",
    )
    clusters: int = parameter(
        0,
        ge=0,
        le=10_000_000,
        title="Number of clusters",
        zero="automatic",
        group=_MEANS,
        help="Number of clusters (k-means). 0 (automatic) makes one cluster per ten spectra.",
    )
    seeding: Literal["first", "random", "k-means++"] = parameter(
        "random",
        title="Initial centroids",
        group=_MEANS,
        advanced=True,
        help="Initial centroids of k-means. first: the first spectra; random: random spectra; k-means++: random spectra that are"
        " far apart, which takes longest.",
    )
    random_seed: int = parameter(
        1,
        ge=0,
        le=2**31,
        title="Random seed",
        group=_MEANS,
        advanced=True,
        help="Seed of the random numbers that select the initial centroids. The same seed gives the same clusters.",
    )
    maximum_iterations: int = parameter(
        100,
        ge=1,
        le=10_000,
        title="Maximum number of iterations",
        group=_MEANS,
        advanced=True,
        help="k-means stops after this number of iterations, even if it has not converged.",
    )
    convergence_tolerance: float = parameter(
        1e-4,
        ge=0,
        le=1,
        title="k-means convergence tolerance",
        group=_MEANS,
        advanced=True,
        help="k-means stops when the sum of the squared movements of all centroids is below this fraction of the variance of the data.",
    )
    consensus_spectrum: Literal["most-similar", "best", "mean"] = parameter(
        "most-similar",
        title="Consensus spectrum",
        group=_CONSENSUS,
        help="Spectrum that represents a cluster: the member most similar to the other members (most-similar), the most intense"
        " member (best), or the mean of all members (mean).",
    )

    @property
    def least_similarity(self) -> float:
        """Minimum cosine of spectra in one cluster."""
        return 1.0 - self.maximum_distance


class ExplanationParameters(VectorParameters):
    """Parameters that determine which unidentified spectra are explained, together with an identification."""

    run: str = parameter(
        "",
        title="Identification run",
        group=_EXPLANATION,
        editor="run",
        help="Identification run whose identified spectra are compared with the unidentified spectra. Empty: the newest run.",
    )
    minimum_similarity: float = parameter(
        0.6,
        ge=0,
        le=1,
        title="Minimum similarity",
        group=_EXPLANATION,
        help="Minimum cosine between an unidentified and an identified spectrum. Higher values give fewer and more certain explanations.",
    )
    precursor_tolerance: Tolerance = parameter(
        Tolerance(10.0, "ppm"),
        title="Precursor tolerance",
        group=_PRECURSOR,
        editor="tolerance",
        help="Maximum difference between the precursor m/z values of an unidentified spectrum and a peptide, such as 10 ppm or 0.05 Da.",
    )
    isotope_errors: tuple[int, ...] = parameter(
        (0, 1, 2),
        title="Isotope errors",
        group=_PRECURSOR,
        help="Numbers of the isotope peaks (0 is the monoisotopic peak) that the instrument may have selected as the precursor,"
        " such as 0, 1, 2.",
    )
    mass_difference: float = parameter(
        0.0,
        ge=0,
        le=1000,
        title="Maximum mass difference",
        unit="Da",
        group=_PRECURSOR,
        help="Maximum difference between the masses of an unidentified spectrum and a peptide. A difference indicates a modified"
        " form of the peptide; 0 compares only equal masses.",
    )
    precursor_weight: float = parameter(
        0.1,
        ge=0,
        le=1,
        title="Mass error penalty",
        group=_PRECURSOR,
        advanced=True,
        help="Amount subtracted from the cosine if the mass error equals the precursor tolerance; smaller errors subtract less."
        " Higher values favour peptides of nearer mass.",
    )
    fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="False discovery rate",
        group=_EXPLANATION,
        help="Maximum q-value of the explanations (identified spectra assigned to unidentified ones) that are counted and shown.",
    )
    peptide_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="PSM FDR",
        group=_EXPLANATION,
        advanced=True,
        help="Maximum q-value of PSMs in the identification run. Spectra with a higher q-value count as unidentified.",
    )
    random_seed: int = parameter(
        1,
        ge=0,
        le=2**31,
        title="Random seed",
        group=_EXPLANATION,
        advanced=True,
        help="Seed of the random numbers that shuffle peptides. Shuffled peptides serve to estimate the number of false explanations.",
    )

    @field_validator("isotope_errors")
    @classmethod
    def _check_isotope_errors(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or len(value) > 10 or not all(-5 <= error <= 10 for error in value) or len(set(value)) < len(value):
            raise ValueError("expected up to ten different whole numbers from -5 to 10, as 0, 1, 2")
        return value
