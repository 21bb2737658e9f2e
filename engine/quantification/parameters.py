"""Parameters of quantification: the one place where each exists."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.quantification.labels import LabelName

__all__ = ["QuantificationParameters"]

_WHICH, _TRACES, _TRANSFERS, _REPORTERS, _PROTEINS, _CHANGES = (
    "Quantities",
    "Ion traces (MS1)",
    "Match between runs",
    "Reporter ions",
    "Proteins",
    "Comparison",
)
_MAXIMUM_NAMES = 1000


class QuantificationParameters(SearchParameters):
    """Parameters that, with identification and design, determine the quantities."""

    run: tuple[str, ...] = parameter(
        (),
        title="Runs",
        group=_WHICH,
        help="Comma-separated identifications whose files are quantified together; the newest if empty.",
    )
    method: Literal["label-free", "tmt", "counts"] = parameter(
        "label-free",
        title="Method",
        group=_WHICH,
        help="label-free: areas of MS1 ion traces; tmt: reporter ions of isobaric labels; counts: spectral counts, which"
        " saturate and underestimate changes.",
    )
    psm_fdr: float = parameter(0.01, gt=0, le=1, title="PSM FDR", group=_WHICH, help="Maximum q-value of the quantified PSMs.")
    protein_fdr: float = parameter(
        0.01, gt=0, le=1, title="Protein FDR", group=_WHICH, help="Maximum q-value of the quantified protein groups."
    )

    precursor_tolerance: Tolerance = parameter(
        Tolerance(10, "ppm"),
        title="MS1 tolerance",
        group=_TRACES,
        editor="tolerance",
        help="Maximum distance between an MS1 peak and the m/z of an isotope.",
    )
    isotopes: int = parameter(
        3,
        ge=2,
        le=6,
        title="Number of isotopes",
        group=_TRACES,
        help="Number of isotope peaks that are traced, starting with the monoisotopic peak.",
    )
    retention_window: float = parameter(
        120.0,
        gt=0,
        le=3600,
        title="Retention time window",
        unit="s",
        group=_TRACES,
        help="Time before the first and after the last spectrum of an ion in which its trace is searched for.",
    )
    maximum_gap: int = parameter(
        2,
        ge=0,
        le=20,
        title="Maximum gap",
        unit="MS1 spectra",
        group=_TRACES,
        advanced=True,
        help="Maximum number of consecutive MS1 spectra (of one voltage with FAIMS) without the ion within its trace.",
    )
    minimum_points: int = parameter(
        3,
        ge=2,
        le=100,
        title="Minimum number of points",
        unit="MS1 spectra",
        group=_TRACES,
        advanced=True,
        help="Traces with fewer MS1 spectra are not quantified.",
    )
    minimum_agreement: float = parameter(
        0.9,
        ge=0,
        le=1,
        title="Minimum isotope agreement",
        group=_TRACES,
        help="Minimum cosine between the areas of the isotopes and their expected pattern; other traces are not quantified.",
    )

    match_between_runs: bool = parameter(
        False,
        title="Match between runs",
        group=_TRANSFERS,
        help="Also quantify ions that were identified only in other files, at their aligned retention time.",
    )
    transfer_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Transfer FDR",
        group=_TRANSFERS,
        help="Maximum fraction of transferred ions that are absent, estimated by transfers to shifted masses. Wrong identities"
        " are limited by the donor FDR.",
    )
    donor_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Donor peptide FDR",
        group=_TRANSFERS,
        advanced=True,
        help="Maximum q-value, over all files, of the peptides whose ions are transferred to other files; their proteins must be accepted.",
    )

    label: LabelName = parameter(
        "tmt-10", title="Label", group=_REPORTERS, help="Isobaric labelling kit: TMT with 6 to 18 channels, or iTRAQ with 4 or 8."
    )
    reporter_tolerance: Tolerance = parameter(
        Tolerance(0.003, "Da"),
        title="Reporter tolerance",
        group=_REPORTERS,
        editor="tolerance",
        help="Maximum distance between a peak and the m/z of a reporter ion; N and C channels are 0.006 Th apart.",
    )
    reporter_level: Literal["automatic", "ms2", "ms3"] = parameter(
        "automatic",
        title="Reporter ion level",
        group=_REPORTERS,
        help="Spectra whose reporter ions are measured: the identified spectra (ms2), the MS3 spectra made from them (ms3), or"
        " MS3 if a file has such spectra (automatic).",
    )
    reporter_peak: Literal["most-intense", "nearest"] = parameter(
        "most-intense",
        title="Reporter peak",
        group=_REPORTERS,
        advanced=True,
        help="Peak that counts if several are within the tolerance: the most intense, or the nearest to the reporter ion.",
    )
    maximum_interference: float = parameter(
        0.5,
        ge=0,
        le=1,
        title="Maximum interference",
        group=_REPORTERS,
        help="Maximum fraction of other ions in the isolation window, measured in MS1; spectra with more are not quantified. 1"
        " accepts all.",
    )
    minimum_signal_to_noise: float = parameter(
        0.0,
        ge=0,
        le=1e6,
        title="Minimum signal-to-noise ratio",
        group=_REPORTERS,
        help="Minimum mean signal-to-noise ratio of the reporter ions of a spectrum, if the file contains noise values; 0 accepts all.",
    )
    peptide_quantity: Literal["sum", "median"] = parameter(
        "sum", title="Peptide quantity", group=_REPORTERS, help="Sum or median of the reporter ions of a peptidoform's spectra."
    )
    reference: str = parameter(
        "",
        title="Reference condition",
        group=_REPORTERS,
        help="Condition of the design whose channels contain the same pool in each plex, used to scale the plexes; none if empty.",
    )

    protein_quantity: Literal["maxlfq", "top-3", "sum", "median"] = parameter(
        "maxlfq",
        title="Protein quantity",
        group=_PROTEINS,
        help="maxlfq: pairwise medians of the ratios of ions; top-3, sum, median: sum of the three most abundant peptides, sum,"
        " or median. A peptide that is missing in a sample lowers its sum.",
    )
    shared_peptides: Literal["razor", "unique"] = parameter(
        "razor",
        title="Shared peptides",
        group=_PROTEINS,
        help="razor: counted for the protein with the most peptides; unique: not counted.",
    )

    conditions: tuple[str, ...] = parameter(
        (),
        title="Conditions",
        group=_CHANGES,
        help="Conditions of the design to compare; the first is the one that others are compared with. All if empty.",
    )
    normalisation: Literal["median", "none"] = parameter(
        "median",
        title="Normalisation",
        group=_CHANGES,
        help="median: scale samples to the same median ion, and compared conditions to unchanged proteins; none: no scaling.",
    )
    imputation: Literal["none", "low"] = parameter(
        "none",
        title="Imputation",
        group=_CHANGES,
        help="none: missing quantities stay missing; low: if a protein has no value in one condition and at least two in the other, its"
        " missing quantities become the lowest percentile of the sample. Tables and summary give the number of imputed values.",
    )
    change_fdr: float = parameter(
        0.01, gt=0, le=1, title="FDR of changes", group=_CHANGES, help="Maximum q-value of the proteins that count as changed."
    )

    @field_validator("run", "conditions")
    @classmethod
    def _are_different(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
        if len(names) > _MAXIMUM_NAMES:
            raise ValueError(f"expected at most {_MAXIMUM_NAMES:,} names")
        return names
