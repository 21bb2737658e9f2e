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
        help="Identifications whose files are quantified together, commas between; the newest alone where it is empty.",
    )
    method: Literal["label-free", "tmt", "counts"] = parameter(
        "label-free",
        title="Method",
        group=_WHICH,
        help="Areas of ion traces in MS1 (label-free), reporter ions of isobaric labels (tmt), or numbers of spectra (counts), which"
        " saturate and show changes smaller than they are.",
    )
    psm_fdr: float = parameter(
        0.01, gt=0, le=1, title="PSMs up to", group=_WHICH, help="Matches of spectra up to this q-value are quantified."
    )
    protein_fdr: float = parameter(
        0.01, gt=0, le=1, title="Proteins up to", group=_WHICH, help="Protein groups up to this q-value are quantified."
    )

    precursor_tolerance: Tolerance = parameter(
        Tolerance(10, "ppm"),
        title="MS1 tolerance",
        group=_TRACES,
        editor="tolerance",
        help="Maximum distance of a peak of an MS1 spectrum from the m/z of an isotope.",
    )
    isotopes: int = parameter(
        3,
        ge=2,
        le=6,
        title="Isotopes",
        group=_TRACES,
        help="How many peaks of the isotope pattern are followed, from the monoisotopic one.",
    )
    retention_window: float = parameter(
        120.0,
        gt=0,
        le=3600,
        title="Window",
        unit="s",
        group=_TRACES,
        help="Time before and after its spectra in which the trace of an ion is followed.",
    )
    maximum_gap: int = parameter(
        2,
        ge=0,
        le=20,
        title="Gap",
        unit="MS1 spectra",
        group=_TRACES,
        advanced=True,
        help="Maximum number of consecutive MS1 spectra, with FAIMS of one voltage, that may lack the ion within its trace.",
    )
    minimum_points: int = parameter(
        3,
        ge=2,
        le=100,
        title="Minimum number of points",
        unit="MS1 spectra",
        group=_TRACES,
        advanced=True,
        help="A trace in fewer MS1 spectra is too low to be measured.",
    )
    minimum_agreement: float = parameter(
        0.9,
        ge=0,
        le=1,
        title="Isotope agreement from",
        group=_TRACES,
        help="Cosine between the areas of the isotopes and the pattern of the formula, below which a trace is refused.",
    )

    match_between_runs: bool = parameter(
        False,
        title="Match between runs",
        group=_TRANSFERS,
        help="Also measure ions where another file identified them, at their aligned time.",
    )
    transfer_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Transfers up to",
        group=_TRANSFERS,
        help="Maximum share of transferred ions that are not there, estimated by transfers to shifted masses. Wrong identities are limited"
        " by the maximum q-value of donors.",
    )
    donor_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Donor peptides up to",
        group=_TRANSFERS,
        advanced=True,
        help="Maximum q-value, over all files together, of the peptides whose ions are looked for in other files; their proteins are"
        " accepted.",
    )

    label: LabelName = parameter(
        "tmt-10", title="Label", group=_REPORTERS, help="Kit of the isobaric label: TMT of 6 to 18 channels, or iTRAQ of 4 or 8."
    )
    reporter_tolerance: Tolerance = parameter(
        Tolerance(0.003, "Da"),
        title="Reporter tolerance",
        group=_REPORTERS,
        editor="tolerance",
        help="How far a peak may be from the m/z of a channel's reporter ion; channels of N and C are 0.006 apart.",
    )
    reporter_level: Literal["automatic", "ms2", "ms3"] = parameter(
        "automatic",
        title="Read from",
        group=_REPORTERS,
        help="The identified spectra (ms2), those of MS3 made from them (ms3), or MS3 where a file has such spectra (automatic).",
    )
    reporter_peak: Literal["most-intense", "nearest"] = parameter(
        "most-intense",
        title="Of several peaks",
        group=_REPORTERS,
        advanced=True,
        help="Which peak within the tolerance counts: the most intense, or the nearest to the channel.",
    )
    maximum_interference: float = parameter(
        0.5,
        ge=0,
        le=1,
        title="Interference up to",
        group=_REPORTERS,
        help="Spectra whose isolation window holds a larger part of other ions in MS1 are refused; 1 refuses none.",
    )
    minimum_signal_to_noise: float = parameter(
        0.0,
        ge=0,
        le=1e6,
        title="Signal-to-noise from",
        group=_REPORTERS,
        help="Minimum mean signal-to-noise ratio of the reporter ions of a spectrum, if the file contains noise values; 0 refuses none.",
    )
    peptide_quantity: Literal["sum", "median"] = parameter(
        "sum", title="Peptides by", group=_REPORTERS, help="Sum or median of the reporter ions of a peptidoform's spectra."
    )
    reference: str = parameter(
        "",
        title="Reference",
        group=_REPORTERS,
        help="Condition of the design whose channels hold the same pool in each plex, by which plexes are scaled; none where it is empty.",
    )

    protein_quantity: Literal["maxlfq", "top-3", "sum", "median"] = parameter(
        "maxlfq",
        title="Proteins by",
        group=_PROTEINS,
        help="Pairwise medians of the ratios of ions (maxlfq), or of the amounts of peptides the sum of the three most abundant (top-3),"
        " the sum or the median; a peptide that a sample lacks lowers its sum.",
    )
    shared_peptides: Literal["razor", "unique"] = parameter(
        "razor",
        title="Shared peptides",
        group=_PROTEINS,
        help="Count for the protein with the most peptides (razor), or for none (unique).",
    )

    groups: tuple[str, ...] = parameter(
        (),
        title="Conditions",
        group=_CHANGES,
        help="Conditions of the design that are compared, the one that others are compared with first; all of them where it is empty.",
    )
    normalisation: Literal["median", "none"] = parameter(
        "median",
        title="Normalisation",
        group=_CHANGES,
        help="Samples are scaled so that the median ion is the same in all, and compared conditions so that the proteins that do not change"
        " are (median), or left as they are (none).",
    )
    imputation: Literal["none", "low"] = parameter(
        "none",
        title="Missing quantities",
        group=_CHANGES,
        help="Stay missing (none), or become the lowest percent of the sample (low), where a condition lacks a protein that has two"
        " measured values in the other; tables and summary count them.",
    )
    change_fdr: float = parameter(
        0.01, gt=0, le=1, title="Changes up to", group=_CHANGES, help="Proteins that change up to this q-value are counted as changed."
    )

    @field_validator("run", "groups")
    @classmethod
    def _are_different(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
        if len(names) > _MAXIMUM_NAMES:
            raise ValueError(f"expected at most {_MAXIMUM_NAMES:,} names")
        return names
