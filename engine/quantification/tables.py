"""Columns of the tables of quantities."""

import sys

import numpy as np

from proteoscope.engine.formats.protein_names import NAMES
from proteoscope.engine.quantification.design import BLOCKS
from proteoscope.engine.results.columns import Column, Rule, Table

__all__ = [
    "BY_SAMPLE",
    "CHANGES",
    "ION_TRACES",
    "MISSING",
    "PEPTIDES",
    "PEPTIDOFORMS",
    "PROTEINS",
    "REPORTER_IONS",
    "SAMPLES",
    "SITE_PEPTIDOFORMS",
    "SITE_QUANTITIES",
    "SITE_TABLES",
    "TABLES",
    "table_file_name",
    "wide_table_file_name",
]

_ACCESSION = Column("accession", "Protein", "Accession of the first protein in the group", width=18, entries="proteins")
_LARGEST = sys.float_info.max
"""Bound of numbers with any finite value, so that infinite numbers in an untrusted table are refused."""
_OF_PROTEIN = Column(
    "accession", "Protein", "Accession of the protein to which the peptide is assigned", width=18, is_nullable=True, entries="proteins"
)
_DESCRIPTION = Column("description", "Description", "Description of the protein in the database", width=40)
_SAMPLE = Column("sample", "Sample", "Name of the sample in the design", width=16)
_CONDITION = Column("condition", "Condition", "Condition of the sample in the design", width=12, is_nullable=True)
_REPLICATE = Column("replicate", "Replicate", "Number of the sample within its condition", "integer", 8, is_nullable=True)
_QUANTITY = Column(
    "quantity",
    "Quantity",
    "Normalised area of ion traces (label-free), reporter ion intensity (TMT, iTRAQ), or number of spectra (counts; for proteins NSAF)",
    "number",
    12,
    is_nullable=True,
    low=0,
    saved=".6g",
)
_LOG = Column(
    "log2_quantity", "log2", "Base-2 logarithm of the quantity", "number", 8, 3, is_nullable=True, low=-_LARGEST, high=_LARGEST, saved=".4f"
)
_STATES = "measured|transferred|too low|refused|no shared ion|not seen"
_STATE = Column(
    "state",
    "State",
    "State of the quantity: measured; transferred from another file; too low to be measured; refused because the trace"
    " belongs to another ion; no shared ion, so that there is no ratio to other samples; not seen",
    width=11,
    pattern=_STATES,
)
_PSMS = Column("n_psms", "PSMs", "Number of PSMs in the sample", "integer", 6, low=0)
_PEPTIDE = Column("peptide", "Peptide", "Peptide sequence with modifications, in ProForma", width=26)
_CHARGE = Column("charge", "z", "Charge of the precursor", "integer", 3, type="int8", low=1)
_FILE = Column("file", "File", "Name of the spectrum file", width=20)
_IDENTIFIED = "identified in this file, or transferred at the retention time of another file"


def _time_of_trace(name: str, title: str, description: str) -> Column:
    return Column(name, title, description, "minutes", 8, unit="s", is_nullable=True, low=-_LARGEST, high=_LARGEST, saved=".4f")


