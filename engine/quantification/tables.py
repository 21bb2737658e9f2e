"""Columns of the tables of quantities."""

from __future__ import annotations

from proteoscope.engine.formats.protein_names import NAMES
from proteoscope.engine.quantification.design import BLOCKS
from proteoscope.engine.results.columns import Column, Table

__all__ = [
    "BY_SAMPLE",
    "CHANGES",
    "ION_TRACES",
    "PEPTIDES",
    "PEPTIDOFORMS",
    "PROTEINS",
    "REPORTER_IONS",
    "SAMPLES",
    "TABLES",
    "file_of",
    "wide_file_of",
]

_ACCESSION = Column("accession", "Protein", "Accession of the first protein of the group", width=18, entries="proteins")
_OF_PROTEIN = Column(
    "accession", "Protein", "Accession of the protein to which it is assigned", width=18, is_nullable=True, entries="proteins"
)
_DESCRIPTION = Column("description", "Description", "Description in the database", width=40)
_SAMPLE = Column("sample", "Sample", "Name of the sample in the design", width=16)
_CONDITION = Column("condition", "Condition", "Condition of the sample, from the design", width=12, is_nullable=True)
_REPLICATE = Column("replicate", "Replicate", "Number of the sample in its condition", "integer", 8, is_nullable=True)
_QUANTITY = Column(
    "quantity",
    "Quantity",
    "Quantity: normalised area, reporter ion intensity or number of spectra; for proteins by spectra NSAF",
    "number",
    12,
    is_nullable=True,
    low=0,
    saved=".6g",
)
_LOG = Column("log2_quantity", "log2", "Logarithm of the quantity to base 2", "number", 8, 3, is_nullable=True, saved=".4f")
_STATES = "measured|transferred|too low|refused|no shared ion|not seen"
_STATE = Column(
    "state",
    "State",
    "measured; transferred from another file; too low to be measured; refused as the trace of another ion;"
    " without an ion shared with other samples, and thus without a ratio to them; or not observed",
    width=11,
    pattern=_STATES,
)
_PSMS = Column("n_psms", "PSMs", "Number of spectra that identify it in the sample", "integer", 6, low=0)
_PEPTIDE = Column("peptide", "Peptide", "Sequence with modifications, in ProForma", width=26)
_CHARGE = Column("charge", "z", "Charge", "integer", 3, type="int8", low=1)
_FILE = Column("file", "File", "File of spectra", width=20)
_IDENTIFIED = "identified by spectra of this file, or transferred at the retention time of another file"

