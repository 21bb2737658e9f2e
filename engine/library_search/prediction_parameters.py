"""Parameters of a library that is predicted from proteins."""

from typing import Literal, Self

from pydantic import model_validator

from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.matches import parameters as shared
from proteoscope.engine.matches.fragment_intensities import unsupported_label_reason
from proteoscope.engine.matches.parameters import DIGESTION, FRAGMENTS, MODIFICATIONS, PRECURSOR, SpectrumSearchParameters
from proteoscope.engine.parameters import parameter

__all__ = ["PredictionParameters"]


class PredictionParameters(SpectrumSearchParameters):
    """Parameters that determine a predicted library, together with the proteins."""

    enzyme: str = shared.ENZYME
    specificity: Literal["specific", "semi-specific", "non-specific"] = shared.SPECIFICITY
    missed_cleavages: int = parameter(
        1, ge=0, le=10, title="Maximum missed cleavages", group=DIGESTION, help="Maximum number of uncut cleavage sites within a peptide."
    )
    minimum_length: int = shared.MINIMUM_LENGTH
    maximum_length: int = parameter(
        30,
        ge=5,
        le=63,
        title="Maximum peptide length",
        unit="residues",
        group=DIGESTION,
        help="Longer peptides are not added to the library.",
    )
    minimum_mass: float = shared.MINIMUM_MASS
    maximum_mass: float = shared.MAXIMUM_MASS
    clip_methionine: bool = shared.CLIP_METHIONINE
    fixed_modifications: tuple[str, ...] = shared.FIXED_MODIFICATIONS
    variable_modifications: tuple[str, ...] = parameter(
        (),
        title="Variable modifications",
        group=MODIFICATIONS,
        editor="modifications",
        help="Modifications that may be present or absent at a site, such as Oxidation (M). They change the predicted masses, but"
        " not the predicted intensities.",
    )
    maximum_modifications: int = parameter(
        1,
        ge=0,
        le=6,
        title="Maximum variable modifications",
        group=MODIFICATIONS,
        help="Maximum number of variable modifications per peptide.",
    )
    maximum_forms: int = parameter(
        50,
        ge=1,
        le=100000,
        title="Maximum arrangements of modifications",
        group=MODIFICATIONS,
        advanced=True,
        help="Maximum number of arrangements of the same modifications on the sites of a peptide. Further arrangements are not added.",
    )
    minimum_charge: int = parameter(
        2, ge=1, le=10, title="Minimum charge", group=PRECURSOR, help="Lowest precursor charge of the predicted spectra."
    )
    maximum_charge: int = parameter(
        3, ge=1, le=10, title="Maximum charge", group=PRECURSOR, help="Highest precursor charge of the predicted spectra."
    )
    minimum_precursor_mz: float = parameter(
        300.0,
        ge=50,
        le=5000,
        title="Minimum precursor m/z",
        unit="Th",
        group=PRECURSOR,
        help="Spectra with a lower precursor m/z are not added to the library.",
    )
    maximum_precursor_mz: float = parameter(
        1800.0,
        ge=50,
        le=5000,
        title="Maximum precursor m/z",
        unit="Th",
        group=PRECURSOR,
        help="Spectra with a higher precursor m/z are not added to the library.",
    )
    minimum_fragment_mz: float = parameter(
        100.0,
        ge=0,
        le=2000,
        title="Minimum fragment m/z",
        unit="Th",
        group=FRAGMENTS,
        advanced=True,
        help="Peaks with a lower m/z are not added to the library.",
    )
    maximum_fragment_mz: float = parameter(
        2000.0,
        ge=100,
        le=20000,
        title="Maximum fragment m/z",
        unit="Th",
        group=FRAGMENTS,
        advanced=True,
        help="Peaks with a higher m/z are not added to the library.",
    )
    maximum_fragment_charge: int = parameter(
        2,
        ge=1,
        le=2,
        title="Maximum fragment charge",
        group=FRAGMENTS,
        help="Highest charge of predicted fragment ions. Doubly charged ions are predicted only for precursors of charge 3 or more.",
    )
    maximum_peaks: int = parameter(
        40,
        ge=3,
        le=250,
        title="Maximum number of peaks",
        group=FRAGMENTS,
        help="Maximum number of peaks per predicted spectrum, the most intense first.",
    )
    minimum_share: float = parameter(
        0.01,
        ge=0,
        le=0.5,
        title="Minimum relative intensity",
        group=FRAGMENTS,
        advanced=True,
        help="Peaks with less than this fraction of the intensity of the highest peak are not added to the library.",
    )
    decoys_in_database: Literal["refuse", "leave-out"] = shared.DECOYS_IN_DATABASE
    index_memory: int = shared.INDEX_MEMORY

    @property
    def decoys(self) -> Literal["none"]:
        """Method for decoys: none, since a search of the library creates its own."""
        return "none"

    @property
    def decoy_prefix(self) -> str:
        """Prefix of decoys, which is not used, since there are none."""
        return "DECOY_"

    @property
    def decoy_suffix(self) -> str:
        """Suffix of decoys, which is empty, since decoys of the database are not used."""
        return ""

    @model_validator(mode="after")
    def _check_prediction(self) -> Self:
        for name in ("precursor_mz", "fragment_mz"):
            if getattr(self, f"minimum_{name}") >= getattr(self, f"maximum_{name}"):
                raise ValueError(f"minimum_{name} is not below maximum_{name}")
        if why := unsupported_label_reason(
            [parse_modification(name) for name in (*self.fixed_modifications, *self.variable_modifications)]
        ):
            raise ValueError(f"intensities cannot be predicted: {why}")
        return self