PROTEINS = Table.from_columns(
    "protein_quantities",
    "Proteins by sample",
    (
        _ACCESSION,
        Column(
            "other_accessions",
            "Others",
            "Accessions of the other proteins in the group, which contain the same peptides",
            "texts",
            20,
            is_shown=False,
        ),
        _DESCRIPTION,
        _SAMPLE,
        _CONDITION,
        _REPLICATE,
        _QUANTITY,
        _LOG,
        _STATE,
        Column("n_peptides", "Peptides", "Number of the protein's peptides with a quantity in the sample", "integer", 8, low=0),
        _PSMS,
        Column(
            "nsaf",
            "NSAF",
            "Normalised spectral abundance factor: number of spectra divided by the protein's length, as a fraction of the sum"
            " over all proteins of the sample",
            "number",
            10,
            6,
            is_nullable=True,
            low=0,
            high=1,
            saved=".6g",
        ),
        *NAMES,
    ),
    shown="accession gene sample condition replicate quantity log2_quantity state n_peptides n_psms nsaf description organism "
    "other_accessions",
    links="accession",
    saved="accession other_accessions description sample condition replicate quantity log2_quantity state n_peptides n_psms nsaf "
    "gene organism",
)
CHANGES = Table.from_columns(
    "protein_changes",
    "Changed proteins",
    (
        Column("comparison", "Comparison", "Compared conditions, as first condition / reference condition", width=20),
        _ACCESSION,
        _DESCRIPTION,
        Column(
            "log2_fold_change",
            "log2 change",
            "Mean log2 quantity in the first condition minus the mean in the reference condition",
            "number",
            10,
            3,
            is_nullable=True,
            saved=".4f",
        ),
        Column(
            "low",
            "95 % lower",
            "Lower end of the 95 % confidence interval of the log2 change",
            "number",
            8,
            3,
            is_nullable=True,
            saved=".4f",
        ),
        Column(
            "high",
            "95 % upper",
            "Upper end of the 95 % confidence interval of the log2 change",
            "number",
            8,
            3,
            is_nullable=True,
            saved=".4f",
        ),
        Column("t", "t", "Moderated t statistic of the log2 change", "number", 8, 3, is_nullable=True, saved=".4f"),
        Column("p_value", "p-value", "Two-sided p-value of the moderated t-test", "probability", 9, is_nullable=True),
        Column(
            "q_value",
            "q-value",
            "q-value among all tested proteins of the comparison (Benjamini-Hochberg)",
            "probability",
            9,
            is_nullable=True,
        ),
        Column(
            "outcome",
            "Outcome",
            "changed or unchanged: tested at the FDR of changed proteins; only here: quantified only in the first condition; only there:"
            " only in the reference condition; not tested: too few values; no shared ion: no ratio; absent: quantified in neither",
            width=12,
            pattern="changed|unchanged|only here|only there|not tested|no shared ion|absent",
        ),
        Column("n_first", "Samples", "Number of samples of the first condition in which the protein is quantified", "integer", 7, low=0),
        Column(
            "n_second",
            "Reference samples",
            "Number of samples of the reference condition in which the protein is quantified",
            "integer",
            9,
            low=0,
        ),
        Column(
            "n_too_low",
            "Too low",
            "Number of samples of both conditions in which the protein is too low to be measured",
            "integer",
            7,
            low=0,
        ),
        Column("n_not_seen", "Not seen", "Number of samples of both conditions in which the protein was not observed", "integer", 8, low=0),
        Column(
            "n_imputed",
            "Imputed",
            "Number of samples of both conditions with an imputed quantity; they do not count as measured",
            "integer",
            8,
            low=0,
        ),
        *NAMES,
    ),
    shown="comparison accession gene log2_fold_change low high q_value p_value t outcome n_first n_second n_too_low n_not_seen n_imputed "
    "description organism",
    links="accession",
    saved="comparison accession description log2_fold_change low high t p_value q_value outcome n_first n_second n_too_low n_not_seen "
    "n_imputed gene organism",
)
MISSING = Table.from_columns(
    "missing_values",
    "Missing values by condition",
    (
        _ACCESSION,
        _DESCRIPTION,
        Column("condition", "Condition", "Condition of the samples", width=12),
        Column("n_samples", "Samples", "Number of samples of the condition", "integer", 7, low=1),
        Column("n_missing", "Missing", "Number of samples of the condition in which the protein has no quantity", "integer", 7, low=0),
        Column(
            "missing_fraction",
            "Fraction",
            "Fraction of the condition's samples without a quantity",
            "number",
            8,
            3,
            low=0,
            high=1,
            saved=".4f",
        ),
        Column(
            "p_value",
            "p-value",
            "Two-sided p-value of Fisher's exact test: samples without a quantity in this condition against those in all others",
            "probability",
            9,
            is_nullable=True,
        ),
        Column(
            "q_value",
            "q-value",
            "q-value among all tested proteins and conditions (Benjamini-Hochberg)",
            "probability",
            9,
            is_nullable=True,
        ),
        Column(
            "outcome",
            "Outcome",
            "measured in all samples of the condition; partly missing; missing in the condition: missing in all its samples, but not in all"
            " other samples; missing in all conditions",
            width=18,
            pattern="measured|partly missing|missing in the condition|missing in all",
        ),
        *NAMES,
    ),
    shown="accession gene condition n_samples n_missing missing_fraction p_value q_value outcome description organism",
    links="accession",
    saved="accession description condition n_samples n_missing missing_fraction p_value q_value outcome gene organism",
)
PEPTIDES = Table.from_columns(
    "peptide_quantities",
    "Peptides by sample",
    (
        Column("sequence", "Sequence", "Peptide sequence without modifications", width=24, pattern="[A-Z*]+"),
        _OF_PROTEIN,
        _SAMPLE,
        _CONDITION,
        _REPLICATE,
        _QUANTITY,
        _LOG,
        _STATE,
        _PSMS,
    ),
    shown="sequence accession sample condition replicate quantity log2_quantity state n_psms",
    links="accession",
    saved="sequence accession sample condition replicate quantity log2_quantity state n_psms",
)
PEPTIDOFORMS = Table.from_columns(
    "peptidoform_quantities",
    "Peptidoforms by sample",
    (
        _PEPTIDE,
        Column("sequence", "Sequence", "Peptide sequence without modifications", width=24, is_shown=False, pattern="[A-Z*]+"),
        _OF_PROTEIN,
        _SAMPLE,
        _CONDITION,
        _REPLICATE,
        _QUANTITY,
        _LOG,
        _STATE,
        _PSMS,
    ),
    shown="peptide accession sample condition replicate quantity log2_quantity state n_psms sequence",
    links="accession sequence",
    saved="peptide sequence accession sample condition replicate quantity log2_quantity state n_psms",
)
ION_TRACES = Table.from_columns(
    "ion_traces",
    "Ion traces",
    (
        _PEPTIDE,
        _CHARGE,
        Column("mz", "m/z", "Calculated m/z of the monoisotopic ion", "number", 10, 4, saved=".6f"),
        Column(
            "voltage",
            "CV",
            "FAIMS compensation voltage of the MS1 spectra that contain the trace",
            "number",
            6,
            1,
            unit="V",
            is_nullable=True,
            low=-_LARGEST,
            high=_LARGEST,
            saved="g",
        ),
        _FILE,
        Column(
            "source",
            "Source",
            f"{_IDENTIFIED}, or manual: measured between limits set by the user",
            width=11,
            pattern="identified|transferred|manual",
        ),
        Column(
            "area",
            "Area",
            "Area under the trace, summed over the isotope peaks, in intensity x s; not normalised",
            "number",
            12,
            is_nullable=True,
            low=0,
            saved=".6g",
        ),
        Column(
            "apex",
            "Apex",
            "Maximum intensity of the trace, summed over the isotope peaks",
            "number",
            12,
            is_nullable=True,
            low=0,
            saved=".6g",
        ),
        _time_of_trace("retention_time", "RT", "Retention time of the maximum of the trace"),
        _time_of_trace("begin", "From", "Retention time of the start of the trace"),
        _time_of_trace("end", "To", "Retention time of the end of the trace"),
        Column("width", "Width", "Width of the trace at half its maximum", "number", 7, 1, unit="s", is_nullable=True, low=0, saved=".2f"),
        Column("n_points", "Points", "Number of MS1 spectra that contain the ion", "integer", 6, low=0),
        Column(
            "agreement",
            "Isotopes",
            "Cosine between the measured areas of the isotope peaks and the expected isotope pattern",
            "number",
            8,
            3,
            is_nullable=True,
            low=0,
            high=1.000001,
            saved=".4f",
        ),
        Column(
            "q_value",
            "q-value",
            "Minimum fraction of false transfers at which the transferred ion is accepted",
            "probability",
            8,
            is_nullable=True,
        ),
        Column("refused", "Refused", "Reason why the trace has no quantity", width=30, is_nullable=True),
    ),
    shown="peptide charge mz voltage file source area apex retention_time width n_points agreement q_value refused begin end",
    links="peptide",
    saved="peptide charge mz voltage file source area apex retention_time begin end width n_points agreement q_value refused",
)
REPORTER_IONS = Table.from_columns(
    "reporter_ions",
    "Reporter ions",
    (
        _PEPTIDE,
        _CHARGE,
        _FILE,
        Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=24),
        Column(
            "level",
            "MS",
            "MS level of the spectrum with the reporter ions: 2, or 3 for the MS3 spectrum made from the identified spectrum",
            "integer",
            4,
        ),
        Column("channel", "Channel", "Channel of the isobaric label, such as 127N", width=7),
        _SAMPLE,
        Column("measured", "Measured", "Measured intensity of the reporter ion", "number", 12, is_nullable=True, low=0, saved=".8g"),
        Column(
            "intensity",
            "Intensity",
            "Intensity of the reporter ion, corrected for isotopic impurities if a table of them was given; not normalised",
            "number",
            12,
            is_nullable=True,
            low=0,
            saved=".8g",
        ),
        Column(
            "signal_to_noise",
            "S/N",
            "Signal-to-noise ratio: height of the peak above the baseline, divided by the noise; missing if the file has no noise values",
            "number",
            7,
            1,
            is_nullable=True,
            saved=".6g",
        ),
        Column(
            "mz_error",
            "Error",
            "Measured minus calculated m/z of the reporter ion",
            "number",
            8,
            4,
            is_nullable=True,
            low=-_LARGEST,
            high=_LARGEST,
            saved=".5f",
        ),
        Column(
            "interference",
            "Interference",
            "Fraction of the intensity in the isolation window that does not belong to the precursor, from the MS1 spectra"
            " before and after",
            "number",
            9,
            3,
            is_nullable=True,
            low=0,
            high=1,
            saved=".4f",
        ),
        Column("refused", "Refused", "Reason why the spectrum is not used", width=24, is_nullable=True),
    ),
    shown="peptide charge file spectrum_id level channel sample intensity measured signal_to_noise mz_error interference refused",
    links="peptide",
    saved="peptide charge file spectrum_id level channel sample measured intensity signal_to_noise mz_error interference refused",
)
_OF_SAMPLES = f"sample condition replicate {' '.join(BLOCKS)} parts n_psms n_peptidoforms n_peptides n_proteins n_transferred factor"
SAMPLES = Table.from_columns(
    "quantified_samples",
    "Samples",
    (
        _SAMPLE,
        _CONDITION,
        _REPLICATE,
        *(
            Column(
                name,
                name.capitalize(),
                f"{name.capitalize()} of the sample in the design, a blocking factor of the comparison",
                width=10,
                is_nullable=True,
            )
            for name in BLOCKS
        ),
        Column("parts", "Files", "Spectrum files of the sample", "texts", 30),
        Column("n_psms", "PSMs", "Number of accepted PSMs in the sample", "integer", 7, low=0),
        Column("n_peptidoforms", "Peptidoforms", "Number of quantified peptidoforms", "integer", 11, low=0),
        Column("n_peptides", "Peptides", "Number of quantified peptides", "integer", 8, low=0),
        Column("n_proteins", "Proteins", "Number of quantified proteins", "integer", 8, low=0),
        Column(
            "n_transferred",
            "Transferred",
            "Number of peptidoforms that are quantified only by transfers from other files",
            "integer",
            10,
            low=0,
        ),
        Column("factor", "Factor", "Factor by which the quantities of the sample were multiplied", "number", 9, 4, low=0, saved=".6g"),
    ),
    shown=_OF_SAMPLES,
    saved=_OF_SAMPLES,
    rules=(Rule(("parts",), "contains a sample without files", lambda parts: bool(np.diff(parts.offsets.to_numpy()).all())),),
)

