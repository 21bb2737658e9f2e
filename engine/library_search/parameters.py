"""Parameters of the search of spectral libraries."""

from __future__ import annotations

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
    """Parameters that, with spectra and libraries, determine the result of a library search."""

    precursor_tolerance: Tolerance = parameter(
        Tolerance(10.0, "ppm"),
        title="Precursor tolerance",
        group=PRECURSOR,
        editor="tolerance",
        help="How far the mass of a reference may lie from the spectrum's: 10 ppm; wider than 3 Da, as 200 Da, finds modified ones too.",
    )
    same_mass: Tolerance = parameter(
        Tolerance(10.0, "ppm"),
        title="Same mass within",
        group=PRECURSOR,
        editor="tolerance",
        advanced=True,
        help="With a wide precursor tolerance: references within this tolerance have the same mass and separate error rates.",
    )
    isotope_errors: tuple[int, ...] = parameter(
        (0,),
        title="Isotope errors",
        group=PRECURSOR,
        help="Isotope peaks that the instrument may have selected instead of the monoisotopic one, as 0, 1, 2.",
    )
    fragment_tolerance: Tolerance = shared.FRAGMENT_TOLERANCE
    ion_series: str = shared.ION_SERIES
    maximum_fragment_charge: int = shared.MAXIMUM_FRAGMENT_CHARGE
    similarity: Literal["entropy", "cosine"] = parameter(
        "entropy",
        title="Similarity",
        group=_SIMILARITY,
        help="Of two spectra: by the entropy of their peaks, which weighs small ones well, or by their cosine.",
    )
    intensity_power: float = parameter(
        0.5,
        ge=0.1,
        le=2,
        title="Power of intensities",
        group=_SIMILARITY,
        advanced=True,
        help="Intensities are raised to this power before cosines are computed; entropies have weights of their own.",
    )
    minimum_matched_peaks: int = parameter(
        3,
        ge=1,
        le=50,
        title="Minimum number of matched peaks",
        group=_SIMILARITY,
        help="References with fewer peaks in common with a spectrum are not reported.",
    )
    minimum_similarity: float = parameter(
        0.2,
        ge=0,
        le=1,
        title="Minimum similarity",
        group=_SIMILARITY,
        help="Matches less similar than this are not reported.",
    )
    maximum_peaks: int = parameter(
        100,
        ge=5,
        le=MOST_PEAKS,
        title="Maximum number of peaks",
        group=SPECTRA,
        advanced=True,
        help="Number of most intense peaks of a spectrum that are compared.",
    )
    noise: float = parameter(
        0.01, ge=0, le=0.5, title="Noise", group=SPECTRA, advanced=True, help="Peaks below this part of the highest one are left out."
    )
    minimum_peaks: int = parameter(
        3, ge=1, le=100, title="Minimum number of peaks", group=SPECTRA, advanced=True, help="Spectra with fewer peaks are not searched."
    )
    minimum_fragment_mz: float = parameter(
        0.0, ge=0, le=1000, title="Minimum fragment m/z", unit="Th", group=SPECTRA, advanced=True, help="Peaks below are not compared."
    )
    precursor_removal: float = shared.PRECURSOR_REMOVAL
    minimum_charge: int = parameter(
        1,
        ge=1,
        le=10,
        title="Minimum charge tried",
        group=PRECURSOR,
        advanced=True,
        help="Where a file gives no charge, those from here on are tried that the library has.",
    )
    maximum_charge: int = parameter(
        4,
        ge=1,
        le=10,
        title="Maximum charge tried",
        group=PRECURSOR,
        advanced=True,
        help="Where a file gives no charge, those up to here are tried that the library has.",
    )
    enzyme: str = shared.ENZYME
    decoys: Literal["automatic", "shuffle", "existing", "none"] = parameter(
        "automatic",
        title="Decoys",
        group=STATISTICS,
        help="Those of the library where it has any, else spectra of shuffled peptides; small molecules have no others than the library's.",
    )
    decoys_per_peptide: int = parameter(
        0,
        ge=0,
        le=40,
        title="Decoys per peptide",
        zero="automatic",
        group=STATISTICS,
        advanced=True,
        help="Shuffled peptides for each peptide; automatic (0): ten for up to 100 peptides, fewer for more, one from 20,000. "
        "n peptides with d each reach an FDR of 1 / (d n).",
    )
    fdr: float = shared.FDR
    plus_one: bool = shared.PLUS_ONE
    seed: int = parameter(
        1, ge=0, le=2**31, title="Random seed", group=STATISTICS, advanced=True, help="Of the shuffled peptides that count false matches."
    )

    @property
    def is_open(self) -> bool:
        """True if references of other masses are searched."""
        return bool(self.precursor_tolerance.width(_USUAL_MASS) > _NARROW)

    @property
    def nearest_tolerance(self) -> Tolerance:
        """Within which masses are the same."""
        return self.same_mass if self.is_open else self.precursor_tolerance
