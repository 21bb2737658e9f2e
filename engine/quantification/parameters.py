"""Parameters of quantification."""

from typing import Literal

from pydantic import field_validator

from proteoscope.engine.chemistry.tolerance import Tolerance
from proteoscope.engine.parameters import SearchParameters, parameter
from proteoscope.engine.quantification.labels import LabelName

__all__ = ["QuantificationParameters"]

_WHICH, _TRACES, _TRANSFERS, _REPORTERS, _PROTEINS, _SITES, _CHANGES = (
    "Quantities",
    "Ion traces (MS1)",
    "Match between runs",
    "Reporter ions",
    "Proteins",
    "Sites",
    "Comparison",
)
_MAXIMUM_NAMES = 20_000


class QuantificationParameters(SearchParameters):
    """Parameters that, together with identification and design, determine the quantities."""

    run: tuple[str, ...] = parameter(
        (),
        title="Runs",
        group=_WHICH,
        help="Names of the identification runs whose files are quantified together, separated by commas. Empty: the newest run.",
    )
    method: Literal["label-free", "tmt", "counts"] = parameter(
        "label-free",
        title="Method",
        group=_WHICH,
        help="label-free: areas of MS1 ion traces; tmt: reporter ions of TMT or iTRAQ; counts: spectral counts, which saturate"
        " and underestimate changes.",
    )
    psm_fdr: float = parameter(0.01, gt=0, le=1, title="PSM FDR", group=_WHICH, help="Maximum q-value of the PSMs that are quantified.")
    protein_fdr: float = parameter(
        0.01, gt=0, le=1, title="Protein FDR", group=_WHICH, help="Maximum q-value of the protein groups that are quantified."
    )

    precursor_tolerance: Tolerance = parameter(
        Tolerance(10, "ppm"),
        title="MS1 tolerance",
        group=_TRACES,
        editor="tolerance",
        help="Maximum difference between the m/z of an MS1 peak and the expected m/z of an isotope peak of the ion.",
    )
    isotopes: int = parameter(
        3,
        ge=2,
        le=6,
        title="Number of isotopes",
        group=_TRACES,
        help="Number of isotope peaks of an ion that are traced, starting with the monoisotopic peak.",
    )
    retention_window: float = parameter(
        120.0,
        gt=0,
        le=3600,
        title="Retention time window",
        unit="s",
        group=_TRACES,
        help="Time before the first and after the last identified spectrum of an ion in which its trace is searched for.",
    )
    maximum_gap: int = parameter(
        2,
        ge=0,
        le=20,
        title="Maximum gap",
        unit="MS1 spectra",
        group=_TRACES,
        advanced=True,
        help="Maximum number of consecutive MS1 spectra without a peak of the ion within its trace. With FAIMS, only spectra of"
        " the same voltage count.",
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
        title="Minimum isotope pattern similarity",
        group=_TRACES,
        help="Minimum cosine between the measured areas of the isotope peaks and the expected isotope pattern. Traces below this"
        " are not quantified.",
    )

    match_between_runs: bool = parameter(
        False,
        title="Match between runs",
        group=_TRANSFERS,
        help="Also quantify ions in files where they were not identified, at the retention time aligned with the other files.",
    )
    transfer_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Transfer FDR",
        group=_TRANSFERS,
        help="Maximum estimated fraction of false transfers. The estimate covers ions that are absent from the file, by transfers to random"
        " times, and wrong identifications, by transfers of decoy peptides.",
    )
    donor_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="Donor peptide FDR",
        group=_TRANSFERS,
        advanced=True,
        help="Maximum q-value, over all files, of the peptides that are transferred to other files. Their proteins must also be accepted.",
    )

    label: LabelName = parameter(
        "tmt-10", title="Label", group=_REPORTERS, help="Isobaric label: TMT with 6 to 18 channels, or iTRAQ with 4 or 8 channels."
    )
    reporter_tolerance: Tolerance = parameter(
        Tolerance(0.003, "Da"),
        title="Reporter tolerance",
        group=_REPORTERS,
        editor="tolerance",
        help="Maximum difference between the m/z of a peak and of a reporter ion. N and C channels of TMT are 0.006 Th apart.",
    )
    reporter_level: Literal["automatic", "ms2", "ms3"] = parameter(
        "automatic",
        title="MS level of reporter ions",
        group=_REPORTERS,
        help="Spectra in which reporter ions are measured. ms2: the identified spectra; ms3: the MS3 spectra made from them;"
        " automatic: MS3 if the file has such spectra, otherwise MS2.",
    )
    reporter_peak: Literal["most-intense", "nearest"] = parameter(
        "most-intense",
        title="Reporter peak",
        group=_REPORTERS,
        advanced=True,
        help="Peak that is measured if several are within the reporter tolerance: the most intense, or the nearest to the reporter ion.",
    )
    maximum_interference: float = parameter(
        0.5,
        ge=0,
        le=1,
        title="Maximum interference",
        group=_REPORTERS,
        help="Maximum fraction of the MS1 intensity in the isolation window that belongs to other ions. Spectra above this are"
        " not quantified; 1 accepts all.",
    )
    minimum_signal_to_noise: float = parameter(
        0.0,
        ge=0,
        le=1e6,
        title="Minimum signal-to-noise ratio",
        group=_REPORTERS,
        help="Minimum signal-to-noise ratio of the reporter ions, averaged over the channels of a spectrum, for files with noise"
        " values. Spectra below this are not quantified; 0 accepts all.",
    )
    peptide_quantity: Literal["sum", "median"] = parameter(
        "sum",
        title="Peptide quantity",
        group=_REPORTERS,
        help="How the reporter intensities of all spectra of a peptidoform are combined: sum or median.",
    )
    reference: str = parameter(
        "",
        title="Reference condition",
        group=_REPORTERS,
        help="Condition that marks the reference channels in the design. Reference channels contain the same pooled sample in each"
        " plex, and plexes are scaled to them. Empty: no reference.",
    )

    protein_quantity: Literal["maxlfq", "top-3", "sum", "median"] = parameter(
        "maxlfq",
        title="Protein quantity",
        group=_PROTEINS,
        help="maxlfq: from the median ion ratio of each pair of samples (MaxLFQ). top-3: sum of the three most abundant peptides."
        " sum, median: of all peptides; a missing peptide lowers the sum.",
    )
    shared_peptides: Literal["razor", "unique"] = parameter(
        "razor",
        title="Shared peptides",
        group=_PROTEINS,
        help="How peptides of several proteins are used. razor: for the protein with the most peptides; unique: not at all.",
    )

    minimum_site_probability: float = parameter(
        0.75,
        ge=0,
        le=1,
        title="Minimum site probability",
        group=_SITES,
        help="If the identification localised modifications, a site is quantified from the peptidoforms in which its probability is"
        " at least this.",
    )

    conditions: tuple[str, ...] = parameter(
        (),
        title="Conditions",
        group=_CHANGES,
        help="Conditions of the design to compare, separated by commas. The first is compared with all others. Empty: all conditions.",
    )
    normalisation: Literal["median", "none"] = parameter(
        "median",
        title="Normalisation",
        group=_CHANGES,
        help="median: scale samples to the same median ion intensity, and centre fold changes on the unchanged proteins; none: no scaling.",
    )
    imputation: Literal["none", "low"] = parameter(
        "none",
        title="Imputation",
        group=_CHANGES,
        help="none: missing quantities stay missing. low: if a protein has no quantity in one condition and at least two in the"
        " other, its missing quantities are set to the lowest percentile of the sample.",
    )
    change_fdr: float = parameter(
        0.01,
        gt=0,
        le=1,
        title="FDR of changed proteins",
        group=_CHANGES,
        help="Maximum q-value of proteins that are reported as changed between conditions.",
    )

    @field_validator("run", "conditions")
    @classmethod
    def _unique_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
        if len(names) > _MAXIMUM_NAMES:
            raise ValueError(f"expected at most {_MAXIMUM_NAMES:,} names")
        return names
