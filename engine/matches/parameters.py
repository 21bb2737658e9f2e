"""Parameters that the searches of spectra in proteins share: each is declared here once, with its words, bounds and default.

A search's own model takes those that mean the same in it, in the order in which its forms show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias

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

if TYPE_CHECKING:
    ScoreName: TypeAlias = str
else:
    ScoreName = Literal[tuple(score_kind.name for score_kind in SCORE_KINDS)]
"""The name of a score of `proteoscope.kernels.score_kinds`."""

DIGESTION, MODIFICATIONS, PRECURSOR, FRAGMENTS = "Digestion", "Modifications", "Precursor", "Fragments"
SPECTRA, SCORING, DATABASE, SECOND_PASS, STATISTICS, RESOURCES = "Spectra", "Scoring", "Database", "Second pass", "Statistics", "Resources"

# A window of the mass of the heaviest peptide (`maximum_mass`) on either side leaves none out.
_WIDEST_PRECURSOR = {"ppm": 1_000_000, "Da": 10_000}
# Twenty times what an ion trap needs: beyond, chance matches most ions.
_WIDEST_FRAGMENT = {"ppm": 10_000, "Da": 10}

ENZYME = parameter(
    "Trypsin",
    title="Enzyme",
    group=DIGESTION,
    editor="enzyme",
    help="Protease that cut the proteins, by its name in the PSI vocabulary.",
)
SPECIFICITY = parameter(
    "specific", title="Specificity", group=DIGESTION, help="How many ends of a peptide the enzyme must have cut: both, one, or none."
)
MISSED_CLEAVAGES = parameter(2, ge=0, le=10, title="Missed cleavages", group=DIGESTION, help="Sites inside a peptide that were not cut.")
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
    title="Initial methionine may be lost",
    group=DIGESTION,
    advanced=True,
    help="Also search proteins without the methionine they begin with.",
)
FIXED_MODIFICATIONS = parameter(
    ("Carbamidomethyl (C)",),
    title="Fixed modifications",
    group=MODIFICATIONS,
    editor="modifications",
    help="Carried by every such residue, as Carbamidomethyl (C).",
)
PRECURSOR_TOLERANCE = parameter(
    Tolerance(10.0, "ppm"),
    title="Precursor tolerance",
    group=PRECURSOR,
    editor="tolerance",
    help="Error of the precursor mass, as 10 ppm or 0.5 Da.",
)
ISOTOPE_ERRORS = parameter(
    (0, 1, 2, 3),
    title="Isotope errors",
    group=PRECURSOR,
    help="Isotope peaks that the instrument may have taken for the monoisotopic one, as 0, 1, 2.",
)
MINIMUM_CHARGE = parameter(
    2, ge=1, le=10, title="Minimum charge tried", group=PRECURSOR, help="Where the file gives no charge, charges from here are tried."
)
MAXIMUM_CHARGE = parameter(
    4, ge=1, le=10, title="Maximum charge tried", group=PRECURSOR, help="Where the file gives no charge, charges up to here are tried."
)
FRAGMENT_TOLERANCE = parameter(
    Tolerance(20.0, "ppm"),
    title="Fragment tolerance",
    group=FRAGMENTS,
    editor="tolerance",
    help="Error of the fragments' m/z, as 20 ppm or 0.5 Da.",
)
ION_SERIES = parameter(
    BY_ACTIVATION,
    title="Ion series",
    group=FRAGMENTS,
    pattern=f"^({BY_ACTIVATION}|[abcxyz]+)$",
    editor="ion series",
    help=f"Fragment ions to match: {BY_ACTIVATION}, those of the activation that the file names (HCD, CID: b, y; ETD, ECD: c, z; EThcD,"
    " ETciD, EAD: all four; not named: b, y), or letters of a, b, c, x, y, z for all spectra.",
)
MAXIMUM_FRAGMENT_CHARGE = parameter(
    2,
    ge=1,
    le=5,
    title="Maximum fragment charge",
    group=FRAGMENTS,
    help="Fragments carry up to so many charges, and one fewer than the precursor.",
)
PEAKS_PER_WINDOW = parameter(
    10,
    ge=1,
    le=100,
    title="Peaks kept in a window",
    group=SPECTRA,
    advanced=True,
    help="The most intense peaks of each window are kept.",
)
WINDOW_WIDTH = parameter(100.0, ge=5, le=2000, title="Window", unit="Th", group=SPECTRA, advanced=True, help="Width of that window.")
MINIMUM_FRAGMENT_MZ = parameter(
    100.0, ge=0, le=1000, title="Minimum fragment m/z", unit="Th", group=SPECTRA, advanced=True, help="Peaks below are not used."
)
MINIMUM_PEAKS = parameter(
    6, ge=1, le=100, title="Minimum number of peaks", group=SPECTRA, advanced=True, help="Spectra with fewer peaks are not searched."
)
PRECURSOR_REMOVAL = parameter(
    1.5,
    ge=0,
    le=20,
    title="Precursor removal",
    unit="Th",
    group=SPECTRA,
    advanced=True,
    help="Peaks so near the precursor are removed; 0 keeps them.",
)
DEISOTOPE = parameter(
    True, title="Remove isotope peaks", group=SPECTRA, advanced=True, help="Remove peaks that are isotopes of a larger one."
)
INTENSITY_TRANSFORM = parameter(
    "square-root",
    title="Intensity transform",
    group=SPECTRA,
    advanced=True,
    help="What is done to intensities before they are compared.",
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
    title="XCorr bin",
    unit="Th",
    group=SCORING,
    advanced=True,
    help="Width of XCorr's bins: 1.0005 for low resolution.",
)
KSDP_WINDOW = parameter(
    5,
    ge=1,
    le=20,
    title="KSDP window",
    unit="ions",
    group=SCORING,
    advanced=True,
    help="Consecutive ions that KSDP looks at together.",
)
KSDP_POWER = parameter(3.0, ge=1, le=6, title="KSDP power", group=SCORING, advanced=True, help="Power by which KSDP favours runs of ions.")
DECOYS = parameter(
    "reverse",
    title="Decoys",
    group=DATABASE,
    help="How decoys are made; 'existing' takes those of the database, known by the prefix or suffix.",
)
DECOY_PREFIX = parameter(
    "DECOY_",
    min_length=1,
    max_length=40,
    title="Decoy prefix",
    group=DATABASE,
    help="What the accessions of decoys begin with; with existing decoys also parts of accessions, as sp|rev_P02769|ALBU_BOVIN.",
)
DECOY_SUFFIX = parameter(
    "",
    max_length=40,
    title="Decoy suffix",
    group=DATABASE,
    advanced=True,
    help="What accessions of existing decoys, or parts of them, end with, as _REVERSED; unless it is empty, the prefix is not used.",
)
DECOYS_IN_DATABASE = parameter(
    "refuse",
    title="Decoys in the database",
    group=DATABASE,
    help="Whether a database or file of contaminants that already holds decoys is refused, or searched without these decoys (leave-out).",
)
CONTAMINANTS = parameter(
    (),
    title="Contaminants",
    group=DATABASE,
    editor="protein files",
    help="Files of proteins with contaminants to search besides the database.",
)
FDR = parameter(
    0.01, gt=0, le=0.5, title="False discovery rate", group=STATISTICS, help="Results are counted at this false discovery rate."
)
PLUS_ONE = parameter(
    False,
    title="Add one decoy",
    group=STATISTICS,
    advanced=True,
    help="Estimate the rate as (decoys + 1) / targets, which is never too low on average but needs many targets.",
)
RESCORING = parameter(
    "automatic",
    title="Rescoring",
    group=STATISTICS,
    help="Learn from the data how to weigh the scores (needs enough targets), or keep the score.",
)
INDEX_MEMORY = parameter(
    512,
    ge=64,
    le=65536,
    title="Memory for indexing",
    unit="MB",
    group=RESOURCES,
    advanced=True,
    help="Larger indexes, of peptides or of fragment ions, are made in partitions of mass.",
)
DEVICE_MEMORY = parameter(
    0,
    ge=0,
    le=1048576,
    title="Memory of a GPU",
    unit="MB",
    group=RESOURCES,
    advanced=True,
    help="What a search allocates on each GPU takes no more; CUDA itself takes some hundred MB besides. 0: what is free.",
)


class SpectrumSearchParameters(SearchParameters):
    """Base of models that take the parameters of this page: how their values are checked."""

    @field_validator("enzyme", check_fields=False)
    @classmethod
    def _known_enzyme(cls, value: str) -> str:
        return _asking(lambda: enzyme(value).name)

    @field_validator("precursor_tolerance", "fragment_tolerance", check_fields=False)
    @classmethod
    def _not_too_wide(cls, value: Tolerance, info: ValidationInfo) -> Tolerance:
        widest = _WIDEST_PRECURSOR if info.field_name == "precursor_tolerance" else _WIDEST_FRAGMENT
        if value.value > widest[value.unit]:
            raise ValueError(f"wider than any search has use for; expected at most {widest['ppm']:,} ppm or {widest['Da']:,} Da")
        return value

    @field_validator("fixed_modifications", "variable_modifications", "second_pass_modifications", check_fields=False)
    @classmethod
    def _known_modifications(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _asking(lambda: tuple(str(parse_modification(one)) for one in value))

    @field_validator("isotope_errors", check_fields=False)
    @classmethod
    def _some_isotope_errors(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < -3 or max(value) > 5:
            raise ValueError("expected whole numbers from -3 to 5, as 0, 1, 2")
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
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
                raise ValueError(f"fixed_modifications = '{name}': expected the residues that carry it, as Carbamidomethyl (C)")
        return self


def _asking(question):  # type: ignore[no-untyped-def]
    """Return the answer, with the program's errors converted for pydantic."""
    try:
        return question()
    except ParameterError as error:
        raise ValueError(str(error)) from None
