"""Parameters common to the searches of spectra in proteins, declared with title, help, bounds and default.

The parameter model of a search takes the parameters that it needs from here, in the order of its form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, TypeVar

from pydantic import ValidationInfo, field_validator, model_validator

from proteoscope.engine.chemistry.enzymes import enzyme
from proteoscope.engine.chemistry.modifications import parse_modification
from proteoscope.engine.chemistry.series_choice import BY_ACTIVATION
from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.errors import ParameterError
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.kernels.score_kinds import SCORE_KINDS

__all__ = [
    "CLIP_METHIONINE",
    "CONTAMINANTS",
    "CORRELATION_BIN",
    "DATABASE",
    "DECOYS",
    "DECOYS_IN_DATABASE",
    "DECOY_PREFIX",
    "DECOY_SUFFIX",
    "DEISOTOPE",
    "DEVICE_MEMORY",
    "DIGESTION",
    "ENZYME",
    "FDR",
    "FIXED_MODIFICATIONS",
    "FRAGMENTS",
    "FRAGMENT_TOLERANCE",
    "INDEX_MEMORY",
    "INTENSITY_TRANSFORM",
    "ION_SERIES",
    "ISOTOPE_ERRORS",
    "KSDP_POWER",
    "KSDP_WINDOW",
    "MAXIMUM_CHARGE",
    "MAXIMUM_FRAGMENT_CHARGE",
    "MAXIMUM_LENGTH",
    "MAXIMUM_MASS",
    "MEMORY_PARAMETERS",
    "MINIMUM_CHARGE",
    "MINIMUM_FRAGMENT_MZ",
    "MINIMUM_LENGTH",
    "MINIMUM_MASS",
    "MINIMUM_MATCHED_IONS",
    "MINIMUM_PEAKS",
    "MISSED_CLEAVAGES",
    "MODIFICATIONS",
    "PEAKS_PER_WINDOW",
    "PLUS_ONE",
    "PRECURSOR",
    "PRECURSOR_REMOVAL",
    "PRECURSOR_TOLERANCE",
    "RESCORING",
    "RESOURCES",
    "SCORING",
    "SECOND_PASS",
    "SPECIFICITY",
    "SPECTRA",
    "STATISTICS",
    "WINDOW_WIDTH",
    "ScoreName",
    "SpectrumSearchParameters",
]

T = TypeVar("T")

if TYPE_CHECKING:
    ScoreName: TypeAlias = str
else:
    ScoreName = Literal[tuple(score_kind.name for score_kind in SCORE_KINDS)]
"""The name of a score of `proteoscope.kernels.score_kinds`."""

DIGESTION, MODIFICATIONS, PRECURSOR, FRAGMENTS = "Digestion", "Modifications", "Precursor", "Fragments"
SPECTRA, SCORING, DATABASE, SECOND_PASS, STATISTICS, RESOURCES = "Spectra", "Scoring", "Database", "Second pass", "Statistics", "Resources"

# A window that extends by the mass of the heaviest peptide (`maximum_mass`) on either side contains all peptides.
_WIDEST_PRECURSOR = {"ppm": 1_000_000, "Da": 10_000}
# Twenty times the tolerance that an ion trap needs; with a wider tolerance, most ions match by chance.
_WIDEST_FRAGMENT = {"ppm": 10_000, "Da": 10}

ENZYME = parameter(
    "Trypsin",
    title="Enzyme",
    group=DIGESTION,
    editor="enzyme",
    help="Protease that digested the proteins. Names are those of the PSI-MS vocabulary, such as Trypsin.",
)
SPECIFICITY = parameter(
    "specific",
    title="Specificity",
    group=DIGESTION,
    help="Number of peptide ends that must be cleavage sites of the enzyme. specific: both; semi-specific: one; non-specific: none.",
)
MISSED_CLEAVAGES = parameter(
    2, ge=0, le=10, title="Maximum missed cleavages", group=DIGESTION, help="Maximum number of uncut cleavage sites within a peptide."
)
MINIMUM_LENGTH = parameter(
    7, ge=4, le=63, title="Minimum peptide length", unit="residues", group=DIGESTION, help="Shorter peptides are not searched."
)
MAXIMUM_LENGTH = parameter(
    50, ge=5, le=63, title="Maximum peptide length", unit="residues", group=DIGESTION, help="Longer peptides are not searched."
)
MINIMUM_MASS = parameter(
    500.0,
    ge=100,
    le=10000,
    title="Minimum peptide mass",
    unit="Da",
    group=DIGESTION,
    advanced=True,
    help="Lighter peptides are not searched.",
)
MAXIMUM_MASS = parameter(
    6000.0,
    ge=500,
    le=10000,
    title="Maximum peptide mass",
    unit="Da",
    group=DIGESTION,
    advanced=True,
    help="Heavier peptides are not searched.",
)
CLIP_METHIONINE = parameter(
    True,
    title="Remove initial methionine",
    group=DIGESTION,
    advanced=True,
    help="Also search each protein without its initial methionine.",
)
FIXED_MODIFICATIONS = parameter(
    ("Carbamidomethyl (C)",),
    title="Fixed modifications",
    group=MODIFICATIONS,
    editor="modifications",
    help="Modifications on every occurrence of a residue, such as Carbamidomethyl (C).",
)
PRECURSOR_TOLERANCE = parameter(
    Tolerance(10.0, "ppm"),
    title="Precursor tolerance",
    group=PRECURSOR,
    editor="tolerance",
    help="Maximum error of the precursor mass, such as 10 ppm or 0.5 Da.",
)
ISOTOPE_ERRORS = parameter(
    (0, 1, 2, 3),
    title="Isotope errors",
    group=PRECURSOR,
    help="Numbers of the isotope peaks (0 is the monoisotopic peak) that the instrument may have selected as the precursor,"
    " such as 0, 1, 2.",
)
MINIMUM_CHARGE = parameter(
    2, ge=1, le=10, title="Minimum charge tried", group=PRECURSOR, help="Lowest charge tried for spectra without a charge in the file."
)
MAXIMUM_CHARGE = parameter(
    4, ge=1, le=10, title="Maximum charge tried", group=PRECURSOR, help="Highest charge tried for spectra without a charge in the file."
)
FRAGMENT_TOLERANCE = parameter(
    Tolerance(20.0, "ppm"),
    title="Fragment tolerance",
    group=FRAGMENTS,
    editor="tolerance",
    help="Maximum error of fragment m/z, such as 20 ppm or 0.5 Da.",
)
ION_SERIES = parameter(
    BY_ACTIVATION,
    title="Ion series",
    group=FRAGMENTS,
    pattern=f"^({BY_ACTIVATION}|[abcxyz]+)$",
    editor="ion series",
    help=f"Fragment ion series to match: any of a, b, c, x, y, z for all spectra, or {BY_ACTIVATION}, which depends on the activation of"
    " each spectrum. HCD, CID or not recorded: b, y; ETD, ECD: c, z; EThcD, ETciD, EAD: b, c, y, z.",
)
MAXIMUM_FRAGMENT_CHARGE = parameter(
    2,
    ge=1,
    le=5,
    title="Maximum fragment charge",
    group=FRAGMENTS,
    help="Highest charge of matched fragment ions. Fragments of precursors with charge 2 or more always have a lower charge"
    " than the precursor.",
)
PEAKS_PER_WINDOW = parameter(
    10,
    ge=1,
    le=100,
    title="Peaks per window",
    group=SPECTRA,
    advanced=True,
    help="Number of peaks used in each m/z window, the most intense first. More peaks make searches slower and random matches"
    " more frequent.",
)
WINDOW_WIDTH = parameter(
    100.0,
    ge=5,
    le=2000,
    title="Window width",
    unit="Th",
    group=SPECTRA,
    advanced=True,
    help="Width of the m/z windows; the most intense peaks of each window are used.",
)
MINIMUM_FRAGMENT_MZ = parameter(
    100.0, ge=0, le=1000, title="Minimum fragment m/z", unit="Th", group=SPECTRA, advanced=True, help="Peaks with a lower m/z are not used."
)
MINIMUM_PEAKS = parameter(
    6, ge=1, le=100, title="Minimum number of peaks", group=SPECTRA, advanced=True, help="Spectra with fewer peaks are not searched."
)
PRECURSOR_REMOVAL = parameter(
    1.5,
    ge=0,
    le=20,
    title="Precursor removal distance",
    unit="Th",
    group=SPECTRA,
    advanced=True,
    help="Peaks within this m/z distance of the precursor are not used. 0 keeps all peaks.",
)
DEISOTOPE = parameter(
    True,
    title="Remove isotope peaks",
    group=SPECTRA,
    advanced=True,
    help="Remove isotope peaks of more intense fragment peaks before scoring.",
)
INTENSITY_TRANSFORM = parameter(
    "square-root",
    title="Intensity transform",
    group=SPECTRA,
    advanced=True,
    help="Transformation of peak intensities before scoring. Stronger transformations give small peaks more weight.",
)
MINIMUM_MATCHED_IONS = parameter(
    2,
    ge=1,
    le=50,
    title="Minimum number of matched ions",
    group=SCORING,
    advanced=True,
    help="Candidates with fewer matched fragment ions are not reported.",
)
CORRELATION_BIN = parameter(
    0.02,
    ge=0.005,
    le=2,
    title="XCorr bin width",
    unit="Th",
    group=SCORING,
    advanced=True,
    help="Width of the m/z bins in which XCorr compares peaks: 0.02 Th for high resolution, 1.0005 Th for ion traps.",
)
KSDP_WINDOW = parameter(
    5,
    ge=1,
    le=20,
    title="Ions per KSDP window",
    unit="ions",
    group=SCORING,
    advanced=True,
    help="Number of consecutive fragment ions in a window of the kernel spectral dot product (KSDP).",
)
KSDP_POWER = parameter(
    3.0,
    ge=1,
    le=6,
    title="KSDP power",
    group=SCORING,
    advanced=True,
    help="Exponent of the kernel spectral dot product (KSDP). Higher values give consecutive fragment ions more weight.",
)
DECOYS = parameter(
    "reverse",
    title="Decoys",
    group=DATABASE,
    help="How decoys are generated from the proteins. existing: the database already contains decoys, marked by the decoy"
    " prefix or suffix; none: no decoys, so that error rates are not estimated.",
)
DECOY_PREFIX = parameter(
    "DECOY_",
    min_length=1,
    max_length=40,
    title="Decoy prefix",
    group=DATABASE,
    help="Prefix of decoy accessions. In decoys of the database, it may also follow a bar, such as rev_ in sp|rev_P02769|ALBU_BOVIN.",
)
DECOY_SUFFIX = parameter(
    "",
    max_length=40,
    title="Decoy suffix",
    group=DATABASE,
    advanced=True,
    help="Suffix that marks the decoys of the database, such as _REVERSED, at the end of the accession or before a bar."
    " If given, it is used instead of the prefix.",
)
DECOYS_IN_DATABASE = parameter(
    "refuse",
    title="Decoys in the database",
    group=DATABASE,
    help="How to treat a database or contaminant file that contains decoys although decoys are generated. refuse: stop with"
    " an error; leave-out: search it without its decoys.",
)
CONTAMINANTS = parameter(
    (),
    title="Contaminants",
    group=DATABASE,
    editor="protein files",
    help="FASTA or other protein files with contaminants, which are searched together with the database.",
)
FDR = parameter(
    0.01,
    gt=0,
    le=0.5,
    title="False discovery rate",
    group=STATISTICS,
    help="Maximum FDR of the PSMs, peptides and proteins that are counted as identified.",
)
PLUS_ONE = parameter(
    False,
    title="Add one decoy",
    group=STATISTICS,
    advanced=True,
    help="Estimate the FDR as (decoys + 1) / targets instead of decoys / targets. This avoids too low estimates, but small"
    " data sets may have no result.",
)
RESCORING = parameter(
    "automatic",
    title="Rescoring",
    group=STATISTICS,
    help="automatic: combine several scores with weights learned from targets and decoys, like Percolator, if there are"
    " enough targets. off: use only the selected score.",
)
INDEX_MEMORY = parameter(
    512,
    ge=64,
    le=65536,
    title="Index memory",
    unit="MB",
    group=RESOURCES,
    advanced=True,
    help="Maximum memory of the peptide and fragment indexes. Larger indexes are built and searched in several mass ranges.",
)
DEVICE_MEMORY = parameter(
    0,
    ge=0,
    le=1048576,
    title="GPU memory",
    unit="MB",
    zero="all free",
    group=RESOURCES,
    advanced=True,
    help="Maximum memory that the search allocates on each GPU; 0 allows all free memory. CUDA itself needs several hundred"
    " MB in addition.",
)
MEMORY_PARAMETERS = ("index_memory", "device_memory")
"""Names of the parameters that change the memory of a search, but not its results."""


class SpectrumSearchParameters(SearchParameters):
    """Base class of parameter models that use the parameters of this module; validates their values."""

    @field_validator("enzyme", check_fields=False)
    @classmethod
    def _enzyme_name(cls, value: str) -> str:
        return _for_pydantic(lambda: enzyme(value).name)

    @field_validator("precursor_tolerance", "fragment_tolerance", check_fields=False)
    @classmethod
    def _check_tolerance_width(cls, value: Tolerance, info: ValidationInfo) -> Tolerance:
        widest = _WIDEST_PRECURSOR if info.field_name == "precursor_tolerance" else _WIDEST_FRAGMENT
        if value.value > widest[value.unit]:
            raise ValueError(f"wider than any search needs; expected at most {widest['ppm']:,} ppm or {widest['Da']:,} Da")
        return value

    @field_validator("fixed_modifications", "variable_modifications", "second_pass_modifications", check_fields=False)
    @classmethod
    def _modification_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _for_pydantic(lambda: tuple(str(parse_modification(name)) for name in value))

    @field_validator("isotope_errors", check_fields=False)
    @classmethod
    def _sorted_isotope_errors(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < -3 or max(value) > 5:
            raise ValueError("expected whole numbers from -3 to 5, such as 0, 1, 2")
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _check_bounds_and_fixed_modifications(self) -> Self:
        for low, high in (("minimum_length", "maximum_length"), ("minimum_mass", "maximum_mass"), ("minimum_charge", "maximum_charge")):
            if {low, high} <= type(self).model_fields.keys() and getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} = {getattr(self, low)} is greater than {high} = {getattr(self, high)}")
        fixed: tuple[str, ...] = getattr(self, "fixed_modifications", ())
        for name in fixed:
            modification = parse_modification(name)
            if modification.position.startswith("protein") or (modification.position != "anywhere" and modification.residues):
                raise ValueError(
                    f"fixed_modifications = '{name}': only residues, or every N-term or C-term, can be fixed; make it variable"
                )
            if modification.position == "anywhere" and not modification.residues:
                raise ValueError(f"fixed_modifications = '{name}': expected a name with residues, such as Carbamidomethyl (C)")
        return self


def _for_pydantic(parse: Callable[[], T]) -> T:
    """Return the result of a parser of parameter values; convert errors of the program to errors of pydantic."""
    try:
        return parse()
    except ParameterError as error:
        raise ValueError(str(error)) from None