_OF_SITE = (
    Column("accession", "Protein", "Accession of the first protein in the group", width=18, entries="proteins"),
    Column("position", "Position", "Position of the site in the protein, from 1", "integer", 8, type="int32", low=0),
    Column("residue", "Residue", "Residue at the site, or N-term or C-term", width=7, pattern="[A-Z*]|[NC]-term"),
    Column("modification", "Modification", "Name of the modification", width=14),
)
_SITE_PROBABILITY = Column(
    "site_probability",
    "Site prob.",
    "Probability of the site in the best match of the peptidoform; for a site, the probability in its best peptidoform",
    "number",
    9,
    4,
    low=0,
    high=1.001,
)
_SITE_RATE = Column(
    "localisation_q_value",
    "FLR",
    "Minimum false localisation rate at which the site is accepted; missing for peptides with no other possible site",
    "probability",
    9,
    is_nullable=True,
)
SITE_PEPTIDOFORMS = Table.from_columns(
    "site_peptidoforms",
    "Peptidoforms of sites",
    (
        _PEPTIDE,
        *_OF_SITE,
        Column(
            "peptide_position",
            "In peptide",
            "Position of the site in the peptide, from 1; 0 is the N-terminus, and the length plus 1 is the C-terminus",
            "integer",
            8,
            type="int16",
            low=0,
        ),
        _SITE_PROBABILITY,
        _SITE_RATE,
    ),
    shown="accession position residue modification peptide peptide_position site_probability localisation_q_value",
    links="accession",
    saved="peptide accession position residue modification peptide_position site_probability localisation_q_value",
)
"""Table of the localised modifications of peptidoforms, of any probability."""
SITE_QUANTITIES = Table.from_columns(
    "site_quantities",
    "Sites by sample",
    (
        *_OF_SITE,
        _SITE_PROBABILITY,
        _SITE_RATE,
        Column("n_peptidoforms", "Peptidoforms", "Number of peptidoforms with the modification at the site", "integer", 9, low=1),
        _SAMPLE,
        _CONDITION,
        _REPLICATE,
        _QUANTITY,
        _LOG,
        Column(
            "log2_relative",
            "log2 to protein",
            "log2 quantity of the site minus the log2 quantity of the protein's peptidoforms without localised modifications",
            "number",
            10,
            3,
            is_nullable=True,
            low=-_LARGEST,
            high=_LARGEST,
            saved=".4f",
        ),
        _STATE,
    ),
    shown="accession position residue modification sample condition replicate quantity log2_quantity log2_relative state site_probability "
    "localisation_q_value n_peptidoforms",
    links="accession",
    saved="accession position residue modification site_probability localisation_q_value n_peptidoforms sample condition replicate "
    "quantity log2_quantity log2_relative state",
)
"""Table of the quantities of sites with a minimum probability."""
SITE_TABLES = (SITE_QUANTITIES, SITE_PEPTIDOFORMS)
"""Tables of runs that quantify localised modifications."""

TABLES = (PROTEINS, CHANGES, MISSING, PEPTIDES, PEPTIDOFORMS, ION_TRACES, SAMPLES, REPORTER_IONS)
"""Tables of every quantification, from proteins to measurements."""
STORED = (REPORTER_IONS, *SITE_TABLES)
"""Tables that are not shown in lists of results."""
RESULT_TABLES = tuple(table for table in TABLES if table not in STORED)
BY_SAMPLE = (PROTEINS, PEPTIDES, PEPTIDOFORMS, SITE_QUANTITIES)
"""Tables that are also written with one column per sample, if the run has them."""


def table_file_name(table: Table) -> str:
    """Return the file name of a table in text format."""
    return f"{table.name}.tsv"


def wide_table_file_name(table: Table) -> str:
    """Return the file name of a table with one column of quantities per sample."""
    return f"{table.name}_by_sample.tsv"
