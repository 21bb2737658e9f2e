"""Parameters of an identification: the one place where each exists."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import ValidationInfo, field_validator, model_validator

from engine.chemistry.enzymes import enzyme
from engine.chemistry.modifications import parse_modification
from engine.chemistry.tolerance import Tolerance
from engine.errors import ParameterError
from engine.parameters import SearchParameters, parameter

__all__ = ["IdentificationParameters"]

_DIGESTION, _MODIFICATIONS, _PRECURSOR, _FRAGMENTS = "Digestion", "Modifications", "Precursor", "Fragments"
_SPECTRA, _SCORING, _DATABASE, _SECOND, _STATISTICS, _RESOURCES = "Spectra", "Scoring", "Database", "Second pass", "Statistics", "Resources"
# A window of the mass of the heaviest peptide (`maximum_mass`) on either side leaves none out.
_WIDEST_PRECURSOR = {"ppm": 1_000_000, "Da": 10_000}
# Twenty times what an ion trap needs: beyond, chance matches most ions.
_WIDEST_FRAGMENT = {"ppm": 10_000, "Da": 10}


class IdentificationParameters(SearchParameters):
    """All that decides the result of an identification, besides the spectra and the database."""

    enzyme: str = parameter(
        "Trypsin",
        title="Enzyme",
        group=_DIGESTION,
        editor="enzyme",
        help="Protease that cut the proteins, by its name in the PSI vocabulary.",
    )
    specificity: Literal["specific", "semi-specific", "non-specific"] = parameter(
        "specific", title="Specificity", group=_DIGESTION, help="How many ends of a peptide the enzyme must have cut: both, one, or none."
    )
    missed_cleavages: int = parameter(
        2, ge=0, le=10, title="Missed cleavages", group=_DIGESTION, help="Sites inside a peptide that were not cut."
    )
    minimum_length: int = parameter(
        7, ge=4, le=63, title="Shortest peptide", unit="residues", group=_DIGESTION, help="Shorter peptides are not searched."
    )
    maximum_length: int = parameter(
        50, ge=5, le=63, title="Longest peptide", unit="residues", group=_DIGESTION, help="Longer peptides are not searched."
    )
    minimum_mass: float = parameter(
        500.0,
        ge=100,
        le=10000,
        title="Smallest mass",
        unit="Da",
        group=_DIGESTION,
        advanced=True,
        help="Lighter peptides are not searched.",
    )
    maximum_mass: float = parameter(
        6000.0,
        ge=500,
        le=10000,
        title="Largest mass",
        unit="Da",
        group=_DIGESTION,
        advanced=True,
        help="Heavier peptides are not searched.",
    )
    clip_methionine: bool = parameter(
        True,
        title="Initial methionine may be lost",
        group=_DIGESTION,
        advanced=True,
        help="Also search proteins without the methionine they begin with.",
    )
    fixed_modifications: tuple[str, ...] = parameter(
        ("Carbamidomethyl (C)",),
        title="Fixed modifications",
        group=_MODIFICATIONS,
        editor="modifications",
        help="Carried by every such residue, as Carbamidomethyl (C).",
    )
    variable_modifications: tuple[str, ...] = parameter(
        ("Oxidation (M)",),
        title="Variable modifications",
        group=_MODIFICATIONS,
        editor="modifications",
        help="May be carried, as Oxidation (M), Phospho (STY), Acetyl (Protein N-term).",
    )
    maximum_modifications: int = parameter(
        3,
        ge=0,
        le=6,
        title="Variable modifications in a peptide",
        group=_MODIFICATIONS,
        help="A peptide carries at most so many variable modifications.",
    )
    maximum_forms: int = parameter(
        200, ge=1, le=100000, title="Arrangements tried", group=_MODIFICATIONS, advanced=True,
        help="Arrangements of the same modifications on the sites of one peptide that are tried at most.",
    )  # fmt: skip
    precursor_tolerance: str = parameter(
        "10 ppm",
        title="Precursor tolerance",
        group=_PRECURSOR,
        editor="tolerance",
        help="Error of the precursor mass, as 10 ppm or 0.5 Da.",
    )
    tolerance_from_run: bool = parameter(
        False,
        title="Measure the tolerance",
        group=_PRECURSOR,
        help="Measure the errors of precursors in a quick first search, and search in the window that they need (ppm only).",
    )
    isotope_errors: tuple[int, ...] = parameter(
        (0, 1, 2, 3),
        title="Isotope errors",
        group=_PRECURSOR,
        help="Isotope peaks that the instrument may have taken for the monoisotopic one, as 0, 1, 2.",
    )
    minimum_charge: int = parameter(
        2, ge=1, le=10, title="Lowest charge tried", group=_PRECURSOR, help="Where the file gives no charge, charges from here are tried."
    )
    maximum_charge: int = parameter(
        4, ge=1, le=10, title="Highest charge tried", group=_PRECURSOR, help="Where the file gives no charge, charges up to here are tried."
    )
    fragment_tolerance: str = parameter(
        "20 ppm", title="Fragment tolerance", group=_FRAGMENTS, editor="tolerance", help="Error of the fragments' m/z, as 20 ppm or 0.5 Da."
    )
    ion_series: str = parameter(
        "by",
        title="Ion series",
        group=_FRAGMENTS,
        pattern="^[abcxyz]+$",
        editor="ion series",
        help="Fragment ions to match: letters of a, b, c, x, y, z.",
    )
    maximum_fragment_charge: int = parameter(
        2,
        ge=1,
        le=5,
        title="Highest fragment charge",
        group=_FRAGMENTS,
        help="Fragments carry up to so many charges, and one fewer than the precursor.",
    )
    peaks_per_window: int = parameter(
        10,
        ge=1,
        le=100,
        title="Peaks kept in a window",
        group=_SPECTRA,
        advanced=True,
        help="The most intense peaks of each window are kept.",
    )
    window_width: float = parameter(
        100.0, ge=5, le=2000, title="Window", unit="Th", group=_SPECTRA, advanced=True, help="Width of that window."
    )
    minimum_fragment_mz: float = parameter(
        100.0, ge=0, le=1000, title="Lowest fragment", unit="Th", group=_SPECTRA, advanced=True, help="Peaks below are not used."
    )
    minimum_peaks: int = parameter(
        6, ge=1, le=100, title="Fewest peaks", group=_SPECTRA, advanced=True, help="Spectra with fewer peaks are not searched."
    )
    precursor_removal: float = parameter(
        1.5,
        ge=0,
        le=20,
        title="Precursor removal",
        unit="Th",
        group=_SPECTRA,
        advanced=True,
        help="Peaks so near the precursor are removed; 0 keeps them.",
    )
    deisotope: bool = parameter(
        True, title="Remove isotope peaks", group=_SPECTRA, advanced=True, help="Remove peaks that are isotopes of a larger one."
    )
    intensity_transform: Literal["none", "square-root", "logarithm", "rank"] = parameter(
        "square-root",
        title="Intensity transform",
        group=_SPECTRA,
        advanced=True,
        help="What is done to intensities before they are compared.",
    )
    score: Literal["spectral-dot-product", "ksdp", "hyperscore", "xcorr"] = parameter(
        "hyperscore",
        title="Score",
        group=_SCORING,
        help="Score that ranks the candidates of a spectrum; all four are reported. Scales are this program's own.",
    )
    hits_per_spectrum: int = parameter(
        1,
        ge=1,
        le=20,
        title="Hits for a spectrum",
        group=_SCORING,
        help="Candidates that are reported for each spectrum, best first. Only the first of a spectrum competes and has a q-value.",
    )
    minimum_matched_ions: int = parameter(
        2,
        ge=1,
        le=50,
        title="Fewest matched ions",
        group=_SCORING,
        advanced=True,
        help="Candidates with fewer matched fragment ions are not reported.",
    )
    correlation_bin: float = parameter(
        0.02,
        ge=0.005,
        le=2,
        title="XCorr bin",
        unit="Th",
        group=_SCORING,
        advanced=True,
        help="Width of XCorr's bins: 1.0005 for low resolution.",
    )
    ksdp_window: int = parameter(
        5,
        ge=1,
        le=20,
        title="KSDP window",
        unit="ions",
        group=_SCORING,
        advanced=True,
        help="Consecutive ions that KSDP looks at together.",
    )
    ksdp_power: float = parameter(
        3.0, ge=1, le=6, title="KSDP power", group=_SCORING, advanced=True, help="Power by which KSDP favours runs of ions."
    )
    decoys: Literal["reverse", "pseudo-reverse", "shuffle", "existing", "none"] = parameter(
        "reverse", title="Decoys", group=_DATABASE, help="How decoys are made; 'existing' takes those of the database, known by the prefix."
    )
    decoy_prefix: str = parameter(
        "DECOY_", min_length=1, max_length=40, title="Decoy prefix", group=_DATABASE, help="What the accessions of decoys begin with."
    )
    contaminants: tuple[str, ...] = parameter(
        (),
        title="Contaminants",
        group=_DATABASE,
        editor="protein files",
        help="FASTA files with contaminants to search besides the database.",
    )
    second_pass: bool = parameter(
        False,
        title="Second pass",
        group=_SECOND,
        help="Search what stays unidentified again, on the proteins found, with the modifications below.",
    )
    second_pass_modifications: tuple[str, ...] = parameter(
        ("Oxidation (M)", "Deamidated (NQ)", "Gln->pyro-Glu (N-term Q)", "Acetyl (Protein N-term)"),
        title="Modifications of the second pass", group=_SECOND, editor="modifications", help="Variable modifications of the second pass.",
    )  # fmt: skip
    second_pass_specificity: Literal["specific", "semi-specific", "non-specific"] = parameter(
        "semi-specific",
        title="Specificity of the second pass",
        group=_SECOND,
        help="Ends of a peptide that the enzyme must have cut in the second pass.",
    )
    fdr: float = parameter(
        0.01, gt=0, le=0.5, title="False discovery rate", group=_STATISTICS, help="Results are counted at this false discovery rate."
    )
    plus_one: bool = parameter(
        False, title="Add one decoy", group=_STATISTICS, advanced=True,
        help="Estimate the rate as (decoys + 1) / targets, which is never too low on average but needs many targets.",
    )  # fmt: skip
    rescoring: Literal["automatic", "off"] = parameter(
        "automatic",
        title="Rescoring",
        group=_STATISTICS,
        help="Learn from the data how to weigh the scores (needs enough targets), or keep the score.",
    )
    predicted_intensities: bool = parameter(
        True,
        title="Predicted intensities",
        group=_STATISTICS,
        help="Rescoring also compares the heights of the peaks with those predicted for the peptide, and corrected by the run itself. For b"
        " and y ions; not for the labels TMT and iTRAQ.",
    )
    index_memory: int = parameter(
        512,
        ge=64,
        le=65536,
        title="Memory for indexing",
        unit="MB",
        group=_RESOURCES,
        advanced=True,
        help="Larger indexes, of peptides or of fragment ions, are made in partitions of mass.",
    )
    device_memory: int = parameter(
        0,
        ge=0,
        le=1048576,
        title="Memory of a GPU",
        unit="MB",
        group=_RESOURCES,
        advanced=True,
        help="What a search allocates on each GPU takes no more; CUDA itself takes some hundred MB besides. 0: what is free.",
    )

    @field_validator("enzyme")
    @classmethod
    def _known_enzyme(cls, value: str) -> str:
        return _asking(lambda: enzyme(value).name)

    @field_validator("precursor_tolerance", "fragment_tolerance")
    @classmethod
    def _a_tolerance(cls, value: str, info: ValidationInfo) -> str:
        tolerance = _asking(lambda: Tolerance.parse(value))
        widest = _WIDEST_PRECURSOR if info.field_name == "precursor_tolerance" else _WIDEST_FRAGMENT
        if tolerance.value > widest[tolerance.unit]:
            raise ValueError(f"wider than any search has use for; expected at most {widest['ppm']:,} ppm or {widest['Da']:,} Da")
        return str(tolerance)

    @field_validator("fixed_modifications", "variable_modifications", "second_pass_modifications")
    @classmethod
    def _known_modifications(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _asking(lambda: tuple(str(parse_modification(one)) for one in value))

    @field_validator("isotope_errors")
    @classmethod
    def _some_isotope_errors(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < -3 or max(value) > 5:
            raise ValueError("expected whole numbers from -3 to 5, as 0, 1, 2")
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        for low, high in (("minimum_length", "maximum_length"), ("minimum_mass", "maximum_mass"), ("minimum_charge", "maximum_charge")):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} = {getattr(self, low)} is greater than {high} = {getattr(self, high)}")
        for name in self.fixed_modifications:
            modification = parse_modification(name)
            if modification.position.startswith("protein") or (modification.position != "anywhere" and modification.residues):
                raise ValueError(
                    f"fixed_modifications = '{name}': only residues, or every N-term or C-term, can be fixed; make it variable"
                )
            if modification.position == "anywhere" and not modification.residues:
                raise ValueError(f"fixed_modifications = '{name}': expected the residues that carry it, as Carbamidomethyl (C)")
        return self


def _asking(question):  # type: ignore[no-untyped-def]
    """The answer, with the program's own complaint turned into the one that pydantic collects."""
    try:
        return question()
    except ParameterError as error:
        raise ValueError(str(error)) from None
