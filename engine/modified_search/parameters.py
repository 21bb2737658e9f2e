"""Parameters of the open modification search, including those that all searches of spectra have."""

from typing import Literal, Self

from pydantic import field_validator, model_validator

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.formats.translation_parameters import GENETIC_CODE, MINIMUM_FRAME, TRANSLATION
from proteoscope.engine.matches import parameters as shared
from proteoscope.engine.matches.parameters import PRECURSOR, SCORING, SpectrumSearchParameters
from proteoscope.engine.parameters import parameter

__all__ = ["ModifiedSearchParameters", "shift_range"]

_WIDEST_SHIFT = 4000.0  # dalton


class ModifiedSearchParameters(SpectrumSearchParameters):
    """Parameters that determine the result of an open modification search, together with spectra and database."""

    enzyme: str = shared.ENZYME
    specificity: Literal["specific", "semi-specific", "non-specific"] = shared.SPECIFICITY
    missed_cleavages: int = shared.MISSED_CLEAVAGES
    minimum_length: int = shared.MINIMUM_LENGTH
    maximum_length: int = shared.MAXIMUM_LENGTH
    minimum_mass: float = shared.MINIMUM_MASS
    maximum_mass: float = shared.MAXIMUM_MASS
    clip_methionine: bool = shared.CLIP_METHIONINE
    fixed_modifications: tuple[str, ...] = shared.FIXED_MODIFICATIONS
    mass_shift: str = parameter(
        "-150..500",
        title="Mass shifts",
        unit="Da",
        group=PRECURSOR,
        help="Smallest and largest searched difference between precursor mass and unmodified peptide mass, such as -150..500."
        " Larger ranges take longer.",
    )
    precursor_tolerance: Tolerance = shared.PRECURSOR_TOLERANCE
    isotope_errors: tuple[int, ...] = shared.ISOTOPE_ERRORS
    minimum_charge: int = shared.MINIMUM_CHARGE
    maximum_charge: int = shared.MAXIMUM_CHARGE
    fragment_tolerance: Tolerance = shared.FRAGMENT_TOLERANCE
    ion_series: str = shared.ION_SERIES
    maximum_fragment_charge: int = shared.MAXIMUM_FRAGMENT_CHARGE
    peaks_per_window: int = shared.PEAKS_PER_WINDOW
    window_width: float = shared.WINDOW_WIDTH
    minimum_fragment_mz: float = shared.MINIMUM_FRAGMENT_MZ
    minimum_peaks: int = shared.MINIMUM_PEAKS
    precursor_removal: float = shared.PRECURSOR_REMOVAL
    deisotope: bool = shared.DEISOTOPE
    intensity_transform: Literal["none", "square-root", "logarithm", "rank"] = shared.INTENSITY_TRANSFORM
    score: Literal["hyperscore", "match-count"] = parameter(
        "hyperscore",
        title="Score",
        group=SCORING,
        help="Score that ranks the candidate peptides. hyperscore: with the mass shift at its best site; match-count: number of"
        " matched fragment masses.",
    )
    candidates: int = parameter(
        100,
        ge=1,
        le=256,
        title="Maximum candidates per spectrum",
        group=SCORING,
        help="Maximum number of candidate peptides per spectrum and charge that are scored with the mass shift at each site. The"
        " candidates with the most matched masses are scored.",
    )
    hits_per_spectrum: int = parameter(
        1,
        ge=1,
        le=20,
        title="Maximum hits per spectrum",
        group=SCORING,
        help="Maximum number of reported peptides per spectrum. Only the best peptide gets a q-value.",
    )
    mass_unit: float = parameter(
        0.005,
        ge=0.002,
        le=2,
        title="Mass unit",
        unit="Da",
        group=SCORING,
        advanced=True,
        help="Step to which fragment masses are rounded when matched masses are counted. It is the reciprocal of the"
        " discretisation factor of the published method.",
    )
    isotope_lead: float = parameter(
        3.0,
        ge=0,
        le=50,
        title="Minimum score gain by an isotope error",
        group=SCORING,
        advanced=True,
        help="A mass shift with an isotope error is reported only if its score is at least this much above the score of the same"
        " shift without an isotope error.",
    )
    minimum_matched_ions: int = shared.MINIMUM_MATCHED_IONS
    correlation_bin: float = shared.CORRELATION_BIN
    ksdp_window: int = shared.KSDP_WINDOW
    ksdp_power: float = shared.KSDP_POWER
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"] = shared.DECOYS
    decoy_prefix: str = shared.DECOY_PREFIX
    decoy_suffix: str = shared.DECOY_SUFFIX
    decoys_in_database: Literal["refuse", "leave-out"] = shared.DECOYS_IN_DATABASE
    contaminants: tuple[str, ...] = shared.CONTAMINANTS
    translation: Literal["none", "six-frame", "forward", "reverse"] = TRANSLATION
    genetic_code: int = GENETIC_CODE
    minimum_frame: int = MINIMUM_FRAME
    fdr: float = shared.FDR
    plus_one: bool = shared.PLUS_ONE
    rescoring: Literal["automatic", "off"] = shared.RESCORING
    index_memory: int = shared.INDEX_MEMORY
    device_memory: int = shared.DEVICE_MEMORY

    @field_validator("mass_shift")
    @classmethod
    def _normalised_mass_shift(cls, value: str) -> str:
        try:
            low, high = shift_range(value)
        except ParameterError as error:
            raise ValueError(str(error)) from None
        return f"{low:.10g}..{high:.10g}"

    @model_validator(mode="after")
    def _check_hits_per_spectrum(self) -> Self:
        if self.hits_per_spectrum > self.candidates:
            raise ValueError(f"hits_per_spectrum = {self.hits_per_spectrum} is greater than candidates = {self.candidates}")
        return self


def shift_range(text: str) -> tuple[float, float]:
    """Return the minimum and maximum shift in dalton of a text such as ``-150..500``.

    Raises
    ------
    ParameterError
        If the text has another form, or the range is empty or beyond the bounds.

    Examples
    --------
    >>> shift_range("-150..500")
    (-150.0, 500.0)
    """
    low_text, dots, high_text = text.partition("..")
    try:
        low, high = float(low_text), float(high_text)
    except ValueError:
        low = high = float("nan")
    if not dots or not -_WIDEST_SHIFT <= low <= high <= _WIDEST_SHIFT:
        raise ParameterError(f"'{text:.60}' is not a range of mass shifts; expected two numbers from -4000 to 4000, as -150..500")
    return low, high
