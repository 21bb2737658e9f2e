"""Parameters of the search of spectral libraries."""

from typing import Literal

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.matches import parameters as shared
from proteoscope.engine.matches.parameters import PRECURSOR, SPECTRA, STATISTICS, SpectrumSearchParameters
from proteoscope.engine.parameters import parameter
from proteoscope.kernels.library_layouts import MOST_PEAKS

__all__ = ["LibrarySearchParameters"]

_SIMILARITY = "Similarity"
_NARROW = 3.0  # dalton: a wider precursor tolerance is meant to find other masses, not to allow for errors
_USUAL_MASS = 1000.0


class LibrarySearchParameters(SpectrumSearchParameters):
    """Parameters that determine the result of a library search, together with spectra and libraries."""

    precursor_tolerance: Tolerance = parameter(
        Tolerance(10.0, "ppm"),
        title="Precursor tolerance",
        group=PRECURSOR,
        editor="tolerance",
        help="Maximum difference between the precursor masses of a spectrum and a library spectrum. Above 3 Da, such as 200 Da,"
        " the search also finds modified peptides.",
    )
    same_mass: Tolerance = parameter(
        Tolerance(10.0, "ppm"),
        title="Tolerance for the same mass",
        group=PRECURSOR,
        editor="tolerance",
        advanced=True,
        help="If the precursor tolerance is above 3 Da: library spectra within this tolerance count as having the same mass, and"
        " the FDR of their matches is estimated separately.",
    )
    isotope_errors: tuple[int, ...] = parameter(
        (0,),
        title="Isotope errors",
        group=PRECURSOR,
        help="Numbers of the isotope peaks (0 is the monoisotopic peak) that the instrument may have selected as the precursor,"
        " such as 0, 1, 2.",
    )
    fragment_tolerance: Tolerance = shared.FRAGMENT_TOLERANCE
    ion_series: str = shared.ION_SERIES
    maximum_fragment_charge: int = shared.MAXIMUM_FRAGMENT_CHARGE
    similarity: Literal["entropy", "cosine"] = parameter(
        "entropy",
        title="Similarity",
        group=_SIMILARITY,
        help="Similarity measure of two spectra. entropy: spectral entropy similarity, which gives small peaks more weight;"
        " cosine: cosine of the intensities.",
    )
    intensity_power: float = parameter(
        0.5,
        ge=0.1,
        le=2,
        title="Intensity power",
        group=_SIMILARITY,
        advanced=True,
        help="Exponent of intensities before the cosine is computed. Lower values give small peaks more weight. The spectral"
        " entropy ignores it.",
    )
    minimum_matched_peaks: int = parameter(
        3,
        ge=1,
        le=50,
        title="Minimum number of matched peaks",
        group=_SIMILARITY,
        help="Library spectra with fewer matched peaks are not reported.",
    )
    minimum_similarity: float = parameter(
        0.2,
        ge=0,
        le=1,
        title="Minimum similarity",
        group=_SIMILARITY,
        help="Matches with a lower similarity are not reported.",
    )
    maximum_peaks: int = parameter(
        100,
        ge=5,
        le=MOST_PEAKS,
        title="Maximum number of peaks",
        group=SPECTRA,
        advanced=True,
        help="Maximum number of peaks compared per spectrum, the most intense first.",
    )
    noise_threshold: float = parameter(
        0.01,
        ge=0,
        le=0.5,
        title="Noise threshold",
        group=SPECTRA,
        advanced=True,
        help="Peaks with less than this fraction of the intensity of the highest peak are not used.",
    )
    minimum_peaks: int = parameter(
        3, ge=1, le=100, title="Minimum number of peaks", group=SPECTRA, advanced=True, help="Spectra with fewer peaks are not searched."
    )
    minimum_fragment_mz: float = parameter(
        0.0,
        ge=0,
        le=1000,
        title="Minimum fragment m/z",
        unit="Th",
        group=SPECTRA,
        advanced=True,
        help="Peaks with a lower m/z are not used.",
    )
    precursor_removal: float = shared.PRECURSOR_REMOVAL
    minimum_charge: int = parameter(
        1,
        ge=1,
        le=10,
        title="Minimum charge tried",
        group=PRECURSOR,
        advanced=True,
        help="Lowest charge tried for spectra without a charge in the file. Charges that the library does not contain are never tried.",
    )
    maximum_charge: int = parameter(
        4,
        ge=1,
        le=10,
        title="Maximum charge tried",
        group=PRECURSOR,
        advanced=True,
        help="Highest charge tried for spectra without a charge in the file. Charges that the library does not contain are never tried.",
    )
    enzyme: str = shared.ENZYME
    decoys: Literal["automatic", "shuffle", "existing", "none"] = parameter(
        "automatic",
        title="Decoys",
        group=STATISTICS,
        help="automatic: use the library's decoys; if it has none, generate spectra of shuffled peptides. Small molecules need"
        " decoys in the library.",
    )
    decoys_per_peptide: int = parameter(
        0,
        ge=0,
        le=40,
        title="Decoys per peptide",
        zero="automatic",
        group=STATISTICS,
        advanced=True,
        help="Number of shuffled decoys per peptide; 0 (automatic) chooses up to 40 for the smallest libraries, 10 for 50 to"
        " 2,000 peptides, and 1 from 20,000 peptides. More decoys allow a lower FDR in small libraries.",
    )
    fdr: float = shared.FDR
    plus_one: bool = shared.PLUS_ONE
    random_seed: int = parameter(
        1,
        ge=0,
        le=2**31,
        title="Random seed",
        group=STATISTICS,
        advanced=True,
        help="Seed of the random numbers that shuffle the decoy peptides.",
    )

    @property
    def is_open(self) -> bool:
        """True if library spectra of other masses are searched too."""
        return bool(self.precursor_tolerance.width(_USUAL_MASS) > _NARROW)

    @property
    def nearest_tolerance(self) -> Tolerance:
        """Tolerance within which two masses count as the same."""
        return self.same_mass if self.is_open else self.precursor_tolerance