PROTEINS = Table.of(
    "protein_quantities",
    "Proteins by sample",
    (
        _ACCESSION,
        Column("other_accessions", "Others", "Other proteins of the group, which have the same peptides", "texts", 20, is_shown=False),
        _DESCRIPTION,
        _SAMPLE,
        _CONDITION,
        _REPLICATE,
        _QUANTITY,
        _LOG,
        _STATE,
        Column("n_peptides", "Peptides", "Number of peptides with a quantity in the sample", "integer", 8, low=0),
        _PSMS,
        Column(
            "nsaf",
            "NSAF",
            "Normalised spectral abundance factor: spectra per residue, as a fraction of the sum over all proteins of the sample",
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
CHANGES = Table.of(
    "protein_changes",
    "Changed proteins",
    (
        Column("comparison", "Comparison", "Condition, and the condition that it is compared with", width=20),
        _ACCESSION,
        _DESCRIPTION,
        Column(
            "log2_fold_change",
            "log2 change",
            "Mean log2 quantity minus that of the condition that it is compared with",
            "number",
            10,
            3,
            is_nullable=True,
            saved=".4f",
        ),
        Column("low", "From", "Lower end of the 95 % interval of the log2 change", "number", 8, 3, is_nullable=True, saved=".4f"),
        Column("high", "To", "Upper end of the 95 % interval of the log2 change", "number", 8, 3, is_nullable=True, saved=".4f"),
        Column("t", "t", "Moderated t statistic", "number", 8, 3, is_nullable=True, saved=".4f"),
        Column("p_value", "p-value", "Two-sided p-value of the moderated t-test", "probability", 9, is_nullable=True),
        Column(
            "q_value",
            "q-value",
            "False discovery rate among all tested proteins of the comparison (Benjamini-Hochberg)",
            "probability",
            9,
            is_nullable=True,
        ),
        Column(
            "outcome",
            "Outcome",
            "changed or unchanged at the FDR of changes; only here or only there: quantified in one of the two conditions,"
            " without a test; not tested: fewer than two values in a condition; no shared ion, and thus no ratio; absent",
            width=12,
            pattern="changed|unchanged|only here|only there|not tested|no shared ion|absent",
        ),
        Column("n_first", "Values", "Number of samples of the first condition with a quantity", "integer", 6, low=0),
        Column("n_second", "Of other", "Number of samples with a quantity in the condition that it is compared with", "integer", 7, low=0),
        Column("n_too_low", "Too low", "Number of samples of both conditions in which it is too low to be measured", "integer", 7, low=0),
        Column("n_not_seen", "Not seen", "Number of samples of both conditions in which it was not observed", "integer", 8, low=0),
        Column(
            "n_imputed",
            "Imputed",
            "Number of samples of both conditions with an imputed quantity, in addition to measured ones",
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
PEPTIDES = Table.of(
    "peptide_quantities",
    "Peptides by sample",
    (
        Column("sequence", "Sequence", "Residues without modifications", width=24, pattern="[A-Z*]+"),
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
PEPTIDOFORMS = Table.of(
    "peptidoform_quantities",
    "Peptidoforms by sample",
    (
        _PEPTIDE,
        Column("sequence", "Sequence", "Residues without modifications", width=24, is_shown=False, pattern="[A-Z*]+"),
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
ION_TRACES = Table.of(
    "ion_traces",
    "Ion traces",
    (
        _PEPTIDE,
        _CHARGE,
        Column("mz", "m/z", "Calculated m/z of the monoisotopic ion", "number", 10, 4, saved=".6f"),
        Column(
            "voltage",
            "CV",
            "FAIMS compensation voltage of the MS1 spectra in which the ion is traced",
            "number",
            6,
            1,
            unit="V",
            is_nullable=True,
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
            "Area under the trace of all isotopes, intensity x s, not normalised",
            "number",
            12,
            is_nullable=True,
            low=0,
            saved=".6g",
        ),
        Column("apex", "Apex", "Maximum summed intensity of the isotopes", "number", 12, is_nullable=True, low=0, saved=".6g"),
        Column("retention_time", "RT", "Retention time of the apex", "minutes", 8, unit="min", is_nullable=True, saved=".4f"),
        Column("begin", "From", "Retention time of the start of the trace", "minutes", 8, unit="min", is_nullable=True, saved=".4f"),
        Column("end", "To", "Retention time of the end of the trace", "minutes", 8, unit="min", is_nullable=True, saved=".4f"),
        Column("width", "Width", "Width at half height", "number", 7, 1, unit="s", is_nullable=True, low=0, saved=".2f"),
        Column("n_points", "Points", "Number of MS1 spectra with the ion", "integer", 6, low=0),
        Column(
            "agreement",
            "Isotopes",
            "Cosine between the isotopes' areas and the expected pattern",
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
            "Minimum rate of false transfers at which the transferred ion is accepted",
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
REPORTER_IONS = Table.of(
    "reporter_ions",
    "Reporter ions",
    (
        _PEPTIDE,
        _CHARGE,
        _FILE,
        Column("spectrum_id", "Spectrum", "Name of the spectrum in its file", width=24),
        Column("level", "MS", "2, or 3 if the reporter ions were measured in the MS3 spectrum made from it", "integer", 4),
        Column("channel", "Channel", "Channel of the isobaric label", width=7),
        _SAMPLE,
        Column("measured", "Measured", "Intensity of the peak of the channel", "number", 12, is_nullable=True, low=0, saved=".8g"),
        Column(
            "intensity",
            "Intensity",
            "Intensity after correction for impurities of other channels, if a table of them was given; not normalised",
            "number",
            12,
            is_nullable=True,
            low=0,
            saved=".8g",
        ),
        Column(
            "signal_to_noise",
            "S/N",
            "Height of the peak above the baseline divided by the noise, if the file contains them",
            "number",
            7,
            1,
            is_nullable=True,
            saved=".6g",
        ),
        Column("mz_error", "Error", "m/z of the peak minus that of the channel", "number", 8, 4, is_nullable=True, saved=".5f"),
        Column(
            "interference",
            "Interference",
            "Fraction of the isolation window that is not the precursor, from the MS1 spectra before and after",
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
SAMPLES = Table.of(
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
                f"{name.capitalize()} of the sample in the design, a block of the comparison",
                width=10,
                is_nullable=True,
            )
            for name in BLOCKS
        ),
        Column("parts", "Files", "Files of the sample", "texts", 30),
        Column("n_psms", "PSMs", "Number of accepted PSMs in the sample", "integer", 7, low=0),
        Column("n_peptidoforms", "Peptidoforms", "Number of peptidoforms with a quantity", "integer", 11, low=0),
        Column("n_peptides", "Peptides", "Number of peptides with a quantity", "integer", 8, low=0),
        Column("n_proteins", "Proteins", "Number of proteins with a quantity", "integer", 8, low=0),
        Column("n_transferred", "Transferred", "Number of peptidoforms with a quantity only by transfers", "integer", 10, low=0),
        Column("factor", "Factor", "Normalisation factor of the quantities", "number", 9, 4, low=0, saved=".6g"),
    ),
    shown=_OF_SAMPLES,
    saved=_OF_SAMPLES,
)

TABLES = (PROTEINS, CHANGES, PEPTIDES, PEPTIDOFORMS, ION_TRACES, SAMPLES, REPORTER_IONS)
"""All tables, from proteins to measurements."""
STORED = (REPORTER_IONS,)
"""Tables that are not shown in lists of results."""
RESULT_TABLES = tuple(table for table in TABLES if table not in STORED)
BY_SAMPLE = (PROTEINS, PEPTIDES, PEPTIDOFORMS)
"""Tables that are also written with one column per sample."""


def file_of(table: Table) -> str:
    """Return the file name of a table as text."""
    return f"{table.name}.tsv"


def wide_file_of(table: Table) -> str:
    """Return the file name of a table with one column per sample."""
    return f"{table.name}_by_sample.tsv"
