"""Parameters of an identification."""

from typing import Literal

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.formats.translation_parameters import GENETIC_CODE, MINIMUM_FRAME, TRANSLATION
from proteoscope.engine.matches import parameters as shared
from proteoscope.engine.matches.parameters import (
    DATABASE,
    MODIFICATIONS,
    PRECURSOR,
    SCORING,
    SECOND_PASS,
    STATISTICS,
    ScoreName,
    SpectrumSearchParameters,
)
from proteoscope.engine.parameters import parameter

__all__ = ["IdentificationParameters"]


class IdentificationParameters(SpectrumSearchParameters):
    """Parameters that, together with spectra and database, determine the result of an identification."""

    enzyme: str = shared.ENZYME
    specificity: Literal["specific", "semi-specific", "non-specific"] = shared.SPECIFICITY
    missed_cleavages: int = shared.MISSED_CLEAVAGES
    minimum_length: int = shared.MINIMUM_LENGTH
    maximum_length: int = shared.MAXIMUM_LENGTH
    minimum_mass: float = shared.MINIMUM_MASS
    maximum_mass: float = shared.MAXIMUM_MASS
    clip_methionine: bool = shared.CLIP_METHIONINE
    fixed_modifications: tuple[str, ...] = shared.FIXED_MODIFICATIONS
    variable_modifications: tuple[str, ...] = parameter(
        ("Oxidation (M)",),
        title="Variable modifications",
        group=MODIFICATIONS,
        editor="modifications",
        help="Modifications that may be present or absent at a site, such as Oxidation (M). They replace a fixed modification of"
        " the same site; Methyl (K on top) is added to it.",
    )
    maximum_modifications: int = parameter(
        3,
        ge=0,
        le=6,
        title="Maximum variable modifications",
        group=MODIFICATIONS,
        help="Maximum number of variable modifications per peptide.",
    )
    maximum_forms: int = parameter(
        200,
        ge=1,
        le=100000,
        title="Maximum arrangements of modifications",
        group=MODIFICATIONS,
        advanced=True,
        help="Maximum number of arrangements of the same modifications on the sites of a peptide. Further arrangements are not searched.",
    )
    localise: Literal["automatic", "all", "none"] = parameter(
        "automatic",
        title="Localise modifications",
        group=MODIFICATIONS,
        help="Variable modifications whose sites are reported, with probabilities and false localisation rates. automatic: all"
        " modifications of residues except Oxidation (M); all: also Oxidation (M); none: no sites. Sites of modifications of termini"
        " are never reported.",
    )
    precursor_tolerance: Tolerance = shared.PRECURSOR_TOLERANCE
    calibrate_tolerance: bool = parameter(
        False,
        title="Calibrate precursor tolerance",
        group=PRECURSOR,
        help="Measure the precursor mass errors of each file in a quick first search, correct the systematic error, and widen the"
        " tolerance if this is needed to cover nearly all errors. Only for tolerances in ppm.",
    )
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
    score: ScoreName = parameter(
        "hyperscore",
        title="Score",
        group=SCORING,
        help="Score that ranks the candidate peptides of a spectrum. The results contain all scores. Values are not comparable"
        " with those of other programs.",
    )
    hits_per_spectrum: int = parameter(
        1,
        ge=1,
        le=20,
        title="Maximum hits per spectrum",
        group=SCORING,
        help="Maximum number of reported candidate peptides per spectrum. Only the best candidate gets a q-value.",
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
    known_variants: bool = parameter(
        False,
        title="Known variants",
        group=DATABASE,
        help="Also search the sequence variants that the database annotates (Swiss-Prot text or UniProt XML). Decoys are"
        " generated for them too.",
    )
    known_modifications: bool = parameter(
        False,
        title="Known modifications",
        group=DATABASE,
        help="Also search the modifications that the database annotates (Swiss-Prot text or UniProt XML), as variable"
        " modifications at the annotated sites.",
    )
    translation: Literal["none", "six-frame", "forward", "reverse"] = TRANSLATION
    genetic_code: int = GENETIC_CODE
    minimum_frame: int = MINIMUM_FRAME
    second_pass: bool = parameter(
        False,
        title="Second pass",
        group=SECOND_PASS,
        help="Search the unidentified spectra again, only against the identified proteins, with the second-pass modifications and"
        " specificity. Spectra identified only as rare kinds of match, such as variants, are searched again too.",
    )
    second_pass_modifications: tuple[str, ...] = parameter(
        ("Oxidation (M)", "Deamidated (NQ)", "Gln->pyro-Glu (N-term Q)", "Acetyl (Protein N-term)"),
        title="Second-pass modifications",
        group=SECOND_PASS,
        editor="modifications",
        help="Variable modifications of the second pass.",
    )
    second_pass_maximum_modifications: int = parameter(
        1,
        ge=0,
        le=6,
        title="Maximum second-pass modifications",
        group=SECOND_PASS,
        help="Maximum number of variable modifications per peptide in the second pass. It must not exceed the maximum of the first pass.",
    )
    second_pass_specificity: Literal["specific", "semi-specific", "non-specific"] = parameter(
        "semi-specific",
        title="Second-pass enzyme specificity",
        group=SECOND_PASS,
        help="Number of peptide ends that must be cleavage sites of the enzyme in the second pass. specific: both; semi-specific:"
        " one; non-specific: none.",
    )
    fdr: float = shared.FDR
    plus_one: bool = shared.PLUS_ONE
    rescoring: Literal["automatic", "off"] = shared.RESCORING
    predicted_intensities: bool = parameter(
        True,
        title="Predicted intensities",
        group=STATISTICS,
        help="Use the similarity of measured and predicted fragment intensities in rescoring. Only b and y ions are predicted,"
        " and none for TMT or iTRAQ labels.",
    )
    index_memory: int = shared.INDEX_MEMORY
    device_memory: int = shared.DEVICE_MEMORY
